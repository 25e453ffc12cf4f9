"""Ensembles: every run as it would be alone, to the bit wherever it stands and whoever runs beside it."""

import functools
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import odelab as ol
from odelab.engines.lanes import threads as threaded
from odelab.kernels.loops.lanes import ARGUMENTS
from tests.odelab.engines.lanes.ensemble_cases import VAN_DER_POL, alone, assert_same_bits, drawn, run_all, spread
from tests.odelab.kernels.kernel_cases import small_systems, spring_chain

SYSTEMS = small_systems()
# Dimensions 1 to 8, every kind of method and law; the rest of the table is slow.
TABLE = [
    ("logistic", ol.DOPRI5, ol.adaptive(1e-5, 1e-7, "pi")),
    ("kepler", ol.RKF45, ol.adaptive(1e-5, 1e-7, "i")),
    ("hires", ol.BS32, ol.adaptive(1e-3, 1e-5, "pi34")),
    ("driven", ol.RK4, ol.fixed(0.05)),
]
TIGHT = ol.adaptive(1e-7, 1e-10)
few = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
by_name = {"ids": lambda x: getattr(x, "name", x)}


def assert_as_alone(problem, method, controller, seed, count, places, digits=1e-10):
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
        # SAI divides by the state, which is small where SAI is large.
        np.testing.assert_allclose(found.sai_max[place], run.sai.max(), rtol=1e4 * digits)
        largest = np.fmax.reduce(run.h_rho)  # NaN where no step tells it
        np.testing.assert_allclose(found.h_rho_max[place], largest, rtol=1e-4)


@pytest.mark.parametrize(("name", "method", "controller"), TABLE, **by_name)
@few
@given(seed=st.integers(0, 10**6), count=st.integers(1, 80), place=st.floats(0, 1))
@example(0, 33, 1.0)
def test_every_run_is_as_it_would_be_alone(name, method, controller, seed, count, place):
    assert_as_alone(SYSTEMS[name], method, controller, seed, count, [int(place * (count - 1))])


@pytest.mark.parametrize(("name", "until"), [("van_der_pol", 2.0), ("rigid_body", 3.0), ("hires", 1.0)])
def test_to_ten_digits_at_a_tight_tolerance(name, until):
    problem = SYSTEMS[name].replace(t_span=(0.0, until))
    starts, params = drawn(problem, 40)
    many = ol.ensemble(problem, ol.DOPRI5, TIGHT, u0=starts, params=params)
    assert many.ok
    assert np.ptp(many.steps) > 0
    for i in range(0, 40, 3):
        run = alone(problem, ol.DOPRI5, TIGHT, starts[i], params[i])
        np.testing.assert_allclose(many.u[i], run.u[-1], rtol=1e-10, atol=1e-12)
        assert (many.steps[i], many.rejected[i], many.t[i]) == (run.steps, run.rejected, until)


PUSHES = np.sin(np.arange(101) * 0.1)


def looked_up(t, u, params):
    """It can be asked for no other times than those of its span, and for no other parameters than its own."""
    (x,) = u
    (rate,) = params
    return (-PUSHES[int(12.0 / rate)] * x + PUSHES[int(10.0 * t)],)


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.ROS2])
def test_lanes_without_work_ask_for_nothing_that_no_run_asks_for(method):
    """Fewer runs than lanes, so that some lanes never have work, and others stop before their neighbours."""
    problem = ol.Problem(looked_up, [1.0], (0.0, 10.0), (3.0,))
    params = [[3.0], [0.5], [12.0]]
    many = ol.ensemble(problem, method, ol.adaptive(1e-4, 1e-6), params=params)
    assert (many.ok, many.engine) == (True, "compiled")
    for end, rates in zip(many.u, params, strict=True):
        run = ol.solve(problem.replace(params=rates), method, ol.adaptive(1e-4, 1e-6), engine="python")
        np.testing.assert_allclose(end, run.end_u, rtol=1e-3)  # its jumps magnify rounding


RELAXING = ol.problems.van_der_pol().replace(t_span=(0.0, 4.0))


# A clipped law, a filter with a ratio of step sizes and one with two, every time; the others, a kernel each, with the
# slow tests.
EVERY_LAW = [pytest.param(law, marks=() if law in ("pi42", "h211b", "h321") else pytest.mark.slow) for law in ol.LAWS]


