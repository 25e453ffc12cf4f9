"""Kernels equal the one source: the same steps, states and counts, whatever is drawn; and know when to stand back."""

import dataclasses
import functools
import math
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import odelab as ol
from odelab import _choice as choice
from odelab import maths
from odelab.engines.driver import run
from odelab.engines.python import PythonEngine
from odelab.engines.traced import TracedEngine
from tests.odelab.kernels.kernel_cases import ROTATING, assert_same_run, both, kepler, small_systems, spring_chain
from tests.without import needs_numba

SYSTEMS = small_systems()
# A dozen kernels: every method, both laws and fixed steps, dimensions 1 to 8; the others are slow.
DOZEN = [
    ("logistic", ol.DOPRI5, "pi"),
    ("driven", ol.RKF45, "i"),
    ("van_der_pol", ol.DOPRI5, "i"),
    ("brusselator backwards", ol.BS32, "pi34"),
    ("rigid_body", ol.RKF45, "pi33"),
    ("kepler", ol.DOP853, "pi"),
    ("hires", ol.DOPRI5, "pi"),
    ("logistic", ol.HEUN, "i"),
]
FIXED = [
    ("van_der_pol", ol.RK4),
    ("logistic", ol.EULER),
    ("kepler", ol.MIDPOINT),
    ("driven", ol.DOPRI5),
    ("driven", ol.ESDIRK43),
    ("kepler", ol.ESDIRK43),
    ("kinked", ol.RKF45),
]
every_kernel = pytest.mark.parametrize(("name", "method", "law"), DOZEN, ids=lambda x: getattr(x, "name", x))
few = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))

stretches = st.floats(0.9, 1.1)
tolerances = st.sampled_from([1e-3, 1e-4, 1e-5, 1e-6])


@every_kernel
@few
@given(start=stretches, rate=stretches, rtol=tolerances)
@example(1.0, 1.0, 1e-6)
def test_adaptive_runs_are_the_one_sources(name, method, law, start, rate, rtol):
    problem = SYSTEMS[name]
    problem = problem.replace(u0=start * problem.u0, params=tuple(rate * p for p in problem.params))
    if method is ol.HEUN:
        rtol = 100 * rtol
    assert_same_run(*both(problem, method, ol.adaptive(rtol, 0.01 * rtol, law)))


@pytest.mark.parametrize(("name", "method"), FIXED, ids=lambda x: getattr(x, "name", x))
@few
@given(start=stretches, steps=st.floats(20, 200))
def test_fixed_grids_agree_to_thirteen_digits(name, method, start, steps):
    problem = SYSTEMS[name].replace(u0=start * SYSTEMS[name].u0)
    span = problem.t_span[1] - problem.t_span[0]
    kernel, plain = both(problem, method, ol.fixed(abs(span) / steps))
    np.testing.assert_array_equal(kernel.step_t, plain.step_t)
    np.testing.assert_array_equal(kernel.h, plain.h)
    assert np.isnan(kernel.error).all()
    np.testing.assert_allclose(kernel.u, plain.u, rtol=1e-13, atol=1e-13 * np.abs(plain.u).max())
    assert kernel.evaluations == plain.evaluations


@pytest.mark.slow
@pytest.mark.parametrize("method", [m for m in ol.METHODS.values() if m.embedded], ids=lambda m: m.name)
@pytest.mark.parametrize("law", ["i", "pi"])
@pytest.mark.parametrize("n", [16, 32])
def test_wide_kernels_are_the_one_sources_too(method, law, n, tmp_path):
    problem = spring_chain(n, tmp_path)
    assert_same_run(*both(problem, method, ol.adaptive(1e-4, 1e-6, law)))
    assert_same_run(*both(problem, method, ol.adaptive(1e-5, np.geomspace(1e-7, 1e-5, n), law)))


@pytest.mark.slow
@pytest.mark.parametrize("method", [m for m in ol.METHODS.values() if m.embedded], ids=lambda m: m.name)
@pytest.mark.parametrize("law", ["i", "pi42", "pi33", "pi34"])
def test_every_method_with_every_law(method, law):
    for name, problem in SYSTEMS.items():
        if name == "kinked":  # not smooth: where it kinks, every bit of a step counts
            continue
        assert_same_run(*both(problem, method, ol.adaptive(1e-4, 1e-6, law)))


