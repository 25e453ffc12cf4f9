"""Step-size control: its fixed point, limits, memory and beginning, on an error model e = phi h^k."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate._ivp.common import select_initial_step

import odelab as ol
from odelab.control import feedback as control
from odelab.control.controllers import SET_POINT, Start, initial_step
from tests.odelab.solver_cases import CIRCLE, PENDULUM, Recorder, replayed

CLIPPED = ("i", "pi42", "pi33", "pi34")
SMOOTH = tuple(name for name in ol.LAWS if name not in CLIPPED)
every_law = pytest.mark.parametrize("name", ol.LAWS)
ORDER = 5  # k of DOPRI5


def begun(law, h=0.1, **options):
    """A controller whose error over tolerance is the error itself, and its memory before a first step of size h."""
    controller = ol.adaptive(0.5, 1.0, law, first_step=abs(h), **options)
    t1 = math.copysign(1e9, h)
    memory, evaluations = controller.start(Start(ol.DOPRI5, None, (), 0.0, t1, np.zeros(1), np.zeros(1)))
    assert evaluations == 0
    return controller, memory


def judged(controller, memory, dt, error):
    zero = np.zeros(1)
    return controller.judge(memory, dt, [np.array([error])], zero, zero)


def learned(history):
    """What accepted steps have left in a history."""
    return history._replace(next_step=None, rejected=None, error=None)


def proposed(controller, memory, t=0.0, t1=1e9):
    return controller.propose(memory, t, t1, None, None)[0]


@every_law
def test_a_constant_error_model_settles_at_the_set_point(name):
    controller, memory = begun(name)
    phi = 1e3
    for _ in range(400):
        dt = proposed(controller, memory)
        _, memory = judged(controller, memory, dt, phi * dt**ORDER)
    assert phi * dt**ORDER == pytest.approx(SET_POINT**ORDER, rel=1e-6)


@every_law
@settings(max_examples=8)
@given(first=st.floats(0.01, 1.0), phi=st.floats(1.0, 1e4))
def test_the_fixed_point_is_reached_from_anywhere(name, first, phi):
    controller, memory = begun(name, first)
    for _ in range(300):
        dt = proposed(controller, memory)
        accept, memory = judged(controller, memory, dt, phi * dt**ORDER)
    assert accept == 1
    assert phi * dt**ORDER == pytest.approx(SET_POINT**ORDER, rel=1e-4)


@every_law
@settings(max_examples=30)
@given(error=st.floats(0.0, 1e12), sign=st.sampled_from([-1.0, 1.0]))
def test_one_step_changes_within_the_limits(name, error, sign):
    controller, memory = begun(name, 0.1 * sign)
    accept, memory = judged(controller, memory, 0.1 * sign, error)
    factor = proposed(controller, memory, t1=sign * 1e9) / (0.1 * sign)
    assert accept == (error <= 1.0)
    lowest, highest = (0.2, 10.0) if name in CLIPPED else (1.0 - math.atan(1.0), 1.0 + math.pi / 2)
    assert lowest - 1e-12 <= factor <= highest + 1e-12
    if error > 1.0:
        assert factor < 1.0


def test_the_limiter_of_the_filters_is_smooth():
    limit = control.smooth_limiter(np.arctan)
    x = np.linspace(0.5, 1.5, 101)
    assert limit(1.0) == 1.0
    np.testing.assert_allclose(np.gradient([limit(v) for v in x], x)[1:-1], 1 / (1 + (x[1:-1] - 1) ** 2), atol=1e-4)
    assert (limit(0.0), limit(1e12)) == pytest.approx((1.0 - math.pi / 4, 1.0 + math.pi / 2))


@every_law
def test_growth_right_after_a_rejection(name):
    """i and pi wait for one step; a filter may grow at once."""
    controller, memory = begun(name)
    _, memory = judged(controller, memory, 0.1, 2.0)
    dt = proposed(controller, memory)
    assert dt < 0.1
    accept, memory = judged(controller, memory, dt, 1e-6)
    assert accept == 1
    if name in CLIPPED:
        assert proposed(controller, memory) == dt
    else:
        assert proposed(controller, memory) > dt


@every_law
@settings(max_examples=20)
@given(errors=st.lists(st.floats(1.0001, 1e6), min_size=1, max_size=4))
def test_history_rolls_back_on_rejection(name, errors):
    """However often a step was rejected, the law sees accepted steps and their errors only."""
    controller, memory = begun(name)
    for error in (0.3, 0.2, 0.5):
        _, memory = judged(controller, memory, proposed(controller, memory), error)
    before = memory.history
    for error in errors:
        accept, memory = judged(controller, memory, proposed(controller, memory), error)
        assert accept == 0
        assert learned(memory.history) == learned(before)
    dt = proposed(controller, memory)
    _, after = judged(controller, memory, dt, 0.7)
    _, direct = judged(controller, memory._replace(history=before), dt, 0.7)
    assert learned(after.history) == learned(direct.history)
    ratio = math.log2(dt / before.last_step) if any(ol.LAWS[name].a) else 0.0  # of steps taken, not proposed
    assert after.history.log_r1 == pytest.approx(ratio, abs=1e-8)


@pytest.mark.parametrize("error", [math.nan, math.inf])
def test_a_step_out_of_the_domain_is_tried_again_at_a_tenth(error):
    controller, memory = begun("h211b")
    accept, after = judged(controller, memory, 0.1, error)
    assert accept == 0
    assert proposed(controller, after) == pytest.approx(0.01)
    assert learned(after.history) == learned(memory.history)


@given(h=st.floats(1e-3, 1e3), remaining=st.floats(1e-6, 1e4))
@example(h=1.0, remaining=1.005)
@example(h=1.0, remaining=1.015)
def test_the_last_step_lands_and_leaves_no_sliver(h, remaining):
    controller, memory = begun("pi", h)
    dt = proposed(controller, memory, t=5.0 - remaining, t1=5.0)
    assert dt <= 1.01 * h
    left = 5.0 - ((5.0 - remaining) + dt)
    assert left == pytest.approx(0.0, abs=1e-12) or left > 0.009 * h


@pytest.mark.parametrize("law", ["i", "h211b"])
@pytest.mark.parametrize("span", [(0.0, 3.002), (3.002, 0.0)])
def test_no_step_exceeds_max_step(law, span):
    """Nor the last one, which is stretched by up to 1 % where that lands on the end."""
    tolerance = ol.adaptive(1e-2, 1e-2, law, first_step=0.3, max_step=0.3)
    run = ol.solve(CIRCLE.replace(t_span=span), ol.DOPRI5, tolerance)
    assert np.abs(run.h).max() <= 0.3 * (1.0 + 1e-9)
    assert np.abs(run.h).max() > 0.29


@pytest.mark.parametrize("first_step", [1e-4, 0.05])
def test_a_given_first_step_is_taken(first_step):
    run = ol.solve(PENDULUM, ol.DOPRI5, ol.adaptive(1e-6, 1e-9, first_step=first_step))
    assert run.h[0] == first_step


def test_a_first_step_beyond_the_span_is_the_span():
    run = ol.solve(CIRCLE.replace(t_span=(0.0, 1e-3)), ol.DOPRI5, ol.adaptive(1e-6, 1e-9, first_step=7.0))
    assert run.h.tolist() == [1e-3]


@pytest.mark.parametrize("method", [ol.HEUN, ol.BS32, ol.RKF45, ol.DOPRI5], ids=lambda m: m.name)
@pytest.mark.parametrize("name", ["van_der_pol", "lorenz", "robertson", "hires", "arenstorf", "heat_1d", "dahlquist"])
@pytest.mark.parametrize("forward", [True, False])
def test_the_automatic_first_step_is_scipys(method, name, forward):
    problem = ol.problems.catalogue()[name]()
    t0, t1 = problem.t_span if forward else problem.t_span[::-1]
    rtol, atol = 1e-6, 1e-8
    slope = problem.slope(t0, problem.u0)
    run = Start(method, lambda t, u, params: problem.slope(t, u), problem.params, t0, t1, problem.u0, slope)
    ours, evaluations = initial_step(run, rtol, atol)
    direction = math.copysign(1.0, t1 - t0)
    order = method.error_order - 1
    theirs = select_initial_step(problem.slope, t0, problem.u0, t1, np.inf, slope, direction, order, rtol, atol)
    assert ours == pytest.approx(theirs, rel=1e-8)
    assert evaluations == 1


def test_fixed_steps_are_counted_not_added():
    run = ol.solve(CIRCLE.replace(t_span=(0.0, 1000.0)), ol.EULER, ol.fixed(0.1), engine="python")
    assert run.steps == 10_000
    np.testing.assert_array_equal(run.t[:-1], 0.1 * np.arange(10_000))
    assert run.t[-1] == 1000.0


@given(t0=st.floats(-10.0, 10.0), span=st.floats(0.5, 20.0), count=st.integers(1, 60), forward=st.booleans())
def test_fixed_steps_land_on_the_end(t0, span, count, forward):
    t1 = t0 + span if forward else t0 - span
    h = abs(t1 - t0) / count
    run = ol.solve(CIRCLE.replace(t_span=(t0, t1)), ol.EULER, ol.fixed(h), engine="python")
    assert run.steps == count
    assert run.t[-1] == t1
    np.testing.assert_allclose(run.h, math.copysign(h, t1 - t0), rtol=1e-6)


def test_a_last_fixed_step_is_shortened():
    run = ol.solve(CIRCLE.replace(t_span=(0.0, 1.0)), ol.RK4, ol.fixed(0.3))
    np.testing.assert_allclose(run.h, [0.3, 0.3, 0.3, 0.1], rtol=1e-12)


def test_a_step_is_smaller_where_one_components_tolerance_is():
    loose = ol.solve(CIRCLE, ol.DOPRI5, ol.adaptive(1e-12, [1e-3, 1e-3]))
    tight = ol.solve(CIRCLE, ol.DOPRI5, ol.adaptive(1e-12, [1e-3, 1e-9]))
    assert tight.steps > 3 * loose.steps


def test_the_error_over_tolerance_is_kept_for_every_step():
    run = ol.solve(PENDULUM, ol.DOPRI5, ol.adaptive(1e-6, 1e-9))
    assert run.error.shape == run.h.shape
    assert (run.error <= 1.0).all()
    assert np.median(run.error) > 0.1


def test_a_gate_needs_only_its_two_halves():
    """A controller with a clock of its own: dt moves time, h multiplies the slope."""
    rhs = Recorder(lambda t, u, params: np.array([1.0]))
    gate = ol.Controller(
        lambda m, t, t1, u, slope: (1.0, 0.25, m), lambda m, *rest: (1, m), lambda run: ((), 0), "gate"
    )
    run = ol.solve(ol.Problem(rhs, [0.0], (0.0, 4.0)), ol.EULER, gate, engine="python")
    assert run.t.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert run.u[:, 0].tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("usual", [ol.adaptive(1e-6), ol.fixed(0.1)], ids=["adaptive", "fixed"])
def test_a_controller_with_one_half_replaced_is_nobodys_but_the_users(usual):
    """Kernels have the halves of odelab's own controllers: where another half decides, there is none."""

    def propose(memory, t, t1, u, slope):
        dt = min(0.01, t1 - t)
        return dt, dt, memory

    slow = dataclasses.replace(usual, propose=propose)
    found = [ol.solve(CIRCLE, ol.DOPRI5, slow, engine=engine).steps for engine in ("python", "auto")]
    assert found[0] == found[1] >= 100 * CIRCLE.t_span[1]
    with pytest.raises(ol.NotCompilable, match=r"the controllers of odelab.fixed and odelab.adaptive only"):
        ol.solve(CIRCLE, ol.DOPRI5, slow, engine="compiled")


