"""Blocks of other people taken apart: what they overwrite, draw or take beside their state gives no wrong number."""

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import netbridge as nb
from tests.netbridge.spectrum.test_block_spectrum import agrees, dense, distance

SHAPE = (1, 3, 4, 5)


class Overwriting(nn.Module):
    """A block that changes in place what it uses again, in one of several ways."""

    def __init__(self, how):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.gain = nn.Conv2d(3, 3, 3, padding=1), nn.Parameter(torch.tensor(0.5))
        self.relu, self.how = nn.ReLU(inplace=True), how

    def forward(self, x):
        return OVERWRITING[self.how][0](self, x)


def start_over(block, x):
    y = block.relu(x)
    return x + block.conv(y)


def rectify_late(block, x):
    y = block.conv(x)
    F.relu(y, inplace=True)
    return x + y


def rectify_a_view(block, x):
    y = block.conv(x)
    y.flatten(1).relu_()
    return x + y


def scale_late(block, x):
    y = block.conv(x)
    y.mul_(block.gain)
    return 0.5 * y + x


def add_to_the_state(block, x):
    y = block.conv(x)
    x.add_(y)
    return x.clone()


OVERWRITING = {  # how it is written, its branch f, what f is added to, and its step size
    "the state is rectified": (start_over, lambda b, x: b.conv(F.relu(x)), F.relu, 1.0),
    "the slope is rectified": (rectify_late, lambda b, x: F.relu(b.conv(x)), lambda x: x, 1.0),
    "a view of the slope is": (rectify_a_view, lambda b, x: F.relu(b.conv(x)), lambda x: x, 1.0),
    "the slope is scaled": (scale_late, lambda b, x: b.conv(x), lambda x: x, 0.25),
    "the state is added to": (add_to_the_state, lambda b, x: b.conv(x), lambda x: x, 1.0),
}


@pytest.mark.parametrize("how", OVERWRITING)
def test_what_is_overwritten_counts_as_it_is_then(how):
    block = Overwriting(how).double()
    _, branch, start, size = OVERWRITING[how]
    x = torch.randn(SHAPE, dtype=torch.float64)

    def whole(u):
        return start(u) + size * branch(block, u)

    agrees(nb.block_spectrum(block, x), dense(lambda u: branch(block, u), x))
    agrees(nb.block_spectrum(block, x, "increment"), dense(lambda u: size * branch(block, u), x))
    agrees(nb.block_spectrum(block, x, "block"), dense(whole, x))
    with torch.no_grad():
        slope = size * branch(block, x)
        flow = nb.exact_flow(block, x)
        wanted = (flow - x - slope).norm() / slope.norm()
    assert float(nb.step_error(block, x)) == pytest.approx(float(wanted), rel=1e-6)


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.act = nn.Conv2d(3, 3, 3, padding=1), nn.ReLU()

    def forward(self, x):
        return self.act(x + self.conv(x))


def test_a_hook_on_the_final_relu_is_a_part_of_the_block():
    block = Plain().double()
    block.act.register_forward_hook(lambda module, inputs, output: 2 * output)
    x = torch.randn(SHAPE, dtype=torch.float64)
    agrees(nb.block_spectrum(block, x, "block"), dense(block, x))
    agrees(nb.block_spectrum(block, x, "block", gate="frozen"), dense(block, x))


