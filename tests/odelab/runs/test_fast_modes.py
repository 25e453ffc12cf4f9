"""What `print` says of the stiff components of a run: where it is known, and from states of the run alone."""

import numpy as np
import pytest

import odelab as ol

STIFF = "  stiff   "


def line(sol) -> str:
    return next((text.removeprefix(STIFF) for text in str(sol).splitlines() if text.startswith(STIFF)), "")


@pytest.mark.parametrize("method", [ol.ROS2, ol.RODAS4, ol.RODAS5P, ol.ESDIRK43, ol.AUTO, ol.RADAU, ol.BDF, ol.RKC2])
def test_stiff_runs_of_every_method_name_the_component(method):
    problem = ol.problems.robertson().replace(t_span=(0.0, 10.0))
    said = line(ol.solve(problem, method, ol.adaptive(1e-4, 1e-8)))
    assert said.startswith("fast mode: decays at ")
    assert "100 % u[1] at t = " in said


@pytest.mark.parametrize("engine", ["compiled", "python"])
def test_an_explicit_run_that_is_held_back_says_why(engine):
    problem = ol.Problem(lambda t, u, params: (-1000.0 * (u[0] - u[1]), -u[1]), [1.0, 1.0], (0.0, 1.0))
    sol = ol.solve(problem, ol.DOPRI5, engine=engine)
    assert sol.held_back
    assert "fast mode: decays at 1e+03, 100 % u[0] at t = " in str(sol)


def counted(calls):
    """A stiff problem whose right-hand side writes down the states it is called with, unless they are dual numbers."""

    def rhs(t, u, params):
        calls.append(np.array(u) if isinstance(u, np.ndarray) else None)
        return np.array([-1e4, -1.0]) * u

    return ol.Problem(rhs, [1.0, 1.0], (0.0, 10.0))


def test_it_is_computed_once_and_only_when_it_is_printed():
    calls = []
    sol = ol.solve(counted(calls), ol.RODAS4, engine="python")
    sol.message  # noqa: B018
    before = len(calls)
    assert line(sol)
    printed = len(calls)
    assert before < printed <= before + 30
    assert line(sol)
    assert len(calls) == printed


def test_the_right_hand_side_is_called_at_states_of_the_run_alone():
    calls = []
    sol = ol.solve(counted(calls), ol.RODAS4, engine="python")
    sol.message  # noqa: B018
    calls.clear()
    assert line(sol)
    known = {state.tobytes() for state in sol.step_u}
    assert all(state is None or state.tobytes() in known for state in calls)


def mild(method):
    """A run whose modes have a gap, and whose steps are shorter than either needs."""
    problem = ol.Problem(lambda t, u, params: (-10.0 * u[0] + u[1], -u[1]), [1.0, 1.0], (0.0, 1.0))
    return ol.solve(problem, method, ol.adaptive(1e-9, 1e-12))


def untraceable(t, u, params):
    return np.array([-1e4, -1.0]) * np.array(u.tolist())  # no dual numbers


@pytest.mark.parametrize(
    ("what", "sol"),
    [
        ("no gap", lambda: ol.solve(ol.problems.heat_1d(n=12), ol.RODAS4)),
        ("many components", lambda: ol.solve(ol.problems.heat_1d(), ol.RODAS4)),
        ("one component", lambda: ol.solve(ol.problems.stiff_linear(), ol.RODAS4)),
        ("not held back", lambda: mild(ol.BS32)),
        ("steps are short", lambda: mild(ol.RODAS5P)),
        ("no states", lambda: ol.solve(ol.problems.robertson(), ol.RODAS4, dense=False)),
        ("no steps", lambda: ol.solve(ol.problems.robertson(), ol.RODAS4, max_steps=3, throw=False)),
        (
            "differences",
            lambda: ol.solve(ol.Problem(untraceable, [1.0, 1.0], (0.0, 10.0)), ol.RODAS4, engine="python"),
        ),
    ],
)
def test_nothing_is_said_where_nothing_is_known(what, sol):
    assert line(sol()) == ""
