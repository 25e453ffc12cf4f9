"""Steps in which a component stops being stiff: what is said of their ends is true, and said only where it matters."""

import math

import numpy as np
import pytest

import odelab as ol
from odelab.runs.interior import WORTH_SAYING
from odelab.runs.loosened import end_error
from tests.odelab.solver_cases import NAMED


def switching(t, u, params):
    """A component that follows a sine, fast in every second unit of time and slow in the others; sin t all the same."""
    return (-(1e5 if math.floor(t) % 2 else 1.0) * (u[0] - math.sin(t)) + math.cos(t),)


SWITCHING = ol.Problem(switching, [0.0], (0.0, 10.0))


@pytest.mark.parametrize("method", [ol.RODAS4, ol.RODAS5P, ol.AUTO], **NAMED)
@pytest.mark.parametrize("rtol", [1e-4, 1e-6])
def test_wrong_ends_are_named(method, rtol):
    """RODAS5P was wrong by 0.55 at rtol 1e-4, and its message praised the ends of its steps."""
    sol = ol.solve(SWITCHING, method, ol.adaptive(rtol, 1e-2 * rtol), engine="python")
    scaled = np.abs(sol.step_u[:, 0] - np.sin(sol.step_t)) / (1e-2 * rtol + rtol * np.abs(sol.step_u[:, 0]))
    found = end_error(sol)
    assert WORTH_SAYING < found.ratio < 10.0 * scaled[sol.step_t == found.t][0]
    assert "a stiff component stopped being stiff within a step" in sol.message
    assert "inside its steps" not in sol.message


@pytest.mark.parametrize("rtol", [1e-4, 1e-6])
def test_the_advice_helps(rtol):
    sol = ol.solve(SWITCHING, ol.ESDIRK43, ol.adaptive(rtol, 1e-2 * rtol), engine="python")
    assert np.abs(sol.step_u[:, 0] - np.sin(sol.step_t)).max() < 10.0 * rtol
    assert "stopped being stiff" not in sol.message


@pytest.mark.parametrize("name", ["robertson", "oregonator", "hires", "van_der_pol", "fitzhugh_nagumo", "kepler"])
@pytest.mark.parametrize("method", [ol.RODAS4, ol.RODAS5P], **NAMED)
def test_where_ends_are_right_nothing_is_said(name, method):
    sol = ol.solve(getattr(ol.problems, name)(), method, ol.adaptive(1e-5, 1e-8))
    assert end_error(sol).ratio < 0.2 * WORTH_SAYING
    assert "stopped being stiff" not in sol.message


def test_a_jump_at_the_end_of_a_step_is_no_error():
    """The last step ends just before its component stops being stiff."""
    sol = ol.solve(
        SWITCHING.replace(t_span=(1.0, np.nextafter(2.0, 1.0)), u0=[math.sin(1.0)]), ol.RODAS4, engine="python"
    )
    assert end_error(sol).ratio < 1.0


def test_runs_that_have_no_such_steps():
    for sol in (
        ol.solve(ol.problems.lorenz().replace(t_span=(0.0, 1.0)), ol.DOPRI5),
        ol.solve(SWITCHING.replace(t_span=(0.0, 1.0)), ol.RODAS4, ol.fixed(0.1), engine="python"),
        ol.solve(SWITCHING.replace(t_span=(0.0, 1.0)), ol.BDF),
    ):
        assert end_error(sol) is None