# A clipped law, a filter with a ratio of step sizes and one with two, every time; the others, a kernel each, with the
# slow tests.
EVERY_LAW = [pytest.param(law, marks=() if law in ("pi42", "h211b", "h321") else pytest.mark.slow) for law in ol.LAWS]


@pytest.mark.parametrize("law", EVERY_LAW)
def test_every_law_takes_the_same_steps_in_every_engine(law):
    for problem in (SYSTEMS["van_der_pol"], ROTATING):
        kernel, plain = both(problem, ol.DOPRI5, ol.adaptive(1e-5, 1e-7, law))
        assert (kernel.steps, kernel.rejected) == (plain.steps, plain.rejected)
        assert problem is ROTATING or plain.rejected > 0
        np.testing.assert_allclose(kernel.end_u, plain.end_u, rtol=0, atol=1e-10)


def test_hairer_and_wanners_estimate_is_recorded():
    kernel, plain = both(SYSTEMS["hires"].replace(t_span=(0.0, 5.0)), ol.DOPRI5, ol.adaptive(1e-5, 1e-8))
    assert "h_rho" in vars(kernel)  # recorded, not found afterwards
    assert "sai" in vars(kernel)
    np.testing.assert_allclose(kernel.h_rho, plain.h_rho, rtol=1e-5)


