"""Solvers of torchdiffeq inside a network: a row for each step that they take, whatever the method, or a sentence."""

import sys
import warnings
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint, odeint_event

import netbridge as nb

FIXED = ["euler", "midpoint", "heun2", "heun3", "rk4", "explicit_adams", "implicit_adams"]
ADAPTIVE = ["dopri5", "dopri8", "bosh3", "fehlberg2", "adaptive_heun"]
SOLVES = {"odeint": odeint, "odeint_adjoint": odeint_adjoint}
GRID = torch.linspace(0.0, 1.0, 6, dtype=torch.float64)
EPS = np.finfo(np.float64).eps


class Slope(nn.Module):
    """f(t, y) of 5 numbers, with a residual sum in it that is no step."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 5)

    def forward(self, t, y):
        return 0.5 * (y + torch.tanh(self.layer(y))) * torch.cos(t)


class Flow(nn.Module):
    """The solution at the end of the grid."""

    def __init__(self, method, solve=odeint, grid=GRID, **options):
        super().__init__()
        loose = {"rtol": 1e-3, "atol": 1e-3} if method == "implicit_adams" else {}  # when its iterations shall end
        self.slope, self.solve, self.grid, self.options = Slope(), solve, grid, {"method": method, **loose, **options}

    def states(self, x):
        return self.solve(self.slope, x, self.grid, **self.options)

    def forward(self, x):
        return self.states(x)[-1]


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 5)

    def forward(self, x):
        return x + torch.tanh(self.layer(x))


def network(*modules):
    """The modules with weights that are the same every time."""
    net = nn.Sequential(*modules).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / 3)
    return net


@pytest.fixture
def x():
    return torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def quietly(net, x, **options):
    """A trace without the warning of adaptive steps."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the steps in")
        return nb.trace(net, x, **options)


def indices_of(states, grid=GRID):
    """||(y' - y) / h|| / ||y|| of every step between these states, (N, T)."""
    states, sizes = states.detach().flatten(2).numpy(), np.diff(grid.numpy())
    slopes = (states[1:] - states[:-1]) / sizes[:, None, None]
    return (np.linalg.norm(slopes, axis=2) / np.linalg.norm(states[:-1], axis=2)).T


@pytest.mark.parametrize("solve", SOLVES)
@pytest.mark.parametrize("method", FIXED)
def test_every_step_of_a_grid_is_a_row_with_the_slope_and_the_size_of_the_method(method, solve, x):
    net = network(nn.Linear(5, 5), Flow(method, SOLVES[solve]), nn.Linear(5, 2))
    record = nb.trace(net, x)
    assert record.names == tuple(f"1 ({k})" for k in range(1, 6))
    assert record.stage.tolist() == [0] * 5
    assert record.first.tolist() == [True] + 4 * [False]
    np.testing.assert_allclose(record.nsi, indices_of(net[1].states(net[0](x))), rtol=16 * EPS)
    np.testing.assert_allclose(record.step_sizes, 0.2, rtol=4 * EPS)


@pytest.mark.parametrize("solve", SOLVES)
@pytest.mark.parametrize("method", ADAPTIVE)
def test_the_rows_of_an_adaptive_solver_are_its_accepted_steps_up_to_the_end(method, solve, x):
    net, accepted = network(Flow(method, SOLVES[solve], rtol=1e-3, atol=1e-4)), []
    net[0].slope.callback_accept_step = lambda t, y, dt: accepted.append((float(t), y))
    with torch.no_grad():
        out, told = net(x), list(accepted)
    runs = quietly(net, x, keep=True)
    assert len(accepted) >= 2 * len(told)  # a callback of one's own is called in a trace, too
    assert [t for t, _ in accepted[-len(told) :]] == [t for t, _ in told]
    times = np.array([t for t, _ in told] + [1.0])
    np.testing.assert_allclose(runs.record.step_sizes, np.tile(np.diff(times), (3, 1)), rtol=4 * EPS, atol=EPS)
    np.testing.assert_array_equal(runs[0].u, np.stack([*(y.numpy() for _, y in told), out.numpy()]))


