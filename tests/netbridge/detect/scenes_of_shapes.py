"""What the tests of detection share: made-up scenes, and a detector small enough to be trained in seconds."""

import dataclasses

import torch

import netbridge as nb
from netbridge import detect

TINY = dataclasses.replace(
    detect.SMALL, features=16, hidden=32, anchor_samples=64, best=(50, 30), proposals=(30, 20), box_samples=32
)


def scenes(folder, train=6, test=3, size=64, **options):
    """A data set of made-up scenes, shown at their own size."""
    return detect.load(detect.shapes(folder, train=train, test=test, size=size, **options), short=size)


def detector(controller="constant", frozen_stages=0, frozen_norms=False, settings=TINY, classes=3, seed=0):
    """An untrained detector over a ResNet-8."""
    torch.manual_seed(seed)
    body = nb.resnet(8, stem="imagenet", widths=(8, 8, 16), controller=controller)
    return detect.Detector(body, classes, settings, frozen_stages, frozen_norms)
