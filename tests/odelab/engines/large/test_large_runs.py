"""Kernels of systems of any size equal the one source, through refused steps, growing records and failures."""

import subprocess
import sys

import numpy as np
import pytest

import odelab as ol
from odelab.engines.driver import run
from odelab.engines.large import LargeEngine
from odelab.kernels import store
from tests.odelab.kernels.kernel_cases import RELAXING, ROTATING, assert_same_run, both


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RKF45], ids=lambda m: m.name)
def test_large_systems_are_the_one_sources(method):
    tolerances = 1e-6 if method is ol.DOPRI5 else np.geomspace(1e-8, 1e-6, 70)
    assert_same_run(*both(ROTATING, method, ol.adaptive(1e-5, tolerances)))
    kernel, plain = both(ROTATING, method, ol.fixed(0.03))
    np.testing.assert_allclose(kernel.u, plain.u, rtol=1e-13, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("method", list(ol.METHODS.values()), ids=lambda m: m.name)
def test_large_systems_with_every_method(method):
    for law in ("i", "pi") if method.embedded else ():
        assert_same_run(*both(ROTATING, method, ol.adaptive(1e-4, 1e-6, law)))
    kernel, plain = both(ROTATING, method, ol.fixed(0.03))
    np.testing.assert_allclose(kernel.u, plain.u, rtol=1e-13, atol=1e-13)


def test_events_need_states():
    with pytest.raises(ValueError, match="events"):
        ol.solve(ROTATING, ol.DOPRI5, ol.adaptive(), events=lambda t, u, params: u[0], dense=False)


@pytest.mark.parametrize("form", ["in-place", "array", "component"])
def test_one_kernel_serves_every_size(form, monkeypatch):
    """A kernel of another size or form of the same system is not compiled again, and no run imports numba's."""
    made = []
    make = store.kernel

    def counted(key, call, *alive):
        return make(key, lambda: made.append(key) or call(), *alive)

    rhs = {"in-place": rotating_pairs, "array": rotating_arrays, "component": rotating_components}[form]
    monkeypatch.setattr(store, "kernel", counted)
    monkeypatch.setattr(store, "kernels", type(store.kernels)())
    for n in (120, 98, 202):
        problem = ol.Problem(rhs, np.linspace(-1.0, 1.0, n), (0.0, 1.0), (2.0,))
        assert_same_run(*both(problem, ol.DOPRI5, ol.adaptive(1e-5, 1e-7)))
    assert len(made) == 1


def rotating_pairs(t, u, params, out):
    half = u.size // 2
    for i in range(half):
        out[i] = params[0] * u[half + i]
        out[half + i] = -params[0] * u[i] + 0.01 * t


def rotating_arrays(t, u, params):
    half = u.size // 2
    return np.concatenate((params[0] * u[half:], -params[0] * u[:half] + 0.01 * t))


def rotating_components(t, u, params):
    return tuple(rotating_arrays(t, np.asarray(u), params))


def test_a_coefficient_for_each_component_is_handed_over(monkeypatch):
    """Other numbers in a captured array, also a longer one, are no other kernel."""
    rates = np.linspace(0.5, 2.0, 60)

    def decaying(t, u, params):
        return -rates * u

    first = ol.Problem(decaying, np.ones(60), (0.0, 1.0))
    assert_same_run(*both(first, ol.DOPRI5, ol.adaptive(1e-5, 1e-7)))
    known = set(store.kernels)
    rates[:] = np.linspace(3.0, 1.0, 60)
    assert_same_run(*both(first, ol.DOPRI5, ol.adaptive(1e-5, 1e-7)))
    rates = np.linspace(1.0, 2.5, 75)
    assert_same_run(*both(ol.Problem(decaying, np.ones(75), (0.0, 1.0)), ol.DOPRI5, ol.adaptive(1e-5, 1e-7)))
    assert set(store.kernels) == known


TABLE = np.array([1.0, 2.0, 3.0, 4.0])


def looked_up(t, u, params, out):
    for i in range(u.size):
        out[i] = TABLE[int(u[i])]


def test_an_error_of_the_users_function_is_its_own():
    """The state grows out of the table: plain Python makes that attempt again, and raises the user's error."""
    problem = ol.Problem(looked_up, np.linspace(0.0, 1.5, 60), (0.0, 5.0))
    with pytest.raises(IndexError, match="out of bounds"):
        ol.solve(problem, ol.DOPRI5, ol.adaptive(1e-5, 1e-7), engine="compiled")
    assert_same_run(*both(problem.replace(t_span=(0.0, 0.5)), ol.DOPRI5, ol.fixed(0.1)))


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RKF45], ids=lambda method: method.name)
def test_states_at_times_and_between_are_plain_pythons(method):
    times = np.linspace(0.0, 3.0, 11)
    for dense in (True, False):
        kernel, plain = both(ROTATING, method, ol.adaptive(1e-6, 1e-8), t_eval=times, dense=dense)
        np.testing.assert_allclose(kernel.u, plain.u, rtol=1e-9, atol=1e-9)
        assert (kernel.steps, kernel.evaluations) == (plain.steps, plain.evaluations)


def test_events_and_projections_are_plain_pythons():
    event = ol.Event(lambda t, u, params: u[3], terminal=True)
    kernel, plain = both(ROTATING, ol.DOPRI5, ol.adaptive(1e-6, 1e-8), events=event)
    np.testing.assert_allclose(kernel.events[0].t, plain.events[0].t, rtol=1e-8)
    kernel, plain = both(ROTATING, ol.DOPRI5, ol.fixed(0.05), project=lambda u: np.maximum(u, -0.5))
    assert kernel.evaluations == plain.evaluations
    np.testing.assert_allclose(kernel.u, plain.u, rtol=1e-12, atol=1e-12)
    assert kernel.step_u[1:].min() == -0.5


