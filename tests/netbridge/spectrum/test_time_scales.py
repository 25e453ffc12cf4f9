"""Time scales of blocks and linearly implicit steps: against dense matrices, and on blocks whose answer is known."""

import sys

import numpy as np
import pytest
import torch
from torch import nn

import netbridge as nb
import odelab as ol


class Decay(nn.Module):
    """x - rate x: a residual block whose differential equation decays at one rate."""

    def __init__(self, rate: float):
        super().__init__()
        self.branch = nn.Conv2d(2, 2, 1, bias=False)
        with torch.no_grad():
            self.branch.weight.copy_(-rate * torch.eye(2)[:, :, None, None])

    def forward(self, x):
        return x + self.branch(x)


class Transport(nn.Module):
    """x + 2 u_y - 0.3 u of one channel, whose modes turn, and diffusion, whose modes decay faster, of another."""

    def __init__(self):
        super().__init__()
        self.branch = nn.Conv2d(2, 2, 3, padding=1, bias=False, groups=2)
        with torch.no_grad():
            self.branch.weight.zero_()
            self.branch.weight[0, 0, 1] = torch.tensor([-1.0, -0.3, 1.0])
            self.branch.weight[1, 0] = 0.375 * torch.tensor([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])

    def forward(self, x):
        return x + self.branch(x)


@pytest.fixture(scope="module")
def block():
    torch.manual_seed(0)
    return nb.resnet(depth=8, widths=(3, 3, 3)).eval().blocks[0].double()


STATES = torch.rand(2, 3, 6, 6, generator=torch.Generator().manual_seed(1)).double()


def test_scales_are_those_of_the_dense_jacobian(block):
    found = nb.block_time_scales(block, STATES, dtype=torch.float64, values="full")
    for row, state in zip(found, STATES, strict=True):
        J = nb.block_operator(block, state, part="increment").dense()
        slope = (block.branch(state[None]))[0].detach().numpy().ravel()
        values = np.linalg.eigvals(J)
        assert row["rho_ng"] == pytest.approx(ol.nongrowing_radius(values))
        assert row["rho"] == pytest.approx(np.abs(values).max())
        assert row["rate"] == pytest.approx(np.linalg.norm(J @ slope) / np.linalg.norm(slope))
        assert row["sai"] == pytest.approx(np.linalg.norm(slope) / float(state.norm()))
        assert row["ratio"] == pytest.approx(row["rho_ng"] / row["sai"])


def residual_blocks():
    """Blocks of 1,024 to 4,096 units, and one whose fastest modes decay and whose limiting ones turn."""
    torch.manual_seed(0)
    net = nb.resnet(14, widths=(4, 8, 16)).eval()
    states = nb.block_states(net, torch.randn(1, 3, 32, 32))
    for name in ("stages.0.blocks.0", "stages.1.blocks.1", "stages.2.blocks.1"):
        yield net.get_submodule(name), states[name]
    yield Transport(), torch.rand(1, 2, 24, 24)


@pytest.mark.parametrize("place", range(4))
def test_scales_from_the_edge_of_a_spectrum_are_those_of_all_of_it(place):
    block, state = [*residual_blocks()][place]
    full, edge = (nb.block_time_scales(block, state, values=values)[0] for values in ("full", "extremes"))
    names = ("rho", "rho_ng", "ratio", "moving_ratio", "stable_step")
    assert [edge[name] for name in names] == pytest.approx([full[name] for name in names], rel=0.02)
    assert np.isnan(edge["growth"]) or edge["growth"] == pytest.approx(full["growth"], rel=0.02)  # NaN beside 3: -0.01


def test_what_modes_that_were_not_found_might_change_is_not_a_number(monkeypatch):
    monkeypatch.setattr(sys.modules["odelab.stiffness.arnoldi"], "SIZES", (8, 12))
    (row,) = nb.block_time_scales(Transport(), torch.rand(1, 2, 24, 24), values="extremes")
    assert np.isnan(row["stable_step"])


def test_a_block_that_decays_too_fast_for_its_step():
    (row,) = nb.block_time_scales(Decay(5.0), torch.rand(1, 2, 4, 4), values="full")
    assert [row[name] for name in ("sai", "rate", "rho_ng", "stable_step")] == pytest.approx(
        [5.0, 5.0, 5.0, 0.4], rel=0.02
    )
    assert row["ratio"] == pytest.approx(1.0)


def test_a_block_that_changes_the_shape_has_no_scales():
    net = nb.resnet(depth=8, widths=(2, 4, 4)).eval()
    with pytest.raises(ValueError, match="changes the shape"):
        nb.block_time_scales(net.blocks[1], torch.rand(1, 2, 8, 8))


def test_one_implicit_step_solves_the_dense_system(block):
    """u + (I - J)^-1 f, with J the Jacobian of the branch."""
    state = STATES[:1]
    J = nb.block_operator(block, state[0], part="increment").dense()
    slope = block.branch(state).detach().numpy().ravel()
    wanted = state.numpy().ravel() + np.linalg.solve(np.eye(len(J)) - J, slope)
    np.testing.assert_allclose(nb.implicit_flow(block, state).numpy().ravel(), wanted, atol=1e-3)


def test_implicit_steps_of_a_linear_block_are_powers_of_the_stability_function():
    state = torch.rand(1, 2, 4, 4).double()
    for steps in (1, 4):
        found = nb.implicit_flow(Decay(30.0).double(), state, steps)
        np.testing.assert_allclose(found, state / (1.0 + 30.0 / steps) ** steps, rtol=1e-4)


def test_a_stiff_block_needs_more_explicit_steps_and_an_easy_one_does_not():
    state = torch.rand(1, 2, 4, 4).double()
    stiff = nb.steps_at_equal_error(Decay(60.0).double(), state, 0.01, (1, 2, 4, 8, 16, 32, 64))
    easy = nb.steps_at_equal_error(Decay(0.5).double(), state, 0.05)
    assert stiff[0, 0] / stiff[0, 1] > 3.0
    assert easy[0, 0] / easy[0, 1] == pytest.approx(1.0, abs=0.5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda block: nb.implicit_flow(block, STATES, 0), "`steps` must be at least 1"),
        (lambda block: nb.steps_at_equal_error(block, STATES, 0.0), "`eps` must be positive"),
        (lambda block: nb.steps_at_equal_error(block, STATES, 0.1, (4, 2)), "`ladder` must be increasing"),
    ],
)
def test_what_is_refused(block, call, words):
    with pytest.raises(ValueError, match=words):
        call(block)