def test_a_run_taken_in_pieces_is_the_same_run():
    problem, controller = SYSTEMS["van_der_pol"], ol.adaptive(1e-8, 1e-10)

    def states(attempts):
        engine = TracedEngine(problem, ol.DOPRI5, controller)
        state, _ = engine.begin()
        while True:
            chunk = engine.advance(state, attempts)
            state = chunk.state
            if chunk.status:
                record = engine.record()
                return record.t, record.u

    whole, pieces = states(10**9), states(3)
    assert len(whole[0]) > 100
    for one, other in zip(whole, pieces, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_state_goes_over_from_one_engine_to_another():
    """A kernel's memory is the memory of `odelab.control`."""
    problem, controller = SYSTEMS["van_der_pol"], ol.adaptive(1e-5, 1e-8)
    kernel = TracedEngine(problem, ol.DOPRI5, controller)
    chunk = kernel.advance(kernel.begin()[0], 20)
    plain = ol.solve(problem, ol.DOPRI5, controller, engine="python")
    engine = PythonEngine(problem, ol.DOPRI5, controller)
    rest = engine.advance(chunk.state, 10**6)
    assert chunk.steps + rest.t.size == plain.steps
    np.testing.assert_allclose(rest.u[-1], plain.u[-1], rtol=1e-9)


def test_requested_times_and_events_come_from_the_same_dense_output():
    times = np.linspace(0.0, 6.0, 50)
    kernel, plain = both(SYSTEMS["van_der_pol"], ol.DOPRI5, ol.adaptive(1e-6), t_eval=times)
    np.testing.assert_allclose(kernel.u, plain.u, atol=1e-9)

    def crossing(t, u, params):
        return u[0]

    kernel, plain = both(SYSTEMS["van_der_pol"], ol.DOPRI5, ol.adaptive(1e-6), events=ol.Event(crossing, terminal=1))
    assert kernel.status == plain.status == "event"
    np.testing.assert_allclose(kernel.t[-1], plain.t[-1], rtol=1e-9)
    np.testing.assert_allclose(kernel.slope[-1], (kernel.u[-1] - kernel.u[-2]) / kernel.h[-1])


def explosive(t, u, params):
    (x,) = u
    return (x * x,)


def rooted(t, u, params):
    (x,) = u
    return (-maths.sqrt(x) - 1.0,)


@pytest.mark.parametrize(
    ("rhs", "controller", "status"),
    [
        (explosive, ol.adaptive(1e-6), "blow_up"),
        (explosive, ol.fixed(0.01), "blow_up"),
        (rooted, ol.adaptive(1e-6), "not_finite"),
        (rooted, ol.fixed(0.01), "not_finite"),
    ],
)
def test_failures_are_told_alike(rhs, controller, status):
    kernel, plain = both(ol.Problem(rhs, [1.0], (0.0, 3.0)), ol.DOPRI5, controller)
    assert kernel.status == plain.status == status
    assert kernel.message.split(":")[0][:30] == plain.message.split(":")[0][:30]
    np.testing.assert_allclose(kernel.t[-1], plain.t[-1], rtol=1e-6)


def test_the_budget_of_attempts_is_kept():
    kernel, plain = both(SYSTEMS["van_der_pol"], ol.DOPRI5, ol.adaptive(1e-9, 1e-12), max_steps=37)
    assert kernel.status == plain.status == "max_steps"
    assert kernel.steps + kernel.rejected == 37


def test_a_largest_step_is_kept():
    kernel, plain = both(SYSTEMS["kepler"], ol.DOPRI5, ol.adaptive(1e-4, 1e-6, max_step=0.1))
    assert_same_run(kernel, plain)
    assert kernel.h.max() <= 0.1 * (1 + 1e-9)


# Right-hand sides as people write them

GAIN = 2.0
WEIGHTS = np.array([1.0, 0.5])


def scaled(x):
    return GAIN * x


def with_helpers(t, u, params, strength=3.0):
    """A docstring, a helper, a global, an array, a default value, modules by several names."""
    x, v = u
    return [v * WEIGHTS[1], -strength * scaled(x) + math.sin(t) + np.cos(t) + maths.exp(-x * x) + ol.maths.tanh(v)]


def test_helpers_globals_arrays_and_defaults_come_along():
    problem, controller = ol.Problem(with_helpers, [0.3, 0.1], (0.0, 2.0)), ol.adaptive(1e-5, 1e-8)
    assert_same_run(*both(problem, ol.DOPRI5, controller))


def test_a_captured_value_that_changes_makes_another_kernel():
    def made(rate):
        def decay(t, u, params):
            return (-rate * u[0],)

        return decay

    ends = [
        ol.solve(ol.Problem(made(k), [1.0], (0.0, 1.0)), ol.RK4, ol.fixed(0.1), engine="compiled").u[-1, 0]
        for k in (1, 2)
    ]
    np.testing.assert_allclose(ends, np.exp([-1.0, -2.0]), rtol=1e-4)


def test_a_global_that_changes_makes_another_kernel(monkeypatch):
    problem = ol.Problem(with_helpers, [0.3, 0.1], (0.0, 1.0))
    first = ol.solve(problem, ol.RK4, ol.fixed(0.1), engine="compiled").u[-1]
    monkeypatch.setitem(with_helpers.__globals__, "GAIN", 0.0)
    kernel, plain = both(problem, ol.RK4, ol.fixed(0.1))
    np.testing.assert_allclose(kernel.u, plain.u, rtol=1e-12)
    monkeypatch.setitem(with_helpers.__globals__, "WEIGHTS", np.array([1.0, 0.0]))
    assert ol.solve(problem, ol.RK4, ol.fixed(0.1), engine="compiled").u[-1, 0] == 0.3
    assert abs(kernel.u[-1, 1] - first[1]) > 0.1


def test_an_array_changed_in_place_makes_another_kernel(monkeypatch):
    monkeypatch.setitem(with_helpers.__globals__, "WEIGHTS", np.array([1.0, 0.5]))
    problem = ol.Problem(with_helpers, [0.3, 0.1], (0.0, 1.0))
    ol.solve(problem, ol.RK4, ol.fixed(0.1), engine="compiled")
    with_helpers.__globals__["WEIGHTS"][1] = 0.0
    assert ol.solve(problem, ol.RK4, ol.fixed(0.1), engine="compiled").u[-1, 0] == 0.3


def test_functions_without_readable_source_have_kernels_too():
    names = {"rate": 2.0}
    exec("def helper(x):\n    return -rate * x\ndef typed(t, u, params):\n    return (helper(u[0]),)", names)
    lambdas = lambda t, u, params: (-2.0 * u[0],)  # noqa: E731
    for rhs in (names["typed"], lambdas):
        run = ol.solve(ol.Problem(rhs, [1.0], (0.0, 1.0)), ol.RK4, ol.fixed(0.05), engine="compiled")
        np.testing.assert_allclose(run.u[-1, 0], np.exp(-2.0), rtol=1e-5)
    names["rate"] = 1.0
    run = ol.solve(ol.Problem(names["typed"], [1.0], (0.0, 1.0)), ol.RK4, ol.fixed(0.05), engine="compiled")
    np.testing.assert_allclose(run.u[-1, 0], np.exp(-1.0), rtol=1e-5)


# When there is no graph


def a_value_is_wanted(t, u, params):
    (x,) = u
    return (-float(str(x)),)


@needs_numba
def test_what_cannot_be_compiled_raises_when_a_kernel_was_demanded():
    problem = ol.Problem(a_value_is_wanted, [1.0], (0.0, 1.0))
    with pytest.raises(ol.NotCompilable, match="cannot compile") as caught:
        ol.solve(problem, ol.DOPRI5, ol.adaptive(), engine="compiled")
    line = a_value_is_wanted.__code__.co_firstlineno + 2
    assert "test_single.py" in str(caught.value)
    assert f"line {line}" in str(caught.value)
    assert caught.value.__cause__ is not None


class Decay:
    def __call__(self, t, u, params):
        return (-u[0],)

    def rate(self, t, u, params):
        return (-u[0],)


def with_gain(t, u, params, gain):
    return (-gain * u[0],)


@pytest.mark.parametrize("rhs", [Decay(), Decay().rate, functools.partial(with_gain, gain=1.0)])
def test_objects_and_methods_are_compiled_as_functions_are(rhs):
    run = ol.solve(ol.Problem(rhs, [1.0], (0.0, 1.0)), ol.DOPRI5, ol.adaptive(), engine="compiled")
    np.testing.assert_allclose(run.end_u, np.exp(-1.0), rtol=1e-5)


@needs_numba
def test_what_cannot_be_compiled_runs_plainly_with_one_warning(monkeypatch):
    monkeypatch.setattr(choice, "GENERIC_WORK", 0)
    problem = ol.Problem(a_value_is_wanted, [1.0], (0.0, 1.0))
    choice.refused.pop(a_value_is_wanted, None)
    with pytest.warns(RuntimeWarning, match="plain Python") as caught:
        first = ol.solve(problem, ol.DOPRI5, ol.adaptive())
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert first.engine == "python"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = ol.solve(problem, ol.DOPRI5, ol.adaptive())
    np.testing.assert_array_equal(again.u, first.u)


def test_a_run_is_compiled_at_once_and_the_same_call_gives_the_same_bits():
    def fresh(t, u, params):
        return (-u[0],)

    problem = ol.Problem(fresh, [1.0], (0.0, 1.0))
    runs = [ol.solve(problem, ol.RK4, ol.fixed(0.01)) for _ in range(3)]
    assert [one.engine for one in runs] == ["compiled"] * 3
    for other in runs[1:]:
        np.testing.assert_array_equal(other.u, runs[0].u)


def array_spring(t, u, params):
    return np.array([[0.0, 1.0], [-1.0, -0.1]]) @ u


@pytest.mark.parametrize("params", [(), (2.0,), np.array([[0.0, 1.0], [-1.0, -0.1]])], ids=["none", "number", "matrix"])
def test_an_array_form_agrees_with_plain_python_whatever_its_parameters(params):
    def turning(t, u, params):
        return array_spring(t, u, params)

    def scaled(t, u, params):
        return params[0] * array_spring(t, u, params)

    def by_matrix(t, u, params):
        return params @ u

    rhs = by_matrix if isinstance(params, np.ndarray) else scaled if params else turning
    problem = ol.Problem(rhs, [1.0, 0.0], (0.0, 5.0), params=params)
    compiled, plain = (ol.solve(problem, ol.DOPRI5, engine=engine) for engine in ("compiled", "python"))
    assert compiled.steps == plain.steps
    np.testing.assert_allclose(compiled.end_u, plain.end_u, rtol=1e-7)


def twice(t, u, params):
    both = u + u  # of arrays a sum, of tuples one behind the other
    return -both[0], -both[1]


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4], ids=["explicit", "implicit"])
def test_the_state_is_an_array_in_every_engine(method):
    problem = ol.Problem(twice, [1.0, 2.0], (0.0, 1.0))
    for engine in ("compiled", "python"):
        run = ol.solve(problem, method, engine=engine)
        np.testing.assert_allclose(run.end_u, np.exp(-2.0) * np.array([1.0, 2.0]), rtol=1e-5)
    many = ol.ensemble(problem, method, u0=[[1.0, 2.0]])
    np.testing.assert_allclose(many.u[0], run.end_u, rtol=1e-5)


