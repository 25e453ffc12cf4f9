"""Gates: their share that is constant, their living units, and the constants that are put in their place."""

import hypothesis
import hypothesis.extra.numpy as arrays
import hypothesis.strategies as some
import numpy as np
import pytest
import torch
from torch import nn

import netbridge as nb
import odelab
from netbridge.tracing.gates import constant_share, with_constant_gates, with_fresh_statistics
from tests.netbridge import networks
from tests.netbridge.foreign import networks as foreign

values = some.floats(-3.0, 3.0, width=32)
tables = arrays.arrays(np.float64, arrays.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=8), elements=values)


def net_and_images(controller, seed=0, **options):
    torch.manual_seed(seed)
    net = networks.lively(nb.resnet(8, widths=(8, 8, 16), controller=controller, **options)).eval()
    return net, torch.randn(6, 3, 16, 16)


def test_the_share_by_hand():
    """Means 1, 3 (variance 1); variances over three images 2/3 and 8/3 (mean 5/3): 1 / (1 + 5/3) = 3/8."""
    assert constant_share(torch.tensor([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]])) == pytest.approx(3 / 8)


@hypothesis.example(table=np.array([[8.6e-36, 0.0], [0.0, 0.0]]), seed=0)
@hypothesis.given(table=tables, seed=some.integers(0, 100))
def test_the_share_is_one_of_no_image_and_does_not_know_their_order(table, seed):
    table = torch.from_numpy(table)
    share = constant_share(table)
    if np.isnan(share):
        assert float(table.max() - table.min()) < 1e-6
        return
    assert 0.0 <= share <= 1.0
    shuffled = table[torch.randperm(len(table), generator=torch.Generator().manual_seed(seed))]
    assert constant_share(shuffled) == pytest.approx(share, abs=1e-9)
    if float(table.max() - table.min()) > 1e-6 * (1.0 + float(table.abs().max())):  # else a shift rounds all of it away
        assert constant_share(3.0 * table - 1.0) == pytest.approx(share, abs=1e-6)  # of scale and shift neither
    constant = table[:1].expand(5, -1)
    if float(constant.var()) > 0:
        assert constant_share(constant) == 1.0


def test_independent_gates_have_a_share_of_next_to_nothing():
    """Of n independent numbers a channel, the share is 1/n in expectation."""
    table = torch.randn(200, 5000, generator=torch.Generator().manual_seed(0))
    assert constant_share(table) == pytest.approx(1 / 200, rel=0.1)


@pytest.mark.parametrize("controller", ["se(reduction=4)", "eca", "srm", "ie", nb.asr("se"), "constant(0.5)"])
def test_gates_are_what_the_controllers_return(controller):
    net, images = net_and_images(controller)
    found = nb.gates(net, images, batch=4)
    states = nb.block_states(net, images)
    with torch.no_grad():
        for one, name, block in zip(found, net.block_names, net.blocks, strict=True):
            slope = block.branch(states[name])
            h = torch.as_tensor(block.controller(states[name], slope))
            h = h.expand_as(slope).mean((2, 3)) if h.ndim == 4 else h.expand(slope.shape[:2])
            assert torch.allclose(one.h.expand_as(h), h, atol=1e-6)
            assert torch.allclose(one.pooled, slope.mean((2, 3)), atol=1e-5)


def test_living_units_are_those_above_zero_for_some_image():
    net, images = net_and_images("se(reduction=4)")
    head = net.blocks[0].controller.excite
    with torch.no_grad():
        head[0].bias[:] = torch.tensor([-100.0, 100.0])
    first, last = nb.gates(net, images)[:: len(net.blocks) - 1]
    assert (first.alive, first.hidden) == (1, 2)
    assert last.hidden == 4