@pytest.mark.parametrize("method", [*FIXED, "dopri5"])
def test_one_right_hand_side_has_one_index_but_for_the_difference_of_the_solutions(method, x):
    """By the triangle inequality, for any method beside the Runge-Kutta method of order four on the same grid."""
    loose = {"options": {"step_t": GRID, "first_step": 0.3}, "rtol": 1e-2, "atol": 1e-2} if method == "dopri5" else {}
    ours = quietly(network(Flow(method, **loose)), x, keep=True)
    theirs = nb.trace(network(Flow("rk4")), x, keep=True)
    one, other = ours.record.nsi, theirs.record.nsi
    np.testing.assert_allclose(ours.record.step_sizes, theirs.record.step_sizes, rtol=8 * EPS)
    apart = np.linalg.norm(ours[0].u - theirs[0].u, axis=2)
    length = np.linalg.norm(ours[0].u[:-1], axis=2)
    bound = ((apart[1:] + apart[:-1]) / 0.2 + other.T * apart[:-1]) / length
    assert (bound + 64 * EPS >= np.abs(one - other).T).all()
    assert np.abs(one / other - 1).max() < 0.2  # and not six or eight, the divisors of tableaux


def test_solvers_stand_among_residual_steps_in_the_order_of_the_pass(x):
    flow = Flow("midpoint", grid=GRID[:3])
    net = network(nn.Linear(5, 5), Residual(), Residual(), flow, Residual(), Residual(), nn.Linear(5, 2))
    record = nb.trace(net, x, of=("slope", "increment"))
    assert record.names == ("1", "2", "3 (1)", "3 (2)", "4", "5")
    assert record.stage.tolist() == [0, 0, 1, 1, 2, 2]
    assert record.first.tolist() == [True, False, True, False, True, False]
    np.testing.assert_array_equal(record.step_sizes[:, [0, 1, 4, 5]], 1.0)
    states = [net[:k](x).detach() for k in range(1, 7)]
    middle = flow.states(states[2]).detach()
    pairs = [*pairwise(states[:3]), *pairwise(middle), *pairwise(states[3:])]
    moved = np.array([(torch.linalg.norm(b - a, dim=1) / torch.linalg.norm(a, dim=1)).numpy() for a, b in pairs]).T
    np.testing.assert_allclose(record["increment"].nsi, moved, rtol=16 * EPS)
    np.testing.assert_allclose(record["slope"].nsi[:, [0, 1, 4, 5]], moved[:, [0, 1, 4, 5]], rtol=16 * EPS)


def test_several_solvers_in_one_module_are_stages_of_their_own(x):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = Slope(), Slope()

        def forward(self, x):
            return odeint(self.two, odeint(self.one, x, GRID[:3], method="euler")[-1], GRID[:4], method="rk4")[-1]

    record = nb.trace(network(Twice()), x)
    assert record.names == tuple(f"0 ({k})" for k in range(1, 6))
    assert record.stage.tolist() == [0, 0, 1, 1, 1]
    assert record.first.tolist() == [True, False, True, False, False]


class Pair(nn.Module):
    """A state of two tensors, as in a continuous normalising flow: y, and a number for every image."""

    def __init__(self, grid):
        super().__init__()
        self.slope, self.grid = Slope(), grid

    def both(self, x):
        def slope(t, state):
            dy = self.slope(t, state[0])
            return dy, dy.square().sum(1, keepdim=True), torch.ones(2, dtype=t.dtype)

        start = x, torch.ones(len(x), 1, dtype=x.dtype), torch.zeros(2, dtype=x.dtype)  # the last has no row an image
        return odeint(slope, start, self.grid, method="rk4")

    def forward(self, x):
        return self.both(x)[0][-1]


@pytest.mark.parametrize("grid", [GRID, GRID.flip(0)], ids=["forwards", "backwards"])
def test_states_of_several_tensors_are_one_state_an_image_in_either_direction_of_time(grid, x):
    net = network(Pair(grid))
    y, number, _ = net[0].both(x)
    record = nb.trace(net, x)
    np.testing.assert_allclose(record.nsi, indices_of(torch.cat([y, number], 2), GRID), rtol=64 * EPS)
    np.testing.assert_allclose(record.step_sizes, 0.2, rtol=8 * EPS)