def test_an_event_that_means_another_thing_for_a_tuple():
    engines = ("compiled", "python")
    problem = ol.Problem(lambda t, u, params: (u[1], -u[0]), [1.0, 0.0], (0.0, 9.0))
    found = [ol.solve(problem, ol.DOPRI5, events=doubled, engine=engine).events[0].t for engine in engines]
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def doubled(t, u, params):
    return (u + u)[1] - 0.5


@pytest.mark.slow
@needs_numba
@pytest.mark.parametrize("dense", [True, False])
def test_an_array_form_that_stops_answering(dense):
    """The wrong answer comes late, after steps that hold; what it was is told as in plain Python."""

    def fades(t, u, params):
        if t > 3.0:
            return None
        return -u

    problem = ol.Problem(fades, [1.0, 2.0], (0.0, 5.0))
    compiled, plain = (
        ol.solve(problem, ol.EULER, ol.fixed(0.125), engine=engine, dense=dense, throw=False)
        for engine in ("compiled", "python")
    )
    assert compiled.status == plain.status == "wrong_shape"
    assert "the right-hand side returned None" in compiled.message
    assert compiled.steps == plain.steps == 25
    np.testing.assert_allclose(compiled.end_u, 2.0 ** np.arange(2) * 0.875**25, rtol=1e-14)


