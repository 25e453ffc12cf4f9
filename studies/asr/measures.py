"""What shipped networks show without training: right answers, bounds, class maps, and where attention is spatial."""

from pathlib import Path

import numpy as np
import torch

import netbridge as nb
from netbridge.common.batches import channels_last
from netbridge.tracing import activation_maps, gates
from studies.asr.results import BOUND_IMAGES
from studies.lab import networks
from studies.lab.networks import ZOO
from studies.lab.statistics import Estimate, mean_from_sums

ROLL = 6  # pixels by which pictures are rolled


def shipped_files(dataset: str, controller: str, seeds) -> list[tuple[int, Path]]:
    """Files of the shipped networks with a controller."""
    found = [(seed, sorted((ZOO / dataset).glob(f"*-{controller}-seed{seed}.safetensors"))) for seed in seeds]
    return [(seed, path) for seed, paths in found for path in paths if has_controller(path, controller)]


def has_controller(path: Path, controller: str) -> bool:
    """Does the whole of the name's middle say this controller?"""
    return path.stem.split("-seed")[0].split("-", 2 if "-width" in path.stem else 1)[-1] == controller


def shipped_network(path: Path) -> nb.Network:
    """The network of a checkpoint, laid out as the processor likes it."""
    return channels_last(networks.read_subject(path).net)


def right_answers(net, data, images: int) -> np.ndarray:
    """Which of the first test images are classified correctly, as 0 and 1."""
    answers = []
    with torch.no_grad():
        for part in data.test_images[:images].split(250):
            shown = data.normalised(part).contiguous(memory_format=torch.channels_last)
            answers.append(net.eval()(shown).argmax(1))
    return (torch.cat(answers) == data.test_labels[:images]).double().numpy()


def points_gained(before: np.ndarray, after: np.ndarray) -> Estimate:
    """Points gained, with Student's interval over the paired images."""
    points = 100.0 * (after - before)
    return mean_from_sums(len(points), float(points.sum()), float((points**2).sum()))


def measure_bound(name: str, seed, path: Path, data, images: int = BOUND_IMAGES) -> dict:
    """Theorem 6.1's bound of one network and what it measures, as numbers."""
    net = networks.read_subject(path).net
    found = nb.perturbation_bound(net, data.normalised(data.test_images[:images]))
    return {
        "name": name,
        "seed": seed,
        "bound": np.log10(found.bound),
        "alpha": found.alpha,
        "norm": found.lipschitz,
        "growth": found.measured,
    }


def measure_class_maps(name: str, seed, path: Path, data, images: int) -> dict:
    """Grad-CAM of test images, straight and with the pictures rolled by six pixels to the right."""
    net = shipped_network(path)
    shown, labels = data.normalised(data.test_images[:images]), data.test_labels[:images]
    straight = activation_maps.class_maps(net, shown, labels)
    rolled = activation_maps.class_maps(net, shown.roll(ROLL, dims=3), labels)
    moved = torch.nn.functional.pad(shown, (ROLL, 0, 0, 0))[..., : shown.shape[3]]  # the mean colour comes in
    padded = activation_maps.class_maps(net, moved, labels)
    mass = activation_maps.central_mass(straight)
    seen = mass[mass.isfinite()].double()
    centres = [activation_maps.centre_of_mass(one)[:, 1] for one in (straight, rolled, padded)]
    cells = ROLL * straight.shape[2] / shown.shape[3]
    return {
        "name": name,
        "seed": seed,
        "mass": mean_from_sums(len(seen), float(seen.sum()), float((seen**2).sum())),
        "shift": float((centres[1] - centres[0]).nanmean()),
        "padded": float((centres[2] - centres[0]).nanmean()),
        "cells": cells,
        "straight": (straight / straight.sum((1, 2), keepdim=True)).nanmean(0).numpy(),
        "rolled": (rolled / rolled.sum((1, 2), keepdim=True)).nanmean(0).numpy(),
    }


def measure_spatial_gates(seed, path: Path, data, images: int) -> dict:
    """CBAM's spatial gates: per block the share of their variance that is the position's, and their mean maps."""
    net = shipped_network(path)
    seen: list[list] = [[] for _ in net.blocks]
    hooks = [
        block.controller.spatial_norm.register_forward_hook(
            lambda _, args, out, kept=kept: kept.append(torch.sigmoid(out)[:, 0])
        )
        for block, kept in zip(net.blocks, seen, strict=True)
    ]
    right_answers(net, data, images)
    for hook in hooks:
        hook.remove()
    spatial = [torch.cat(kept) for kept in seen]
    return {
        "seed": seed,
        "share": [gates.constant_share(one.flatten(1)) for one in spatial],
        "maps": [one.mean(0).numpy() for one in spatial],
    }


def measure_attention(name: str, seed, path: Path, data, images: int) -> dict:
    """A transformer's attention: per block the share of its variance that is the position's, and its mean."""
    net = networks.read_subject(path).net
    found = nb.attention_values(net, data.normalised(data.test_images[:images]))
    return {
        "name": name,
        "seed": seed,
        "share": [one.constant for one in found],
        "maps": [one.mean.mean(0) for one in found],
    }
