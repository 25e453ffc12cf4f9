"""What the page on stiff problems says without a clock: that errors follow the tolerance."""

import numpy as np
import pytest

import odelab as ol
from benchmarks.harness.rows import below
from benchmarks.ode import stiff_cases
from benchmarks.ode.works import stiff

SINGLES = stiff_cases.singles()


def test_a_line_goes_through_points_on_it_and_the_scatter_is_their_distance():
    x = np.linspace(-10.0, -3.0, 15)
    slope, scatter = stiff.line_through(x, 0.9 * x - 1.0)
    assert slope == pytest.approx(0.9)
    assert scatter < 1e-12
    _, scatter = stiff.line_through(x, 0.9 * x + 0.3 * (-1.0) ** np.arange(15))
    assert scatter == pytest.approx(0.3, rel=0.05)


def test_a_goal_may_have_two_sides():
    goal = below(1.15, least=0.75)
    assert [goal.is_reached(value, None) for value in (0.7, 0.8, 1.2)] == [False, True, False]
    assert goal.text("") == "0.750 to 1.15"


def proportion(case, method, params) -> tuple[float, float]:
    """Slope and scatter of log error over log rtol, for one of the stiff references with these parameters."""
    rtols = 10.0 ** -np.arange(3.0, 7.1 if case.key == "e5" else 10.1, 0.5)
    problem = case.problem.replace(params=params)
    errors = [
        case.error(
            ol.solve(problem, method, ol.adaptive(rtol, rtol * case.atol), engine="compiled", max_steps=10**7).end_u
        )
        for rtol in rtols.tolist()
    ]
    return stiff.line_through(np.log10(rtols), np.log10(errors))


@pytest.mark.slow
@pytest.mark.parametrize("method", [ol.RODAS4, ol.RODAS5P], ids=lambda method: method.name)
@pytest.mark.parametrize("case", [case for case in SINGLES if case.key != "e5"], ids=lambda case: case.key)
def test_errors_follow_the_tolerance_on_every_stiff_reference(case, method):
    """Slopes of 0.75 to 1.15 are the goal; docs/speed.md names the two problems that miss it, and why."""
    slope, scatter = proportion(case, method, case.problem.params)
    assert 0.75 < slope < (1.25 if case.key == "hires" else 1.15)
    assert scatter < 0.45


@pytest.mark.slow
@pytest.mark.parametrize(("method", "expected"), [(ol.RODAS4, 1.27), (ol.RODAS5P, 0.75)], ids=["RODAS4", "RODAS5P"])
def test_errors_on_e5_follow_the_tolerance_as_far_as_its_rounding_lets_them(method, expected):
    """One slope hangs on the last bits of the rates, with a deviation of 0.06 to 0.09; the mean of 24 does not."""
    (case,) = (case for case in SINGLES if case.key == "e5")
    generator = np.random.default_rng(0)
    changes = 1.0 + np.finfo(float).eps * generator.integers(-4, 5, (24, len(case.problem.params)))
    found = np.array([proportion(case, method, tuple(np.multiply(case.problem.params, one))) for one in changes])
    slope, scatter = found.mean(axis=0)
    assert slope == pytest.approx(expected, abs=0.05)
    assert scatter < 0.45
