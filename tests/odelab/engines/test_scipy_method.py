"""Our methods inside SciPy: `solve_ivp(method=ol.scipy_method(m))`."""

import numpy as np
import pytest
from scipy.integrate import OdeSolver, solve_ivp

import odelab as ol
from tests.odelab.solver_cases import CIRCLE, EMBEDDED, EXPLICIT, NAMED, PENDULUM, Recorder

every_method = pytest.mark.parametrize("method", EXPLICIT, **NAMED)
embedded_method = pytest.mark.parametrize("method", EMBEDDED, **NAMED)
SPAN = (0.0, 4.0)


def options(method, rtol=1e-6, atol=1e-8):
    return {"rtol": rtol, "atol": atol} if method.embedded else {"step": 0.05}


def controller(method, **given):
    return ol.adaptive(**options(method, **given)) if method.embedded else ol.fixed(0.05)


def through_scipy(method, fun=PENDULUM.slope, span=SPAN, u0=PENDULUM.u0, **given):
    return solve_ivp(fun, span, u0, method=ol.scipy_method(method), **{**options(method), **given})


@every_method
@pytest.mark.parametrize("span", [SPAN, SPAN[::-1]])
def test_the_same_steps_as_ours(method, span):
    theirs = through_scipy(method, span=span)
    mine = ol.solve(PENDULUM.replace(t_span=span), method, controller(method), engine="python")
    assert theirs.success
    np.testing.assert_array_equal(theirs.t, mine.t)
    np.testing.assert_array_equal(theirs.y.T, mine.u)
    assert theirs.nfev == mine.evaluations


@every_method
@pytest.mark.parametrize("span", [SPAN, SPAN[::-1]])
def test_dense_output_is_ours(method, span):
    theirs = through_scipy(method, span=span, dense_output=True)
    mine = ol.solve(PENDULUM.replace(t_span=span), method, controller(method), engine="python")
    t = np.linspace(*span, 57)
    np.testing.assert_allclose(theirs.sol(t).T, mine(t), rtol=0, atol=1e-12)
    assert theirs.sol(1.0).shape == (2,)


@every_method
def test_t_eval(method):
    times = np.linspace(*SPAN, 13)
    theirs = through_scipy(method, t_eval=times)
    mine = ol.solve(PENDULUM, method, controller(method), t_eval=times, engine="python")
    np.testing.assert_array_equal(theirs.t, times)
    np.testing.assert_allclose(theirs.y.T, mine.u, rtol=0, atol=1e-12)


@every_method
def test_events(method):
    def height(t, u):
        return u[0]

    height.terminal = True
    theirs = solve_ivp(
        CIRCLE.slope, (0.0, 10.0), CIRCLE.u0, method=ol.scipy_method(method), events=height, **options(method)
    )
    mine = ol.solve(CIRCLE, method, controller(method), events=lambda t, u, p: u[0], engine="python").events[0]
    assert theirs.status == 1
    assert theirs.t[-1] == pytest.approx(mine.t[0], abs=1e-11)  # on the dense output, as SciPy takes it
    np.testing.assert_allclose(theirs.y[:, -1], mine.u[0], rtol=0, atol=1e-11)


@every_method
def test_nfev_counts_every_call(method):
    rhs = Recorder(lambda t, u, params: PENDULUM.slope(t, u))
    theirs = through_scipy(method, lambda t, u: rhs(t, u, ()))
    assert theirs.nfev == len(rhs.times)


@embedded_method
def test_error_falls_with_the_tolerance(method):
    errors = []
    for rtol in (1e-4, 1e-6):
        theirs = solve_ivp(CIRCLE.slope, (0.0, 10.0), CIRCLE.u0, method=ol.scipy_method(method), rtol=rtol, atol=rtol)
        errors.append(np.abs(theirs.y[:, -1] - CIRCLE.exact(10.0, ())).max())
    assert errors[0] < 5e-3
    assert errors[1] < 0.05 * errors[0]


@embedded_method
@pytest.mark.parametrize("given", [{"law": "h211b"}, {"first_step": 1e-3}, {"max_step": 0.05}])
def test_options_reach_the_controller(method, given):
    theirs = through_scipy(method, **given)
    mine = ol.solve(PENDULUM, method, ol.adaptive(1e-6, 1e-8, **given), engine="python")
    np.testing.assert_array_equal(theirs.t, mine.t)


def test_parameters_by_args():
    theirs = solve_ivp(lambda t, u, rate: rate * u, (0.0, 1.0), [1.0], method=ol.scipy_method(ol.RKF45), args=(-2.0,))
    assert theirs.y[0, -1] == pytest.approx(np.exp(-2.0), rel=1e-3)


def test_a_vectorised_right_hand_side():
    theirs = through_scipy(ol.DOPRI5, lambda t, u: np.array([u[1], -u[0]]), vectorized=True)
    assert theirs.success


def test_a_right_hand_side_may_reuse_its_answer():
    answer = np.empty(2)

    def reusing(t, u):
        answer[:] = PENDULUM.slope(t, u)
        return answer

    np.testing.assert_array_equal(through_scipy(ol.DOPRI5, reusing).y, through_scipy(ol.DOPRI5).y)


def test_nan_does_not_hang():
    theirs = through_scipy(ol.DOPRI5, lambda t, u: np.array([u[1], np.nan if t > 1.0 else -u[0]]))
    assert (theirs.success, theirs.status) == (False, -1)
    assert "step size" in theirs.message
    assert theirs.t[-1] <= 1.0


