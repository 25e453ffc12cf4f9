"""Ensembles: every run as it would be alone, to the bit wherever it stands; failures disturb nobody."""

import _thread
import concurrent.futures
import multiprocessing
import threading
import time
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from kernel_cases import logistic, small_systems, spring_chain

import odelab as ol
from odelab.ensembles import threaded
from odelab.ensembles.result import STATUSES

SYSTEMS = small_systems()
# Dimensions 1 to 8, every kind of method and law; the rest of the table is slow.
TABLE = [
    ("logistic", ol.DOPRI5, ol.adaptive(1e-5, 1e-7, "pi")),
    ("kepler", ol.RKF45, ol.adaptive(1e-5, 1e-7, "i")),
    ("hires", ol.BS32, ol.adaptive(1e-3, 1e-5, "pi34")),
    ("driven", ol.RK4, ol.fixed(0.05)),
]
few = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
by_name = {"ids": lambda x: getattr(x, "name", x)}


def drawn(problem, count, seed):
    """Initial states and parameters around the problem's own."""
    random = np.random.default_rng(seed)
    starts = problem.u0 * random.uniform(0.9, 1.1, (count, problem.size))
    params = np.array(problem.params) * random.uniform(0.9, 1.1, (count, len(problem.params)))
    return starts, params


def alone(problem, method, controller, start, params, **options):
    one = problem.replace(u0=start, params=tuple(params))
    return ol.solve(one, method, controller, engine="python", throw=False, **options)


def assert_as_alone(problem, method, controller, seed, count, places, digits=1e-10, twins_differ=True):
    starts, params = drawn(problem, count, seed)
    times = np.linspace(*problem.t_span, 5)
    found = ol.ensemble(problem, method, controller, u0=starts, params=params, t_eval=times, maxima=True)
    assert found.ok
    assert len(found) == count
    for place in places:
        run = alone(problem, method, controller, starts[place], params[place], t_eval=times)
        assert (found.steps[place], found.rejected[place]) == (run.steps, run.rejected)
        assert found.t[place] == run.step_t[-1]
        scale = np.abs(run.step_u).max()
        np.testing.assert_allclose(found.u[place, -1], run.step_u[-1], rtol=0, atol=digits * scale)
        np.testing.assert_allclose(found.u[place], run.u, rtol=0, atol=1e3 * digits * scale)
        np.testing.assert_allclose(found.sai_max[place], run.sai.max(), rtol=1e-6)
        if twins_differ:
            np.testing.assert_allclose(found.h_rho_max[place], run.h_rho.max(), rtol=1e-3)  # NaN without twin stages


@pytest.mark.parametrize(("name", "method", "controller"), TABLE, **by_name)
@few
@given(seed=st.integers(0, 10**6), count=st.integers(1, 80), place=st.floats(0, 1))
@example(0, 33, 1.0)
def test_every_run_is_as_it_would_be_alone(name, method, controller, seed, count, place):
    assert_as_alone(SYSTEMS[name], method, controller, seed, count, [int(place * (count - 1))])


@pytest.mark.slow
@pytest.mark.timeout(1200)  # twenty kernels to compile
@pytest.mark.parametrize("method", list(ol.METHODS.values()), ids=lambda m: m.name)
def test_every_method_in_lanes(method):
    controllers = [ol.fixed(0.02)]
    if method.embedded:
        controllers += [ol.adaptive(1e-4, 1e-6, law) for law in ("i", "pi42", "pi33", "pi34")]
    for name in ("logistic", "van_der_pol", "rigid_body", "brusselator backwards"):
        for controller in controllers:
            high = method is ol.DOP853
            # at a small fixed step nothing but rounding is left between the twin stages of order 8
            twins_differ = not (high and controller is controllers[0])
            digits = 1e-8 if high else 1e-10
            assert_as_alone(SYSTEMS[name], method, controller, 1, 40, [0, 17, 39], digits, twins_differ)