def test_a_dead_head_is_the_sigmoid_of_its_bias():
    net, images = net_and_images(nb.asr("se(reduction=4)"))
    for block in net.blocks:
        head = block.controller.heads[0].excite
        with torch.no_grad():
            head[0].bias.fill_(-100.0)
    for one, block in zip(nb.gates(net, images), net.blocks, strict=True):
        assert (one.alive, len(one.h)) == (0, 1)
        assert torch.allclose(one.h[0], torch.sigmoid(block.controller.heads[0].excite[2].bias), atol=1e-7)


@pytest.mark.parametrize("controller", [nb.asr("se"), "constant(0.5)", "bias"])
def test_a_constant_replaced_by_its_mean_changes_nothing(controller):
    net, images = net_and_images(controller)
    means = [one.h.mean(0) for one in nb.gates(net, images)]
    constant = with_constant_gates(net, means)
    assert networks.relative_error(constant(images), net(images)) < networks.rounding_of(net, images)


def test_a_live_gate_replaced_by_its_mean_changes_something():
    net, images = net_and_images("srm")
    constant = with_constant_gates(net, [one.h.mean(0) for one in nb.gates(net, images)])
    assert networks.relative_error(constant(images), net(images)) > 1e-3
    for one in nb.gates(constant, images):
        assert len(one.h) == 1


def test_looking_at_gates_leaves_the_network_alone():
    net, images = net_and_images("srm")
    net.train()
    before = {name: x.clone() for name, x in net.state_dict().items()}
    nb.gates(net, images)
    with_fresh_statistics(net, images)
    assert net.training
    assert all(torch.equal(x, before[name]) for name, x in net.state_dict().items())


def test_fresh_statistics_are_averages_over_whole_batches():
    torch.manual_seed(0)
    norm, images = nn.Sequential(nn.BatchNorm2d(3)), torch.randn(11, 3, 4, 4) + 2.0
    found = with_fresh_statistics(norm, images, batch=5)[0]
    parts = [images[:5], images[5:10]]
    wanted = torch.stack([part.mean((0, 2, 3)) for part in parts]).mean(0)
    assert torch.allclose(found.running_mean, wanted, atol=1e-6)
    variance = torch.stack([part.transpose(0, 1).flatten(1).var(1) for part in parts]).mean(0)
    assert torch.allclose(found.running_var, variance, atol=1e-6)
    assert found.momentum == norm[0].momentum == 0.1


class Scaled(nn.Module):
    """x + factor f(x), tokens or maps, with a factor of every kind."""

    def __init__(self, factor, tokens=False, width=6):
        super().__init__()
        self.body = nn.Linear(width, width) if tokens else nn.Conv2d(width, width, 3, padding=1)
        self.squeeze, self.axis, self.embed_dim = nn.Linear(width, width), -1 if tokens else 1, width
        self.scale = nn.Parameter(torch.rand(width) if tokens else torch.rand(width, 1, 1))
        self.factor = factor

    def h(self, x, f):
        pooled = self.squeeze(f.mean(1) if self.axis == -1 else f.mean((2, 3)))
        gate = torch.sigmoid(pooled[:, None] if self.axis == -1 else pooled[:, :, None, None])
        return {"number": 0.3, "scale": self.scale, "gate": gate, "both": self.scale * gate, "none": 1.0}[self.factor]

    def forward(self, x):
        f = self.body(x).tanh()
        return x + f if self.factor == "none" else x + self.h(x, f) * f


@pytest.mark.parametrize("tokens", [False, True])
def test_gates_of_anybodys_network_are_its_factors(tokens):
    torch.manual_seed(0)
    kinds = ["none", "number", "scale", "gate", "both"]
    net = nn.Sequential(*(Scaled(kind, tokens) for kind in kinds)).double().train()
    x = torch.randn(*((5, 6, 6) if tokens else (5, 6, 4, 6)), dtype=torch.float64)
    found = nb.gates(net, x, batch=3)
    assert net.training
    assert [one.name for one in found] == list(nb.trace(net, x).names)
    with torch.no_grad():
        for one, block in zip(found, net, strict=True):
            f = block.body(x).tanh()
            h = torch.as_tensor(block.h(x, f), dtype=x.dtype)
            rest = 1 if tokens else (2, 3)
            torch.testing.assert_close(one.h.expand(5, 6), h.expand_as(f).mean(rest))
            torch.testing.assert_close(one.pooled, f.mean(rest))
            assert len(one.h) == (5 if block.factor in ("gate", "both") else 1)
            assert one.alive is one.hidden is None
            x = block(x)