@pytest.mark.parametrize("law", EVERY_LAW)
def test_every_law_takes_the_steps_it_takes_in_plain_python(law):
    controller = ol.adaptive(1e-3, 1e-5, law)
    starts, params = spread(40)
    many = ol.ensemble(RELAXING, ol.HEUN, controller, u0=starts, params=params)
    assert many.ok
    assert many.engine == "compiled"
    assert many.rejected.sum() > 0
    for place in (0, 13, 26, 39):
        run = alone(RELAXING, ol.HEUN, controller, starts[place], params[place])
        assert (many.steps[place], many.rejected[place]) == (run.steps, run.rejected)
        np.testing.assert_allclose(many.u[place], run.u[-1], rtol=1e-8)


@pytest.mark.slow
@pytest.mark.timeout(1200)  # twenty kernels to compile
@pytest.mark.parametrize("method", list(ol.METHODS.values()), ids=lambda m: m.name)
def test_every_method_in_lanes(method):
    controllers = [ol.fixed(0.02)]
    if method.embedded:
        controllers += [ol.adaptive(1e-4, 1e-6, law) for law in ("i", "pi42", "pi33", "pi34")]
    for name in ("logistic", "van_der_pol", "rigid_body", "brusselator backwards"):
        for controller in controllers:
            digits = 1e-8 if method is ol.DOP853 else 1e-10
            assert_as_alone(SYSTEMS[name], method, controller, 1, 40, [0, 17, 39], digits)


@pytest.mark.slow
@pytest.mark.parametrize("n", [12, 16, 32])
def test_wide_systems_in_lanes(n, tmp_path):
    assert_as_alone(
        spring_chain(n, tmp_path), ol.DOPRI5, ol.adaptive(1e-5, np.geomspace(1e-7, 1e-6, n)), 2, 20, [0, 19]
    )


def nanoseconds_a_component(problem, runs=300):
    starts, params = drawn(problem, runs)
    took = []
    for _ in range(5):
        began = time.process_time()
        found = ol.ensemble(problem, ol.DOPRI5, ol.adaptive(1e-6), u0=starts, params=params, threads=1)
        took.append(time.process_time() - began)
    assert found.engine == "compiled"
    return min(took) * 1e9 / (found.steps + found.rejected).sum() / problem.size


@pytest.mark.slow
def test_thirty_two_components_are_vector_code_as_sixteen_are(tmp_path):
    """Where LLVM makes scalar code of a sweep, a component costs five times as much."""
    few, many = (nanoseconds_a_component(spring_chain(n, tmp_path)) for n in (16, 32))
    assert many < 2.0 * few


def test_no_option_of_llvm_is_set(monkeypatch):
    """It would hold for the whole process, the user's own compiled code included."""
    monkeypatch.setattr("llvmlite.binding.set_option", lambda *options: pytest.fail(f"{options} was set"))
    problem = ol.Problem(lambda t, u, params: (-3.5 * u[0],), [1.0], (0.0, 1.0))
    assert ol.ensemble(problem, ol.EULER, ol.fixed(0.1), u0=[[1.0]]).engine == "compiled"


# The same bits


@functools.cache
def crowd():
    """A hundred runs, more than there are lanes, straight from one thread."""
    starts, params = spread(100)
    return starts, params, run_all(starts, params, threads=1)


@few
@given(st.permutations(range(100)))
def test_a_place_in_the_queue_changes_no_bit(order):
    starts, params, expected = crowd()
    assert_same_bits(run_all(starts[order], params[order]), expected, order)


@few
@given(st.lists(st.integers(0, 99), min_size=1, max_size=70))
def test_neighbours_change_no_bit(chosen):
    starts, params, expected = crowd()
    assert_same_bits(run_all(starts[chosen], params[chosen]), expected, chosen)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_threads_change_no_bit(threads):
    starts, params = (np.tile(array, (7, 1)) for array in crowd()[:2])
    assert_same_bits(run_all(starts, params, threads=threads), crowd()[2], np.tile(np.arange(100), 7))


def test_points_and_maxima_change_no_bit():
    starts, params, expected = crowd()
    points = run_all(starts, params, t_eval=[0.0, 2.5, 5.0])
    np.testing.assert_array_equal(points.u[:, -1], expected.u)
    np.testing.assert_array_equal(points.u[:, 0], starts)
    assert_same_bits(run_all(starts, params, maxima=True), expected)


def test_where_a_kernel_looks_up_changes_no_bit(monkeypatch):
    starts, params, expected = crowd()
    original, sweeps = threaded.compiled, list(ARGUMENTS).index("sweeps")

    def often(text):
        machine, lanes = original(text)
        return machine, lambda *given: lanes(*given[:sweeps], 1, *given[sweeps + 1 :])

    monkeypatch.setattr(threaded, "compiled", often)
    assert_same_bits(run_all(starts, params), expected)


