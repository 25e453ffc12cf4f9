"""The state of a run is the run's own: no function of the user's changes it, whatever it writes to."""

import numpy as np
import pytest

import odelab as ol

DECAY = ol.Problem(lambda t, u, params: (-u[0],), [1.0], (0.0, 1.0))
CIRCLE = ol.Problem(lambda t, u, params: np.array([u[1], -u[0]]), [1.0, 0.0], (0.0, 5.0))


def clipped_array(t, u, params):
    if u[0] < 0.5:
        u[0] = 0.5
    return -u


def clipped_component(t, u, params):
    if u[0] < 0.5:
        u[0] = 0.5
    return (-u[0],)


@pytest.mark.parametrize("rhs", [clipped_array, clipped_component])
@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RKC2, ol.RADAU])
def test_a_right_hand_side_that_writes_to_its_state_late_is_refused_as_soon_as_it_does(rhs, method):
    with pytest.raises(ValueError, match="read-only"):
        ol.solve(ol.Problem(rhs, [1.0], (0.0, 1.0)), method, engine="python")


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RADAU])
def test_an_event_cannot_write_to_the_state(method, terminal):
    def lowered(t, u, params):
        u[0] -= 0.5
        return u[0]

    with pytest.raises(ValueError, match="read-only"):
        ol.solve(DECAY, method, events=ol.Event(lowered, terminal=terminal), engine="python")


def test_a_jacobian_cannot_write_to_the_state():
    def spoiling(t, u, params):
        u[0] = 7.0
        return np.array([[-1.0]])

    problem = DECAY.replace(jacobian=spoiling)
    run = ol.solve(problem, ol.DOPRI5, engine="python")
    for call in (
        lambda: ol.solve(problem, ol.RADAU),
        lambda: ol.jacobian(problem),
        lambda: ol.indicators(problem, run),
    ):
        with pytest.raises(ValueError, match="read-only"):
            call()


@pytest.mark.parametrize(
    "engine", ["python", pytest.param("compiled", marks=pytest.mark.slow)]
)  # a kernel of RKC2 takes long to compile
def test_a_spectral_radius_cannot_write_to_the_state(engine):
    def spoiling(t, u, params):
        u[0] = 5.0
        return 1.0

    words = r"read-only|readonly|cannot compile spoiling: No implementation of function .*setitem"
    with pytest.raises((ValueError, ol.NotCompilable), match=words):
        ol.solve(DECAY, ol.rkc2(spoiling), engine=engine)


def lifted_in_place(u):
    u[u < -0.5] = -0.5
    return u


def lifted(u):
    return np.maximum(u, -0.5)


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_a_projection_may_write_into_what_it_is_given(engine):
    """DOPRI5 knows the slope at the state before the projection, which is not that at the state after it."""
    one, other = (
        ol.solve(CIRCLE, ol.DOPRI5, ol.fixed(0.5), project=project, engine=engine)
        for project in (lifted_in_place, lifted)
    )
    np.testing.assert_array_equal(one.u, other.u)
    assert one.u.min() == -0.5


def test_a_projection_that_changes_the_number_of_components_later_is_refused():
    def shrinking(u):
        return u if u[0] > 0.5 else u[:1]

    with pytest.raises(ValueError, match="`project` returned something else"):
        ol.solve(CIRCLE, ol.DOPRI5, ol.fixed(0.1), project=shrinking, engine="python")


def test_the_states_of_a_run_cannot_be_written_to_because_its_dense_output_starts_from_them():
    for options in ({}, {"t_eval": [0.0, 2.0]}, {"tstops": [2.0]}):
        run = ol.solve(CIRCLE, ol.DOPRI5, engine="python", **options)
        for values in (run.u, run.t, run.step_u, run.step_t):
            with pytest.raises(ValueError, match="read-only"):
                values *= 2.0
