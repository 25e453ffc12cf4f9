"""Detection stays on one device: anchors, matching, losses, boxes, what is found, and a training."""

import dataclasses

import pytest
import torch

from netbridge import detect
from netbridge.detect import boxes as geometry
from netbridge.detect.anchors import anchor_grid
from netbridge.detect.matching import match, sample
from netbridge.detect.pooling import level_of, pool_boxes
from netbridge.detect.scenes import Truth, pad_to
from netbridge.detect.suppression import nms_within
from netbridge.train import Recipe
from tests.netbridge.detect.scenes_of_shapes import TINY, detector, scenes
from tests.netbridge.devices.pretend_device import assert_alike_on_both

ROUNDING = 1e-3  # in float32, of which a step of training amplifies the rounding


def some_boxes(count: int, seed: int = 0, size: float = 64.0) -> torch.Tensor:
    """Boxes (left, top, right, bottom) within a picture."""
    corners = torch.rand(count, 2, 2, generator=torch.Generator().manual_seed(seed)) * size
    return corners.sort(1).values.flatten(1)


def some_truths(device, dtype=torch.float32) -> list[Truth]:
    """Two objects and a crowd, one object, and a picture that is empty."""
    none = torch.zeros(0, 4, dtype=dtype)
    pictures = [
        (some_boxes(2, 1).to(dtype), some_boxes(1, 2).to(dtype)),
        (some_boxes(1, 3).to(dtype), none),
        (none, none),
    ]
    return [Truth(boxes, torch.arange(len(boxes)), crowds, (64, 64)).to(device) for boxes, crowds in pictures]


BOXES = {
    "overlap": lambda b, o, device: detect.box_iou(b, o),
    "share in regions": lambda b, o, device: [geometry.covered_share(b, regions) for regions in (o, o[:0])],
    "as seen from others": lambda b, o, device: geometry.encode(b[:3], o, (0.1, 0.1, 0.2, 0.2)),
    "and back": lambda b, o, device: geometry.decode(b[:3], o / 64, (0.1, 0.1, 0.2, 0.2)),
    "cut off": lambda b, o, device: geometry.within(b, (30, 40)),
    "mirrored": lambda b, o, device: geometry.mirror(b, 64.0),
    "anchors": lambda b, o, device: anchor_grid(3, 4, 8, 4.0, (0.5, 1.0, 2.0), device),
    "matches": lambda b, o, device: [match(b, o, c, 0.5, 0.3, True) for c in (o, o[:0])],
    "matches of nothing": lambda b, o, device: match(b, o[:0], o[:0], 0.5, 0.3, True),
    "sample": lambda b, o, device: sample(match(b, o, o[:0], 0.3, 0.2, True), 8, 0.5, torch.Generator().manual_seed(0)),
    "best": lambda b, o, device: detect.nms(b, b[:, 0], 0.3),
    "best of groups": lambda b, o, device: nms_within(b, b[:, 0], torch.arange(len(b), device=device) % 3, 0.3, 5),
    "level": lambda b, o, device: level_of(b, 3, 16.0),
    "features": lambda b, o, device: detect.roi_align(torch.rand(2, 8, 8).to(device), b, 8, 3),
    "features of a pyramid": lambda b, o, device: pool_boxes(
        [torch.rand(2, 4, side, side).to(device) for side in (16, 8)], [4, 8], [b, o], 16.0, 3
    ),
    "truth": lambda b, o, device: [
        [truth.boxes, truth.labels, truth.crowds]
        for one in some_truths(device)
        for truth in (one.resize((32, 16)), one.mirror())
    ],
    "padding": lambda b, o, device: pad_to(
        [torch.zeros(3, 5, 3, dtype=torch.uint8)], (8, 8), (0.5,) * 3, (0.2,) * 3, device, torch.float32
    ),
}


@pytest.mark.parametrize("name", BOXES)
def test_boxes(name):
    def compute(device):
        result = BOXES[name](some_boxes(12).to(device), some_boxes(3, 5).to(device), device)
        assert {x.device for x in torch.utils._pytree.tree_leaves(result)} == {device}
        return result

    assert_alike_on_both(compute, rtol=1e-6)


@pytest.mark.parametrize("frozen", [0, 1])
def test_losses(frozen):
    def compute(device):
        net = detector("se", frozen, bool(frozen)).to(device).train()
        losses = net(torch.rand(3, 3, 64, 64).to(device), some_truths(device))
        assert {loss.device for loss in losses.values()} == {device}
        sum(loss for name, loss in losses.items() if name != "right").backward()
        return losses, [x.grad for x in net.parameters() if x.grad is not None]

    assert_alike_on_both(compute, ROUNDING)


def test_detections():
    """An untrained detector is sure of nothing, so whatever it sees is reported."""

    def compute(device):
        net = detector(settings=dataclasses.replace(TINY, score=0.0)).to(device).eval()
        with torch.no_grad():
            found = net(torch.rand(2, 3, 64, 64).to(device))
        assert all(len(one.boxes) and one.boxes.device == device for one in found)
        return [list(one) for one in found]

    assert_alike_on_both(compute, ROUNDING)


RECIPES = {
    "plain": {"lr": 0.01, "clip": 1.0, "warmup": 0.5, "flip": "alternating"},
    "tricks": {"lr": 0.01, "ema": 0.9, "sam": 0.05},
}


@pytest.mark.parametrize("case", RECIPES)
def test_a_training(case, tmp_path):
    pytest.importorskip("pycocotools")
    data = scenes(tmp_path, train=4, test=2)

    def compute(device):
        net = detect.train(detector("se"), data, Recipe(case, 1, 2, **RECIPES[case]), quiet=True, device=device)
        assert {x.device for x in net.state_dict().values()} == {device}
        return dict(net.state_dict()), net.about["AP"]

    assert_alike_on_both(compute, ROUNDING)
