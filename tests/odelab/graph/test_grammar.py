"""Random right-hand sides from the grammars of the engines' tests: none is traced wrongly."""

import warnings

import numpy as np
from hypothesis import HealthCheck, given, settings

from odelab.functions.checking import difference
from odelab.graph.nodes import Untraceable
from tests.odelab.engines.right_hand_sides import OBJECTS, PARTS, right_hand_sides
from tests.odelab.engines.written_functions import functions
from tests.odelab.graph.tracing_of import plain_values, random_states, trace, values
from tests.without import needs_numba

relaxed = settings(deadline=None, suppress_health_check=list(HealthCheck))
SINGLE_PRECISION = ("makes an array of float32", "combines a number with one of float32")
CONDITIONED = 1e-9  # what rounding of a function of the C library may grow to in a handful of expressions


def traced_or_reason(function, form):
    try:
        return trace(function, form, 2, 1)
    except Untraceable as refusal:
        return refusal.reason


def assert_traced_as_it_is(case, refusals: tuple[str, ...]):
    """Equal at random states where the plain function has finite values; where it raises, the graph says so."""
    names = case.build()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            problem = case.problem(names)
        except Exception:
            return
        found = traced_or_reason(names["rhs"], problem.form)
        if isinstance(found, str):
            assert found.startswith(refusals)
            return
        assert difference(found.slopes, names["rhs"], problem.form, (0.0, 1.0), [0.4, -0.3], (0.7,)) is None
        times, states = random_states(count=30)
        graph, raised = values(found, times, states, (0.7,))
        plain, raises = plain_values(found, times, states, (0.7,))
    assert (raised | ~raises).all()
    known = ~raised & np.isfinite(plain).all(axis=1)
    np.testing.assert_allclose(graph[known], plain[known], rtol=CONDITIONED, atol=1e-12)


@needs_numba
@given(functions())
@relaxed
def test_written_functions_are_traced_as_they_are(case):
    assert_traced_as_it_is(case, (*SINGLE_PRECISION, "has more than"))


@needs_numba
@given(right_hand_sides(parts=tuple(PARTS + OBJECTS)))
@relaxed
def test_what_a_function_reaches_is_read_as_it_is(case):
    assert_traced_as_it_is(case, ())
