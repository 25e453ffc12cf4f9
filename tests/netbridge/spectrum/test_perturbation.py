"""Theorem 6.1: operator norms are those of the matrices, and no perturbation grows beyond the bound."""

import hypothesis
import hypothesis.strategies as some
import numpy as np
import pytest
import torch
from torch import nn

import netbridge as nb
from netbridge.spectrum.chain import convolution_of
from netbridge.spectrum.perturbation import map_norm, operator_norm
from netbridge.spectrum.reduction import convolution_matrix
from tests.netbridge.foreign import networks as foreign
from tests.netbridge.networks import lively

SMALL = {"depth": 14, "widths": (4, 4, 8)}


@hypothesis.given(
    kernel=some.integers(1, 3),
    stride=some.integers(1, 2),
    padding=some.integers(0, 1),
    groups=some.sampled_from([1, 2]),
    size=some.tuples(some.integers(4, 7), some.integers(4, 7)),
    seed=some.integers(0, 100),
)
@hypothesis.settings(deadline=None, max_examples=25)
def test_the_norm_of_a_convolution_is_that_of_its_matrix(kernel, stride, padding, groups, size, seed):
    torch.manual_seed(seed)
    conv = nn.Conv2d(4, 6, kernel, stride, padding, groups=groups, bias=True).double()
    exact = np.linalg.norm(convolution_matrix(convolution_of(conv, torch.float64), size).toarray(), 2)
    found = operator_norm(convolution_of(conv, torch.float64), size)
    assert found <= exact * (1 + 1e-12)
    assert found == pytest.approx(exact, rel=1e-3)
    with torch.no_grad():
        assert map_norm(conv.requires_grad_(False), torch.zeros(1, 4, *size).double()) == pytest.approx(exact, rel=1e-3)


@hypothesis.given(
    post_activation=some.booleans(),
    bottleneck=some.booleans(),
    controller=some.sampled_from(["constant", nb.asr("se"), nb.asr(None), nb.controller("constant", value=-0.7)]),
    shortcut=some.sampled_from(["A", "B"]),
    size=some.sampled_from([1e-4, 0.1, 1.0]),
    seed=some.integers(0, 100),
)
@hypothesis.settings(deadline=None, max_examples=8)
def test_no_perturbation_grows_beyond_the_bound(post_activation, bottleneck, controller, shortcut, size, seed):
    torch.manual_seed(seed)
    options = {"bottleneck": bottleneck, "post_activation": post_activation, "controller": controller}
    depth = 11 if bottleneck else 8
    if bottleneck:
        shortcut = "B"
    net = lively(nb.resnet(depth, widths=(2, 4, 4), shortcut=shortcut, family="cifar", **options), seed).double()
    images = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    found = nb.perturbation_bound(net, images, size=size, search=3)
    assert found.proved
    assert found.names == tuple(net.block_names)
    assert (found.measured > 0).all()
    assert (found.measured <= found.bound * (1 + 1e-4)).all()
    np.testing.assert_allclose(found.bound, np.cumprod(found.shortcut + found.alpha * found.lipschitz))


def test_the_bound_is_reached_where_everything_is_aligned(images):
    """Positive 1x1 convolutions of one channel on positive maps: no ReLU closes, nothing cancels."""
    net = nb.resnet(depth=8, widths=(1, 1, 1), post_activation=True).double().eval()
    net.stages[1].blocks[0].branch.conv1.stride = net.stages[2].blocks[0].branch.conv1.stride = (1, 1)
    for block in net.blocks:
        block.shortcut = nn.Identity()
        for conv in (block.branch.conv1, block.branch.conv2):
            conv.weight.data.zero_()
            conv.weight.data[0, 0, 1, 1] = 0.5
    net.stem.bn.bias.data.fill_(50.0)
    found = nb.perturbation_bound(net, images.double(), size=1e-6, search=0)
    np.testing.assert_allclose(found.measured, found.bound, rtol=1e-4)
    np.testing.assert_allclose(found.factor, 1.25, rtol=1e-4)


def test_alpha_is_the_largest_magnitude_of_the_gate(images):
    net = nb.resnet(**SMALL, controller=nb.controller("constant", value=-0.25))
    assert nb.perturbation_bound(net, images).alpha.tolist() == [0.25] * 6
    live = nb.perturbation_bound(lively(nb.resnet(**SMALL, controller="se")), images)
    assert (live.alpha < 1).all()
    assert not live.proved
    assert "not proved: the step size of stages.0.blocks.0" in str(live)


def test_a_smaller_step_lowers_the_bound(images):
    net = lively(nb.resnet(**SMALL))
    bounds = [
        nb.perturbation_bound(nb.swap(net, nb.controller("constant", value=h)), images, search=0).bound[-1]
        for h in (1.0, 0.5, 0.25)
    ]
    assert bounds[0] > bounds[1] > bounds[2] > 1


@pytest.mark.parametrize(
    "make", [foreign.VisionResNet, lambda: foreign.VisionResNet(foreign.VisionBottleneck), foreign.TimmResNet]
)
def test_other_peoples_networks_are_bounded_too(make, images):
    found = nb.perturbation_bound(foreign.shaken(make()), images)
    assert found.names[0] == "layer1.0"
    assert (found.measured <= found.bound).all()
    assert len(str(found).splitlines()) == 5


def test_the_search_finds_directions_that_grow_more(images):
    net = lively(nb.resnet(**SMALL))
    blind, searched = (nb.perturbation_bound(net, images, search=n).measured[-1] for n in (0, 10))
    assert searched > 1.2 * blind


def test_what_has_no_bound_is_named(images):
    with pytest.raises(ValueError, match=r"block 'blocks.0' has no known operator norm: it makes 2 residual steps"):
        nb.perturbation_bound(foreign.Transformer(), images)
    with pytest.raises(ValueError, match=r"`net` does not make one Euler step per block"):
        nb.perturbation_bound(nb.resnet(**SMALL, method="RK4"), images)
    with pytest.raises(ValueError, match=r"`size` must be positive, got 0"):
        nb.perturbation_bound(nb.resnet(**SMALL), images, size=0)

    class Interrupted(foreign.HandResNet):
        def forward(self, x):
            x = self.layer1[0](torch.relu(self.bn1(self.conv1(x))))
            return self.layer1[1](2.0 * x).mean((2, 3))

    with pytest.raises(ValueError, match=r"`net` does something else just before block 'layer1.1'"):
        nb.perturbation_bound(foreign.shaken(Interrupted()), images)


def test_a_network_in_half_precision_has_a_bound():
    net, images = lively(nb.resnet(depth=8, widths=(3, 3, 3))).eval(), torch.rand(1, 3, 8, 8)
    wanted = nb.perturbation_bound(net, images, search=0)
    found = nb.perturbation_bound(net.half(), images, search=0)
    np.testing.assert_allclose(found.factor, wanted.factor, rtol=1e-2)


def test_a_network_that_overwrites_what_its_gradient_needs_is_refused_in_words():
    class Overwriting(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 3, 3, padding=1)

        def forward(self, x):
            x += self.conv(x)
            return x

    with pytest.raises(ValueError, match=r"torch cannot differentiate it: .* modified by an inplace operation"):
        nb.perturbation_bound(nn.Sequential(Overwriting(), Overwriting()), torch.rand(1, 3, 8, 8), search=1)
