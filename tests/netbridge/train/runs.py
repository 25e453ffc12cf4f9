"""Small runs of training for the tests: a ResNet-8 on a hundred digits."""

import torch

import netbridge as nb
from netbridge import data
from netbridge.train import loop as train
from netbridge.train import recipes


def few(count=96, tests=32):
    """So few digits that an epoch takes a blink."""
    whole = data.load("digits")
    parts = {
        "train_images": whole.train_images[:count],
        "train_labels": whole.train_labels[:count],
        "test_images": whole.test_images[:tests],
        "test_labels": whole.test_labels[:tests],
    }
    return data.Dataset("digits", **parts, mean=whole.mean, std=whole.std, names=whole.names)


def recipe(**changes):
    """Three epochs of six steps with everything `short` has."""
    usual = {"epochs": 3, "batch": 16, "shift": 1, "flip": "none", "evaluate_every": 2}
    return recipes.recipe("short", **usual | changes)


def fresh(controller="se", seed=0, depth=8):
    torch.manual_seed(seed)
    return nb.resnet(depth, controller=controller)


def run(path=None, controller="se", seed=0, dtype=torch.float32, images=None, changes=None, **options):
    net = fresh(controller, seed)
    options = {"device": "cpu", "quiet": True, "about": {"controller": controller, "depth": 8}} | options
    return train.train(net, images or few(), recipe(**changes or {}), seed, path, dtype=dtype, **options)


def same(one, other) -> bool:
    """Every tensor of two networks, bit for bit."""
    first, second = one.state_dict(), other.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