# What is asked for


def test_states_at_shared_times_and_running_maxima():
    problem = VAN_DER_POL.replace(t_span=(0.0, 2.0))
    starts, params = drawn(problem, 40)
    times = np.array([0.0, 0.3, 0.31, 1.0, 1.7, 2.0])
    many = run_all(starts, params, problem, TIGHT, t_eval=times, maxima=True)
    assert many.u.shape == (40, 6, 2)
    np.testing.assert_array_equal(many.u[:, 0], starts)
    for i in range(0, 40, 3):
        run = alone(problem, ol.DOPRI5, TIGHT, starts[i], params[i])
        np.testing.assert_allclose(many.u[i], run(times), rtol=1e-10, atol=1e-12)
        assert many.sai_max[i] == pytest.approx(run.sai.max(), rel=1e-8)
        assert many.h_rho_max[i] == pytest.approx(run.h_rho.max(), rel=1e-6)


def test_what_is_not_given_is_the_problems_own():
    rates = np.array([[1.0, 2.0], [2.0, 3.0]])
    problem = SYSTEMS["logistic"]
    by_params = ol.ensemble(problem, ol.DOPRI5, params=rates)
    by_both = ol.ensemble(problem, ol.DOPRI5, u0=np.tile(problem.u0, (2, 1)), params=rates)
    assert_same_bits(by_params, by_both)
    by_start = ol.ensemble(problem, ol.DOPRI5, u0=[[0.1], [0.2]])
    assert_same_bits(by_start, ol.ensemble(problem, ol.DOPRI5, u0=[[0.1], [0.2]], params=[problem.params] * 2))


def test_arrays_may_be_read_only_strided_or_single_precision():
    starts, params, expected = crowd()
    wide = np.zeros((100, 5))
    wide[:, 1:4:2] = starts
    fixed, fixed_params = starts.copy(), params.copy()
    fixed.flags.writeable = fixed_params.flags.writeable = False
    assert_same_bits(run_all(fixed, fixed_params), expected)
    assert_same_bits(run_all(wide[:, 1:4:2], params), expected)
    assert run_all(VAN_DER_POL.u0[None], None).ok
    assert run_all(starts.astype(np.float32), None).ok


# What lanes do not know


def test_plain_python_runs_one_after_the_other():
    starts, params = spread(3)
    controller = ol.adaptive(1e-6, law="h211b")
    found = run_all(starts, params, controller=controller, engine="python", maxima=True, t_eval=[0.0, 5.0])
    for place in range(3):
        run = alone(VAN_DER_POL, ol.DOPRI5, controller, starts[place], params[place])
        np.testing.assert_array_equal(found.u[place, -1], run.u[-1])
        assert found.steps[place] == run.steps
        assert found.sai_max[place] == run.sai.max()
        assert found.h_rho_max[place] == np.fmax.reduce(run.h_rho)


def not_for_lanes(t, u, params):
    return (-float(repr(float(u[0]))),)


def test_what_cannot_be_compiled_runs_one_after_the_other():
    problem = ol.Problem(not_for_lanes, [1.0], (0.0, 1.0))
    found = ol.ensemble(problem, ol.DOPRI5, u0=[[1.0], [2.0]])
    assert found.engine == "python"
    np.testing.assert_allclose(found.u[:, 0], np.exp(-1.0) * np.array([1.0, 2.0]), rtol=1e-5)
    with pytest.raises(ol.NotCompilable, match=r"line .* of test_ensemble\.py"):
        ol.ensemble(problem, ol.DOPRI5, u0=[[1.0]], engine="compiled")


def test_an_ensemble_tells_which_engines_took_its_runs():
    heat = ol.problems.heat_1d(40).replace(t_span=(0.0, 0.001))
    for engine in ("compiled", "python"):
        assert ol.ensemble(heat, ol.DOPRI5, ol.adaptive(1e-4), params=[[1.0], [2.0]], engine=engine).engine == engine
        assert ol.ensemble(VAN_DER_POL, ol.DOPRI5, u0=[[2.0, 0.0]], engine=engine).engine == engine
        assert ol.ensemble(heat, ol.DOPRI5, params=[[np.nan]], engine=engine).engine == engine  # though it took none


def test_large_in_place_systems_run_one_after_the_other():
    heat = ol.problems.heat_1d(140).replace(t_span=(0.0, 0.001))
    found = ol.ensemble(heat, ol.DOPRI5, ol.adaptive(1e-4), params=[[1.0], [2.0]])
    assert found.ok
    assert not np.allclose(found.u[0], found.u[1])
