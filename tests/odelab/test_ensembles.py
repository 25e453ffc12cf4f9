"""An ensemble is its single runs, each on its own: nothing depends on neighbours, places, threads or workers."""

import concurrent.futures
import functools
import multiprocessing
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odelab as ol

TIGHT = ol.adaptive(1e-7, 1e-10)
VAN_DER_POL = ol.problems.van_der_pol().replace(t_span=(0.0, 2.0))
RIGID_BODY = ol.problems.rigid_body().replace(t_span=(0.0, 3.0))
HIRES = ol.problems.hires().replace(t_span=(0.0, 1.0))
SMALL = settings(max_examples=8, deadline=None)


def troubled(t, u, params):
    """Blows up at t = 1 / (growth x0), and has no answer once t is past `until`."""
    (x,) = u
    growth, until = params
    return (growth * x * x + 0.01 * ol.maths.sqrt(until - t),)


TROUBLED = ol.Problem(troubled, [1.0], (0.0, 2.0), (-1.0, 9.0))
BLOWS_UP, RUNS_INTO_NAN, HARMLESS = (1.0, 9.0), (-1.0, 1.5), (-1.0, 9.0)


def single(problem, u0, params, **options):
    own = problem.replace(u0=u0, params=tuple(np.asarray(params).tolist()))
    return ol.solve(own, ol.DOPRI5, TIGHT, engine="python", throw=False, **options)


def around(problem, count, seed=0):
    """Initial states and parameters of `count` runs, up to a tenth away from the problem's own."""
    rng = np.random.default_rng(seed)
    starts = problem.u0 * rng.uniform(0.9, 1.1, (count, problem.size)) + rng.uniform(0, 0.01, (count, problem.size))
    return starts, np.array(problem.params) * rng.uniform(0.9, 1.1, (count, len(problem.params)))


def lanes(problem, starts, sets, **options):
    return ol.ensemble(problem, ol.DOPRI5, TIGHT, u0=starts, params=sets, engine="compiled", **options)


@functools.cache
def crowd():
    """A hundred runs, more than there are lanes, straight from one thread."""
    starts, sets = around(VAN_DER_POL, 100)
    return starts, sets, lanes(VAN_DER_POL, starts, sets, threads=1)


