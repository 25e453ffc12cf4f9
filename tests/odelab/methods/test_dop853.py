"""DOP853: its coefficients, its pair of estimates, its extension of order 7, and its work beside SciPy's."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.integrate._ivp import dop853_coefficients as published

import odelab as ol
from odelab.control.controllers import error_ratio
from odelab.methods import extension
from odelab.methods import order_conditions as trees
from odelab.runs import dense
from tests.odelab.solver_cases import CIRCLE, PENDULUM, one_step, unchecked

METHOD = ol.DOP853
finite = st.floats(-3.0, 3.0)


def sharp(problem):
    return ol.solve(problem, METHOD, ol.adaptive(1e-13, 1e-15), engine="python")


def test_the_coefficients_are_the_published_ones():
    a, b, e, c, embedded, fsal = METHOD.tableau
    np.testing.assert_array_equal(a, published.A[:13, :13])
    np.testing.assert_array_equal(b, [*published.B, 0.0])
    np.testing.assert_allclose(e, [published.E5, published.E3], rtol=0, atol=2e-16)
    np.testing.assert_allclose(c, published.C[:13], rtol=0, atol=2e-16)
    assert [row for row, _ in METHOD.extra_floats] == [tuple(published.A[i, :i]) for i in (13, 14, 15)]
    assert embedded
    assert fsal


@pytest.mark.parametrize(("row", "order"), [("b", 8), ("b_low", 5), ("b_lowest", 3)])
def test_all_order_conditions_in_exact_arithmetic(row, order):
    found = list(trees.defects(METHOD.square, getattr(METHOD, row), order + 1))
    counts = {3: 4, 5: 17, 8: 200}
    held = [abs(defect) for tree, defect in found if trees.node_count(tree) <= order]
    missed = [abs(defect) for tree, defect in found if trees.node_count(tree) == order + 1]
    assert len(held) == counts[order]
    assert max(held) < Fraction(1, 10**26)  # the published digits
    assert max(missed) > 1e-6


def test_a_damaged_coefficient_is_refused():
    b = [*METHOD.b]
    b[5] += Fraction(1, 10**11)
    with pytest.raises(ValueError, match="`b` of DAMAGED misses the order-1 condition"):
        ol.Method("DAMAGED", order=8, a=METHOD.a, b=b)
    with pytest.raises(ValueError, match=r"`extra` of DAMAGED needs rows of 13, 14, \.\.\. entries"):
        ol.Method("DAMAGED", order=8, a=METHOD.a, b=METHOD.b, extra=[METHOD.extra[0][:-1]])
    with pytest.raises(ValueError, match="`dense` of DAMAGED needs one weight"):
        ol.Method("DAMAGED", order=8, a=METHOD.a, b=METHOD.b, dense=METHOD.dense)


def test_order_eight_in_practice():
    sizes = 4.0 / np.array([8, 10, 13, 16, 20])
    runs = [ol.solve(PENDULUM, METHOD, ol.fixed(h)) for h in sizes]
    truth = sharp(PENDULUM)
    error = [np.abs(run.u[1:-1] - truth(run.t[1:-1])).max() for run in runs]
    assert abs(np.polyfit(np.log(sizes), np.log(error), 1)[0] - 8.0) < 0.3


def test_the_extension_has_order_seven_everywhere():
    """Started right, the error inside a step falls with h^8; one wrong weight would leave a lower power."""
    sizes = np.array([0.8, 0.4, 0.2])
    errors = []
    for h in sizes:
        run = ol.solve(PENDULUM.replace(t_span=(0.0, h)), METHOD, ol.fixed(h))
        inside = h * np.linspace(0.05, 0.95, 19)
        errors.append(np.abs(run(inside) - sharp(PENDULUM.replace(t_span=(0.0, h)))(inside)).max())
    orders = np.diff(np.log(errors)) / np.diff(np.log(sizes))
    assert extension.order(METHOD) == 7
    np.testing.assert_allclose(orders, 8.0, atol=0.6)


@given(t=st.floats(0.0, 5.0), u=st.tuples(finite, finite), h=st.floats(0.01, 1.0), theta=st.floats(0.0, 1.0))
def test_one_step_is_scipys_in_state_estimate_and_inside(t, u, h, theta):
    """The two codes share nothing but the coefficients."""
    from scipy.integrate import DOP853

    start = np.array(u)
    solver = DOP853(lambda t, u: PENDULUM.slope(t, u), t, start, t + 2.0 * h, rtol=1.0, atol=1e9, first_step=h)
    solver.step()
    size = solver.t - t
    new, _, errors, slopes = one_step(METHOD, lambda t, u, params: PENDULUM.slope(t, u), t, start, size)
    np.testing.assert_allclose(new, solver.y, rtol=1e-13, atol=1e-14)
    theirs = size * np.array([published.E5, published.E3]) @ np.array(slopes)
    np.testing.assert_allclose(errors, theirs, rtol=1e-10, atol=1e-14)
    ours = dense.Dense(PENDULUM, METHOD, np.array([t, solver.t]), np.array([start, new]), np.array([size]))
    where = min(t + theta * h, solver.t)
    np.testing.assert_allclose(ours(where), solver.dense_output()(where), rtol=1e-11, atol=1e-12)


# A square below 1e-308 has fewer digits; ratios below 1e-12 do not change a step, and below 1e-100 they count as zero.
squarable = finite.filter(lambda x: x == 0.0 or abs(x) > 1e-140)


@given(first=st.tuples(squarable, squarable), second=st.tuples(squarable, squarable))
def test_a_pair_of_estimates_counts_as_hairers_formula_says(first, second):
    u = np.array([1.0, -2.0])
    scale = 1e-3 + 0.1 * np.abs(u)
    e5, e3 = (np.linalg.norm(np.array(error) / scale) for error in (first, second))
    expected = e5 * (e5 / np.hypot(e5, 0.1 * e3)) / np.sqrt(2.0) if e5 > 0 else 0.0  # no square that underflows
    found = error_ratio([np.array(first), np.array(second)], u, 0.5 * u, 0.1, 1e-3)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-100)
    assert found <= error_ratio([np.array(first)], u, 0.5 * u, 0.1, 1e-3) * (1.0 + 1e-12)


def test_the_pair_falls_with_the_power_that_the_controller_assumes():
    sizes = np.array([0.2, 0.1, 0.05])
    ratios = []
    for h in sizes:
        start = np.array(PENDULUM.u0)
        new, _, errors, _ = one_step(METHOD, lambda t, u, params: PENDULUM.slope(t, u), 0.0, start, h)
        ratios.append(error_ratio(errors, start, new, 1e-6, 1e-6))
    assert METHOD.error_order == 8
    np.testing.assert_allclose(np.diff(np.log(ratios)) / np.diff(np.log(sizes)), 8.0, atol=0.4)


WORKS = {
    "arenstorf": ol.problems.arenstorf(),
    "pleiades": ol.problems.pleiades(),
    "rigid_body": ol.problems.rigid_body(),
    "van_der_pol": ol.problems.van_der_pol(mu=2.0).replace(t_span=(0.0, 20.0)),
    "brusselator": ol.problems.brusselator(),
}


@pytest.mark.parametrize("name", WORKS)
def test_with_the_elementary_law_it_takes_scipys_steps(name):
    problem = WORKS[name]
    ours = ol.solve(problem, METHOD, ol.adaptive(1e-7, 1e-10, law="i"), engine="python")
    theirs = solve_ivp(problem.slope, problem.t_span, problem.u0, method="DOP853", rtol=1e-7, atol=1e-10)
    assert abs(ours.steps - (len(theirs.t) - 1)) <= 2
    assert ours.evaluations <= 1.02 * theirs.nfev
    # Both err by the tolerance, which the orbit of Arenstorf magnifies by up to ten thousand.
    np.testing.assert_allclose(ours.u[-1], theirs.y[:, -1], rtol=1e-4, atol=1e-5 if name == "arenstorf" else 1e-6)


@pytest.mark.parametrize("name", ["arenstorf", "rigid_body", "van_der_pol"])
def test_evaluations_at_equal_error_are_scipys_within_ten_percent(name):
    """With the law that is used unless asked otherwise; work over error, fitted through three tolerances."""
    problem = WORKS[name]
    truth = problem.u0 if name == "arenstorf" else sharp(problem).u[-1]
    ours, theirs = [], []
    for rtol in (1e-4, 1e-6, 1e-8):
        run = ol.solve(problem, METHOD, ol.adaptive(rtol, 1e-3 * rtol), engine="python")
        peer = solve_ivp(problem.slope, problem.t_span, problem.u0, method="DOP853", rtol=rtol, atol=1e-3 * rtol)
        ours.append((run.evaluations, np.linalg.norm(run.u[-1] - truth)))
        theirs.append((peer.nfev, np.linalg.norm(peer.y[:, -1] - truth)))
    low = max(min(error for _, error in rows) for rows in (ours, theirs))
    high = min(max(error for _, error in rows) for rows in (ours, theirs))
    middle = np.linspace(np.log(low), np.log(high), 9)
    ours, theirs = (np.polyval(np.polyfit(*np.log(rows).T[::-1], 2), middle) for rows in (ours, theirs))
    assert abs(np.exp(np.mean(ours - theirs)) - 1.0) <= 0.10


def test_every_evaluation_is_counted_and_first_is_last():
    calls = []

    def rhs(t, u, params):
        calls.append(t)
        return np.array([u[1], -u[0]])

    problem = ol.Problem(rhs, [1.0, 0.0], (0.0, 10.0))
    calls.clear()
    run = ol.solve(problem, METHOD, ol.adaptive(1e-9, 1e-12))
    assert run.evaluations == len(calls) == 2 + 12 * (run.steps + run.rejected)


def test_stability_boundaries():
    real, imaginary = METHOD.real_boundary, METHOD.imaginary_boundary
    assert (round(real, 3), round(imaginary, 3)) == (6.394, 5.960)
    for direction, boundary in ((-1.0, real), (1j, imaginary)):
        assert np.abs(METHOD.stability(direction * np.linspace(0.0, boundary, 500))).max() <= 1.0 + 1e-9
        assert abs(METHOD.stability(1.001 * direction * boundary)) > 1.0


def test_its_free_estimate_of_h_rho_finds_the_spectral_radius():
    problem = ol.problems.stiff_linear().replace(t_span=(0.0, 0.2))
    run = ol.solve(problem, METHOD, ol.adaptive(1e-5, 1e-8))
    late = slice(np.searchsorted(run.step_t, 0.05), -1)  # the end cuts the last step so short that rounding is left
    np.testing.assert_allclose(run.h_rho[late], 1000.0 * run.h[late], rtol=1e-3)
    assert METHOD.twin_stages == (11, 12)
    assert "held back by stability" in run.message


def test_events_use_the_whole_polynomial():
    run = ol.solve(CIRCLE, METHOD, ol.adaptive(1e-11, 1e-13), events=lambda t, u, params: u[0])
    np.testing.assert_allclose(run.events[0].t, np.pi * (np.arange(3) + 0.5), rtol=0, atol=1e-9)


def test_as_a_method_of_scipy_it_interpolates_as_well():
    grid = np.linspace(0.0, 10.0, 57)
    found = solve_ivp(
        CIRCLE.slope, CIRCLE.t_span, CIRCLE.u0, method=ol.scipy_method(METHOD), rtol=1e-10, atol=1e-12, t_eval=grid
    )
    np.testing.assert_allclose(found.y.T, CIRCLE.exact(grid, ()), rtol=0, atol=1e-8)


def test_torch_takes_the_same_step_with_gradients():
    torch = pytest.importorskip("torch")

    def rhs(t, u, params):
        return -u * u + 0.1 * t

    start = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    new, _, errors, _ = METHOD.step(rhs, (), 0.0, start, rhs(0.0, start, ()), 0.1, 0.1)[:4]
    (gradient,) = torch.autograd.grad((new + errors[0] + errors[1]).sum(), start)
    plain, _, estimates, _ = one_step(METHOD, rhs, 0.0, np.array([1.0, 2.0]), 0.1)
    np.testing.assert_array_equal(new.detach().numpy(), plain)
    np.testing.assert_array_equal(errors[1].detach().numpy(), estimates[1])
    shift = 1e-6
    moved = [one_step(METHOD, rhs, 0.0, np.array([1.0 + s, 2.0]), 0.1) for s in (shift, -shift)]
    totals = [(m[0] + m[2][0] + m[2][1]).sum() for m in moved]
    np.testing.assert_allclose(gradient[0].item(), (totals[0] - totals[1]) / (2 * shift), rtol=1e-6)


@pytest.mark.slow
def test_compiled_code_takes_the_same_steps():
    """To what the estimate is worth: the differences it is made of cancel, the more the smaller the tolerance."""
    controller = ol.adaptive(1e-5, 1e-8)
    plain = ol.solve(PENDULUM, METHOD, controller, engine="python")
    compiled = ol.solve(PENDULUM, METHOD, controller, engine="compiled")
    np.testing.assert_allclose(compiled.t, plain.t, rtol=1e-7)
    np.testing.assert_allclose(compiled(plain.t[:-1]), plain.u[:-1], rtol=1e-9, atol=1e-10)


def test_without_the_third_order_estimate_the_controller_would_differ():
    """The second row is used: a method with it taken away takes other steps."""
    alone = unchecked(METHOD, b_lowest=None, order_lowest=0)
    controller = ol.adaptive(1e-7, 1e-10, law="i")
    assert alone.error_order == 6
    assert ol.solve(PENDULUM, alone, controller).steps != ol.solve(PENDULUM, METHOD, controller).steps
