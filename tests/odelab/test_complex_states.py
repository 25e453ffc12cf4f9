"""Complex states: the same run as that of their parts, exact derivatives that need not be analytic, closed forms."""

import pickle

import numpy as np
import pytest

import odelab as ol
from odelab.linear.linearisation import Linearisation
from odelab.problem import array_form

SHARP = ol.adaptive(1e-12, 1e-13)
n = 12
x = np.linspace(-5.0, 5.0, n)
spacing = x[1] - x[0]
H = np.diag(1.0 / spacing**2 + 0.5 * x**2) - 0.5 / spacing**2 * (np.eye(n, k=1) + np.eye(n, k=-1))
psi = np.exp(-0.5 * (x - 1.0) ** 2).astype(complex)
psi /= np.linalg.norm(psi)


def schroedinger(t, u, params):
    """Not analytic: |u|^2 u."""
    return -1j * (H @ u) - 20j * np.abs(u) ** 2 * u


def circle(t, u, params):
    (rate,) = params
    return 1j * rate * u


def turning(t1=3.0, rate=-1.0, **given):
    return ol.Problem(circle, [1.0 + 0.0j, 2.0j], (0.0, t1), (rate,), **given)


@pytest.mark.parametrize(
    "method", [ol.DOPRI5, ol.DOP853, ol.RODAS4, ol.RODAS5P, ol.ESDIRK43, ol.AUTO, ol.RKC2, ol.RADAU]
)
def test_every_method_has_the_run_of_the_parts(method):
    """The same numbers to the bit as a user has who splits the problem himself."""

    def by_hand(t, u, params):
        answer = schroedinger(t, u[:n] + 1j * u[n:], params)
        return np.concatenate((answer.real, answer.imag))

    split = ol.Problem(by_hand, np.concatenate([psi.real, psi.imag]), (0.0, 0.2))
    engine = "auto" if method.run_by_scipy else "python"
    one = ol.solve(ol.Problem(schroedinger, psi, (0.0, 0.2)), method, engine=engine)
    other = ol.solve(split, method, engine=engine)
    assert one.u.dtype == complex
    assert one.u.shape == (other.steps + 1, n)
    np.testing.assert_array_equal(one.u.real, other.u[:, :n])
    np.testing.assert_array_equal(one.u.imag, other.u[:, n:])
    np.testing.assert_array_equal(one.sai, other.sai)
    assert one.message == other.message


@pytest.mark.slow
@pytest.mark.parametrize("method", [ol.BS32, ol.RKC2])
def test_explicit_methods_are_compiled(method):
    plain, compiled = (ol.solve(turning(), method, engine=engine) for engine in ("python", "compiled"))
    assert compiled.engine == "compiled"
    np.testing.assert_allclose(compiled.end_u, plain.end_u, rtol=1e-12)


def test_what_cannot_be_compiled_says_so():
    with pytest.raises(ol.NotCompilable, match="uses complex numbers"):
        ol.solve(turning(), ol.RODAS4, engine="compiled")


def filling(t, u, params, out):
    for i in range(len(out)):
        out[i] = -1j * u[i]


@pytest.mark.parametrize("method", [ol.DOP853, ol.RODAS5P])
@pytest.mark.parametrize(
    "rhs",
    [lambda t, u, params: -1j * u, lambda t, u, params: (-1j * u[0], -1j * u[1]), lambda t, u: -1j * u, filling],
    ids=["array", "component", "without parameters", "in place"],
)
def test_closed_form_in_every_form_of_a_right_hand_side(method, rhs):
    problem = ol.Problem(rhs, [1.0 + 0.0j, 2.0j], (0.0, 3.0))
    sol = ol.solve(problem, method, SHARP)
    np.testing.assert_allclose(sol.end_u, np.array([1.0, 2.0j]) * np.exp(-3.0j), rtol=1e-10)


def test_linear_problems_have_their_exponential_to_twelve_digits():
    from scipy.linalg import expm

    problem = ol.Problem(lambda t, u, params: -1j * (H @ u), psi, (0.0, 1.0))
    sol = ol.solve(problem, ol.DOP853, ol.adaptive(1e-13, 1e-15))
    assert np.abs(sol.end_u - expm(-1j * H) @ psi).max() <= 1e-12


