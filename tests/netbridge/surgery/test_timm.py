"""Step sizes in networks of timm, one per residual step, merged again to the last digits; runs where timm is installed.

timm imports torchvision for what these networks do not use, and torchvision does not go with every build of torch.
Where torchvision (or huggingface_hub, which only loads weights) cannot be imported, placeholders that refuse to be
called stand in for it while timm is imported. Blocks like timm's are in `lookalikes`, which every machine tests.
"""

import contextlib
import importlib.util
import sys
import types
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

import pytest
import torch

import netbridge as nb
from tests.netbridge import networks
from tests.netbridge.foreign import networks as foreign

ASIDE = ("torchvision", "huggingface_hub")
STEPS = {  # residual steps of each model
    "resnet18": 8,
    "seresnet18": 8,
    "vit_tiny_patch16_224": 24,
    "mobilenetv2_100": 10,
    "mobilenetv3_small_050": 7,
    "efficientnet_b0": 9,
    "convnext_atto": 12,
    "repvgg_a0": 17,
}


class Placeholder(type):
    """A name that can be imported and looked into, and nothing else."""

    def __call__(cls, *_, **__):
        raise RuntimeError(f"{cls.__name__} is a placeholder: these tests use nothing of {', '.join(ASIDE)}")

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Placeholder(name, (), {})


class Empty(types.ModuleType):
    """A module that has every name."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Placeholder(name, (), {})


class Finder(MetaPathFinder, Loader):
    """Finds an empty module for each of some names and for all below them."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, fullname, path=None, target=None):
        return ModuleSpec(fullname, self, is_package=True) if fullname.partition(".")[0] in self.names else None

    def create_module(self, spec):
        return Empty(spec.name)

    def exec_module(self, module):
        pass


@contextlib.contextmanager
def placeholders():
    """Placeholders for what cannot be imported itself; sys.modules is as it was afterwards."""
    wanting, before = set(), set(sys.modules)
    for name in ASIDE:
        try:
            importlib.import_module(name)
        except (ImportError, RuntimeError):  # torchvision raises RuntimeError beside another build of torch
            wanting.add(name)
            for left in [one for one in sys.modules if one.partition(".")[0] == name]:
                del sys.modules[left]
    finder = Finder(wanting)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in wanting:
                del sys.modules[name]


@pytest.fixture(scope="module")
def timm():
    if importlib.util.find_spec("timm") is None:
        pytest.skip("timm is not installed")
    with placeholders():
        return importlib.import_module("timm")


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_asr_goes_into_a_model_of_timm_and_is_merged_again(timm, name):
    size = 224 if name.startswith("vit") else 64
    torch.manual_seed(0)
    net = foreign.shaken(networks.lively(timm.create_model(name, num_classes=10))).double().eval()
    images = torch.randn(2, 3, size, size, dtype=torch.float64)
    before = {key: tensor.clone() for key, tensor in net.state_dict().items()}
    found = nb.places(net, images)
    assert [place.step for place in found] == list(nb.trace(net, images).names)
    assert len(found) == STEPS[name]
    assert all(place.reason == "" for place in found)
    gated = nb.insert(net, nb.asr("se", spread=1.0), images)
    with torch.no_grad():
        wanted, plain, merged = gated(images), net(images), nb.merge(gated)
        error = networks.relative_error(merged(images), wanted)
        print(f"{name}: {len(found)} places, merged error {error:.1e}")
        assert networks.relative_error(wanted, plain) > 0.05  # something was inserted
        assert error < 1e-12
    assert list(merged.state_dict()) == list(before)
    assert all(torch.equal(before[key], tensor) for key, tensor in net.state_dict().items())
