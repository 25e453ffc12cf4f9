"""Whatever right-hand side people type, every engine answers as plain Python does, or refuses it in words."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import odelab as ol
from tests.odelab.engines.written_functions import functions

relaxed = settings(deadline=None, suppress_health_check=list(HealthCheck))
STEPS = ol.fixed(0.125)


def outcome(run, problem, **options):
    """The states of a run, or the kind of exception that it ends with."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return run(problem, ol.EULER, STEPS, throw=False, **options)
        except ol.NotCompilable:
            return None
        except Exception as error:
            return type(error)


def assert_same(found, wanted):
    if found is None:
        return
    if isinstance(wanted, type) or isinstance(found, type):
        assert found is wanted, (found, wanted)
        return
    assert found.status == wanted.status
    np.testing.assert_allclose(found.step_u, wanted.step_u, rtol=1e-9, atol=1e-12)


def assert_engines_agree(case):
    names = case.build()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            problem = case.problem(names)
        except (ValueError, TypeError, ArithmeticError, IndexError, AttributeError, UnboundLocalError):
            return  # no right-hand side at all: Python itself refuses it at the first call
    wanted = outcome(ol.solve, problem, engine="python")
    assert_same(outcome(ol.solve, problem, engine="compiled"), wanted)
    if case.form in ("component", "list", "early") and not isinstance(wanted, type):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            lanes = ol.ensemble(problem, ol.EULER, STEPS, u0=np.array([problem.u0] * 3))
        if wanted.status == "ok":
            np.testing.assert_allclose(lanes.u, [wanted.end_u] * 3, rtol=1e-9, atol=1e-12)
        else:
            assert set(lanes.status) == {wanted.status}


def importing(t, u, params):
    import math as m

    return -m.cos(u[0]) * u


def test_an_import_within_a_right_hand_side_of_array_form_is_refused_in_words_where_numba_compiles():
    problem = ol.Problem(importing, np.ones(100), (0.0, 1.0))
    with pytest.raises(ol.NotCompilable, match=r"cannot compile.*IMPORT_NAME"):
        ol.solve(problem, ol.RKC2, ol.fixed(0.5), engine="compiled")
    assert ol.solve(problem, ol.EULER, ol.fixed(0.5), engine="compiled").engine == "compiled"


@pytest.mark.slow
@settings(relaxed, max_examples=20)
@given(functions())
def test_whatever_people_type_is_what_python_makes_of_it(case):
    assert_engines_agree(case)
