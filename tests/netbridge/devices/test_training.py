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

TEACHER = "digits/resnet32-width4-constant-seed0"
# Together they give every field of a recipe a value other than its default, and each way that a field names.
RECIPES = {
    "steps": {"drops": (1,), "gamma": 0.5, "lr": 0.05, "momentum": 0.8, "weight_decay": 1e-3, "architectures": "small"},
    "cosine": {"schedule": "cosine", "nesterov": True, "warmup": 0.5, "min_lr": 0.01},
    "triangle": {"schedule": "triangle", "peak": 0.5, "evaluate_every": 2, "decay_all": False, "decay_gates": False},
    "adamw": {"optimizer": "adamw", "lr": 1e-3},
    "border": {"border": "reflect", "shift": 1, "flip": "none"},
    "flip": {"shift": 0, "flip": "alternating"},
    "small": {"small": ((0.5, 0.5), (0.9, 0.75))},
    "smoothing": {"smoothing": 0.1},
    "average": {"average": True},
    "mixup": {"mixup": 1.0},
    "cutmix": {"cutmix": 1.0},
    "cutout": {"cutout": 6},
    "erasing": {"erasing": 0.7},
    "trivial": {"policy": "trivial"},
    "rand": {"policy": "rand", "operations": 3, "strength": 20},
    "drop_path": {"drop_path": 0.5},
    "ema": {"ema": 0.9},
    "sam": {"sam": 0.05},
    "clip": {"clip": 0.1},
    "teacher": {"teacher": TEACHER, "temperature": 2.0, "distillation": 0.5},
    "bfloat16": {"bfloat16": True},
    "float16": {"float16": True, "tf32": True, "benchmark": True},
    "crop": {"crop": (0.3, 0.9), "aspect": (0.5, 2.0)},
}
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
    """Two epochs of three steps, so that lookahead moves the weights once."""
    return Recipe(case, **{"epochs": 2, "batch": 8} | RECIPES[case])


def trained(device, case: str, images=None, net=None, **options):
    """The network after a training on a device, and what it scored."""
    net, images = net or runs.fresh(), images or runs.few(24, 8)
    net = train.train(net, images, recipe_of(case), device=device, quiet=True, **options)
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
        assert_alike_on_both(lambda device: trained(device, case))

    @pytest.mark.parametrize("case", ["bfloat16", "float16"])
    def test_in_half_precision(self, case, monkeypatch):
        """What is netbridge's of it: the choice of the precision, and a loss that is scaled on its own device.

        Autocast chooses other kernels within torch, of which the pretend device has none.
        """
        ask, kinds = precision.half_of, set()

        def autocast(kind, dtype):
            kinds.add(kind)
            return contextlib.nullcontext()

        monkeypatch.setattr(precision, "half_of", lambda recipe, device: ask(recipe, PROCESSOR))
        monkeypatch.setattr(torch, "autocast", autocast)
        assert_alike_on_both(lambda device: trained(device, case))
        assert kinds == {"cpu", "lazy"}

    def test_with_pictures_from_the_disk(self, tmp_path, monkeypatch):
        monkeypatch.setenv("NETBRIDGE_DATA", str(tmp_path))
        archives = data.miniature("imagenet", tmp_path, classes=3, each=8, height=24) / "archives"
        pictures = data.imagenet(archives, 16, 20)
        assert_alike_on_both(lambda device: trained(device, "crop", pictures))


class TestSteps:
    def test_in_parts(self):
        assert_alike_on_both(lambda device: trained(device, "ema", parts=2))

    def test_of_somebody_elses_network(self):
        def compute(device):
            layers = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.1), nn.Flatten(), nn.Linear(784, 10)
            return trained(device, "sam", net=nn.Sequential(*layers))

        assert_alike_on_both(compute)

    def test_stopped_and_gone_on_with(self, tmp_path):
        def compute(device):
            path = tmp_path / device.type / "net.safetensors"
            for options in ({"stop_after": 1}, {}):
                result = trained(device, "adamw", path=path, **options)
            return result | {"loaded": dict(nb.load(path).state_dict())}

        assert_alike_on_both(compute)


class TestEvaluation:
    def test_of_many_classes(self):
        """With more than twenty, the first five answers count too."""
        few = runs.few(24, 8)
        parts = {name: getattr(few, name) for name in ("train_images", "train_labels", "test_images", "test_labels")}
        images = data.dataset("many", parts, [str(number) for number in range(25)])

        def compute(device):
            scores = train.evaluate(nb.resnet(8, num_classes=25).to(device), images, batch=3)
            assert "test_top5" in scores
            return scores

        assert_alike_on_both(compute)


class TestAugmentation:
    """Every operation of a policy in both directions, not only what a short training happens to draw."""

    @pytest.mark.parametrize("channels", [1, 3])
    @pytest.mark.parametrize("ranges", [policies.WIDE, policies.USUAL], ids=["trivial", "rand"])
    @pytest.mark.parametrize("kind", policies.KINDS)
    def test_an_operation(self, kind, ranges, channels):
        operations = torch.tensor([[policies.KINDS.index(kind), strength, sign] for strength, sign in STRENGTHS])

        def compute(device):
            pictures = torch.randint(0, 256, (len(STRENGTHS), 8, 12, channels), dtype=torch.uint8)
            return policies.augment(pictures.to(device), operations, ranges)

        assert_alike_on_both(compute)