def test_a_recorded_controller_replays():
    sizes = (0.5, 0.25, 1.25)
    run = ol.solve(CIRCLE.replace(t_span=(0.0, 2.0)), ol.RK4, replayed(sizes), engine="python")
    assert run.h.tolist() == list(sizes)


def test_the_same_arguments_give_the_same_controller_and_rows_one_of_their_own():
    """Problems remember kernels by the controller: a call that writes it out each time is as short as another."""
    assert ol.adaptive(1e-5, 1e-8) is ol.adaptive(1e-5, 1e-8)
    assert ol.fixed(0.1) is ol.fixed(0.1)
    assert ol.adaptive(1e-5, 1e-8, max_step=1) is not ol.adaptive(1e-5, 1e-8)
    rows = [np.array([1e-8, 1e-7]) for _ in range(2)]
    first, other = (ol.adaptive(1e-5, row) for row in rows)
    rows[0][:] = 1.0
    assert np.array_equal(first.atol, other.atol)


class HashableRow:
    """A row of numbers as other libraries have them: equal to nothing else, and changed in place."""

    def __init__(self, numbers):
        self.numbers = np.array(numbers)

    def __array__(self, dtype=None, copy=None):
        return self.numbers.astype(dtype or float)


def test_what_may_change_makes_a_controller_of_its_own():
    """Objects that can be asked for their hash and change all the same, and a law whose exponents are a list."""
    row = HashableRow([1e-8, 1e-7])
    before = ol.adaptive(1e-5, row)
    row.numbers[0] = 1e-3
    assert ol.adaptive(1e-5, row).atol.tolist() == [1e-3, 1e-7]
    assert before.atol.tolist() == [1e-8, 1e-7]
    assert ol.adaptive(1e-5, law=ol.Law("mine", b=[0.5, -0.25])).law.name == "mine"
    assert ol.adaptive(1e-5, (np.array(1e-8), 1e-7)).atol.tolist() == [1e-8, 1e-7]
