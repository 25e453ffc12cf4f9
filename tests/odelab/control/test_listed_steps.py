"""Steps that end at listed times, as a run is repeated with parts of its own steps."""

import itertools
import pickle

import numpy as np
import pytest

import odelab as ol
from odelab.control.controllers import listed
from tests.odelab.solver_cases import NAMED, PENDULUM

ENDS = np.array([0.125, 0.25, 0.5, 0.5625, 1.0])  # sums of powers of two: a size is exact


CASES = [
    *itertools.product((ol.RK4, ol.DOPRI5, ol.RODAS4, ol.ESDIRK43), ("python", "compiled")),
    (ol.RKC2, "python"),
    pytest.param(ol.RKC2, "compiled", marks=pytest.mark.slow),  # by numba, half a minute
]


@pytest.mark.parametrize(("method", "engine"), CASES, **NAMED)
@pytest.mark.parametrize("back", [False, True], ids=["forwards", "backwards"])
def test_listed_steps_end_where_they_are_told(method, engine, back):
    """They are fixed steps, one after the other."""
    start, ends = (1.0, 1.0 - ENDS) if back else (0.0, ENDS)
    problem = PENDULUM.replace(t_span=(start, float(ends[-1])))
    run = ol.solve(problem, method, listed(ends), engine=engine)
    np.testing.assert_array_equal(run.step_t, [start, *ends])
    t, u = start, problem.u0
    for end in ends:
        u = ol.solve(problem.piece(t, end, u), method, ol.fixed(abs(end - t)), engine=engine).end_u
        t = end
    np.testing.assert_allclose(run.end_u, u, rtol=1e-14)


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4], **NAMED)
def test_listed_steps_of_large_systems(method):
    problem = ol.problems.heat_1d(n=200).replace(t_span=(0.0, 1e-4))
    ends = 1e-4 * ENDS
    plain, compiled = (ol.solve(problem, method, listed(ends), engine=engine) for engine in ("python", "compiled"))
    np.testing.assert_array_equal(compiled.step_t, plain.step_t)
    np.testing.assert_allclose(compiled.end_u, plain.end_u, rtol=1e-12)
    assert (compiled.engine, compiled.steps, compiled.evaluations) == ("compiled", plain.steps, plain.evaluations)


def test_listed_steps_and_parameters():
    """Both are handed to a kernel in one row of numbers."""
    problem = ol.Problem(lambda t, u, params: (-params[0] * u[0] + params[1],), [1.0], (0.0, 1.0), (2.0, 3.0))
    plain, exact = (ol.solve(problem, ol.RK4, listed(ENDS), engine=engine, exact=True) for engine in ("python", "auto"))
    np.testing.assert_array_equal(plain.u, exact.u)
    many = ol.ensemble(problem, ol.RK4, listed(ENDS), params=[[2.0, 3.0], [1.0, 0.0]])
    np.testing.assert_allclose(many.u[0], plain.end_u, rtol=1e-14)
    assert (many.steps == len(ENDS)).all()


def test_listed_steps_end_at_stops_too():
    """Where a run is cut, the list goes on from there."""
    problem = PENDULUM.replace(t_span=(0.0, 1.25))
    run = ol.solve(problem, ol.RK4, listed(ENDS), tstops=[0.3, 0.5])
    np.testing.assert_array_equal(run.step_t, [0.0, 0.125, 0.25, 0.3, 0.5, 0.5625, 1.0, 1.25])
    copy = pickle.loads(pickle.dumps(listed(ENDS)))
    np.testing.assert_array_equal(copy.ends, ENDS)
    assert str(copy) == "listed(5 ends)"


@pytest.mark.parametrize("wrong", [[0.0, 1.0, 0.5], [0.0, np.nan], [0.5, 0.5], [[0.5]], 0.5], ids=str)
def test_ends_have_to_be_sorted(wrong):
    with pytest.raises(ValueError, match="`ends`"):
        listed(wrong)
