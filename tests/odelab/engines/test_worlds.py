"""One source, three worlds: NumPy, numba and torch take the same steps from the unchanged core."""

import numpy as np
import pytest

import odelab as ol
from odelab import core
from odelab.control import feedback as control
from odelab.control.controllers import error_ratio
from odelab.status import Status
from tests.odelab.solver_cases import EXPLICIT, NAMED, PENDULUM, pendulum

STEPS = 64
GRID = ol.fixed(4.0 / STEPS)


def array_pendulum(t, u, params):
    return np.array([u[1], -np.sin(u[0]) + params[0] * np.cos(t) * u[0]])


def filled_pendulum(t, u, params, out):
    out[0] = u[1]
    out[1] = -np.sin(u[0]) + params[0] * np.cos(t) * u[0]


FORMS = {
    "component": PENDULUM,
    "array": ol.Problem(array_pendulum, PENDULUM.u0, PENDULUM.t_span, (0.3,)),
    "in-place": ol.Problem(filled_pendulum, PENDULUM.u0, PENDULUM.t_span, (0.3,)),
}


def counted_run(step, rhs, record, carry, state, t1, attempts=10**6):
    """`core.integrate` with fixed steps."""
    propose, judge = control.propose_counted, control.accept_finite
    ways = (step, core.slope_alone, rhs, (), propose, judge, core.no_projection, record)
    return core.integrate(*ways, carry, state, t1, attempts)


def begun(u0, h):
    return core.State(0.0, u0, None, False, control.Counted(0.0, h, 0.0))


def torch_states(method, rhs, u0, t1, h):
    """The states of a fixed-step run in torch, straight through `core.integrate`."""
    import torch

    def slope(t, u, params):
        return torch.stack(list(rhs(torch.as_tensor(t, dtype=torch.float64), u, params)))

    status, end, states, rejected, evaluations = counted_run(method.step, slope, keep_state, [u0], begun(u0, h), t1)
    assert (status, end.t, rejected) == (Status.REACHED, t1, 0)
    return torch.stack(states), evaluations


@pytest.mark.parametrize("method", EXPLICIT, **NAMED)
def test_torch_takes_numpys_steps(method):
    torch = pytest.importorskip("torch")
    run = ol.solve(PENDULUM, method, GRID, engine="python")
    states, evaluations = torch_states(method, pendulum, torch.tensor(PENDULUM.u0.copy()), 4.0, 4.0 / STEPS)
    assert states.dtype == torch.float64
    np.testing.assert_allclose(states.numpy(), run.u, rtol=0, atol=1e-13)
    assert evaluations == run.evaluations


def test_gradients_flow_through_a_run():
    torch = pytest.importorskip("torch")
    u0 = torch.tensor(PENDULUM.u0.copy(), requires_grad=True)
    end = torch_states(ol.DOPRI5, pendulum, u0, 4.0, 4.0 / STEPS)[0][-1]
    (gradient,) = torch.autograd.grad(end[0], u0)

    def moved(step):
        return ol.solve(PENDULUM.replace(u0=PENDULUM.u0 + step), ol.DOPRI5, GRID, engine="python").u[-1, 0]

    step = 1e-6
    by_differences = [(moved(step * e) - moved(-step * e)) / (2 * step) for e in np.eye(2)]
    np.testing.assert_allclose(gradient.numpy(), by_differences, rtol=1e-8)


@pytest.mark.parametrize(
    ("method", "form"),
    [(ol.RK4, "component"), (ol.RK4, "array"), (ol.RK4, "in-place"), (ol.DOPRI5, "component")],
    **NAMED,
)
def test_compiled_code_takes_numpys_steps(method, form):
    plain = ol.solve(FORMS[form], method, GRID, engine="python")
    compiled = ol.solve(FORMS[form], method, GRID, engine="compiled")
    assert compiled.engine == "compiled"
    np.testing.assert_array_equal(compiled.t, plain.t)
    np.testing.assert_allclose(compiled.u, plain.u, rtol=0, atol=1e-13)
    np.testing.assert_allclose(compiled.slope, plain.slope, rtol=0, atol=1e-12)
    assert (compiled.evaluations, compiled.rejected) == (plain.evaluations, 0)