@pytest.mark.slow
@pytest.mark.parametrize("n", [12, 16, 32])
def test_wide_systems_in_lanes(n, tmp_path):
    assert_as_alone(
        spring_chain(n, tmp_path), ol.DOPRI5, ol.adaptive(1e-5, np.geomspace(1e-7, 1e-6, n)), 2, 20, [0, 19]
    )


# The same bits

VAN_DER_POL = ol.problems.van_der_pol().replace(t_span=(0.0, 5.0))


def spread(count, seed=0):
    random = np.random.default_rng(seed)
    return random.uniform(1.0, 2.0, (count, 2)), random.uniform(0.1, 10.0, (count, 1))


def run_all(starts, params, problem=VAN_DER_POL, controller=None, **options):
    return ol.ensemble(problem, ol.DOPRI5, controller or ol.adaptive(1e-6), u0=starts, params=params, **options)


def assert_same_bits(one, other):
    for name in ("u", "t", "steps", "rejected", "codes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_change_no_bit(threads):
    assert_same_bits(run_all(*spread(700), threads=1), run_all(*spread(700), threads=threads))


def test_neither_place_nor_company_changes_a_bit():
    starts, params = spread(200)
    whole = run_all(starts, params)
    order = np.random.default_rng(1).permutation(200)
    shuffled = run_all(starts[order], params[order])
    np.testing.assert_array_equal(shuffled.u, whole.u[order])
    for place in (0, 1, 15, 16, 17, 31, 32, 199):
        np.testing.assert_array_equal(
            run_all(starts[place : place + 1], params[place : place + 1]).u[0], whole.u[place]
        )


def test_points_and_maxima_change_no_bit():
    end = run_all(*spread(50))
    points = run_all(*spread(50), t_eval=[0.0, 2.5, 5.0])
    np.testing.assert_array_equal(points.u[:, -1], end.u)
    np.testing.assert_array_equal(points.u[:, 0], spread(50)[0])
    np.testing.assert_array_equal(run_all(*spread(50), maxima=True).u, end.u)


def test_where_a_kernel_looks_up_changes_no_bit(monkeypatch):
    whole = run_all(*spread(100))
    original = threaded.work_through

    def often(compiled, *rest):
        original(lambda queue, sweeps, *arguments: compiled(queue, 1, *arguments), *rest)

    monkeypatch.setattr(threaded, "work_through", often)
    assert_same_bits(run_all(*spread(100)), whole)


# Failures


def grows(t, u, params):
    """Blows up at t = 1/x for a positive rate, decays for a negative one; NaN where x is negative."""
    (x,) = u
    (rate,) = params
    root = ol.maths.sqrt(x)
    return (rate * x * root * root,)


GROWS = ol.Problem(grows, [1.0], (0.0, 3.0), (-1.0,))


@pytest.mark.parametrize("controller", [ol.adaptive(1e-6), ol.fixed(0.01)], ids=["adaptive", "fixed"])
def test_failures_have_their_status_and_disturb_nobody(controller):
    starts, params = np.linspace(0.5, 1.5, 60)[:, None], np.full((60, 1), -1.0)
    good = ol.ensemble(GROWS, ol.DOPRI5, controller, u0=starts, params=params)
    assert good.ok
    params[7] = 1.0
    starts[20] = -1.0
    starts[33] = np.nan
    found = ol.ensemble(GROWS, ol.DOPRI5, controller, u0=starts, params=params)
    assert list(found.failed) == [7, 20, 33]
    # a fixed step may overflow from a state that is still small: then infinity is all there is to see
    assert found.status[7] in ("blow_up", "not_finite")
    assert list(found.status[[20, 33]]) == ["not_finite", "not_finite"]
    kept = np.delete(np.arange(60), [7, 20, 33])
    np.testing.assert_array_equal(found.u[kept], good.u[kept])
    np.testing.assert_array_equal(found.steps[kept], good.steps[kept])
    assert "57 ok" in found.message
    assert "the first is run 7" in found.message
    for place in (7, 20):
        run = alone(GROWS, ol.DOPRI5, controller, starts[place], params[place])
        assert run.status == found.status[place]
        assert (run.steps, run.rejected) == (found.steps[place], found.rejected[place])


def test_points_a_run_never_reached_are_nan():
    times = [0.0, 0.5, 2.0]
    found = ol.ensemble(GROWS, ol.DOPRI5, ol.adaptive(1e-6), params=[[-1.0], [1.0]], t_eval=times)
    np.testing.assert_allclose(found.u[0, :, 0], [1.0, 1 / 1.5, 1 / 3.0], rtol=1e-5)
    np.testing.assert_allclose(found.u[1, :, 0], [1.0, 2.0, np.nan], rtol=1e-5)
    np.testing.assert_array_equal(found.t_eval, times)


def test_the_budget_is_each_runs_own():
    found = run_all(*spread(50), max_steps=20)
    assert set(found.status) <= {"ok", "max_steps"}
    spent = found.status == "max_steps"
    assert spent.any()
    assert ((found.steps + found.rejected)[spent] == 20).all()


# What lanes do not know


@pytest.mark.parametrize("controller", [ol.adaptive(1e-6, law="h211b"), ol.adaptive(1e-6)], ids=["filter", "python"])
def test_other_controllers_run_one_after_the_other(controller):
    starts, params = spread(3)
    engine = "python" if controller.law.name == "pi42" else "auto"
    found = run_all(starts, params, controller=controller, engine=engine, maxima=True, t_eval=[0.0, 5.0])
    for place in range(3):
        run = alone(VAN_DER_POL, ol.DOPRI5, controller, starts[place], params[place])
        np.testing.assert_array_equal(found.u[place, -1], run.u[-1])
        assert found.steps[place] == run.steps
        assert found.sai_max[place] == run.sai.max()


def not_for_numba(t, u, params):
    return (-float(repr(float(u[0]))),)


def test_what_numba_cannot_compile_runs_plainly_with_a_warning():
    problem = ol.Problem(not_for_numba, [1.0], (0.0, 1.0))
    with pytest.warns(RuntimeWarning, match="plain Python") as caught:
        found = ol.ensemble(problem, ol.DOPRI5, u0=[[1.0], [2.0]])
    assert caught[0].filename == __file__
    np.testing.assert_allclose(found.u[:, 0], np.exp(-1.0) * np.array([1.0, 2.0]), rtol=1e-5)
    with pytest.raises(ol.NotCompilable):
        ol.ensemble(problem, ol.DOPRI5, u0=[[1.0]], engine="compiled")


def test_in_place_systems_run_one_after_the_other():
    heat = ol.problems.heat_1d(40).replace(t_span=(0.0, 0.001))
    found = ol.ensemble(heat, ol.DOPRI5, ol.adaptive(1e-4), params=[[1.0], [2.0]])
    assert found.ok
    assert not np.allclose(found.u[0], found.u[1])


# The door


def test_what_is_not_given_is_the_problems_own():
    rates = np.array([[1.0, 2.0], [2.0, 3.0]])
    problem = SYSTEMS["logistic"]
    by_params = ol.ensemble(problem, ol.DOPRI5, params=rates)
    by_both = ol.ensemble(problem, ol.DOPRI5, u0=np.tile(problem.u0, (2, 1)), params=rates)
    assert_same_bits(by_params, by_both)
    by_start = ol.ensemble(problem, ol.DOPRI5, u0=[[0.1], [0.2]])
    assert_same_bits(by_start, ol.ensemble(problem, ol.DOPRI5, u0=[[0.1], [0.2]], params=[problem.params] * 2))


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({}, TypeError, "`u0` .* or `params`"),
        ({"u0": [1.0, 2.0]}, ValueError, r"`u0` must have shape \(N, 1\)"),
        ({"u0": [[1.0, 2.0]]}, ValueError, r"`u0` must have shape \(N, 1\)"),
        ({"u0": np.zeros((0, 1))}, ValueError, "no rows"),
        ({"u0": [["a"]]}, TypeError, "`u0` must hold real numbers"),
        ({"params": [[1.0]]}, ValueError, r"`params` must have shape \(N, 2\)"),
        ({"u0": [[1.0]], "params": [[1.0, 2.0]] * 2}, ValueError, "a row is a run"),
        ({"u0": [[1.0]], "threads": 0}, ValueError, "`threads`"),
        ({"u0": [[1.0]], "executor": 4}, TypeError, "`executor`"),
        ({"u0": [[1.0]], "progress": "yes"}, TypeError, "`progress`"),
        ({"u0": [[1.0]], "t_eval": [9.0]}, ValueError, "`t_eval`"),
        ({"u0": [[1.0]], "max_steps": 0}, ValueError, "`max_steps`"),
        ({"u0": [[1.0]], "engine": "gpu"}, ValueError, "`engine`"),
    ],
)
def test_wrong_input_is_named(wrong, error, words):
    problem = ol.Problem(logistic, [0.1], (0.0, 1.0), (1.0, 2.0))
    with pytest.raises(error, match=words):
        ol.ensemble(problem, ol.DOPRI5, **wrong)


