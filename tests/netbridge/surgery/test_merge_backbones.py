"""Merging and folding on every backbone: the same function, whatever the gate, the mode and the precision."""

import copy

import hypothesis
import hypothesis.strategies as some
import pytest
import torch

import netbridge as nb
from netbridge.layers.own import Sum
from netbridge.step_sizes.gated import Gated
from tests.netbridge import networks
from tests.netbridge.backbones import BACKBONES, UNFOLDABLE, images

LARGEST = {torch.float32: 1e-6, torch.float64: 1e-12}
GATES = {
    "ASR(SE)": nb.asr("se(reduction=2)"),
    "two uses": nb.asr("se(reduction=2)", uses=2),
    "a vector": nb.asr(None, init=0.7, spread=0.3),
    "tanh, below 0": nb.asr("ie", activation="tanh", init=-0.6),
    "a constant below 0": nb.controller("constant", value=-0.3),
    "a bias": nb.controller("bias", init=0.3),
}
OTHERS = tuple(GATES)[1:]


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("gate", ["ASR(SE)", *(pytest.param(gate, marks=pytest.mark.slow) for gate in OTHERS)])
def test_merged_and_folded_are_the_same_function(name, gate):
    for precision, largest in LARGEST.items():
        for training in (True, False):
            check(name, gate, 2, precision, training, largest)


@hypothesis.settings(deadline=None, max_examples=15)
@hypothesis.given(
    name=some.sampled_from(sorted(BACKBONES)),
    gate=some.sampled_from(sorted(GATES)),
    width=some.integers(1, 5),
    training=some.booleans(),
)
def test_so_they_are_at_every_width(name, gate, width, training):
    check(name, gate, width, torch.float64, training, LARGEST[torch.float64])


def check(name, gate, width, precision, training, largest):
    torch.manual_seed(width)
    net = networks.lively(BACKBONES[name](GATES[gate], width)).to(precision).train(training)
    x = images(precision)
    with torch.no_grad():
        merged = nb.merge(net)
        wanted = copy.deepcopy(net)(x)  # copies, because running statistics move in training
        assert merged.training is training
        error = networks.relative_error(copy.deepcopy(merged)(x), wanted)
        # two images in training divide by the deviation of eight numbers: rounding of float32 grows there
        assert error < largest * (30 if training and precision == torch.float32 else 1)
        # the gates did something, and none is left
        assert training or networks.relative_error(nb.swap(net, "constant")(x), wanted) > 1e-5
        assert not any(isinstance(module, Gated) for module in merged.modules())
        if name not in UNFOLDABLE:
            wanted = net.eval()(x)
            assert networks.relative_error(nb.fold(merged.eval())(x), wanted) < largest
            assert networks.relative_error(nb.fold(net)(x), wanted) < largest


@pytest.mark.parametrize("name", BACKBONES)
def test_a_merged_network_has_the_parameters_of_the_plain_one(name):
    plain = BACKBONES[name]().state_dict()
    merged = nb.merge(BACKBONES[name](GATES["ASR(SE)"])).state_dict()
    assert {key: x.shape for key, x in merged.items()} == {key: x.shape for key, x in plain.items()}


def test_every_summand_takes_up_the_constant():
    """The law above sees it when a single summand is left out: here each is left out once, and must be seen."""
    net = networks.lively(BACKBONES["RepVGG"](GATES["a vector"], 2)).double().eval()
    merged, x = nb.merge(net), images()
    for place, module in enumerate(module for module in merged.modules() if isinstance(module, Sum)):
        original = [module for module in net.modules() if isinstance(module, Sum)][place]
        for number in range(len(list(module.children()))):
            damaged = copy.deepcopy(merged)
            victim = [one for one in damaged.modules() if isinstance(one, Sum)][place]
            list(victim.children())[number].load_state_dict(list(original.children())[number].state_dict())
            assert networks.relative_error(damaged(x), net(x)) > 1e-6


@pytest.mark.parametrize("name", UNFOLDABLE)
def test_statistics_of_each_image_cannot_be_folded_and_it_is_said(name):
    with pytest.raises(ValueError, match="fold"):
        nb.fold(BACKBONES[name]().eval())