def test_what_a_solver_sees_beside_its_state_is_known_to_come_from_the_images(x):
    """The solver starts from zero, and the images come in through the right-hand side alone."""

    class Driven(nn.Module):
        def __init__(self):
            super().__init__()
            self.slope = Slope()

        def forward(self, x):
            return odeint(lambda t, y: self.slope(t, y) + x, torch.ones_like(x), GRID, method="euler")[-1]

    record = nb.trace(network(Driven(), Residual()), x)
    assert record.names[-1] == "1"


def test_a_solver_within_a_right_hand_side_is_no_step(x):
    class Nested(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Flow("rk4")

        def forward(self, x):
            return odeint(lambda t, y: self.inner(y), x, GRID[:3], method="euler")[-1]

    assert nb.trace(network(Nested()), x).names == ("0 (1)", "0 (2)")


def test_named_blocks_hold_the_steps_of_their_solvers(x):
    net = network(Residual(), Flow("euler"), Residual())
    assert nb.trace(net, x, blocks=["1"]).names == tuple(f"1 ({k})" for k in range(1, 6))
    assert nb.trace(net, x, blocks=["0", "2"]).names == ("0", "2")


def test_steps_and_no_others_may_be_those_of_a_solver_or_be_without_them(x):
    net = network(Residual(), Flow("euler"), Residual())
    assert nb.trace(net, x, steps=["0", "2"]).names == ("0", "2")
    assert nb.trace(net, x, steps=["1"]).names == tuple(f"1 ({k})" for k in range(1, 6))
    with pytest.raises(ValueError, match=r"`steps` names 'slope', where there is none; there are \['0', '2', '1'"):
        nb.trace(net, x, steps=["slope"])


def test_steps_that_depend_on_the_batch_are_spoken_of(x):
    net = network(Flow("dopri5", rtol=1e-6, atol=1e-8))
    with pytest.warns(UserWarning, match=r"steps in \['0'\] are chosen by an adaptive solver for all images"):
        whole = nb.trace(net, x)
    assert whole.nsi.shape[0] == 3
    with pytest.raises(ValueError, match=r"solves an equation in '0' by a method that takes as many steps as it needs"):
        quietly(net, [x, 30 * x])


EVENT = {"event_fn": lambda t, y: t - 0.5, "options": {"step_size": 0.1}}


@pytest.mark.parametrize("case", ["scipy", "event"])
def test_a_solver_that_tells_nobody_of_its_steps_is_refused_in_a_sentence(case, x):
    class Untold(Flow):
        def forward(self, x):
            if case == "scipy":
                return odeint(self.slope, x, GRID, method="scipy_solver")[-1]
            return odeint_event(self.slope, x, GRID[0], method="euler", **EVENT)[1][-1]

    net = network(Residual(), Untold("euler"))
    with pytest.raises(ValueError, match=r"solves an equation in '1' by a solver of torchdiffeq that tells nobody"):
        nb.trace(net, x)
    assert nb.trace(net, x, blocks=["0"]).names == ("0",)
    assert nb.trace(net, x, of="increment", blocks=["1"]).names == ("1",)


def test_torchdiffeq_is_afterwards_what_it_was(x):
    solvers = sys.modules["torchdiffeq._impl.odeint"].SOLVERS
    before = dict(solvers)
    nb.trace(network(Flow("euler")), x)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        nb.trace(network(Flow("euler")), x[:, :4])
    assert solvers == before


def test_torchdiffeq_may_be_imported_by_the_forward_pass(x, monkeypatch):
    class Late(Flow):
        def forward(self, x):
            from torchdiffeq import odeint

            return odeint(self.slope, x, GRID, method="rk4")[-1]

    for name in [name for name in sys.modules if name.partition(".")[0] == "torchdiffeq"]:
        monkeypatch.delitem(sys.modules, name)
    net = network(Late("rk4"))
    np.testing.assert_allclose(nb.trace(net, x).nsi, indices_of(net[0].states(x)), rtol=16 * EPS)


def test_a_network_of_solvers_alone_has_no_modules_that_are_blocks(x):
    with pytest.raises(ValueError, match=r"no module is such a block"):
        nb.block_states(network(Flow("euler")), x)
