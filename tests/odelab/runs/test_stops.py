"""Stops: a right-hand side that jumps at one is seen on the side of each piece alone, by every engine."""

from math import floor

import numpy as np
import pytest

import odelab as ol
from tests.odelab.solver_cases import NAMED

JUMPS = np.arange(1.0, 10.0)
ENGINES = ["python", "compiled"]


def switched(t, u, params):
    """The solution is sin t for every rate: what is found beside it is the error."""
    rate = params[0] if floor(t) % 2 else 1.0
    return (-rate * (u[0] - ol.maths.sin(t)) + ol.maths.cos(t),)


def switched_rows(t, u, params):
    rate = params[0] if floor(t) % 2 else 1.0
    return -rate * (u - np.sin(t)) + np.cos(t)


def square_wave(t, u, params):
    return (-(u[0] - floor(t) % 2),)


def mirrored_wave(t, u, params):
    return (u[0] - floor(-t) % 2,)


def answer_to_square_wave(times):
    found = []
    for t in times:
        u = 0.0
        for k in range(int(np.ceil(t))):
            u = k % 2 + (u - k % 2) * np.exp(-min(1.0, t - k))
        found.append(u)
    return np.array(found)


SWITCHED = ol.Problem(switched, [0.0], (0.0, 10.0), (1e5,))
WAVE = ol.Problem(square_wave, [0.0], (0.0, 10.0))
MIRRORED = ol.Problem(mirrored_wave, [0.0], (0.0, -10.0))
ROWS = ol.Problem(switched_rows, np.zeros(120), (0.0, 10.0), (1e5,))


def far_from_sine(sol):
    return np.abs(sol.step_u - np.sin(sol.step_t)[:, None]).max()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rtol", [1e-4, 1e-6])
@pytest.mark.parametrize("method", [ol.RODAS4, ol.RODAS5P, ol.ESDIRK43, ol.AUTO], **NAMED)
def test_a_jump_of_stiffness_at_a_stop_costs_no_accuracy(method, rtol, engine):
    sol = ol.solve(SWITCHED, method, ol.adaptive(rtol, 0.01 * rtol), tstops=JUMPS, engine=engine)
    assert far_from_sine(sol) < 3.0 * rtol
    assert sol.rejected <= (5 if method is not ol.AUTO else 30)
    assert np.isin(JUMPS, sol.step_t).all()


def test_a_jump_of_a_million_is_stepped_over_at_its_stop():
    sol = ol.solve(SWITCHED.replace(params=(1e6,)), ol.RODAS4, ol.adaptive(1e-6, 1e-8), tstops=JUMPS)
    assert far_from_sine(sol) < 1e-6


@pytest.mark.parametrize("engine", ENGINES)
def test_large_systems_have_stops_too(engine):
    sol = ol.solve(ROWS, ol.RODAS4, ol.adaptive(1e-6, 1e-8), tstops=JUMPS, engine=engine)
    assert far_from_sine(sol) < 1e-6
    assert sol.rejected <= 5


BY_NUMBA = pytest.param(ol.RKC2, "compiled", marks=pytest.mark.slow)  # ten seconds to compile


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    ("method", "engine"),
    [
        *((method, engine) for method in (ol.DOPRI5, ol.DOP853, ol.RODAS5P) for engine in ENGINES),
        (ol.RKC2, "python"),
        BY_NUMBA,
    ],
    **NAMED,
)
def test_a_square_wave_is_answered_as_if_each_piece_were_alone(method, backwards, engine):
    problem, control = MIRRORED if backwards else WAVE, ol.adaptive(1e-6, 1e-9)
    stops = -JUMPS if backwards else JUMPS
    sol = ol.solve(problem, method, control, tstops=stops, engine=engine)
    expected = answer_to_square_wave(np.abs(sol.step_t))
    assert np.abs(sol.step_u[:, 0] - expected).max() < (1e-5 if method is ol.RKC2 else 1e-7)
    assert sol.rejected == 0
    times = np.linspace(0.0, 10.0, 777)
    inside = sol(-times if backwards else times)[:, 0]
    assert np.abs(inside - answer_to_square_wave(times)).max() < 1e-5


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4], **NAMED)
def test_a_run_cut_at_stops_is_the_pieces_one_after_the_other(method, engine):
    """Where nothing jumps, a stop is a new beginning and nothing else."""
    problem, control = ol.problems.van_der_pol(5.0).replace(t_span=(0.0, 10.0)), ol.adaptive(1e-6, 1e-9)
    sol = ol.solve(problem, method, control, tstops=[3.0, 7.0], engine=engine)
    u, times, states = problem.u0, [np.zeros(1)], [problem.u0[None]]
    for span in ((0.0, 3.0), (3.0, 7.0), (7.0, 10.0)):
        piece = ol.solve(problem.replace(u0=u, t_span=span), method, control, engine=engine)
        u = piece.end_u
        times.append(piece.step_t[1:])
        states.append(piece.step_u[1:])
    np.testing.assert_array_equal(sol.step_t, np.concatenate(times))
    np.testing.assert_array_equal(sol.step_u, np.concatenate(states))


