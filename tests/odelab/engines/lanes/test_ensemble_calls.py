"""Calling an ensemble: what may be given, what is told on the way, who may do the work, what it costs."""

import _thread
import concurrent.futures
import multiprocessing
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import odelab as ol
from odelab.engines.lanes.result import STATUSES
from tests.clock import HANGS
from tests.odelab.engines.lanes.ensemble_cases import VAN_DER_POL, assert_same_bits, run_all, spread


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({}, TypeError, "needs `u0` .* or `params`"),
        ({"u0": [2.0, 0.0]}, ValueError, r"`u0` must have shape \(N, 2\), a row per run, got \(2,\)"),
        ({"u0": np.ones((4, 3))}, ValueError, r"`u0` must have shape \(N, 2\), a row per run, got \(4, 3\)"),
        ({"params": np.ones((4, 2))}, ValueError, r"`params` must have shape \(N, 1\), a row per run, got \(4, 2\)"),
        (
            {"u0": np.ones((3, 2)), "params": np.ones((4, 1))},
            ValueError,
            "`u0` has 3 rows and `params` has 4.*a row",
        ),
        ({"u0": np.ones((0, 2))}, ValueError, "`u0` has no rows"),
        ({"u0": [["a", "b"]]}, TypeError, "`u0` must hold real numbers"),
        ({"u0": np.ones((3, 2)), "threads": 0}, ValueError, "`threads` must be a positive whole number, got 0"),
        ({"u0": np.ones((3, 2)), "executor": 4}, TypeError, "`executor` must be a concurrent.futures.Executor, got 4"),
        ({"u0": np.ones((3, 2)), "progress": "yes"}, TypeError, "`progress`"),
        ({"u0": np.ones((3, 2)), "t_eval": [9.0]}, ValueError, "`t_eval`"),
        ({"u0": np.ones((3, 2)), "max_steps": 0}, ValueError, "`max_steps`"),
        ({"u0": np.ones((3, 2)), "engine": "gpu"}, ValueError, "`engine`"),
    ],
)
def test_wrong_input_is_named(given, kind, words):
    with pytest.raises(kind, match=words):
        ol.ensemble(VAN_DER_POL, ol.DOPRI5, **given)


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
    ctrl_c = threading.Timer(0.1, _thread.interrupt_main)

    def press_once_some_are_done(done, total):
        if done and ctrl_c.ident is None:
            ctrl_c.start()

    found = run_all(starts, params, problem, threads=threads, max_steps=10**9, progress=press_once_some_are_done)
    assert {"ok", "interrupted"} == set(found.status)
    finished = found.status == "ok"
    np.testing.assert_array_equal(found.t[finished], 2000.0)
    np.testing.assert_array_equal(found.u[~finished], starts[~finished])
    ctrl_c.join()


# Executors


def assert_as_without(executor):
    """The same bits by an executor's workers: the ends, and states at given times with maxima."""
    starts, params = spread(300)
    assert_same_bits(run_all(starts, params, executor=executor), run_all(starts, params))
    asked = {"t_eval": [0.0, 1.0, 5.0], "maxima": True}
    told = []
    through = run_all(starts, params, executor=executor, progress=lambda done, total: told.append(done), **asked)
    direct = run_all(starts, params, **asked)
    assert_same_bits(through, direct)
    np.testing.assert_array_equal(through.sai_max, direct.sai_max)
    np.testing.assert_array_equal(through.h_rho_max, direct.h_rho_max)
    assert told[-1] == 300


def test_a_process_pool_gives_the_same_bits():
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        assert_as_without(pool)


@pytest.mark.slow
def test_a_dask_client_gives_the_same_bits():
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the cluster's own
        options = {"processes": True, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            assert_as_without(client.get_executor())


def test_threads_serve_as_an_executor_too():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert_as_without(pool)


def test_a_lambda_is_sent_with_the_values_it_captured():
    """In the worker the module of the right-hand side would have other values, or could not be imported at all."""
    rates = (np.array([2.0]), "rate")
    problem = ol.Problem(lambda t, u, params: (-rates[0][0] * u[0],), [1.0], (0.0, 1.0))
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        found = ol.ensemble(problem, ol.HEUN, ol.adaptive(1e-6), u0=[[1.0]], executor=pool)
    assert found.u[0, 0] == pytest.approx(np.exp(-2.0), rel=1e-4)


def test_an_executor_needs_a_kernel():
    heat = ol.problems.heat_1d(400)
    words = "takes the work of kernels only.*up to 96 components"
    with concurrent.futures.ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match=words):
        ol.ensemble(heat, ol.DOPRI5, params=[[1.0]], executor=pool)


def test_an_executor_with_events_needs_one_method_and_says_which_there_are():
    zero = ol.Event(lambda t, u, params: u[0], terminal=True)
    words = r"one method alone, such as odelab.DOPRI5, or odelab.RODAS4 for stiff problems\. Without `executor`"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with pytest.raises(ValueError, match=words):
            ol.ensemble(VAN_DER_POL, params=[[1.0]], events=zero, executor=pool)
        assert ol.ensemble(VAN_DER_POL, ol.DOPRI5, params=[[1.0]], events=zero, executor=pool).ok


# Memory

MEMORY = """
import resource, sys
import numpy as np
import odelab as ol
count = int(sys.argv[1])
problem = ol.problems.van_der_pol().replace(t_span=(0.0, float(sys.argv[2])))
starts = np.random.default_rng(0).uniform(-2.0, 2.0, (count, 2))
many = ol.ensemble(problem, ol.DOPRI5, ol.adaptive(1e-6, 1e-9), u0=starts, engine="compiled")
assert many.ok and len(many.u) == count
try:  # of this program alone: getrusage also counts the process that started it
    status = open("/proc/self/status").read()
    print(int(status.split("VmHWM:")[1].split()[0]) / 2**10)
except OSError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(peak / (2**20 if sys.platform == "darwin" else 2**10))
"""


def peak_megabytes(count, until):
    command = [sys.executable, "-c", MEMORY, str(count), str(until)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=HANGS)
    assert answer.returncode == 0, answer.stderr
    return float(answer.stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="getrusage is POSIX")
def test_memory_grows_by_what_is_given_and_returned_only():
    peak_megabytes(1000, 20.0)  # compiles, which takes memory of its own
    some, more = peak_megabytes(50_000, 20.0), peak_megabytes(200_000, 20.0)
    a_run = (more - some) / 0.15  # MB per million
    assert a_run < 150
    assert more + 0.8 * a_run < 500
    assert peak_megabytes(1_000_000, 0.5) < 500  # a million in earnest; how long they run costs no memory
