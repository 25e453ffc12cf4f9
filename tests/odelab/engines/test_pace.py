"""Progress and a time limit of one run: the same run as without, told of and ended in time."""

import time

import numpy as np
import pytest

import odelab as ol
from tests.odelab.solver_cases import NAMED

VAN_DER_POL = ol.problems.van_der_pol(mu=20.0).replace(t_span=(0.0, 60.0))
HEAT = ol.problems.heat_1d(n=200).replace(t_span=(0.0, 0.01))


CASES = [
    (VAN_DER_POL, ol.DOPRI5),
    (VAN_DER_POL, ol.RODAS4),
    (VAN_DER_POL, ol.BDF),
    (HEAT, ol.RODAS4),
    (HEAT, ol.DOPRI5),
]


@pytest.mark.parametrize(
    ("problem", "method", "engine"),
    [
        *((*case, engine) for case in CASES for engine in ("python", "auto")),
        (HEAT, ol.RKC2, "python"),
        pytest.param(HEAT, ol.RKC2, "auto", marks=pytest.mark.slow),  # numba compiles it for ten seconds
    ],
    **NAMED,
)
@pytest.mark.parametrize(
    "options", [{}, {"dense": False}, {"tstops": [0.002, 0.004]}], ids=["dense", "sparse", "stops"]
)
def test_a_run_that_is_told_of_has_the_bits_of_one_that_is_not(problem, method, engine, options):
    if method is ol.BDF:  # SciPy's methods keep all states
        options = {name: value for name, value in options.items() if name != "dense"}
    seen = []
    told = ol.solve(
        problem,
        method,
        engine=engine,
        progress=lambda done, total: seen.append((done, total)),
        time_limit=3600.0,
        **options,
    )
    silent = ol.solve(problem, method, engine=engine, **options)
    np.testing.assert_array_equal(told.step_t, silent.step_t)
    np.testing.assert_array_equal(told.end_u, silent.end_u)
    assert told.evaluations == silent.evaluations
    done = [share for share, _ in seen]
    length = problem.t_span[1] - problem.t_span[0]
    assert done == sorted(done) or (engine, method) == ("auto", ol.RKC2)  # which numba compiles: the run begins anew
    assert seen[-1] == (length, length)


def slow(t, u, params):
    time.sleep(0.002)
    return -u


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4, ol.BDF], **NAMED)
@pytest.mark.parametrize("options", [{}, {"tstops": [1e-3]}], ids=["whole", "stops"])
def test_a_run_ends_once_its_time_is_over(method, options):
    problem = ol.Problem(slow, [1.0], (0.0, 1e3), name="slow")
    controller = ol.adaptive(max_step=1e-4)
    sol = ol.solve(problem, method, controller, engine="python", time_limit=0.2, throw=False, **options)
    assert (sol.status, sol.ok) == ("time_limit", False)
    assert "time_limit = 0.2 s spent at t = " in sol.message
    assert "raise time_limit" in sol.message
    assert 0 < sol.steps < 200
    np.testing.assert_allclose(sol.u[:, 0], np.exp(-sol.t), rtol=1e-5)
    with pytest.raises(ol.RunFailed, match=r"slow: time_limit = 0\.2 s spent"):
        ol.solve(problem, method, controller, engine="python", time_limit=0.2, **options)


def test_compiled_runs_end_in_time_too():
    """1e9 steps would take minutes."""
    began = time.monotonic()
    sol = ol.solve(
        ol.problems.lorenz().replace(t_span=(0.0, 1e6)),
        ol.RK4,
        ol.fixed(1e-3),
        max_steps=2 * 10**9,
        dense=False,
        time_limit=0.3,
        throw=False,
    )
    assert (sol.status, sol.engine) == ("time_limit", "compiled")
    assert time.monotonic() - began < 30.0


def test_the_line_on_the_terminal(capsys):
    ol.solve(VAN_DER_POL, ol.RODAS4, progress=True)
    assert "100 of 100 % of the span, 0 s" in capsys.readouterr().err
    ol.solve(VAN_DER_POL, ol.RODAS4)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"progress": 3}, TypeError, r"`progress` must be True, False, None or a function \(done, total\), got 3"),
        ({"time_limit": 0.0}, ValueError, "`time_limit` must be a positive number of seconds, got 0.0"),
        ({"time_limit": "1 s"}, ValueError, "`time_limit` must be a positive number of seconds, got '1 s'"),
    ],
)
def test_what_is_none(options, error, words):
    with pytest.raises(error, match=words):
        ol.solve(VAN_DER_POL, ol.RODAS4, **options)


def test_a_run_whose_pieces_all_end_in_a_change_ends_when_its_time_is_over():
    """Every change lifts the value above its threshold again, by less and less time."""
    lift = ol.Event(lambda t, u, params: u[0], direction=-1, change=lambda t, u, params: [1e-4, u[1]])
    problem = ol.Problem(lambda t, u, params: (-u[1], 0.0), [1e-4, 1.0], (0.0, 100.0))
    sol = ol.solve(problem, ol.DOPRI5, events=lift, time_limit=0.2, throw=False)
    assert sol.status == "time_limit"
    assert 0.0 < sol.step_t[-1] < 100.0