class Opening(nn.Module):
    """As in pre-activation networks: shortcut and branch start from the normalised and rectified state."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.norm, self.conv = nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3, 2, padding=1)
        self.shortcut = nn.Conv2d(3, 4, 1, 2)

    def forward(self, x):
        x = F.relu(self.norm(x))
        out = self.conv(torch.tanh(x))
        out += self.shortcut(x)
        return out


@pytest.mark.parametrize("part", ["residual", "increment", "block"])
def test_a_block_that_changes_the_shape_behind_a_normalisation_has_singular_values(part):
    block, x = Opening().double().eval(), torch.randn(1, 3, 4, 4, dtype=torch.float64)
    branch = {"block": block}.get(part, lambda u: block.conv(torch.tanh(F.relu(block.norm(u)))))
    wanted = np.linalg.svd(dense(branch, x), compute_uv=False)
    np.testing.assert_allclose(nb.block_spectrum(block, x, part).singular_values, wanted, atol=1e-12)


class Normalised(Plain):
    """The step starts behind a normalisation."""

    def forward(self, x):
        y = F.layer_norm(x, x.shape[1:])
        return y + torch.tanh(self.conv(y))


def test_a_branch_behind_a_normalisation_is_a_function_of_what_goes_into_the_block():
    block, x = Normalised().double(), torch.randn(SHAPE, dtype=torch.float64)
    wanted = dense(lambda u: torch.tanh(block.conv(F.layer_norm(u, u.shape[1:]))), x)
    assert distance(nb.block_spectrum(block, x).values, np.linalg.eigvals(wanted)) < 1e-6


class Drawing(Plain):
    """Draws numbers that it may not use."""

    def __init__(self, used):
        super().__init__()
        self.used = used

    def forward(self, x):
        noise = torch.rand(x.shape[0], 1, 1, 1) + random.random() + np.random.rand()  # noqa: NPY002
        return x + torch.tanh(self.conv(x)) * (noise if self.used else 1.0)


MEASURES = {
    "spectrum": lambda block, x: nb.block_spectrum(block, x),
    "extremes": lambda block, x: nb.block_spectrum(block, x, values="extremes"),
    "operator": lambda block, x: nb.block_operator(block, x).matvec(np.ones(x.numel())),
    "slices": lambda block, x: nb.slice_spectrum(block, x[..., :4]),
    "step error": nb.step_error,
    "flow": nb.exact_flow,
    "implicit": nb.implicit_flow,
    "time scales": nb.block_time_scales,
    "survey": lambda block, x: nb.block_survey(nn.Sequential(block), x, ("residual", "norms", "error")),
}


def generators():
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002


@pytest.mark.parametrize("measure", MEASURES)
def test_random_generators_stay_where_they_were(measure):
    block, x = Drawing(used=False), torch.randn(SHAPE)
    before = generators()
    MEASURES[measure](block, x)
    assert generators() == before


@pytest.mark.parametrize("measure", ["spectrum", "extremes", "slices", "step error", "flow", "time scales", "survey"])
def test_a_block_that_is_no_function_of_its_state_is_refused(measure):
    with pytest.raises(ValueError, match=r"`block` \(Drawing\) returns something else every time for one state"):
        MEASURES[measure](Drawing(used=True), torch.randn(SHAPE))


class Conditioned(Plain):
    def forward(self, x, time):
        return x + time * self.conv(x)


class Held(Plain):
    """Keeps a layer where no cast reaches it."""

    def __init__(self):
        super().__init__()
        self.layers = [nn.Conv2d(3, 3, 1)]

    def forward(self, x):
        return x + self.layers[0](self.conv(x))


def test_a_block_that_cannot_be_run_on_its_state_alone_is_told_so():
    x = torch.randn(SHAPE)
    for measure in (nb.block_spectrum, nb.step_error, nb.slice_spectrum):
        state = x[..., :4] if measure is nb.slice_spectrum else x
        with pytest.raises(ValueError, match=r"`block` \(Conditioned\) could not be run .* alone: .* argument: 'time'"):
            measure(Conditioned(), state)
    with pytest.raises(ValueError, match=r"`block` \(Held\) could not be run .* in torch.float64 alone: .* bias type"):
        nb.block_spectrum(Held(), x)
    assert nb.block_spectrum(Held(), x, dtype=torch.float32).n == x.numel()


class Swish(torch.autograd.Function):
    """As EfficientNets have it, to save memory; torch.func does not take it."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, gradient):
        raise NotImplementedError


class Unusual(Plain):
    def __init__(self, how):
        super().__init__()
        self.how = how

    def forward(self, x):
        if self.how == "a function of its own":
            return torch.tanh(x + self.conv(Swish.apply(x)))
        total = torch.empty_like(x)
        torch.add(x, self.conv(x), out=total)
        return total


@pytest.mark.parametrize("how", ["a function of its own", "out="])
def test_what_torch_cannot_differentiate_is_told(how):
    with pytest.raises(ValueError, match=r"`block` is written so that torch cannot differentiate it: .*Replace this"):
        nb.block_spectrum(Unusual(how), torch.randn(SHAPE), "block")


class Tokens(nn.Module):
    """Tokens that are laid out as maps for a convolution within, as in PVT and CvT."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def branch(self, x):
        maps = x.transpose(1, 2).unflatten(2, (3, 2))
        return torch.tanh(self.conv(maps)).flatten(2).transpose(1, 2)

    def forward(self, x):
        batch, tokens, features = x.shape
        return x + self.branch(x).view(batch, tokens, features)


def test_tokens_are_no_maps_even_where_they_are_convolved():
    block, x = Tokens().double(), torch.randn(1, 6, 4, dtype=torch.float64)
    agrees(nb.block_spectrum(block, x), dense(block.branch, x))
    scales = nb.block_time_scales(block, torch.cat([x, 2 * x]), dtype=torch.float64)
    with torch.no_grad():
        assert scales["sai"][0] == pytest.approx(float(block.branch(x).norm() / x.norm()), rel=1e-12)
    assert scales["rho"][0] == pytest.approx(abs(np.linalg.eigvals(dense(block.branch, x))).max(), rel=1e-6)