def test_blow_up_ends():
    theirs = solve_ivp(lambda t, u: u * u, (0.0, 2.0), [1.0], method=ol.scipy_method(ol.RKF45))
    assert theirs.status == -1
    assert theirs.t[-1] == pytest.approx(1.0, abs=1e-3)


def test_an_overflowing_fixed_step_ends():
    with np.errstate(over="ignore", invalid="ignore"):
        theirs = solve_ivp(lambda t, u: -1e6 * u, (0.0, 100.0), [1.0], method=ol.scipy_method(ol.EULER), step=0.1)
    assert theirs.status == -1
    assert np.isfinite(theirs.y).all()


def test_one_class_per_method():
    solver = ol.scipy_method(ol.RKF45)
    assert issubclass(solver, OdeSolver)
    assert solver is ol.scipy_method(ol.RKF45)
    assert (solver.__name__, solver.order) == ("RKF45", 5)


@pytest.mark.parametrize(
    ("method", "given", "error", "words"),
    [
        (ol.RK4, {}, ValueError, "RK4 has no embedded method to choose steps by; give a fixed size"),
        (ol.RKF45, {"rtol": -1.0}, ValueError, "`rtol` must be a number between 0 and 1, got -1.0"),
        (ol.RKF45, {"law": "none"}, ValueError, "`law` must be one of"),
        (ol.RK4, {"step": 0.0}, ValueError, "`h` must be a positive, finite step size"),
        (ol.RKF45, {"speed": 3}, TypeError, "RKF45 does not know the option 'speed'"),
    ],
)
def test_wrong_options_are_refused(method, given, error, words):
    with pytest.raises(error, match=words):
        solve_ivp(CIRCLE.slope, (0.0, 1.0), CIRCLE.u0, method=ol.scipy_method(method), **given)


def test_a_wrong_shape_is_refused():
    with pytest.raises(ValueError, match=r"`fun` returned shape \(3,\) for a state of shape \(2,\)"):
        through_scipy(ol.RKF45, lambda t, u: np.ones(3))


@pytest.mark.parametrize("method", [ol.RADAU, ol.RKC2, ol.AUTO, "RKF45", None])
def test_only_methods_of_a_fixed_number_of_stages(method):
    with pytest.raises(TypeError, match=r"`method` must be an explicit Method .*, or an implicit one like odelab\.ROD"):
        ol.scipy_method(method)


# Implicit methods get a Jacobian beside the right-hand side.

IMPLICIT = [ol.ROS2, ol.RODAS4, ol.RODAS5P, ol.ESDIRK43]
every_implicit_method = pytest.mark.parametrize("method", IMPLICIT, **NAMED)
STIFF = ol.problems.van_der_pol(mu=100.0).replace(t_span=(0.0, 60.0))


def stiff(t, u, mu):
    x, y = u
    return y, mu * (1.0 - x * x) * y - x


def jacobian(t, u, mu):
    x, y = u
    return np.array([[0.0, 1.0], [-2.0 * mu * x * y - 1.0, mu * (1.0 - x * x)]])


@every_implicit_method
@pytest.mark.parametrize("jac", [None, jacobian], ids=["derived", "own"])
def test_implicit_steps_are_ours(method, jac):
    options = {"rtol": 1e-5, "atol": 1e-8, "args": (100.0,), "dense_output": True, "jac": jac}
    theirs = solve_ivp(stiff, STIFF.t_span, STIFF.u0, method=ol.scipy_method(method), **options)
    mine = ol.solve(
        ol.Problem(lambda t, u: stiff(t, u, 100.0), STIFF.u0, STIFF.t_span),
        method,
        ol.adaptive(1e-5, 1e-8),
        engine="python",
    )
    np.testing.assert_allclose(theirs.t, mine.t, rtol=1e-9)
    np.testing.assert_allclose(theirs.y.T, mine.u, rtol=1e-7)
    assert (theirs.nfev, theirs.njev, theirs.nlu) == (mine.evaluations, mine.jacobians, mine.factorisations)
    t = np.linspace(*STIFF.t_span, 57)
    np.testing.assert_allclose(theirs.sol(t).T, mine(t), rtol=1e-6)


def test_a_constant_jacobian_is_a_matrix():
    J = np.diag([-1.0, -1e4])
    theirs = solve_ivp(lambda t, u: J @ u, (0.0, 1.0), [1.0, 1.0], method=ol.scipy_method(ol.RODAS4), jac=J, rtol=1e-6)
    assert theirs.y[0, -1] == pytest.approx(np.exp(-1.0), rel=1e-5)


def test_an_implicit_method_with_a_vectorised_right_hand_side_and_events():
    def half(t, u):
        return u[0] - 0.5

    half.terminal = True
    theirs = solve_ivp(
        lambda t, u: np.array([-u[0], -1e4 * (u[1] - u[0])]),
        (0.0, 5.0),
        [1.0, 0.0],
        method=ol.scipy_method(ol.RODAS4),
        vectorized=True,
        events=half,
        rtol=1e-8,
        atol=1e-10,
    )
    assert theirs.t[-1] == pytest.approx(np.log(2.0), rel=1e-6)


def test_explicit_methods_take_no_jacobian():
    with pytest.raises(TypeError, match="RKF45 does not know the option 'jac'"):
        through_scipy(ol.RKF45, jac=np.eye(2))
