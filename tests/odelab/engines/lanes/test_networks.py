"""Networks of reactions as chemists write them, with loops that add into `out`."""

import numpy as np
import pytest

import odelab as ol
from tests.odelab.solver_cases import NAMED


def chain(n):
    """n species in a row: each becomes the next one, and is consumed together with it. The first alone is there."""

    def in_place(t, u, rates, out):
        for i in range(n):
            out[i] = 0.0
        for i in range(n - 1):
            flow = rates[i] * u[i] - rates[n - 1 + i] * u[i + 1] * u[i]
            out[i] -= flow
            out[i + 1] += flow

    def component(t, u, rates):
        out = [0.0] * n
        in_place(t, u, rates, out)
        return tuple(out)

    rates = (*np.geomspace(1e3, 0.1, n - 1), *np.geomspace(1.0, 10.0, n - 1))
    start = np.eye(n)[0]
    return [ol.Problem(rhs, start, (0.0, 10.0), rates, name=rhs.__name__) for rhs in (in_place, component)]


@pytest.mark.parametrize("method", [ol.RODAS4, ol.DOPRI5], **NAMED)
@pytest.mark.parametrize("n", [12, pytest.param(40, marks=pytest.mark.slow)])
def test_in_place_ensembles_run_in_lanes_as_those_in_component_form(n, method):
    """12 species had 43 ms a run in plain Python, and 0.02 ms in lanes."""
    rates = np.array(chain(n)[0].params) * np.exp(0.3 * np.random.default_rng(0).standard_normal((5, 2 * n - 2)))
    if method is ol.DOPRI5:
        rates = np.minimum(rates, 20.0)
    in_place, component = (ol.ensemble(problem, method, params=rates) for problem in chain(n))
    assert in_place.engine == "compiled"
    np.testing.assert_array_equal(in_place.u, component.u)
    np.testing.assert_array_equal(in_place.steps, component.steps)
    mass = in_place.u.sum(axis=1)
    np.testing.assert_allclose(mass, 1.0, rtol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("form", [0, 1], ids=["in-place", "component"])
def test_species_that_are_hardly_there_cost_no_attempts(form):
    """The last of 80 species begin at some 1e-310, with few digits: their rows were taken for unsolved systems.

    The compiled run made ten times as many attempts, most of them in plain Python.
    """
    problem = chain(80)[form]
    compiled, plain = (ol.solve(problem, ol.RODAS4, engine=engine) for engine in ("compiled", "python"))
    assert (compiled.steps, compiled.rejected) == (plain.steps, plain.rejected)
    np.testing.assert_allclose(compiled.end_u, plain.end_u, rtol=1e-6, atol=1e-12)
