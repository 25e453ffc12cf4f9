"""Euler's error of a block, and the flow that it is compared with."""

import numpy as np
import pytest
import torch
from torch import nn

import netbridge as nb
from tests.netbridge.foreign import networks as foreign
from tests.netbridge.networks import lively


class Linear(nn.Module):
    """u + rate u, per image."""

    def __init__(self, rate):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(float(rate), dtype=torch.float64))

    def forward(self, u):
        return u + self.scale * u


@pytest.mark.parametrize("rate", [-3.0, -0.5, 0.1, 2.0])
def test_a_linear_block_has_the_error_of_the_exponential(rate):
    errors = nb.step_error(Linear(rate), torch.randn(4, 3, dtype=torch.float64))
    expected = abs(np.exp(rate) - 1 - rate) / abs(rate)
    assert errors.numpy() == pytest.approx([expected] * 4, rel=1e-5)


@pytest.mark.parametrize("rate", [-3.0, -0.5, 0.1, 2.0])
def test_the_flow_of_a_linear_block_is_the_exponential(rate):
    x = torch.randn(4, 3, dtype=torch.float64)
    assert nb.exact_flow(Linear(rate), x).numpy() == pytest.approx(np.exp(rate) * x.numpy(), rel=1e-5)


@pytest.mark.parametrize("flow", [nb.exact_flow, nb.step_error])
def test_a_flow_has_a_step_and_a_gate(flow):
    with pytest.raises(ValueError, match="`substeps` must be at least 1, got 0"):
        flow(Linear(1.0), torch.ones(1, 2), substeps=0)
    with pytest.raises(ValueError, match=r"`gate` must be .* got 'open'"):
        flow(Linear(1.0), torch.ones(1, 2), gate="open")


@pytest.mark.parametrize("rate", [-200.0, -90.0, 50.0])
def test_a_stiff_or_a_fast_block_takes_as_many_substeps_as_it_needs(rate):
    """RK4 with 32 substeps is unstable beyond -89."""
    errors = nb.step_error(Linear(rate), torch.randn(4, 3, dtype=torch.float64))
    expected = abs(np.exp(rate) - 1 - rate) / abs(rate)
    assert errors.numpy() == pytest.approx([expected] * 4, rel=0.02)


def test_only_the_states_that_need_them_take_more_substeps():
    class Own(nn.Module):
        def forward(self, u):
            return u + torch.where(u.abs() > 10.0, -150.0, -1.0) * (u - 20.0 * (u > 10.0))

    x = torch.tensor([[1.0, 2.0], [30.0, 40.0]], dtype=torch.float64)
    alone = torch.cat([nb.exact_flow(Own(), one) for one in x.split(1)])
    assert torch.equal(nb.exact_flow(Own(), x), alone)
    assert nb.exact_flow(Own(), x)[1].numpy() == pytest.approx([20.0, 20.0], rel=1e-3)


def test_what_does_not_settle_is_not_a_number():
    x = torch.ones(1, 2, dtype=torch.float64)
    assert nb.step_error(Linear(-1400.0), x).numpy() == pytest.approx([1399 / 1400], rel=1e-3)
    assert nb.step_error(Linear(-2500.0), x).isnan().all()
    assert nb.exact_flow(Linear(-2500.0), x).isnan().all()


def test_states_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="`states` must be finite"):
        nb.step_error(Linear(1.0), torch.full((1, 2), torch.nan))


def test_a_constant_branch_has_none():
    class Constant(nn.Module):
        def forward(self, u):
            return u + torch.ones_like(u)

    assert nb.step_error(Constant(), torch.randn(2, 3, dtype=torch.float64)).max() < 1e-14


def test_a_flow_that_blows_up_is_infinite():
    class Cubic(nn.Module):
        def forward(self, u):
            return u + u**3

    assert nb.step_error(Cubic(), torch.full((1, 2), 50.0)).isinf().all()


def test_a_block_of_a_network_is_left_as_it_was():
    block = lively(nb.resnet(depth=14, widths=(4, 4, 4), controller="eca")).eval().blocks[1]
    before = {name: tensor.clone() for name, tensor in block.state_dict().items()}
    x = torch.rand(3, 4, 6, 6)
    live, frozen = (nb.step_error(block, x, gate=gate) for gate in ("live", "frozen"))
    assert live.shape == frozen.shape == (3,)
    assert not torch.equal(live, frozen)
    assert all(torch.equal(before[name], tensor) for name, tensor in block.state_dict().items())


def test_a_block_that_changes_the_shape_is_no_step():
    block = foreign.shaken(foreign.HandBlock(4, 8, 2))
    with pytest.raises(ValueError, match="a block that changes the shape"):
        nb.step_error(block, torch.rand(1, 4, 4, 4))
