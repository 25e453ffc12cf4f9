"""Theorem 6.1: operator norms are those of the matrices, and no perturbation grows beyond the bound."""

import itertools
import warnings
from functools import partial

import hypothesis
import hypothesis.strategies as some
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

import netbridge as nb
from netbridge.spectrum.chain import convolution_of, layer_of_module
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


class Residual(nn.Module):
    """x + body(x); a function in the place of a layer is called as it is."""

    def __init__(self, *layers):
        super().__init__()
        self.layers, self.calls = nn.ModuleList(one for one in layers if isinstance(one, nn.Module)), layers

    def forward(self, x):
        y, modules = x, iter(self.layers)
        for one in self.calls:
            y = next(modules)(y) if isinstance(one, nn.Module) else one(y)
        return x + y


def conv(size=3, **options):
    return nn.Conv2d(4, 4, size, **({"padding": size // 2} | options))


def quietly(wrap):
    """The older functions of torch warn that they are deprecated."""

    def made(layer):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return wrap(layer)

    return made


BRANCHES = {
    "GELU": lambda: (conv(), nn.GELU(), conv()),
    "GELU by tanh": lambda: (conv(), partial(F.gelu, approximate="tanh"), conv()),
    "LeakyReLU": lambda: (conv(), nn.LeakyReLU(0.1, inplace=True), conv()),
    "a steep LeakyReLU": lambda: (conv(), partial(F.leaky_relu, negative_slope=-3.0), conv()),
    "ReLU6": lambda: (conv(), nn.ReLU6(), conv(), F.relu6),
    "other activations": lambda: (conv(), nn.SiLU(), conv(), torch.tanh, conv(), nn.ELU(1.5), conv(), nn.PReLU(4)),
    "max-pool": lambda: (conv(), nn.MaxPool2d(3, 1, 1), conv()),
    "max-pool by function": lambda: (conv(), partial(F.max_pool2d, kernel_size=3, stride=1, padding=1), nn.Identity()),
    "average": lambda: (conv(), nn.AvgPool2d(3, 1, 1), conv()),
    "dropout": lambda: (conv(), nn.Dropout(0.5), nn.ReLU(), partial(F.dropout, training=False), nn.AlphaDropout()),
    "circular": lambda: (conv(padding_mode="circular"), nn.ReLU(), conv(5, padding_mode="circular")),
    "reflect": lambda: (conv(padding_mode="reflect"), nn.BatchNorm2d(4), nn.ReLU(), conv(5, padding_mode="reflect")),
    "replicate": lambda: (conv(padding_mode="replicate"), nn.ReLU(), conv(5, padding_mode="replicate")),
    "uneven": lambda: (conv(2, padding="same", dilation=3), nn.ReLU(), conv()),
    "a padding of its own": lambda: (nn.ReflectionPad2d(1), conv(padding=0), partial(F.pad, pad=(1, -1, -2, 2))),
    "weight_norm": lambda: (parametrizations.weight_norm(conv()), nn.ReLU(), conv()),
    "spectral_norm": lambda: (parametrizations.spectral_norm(conv()), nn.ReLU(), conv()),
    "the older weight_norm": lambda: (quietly(nn.utils.weight_norm)(conv()), nn.ReLU(), conv()),
    "the older spectral_norm": lambda: (quietly(nn.utils.spectral_norm)(conv()), nn.ReLU(), conv()),
}


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("size", [pytest.param(1e-3, marks=pytest.mark.slow), 1.0])
@pytest.mark.parametrize("case", BRANCHES)
def test_no_perturbation_grows_beyond_the_bound_of_any_layer(case, size):
    torch.manual_seed(0)
    net = foreign.shaken(lively(nn.Sequential(*(Residual(*BRANCHES[case]()) for _ in range(2))))).double().eval()
    weights = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    images = torch.randn(3, 4, 7, 6, dtype=torch.float64)
    wanted = net(images)
    found = nb.perturbation_bound(net, images, size=size, search=5)
    assert found.proved
    assert (found.measured > 1.0).all()
    assert (found.measured <= found.bound * (1 + 1e-4)).all()
    assert torch.equal(net(images), wanted)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in net.state_dict().items())


LINEAR = ["average", "circular", "reflect", "replicate", "a padding of its own", "weight_norm", "spectral_norm"]


@pytest.mark.parametrize("case", LINEAR)
def test_the_norm_of_a_linear_branch_is_that_of_its_matrix(case):
    """The first layer, which is linear, with its padding and the layer behind it where that is linear, too."""
    torch.manual_seed(0)
    layers = BRANCHES[case]()[: 2 if case == "a padding of its own" else 1]
    layers = (nn.AvgPool2d(3, 1, 1), conv()) if case == "average" else layers
    block = Residual(*layers).double().eval()
    x = torch.randn(1, 4, 6, 5, dtype=torch.float64)
    matrix = torch.autograd.functional.jacobian(lambda u: block(u) - u, x).reshape(x.numel(), x.numel())
    found = nb.perturbation_bound(nn.Sequential(block), x, blocks=["0"], search=0)
    assert found.lipschitz[0] == pytest.approx(float(torch.linalg.matrix_norm(matrix, 2)), rel=1e-4)


@pytest.mark.parametrize(
    "layer",
    [
        *(nn.GELU(), nn.GELU("tanh"), nn.SiLU(), nn.Mish(), nn.SELU(), nn.ELU(2.0), nn.ELU(0.5), nn.CELU(2.0)),
        *(nn.LeakyReLU(0.2), nn.LeakyReLU(3.0), nn.PReLU(), nn.ReLU6(), nn.Hardtanh(), nn.Hardswish(), nn.Tanh()),
        nn.Sigmoid(),
    ],
    ids=str,
)
def test_an_activation_counts_as_its_largest_slope(layer):
    """Never less, and within 1e-6 of it; where a kink has the largest slope, beside the kink."""
    kinks = torch.tensor([3.0 - 1e-9, 1e-9, -1e-9], dtype=torch.float64)
    x = torch.cat([torch.linspace(-6, 6, 2_000_001, dtype=torch.float64), kinks]).requires_grad_()
    (slopes,) = torch.autograd.grad(layer.double()(x).sum(), x)
    bound = layer_of_module(layer, torch.float64).lipschitz
    assert float(slopes.abs().max()) <= bound < float(slopes.abs().max()) + 1e-6


@pytest.mark.parametrize("settings", [(3, 1, 1), (3, 2, 1), (2, 2), (5, 2, 0, 2), ((3, 1), (2, 1), 0), (3, 2, 0, 2)])
def test_a_max_pool_counts_as_often_as_a_place_may_lie_in_a_window(settings):
    """One place that is the largest of all windows around it moves them all."""
    pool = nn.MaxPool2d(*settings)
    bound, growths = layer_of_module(pool, torch.float64).lipschitz, []
    for row, column in itertools.product(range(6, 11), repeat=2):
        x = torch.zeros(1, 1, 17, 17, dtype=torch.float64)
        x[0, 0, row, column] = 1.0
        growths.append(float(torch.linalg.vector_norm(pool(2.0 * x) - pool(x))))
    assert max(growths) == pytest.approx(bound, rel=1e-12)


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
