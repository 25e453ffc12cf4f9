"""A kernel begins its runs as plain Python does; and what a problem remembers of its last run serves no other run."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import odelab as ol

VAN_DER_POL = ol.problems.van_der_pol(mu=5.0).replace(t_span=(0.0, 0.5))
few = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
sizes = st.floats(1e-12, 1e3)
both = ("compiled", "python")


@few
@given(
    start=st.tuples(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0)),
    scale=sizes,
    span=st.floats(-1.0, 1.0).filter(lambda span: abs(span) > 1e-6),
    rtol=st.sampled_from([1e-3, 1e-6, 1e-9]),
    atol=st.sampled_from([1e-3, 1e-6, 1e-12]),
    largest=st.sampled_from([np.inf, 1e-2, 1e-5]),
    first=st.sampled_from([None, 1e-3, 10.0]),
)
def test_the_first_step_is_that_of_plain_python(start, scale, span, rtol, atol, largest, first):
    problem = VAN_DER_POL.replace(u0=np.multiply(start, scale), t_span=(0.0, span))
    controller = ol.adaptive(rtol, atol, first_step=first, max_step=largest)
    runs = [ol.solve(problem, ol.HEUN, controller, engine=e, max_steps=1, throw=False) for e in both]
    assert runs[0].evaluations == runs[1].evaluations
    assert runs[0].steps == runs[1].steps
    np.testing.assert_allclose(runs[0].h, runs[1].h, rtol=1e-12)
    np.testing.assert_allclose(runs[0].u, runs[1].u, rtol=1e-10, atol=1e-300)


def test_each_component_has_its_own_tolerance_in_the_first_step():
    controllers = [ol.adaptive(1e-6, atol) for atol in ([1e-3, 1e-12], [1e-12, 1e-3])]
    first = [[ol.solve(VAN_DER_POL, ol.HEUN, c, engine=e, throw=False).h[0] for e in both] for c in controllers]
    np.testing.assert_allclose(first[0][0], first[0][1], rtol=1e-12)
    np.testing.assert_allclose(first[1][0], first[1][1], rtol=1e-12)
    assert first[0][0] != first[1][0]


def test_an_error_of_the_right_hand_side_at_the_start_is_that_of_plain_python():
    table = np.array([1.0, 2.0])

    def looked_up(t, u, params):
        return (table[int(u[0])],)

    problem = ol.Problem(looked_up, [0.0], (0.0, 1.0))
    assert ol.solve(problem, ol.HEUN, engine="compiled", throw=False).ok
    for engine in both:
        with pytest.raises(IndexError, match="index 7 is out of bounds"):
            ol.solve(problem.piece(0.0, 1.0, [7.0]), ol.HEUN, engine=engine)


def test_a_problem_solved_again_by_something_else_is_solved_by_that():
    """What a run compiles to is remembered with the problem."""
    asked = [
        (ol.HEUN, ol.adaptive(1e-4), None),
        (ol.HEUN, ol.adaptive(1e-7), None),
        (ol.HEUN, ol.fixed(0.01), None),
        (ol.MIDPOINT, ol.fixed(0.01), None),
        (ol.HEUN, ol.fixed(0.01), lambda u: np.minimum(u, 1.0)),
    ]
    for method, controller, project in [*asked, *reversed(asked)]:
        one, other = (ol.solve(VAN_DER_POL, method, controller, project=project, engine=engine) for engine in both)
        assert (one.method, one.controller.name, one.engine) == (method, controller.name, "compiled")
        assert one.steps == other.steps
        np.testing.assert_allclose(one.u, other.u, rtol=1e-10)
