"""Laws of solving: what holds for every method and every problem of a kind, whatever the numbers."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import odelab as ol
from odelab.problems.linear_systems import rotation
from tests.odelab.solver_cases import CIRCLE, EMBEDDED, EXPLICIT, NAMED, PENDULUM, replayed

every_method = pytest.mark.parametrize("method", EXPLICIT, **NAMED)
embedded_method = pytest.mark.parametrize("method", EMBEDDED, **NAMED)
few = settings(max_examples=12)
numbers = st.floats(-2.0, 2.0, allow_subnormal=False)


def vectors(n):
    return st.lists(numbers, min_size=n, max_size=n).map(np.array)


def matrices(n):
    return st.lists(numbers, min_size=n * n, max_size=n * n).map(lambda x: np.array(x).reshape(n, n))


def matrix_rhs(t, u, params):
    return params[0] @ u


def driven_rhs(t, u, params):
    """Nonlinear, and equivariant under a change of coordinates x = Q y that goes with its parameters."""
    matrix, force = params
    return matrix @ u + np.sin(t) * force - 0.1 * (u @ u) * u


def linear(matrix, u0, span=(0.0, 1.0)):
    return ol.Problem(matrix_rhs, u0, span, (matrix,))


@every_method
@few
@given(matrix=matrices(3), u=vectors(3), v=vectors(3), a=numbers, b=numbers)
def test_linearity_in_the_initial_state(method, matrix, u, v, a, b):
    def end(u0):
        return ol.solve(linear(matrix, u0), method, ol.fixed(0.1)).u[-1]

    scale = 1.0 + np.abs(end(np.abs(u))).max() + np.abs(end(np.abs(v))).max() + np.exp(np.linalg.norm(matrix, 2)) * 10
    np.testing.assert_allclose(end(a * u + b * v), a * end(u) + b * end(v), rtol=0, atol=1e-13 * scale)


@embedded_method
@few
@given(matrix=matrices(2), u0=vectors(2))
def test_time_reversal_returns_to_the_start(method, matrix, u0):
    assume(np.abs(u0).max() > 0.1)
    tolerance = ol.adaptive(1e-6, 1e-6)
    there = ol.solve(linear(matrix, u0), method, tolerance)
    back = ol.solve(linear(matrix, there.u[-1], (1.0, 0.0)), method, tolerance)
    growth = np.exp(2.0 * np.linalg.norm(matrix, 2))
    np.testing.assert_allclose(back.u[-1], u0, rtol=0, atol=1e-4 * growth)
    assert (back.h < 0).all()


@every_method
@few
@given(u0=vectors(2), t0=numbers)
def test_mirrored_time_gives_mirrored_steps(method, u0, t0):
    """u'(t) = f(t, u) forward is u'(s) = -f(-s, u) backward, step for step."""

    def mirrored(t, u, params):
        return tuple(-slope for slope in PENDULUM.rhs(-t, u, params))

    forward = ol.solve(PENDULUM.replace(u0=u0, t_span=(t0, t0 + 1.0)), method, ol.fixed(0.125))
    backward = ol.solve(ol.Problem(mirrored, u0, (-t0, -t0 - 1.0)), method, ol.fixed(0.125))
    np.testing.assert_allclose(backward.u, forward.u, rtol=0, atol=1e-13)


def with_jumps(t, u, params):
    x, v = u
    return (1.0 if t > 1.0 else 0.0) - x, (2.0 if t > 1.7 else -1.0) - 0.5 * v


def with_jumps_mirrored(t, u, params):
    one, other = with_jumps(3.0 - t, u, params)
    return -one, -other


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4, ol.RODAS5P, ol.AUTO], ids=lambda method: method.name)
@pytest.mark.parametrize("engine", ["python", pytest.param("compiled", marks=pytest.mark.slow)])
def test_backwards_over_jumps_is_forwards_over_the_mirrored_ones(method, engine):
    """What a run loses at a jump depends on where its steps meet it, and not on its direction."""
    ends, errors = [], []
    exact = jumps_solved(u0=np.array([0.3, 0.7]))
    for rhs, span in ((with_jumps, (3.0, 0.0)), (with_jumps_mirrored, (0.0, 3.0))):
        run = ol.solve(ol.Problem(rhs, [0.3, 0.7], span), method, ol.adaptive(1e-7, 1e-9), engine=engine)
        ends.append((run.steps, run.end_u))
        errors.append(np.abs(run.end_u / exact - 1.0).max())
    if engine == "python":  # compiled code contracts a * b + c, in which order nobody knows
        assert ends[0][0] == ends[1][0]
        np.testing.assert_allclose(ends[0][1], ends[1][1], rtol=1e-12)
    assert max(errors) < 1e-4  # about what SciPy's methods lose there
    stopped = ol.solve(
        ol.Problem(with_jumps, [0.3, 0.7], (3.0, 0.0)),
        method,
        ol.adaptive(1e-7, 1e-9),
        tstops=[1.7, 1.0],
        engine=engine,
    )
    np.testing.assert_allclose(stopped.end_u, exact, rtol=1e-6)


def jumps_solved(u0):
    """The solution of `with_jumps` at time 0 from `u0` at time 3, where each force is constant on two pieces."""
    (x, v), first, second = u0, (1.0, 4.0), (0.0, -2.0)
    x = second[0] + (first[0] + (x - first[0]) * np.exp(3.0 - 1.0) - second[0]) * np.exp(1.0)
    v = second[1] + (first[1] + (v - first[1]) * np.exp(0.5 * (3.0 - 1.7)) - second[1]) * np.exp(0.5 * 1.7)
    return np.array([x, v])


@every_method
@few
@given(matrix=matrices(3), force=vectors(3), u0=vectors(3), seed=st.integers(0, 1000))
def test_invariance_under_orthogonal_change_of_coordinates(method, matrix, force, u0, seed):
    q = rotation(3, seed)
    plain = ol.solve(ol.Problem(driven_rhs, u0, (0.0, 1.0), (matrix, force)), method, ol.fixed(0.1))
    turned = ol.solve(ol.Problem(driven_rhs, q @ u0, (0.0, 1.0), (q @ matrix @ q.T, q @ force)), method, ol.fixed(0.1))
    scale = 1.0 + np.abs(plain.u).max() + np.exp(np.linalg.norm(matrix, 2))
    np.testing.assert_allclose(turned.u, plain.u @ q.T, rtol=0, atol=1e-12 * scale)


@every_method
@few
@given(data=st.data(), t0=numbers)
def test_exact_on_polynomials_of_its_degree_in_time(method, data, t0):
    coefficients = data.draw(vectors(method.order + 1))
    polynomial = np.polynomial.Polynomial(coefficients)
    slope = polynomial.deriv()
    problem = ol.Problem(lambda t, u, params: np.array([slope(t)]), [polynomial(t0)], (t0, t0 + 1.5))
    run = ol.solve(problem, method, ol.fixed(0.4))
    np.testing.assert_allclose(run.u[:, 0], polynomial(run.t), rtol=0, atol=1e-10)


@every_method
def test_not_exact_one_degree_higher(method):
    problem = ol.Problem(lambda t, u, params: np.array([t**method.order]), [0.0], (0.0, 1.0))
    error = ol.solve(problem, method, ol.fixed(1.0)).u[-1, 0] - 1.0 / (method.order + 1)
    assert abs(error) > 1e-7


@every_method
@few
@given(factor=st.sampled_from([2.0**-20, 0.25, 8.0, 2.0**30]), u0=vectors(2))
def test_scaling_of_time_scales_the_steps(method, factor, u0):
    """With time measured in another unit (a power of two, exactly), the same states are met."""

    def slower(t, u, params):
        return tuple(slope / factor for slope in PENDULUM.rhs(t / factor, u, params))

    plain = ol.solve(PENDULUM.replace(u0=u0), method, ol.fixed(0.125), engine="python")
    assume((np.abs(plain.u[plain.u != 0.0]) > 1e-290).all())  # near the smallest number no scaling is exact
    slowed = ol.Problem(slower, u0, (0.0, 4.0 * factor))
    scaled = ol.solve(slowed, method, ol.fixed(0.125 * factor), engine="python")
    np.testing.assert_array_equal(scaled.t, factor * plain.t)
    np.testing.assert_array_equal(scaled.u, plain.u)


@embedded_method
def test_scaling_of_time_scales_adaptive_steps(method):
    factor = 1024.0

    def slower(t, u, params):
        return tuple(slope / factor for slope in PENDULUM.rhs(t / factor, u, params))

    plain = ol.solve(PENDULUM, method, ol.adaptive(1e-6, 1e-9, first_step=2.0**-6), engine="python")
    slowed = ol.Problem(slower, PENDULUM.u0, (0.0, 4.0 * factor))
    scaled = ol.solve(slowed, method, ol.adaptive(1e-6, 1e-9, first_step=2.0**4), engine="python")
    np.testing.assert_array_equal(scaled.h, factor * plain.h)
    np.testing.assert_array_equal(scaled.u, plain.u)


@every_method
@few
@given(shift=numbers)
def test_an_autonomous_problem_knows_no_time(method, shift):
    there = ol.solve(CIRCLE.replace(t_span=(shift, shift + 1.0)), method, ol.fixed(0.1))
    here = ol.solve(CIRCLE.replace(t_span=(0.0, 1.0)), method, ol.fixed(0.1))
    np.testing.assert_allclose(there.u, here.u, rtol=0, atol=1e-14)


@embedded_method
@pytest.mark.parametrize("law", ["i", "pi", "h211b"])
def test_a_fixed_grid_reproduces_an_adaptive_run_on_its_own_grid(method, law):
    run = ol.solve(PENDULUM, method, ol.adaptive(1e-5, 1e-8, law), engine="python")
    again = ol.solve(PENDULUM, method, replayed(run.h.tolist()), engine="python")
    np.testing.assert_array_equal(again.t, run.t)
    np.testing.assert_array_equal(again.u, run.u)
    np.testing.assert_array_equal(again.slope, run.slope)


@every_method
def test_slope_is_what_moved_the_state(method):
    run = ol.solve(PENDULUM, method, ol.fixed(0.25))
    np.testing.assert_allclose(run.slope, np.diff(run.u, axis=0) / run.h[:, None], rtol=0, atol=1e-13)


@every_method
def test_the_solution_keeps_a_projected_state(method):
    def decay(t, u, params):
        return (-1.0 + 0.0 * u[0], u[0])

    problem = ol.Problem(decay, [0.35, 0.0], (0.0, 1.0))
    run = ol.solve(problem, method, ol.fixed(0.1), project=lambda u: np.maximum(u, 0.0))
    assert run.u.min() == 0.0
    np.testing.assert_allclose(run.u[:4, 0], [0.35, 0.25, 0.15, 0.05], rtol=0, atol=1e-14)
    np.testing.assert_array_equal(run.u[4:, 0], 0.0)
    np.testing.assert_allclose(np.maximum(run.u[:-1] + run.h[:, None] * run.slope, 0.0), run.u[1:], rtol=0, atol=1e-14)
    np.testing.assert_array_equal(run(run.t), run.u)
    assert run(np.linspace(0.0, 1.0, 97)).min() == 0.0


def read_only(values):
    values = np.array(values)
    values.flags.writeable = False
    return values


LAYOUTS = {
    "read-only": read_only,
    "backwards": lambda values: np.array(values[::-1])[::-1],
    "strided": lambda values: np.repeat(values, 2)[::2],
    "big-endian": lambda values: np.array(values, dtype=">f8"),
    "list": list,
}
WAYS = {
    "plain": lambda controller, times: ol.solve(PENDULUM, ol.DOPRI5, controller, t_eval=times, engine="python"),
    "single": lambda controller, times: ol.solve(PENDULUM, ol.DOPRI5, controller, t_eval=times, engine="compiled"),
    "large": lambda controller, times: ol.solve(LARGE, ol.DOPRI5, controller, t_eval=times, engine="compiled"),
    "sparse": lambda controller, times: ol.solve(
        LARGE, ol.DOPRI5, controller, t_eval=times, engine="compiled", dense=False
    ),
    "stabilised": lambda controller, times: ol.solve(LARGE, ol.RKC2, controller, t_eval=times, engine="compiled"),
    "lanes": lambda controller, times: ol.ensemble(
        PENDULUM, ol.DOPRI5, controller, u0=np.tile(PENDULUM.u0, (3, 1)), t_eval=times, engine="compiled"
    ),
}


def swinging(t, u, params, out):
    out[0] = u[1]
    out[1] = -u[0]


LARGE = ol.Problem(swinging, [1.0, 0.5], (0.0, 4.0))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_how_tolerances_and_times_lie_in_memory_changes_nothing(way, layout):
    if way == "stabilised":
        pytest.importorskip("numba")
    atol, times = np.array([1e-7, 1e-6]), np.array([0.5, 1.0, 4.0])
    laid = LAYOUTS[layout]
    expected = WAYS[way](ol.adaptive(1e-6, atol), times)
    np.testing.assert_array_equal(WAYS[way](ol.adaptive(1e-6, laid(atol)), laid(times)).u, expected.u)


def test_what_becomes_of_the_arrays_given_is_no_matter_to_a_run():
    atol, times = np.array([1e-7, 1e-6]), np.array([0.5, 1.0, 4.0])
    controller = ol.adaptive(1e-6, atol)
    run = ol.solve(PENDULUM, ol.DOPRI5, controller, t_eval=times)
    atol[:], times[:] = 1.0, 0.0
    np.testing.assert_array_equal(run.t, [0.5, 1.0, 4.0])
    np.testing.assert_array_equal(ol.solve(PENDULUM, ol.DOPRI5, controller, t_eval=run.t).u, run.u)
