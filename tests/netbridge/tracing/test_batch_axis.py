"""`batch_axis` means the same wherever it is: the network that has its samples along the second axis is its twin."""

import functools
import inspect

import numpy as np
import pytest
import torch
from torch import nn

import netbridge as nb

WIDTH, TOKENS, IMAGES = 6, 7, 3


class Perceptron(nn.Module):
    """x + h f(x), token by token."""

    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))

    def forward(self, x):
        return x + 0.5 * self.f(x)


class Attention(nn.Module):
    """x + h f(x), h a number for each channel, f mixing the tokens along `axis`."""

    def __init__(self, axis):
        super().__init__()
        self.axis, self.f, self.gate = axis, nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        y = torch.tanh(self.f(x)).transpose(self.axis, 1)
        y = ((y @ y.mT).softmax(-1) @ y).transpose(self.axis, 1)
        return x + torch.sigmoid(self.gate(x.mean(self.axis, keepdim=True))) * y


def twins(block):
    """A network with the samples in front, the same one with the tokens in front, and images of the first."""
    torch.manual_seed(0)
    pair = [nn.Sequential(*[block(axis) for _ in range(3)]).double() for axis in (1, 0)]
    pair[1].load_state_dict(pair[0].state_dict())
    return *pair, torch.randn(IMAGES, TOKENS, WIDTH, dtype=torch.float64)


def term(net, images, **options):
    """The gradients that a term of stiffness alone gives."""
    net.train()
    with nb.stiffness_term(net, 1.0, **options):
        (0.0 * net(images)).sum().backward()
    return [p.grad for p in net.parameters() if p.grad is not None]


def limits(net, images, **options):
    """What `diagnose` says of every block."""
    found = nb.diagnose(net, images[:, :1] if options else images[:1], blocks=["1"], **options)
    assert not found.not_measured
    return [list(column) for name, column in found.table().items() if name != "block"]


def rows(net, images, **options):
    two = images[:, :2] if options else images[:2]
    table = nb.block_survey(net, two, "increment", dtype=torch.float64, **options)
    return [table[name] for name in table.dtype.names if name != "block" and table[name].dtype.kind != "U"]


CALLS = {
    "diagnose": limits,
    "block_survey": rows,
    "trace": lambda net, images, **o: [nb.trace(net, images, **o).nsi],
    "explain": lambda net, images, **o: [len(nb.explain(net, images, **o).steps)],
    "Monitor": lambda net, images, **o: list(nb.Monitor(net, images, **o).step().numbers().values()),
    "gates": lambda net, images, **o: [part for g in nb.gates(net, images, batch=2, **o) for part in (g.h, g.pooled)],
    "nsi_with_gradients": lambda net, images, **o: [nb.nsi_with_gradients(net, images, **o)[1]],
    "stiffness_term": term,
    "state_grams": lambda net, images, **o: list(nb.state_grams(net, images, **o).values()),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_call_reads_the_samples_along_the_axis_that_is_named(call):
    net, other, images = twins(Attention)
    wanted, found = CALLS[call](net, images), CALLS[call](other, images.transpose(0, 1), batch_axis=1)
    assert len(found) == len(wanted) > 0
    for one, another in zip(found, wanted, strict=True):
        np.testing.assert_allclose(torch.as_tensor(one).detach(), torch.as_tensor(another).detach(), rtol=1e-9)


def test_every_public_call_that_measures_at_images_takes_it():
    changing = {"fold", "insert", "places"}  # what they put into a network has the samples in front
    takes = {
        name: inspect.signature(one).parameters for name in dir(nb) if inspect.isfunction(one := getattr(nb, name))
    }
    without = {name for name, names in takes.items() if "images" in names and "batch_axis" not in names}
    assert without == {*changing, "attention_values"}  # of our own networks


@pytest.mark.parametrize("call", [call for call in CALLS if call != "explain"])
def test_an_axis_that_is_not_there_is_refused_by_all(call):
    _, other, images = twins(Attention)
    with pytest.raises(ValueError, match="`batch_axis` = 9: no tensor of a batch has so many axes"):
        CALLS[call](other, images, batch_axis=9)


def test_states_of_blocks_are_as_the_blocks_are_given_them():
    net, other, images = twins(Attention)
    wanted, found = nb.block_states(net, images), nb.block_states(other, images.transpose(0, 1), batch_axis=1)
    for name, state in wanted.items():
        torch.testing.assert_close(found[name].transpose(0, 1), state)


def test_states_along_another_axis_are_named_where_nobody_did():
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, 2, 12), 2, enable_nested_tensor=False).eval()
    with pytest.raises(ValueError, match=r"the samples stand along axis 1.*batch_axis=1"):
        nb.block_states(net, torch.randn(TOKENS, IMAGES, WIDTH))


def test_a_bound_is_that_of_the_twin_and_blocks_that_mix_rows_have_none():
    net, other, images = twins(lambda axis: Perceptron())
    bound = functools.partial(nb.perturbation_bound, search=2)
    wanted, found = bound(net, images), bound(other, images.transpose(0, 1), batch_axis=1)
    np.testing.assert_allclose(found.bound, wanted.bound, rtol=1e-9)
    np.testing.assert_allclose(found.measured, wanted.measured, rtol=1e-9)
    _, mixing, images = twins(Attention)
    with pytest.raises(ValueError, match="block '0' mixes rows"):
        bound(mixing, images.transpose(0, 1), batch_axis=1)
