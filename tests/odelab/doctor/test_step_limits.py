"""What limits explicit steps: laws of the measured limits, and the steps that a run then takes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odelab as ol
from odelab import maths
from odelab.doctor.step_limits import error_constant, step_limits


def decay(t, u, params):
    return (-params[0] * (u[0] - maths.cos(t)),)


def test_the_constant_of_an_error_estimate_is_that_of_the_linear_problem():
    """One step of u' = -u: the estimate of DOPRI5 is its constant times h^5, up to a term of h^6."""
    h = 0.05
    method = ol.DOPRI5
    stages = [1.0]
    for i in range(1, method.stages):
        stages.append(1.0 - h * sum(float(a) * k for a, k in zip(method.a[i], stages, strict=False)))
    error = h * sum(float(b - low) * k for b, low, k in zip(method.b, method.b_low, stages, strict=True))
    assert abs(error) == pytest.approx(error_constant(method) * h**5, rel=2 * h)


def relaxation(t, u, params):
    x, y = u
    return y / params[0], (20.0 * (1.0 - x * x) * y - x) / params[0]


@settings(max_examples=10)
@given(rate=st.floats(20.0, 1e6))
def test_the_stable_step_is_the_boundary_over_the_rate(rate):
    limits = step_limits(ol.Problem(decay, [1.0], (0.0, 5.0), params=(rate,)), 1e-6, 1e-9)
    assert limits.stable == pytest.approx(np.minimum(ol.DOPRI5.real_boundary / rate, 5.0), rel=0.05)


@settings(max_examples=2)
@given(unit=st.sampled_from([1e-9, 1e-3, 1e4]))
def test_another_unit_of_time_changes_no_ratio(unit):
    other = ol.Problem(relaxation, [2.0, 0.0], (0.0, 40.0 * unit), params=(unit,))
    whole = other.replace(t_span=(0.0, 40.0), params=(1.0,))
    mine, theirs = (step_limits(problem, 1e-6, 1e-9) for problem in (whole, other))
    assert theirs.times_more == pytest.approx(mine.times_more, rel=0.03)  # other windows, a little
    assert theirs.share == pytest.approx(mine.share, abs=0.03)


@pytest.mark.parametrize("rtol", [1e-3, pytest.param(1e-6, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    ["van_der_pol", "robertson", "brusselator"]
    + [pytest.param(name, marks=pytest.mark.slow) for name in ("lorenz", "hires", "stiff_linear")],
)
def test_a_run_takes_about_as_many_steps_as_the_limits_say(name, rtol):
    problem = getattr(ol.problems, name)()
    limits = step_limits(problem, rtol, 1e-3 * rtol)
    taken = ol.solve(problem, ol.DOPRI5, ol.adaptive(rtol, 1e-3 * rtol)).steps
    assert 0.6 < limits.steps / taken < 1.6


def test_where_stability_binds_lies_within_the_run_and_in_order():
    limits = step_limits(ol.problems.van_der_pol(mu=100.0), 1e-6, 1e-9)
    ends = np.ravel(limits.binding)
    assert (np.diff(ends) >= 0.0).all()
    assert 0.0 <= ends[0] < ends[-1] <= 200.0
    assert 0.9 < limits.share < 1.0  # all but the jumps
    assert limits.stiff