TURNS = {"i": ol.adaptive(1e-5, 1e-7, "i"), "pi": ol.adaptive(1e-5, np.geomspace(1e-8, 1e-7, 34), "pi")}


@pytest.mark.parametrize("law", ["pi", pytest.param("i", marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", [ol.DOPRI5, pytest.param(ol.RKF45, marks=pytest.mark.slow)], ids=lambda m: m.name)
def test_refused_steps_and_a_record_that_grows(method, law):
    kernel, plain = both(RELAXING, method, TURNS[law])
    assert_same_run(kernel, plain)
    assert kernel.steps > 1100  # more than the record has room for at first
    assert kernel.rejected > 200


@pytest.mark.parametrize("backwards", [False, True])
def test_a_largest_step_is_kept(backwards):
    problem = RELAXING.replace(t_span=(0.0, -2.0) if backwards else (0.0, 10.0))
    kernel, plain = both(problem, ol.DOPRI5, ol.adaptive(1e-4, 1e-6, max_step=0.05))
    assert_same_run(kernel, plain)
    assert np.abs(kernel.h).max() <= 0.05 * (1 + 1e-9)
    assert np.count_nonzero(np.abs(kernel.h) > 0.0499) > 20


def undefined(t, u, params, out):
    for i in range(u.size):
        out[i] = -u[i] if t < 0.5 or i < u.size - 1 else np.nan


def exploding(t, u, params, out):
    for i in range(u.size):
        out[i] = u[i] * u[i]


@pytest.mark.parametrize("controller", [ol.adaptive(1e-5, 1e-7), ol.fixed(0.01)], ids=["adaptive", "fixed"])
@pytest.mark.parametrize(("rhs", "status"), [(undefined, "not_finite"), (exploding, "blow_up")])
def test_failures_are_told_alike(rhs, status, controller):
    kernel, plain = both(ol.Problem(rhs, np.linspace(0.5, 1.0, 40), (0.0, 3.0)), ol.DOPRI5, controller)
    assert kernel.status == plain.status == status
    assert kernel.message.split(":")[0][:30] == plain.message.split(":")[0][:30]
    np.testing.assert_allclose(kernel.t[-1], plain.t[-1], rtol=1e-6)
    assert np.isfinite(kernel.u).all()


def forgetful(t, u, params, out):
    """From t = 0.5 on its first component is left as it was."""
    for i in range(u.size):
        if t < 0.5 or i > 0:
            out[i] = -u[i]


@pytest.mark.parametrize(
    ("method", "controller"),
    [(ol.DOPRI5, ol.adaptive(1e-5, 1e-7)), (ol.RK4, ol.fixed(0.01))]
    + [
        pytest.param(*slow, marks=pytest.mark.slow)
        for slow in ((ol.RKF45, ol.adaptive(1e-5, 1e-7)), (ol.DOPRI5, ol.fixed(0.01)))
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_a_component_that_is_left_out_is_seen_within_a_step(method, controller):
    kernel, plain = both(ol.Problem(forgetful, np.linspace(0.5, 1.0, 40), (0.0, 3.0)), method, controller)
    assert kernel.status == plain.status == "not_finite"
    assert kernel.step_t[-2] <= 0.5  # where its last step began


@pytest.mark.parametrize("dense", [True, False])
def test_ctrl_c_keeps_what_was_computed(dense):
    """It is met when the kernel comes back, with all its attempts made."""
    controller = ol.adaptive(1e-5, 1e-7)
    engine = LargeEngine(ROTATING, ol.DOPRI5, controller, dense=dense)
    kernel, attempts = engine.kernel, 7

    def stopped(*arguments):
        kernel.advance(*arguments[:-2], attempts, arguments[-1])
        raise KeyboardInterrupt

    engine.kernel = kernel._replace(advance=stopped)
    cut = run(engine, 10**6, dense=dense)
    whole = ol.solve(ROTATING, ol.DOPRI5, controller, engine="compiled")
    assert (cut.status, cut.steps + cut.rejected) == ("interrupted", attempts)
    np.testing.assert_array_equal(cut.step_t, whole.step_t[: cut.steps + 1])
    np.testing.assert_array_equal(cut.end_u, whole.step_u[cut.steps])


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RK4], ids=lambda method: method.name)
def test_the_stiffness_of_a_tiny_step_has_all_its_digits(method):
    """SAI comes from the mean slope: the difference of two states would keep half of the digits here."""
    kernel, plain = both(ROTATING.replace(t_span=(0.0, 1e-7)), method, ol.fixed(1e-8))
    np.testing.assert_allclose(kernel.sai, plain.sai, rtol=1e-12)


def test_no_run_of_the_graph_imports_numba():
    code = (
        "import sys, odelab as ol\n"
        "for method in (ol.DOPRI5, ol.RODAS4):\n"
        "    ol.solve(ol.problems.heat_1d(60).replace(t_span=(0.0, 1e-3)), method, engine='compiled')\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4], ids=lambda method: method.name)
def test_the_rows_and_the_attempt_of_a_kernel_can_be_read(method, capsys):
    ol.show_kernel(ol.problems.heat_1d(60), method)
    text = capsys.readouterr().out
    assert "58 rows from 1 to 58" in text
    assert "new next_step = " in text
    ol.show_kernel(ol.problems.heat_1d(60), method, ir=True)
    assert "define void @advance" in capsys.readouterr().out