@pytest.mark.parametrize("engine", ENGINES)
def test_an_event_in_time_that_changes_nothing_is_a_stop(engine):
    control = ol.adaptive(1e-6, 1e-8)
    at_five = ol.Event(lambda t, u, params: t - 5.0, change=lambda t, u, params: u)
    by_event = ol.solve(SWITCHED, ol.RODAS4, control, tstops=np.delete(JUMPS, 4), events=at_five, engine=engine)
    by_stop = ol.solve(SWITCHED, ol.RODAS4, control, tstops=JUMPS, engine=engine)
    assert far_from_sine(by_event) < 1e-6 > far_from_sine(by_stop)
    assert np.isclose(by_event.step_t, 5.0, rtol=0, atol=1e-14).sum() == 1
    behind = [(sol.step_t > 5.0 + 1e-9).sum() for sol in (by_event, by_stop)]
    assert abs(behind[0] - behind[1]) <= 1


def test_exact_bits_at_stops():
    control = ol.adaptive(1e-6, 1e-8)
    plain, compiled = (
        ol.solve(SWITCHED, ol.RODAS4, control, tstops=JUMPS, exact=True, engine=engine) for engine in ENGINES
    )
    np.testing.assert_array_equal(plain.step_t, compiled.step_t)
    np.testing.assert_array_equal(plain.step_u, compiled.step_u)
    assert far_from_sine(plain) < 1e-6


def test_a_problem_s_own_jacobian_belongs_to_the_piece():
    def jacobian(t, u, params):
        return np.array([[-(params[0] if floor(t) % 2 else 1.0)]])

    sol = ol.solve(
        SWITCHED.replace(jacobian=jacobian), ol.RODAS4, ol.adaptive(1e-6, 1e-8), tstops=JUMPS, engine="python"
    )
    assert far_from_sine(sol) < 1e-6
    assert sol.rejected <= 5


def test_derivatives_by_differences_stay_on_their_side():
    """`searchsorted` on the state cannot be followed by dual numbers."""

    def opaque(t, u, params):
        here = float(u[0])
        return (-(1e5 if floor(t) % 2 else 1.0) * (here - np.sin(float(t))) + np.cos(float(t)),)

    sol = ol.solve(
        ol.Problem(opaque, [0.0], (0.0, 10.0)), ol.RODAS4, ol.adaptive(1e-5, 1e-7), tstops=JUMPS, engine="python"
    )
    assert far_from_sine(sol) < 1e-4


@pytest.mark.parametrize("method", [ol.BDF, ol.RADAU], **NAMED)
def test_scipy_s_methods_have_stops_too(method):
    sol = ol.solve(SWITCHED, method, ol.adaptive(1e-6, 1e-8), tstops=JUMPS)
    assert far_from_sine(sol) < 1e-4


def test_stops_a_few_spacings_apart():
    close = [5.0, np.nextafter(5.0, 6.0), 5.0 + 20 * np.spacing(5.0)]
    sol = ol.solve(WAVE, ol.DOPRI5, ol.adaptive(1e-6, 1e-9), tstops=[*JUMPS[:4], *close, *JUMPS[5:]])
    assert np.abs(sol.step_u[:, 0] - answer_to_square_wave(sol.step_t)).max() < 1e-7


@pytest.mark.slow
def test_a_problem_that_has_run_without_stops_has_them_all_the_same():
    """A problem remembers the plan of its last run, which is for another window of times."""

    def wave(t, u, params, out):
        (rate,) = params
        for i in range(len(u)):
            out[i] = -rate * (u[i] - floor(t) % 2)

    problem, control = ol.Problem(wave, np.zeros(40), (0.0, 10.0), (1.0,)), ol.adaptive(1e-6, 1e-9)
    for method in (ol.RKC2, ol.DOPRI5):
        before = ol.solve(problem, method, control, engine="compiled")
        sol = ol.solve(problem, method, control, engine="compiled", tstops=JUMPS)
        assert np.abs(sol.step_u[:, 0] - answer_to_square_wave(sol.step_t)).max() < 1e-5
        assert sol.rejected == 0
        again = ol.solve(problem, method, control, engine="compiled")
        np.testing.assert_array_equal(again.step_t, before.step_t)