@pytest.mark.parametrize(("method", "order"), [(ol.RODAS4, 4), (ol.RODAS5P, 5), (ol.ESDIRK43, 4), (ol.RK4, 4)])
def test_methods_keep_their_order_where_the_right_hand_side_is_not_analytic(method, order):
    problem = ol.Problem(lambda t, u, params: -1j * (u[::-1] + np.abs(u) ** 2 * u), psi[3:7], (0.0, 1.0))
    assert ol.observed_order(method, problem, engine="python").order >= order - 0.2


DERIVATIVES = {
    "abs": lambda z: np.abs(z) * 1j,
    "abs squared": lambda z: abs(z) ** 2 * z,
    "conj": lambda z: z.conj() * z[::-1],
    "np.conj": lambda z: np.conj(z) / (1.0 + z),
    "parts": lambda z: z.real + 1j * z.imag * z.real,
    "np parts": lambda z: np.real(z) * np.imag(z) + np.angle(z) * z,
    "analytic": lambda z: np.exp(z) + np.sqrt(z) * np.sin(z) / np.log(z) + z**3 + z ** (0.5 + 1j),
    "matrix": lambda z: (H[:3, :3] + 1j * np.eye(3)) @ z,
    "vdot": lambda z: np.vdot(z, z) * z,
    "norm": lambda z: np.linalg.norm(z) * z,
    "fft": lambda z: np.fft.ifft(np.arange(3) * np.fft.fft(z)),
    "solve": lambda z: np.linalg.solve(H[:3, :3] + 1j * np.eye(3), z),
    "pieces": lambda z: np.concatenate([z[:1] ** 2, np.array([z[1] * z[2], 1.0 + 2.0j])]),
    "rooms": lambda z: filled(np.zeros_like(z), z) + filled(np.zeros(3, dtype=complex), z),
    "where": lambda z: np.where(np.abs(z) > 1.0, z * z, np.conj(z)),
    "sums": lambda z: np.sum(z * z) + np.mean(np.abs(z)) + np.zeros(3, complex),
}


def filled(out, z):
    for i in range(3):
        out[i] = z[i] * z[i - 1]
    return out


@pytest.mark.parametrize("name", DERIVATIVES)
def test_dual_numbers_have_exact_derivatives_by_both_parts(name):
    function = DERIVATIVES[name]
    problem = ol.Problem(lambda t, u, params: function(u), [0.3 + 1.2j, -1.4 + 0.2j, 0.7 - 0.6j], (0.0, 1.0))
    linear = Linearisation(problem, array_form(problem))
    J, _ = linear.exact(0.0, problem.u0)
    differences = ol.jacobian(problem, how="central")
    np.testing.assert_allclose(J, differences, atol=1e-8 * (1.0 + np.abs(differences).max()))


def test_the_square_of_a_modulus_is_smooth_at_zero():
    problem = ol.Problem(lambda t, u, params: np.abs(u) ** 2 * u - u, [0.0j, 1.0 + 0.0j], (0.0, 1.0))
    J, _ = Linearisation(problem, array_form(problem)).derivatives(0.0, problem.u0, None)
    np.testing.assert_array_equal(J, np.diag([-1.0, 2.0, -1.0, 0.0]))


@pytest.mark.parametrize("function", [lambda z: np.maximum(z, 1.0), lambda z: np.sign(z), lambda z: np.arccosh(z)])
def test_functions_without_a_rule_for_complex_numbers_are_left_to_differences(function):
    problem = ol.Problem(lambda t, u, params: function(u), [1.5 + 0.1j, 1.2 + 0.2j], (0.0, 0.1))
    assert "differences" in ol.solve(problem, ol.RODAS4).derivatives


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4])
def test_whatever_a_run_hands_over_is_complex(method):
    sol = ol.solve(turning(), method, ol.adaptive(1e-8, 1e-10), t_eval=[0.5, 1.0, 3.0])
    exact = np.array([1.0, 2.0j]) * np.exp(-1j * np.array([[0.5], [1.0], [3.0]]))
    np.testing.assert_allclose(sol.u, exact, atol=1e-6)
    np.testing.assert_allclose(sol([0.5, 1.0, 3.0]), exact, atol=1e-6)
    assert sol(0.7).shape == (2,)
    assert sol.slope.dtype == complex
    assert "j]" in str(sol)
    kept = ol.solve(turning(), method, t_eval=[0.5, 3.0], dense=False)
    assert kept.u.dtype == complex
    assert kept.step_u is None


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4])
def test_events_changes_and_projections_see_complex_states(method):
    controller = ol.adaptive(1e-9, 1e-11)
    crossing = ol.Event(lambda t, u, params: u[0].real, terminal=True)
    sol = ol.solve(turning(), method, controller, events=crossing)
    assert sol.status == "event"
    assert sol.step_t[-1] == pytest.approx(0.5 * np.pi, abs=1e-7)
    np.testing.assert_allclose(sol.events[0].u, [[-1j, 2.0]], atol=1e-6)
    back = ol.Event(lambda t, u, params: t - 1.0, change=lambda t, u, params: u * np.exp(1j))
    sol = ol.solve(turning(), method, controller, events=back)
    np.testing.assert_allclose(sol.end_u, np.array([1.0, 2.0j]) * np.exp(-2.0j), atol=1e-6)
    sol = ol.solve(turning(), method, project=lambda u: u / np.abs(u))
    np.testing.assert_allclose(np.abs(sol.u[1:]), 1.0, rtol=1e-14)