def same_bits(one, other, order=slice(None)):
    for name in ("u", "t", "steps", "rejected", "codes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name)[order], err_msg=name)


@pytest.mark.parametrize("problem", [VAN_DER_POL, RIGID_BODY, HIRES], ids=lambda problem: problem.name)
def test_every_run_is_the_single_run(problem):
    starts, sets = around(problem, 40)
    many = lanes(problem, starts, sets)
    assert many.ok
    assert np.ptp(many.steps) > 0
    for i in range(0, 40, 3):
        run = single(problem, starts[i], sets[i])
        np.testing.assert_allclose(many.u[i], run.u[-1], rtol=1e-10, atol=1e-12)
        assert (many.steps[i], many.rejected[i], many.t[i]) == (run.steps, run.rejected, problem.t_span[1])


@SMALL
@given(st.permutations(range(100)))
def test_a_place_in_the_queue_changes_no_bit(order):
    starts, sets, expected = crowd()
    same_bits(lanes(VAN_DER_POL, starts[order], sets[order]), expected, order)


@SMALL
@given(st.lists(st.integers(0, 99), min_size=1, max_size=70))
def test_neighbours_change_no_bit(chosen):
    starts, sets, expected = crowd()
    same_bits(lanes(VAN_DER_POL, starts[chosen], sets[chosen]), expected, chosen)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_no_bit(threads):
    starts, sets = (np.tile(array, (5, 1)) for array in crowd()[:2])
    same_bits(lanes(VAN_DER_POL, starts, sets, threads=threads), crowd()[2], np.tile(np.arange(100), 5))


@functools.cache
def undisturbed():
    return lanes(TROUBLED, np.full((1, 1), 1.0), np.array([HARMLESS]))


@SMALL
@given(st.lists(st.sampled_from([BLOWS_UP, RUNS_INTO_NAN, HARMLESS, (np.nan, 9.0)]), min_size=1, max_size=70))
def test_a_run_that_fails_disturbs_no_other(sets):
    many = lanes(TROUBLED, np.full((len(sets), 1), 1.0), np.array(sets))
    expected = undisturbed()
    assert expected.ok
    for i, (growth, until) in enumerate(sets):
        if (growth, until) == HARMLESS:
            same_bits(expected, many, [i])
        elif growth > 0:
            assert many.status[i] == "blow_up"
            assert many.t[i] == pytest.approx(1.0, abs=0.01)
        elif np.isnan(growth):
            assert many.status[i] == "not_finite"
            assert (many.t[i], many.steps[i]) == (0.0, 0)
        else:
            assert many.status[i] in ("not_finite", "step_too_small")
            assert 1.4 < many.t[i] <= 1.5
    np.testing.assert_array_equal(many.failed, [i for i, pair in enumerate(sets) if pair != HARMLESS])


def test_failures_are_those_of_single_runs():
    sets = [BLOWS_UP, HARMLESS, RUNS_INTO_NAN]
    many = lanes(TROUBLED, np.ones((3, 1)), sets)
    runs = [
        ol.solve(TROUBLED.replace(params=params), ol.DOPRI5, TIGHT, engine="compiled", throw=False) for params in sets
    ]
    assert many.status[:2].tolist() == [run.status for run in runs[:2]]
    # A single run asks the right-hand side once more why it was lost; a lane has its last error to tell by only.
    assert (many.status[2] in ("not_finite", "step_too_small"), runs[2].status) == (True, "not_finite")
    np.testing.assert_allclose(many.t, [run.t[-1] for run in runs], rtol=1e-10)
    assert "1 blow_up (the first is run 0, at t = 0.99" in many.message


def test_max_steps_counts_each_run_for_itself():
    starts, sets, free = crowd()
    attempts = free.steps + free.rejected
    limit = int(np.median(attempts))
    few = lanes(VAN_DER_POL, starts, sets, max_steps=limit)
    enough = attempts <= limit
    assert 0 < enough.sum() < 100
    np.testing.assert_array_equal(few.status == "ok", enough)
    np.testing.assert_array_equal(few.status == "max_steps", ~enough)
    assert (few.steps + few.rejected)[~enough].tolist() == [limit] * int((~enough).sum())
    np.testing.assert_array_equal(few.u[enough], free.u[enough])


def test_states_at_shared_times_and_running_maxima():
    starts, sets = around(VAN_DER_POL, 40)
    times = np.array([0.0, 0.3, 0.31, 1.0, 1.7, 2.0])
    many = lanes(VAN_DER_POL, starts, sets, t_eval=times, maxima=True)
    assert many.u.shape == (40, 6, 2)
    np.testing.assert_array_equal(many.u[:, 0], starts)
    for i in range(0, 40, 3):
        run = single(VAN_DER_POL, starts[i], sets[i])
        np.testing.assert_allclose(many.u[i], run(times), rtol=1e-10, atol=1e-12)
        assert many.sai_max[i] == pytest.approx(run.sai.max(), rel=1e-8)
        assert many.h_rho_max[i] == pytest.approx(run.h_rho.max(), rel=1e-6)


def test_a_failed_run_has_no_states_past_its_end():
    times = np.linspace(0.0, 2.0, 9)
    many = lanes(TROUBLED, np.ones((2, 1)), [BLOWS_UP, HARMLESS], t_eval=times, maxima=True)
    np.testing.assert_array_equal(np.isfinite(many.u[0, :, 0]), times <= many.t[0])
    assert np.isfinite(many.u[1]).all()


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({}, TypeError, "needs `u0`"),
        ({"u0": [2.0, 0.0]}, ValueError, r"`u0` must have shape \(N, 2\), a row per run, got \(2,\)"),
        ({"u0": np.ones((4, 3))}, ValueError, r"`u0` must have shape \(N, 2\), a row per run, got \(4, 3\)"),
        ({"params": np.ones((4, 2))}, ValueError, r"`params` must have shape \(N, 1\), a row per run, got \(4, 2\)"),
        ({"u0": np.ones((3, 2)), "params": np.ones((4, 1))}, ValueError, "`u0` has 3 rows and `params` has 4"),
        ({"u0": np.ones((0, 2))}, ValueError, "`u0` has no rows"),
        ({"u0": [["a", "b"]]}, TypeError, "`u0` must hold real numbers"),
        ({"u0": np.ones((3, 2)), "threads": 0}, ValueError, "`threads` must be a positive whole number, got 0"),
        ({"u0": np.ones((3, 2)), "executor": 4}, TypeError, "`executor` must be a concurrent.futures.Executor, got 4"),
    ],
)
def test_wrong_input_is_named(given, kind, words):
    with pytest.raises(kind, match=words):
        ol.ensemble(VAN_DER_POL, ol.DOPRI5, TIGHT, **given)


