"""Training and evaluation stay on one device, whatever a recipe asks for."""

import contextlib
import dataclasses

import pytest
import torch
from torch import nn

import netbridge as nb
from netbridge import data, train
from netbridge.train import policies, precision, recipes
from netbridge.train.recipes import Recipe
from tests.netbridge.devices.pretend_device import PROCESSOR, assert_alike_on_both
from tests.netbridge.train import runs

# Together they give every field of a recipe a value other than its default, and each way that a field names.
RECIPES = {
    "steps": {
        "drops": (1,),
        "gamma": 0.5,
        "lr": 0.05,
        "momentum": 0.8,
        "weight_decay": 1e-3,
        "architectures": "small",
        "smoothing": 0.1,
        "cutout": 6,
    },
    "cosine": {
        "schedule": "cosine",
        "nesterov": True,
        "warmup": 0.5,
        "min_lr": 0.01,
        "border": "reflect",
        "shift": 1,
        "flip": "none",
    },
    "triangle": {
        "schedule": "triangle",
        "peak": 0.5,
        "evaluate_every": 2,
        "decay_all": False,
        "decay_gates": False,
        "drop_path": 0.5,
        "erasing": 0.7,
    },
    "adamw": {"optimizer": "adamw", "lr": 1e-3, "epochs": 2, "clip": 0.1, "policy": "trivial"},
    "flip": {"shift": 0, "flip": "alternating", "epochs": 2},
    "small": {"small": ((0.5, 0.5), (0.9, 0.75)), "epochs": 2},
    "average": {"average": True, "batch": 4, "mixup": 1.0},  # weights move after five steps
    "cutmix": {"cutmix": 1.0},
    "ema": {"ema": 0.9},
    "sam": {"sam": 0.05},
    "bfloat16": {"bfloat16": True},
    "float16": {"float16": True, "tf32": True, "benchmark": True},
    "crop": {"crop": (0.3, 0.9), "aspect": (0.5, 2.0)},
}
ROUNDING = 1e-9  # in float64, amplified by six steps
STRENGTHS = ((0, 0), (10, 0), (10, 1), (30, 1))  # of an operation, and whether it goes the other way
SCORES = ("test_accuracy", "test_errors", "test_loss")
WAYS = {
    "schedule": recipes.SCHEDULES,
    "flip": recipes.FLIPS,
    "border": recipes.BORDERS,
    "optimizer": recipes.OPTIMIZERS,
    "policy": recipes.POLICIES,
}


def recipe_of(case: str) -> Recipe:
    """An epoch of three steps, where the case does not say otherwise."""
    return Recipe(case, **{"epochs": 1, "batch": 8} | RECIPES[case])


def trained(device, case: str, images=None, net=None, **options):
    """The network after a training on a device, where all of it must be, and what it scored."""
    net, images = net or runs.fresh(), images or runs.few(24, 8)
    options = {"dtype": torch.float64} | options
    net = train.train(net, images, recipe_of(case), device=device, quiet=True, **options)
    assert {tensor.device for tensor in net.state_dict().values()} == {device}
    return {"state": dict(net.state_dict()), "scores": [net.about.get(score) for score in SCORES]}


class TestRecipes:
    def test_every_field_has_a_case(self):
        """A new field, or another way that a field knows, needs a case here."""
        cases = [recipe_of(case) for case in RECIPES]
        for field in dataclasses.fields(Recipe):
            assert any(getattr(case, field.name) != field.default for case in cases), field.name
        for name, ways in WAYS.items():
            assert {getattr(case, name) for case in cases} == set(ways), name

    @pytest.mark.parametrize("case", [case for case in RECIPES if case not in ("bfloat16", "float16", "crop")])
    def test_a_training_is_the_same_on_both(self, case):
        assert_alike_on_both(lambda device: trained(device, case), ROUNDING)

    @pytest.mark.parametrize("case", ["bfloat16", "float16"])
    def test_in_half_precision(self, case, monkeypatch):
        """What netbridge does of it: it chooses the precision, asks for autocast on its device, and scales the loss.

        What autocast does is torch's, which chooses kernels in half precision and has none for the pretend device.
        """
        ask, kinds = precision.half_of, set()

        def autocast(kind, dtype):
            kinds.add(kind)
            return contextlib.nullcontext()

        monkeypatch.setattr(precision, "half_of", lambda recipe, device: ask(recipe, PROCESSOR))
        monkeypatch.setattr(torch, "autocast", autocast)
        assert_alike_on_both(lambda device: trained(device, case, dtype=torch.float32), rtol=1e-3)
        assert kinds == {"cpu", "lazy"}

    def test_with_pictures_from_the_disk(self, tmp_path, monkeypatch):
        monkeypatch.setenv("NETBRIDGE_DATA", str(tmp_path))
        archives = data.miniature("imagenet", tmp_path, classes=10, each=3, height=24) / "archives"
        pictures = data.imagenet(archives, 16, 20)
        assert_alike_on_both(lambda device: trained(device, "crop", pictures), ROUNDING)


class TestSteps:
    def test_in_parts(self):
        assert_alike_on_both(lambda device: trained(device, "ema", parts=2), ROUNDING)

    def test_of_somebody_elses_network(self):
        def compute(device):
            layers = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.1), nn.Flatten(), nn.Linear(784, 10)
            return trained(device, "sam", net=nn.Sequential(*layers))

        assert_alike_on_both(compute, ROUNDING)

    def test_stopped_and_gone_on_with(self, tmp_path):
        def compute(device):
            path = tmp_path / device.type / "net.safetensors"
            for options in ({"stop_after": 1}, {}):
                result = trained(device, "adamw", path=path, **options)
            return result | {"loaded": dict(nb.load(path).state_dict())}

        assert_alike_on_both(compute, ROUNDING)


def few_of(device, names=None):
    """A data set of one's own, made of tensors of the device."""
    few = runs.few(24, 8)
    parts = ("train_images", "train_labels", "test_images", "test_labels")
    return data.dataset("few", {part: getattr(few, part).to(device) for part in parts}, names)


def test_images_of_ones_own_may_be_of_either_device():
    assert_alike_on_both(lambda device: trained(device, "steps", few_of(device)), ROUNDING)


class TestEvaluation:
    def test_of_many_classes(self):
        """With more than twenty, the first five answers count too."""
        images = few_of(PROCESSOR, [str(number) for number in range(25)])

        def compute(device):
            scores = train.evaluate(nb.resnet(8, num_classes=25).to(device), images, batch=3)
            assert "test_top5" in scores
            return scores

        assert_alike_on_both(compute, ROUNDING)


class TestAugmentation:
    """Every operation of a policy in both directions, not only what a short training happens to draw."""

    @pytest.mark.parametrize("channels", [1, 3])
    @pytest.mark.parametrize("kind", policies.KINDS)
    def test_an_operation(self, kind, channels):
        operations = torch.tensor([[policies.KINDS.index(kind), strength, sign] for strength, sign in STRENGTHS])

        def compute(device):
            pictures = torch.randint(0, 256, (len(STRENGTHS), 8, 12, channels), dtype=torch.uint8)
            return policies.augment(pictures.to(device), operations)

        assert_alike_on_both(compute, ROUNDING)