def test_stops_and_failures_are_complex_too():
    sol = ol.solve(turning(), ol.DOPRI5, tstops=[1.0, 2.0])
    assert {1.0, 2.0} <= set(sol.t)
    with pytest.raises(ol.RunFailed) as failed:
        ol.solve(turning(), ol.DOPRI5, max_steps=3)
    assert failed.value.trajectory.u.dtype == complex


def test_problems_are_replaced_and_pickled_with_complex_states():
    problem = turning().replace(u0=[1.0, 1.0])  # real numbers are complex ones, too
    assert problem.is_complex
    assert problem.size == 4
    np.testing.assert_allclose(ol.solve(problem, ol.DOPRI5).end_u, np.exp([-3j, -3j]), rtol=1e-3)
    later = turning().replace(t_span=(0.0, 1.0), params=(-2.0,))
    np.testing.assert_allclose(ol.solve(later, ol.DOPRI5).end_u, np.array([1.0, 2j]) * np.exp(-2j), rtol=1e-3)
    other = turning().replace(rhs=circle_backwards)
    np.testing.assert_allclose(ol.solve(other, ol.DOPRI5).end_u, np.array([1.0, 2j]) * np.exp(3j), rtol=1e-3)
    again = pickle.loads(pickle.dumps(turning()))
    sol = ol.solve(again, ol.RODAS4)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(sol))(1.5), sol(1.5))


def circle_backwards(t, u, params):
    return 1j * u


def test_measures_are_those_of_the_parts_and_take_complex_states():
    problem = turning(rate=-1.0)
    want = np.array([[0.0, 1.0], [-1.0, 0.0]])
    np.testing.assert_allclose(ol.jacobian(problem, 0.0, [1.0 + 2.0j, 3.0j]), np.kron(want, np.eye(2)), atol=1e-9)
    stiff = ol.Problem(lambda t, u, params: np.array([-1e4 + 10j, -1.0]) * u, [1.0 + 0j, 1j], (0.0, 5.0))
    assert str(ol.modes(stiff, 0.0, [1.0 + 0j, 1j])).startswith(
        "fast modes (2): decay at 1e+04, 50 % Re u[0], 50 % Im u[0]"
    )
    sol = ol.solve(stiff, ol.RODAS4)
    assert "50 % Re u[0], 50 % Im u[0]" in str(sol)
    found = ol.indicators(stiff, sol, every=20)
    assert found.si[0] == pytest.approx(1e4, rel=1e-6)
    pytest.importorskip("matplotlib")
    assert sol.plot() is not None


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: ol.solve(turning(), ol.DOPRI5, events=lambda t, u, params: u[0]), TypeError, "return a real number"),
        (lambda: ol.solve(turning(), ol.DOPRI5, exact=True), ol.NotCompilable, "uses complex numbers"),
        (lambda: turning(jacobian=lambda t, u, params: np.eye(2)), ValueError, "`jacobian` cannot be given"),
        (
            lambda: ol.ensemble(turning(), ol.DOPRI5, params=[[1.0]]),
            TypeError,
            "complex states, which ensembles do not",
        ),
        (lambda: ol.Problem(lambda t, u, params: u[:1], [1j, 1.0], (0.0, 1.0)), ValueError, "shape"),
        (lambda: ol.Problem(lambda t, u, params: 1j * u, [1.0], (0.0, 1.0)), TypeError, "give a complex `u0`"),
        (lambda: ol.Problem(circle, [complex(np.nan, 1.0)], (0.0, 1.0), (1.0,)), ValueError, "must be finite"),
    ],
)
def test_refusals(call, error, said):
    with pytest.raises(error, match=said):
        call()