class Product(nn.Module):
    """x + ls * tanh(x W), in which no layer says where the channels are."""

    def __init__(self):
        super().__init__()
        self.weight, self.scale = nn.Parameter(torch.randn(6, 6)), nn.Parameter(torch.rand(6))

    def forward(self, x):
        return x + self.scale * (x @ self.weight).tanh()


def test_where_no_layer_says_the_channels_of_tokens_are_last():
    net, tokens = Product(), torch.randn(4, 6, 6)
    (one,) = nb.gates(net, tokens)
    torch.testing.assert_close(one.h[0], net.scale.detach())
    torch.testing.assert_close(one.pooled, (tokens @ net.weight).tanh().mean(1).detach())


def test_an_inserted_step_size_is_a_gate():
    torch.manual_seed(0)
    net = foreign.VisionResNet().eval()
    images = torch.randn(4, 3, 32, 32)
    gated = networks.lively(nb.insert(net, "eca", images)).eval()
    seen = []
    hooks = [
        module.controller.register_forward_hook(lambda _, args, h: seen.append(h[:, :, 0, 0]))
        for module in gated.modules()
        if isinstance(module, nb.Gated)
    ]
    with torch.no_grad():
        gated(images)
    for hook in hooks:
        hook.remove()
    for one, h in zip(nb.gates(gated, images), seen, strict=True):
        torch.testing.assert_close(one.h, h)


def test_steps_within_a_layer_have_gates_of_their_own():
    net, images = net_and_images("se(reduction=4)", depth_factor=2)
    found = nb.gates(net, images)
    assert [one.name for one in found] == list(nb.trace(net, images).names)
    assert [one.hidden for one in found[:4]] == [2, 2, 2, 4]


def test_what_has_no_steps_has_no_gates():
    with pytest.raises(ValueError, match="no residual blocks"):
        nb.gates(nn.Sequential(nn.Linear(3, 3)), torch.randn(2, 3))
    with pytest.raises(TypeError, match="`net` must be a torch module, got builtin_function_or_method"):
        nb.gates(len, torch.randn(2, 3))


class TokensFirst(nn.Module):
    """x + h f(x) with states (T, N, C) and a step size per sample and channel, written (N, C) or (1, N, C)."""

    def __init__(self, short):
        super().__init__()
        torch.manual_seed(0)
        self.branch, self.gate, self.short = nn.Linear(4, 4), nn.Linear(4, 4), short

    def forward(self, images):
        x = images.transpose(0, 1)
        h = torch.sigmoid(self.gate(x.mean(0)))
        return (x + (h if self.short else h[None]) * torch.tanh(self.branch(x))).mean(0)


def test_a_step_size_per_sample_is_one_also_without_the_axes_before_it():
    """Samples that are second in a state are first in a step size of fewer axes, which is no constant for that."""
    net, images = TokensFirst(short=True), torch.randn(5, 7, 4)
    h = torch.sigmoid(net.gate(images.mean(1))).detach()
    for one in (net, TokensFirst(short=False)):
        assert nb.trace(one, images).step_sizes[:, 0] == pytest.approx(h.mean(1).numpy())
        torch.testing.assert_close(nb.gates(one, images)[0].h, h)


def test_gates_of_half_precision_have_a_file_and_a_table(tmp_path):
    net, images = TokensFirst(short=False).bfloat16(), torch.randn(5, 7, 4).bfloat16()
    found = nb.gates(net, images)[0]
    assert torch.equal(odelab.load(odelab.save(found, tmp_path / "gates")).h, found.h)
    assert found.table()["mean"].dtype == torch.float32
