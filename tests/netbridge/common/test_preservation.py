"""What a network caches, counts and breaks during a trace is put back, bit for bit."""

import random

import numpy as np
import pytest
import torch
from torch import nn

import netbridge as nb
from tests.netbridge.foreign.residual import WIDTH, Base, literal, stack


@pytest.fixture
def x():
    return torch.randn(6, WIDTH)


class Cached(Base):
    def __init__(self):
        super().__init__()
        self.g = nn.Parameter(torch.full((WIDTH,), 0.1))
        self.cache = None

    def forward(self, x):
        if self.cache is None:
            self.cache = self.g.exp()
        return x + self.branch(x) * self.cache


class ByLength(Base):
    def __init__(self):
        super().__init__()
        self.tables = {}
        self.feats = []
        self.names = {"last": {"shape": [0]}}

    def forward(self, x):
        if len(x) not in self.tables:
            self.tables[len(x)] = torch.ones(WIDTH)
        y = self.branch(x)
        self.feats.append(y)
        self.names["last"]["shape"][0] = tuple(x.shape)
        return x + y


class Memory:
    def __init__(self):
        self.key, self.history = None, []


class Writing(Base):
    """Writes into buffers, plain tensors, an object and its own weights."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.table, self.memory, self.calls = torch.zeros(3), Memory(), 0
        self.late = {}

    def forward(self, x):
        self.calls += 1
        self.count += 1
        self.table[0] = float(self.count)
        self.memory.key = x
        self.memory.history.append(len(x))
        self.a.weight.data.mul_(1.0)
        self.a.bias.data.add_(0.5)
        self.register_buffer("extra", x[:1].clone())
        self.hook = self.a.register_forward_hook(lambda *_: None)
        return x + self.branch(x)


class Drawing(Base):
    def forward(self, x):
        random.random(), np.random.rand()  # noqa: NPY002
        return x + (self.branch(x) + 0.0 * torch.rand(()))


class Training(Base):
    """Normalises by the batch, whatever mode it is set to."""

    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(WIDTH)

    def forward(self, x):
        self.bn.train()
        return x + self.bn(self.branch(x))


class Failing(Writing):
    def forward(self, x):
        super().forward(x)
        if self.calls > self.limit:
            raise RuntimeError("in the middle of a pass")
        return x + self.branch(x)

    limit = 1


def everything(net):
    """All that a network holds, by value, with the identity of what has one."""

    def value(thing, depth=0):
        if isinstance(thing, torch.Tensor):
            return (id(thing), thing.detach().clone().numpy().tobytes(), thing.requires_grad)
        if isinstance(thing, dict):
            return [(key, value(part, depth)) for key, part in thing.items()]
        if isinstance(thing, list | tuple):
            return [type(thing).__name__, *(value(part, depth) for part in thing)]
        if isinstance(thing, Memory):
            return value(vars(thing))
        return (id(thing), thing if isinstance(thing, int | float | str) else None)

    return [value(vars(module)) for module in net.modules()]


def generators():
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002


@pytest.mark.parametrize("measure", ["trace", "keep", "increment", "states"])
@pytest.mark.parametrize("block", [Cached, ByLength, Writing, Drawing, Training, Failing])
def test_a_network_is_bit_for_bit_what_it_was(block, measure, x):
    net = stack(block)
    net[1].eval()
    handle = net[0].register_forward_hook(lambda module, args, out: out)
    net.feats = handle
    before, drawn = everything(net), generators()
    calls = {
        "trace": lambda: nb.trace(net, [x, x[:4]]),
        "keep": lambda: nb.trace(net, x, keep=True),
        "increment": lambda: nb.trace(net, x, of="increment", blocks=block, tune=True),
        "states": lambda: nb.block_states(net, x),
    }
    if block is Failing:
        with pytest.raises(RuntimeError, match="in the middle"):
            calls[measure]()
    else:
        calls[measure]()
    assert everything(net) == before
    assert generators() == drawn
    if block is not Failing:
        assert type(net(x)) is torch.Tensor


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_network_that_fails_in_the_measuring_pass_is_put_back_too(limit, x, monkeypatch):
    monkeypatch.setattr(Failing, "limit", limit)
    net = stack(Failing)
    before, drawn = everything(net), generators()
    with pytest.raises(RuntimeError, match="in the middle"):
        nb.trace(net, [x] * 4)
    assert everything(net) == before
    assert generators() == drawn


def test_what_is_cached_during_a_pass_gives_right_numbers(x):
    net = stack(Cached)
    np.testing.assert_allclose(nb.trace(net, x).nsi, literal(net, x), rtol=1e-6)
    np.testing.assert_allclose(nb.trace(net, x).step_sizes, np.exp(0.1), rtol=1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_networks_that_hide_what_they_do_are_refused_in_words(x):
    net = stack(Base).eval()
    with pytest.raises(ValueError, match="compiled by TorchScript"):
        nb.trace(torch.jit.trace(net, x), x)
    with pytest.raises(ValueError, match="are on the meta device"):
        nb.trace(stack(Base).to("meta"), x)
    with pytest.raises(ValueError, match="lazy layers"):
        nb.trace(nn.Sequential(nn.LazyLinear(3)), x)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch's own, on importing and running its compiler
def test_compiled_inner_blocks_are_traced_uncompiled(x):
    net = stack(Base)
    wanted = nb.trace(net, x)
    net[0].compile(backend="eager")
    net[1] = torch.compile(net[1], backend="eager")
    net(x)
    compiled = net[0]._compiled_call_impl
    record = nb.trace(net, x)
    np.testing.assert_allclose(record.nsi, wanted.nsi, rtol=1e-6)
    assert net[0]._compiled_call_impl is compiled
    assert len(record.names) == 3
