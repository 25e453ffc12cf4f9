"""Dense output: the continuous extension's own order conditions, and runs evaluated anywhere."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odelab as ol
from odelab.methods import extension
from odelab.methods import order_conditions as trees
from tests.odelab.solver_cases import CIRCLE, EXPLICIT, NAMED, PENDULUM, Recorder

every_method = pytest.mark.parametrize("method", EXPLICIT, **NAMED)
TIGHT = ol.adaptive(1e-13, 1e-15)
TRUTH = ol.solve(PENDULUM, ol.DOP853, TIGHT)


def extended(method):
    """The coefficient matrix of all slopes the extension uses, in floats."""
    rows = [*method.a, *([] if method.fsal else [method.b]), *method.extra]
    return np.array([[float(x) for x in row] + [0.0] * (len(rows) - len(row)) for row in rows])


def elementary_weight(a, tree):
    """Phi_i(tree), by its definition."""
    result = np.ones(len(a))
    for branch in tree:
        result = result * (a @ elementary_weight(a, branch))
    return result


@every_method
@settings(max_examples=20)
@given(theta=st.floats(0.0, 1.0))
def test_the_extension_satisfies_its_order_conditions(method, theta):
    weights = theta ** np.arange(1, extension.degree(method) + 1) @ extension.weights(method).T
    a = extended(method)
    for nodes in range(1, extension.order(method) + 1):
        for tree in trees.trees(nodes):
            expected = theta**nodes / trees.density(tree)
            assert weights @ elementary_weight(a, tree) == pytest.approx(expected, rel=0, abs=1e-12)


@every_method
def test_the_extension_is_not_of_higher_order(method):
    a, theta = extended(method), 0.37
    weights = theta ** np.arange(1, extension.degree(method) + 1) @ extension.weights(method).T
    nodes = extension.order(method) + 1
    misses = [weights @ elementary_weight(a, tree) - theta**nodes / trees.density(tree) for tree in trees.trees(nodes)]
    assert np.abs(misses).max() > 1e-7


@every_method
def test_the_extension_meets_both_ends_with_their_slopes(method):
    rows = extension.exact_weights(method)
    last = method.stages - 1 if method.fsal else method.stages
    b = [*method.b, *[Fraction(0)] * (len(rows) - method.stages)]
    for i, row in enumerate(rows):
        derivative = [power * x for power, x in enumerate(row)][1:]
        assert row[0] == 0
        assert sum(row) == b[i]
        assert derivative[0] == (i == 0)
        assert sum(derivative) == (i == last)


@every_method
def test_dense_output_meets_the_steps_bit_for_bit(method):
    run = ol.solve(PENDULUM, method, ol.fixed(0.25))
    np.testing.assert_array_equal(run(run.t), run.u)


@every_method
@pytest.mark.parametrize("span", [(0.0, 4.0), (4.0, 0.0)])
def test_dense_output_is_continuously_differentiable(method, span):
    run = ol.solve(PENDULUM.replace(t_span=span), method, ol.fixed(0.25))
    knots = run.t[1:-1]
    step = 1e-5
    before, at, after = run(knots - step), run(knots), run(knots + step)
    np.testing.assert_allclose((at - before) / step, (after - at) / step, rtol=0, atol=2e-4)
    slopes = np.array([PENDULUM.slope(t, u) for t, u in zip(knots, at, strict=True)])
    np.testing.assert_allclose((after - before) / (2 * step), slopes, rtol=0, atol=1e-4)


@every_method
def test_the_error_within_a_step_falls_with_the_extensions_order(method):
    sizes = [2.0, 1.0, 0.5] if method.order == 8 else [0.25, 0.125, 0.0625]
    errors = []
    for h in sizes:
        run = ol.solve(PENDULUM.replace(t_span=(0.0, h)), method, ol.fixed(h))
        t = np.linspace(0.0, h, 41)
        errors.append(np.abs(run(t) - TRUTH(t)).max())
    observed = np.log2(errors[-2] / errors[-1])
    assert observed > extension.order(method) + 1 - 0.25


@pytest.mark.parametrize(
    ("method", "order"),
    [(ol.EULER, 1), (ol.HEUN, 2), (ol.BS32, 3), (ol.RK4, 3), (ol.RKF45, 4), (ol.DOPRI5, 4), (ol.DOP853, 7)],
    **NAMED,
)
def test_the_extensions_stated_order(method, order):
    assert extension.order(method) == order


@every_method
def test_over_a_run_dense_output_is_as_good_as_its_order(method):
    counts = (4, 8, 16) if method.order == 8 else (32, 64, 128)
    t = np.linspace(0.0, 4.0, 331)
    errors = [np.abs(ol.solve(PENDULUM, method, ol.fixed(4.0 / n))(t) - TRUTH(t)).max() for n in counts]
    assert np.log2(errors[-2] / errors[-1]) > min(method.order, extension.order(method) + 1) - 0.2


@settings(max_examples=25)
@given(
    times=st.lists(st.floats(0.0, 4.0), min_size=1, max_size=24),
    forward=st.booleans(),
    shape=st.sampled_from([1, 2, 3]),
)
def test_arrays_of_times_in_any_order_and_shape(times, forward, shape):
    run = FORWARD if forward else BACKWARD
    together = run(np.resize(times, (shape, len(times))))
    assert together.shape == (shape, len(times), 2)
    for row in together:
        np.testing.assert_allclose(row, [run(t) for t in times], rtol=0, atol=1e-14)


FORWARD = ol.solve(PENDULUM, ol.RKF45, ol.adaptive(1e-8, 1e-10))
BACKWARD = ol.solve(PENDULUM.replace(t_span=(4.0, 0.0)), ol.RKF45, ol.adaptive(1e-8, 1e-10))


def test_shapes_of_the_answer():
    assert FORWARD(0.5).shape == (2,)
    assert FORWARD(np.float64(0.5)).shape == (2,)
    assert FORWARD([0.5]).shape == (1, 2)
    assert FORWARD([]).shape == (0, 2)
    assert FORWARD(np.zeros((2, 0, 3))).shape == (2, 0, 3, 2)


@pytest.mark.parametrize("outside", [-1e-9, 4.0 + 1e-9, float("nan"), float("inf")])
@pytest.mark.parametrize("run", [FORWARD, BACKWARD], ids=["forward", "backward"])
def test_outside_the_span_is_an_error(run, outside):
    with pytest.raises(ValueError, match=r"`t` = .* lies outside the run's span \[0.0, 4.0\]; solve over a longer"):
        run([1.0, outside])


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RADAU, ol.BDF, ol.LSODA], **NAMED)
@pytest.mark.parametrize("span", [(0.0, 10.0), (10.0, 0.0)])
def test_t_eval_reports_the_dense_output(method, span):
    times = np.linspace(*span, 23)
    problem = CIRCLE.replace(t_span=span)
    run = ol.solve(problem, method, ol.adaptive(1e-8, 1e-10), t_eval=times)
    np.testing.assert_array_equal(run.t, times)
    assert run.u.shape == (23, 2)
    np.testing.assert_array_equal(run.u, run(times))
    np.testing.assert_array_equal(run(run.step_t), run.step_u)
    start = 0.0 if span[0] == 0.0 else 10.0
    expected = CIRCLE.exact(times - start, ())
    np.testing.assert_allclose(run.u, expected, rtol=0, atol=2e-5)
    with pytest.raises(ValueError, match="outside the run's span"):
        run(10.1)


def test_steps_stay_with_t_eval():
    plain = ol.solve(PENDULUM, ol.DOPRI5, ol.adaptive(1e-6, 1e-9))
    asked = ol.solve(PENDULUM, ol.DOPRI5, ol.adaptive(1e-6, 1e-9), t_eval=[0.0, 1.0, 4.0])
    np.testing.assert_array_equal(asked.step_t, plain.t)
    np.testing.assert_array_equal(asked.h, plain.h)
    np.testing.assert_array_equal(asked.u[[0, -1]], plain.u[[0, -1]])
    assert asked.evaluations == plain.evaluations


def test_a_right_hand_side_that_is_no_batch_is_evaluated_step_by_step():
    """A mean over the state is another thing over a batch of states; and `if` takes numbers only."""

    def mean_field(t, u, params):
        return tuple(np.mean(u) - 2.0 * x for x in u)

    def branching(t, u, params):
        return (-u[0] if u[0] > 0.5 else -0.5, -u[1])

    for rhs in (mean_field, branching):
        problem = ol.Problem(rhs, [1.0, 3.0], (0.0, 2.0))
        run = ol.solve(problem, ol.DOPRI5, ol.fixed(0.25))
        t = np.linspace(0.0, 2.0, 33)
        np.testing.assert_allclose(run(t), [run(x) for x in t], rtol=0, atol=1e-14)


def test_long_runs_are_evaluated_in_batches():
    run = ol.solve(CIRCLE.replace(t_span=(0.0, 50.0)), ol.EULER, ol.fixed(0.01))
    t = np.linspace(0.0, 50.0, 12_345)
    np.testing.assert_allclose(run(t)[::500], [run(x) for x in t[::500]], rtol=0, atol=1e-12)


def test_a_handmade_trajectory_has_none():
    with pytest.raises(ValueError, match="no dense output: it was not made by `odelab"):
        ol.Trajectory(np.zeros(2), np.zeros((2, 1)), np.ones(1))(0.5)


@pytest.mark.parametrize("span", [(0.0, 3.0), (3.0, 0.0)])
@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4, ol.RKC2, ol.AUTO], **NAMED)
def test_one_time_is_as_many_times(method, span):
    """In any order: the polynomial of the step that was asked last is kept."""
    sol = ol.solve(PENDULUM.replace(t_span=span), method, engine="python")
    times = np.random.default_rng(0).permutation(np.append(np.linspace(0.0, 3.0, 40), sol.step_t))
    np.testing.assert_allclose([sol(t) for t in times], sol(times), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4], **NAMED)
def test_a_step_is_repeated_once_for_all_single_times_in_it(method):
    """So that a right-hand side can look at an earlier run, as delays by the method of steps do."""
    rhs = Recorder(lambda t, u, params: PENDULUM.slope(t, u))
    sol = ol.solve(ol.Problem(rhs, PENDULUM.u0, (0.0, 3.0)), method, engine="python")
    sol(sol.step_t[3] + 0.5 * sol.h[3])
    before = len(rhs.times)
    for theta in np.linspace(0.1, 0.9, 9):
        sol(sol.step_t[3] + theta * sol.h[3])
    assert len(rhs.times) == before