def test_arrays_may_be_read_only_strided_or_single_precision():
    starts, sets, expected = crowd()
    wide = np.zeros((100, 5))
    wide[:, 1:4:2] = starts
    fixed, fixed_sets = starts.copy(), sets.copy()
    fixed.flags.writeable = fixed_sets.flags.writeable = False
    same_bits(lanes(VAN_DER_POL, fixed, fixed_sets), expected)
    same_bits(lanes(VAN_DER_POL, wide[:, 1:4:2], sets), expected)
    assert lanes(VAN_DER_POL, VAN_DER_POL.u0[None], None).ok
    assert lanes(VAN_DER_POL, starts.astype(np.float32), None).ok


def through(executor):
    starts, sets = around(VAN_DER_POL, 300)
    options = {"t_eval": np.array([0.5, 2.0]), "maxima": True}
    direct = lanes(VAN_DER_POL, starts, sets, **options)
    spread = lanes(VAN_DER_POL, starts, sets, executor=executor, **options)
    same_bits(spread, direct)
    np.testing.assert_array_equal(spread.sai_max, direct.sai_max)
    np.testing.assert_array_equal(spread.h_rho_max, direct.h_rho_max)
    same_bits(lanes(VAN_DER_POL, starts, sets, executor=executor), lanes(VAN_DER_POL, starts, sets))


@pytest.mark.slow
def test_a_process_pool_changes_no_bit():
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        through(pool)


@pytest.mark.slow
def test_a_dask_cluster_changes_no_bit():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(processes=True, n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        cluster.get_client() as client,
    ):
        through(client.get_executor())


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
    answer = subprocess.run(command, capture_output=True, text=True, timeout=250)
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


def driven_past_its_domain(t, u, params):
    (edge,) = params
    _, y = u
    return (-1.0, ol.maths.sqrt(u[0] - edge) - y)


def test_a_lane_that_leaves_the_domain_says_what_a_single_run_says():
    problem = ol.Problem(driven_past_its_domain, [1.0, 0.0], (0.0, 1.0), (0.5,))
    edges = np.linspace(0.05, 0.95, 201)  # near 1, t is known more finely than x: a few runs creep up to the edge
    lanes = ol.ensemble(problem, ol.DOPRI5, ol.adaptive(1e-6), params=edges[:, None])
    assert set(lanes.status) <= {"not_finite", "max_steps"}
    assert np.mean(lanes.status == "not_finite") > 0.9
    for i in np.flatnonzero(lanes.status == "not_finite")[::20]:
        one = problem.replace(params=(edges[i],))
        assert ol.solve(one, ol.DOPRI5, ol.adaptive(1e-6), throw=False).status == "not_finite"
