"""h * rho from twin stages: right wherever it is told, and not told where only rounding is left between them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import odelab as ol
from odelab.runs import h_rho as stability

WITH_TWINS = [method for method in ol.METHODS.values() if method.twin_stages]
by_name = {"ids": lambda method: method.name}


def relaxing(t, u, params):
    """Towards 1 at a rate that is the spectral radius."""
    (rate,) = params
    return (-rate * (u[0] - 1.0),)


def resting(rate=50.0):
    return ol.Problem(relaxing, [1.0], (0.0, 1.0), (rate,))


@given(
    method=st.sampled_from(WITH_TWINS),
    distance=st.floats(-16.0, 1.0).map(lambda exponent: 10.0**exponent),
    part=st.floats(0.01, 3.0),
    rate=st.floats(0.1, 1e6),
)
def test_what_is_told_is_right_however_near_the_solution_stands_to_rest(method, distance, part, rate):
    h = part / rate
    (found,) = stability.h_rho(resting(rate), method, np.zeros(1), np.array([[1.0 + distance]]), np.array([h]))
    assert np.isnan(found) or found == pytest.approx(part, rel=1e-3)
    if distance > 1e-3 and part > 0.5:
        assert found == pytest.approx(part, rel=1e-6)


@pytest.mark.parametrize("method", WITH_TWINS, **by_name)
@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_at_rest_nothing_is_told(method, engine):
    run = ol.solve(resting(), method, ol.fixed(0.05), engine=engine)
    assert run.steps == 20
    assert np.isnan(run.h_rho).all()
    many = ol.ensemble(resting(), method, ol.fixed(0.05), u0=[[1.0], [2.0]], maxima=True, engine=engine)
    assert np.isnan(many.h_rho_max[0])
    assert many.h_rho_max[1] == pytest.approx(2.5, rel=1e-3)  # the largest may be the last told


def test_a_large_system_at_rest_tells_nothing_either():
    heat = ol.problems.heat_1d(40).replace(t_span=(0.0, 0.001))
    still = heat.replace(u0=np.zeros(40))
    for problem, told in ((heat, True), (still, False)):
        run = ol.solve(problem, ol.DOPRI5, ol.fixed(1e-4), engine="compiled")
        assert np.isfinite(run.h_rho).all() == told


def test_indicators_fill_in_from_the_spectra():
    problem = resting()
    run = ol.solve(problem, ol.DOPRI5, ol.fixed(0.05))
    np.testing.assert_allclose(ol.indicators(problem, run).h_rho, 50.0 * run.h, rtol=1e-12)
    assert np.isnan(ol.indicators(problem, run, every=0).h_rho).all()