@pytest.mark.parametrize("law", ["pi", "h211b"])
def test_compiled_adaptive_runs_judge_as_numpy_does(law):
    """Not index by index: the last bits of a sum may move an adaptive step; but both keep the tolerance alike."""
    tolerance = ol.adaptive(1e-6, 1e-9, law)
    plain = ol.solve(PENDULUM, ol.DOPRI5, tolerance, engine="python")
    compiled = ol.solve(PENDULUM, ol.DOPRI5, tolerance, engine="compiled")
    assert abs(compiled.steps - plain.steps) <= 1
    assert (compiled.error <= 1.0).all()
    np.testing.assert_allclose(compiled.h[:5], plain.h[:5], rtol=1e-7)
    np.testing.assert_allclose(compiled(plain.t), plain.u, rtol=0, atol=1e-6)


def test_the_two_forms_are_the_same_problem():
    for form in ("array", "in-place"):
        run = ol.solve(FORMS[form], ol.DOPRI5, GRID, engine="python")
        expected = ol.solve(PENDULUM, ol.DOPRI5, GRID, engine="python")
        np.testing.assert_allclose(run.u, expected.u, rtol=0, atol=1e-13)


def test_a_projection_is_compiled_too():
    plain = ol.solve(PENDULUM, ol.RK4, GRID, project=positive, engine="python")
    compiled = ol.solve(PENDULUM, ol.RK4, GRID, project=positive, engine="compiled")
    assert plain.u.min() == 0.0
    np.testing.assert_allclose(compiled.u, plain.u, rtol=0, atol=1e-13)


def positive(u):
    return np.maximum(u, 0.0)


def array_slope(t, u, params):
    return np.array(pendulum(t, u, params))


def keep_state(states, memory, t, dt, h, u, slopes, mean_slope, u_new):
    return [*states, u_new]


@pytest.mark.parametrize("method", [ol.BS32, ol.DOPRI5, ol.DOP853], **NAMED)
def test_first_same_as_last_saves_an_evaluation_and_changes_nothing(method):
    """The same tableau with the flag down evaluates each new state again."""
    assert method.tableau.fsal
    runs = {}
    for flag in (True, False):
        step = core.rk_step_of(core.combine, method.tableau._replace(fsal=flag))
        state = begun(np.array(PENDULUM.u0), 4.0 / STEPS)
        _, _, states, _, evaluations = counted_run(step, array_slope, keep_state, [], state, 4.0)
        runs[flag] = evaluations, states
    assert runs[True][0] == STEPS * (method.stages - 1) + 1
    assert runs[False][0] == STEPS * method.stages
    np.testing.assert_allclose(np.array(runs[True][1]), np.array(runs[False][1]), rtol=0, atol=1e-13)


def test_a_run_can_be_cut_into_pieces():
    """What `integrate` returns can be handed in again: one attempt at a time is the same run."""
    parts, evaluations = [], 0
    state = begun(np.array(PENDULUM.u0), 4.0 / STEPS)
    status = Status.ATTEMPTS_SPENT
    while status == Status.ATTEMPTS_SPENT:
        status, state, parts, _, spent = counted_run(
            ol.DOPRI5.step, array_slope, keep_state, parts, state, 4.0, attempts=1
        )
        evaluations += spent
    run = ol.solve(PENDULUM, ol.DOPRI5, GRID, engine="python")
    np.testing.assert_array_equal(np.array(parts), run.u[1:])
    assert evaluations == run.evaluations


def test_a_carry_that_keeps_nothing():
    *_, carry, _, evaluations = counted_run(
        ol.EULER.step, lambda t, u, params: -u, core.no_record, "untouched", begun(np.ones(1), 0.5), 1.0
    )
    assert (carry, evaluations) == ("untouched", 2)


def test_error_ratio_is_the_root_mean_square():
    u, u_new = np.array([1.0, -4.0]), np.array([-2.0, 3.0])
    error = np.array([0.03, -0.2])
    expected = np.sqrt(((0.03 / (0.01 + 0.1 * 2)) ** 2 + (0.2 / (0.01 + 0.1 * 4)) ** 2) / 2)
    assert error_ratio([error], u, u_new, 0.1, 0.01) == pytest.approx(expected, rel=1e-14)
