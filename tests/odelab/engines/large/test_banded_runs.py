"""Linearly implicit runs of large systems: bands eliminated in loops, exact Jacobians, equal to plain Python."""

import numpy as np
import pytest

import odelab as ol
from odelab import maths
from odelab.engines import choice
from odelab.kernels.large import row_loops
from odelab.kernels.large.functions import rows_of
from tests.odelab.engines.rosenbrock.stiff_cases import assert_same_grid, assert_same_work, both

slow = pytest.mark.slow
REACH = 1


def flux(left, right):
    """A helper with a choice between values, which has a derivative on either side."""
    return maths.maximum(left, right) * (left - right)


def coupled(t, u, params, out):
    """Everything at once: views, helpers, a driven boundary, a loop that goes on, `out` read again, indices below 0."""
    (rate,) = params
    n = u.size
    inner, ahead = u[: n - 1], u[1:]
    total = maths.sin(3.0 * t)
    for i in range(len(inner)):
        out[i] = rate * (ahead[i] - inner[i])
        if i > 0:
            out[i] += flux(u[i - 1], u[i])
    i = 0
    while i < 2:
        total = total - u[-1 - i]
        i += 1
    out[-1] = rate * total + u.shape[0] * 0.0


def turning(t, u, params, out):
    """Spirals; for h gamma = 1/8 the entries of I - h gamma J on the diagonal are zero, and the matrix harmless."""
    a, b = params
    for i in range(0, u.size, 2):
        out[i] = a * u[i] - b * u[i + 1]
        out[i + 1] = b * u[i] + a * u[i + 1]


def spread(t, u, params, out):
    """Each component moves towards the next ones, as many as `REACH` says when it is compiled."""
    for i in range(u.size):
        last = min(u.size - 1, i + REACH)
        out[i] = 50.0 * (u[last] - u[i])


def gone_through(t, u, params, out):
    """Loops over the entries themselves, parts filled with numbers, and choices between values."""
    out[:] = 0.0
    for i, x in enumerate(u):
        out[i] -= 30.0 * np.clip(x, 0.2, 1.5)
    for i, (x, y) in enumerate(zip(u[:-1], u[1:])):  # noqa: B905, RUF007 (what numba knows)
        out[i] += maths.where(x > 1.2, 20.0 * (y - x), y * y)
    last = 0.0
    for x in u:
        last = x
    out[-2:] = last
    for x in u[:0]:
        out[0] = x


COUPLED = ol.Problem(coupled, np.linspace(1.0, 2.0, 33), (0.0, 0.5), (40.0,))
GONE_THROUGH = ol.Problem(gone_through, np.linspace(0.1, 2.0, 31), (0.0, 0.2))
BRUSSELATOR = ol.problems.brusselator_1d(20).replace(t_span=(0.0, 2.0), jacobian=None)
WAVE = ol.problems.heat_1d_wave(30).replace(jacobian=None)


@pytest.mark.parametrize(
    ("problem", "method", "h"),
    [
        pytest.param(COUPLED, ol.ROS2, 0.01, id="coupled"),
        pytest.param(BRUSSELATOR, ol.RODAS4, 0.05, id="brusselator", marks=slow),
        pytest.param(WAVE, ol.RODAS4, 0.02, id="wave"),
        pytest.param(GONE_THROUGH, ol.ROS2, 0.01, id="gone through"),
        pytest.param(COUPLED.replace(t_span=(0.0, -0.5), params=(-40.0,)), ol.ROS2, 0.01, id="backwards", marks=slow),
    ],
)
def test_on_one_grid_they_differ_by_rounding(problem, method, h):
    assert_same_grid(*both(problem, method, ol.fixed(h)))


