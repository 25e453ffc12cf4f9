"""Detectors learn, go on to the bit, and several processes compute what one does."""

import json

import pytest
import torch

from netbridge import detect
from netbridge.detect.training import DetectorTraining
from netbridge.train import Recipe
from tests.netbridge.detect.scenes_of_shapes import detector, scenes

pytest.importorskip("pycocotools")
RECIPE = Recipe("three", 3, 2, lr=0.01, evaluate_every=3)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return scenes(tmp_path_factory.mktemp("scenes"))


def same(one, other) -> bool:
    there = other.state_dict()
    return all(torch.equal(x, there[name]) for name, x in one.state_dict().items())


def test_stopped_and_started_again_ends_with_the_same_bits(data, tmp_path):
    options = {"quiet": True, "device": "cpu"}
    whole = detect.train(detector("stepnet"), data, RECIPE, **options)
    path = tmp_path / "net.safetensors"
    detect.train(detector("stepnet"), data, RECIPE, path=path, stop_after=1, **options)
    assert not path.is_file()
    again = detect.train(detector("stepnet", seed=1), data, RECIPE, path=path, **options)
    assert same(whole, again)
    assert set(detect.average_precision(data, [])) <= set(again.about)
    loaded = detect.train(detector("stepnet", seed=2), data, RECIPE, path=path, **options)
    assert same(whole, loaded)
    assert loaded.about == again.about
    with pytest.raises(ValueError, match="belongs to a run with another config"):
        detect.train(detector("se"), data, RECIPE, path=path, **options)


def test_stopped_within_an_epoch_it_ends_with_the_same_bits_and_losses(data, tmp_path, monkeypatch):
    options = {"quiet": True, "device": "cpu", "checkpoint_minutes": 0.0}
    whole, parts = tmp_path / "whole.safetensors", tmp_path / "parts.safetensors"
    straight = detect.train(detector(), data, RECIPE, path=whole, **options)
    step, steps = torch.optim.SGD.step, []

    def interrupted(*given):
        steps.append(0)
        if len(steps) == 6:  # the last of the second epoch's three
            raise KeyboardInterrupt
        return step(*given)

    monkeypatch.setattr(torch.optim.SGD, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        detect.train(detector(), data, RECIPE, path=parts, **options)
    monkeypatch.undo()
    resumed = detect.train(detector(seed=1), data, RECIPE, path=parts, **options)
    assert same(straight, resumed)
    logs = [
        [json.loads(line) for line in path.with_suffix(".jsonl").read_text().splitlines()] for path in (whole, parts)
    ]
    for one, other in zip(*logs, strict=True):
        assert one.get("loss") == other.get("loss")


def test_a_batch_in_parts_gives_the_gradient_of_the_whole(data):
    found = []
    for parts in (1, 2):
        net = detector(frozen_norms=True).double()
        training = DetectorTraining(net, data, RECIPE, 0, "cpu", torch.float64, parts)
        training.prepare()
        images, truths = next(iter(training.batches.epoch(0, 0)))
        truths = [truth._replace(boxes=truth.boxes.double(), crowds=truth.crowds.double()) for truth in truths]
        training.stepper.step(images, truths, 0, 0, 3)
        found.append([x.grad.clone() for x in net.parameters()])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_the_samples_of_a_step_depend_on_seed_epoch_step_and_row():
    from netbridge.detect.training import place_chance

    places = [((0, 0, 0), 0), ((1, 0, 0), 0), ((0, 1, 0), 0), ((0, 0, 1), 0), ((0, 0, 0), 1)]
    drawn = [place_chance(*place).initial_seed() for place in places]
    assert len(set(drawn)) == len(drawn)
    assert place_chance((0, 0, 0), 0).initial_seed() == drawn[0]


def test_what_does_not_fit_is_refused(data):
    for net, recipe, message in (
        (torch.nn.Linear(2, 2), RECIPE, r"`net` must be a netbridge\.detect\.Detector, got Linear"),
        (detector(), Recipe("mixed", 1, 2, mixup=1.0), "cannot have mixup"),
        (
            detector(),
            Recipe("large", 1, 64),
            "`batch` = 64 is more than the pictures there are: 0 wide ones and 6 others",
        ),
        (detector(classes=5), RECIPE, "`net` knows 5 classes"),
        (detector(), "none", r"`recipe` must be a Recipe or one of \['coco-1x', 'coco-small'\]"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            detect.train(net, data, recipe, quiet=True, device="cpu")
    with pytest.raises(TypeError, match=r"`data` must be a netbridge\.detect\.Coco, got list"):
        detect.train(detector(), [], RECIPE, quiet=True, device="cpu")


@pytest.mark.slow
def test_two_pictures_are_learnt_by_heart(tmp_path):
    data = scenes(tmp_path, train=2, test=2)
    seen = detect.Coco(data.name, data.train, data.train, data.categories, data.names, 64)
    schedule = {"schedule": "cosine", "warmup": 5, "clip": 10.0, "evaluate_every": 150}
    recipe = Recipe("by heart", 150, 2, "adamw", lr=3e-3, flip="none", **schedule)
    losses = []
    net = detect.train(
        detector(), seen, recipe, quiet=True, device="cpu", on_epoch=lambda net, record: losses.append(record["loss"])
    )
    assert losses[-1] < 0.25 * losses[0]
    assert net.about["AP50"] == 100
