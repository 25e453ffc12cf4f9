"""Spectra through training: a small ResNet on the digits, from its first weights on, measured between epochs."""

import numpy as np
import torch

import netbridge as nb
from netbridge import data as datasets
from netbridge.train import recipe, train
from studies.block_stiffness.measures import answers, inner_blocks, nested_images
from studies.lab.measure import prepared

DEPTH, WIDTHS = 14, (4, 8, 16)
MEASURES = ("max_re", "min_re", "spectral_radius", "negative")


def through_training(epochs: int, images: int, seed: int = 0) -> list[dict]:
    """A row per look and block: before training and after the epochs 1, 2, 4, ... and the last.

    epochs  of the recipe "digits"
    images  test images at which the spectra of the branches are taken, balanced over labels
    """
    data = datasets.load("digits")
    chosen = nested_images(data.test_labels.numpy(), -(-images // 10))[:images]
    looks = {0, *(2**k for k in range(epochs.bit_length())), epochs}
    rows: list[dict] = []
    torch.manual_seed(seed)
    net = nb.resnet(DEPTH, len(data.names), widths=WIDTHS)
    net.normalisation = data.normalisation

    def look(net, record):
        if record["epoch"] in looks:
            rows.extend(spectra_of(net, data, chosen, record["epoch"]))

    look(net, {"epoch": 0})
    train(net, data, recipe("digits", epochs=epochs), seed, device="cpu", quiet=True, on_epoch=look)
    return rows


def spectra_of(net, data, chosen, epoch: int) -> list[dict]:
    """The means over images of each branch, of the network as it is now, and its accuracy on all test images."""
    training = net.training
    accuracy = float(answers(net.eval(), data, np.arange(len(data.test_images)))[1].mean())
    net.train(training)
    images = prepared(net, data, data.test_images[chosen])
    blocks = [name for stage in range(len(net.stages)) for name in inner_blocks(net, stage)]
    table = nb.block_survey(net, images, "residual", blocks, values="full")
    errors = nb.block_survey(net, images, "error", blocks)
    return [
        {
            "epoch": epoch,
            "accuracy, %": 100 * accuracy,
            "block": net.block_names.index(name) + 1,
            **{measure: float(np.mean(table[table["block"] == name][measure])) for measure in MEASURES},
            "step_error": float(np.median(errors[errors["block"] == name]["step_error"])),
        }
        for name in blocks
    ]