@pytest.mark.parametrize(
    ("problem", "method"),
    [
        pytest.param(WAVE, ol.RODAS4, id="wave"),
        pytest.param(COUPLED, ol.RODAS4, id="coupled", marks=slow),
        pytest.param(BRUSSELATOR, ol.RODAS5P, id="brusselator", marks=slow),
    ],
)
@pytest.mark.parametrize("atol", [1e-7, pytest.param("vector", marks=slow)])
def test_adaptive_runs_take_the_same_steps(problem, method, atol):
    tolerances = np.geomspace(1e-8, 1e-6, problem.size) if atol == "vector" else atol
    kernel, plain = both(problem, method, ol.adaptive(1e-5, tolerances))
    assert_same_work(kernel, plain)
    assert plain.rejected > 0
    np.testing.assert_allclose(kernel.step_u, plain.step_u, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(kernel.error, plain.error, rtol=1e-3, atol=1e-3)
    assert "eliminated in the kernel" in str(kernel)


@pytest.mark.parametrize("dense", [True, False])
def test_states_between_events_and_projections_are_plain_pythons(dense):
    options = {"t_eval": np.linspace(0.0, 0.7, 8), "project": lambda u: np.maximum(u, -0.5), "dense": dense}
    if dense:
        options["events"] = ol.Event(lambda t, u, params: u[3], terminal=False)
    kernel, plain = both(WAVE, ol.RODAS4, ol.fixed(0.02), **options)
    assert_same_work(kernel, plain)
    np.testing.assert_allclose(kernel.u, plain.u, rtol=1e-10, atol=1e-12)
    if dense:
        assert kernel.step_u.min() == -0.5
        np.testing.assert_allclose(kernel.events[0].t, plain.events[0].t, rtol=1e-10)


@pytest.mark.parametrize("dense", [True, False])
def test_a_pivot_that_is_zero_is_handed_to_pivoted_factors(dense):
    problem = ol.Problem(turning, [1.0, 0.0] * 15, (0.0, 2.0), (8.0, 9.0))
    options = {"t_eval": np.linspace(0.0, 2.0, 9), "dense": dense}
    kernel, plain = both(problem, ol.RODAS4, ol.fixed(0.5), **options)
    assert (kernel.status, kernel.steps) == ("ok", plain.steps)
    np.testing.assert_allclose(kernel.u, plain.u, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(kernel.sai, plain.sai, rtol=1e-10)


def test_a_value_that_widens_the_band_is_seen(monkeypatch):
    problem = ol.Problem(spread, np.linspace(1.0, 2.0, 29), (0.0, 0.1))
    for reach in (1, 3):
        monkeypatch.setitem(globals(), "REACH", reach)
        assert_same_grid(*both(problem, ol.ROS2, ol.fixed(0.01)))
        found = rows_of(problem, True).rows.band
        assert found.below + found.above == reach


def test_each_kernel_gets_the_band_it_was_compiled_for(monkeypatch):
    """Also where another method's kernel was compiled with another value in between."""
    problem = ol.Problem(spread, np.linspace(1.0, 2.0, 29), (0.0, 0.1))
    for reach, method in ((1, ol.ROS2), (3, ol.RODAS4), (1, ol.ROS2)):
        monkeypatch.setitem(globals(), "REACH", reach)
        assert_same_grid(*both(problem, method, ol.fixed(0.01)))


@pytest.mark.parametrize("make", [ol.problems.brusselator_1d, ol.problems.heat_1d, ol.problems.allen_cahn_1d])
def test_the_band_has_a_place_for_each_entry_of_the_jacobian(make):
    problem = make(12)
    known, n = problem.jacobian(0.0, problem.u0 + 0.1, problem.params).toarray(), problem.size
    rows = rows_of(problem, True).rows
    found = rows.band
    assert rows.is_autonomous
    width = found.below + 1 + found.above
    band = np.zeros(n * width)
    of_rows, of_columns = row_loops.pattern_of(rows.alone)
    band[found.where] = known[of_rows, of_columns]
    ordered = known[np.ix_(found.order, found.order)]
    for i in range(n):
        inside = np.arange(max(0, i - found.below), min(n, i + found.above + 1))
        np.testing.assert_array_equal(band[i * width + inside - i + found.below], ordered[i, inside])
        assert np.count_nonzero(ordered[i]) == np.count_nonzero(ordered[i, inside])


def looking(t, u, params, out):
    for i in range(u.size):
        out[i] = -u[i] if u[i] > 0.0 else 0.0


def all_to_all(t, u, params, out):
    for i in range(u.size):
        out[i] = -u[i]
        for j in range(u.size):
            out[i] += 1e-3 * u[j]


@pytest.mark.parametrize(
    ("rhs", "word"), [(looking, "ways through its branches"), (all_to_all, "different entries in its Jacobian")]
)
def test_what_has_no_kernel_is_said_and_auto_stays_in_plain_python(rhs, word, monkeypatch):
    problem = ol.Problem(rhs, np.linspace(1.0, 2.0, 40), (0.0, 1.0))
    with pytest.raises(ol.NotCompilable, match=word):
        ol.solve(problem, ol.ROS2, ol.fixed(0.1), engine="compiled")
    monkeypatch.setattr(choice, "GENERIC_WORK", 1)
    assert ol.solve(problem, ol.ROS2, ol.fixed(0.1)).engine == "python"


def shifted(t, u, params, out):
    out[1:] = u[:-1]
    out[0] = -u[0]


def scaled(t, u, params, out):
    rate = 2.0
    out[:] = rate * u


def rolled(t, u, params):
    return np.roll(u, 1) - np.exp(0.1 * u)


def assembled(t, u, params, out):
    grid = np.zeros(len(u) + 2)
    grid[1:-1] = u
    out[:] = grid[2:] - grid[:-2]


def filled(t, u, params):
    slopes = np.zeros_like(u)
    np.subtract(u[1:], u[:-1], out=slopes[:-1])
    return slopes


def multiplied(t, u, params):
    return MATRIX @ u


def told_by_a_new_array(t, u, params, out):
    flow = np.zeros(u.size + 1)
    for i in range(1, u.size):
        flow[i] = u[i] - u[i - 1]
    for i in range(u.size):
        out[i] = flow[i + 1] - flow[i]


MATRIX = np.diag(np.full(40, -2.0)) + np.diag(np.linspace(0.5, 1.0, 39), 1)
WHOLE = [shifted, scaled, rolled, assembled, filled, told_by_a_new_array]


@pytest.mark.parametrize("rhs", WHOLE, ids=lambda rhs: rhs.__name__)
def test_arithmetic_of_whole_arrays_is_compiled(rhs):
    problem = ol.Problem(rhs, np.linspace(0.1, 0.9, 60), (0.0, 1.0))
    assert_same_grid(*both(problem, ol.ROS2, ol.fixed(0.1)))


def test_a_captured_matrix_is_followed():
    """Its zeros are factors like others, so that the Jacobian has all entries: a kernel of an explicit method."""
    problem = ol.Problem(multiplied, np.linspace(0.1, 0.9, 40), (0.0, 1.0))
    kernel, plain = both(problem.replace(u0=np.ones(40)), ol.DOPRI5, ol.fixed(0.1))
    assert kernel.engine == "compiled"
    np.testing.assert_allclose(kernel.u, plain.u, rtol=1e-13)


def reaching_far(t, u, params):
    return np.roll(u, 1) + np.roll(u, 20) - 2.0 * u


def test_a_band_that_is_too_wide_is_said():
    problem = ol.Problem(reaching_far, np.linspace(1.0, 2.0, 200), (0.0, 1.0))
    with pytest.raises(ol.NotCompilable, match="diagonals"):
        ol.solve(problem, ol.ROS2, ol.fixed(0.1), engine="compiled")
