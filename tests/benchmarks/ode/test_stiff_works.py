"""What the page on stiff problems says without a clock: that errors follow the tolerance, and what AUTO costs."""

import numpy as np
import pytest

import odelab as ol
from benchmarks.harness.rows import below
from benchmarks.ode import stiff_cases, stiff_works, works

SINGLES = stiff_cases.singles()


def test_a_line_goes_through_points_on_it_and_the_scatter_is_their_distance():
    x = np.linspace(-10.0, -3.0, 15)
    slope, scatter = stiff_works.line_through(x, 0.9 * x - 1.0)
    assert slope == pytest.approx(0.9)
    assert scatter < 1e-12
    _, scatter = stiff_works.line_through(x, 0.9 * x + 0.3 * (-1.0) ** np.arange(15))
    assert scatter == pytest.approx(0.3, rel=0.05)


def test_a_goal_may_have_two_sides():
    goal = below(1.15, least=0.75)
    assert [goal.reached(value, None) for value in (0.7, 0.8, 1.2)] == [False, True, False]
    assert goal.text("") == "0.750 to 1.15"


@pytest.mark.slow
@pytest.mark.parametrize("method", [ol.RODAS4, ol.RODAS5P], ids=lambda method: method.name)
@pytest.mark.parametrize("case", SINGLES, ids=lambda case: case.key)
def test_errors_follow_the_tolerance_on_every_stiff_reference(case, method):
    """Slopes of 0.75 to 1.15 are the goal; docs/stiff.md names the two problems that miss it, and why.

    Those of E5 are chance in part: with rates that differ in their last bits RODAS4 has 1.18 to 1.29, RODAS5P 0.66 to
    0.82, and scatters of 0.26 to 0.43.
    """
    rtols = 10.0 ** -np.arange(3.0, 7.1 if case.key == "e5" else 10.1, 0.5)
    errors = [
        case.error(
            ol.solve(
                case.problem, method, ol.adaptive(rtol, rtol * case.atol), engine="compiled", max_steps=10**7
            ).end_u
        )
        for rtol in rtols.tolist()
    ]
    slope, scatter = stiff_works.line_through(np.log10(rtols), np.log10(errors))
    least, most = {"e5": (0.55, 1.35), "hires": (0.75, 1.25)}.get(case.key, (0.75, 1.15))
    assert least < slope < most
    assert scatter < (0.5 if case.key == "e5" else 0.45)


# What AUTO costs where explicit steps are right throughout: five evaluations before the first step, which save others
# from raising oscillations, and one or two trials. In runs of 110 to 400 evaluations, of which one attempt more takes
# two per cent, that can be more than the goal of 1.05: 1.055, 1.094 and 1.041 here.
SHORT_RUNS = {"dahlquist": 1.1, "burgers_1d": 1.15, "davis_skodje": 1.08}


@pytest.mark.slow
def test_auto_costs_little_more_than_the_better_method_on_the_whole_catalogue():
    rows = list(stiff_works.switching(works.Size()))
    assert len(rows) > 25
    ratios = {row.work: row.ratio for row in rows}
    assert ratios["median of the catalogue"] <= 1.1
    above = {name for name, ratio in ratios.items() if ratio > 1.5} - {"worst of the catalogue"}
    assert above == set()
    for row in rows:
        assert row.peer != "DOPRI5" or row.ratio <= SHORT_RUNS.get(row.work, 1.05)