def test_a_summary_can_be_printed():
    found = run_all(*spread(3))
    assert repr(found) == "Ensemble(van_der_pol, 3 runs: 3 ok)"
    assert "3 runs of van_der_pol with DOPRI5" in str(found)
    assert set(found.status) == {"ok"}
    assert "ok" in STATUSES


# Progress and Ctrl-C


def test_progress_is_told():
    told = []
    run_all(*spread(2000), threads=2, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (2000, 2000)
    assert told == sorted(told)


def test_progress_is_a_line_on_the_terminal(capsys):
    run_all(*spread(50), progress=True)
    assert capsys.readouterr().err.endswith("50 of 50 runs, 0 s \n")
    run_all(*spread(50), progress=False)
    run_all(*spread(50))  # short
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_returns_what_is_finished(threads):
    """Runs of very different length: the short ones are finished when Ctrl-C comes."""
    starts, params = spread(400)
    problem = VAN_DER_POL.replace(t_span=(0.0, 2000.0))
    params[200:] = 3000.0  # stiff: these take minutes
    run_all(starts[:1], params[:1], problem)  # compiled before the clock runs
    timer = threading.Timer(1.5, _thread.interrupt_main)
    timer.start()
    began = time.monotonic()
    found = run_all(starts, params, problem, threads=threads, max_steps=10**9)
    assert time.monotonic() - began < 20.0
    assert {"ok", "interrupted"} == set(found.status)
    finished = found.status == "ok"
    np.testing.assert_array_equal(found.t[finished], 2000.0)
    np.testing.assert_array_equal(found.u[~finished], starts[~finished])
    timer.join()


# Executors


def test_a_process_pool_gives_the_same_bits():
    starts, params = spread(300)
    context = multiprocessing.get_context("spawn")
    told = []
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        found = run_all(starts, params, executor=pool, maxima=True, progress=lambda done, total: told.append(done))
    assert_same_bits(found, run_all(starts, params))
    np.testing.assert_array_equal(found.sai_max, run_all(starts, params, maxima=True).sai_max)
    assert told[-1] == 300


def test_a_dask_client_gives_the_same_bits():
    distributed = pytest.importorskip("distributed")
    starts, params = spread(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the cluster's own
        options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            found = run_all(starts, params, executor=client.get_executor(), t_eval=[0.0, 1.0, 5.0])
    assert_same_bits(found, run_all(starts, params, t_eval=[0.0, 1.0, 5.0]))


def test_threads_serve_as_an_executor_too():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert_same_bits(run_all(*spread(100), executor=pool), run_all(*spread(100)))


def test_a_right_hand_side_that_cannot_be_sent_is_named():
    problem = ol.Problem(lambda t, u, params: (-u[0],), [1.0], (0.0, 1.0))
    with concurrent.futures.ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="cannot be sent"):
        ol.ensemble(problem, ol.DOPRI5, u0=[[1.0]], executor=pool)


def test_an_executor_needs_a_kernel():
    with concurrent.futures.ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="laws i, pi42"):
        run_all(*spread(2), controller=ol.adaptive(law="h211b"), executor=pool)
