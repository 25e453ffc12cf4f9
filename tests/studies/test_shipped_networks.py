"""The networks that come with the repository: complete, as their logs tell, and small enough to come along."""

import dataclasses
import json

import pytest
import torch

import netbridge as nb
from netbridge.train.recipes import recipe
from studies.lab import jobs
from studies.lab.networks import CONTROLLERS, ZOO
from studies.train import VITS

FOLDERS = {
    "cifar10": ("cifar10", "short"),
    "cifar10-medium": ("cifar10", "medium"),
    "digits": ("digits", "digits"),
    "cifar10-deep": ("cifar10", "short"),
    "digits-deep": ("digits", "digits"),
    "digits-vit": ("digits", "vit-digits"),
    "cifar10-vit": ("cifar10", "vit-short"),
}
LIMIT = 70e6  # bytes, of everything trained that comes along
DEEP = ("constant", "se", "stepnet")
DEEP_EPOCHS = {"cifar10-deep": 6}  # where others than the recipe's


def files(dataset):
    return sorted((ZOO / dataset).glob("*.safetensors"))


def test_all_together_are_small():
    assert sum(path.stat().st_size for path in ZOO.rglob("*") if path.suffix != ".resume") <= LIMIT


def test_every_controller_has_two_seeds():
    wanted = {jobs.Job("cifar10", name, seed, recipe("short")).stem for name in CONTROLLERS for seed in (0, 1)}
    assert {path.stem for path in files("cifar10")} == wanted
    assert {path.stem.split("-seed")[1] for path in files("digits")} == {"0", "1"}
    assert {path.stem for path in files("digits-deep")} == {f"resnet56-width4-{name}-seed0" for name in DEEP}
    assert {path.stem for path in files("digits-vit")} == {f"vit4-width32-{name}-seed{seed}" for name, seed in VITS}
    transformers = {path.stem for path in files("cifar10-vit")}  # Table 7's rows, and SE
    assert transformers >= {f"vit-conv6-width96-{name}-seed0" for name in ("constant", "stepnet", "se")}
    assert transformers <= {f"vit-conv6-width96-{name}-seed{seed}" for name, seed in VITS}


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_is_what_its_log_says(folder):
    dataset, name = FOLDERS[folder]
    assert files(folder)
    for path in files(folder):
        net = nb.load(path)
        assert all(value.dtype in (torch.float32, torch.int64) for value in net.state_dict().values())
        head, *epochs = map(json.loads, path.with_suffix(".jsonl").read_text().splitlines())
        wanted = recipe(name)
        wanted = dataclasses.replace(wanted, epochs=DEEP_EPOCHS.get(folder, wanted.epochs))
        assert jobs.same_recipe(head["recipe"], wanted)
        assert [epoch["epoch"] for epoch in epochs] == list(range(1, wanted.epochs + 1))
        assert net.about["dataset"] == dataset
        assert net.about.get("trained", net.about)["test_accuracy"] == epochs[-1]["test_accuracy"]
        assert net.about["test_accuracy"] == pytest.approx(epochs[-1]["test_accuracy"], abs=1e-3)  # rounded weights
        assert net.about["seed"] == int(path.stem.split("-seed")[1])


@pytest.mark.parametrize(
    ("folder", "accuracy"),
    [
        ("cifar10", 0.89),
        ("cifar10-medium", 0.91),
        ("cifar10-deep", 0.84),
        ("digits-vit", 0.96),
        ("cifar10-vit", 0.68),
    ],
)
def test_a_plain_network_reaches_what_its_recipe_promises(folder, accuracy):
    plain = [nb.load(path).about["test_accuracy"] for path in files(folder) if "constant" in path.stem]
    assert min(plain) >= accuracy
