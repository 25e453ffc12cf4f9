"""RKC2 on large systems: the compiled run is the one source's, however its radius is known and its `out` is filled."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odelab as ol
from odelab import _choice as choice
from odelab.engines.driver import run
from odelab.engines.numba import blending
from odelab.engines.numba.compiled import CompiledEngine
from odelab.engines.numba.jit import jit

BRUSSELATOR = ol.problems.brusselator_1d(30)


def radius_of(t, u, params):
    return 4.0 * params[0] * (0.5 * u.size + 1.0) ** 2 + 10.0


METHODS = {"estimated": ol.RKC2, "number": ol.rkc2(100.0), "function": ol.rkc2(radius_of)}


def both(problem, method, controller, **options):
    return [
        ol.solve(problem, method, controller, engine=engine, throw=False, **options)
        for engine in ("compiled", "python")
    ]


def assert_same(compiled, plain, digits=1e-10):
    assert (compiled.engine, plain.engine) == ("compiled", "python")
    assert (compiled.status, compiled.rejected, compiled.evaluations) == (
        plain.status, plain.rejected, plain.evaluations,
    )  # fmt: skip
    np.testing.assert_allclose(compiled.step_t, plain.step_t, rtol=1e-8)
    np.testing.assert_allclose(compiled.u, plain.u, rtol=digits, atol=digits * np.abs(plain.u).max())
    np.testing.assert_allclose(compiled.error, plain.error, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize(
    "known", ["estimated", *(pytest.param(how, marks=pytest.mark.slow) for how in ("number", "function"))]
)
@settings(max_examples=4, deadline=None)
@given(n=st.integers(2, 60), rtol=st.sampled_from([1e-2, 1e-3, 1e-4]), end=st.floats(0.1, 2.0))
def test_adaptive_runs_are_the_one_sources(known, n, rtol, end):
    problem = ol.problems.brusselator_1d(n).replace(t_span=(0.0, end))
    method = ol.rkc2(0.08 * (n + 1.0) ** 2 + 10.0) if known == "number" else METHODS[known]
    compiled, plain = both(problem, method, ol.adaptive(rtol, 1e-3 * rtol))
    assert_same(compiled, plain)
    np.testing.assert_allclose(compiled.slope, plain.slope, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(compiled.sai, plain.sai, rtol=1e-7)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(h=st.floats(0.02, 0.2), backwards=st.booleans())
def test_fixed_grids_are_the_one_sources(h, backwards):
    problem = BRUSSELATOR.replace(t_span=(0.0, -0.01) if backwards else (0.0, 1.0))
    compiled, plain = both(problem, ol.RKC2, ol.fixed(0.02 * h if backwards else h))
    assert_same(compiled, plain)


@pytest.mark.slow
def test_a_tolerance_for_each_component():
    controller = ol.adaptive(1e-3, np.geomspace(1e-6, 1e-4, 60))
    assert_same(*both(BRUSSELATOR.replace(t_span=(0.0, 1.0)), ol.RKC2, controller))


def corrected(t, u, params, out):
    """Stores its ends twice."""
    n = u.size
    for i in range(n):
        out[i] = -u[i]
    for i in range(1, n - 1):
        out[i] = 900.0 * (u[i - 1] - 2.0 * u[i] + u[i + 1])
    out[0], out[n - 1] = 0.0, t


def read_again(t, u, params, out):
    """Reads what it has stored."""
    for i in range(u.size):
        out[i] = -3.0 * u[i]
    for i in range(1, u.size):
        out[i] += 100.0 * (u[i - 1] - u[i])


def by_numpy(t, u, params, out):
    out[:] = -200.0 * u
    out[1:] += 100.0 * u[:-1]


def by_halves(t, u, params, out):
    half = u.size // 2
    first, second = out[:half], out[half:]
    for i in range(half):
        first[i], second[i] = -u[i], t - u[half + i]
    second[u.size - half - 1] = 0.0


def by_strides(t, u, params, out):
    even, odd = out[::2], out[1::2]
    for i in range(even.size):
        even[i] = -200.0 * u[2 * i]
    for i in range(odd.size):
        odd[i] = t - 2.0 * u[2 * i + 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rhs", "at_once"),
    [
        *((rhs, True) for rhs in (BRUSSELATOR.rhs, corrected, by_halves)),
        *((rhs, False) for rhs in (read_again, by_numpy, by_strides)),
    ],
    ids=lambda f: getattr(f, "__name__", None),
)
def test_a_stage_is_one_pass_wherever_the_right_hand_side_only_stores(rhs, at_once):
    params = BRUSSELATOR.params if rhs is BRUSSELATOR.rhs else ()
    u, inner, older, slope, spare = np.random.default_rng(0).uniform(1.0, 2.0, (5, 62))
    compiled = jit(rhs)
    found = blending.build_in(compiled)(0.0, params, 0.1, 0.2, u, 0.3, inner, 0.4, older, 0.5, 0.6, slope, spare)
    assert [("odelab.Sink" in str(signature)) for signature in compiled.signatures] == [at_once]
    of_inner = np.full(62, np.nan)
    rhs(0.1, inner, params, of_inner)
    expected = 0.2 * u + 0.3 * inner + 0.4 * older + 0.5 * of_inner + 0.6 * slope
    assert np.shares_memory(found, spare)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rhs",
    [corrected, *(pytest.param(f, marks=pytest.mark.slow) for f in (read_again, by_numpy, by_strides))],
    ids=lambda f: f.__name__,
)
def test_whatever_a_right_hand_side_does_with_out(rhs):
    problem = ol.Problem(rhs, np.linspace(1.0, 2.0, 37), (0.0, 0.3))
    assert_same(*both(problem, ol.rkc2(3600.0), ol.adaptive(1e-4, 1e-6)))


@pytest.mark.slow
def test_events_end_a_run():
    event = ol.Event(lambda t, u, params: u[0] - 1.01, terminal=True)
    compiled, plain = both(BRUSSELATOR, ol.RKC2, ol.adaptive(1e-3, 1e-6), events=event)
    assert compiled.status == plain.status == "event"
    np.testing.assert_allclose(compiled.t[-1], plain.t[-1], rtol=1e-8)


def undefined(t, u, params, out):
    """After a while its first component is NaN, or forgotten."""
    (told,) = params
    for i in range(u.size):
        if t < 0.5 or i > 0:
            out[i] = -u[i]
        elif told > 0.0:
            out[i] = np.nan


def exploding(t, u, params, out):
    for i in range(u.size):
        out[i] = u[i] * u[i]


@pytest.mark.parametrize(
    ("rhs", "told", "status"),
    [
        (undefined, 1.0, "not_finite"),
        (undefined, 0.0, "not_finite"),
        pytest.param(exploding, 0.0, "blow_up", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "controller",
    [ol.adaptive(1e-4, 1e-7), pytest.param(ol.fixed(0.01), marks=pytest.mark.slow)],
    ids=["adaptive", "fixed"],
)
def test_failures_are_told_alike(rhs, told, status, controller):
    compiled, plain = both(ol.Problem(rhs, np.ones(40), (0.0, 2.0), (told,)), ol.rkc2(1.0), controller)
    assert compiled.status == plain.status == status
    assert compiled.message[:40] == plain.message[:40]


@pytest.mark.parametrize(
    "stop", [KeyboardInterrupt(), SystemError("met on the way out")], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize(("attempts", "dense"), [(0, True), (5, True), (5, False)])
def test_ctrl_c_keeps_what_was_computed(attempts, dense, stop):
    """It is met when the kernel comes back, whose answer is lost; its arrays are not."""
    problem, controller = BRUSSELATOR.replace(t_span=(0.0, 1.0)), ol.adaptive(1e-3, 1e-6)
    engine = CompiledEngine(problem, ol.RKC2, controller, dense=dense)
    kernel = engine.compiled
    stop.__cause__ = KeyboardInterrupt()

    def stopped(*arguments):
        kernel(*arguments[:-1], attempts)
        raise stop

    stopped.signatures = ["it was running"]
    engine.compiled = stopped
    cut = run(engine, 10**6, dense=dense)
    whole = ol.solve(problem, ol.RKC2, controller, engine="compiled")
    assert whole.rejected == 0
    assert whole.steps > 5
    assert (cut.status, cut.steps) == ("interrupted", attempts)
    np.testing.assert_array_equal(cut.step_t, whole.step_t[: attempts + 1])
    np.testing.assert_array_equal(cut.end_u, whole.step_u[attempts])
    np.testing.assert_array_equal(cut.h, whole.h[:attempts])


def test_another_error_on_the_way_out_is_not_taken_for_ctrl_c():
    engine = CompiledEngine(BRUSSELATOR, ol.RKC2, ol.adaptive(1e-3, 1e-6))

    def failing(*arguments):
        raise SystemError("something else")

    failing.signatures = ["it was running"]
    engine.compiled = failing
    with pytest.raises(SystemError, match="something else"):
        run(engine, 10**6)


def turning(t, u, params, out):
    for i in range(u.size // 2):
        out[2 * i] = -3000.0 * u[2 * i + 1]
        out[2 * i + 1] = 3000.0 * u[2 * i]


@pytest.mark.slow
def test_beside_the_strip_and_out_of_budget():
    problem = ol.Problem(turning, np.ones(40), (0.0, 1.0))
    compiled, plain = both(problem, ol.RKC2, ol.adaptive(1e-4, 1e-7), max_steps=500)
    assert compiled.status == plain.status == "max_steps"
    assert compiled.steps + compiled.rejected == 500
    for trajectory in (compiled, plain):
        assert "its leading eigenvalues, " in trajectory.message


def test_a_kernel_serves_every_number_and_every_size():
    problem = BRUSSELATOR.replace(t_span=(0.0, 0.5))
    small = CompiledEngine(problem, ol.rkc2(100.0), ol.adaptive(1e-3, 1e-6))
    other = CompiledEngine(ol.problems.brusselator_1d(77), ol.rkc2(2e3), ol.adaptive(1e-4, 1e-7))
    assert small.compiled is other.compiled


def test_a_run_with_enough_to_do_is_compiled_by_itself():
    problem = ol.problems.brusselator_1d(1000).replace(t_span=(0.0, 0.5))
    assert ol.solve(problem, ol.RKC2, ol.adaptive(1e-4, 1e-6), dense=False).engine == "compiled"


def unknown_to_numba(t, u, params, out):
    out[:] = [-x for x in u.tolist()]


def test_what_numba_cannot_compile_runs_plainly_with_one_warning(monkeypatch):
    monkeypatch.setattr(choice, "WORK", 0)
    problem = ol.Problem(unknown_to_numba, np.ones(40), (0.0, 1.0))
    with pytest.warns(RuntimeWarning, match="plain Python") as caught:
        assert ol.solve(problem, ol.RKC2, ol.adaptive(1e-3)).engine == "python"
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ol.solve(problem, ol.RKC2, ol.adaptive(1e-3))


def given_up(t, u, params):
    return float(u.tolist()[0])


def test_a_spectral_radius_that_cannot_be_compiled_is_blamed_itself():
    problem = BRUSSELATOR.replace(t_span=(0.0, 0.1))
    with pytest.raises(ol.NotCompilable, match="cannot compile given_up: ") as caught:
        ol.solve(problem, ol.rkc2(given_up), ol.adaptive(1e-3), engine="compiled")
    assert f"line {given_up.__code__.co_firstlineno + 1}" in str(caught.value)


def test_the_kernel_can_be_read(capsys):
    ol.show_kernel(BRUSSELATOR, ol.rkc2(radius_of), ol.adaptive(1e-3))
    text = capsys.readouterr().out
    for part in ("radius_of", "brusselator_1d_rhs", "rkc_step", "propose_stable", "judge_stable", "integrate"):
        assert f"def {part}(" in text
    assert "numba compiles these together for brusselator_1d_rhs" in text
    with pytest.raises(ValueError, match="graphs are for Runge-Kutta and Rosenbrock methods"):
        ol.show_kernel(BRUSSELATOR, ol.RKC2, ol.adaptive(1e-3), layout="single")