@pytest.mark.slow
@needs_numba
def test_an_attempt_that_fails_leaves_the_state_alone():
    """After an error fewer attempts are tried again; a run that keeps no states has used their two rows by then."""
    table = np.linspace(1.0, 0.0, 8)

    def from_table(t, u, params, out):
        out[0] = -1.0
        out[1] = table[8 if t > 3.0 and u[0] > 4.0 else 0]

    problem = ol.Problem(from_table, [8.0, 0.0], (0.0, 9.0))
    for engine in ("python", "compiled"):
        with pytest.raises(IndexError, match="index 8 is out of bounds for axis 0 with size 8"):
            ol.solve(problem, ol.EULER, ol.fixed(0.125), engine=engine, dense=False)


# The text


def test_a_kernel_can_be_read(capsys):
    ol.show_kernel(SYSTEMS["kepler"], ol.DOPRI5)
    text = capsys.readouterr().out
    assert "def kepler(t, u, params):" in text
    assert "after the attempt" in text
    assert "new u3 = u3 if" in text
    assert "0.3" in text  # the time of the third stage
    ol.show_kernel(SYSTEMS["kepler"], ol.HEUN, ol.fixed(0.1), layout="lanes", ir=True)
    assert "define void @lanes(" in capsys.readouterr().out
    ol.show_kernel(SYSTEMS["kepler"], ol.HEUN, ir=True)
    assert "define void @advance(" in capsys.readouterr().out
    with pytest.raises(ValueError, match="layout"):
        ol.show_kernel(SYSTEMS["kepler"], ol.DOPRI5, layout="wide")
    with pytest.raises(ValueError, match="there is no such kernel"):
        ol.show_kernel(SYSTEMS["kepler"], ol.RKC2, layout="lanes")


def test_a_damaged_coefficient_is_noticed():
    """The comparisons above can fail: a kernel of a tableau with one moved coefficient takes other steps."""
    method = ol.RKF45
    first, *others = method.tableau.b
    damaged = dataclasses.replace(method)
    vars(damaged)["tableau"] = method.tableau._replace(b=(first + 1e-8, *others))
    kernel = run(TracedEngine(SYSTEMS["kepler"], damaged, ol.adaptive(1e-5)), 10**6)
    plain = ol.solve(SYSTEMS["kepler"], method, ol.adaptive(1e-5), engine="python")
    with pytest.raises(AssertionError):
        assert_same_run(kernel, plain)


def test_kepler_is_the_same_function_for_numbers_and_rows():
    u = np.random.default_rng(0).normal(size=(4, 3))
    rows = np.array(kepler(0.0, u, ()))
    for i in range(3):
        np.testing.assert_allclose(rows[:, i], kepler(0.0, u[:, i], ()), rtol=1e-15)
