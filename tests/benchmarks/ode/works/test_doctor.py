"""The problems of the literature on which the doctor is judged, and the judgement."""

import numpy as np
import pytest

import odelab as ol
from benchmarks.ode.literature import literature
from benchmarks.ode.works import doctor
from odelab.doctor.costs import ALIKE, Exactness

# Ends as published, or by exact solutions.
ENDS = {
    "DETEST A2": [21.0**-0.5],
    "DETEST A4, logistic": [20.0 / (1.0 + 19.0 * np.exp(-5.0))],
    "DETEST B2, linear reactions": [1.0 + np.exp(-20.0), 1.0, 1.0 - np.exp(-20.0)],
    "STIFF D1": [22.24222011, 27.11071334, 400.0],
    "STIFF D4": [0.5976546980, 1.4023434085, -1.893386540e-6],
    "STIFF D5": [-0.9916420698, 0.9833363588],
}


def test_there_are_thirty_and_none_of_them_is_in_the_catalogue():
    found = literature()
    assert len(found) == 30
    starts = [factory() for factory in ol.problems.catalogue().values()]
    for known in found.values():
        for other in starts:
            if known.problem.size == other.size:
                u = np.linspace(0.3, 0.7, other.size)
                assert not np.allclose(known.problem.slope(0.5, u), other.slope(0.5, u))


@pytest.mark.parametrize("name", ENDS)
def test_ends_are_those_that_are_known(name):
    problem, smallest = literature()[name]
    end = ol.solve(problem, ol.AUTO, ol.adaptive(1e-9, 1e-12 * smallest)).end_u
    np.testing.assert_allclose(end, ENDS[name], rtol=1e-6)


def test_the_cheapest_run_of_a_method_makes_the_error():
    problem = literature()["DETEST B1, populations"].problem
    t, u = doctor.reference(problem, 1e-5, 1e-8)
    sharp = ol.solve(problem, ol.DOP853, ol.adaptive(1e-12, 1e-14), t_eval=t, t_eval_by="step").u
    np.testing.assert_allclose(u, sharp, rtol=1e-7)
    exact = Exactness(t, u, 1e-5, 1e-8)
    goal = doctor.error_of(problem, ol.AUTO, ol.adaptive(1e-5, 1e-8), exact)
    for method in (ol.BS32, ol.RODAS4):
        _, _, controller = doctor.cheapest(problem, method, 1e-5, 1e-8, exact, goal)
        assert doctor.error_of(problem, method, controller, exact) <= ALIKE * goal


@pytest.mark.slow
def test_advice_is_set_against_the_best_of_all_methods():
    found = doctor.judge(literature()["STIFF D4"].problem, 1e-4, 1e-12)
    assert found.ratio >= 1.0
    assert found.seconds[0] == pytest.approx(found.ratio * found.seconds[1])
    assert "DOPRI5" not in (found.advised, found.best)  # whose steps stability limits
