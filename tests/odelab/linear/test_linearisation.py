"""Derivatives along a run: whose they are, what they cost, and that a pattern is never trusted too far."""

import dataclasses
import types

import numpy as np
import pytest

import odelab as ol
from odelab.linear.by_differences import ByDifferences
from odelab.linear.colouring import colour_columns
from odelab.linear.linearisation import Linearisation, reads_time
from odelab.problem import array_form


def linearised(problem, atol=None):
    return Linearisation(problem, array_form(problem), atol)


def derivatives(linear, t, u):
    """(J, df/dt) as full arrays."""
    J, slope_t = linear.derivatives(t, u, array_form(linear.problem)(t, u, linear.problem.params))
    return J.toarray() if hasattr(J, "toarray") else J, np.broadcast_to(slope_t, u.shape)


def chain(t, u, params):
    """Neighbours act on each other; beyond the switch the two ends do, too."""
    beside = np.concatenate((u[1:] ** 2, [0.0])) - u
    if u[0] > 5.0:
        beside = beside + np.concatenate(([u[-1] ** 2], np.zeros(len(u) - 1)))
    return beside + np.sin(t)


def test_a_large_system_takes_few_directions():
    n = 100
    problem = ol.Problem(chain, np.linspace(0.1, 1.0, n), (0.0, 1.0))
    linear = linearised(problem)
    J, slope_t = derivatives(linear, 0.3, problem.u0)
    np.testing.assert_array_equal(J, np.diag(2.0 * problem.u0[1:], 1) - np.eye(n))
    np.testing.assert_allclose(slope_t, np.cos(0.3))
    assert len(linear.colouring.seeds) == 2
    assert "in 2 colours" in linear.how


def test_an_entry_that_appears_later_is_seen():
    n = 100
    problem = ol.Problem(chain, np.linspace(0.1, 1.0, n), (0.0, 1.0))
    linear = linearised(problem)
    derivatives(linear, 0.0, problem.u0)
    elsewhere = problem.u0 + 6.0
    J, _ = derivatives(linear, 0.0, elsewhere)
    expected = np.diag(2.0 * elsewhere[1:], 1) - np.eye(n)
    expected[0, -1] = 2.0 * elsewhere[-1]
    np.testing.assert_array_equal(J, expected)


def text(t, u, params):
    """Nothing but plain numbers goes through a string."""
    return np.array([float(str(float(x))) for x in u]) * np.array([-1.0, -2.0]) + t * t


def test_differences_are_the_last_resort_and_said():
    problem = ol.Problem(text, [1.0, 2.0], (0.0, 1.0))
    linear = linearised(problem)
    J, slope_t = derivatives(linear, 0.5, problem.u0)
    np.testing.assert_allclose(J, np.diag([-1.0, -2.0]), atol=1e-7)
    np.testing.assert_allclose(slope_t, 1.0, atol=1e-6)
    assert linear.how.startswith("Jacobian by differences, as nothing else can follow")
    assert linear.evaluations == 3
    sol = ol.solve(problem, ol.RODAS4)
    assert "Jacobian by differences" in str(sol)
    assert sol.evaluations == 6 * sol.steps + 5 * sol.rejected + 2 + 3 * sol.jacobians - 1


def test_tensors_are_differentiated_by_torch():
    torch = pytest.importorskip("torch")
    weights = torch.tensor([[-2.0, 1.0], [0.5, -3.0]], dtype=torch.float64)

    def network(t, u, params):
        return torch.tanh(weights @ (u if isinstance(u, torch.Tensor) else torch.tensor(u))) * t

    def forgetful(t, u, params):
        return torch.tanh(weights @ (u.detach() if isinstance(u, torch.Tensor) else torch.tensor(u)))

    problem = ol.Problem(network, [0.3, -0.4], (0.0, 1.0))
    linear = linearised(problem)
    J, slope_t = derivatives(linear, 0.5, problem.u0)
    inner = weights.numpy() @ problem.u0
    np.testing.assert_allclose(J, 0.5 * weights.numpy() / np.cosh(inner)[:, None] ** 2, rtol=1e-13)
    np.testing.assert_allclose(slope_t, np.tanh(inner), rtol=1e-13)
    sol = ol.solve(problem, ol.RODAS4, ol.adaptive(1e-6, 1e-8), engine="python")
    assert sol.derivatives == "Jacobian by torch, dense"
    np.testing.assert_allclose(sol.end_u, ol.solve(problem, ol.DOPRI5, ol.adaptive(1e-9, 1e-11)).end_u, rtol=1e-5)
    lost = linearised(ol.Problem(forgetful, [0.3, -0.4], (0.0, 1.0)))
    found, _ = derivatives(lost, 0.5, problem.u0)
    np.testing.assert_allclose(found, weights.numpy() / np.cosh(inner)[:, None] ** 2, atol=1e-6)
    assert "its tensors forget where they came from" in lost.how


def chain_of_text(t, u, params):
    return chain(t, np.array([float(repr(float(x))) for x in u]), params)


def test_differences_are_coloured_too():
    n = 60
    problem = ol.Problem(chain_of_text, np.linspace(0.1, 1.0, n), (0.0, 1.0))
    linear = linearised(problem, 1e-9)
    J, _ = derivatives(linear, 0.3, problem.u0)
    np.testing.assert_allclose(J, np.diag(2.0 * problem.u0[1:], 1) - np.eye(n), atol=1e-6)
    before = linear.evaluations
    derivatives(linear, 0.4, problem.u0)
    assert linear.evaluations - before == 2 + 1 + 1  # colours, the check of the pattern, time


def test_increments_follow_the_tolerance_and_not_one():
    differences = ByDifferences(None, (), np.array([1e-12, 1e-6]), 1.0)
    size = differences.size(np.array([1e-9, 0.0]))
    assert size[0] < 1e-16
    assert 1e-15 < size[1] < 1e-13
    assert (ByDifferences(None, (), 0.0, 1.0).size(np.zeros(2)) > 0).all()


def test_columns_of_one_colour_share_no_row():
    from scipy import sparse

    pattern = sparse.csc_array(np.random.default_rng(0).random((60, 60)) < 0.05)
    found = colour_columns(pattern)
    for seed in found.seeds:
        assert ((pattern != 0).astype(int) @ seed.astype(int)).max() <= 1
    np.testing.assert_array_equal(found.seeds.sum(axis=0), 1.0)


def test_time_is_differentiated_only_where_it_is_read():
    assert not reads_time(lambda t, u, params: u)
    assert reads_time(lambda t, u, params: t * u)
    assert reads_time(lambda t, u, params: (lambda: t)())
    assert reads_time(np.sin)
    assert not reads_time(ol.Problem(lambda t, u: -u, [1.0], (0.0, 1.0)).rhs)


def test_the_problems_own_jacobian_has_the_word_and_time_is_found_beside_it():
    problem = ol.Problem(
        lambda t, u, params: (-u[0] + np.sin(t),), [1.0], (0.0, 1.0), jacobian=lambda t, u, params: np.array([[-7.0]])
    )
    linear = linearised(problem)
    J, slope_t = derivatives(linear, 0.5, problem.u0)
    assert (J.item(), linear.how) == (-7.0, "the problem's own Jacobian")
    np.testing.assert_allclose(slope_t, np.cos(0.5))


def test_a_jacobian_of_the_wrong_shape_is_refused_by_name():
    problem = ol.Problem(
        lambda t, u, params: -u, [1.0, 2.0], (0.0, 1.0), jacobian=lambda t, u, params: np.zeros((2, 3))
    )
    with pytest.raises(ValueError, match=r"`jacobian` returned shape \(2, 3\) for 2 components"):
        ol.solve(problem, ol.RODAS4, engine="python")


@pytest.mark.parametrize("n", [40, 300])
def test_the_problems_own_sparse_jacobian_may_have_other_entries_at_another_state(n):
    """What is zero at first may be left out there: the band that is seen then is too narrow later."""
    sparse = pytest.importorskip("scipy.sparse")

    def rhs(t, u, params):
        return -u + 0.5 * np.roll(u, 3) * u

    def jacobian(t, u, params):
        near = np.diag(-1.0 + 0.5 * np.roll(u, 3))
        near[np.arange(n), np.arange(n) - 3] += 0.5 * u
        return sparse.csc_array(near)

    problem = ol.Problem(rhs, np.zeros(n), (0.0, 1.0), jacobian=jacobian)
    linear = linearised(problem)
    for u in (np.zeros(n), np.linspace(0.1, 1.0, n), np.zeros(n)):
        J, _ = linear.derivatives(0.0, u, rhs(0.0, u, ()))
        x = linear.backsub(linear.factor(J, 0.3), np.ones(n))
        np.testing.assert_allclose(x - 0.3 * (jacobian(0.0, u, ()) @ x), 1.0, rtol=1e-12)


def test_entries_of_a_sparse_jacobian_in_one_place_are_added():
    sparse = pytest.importorskip("scipy.sparse")
    n = 40

    def jacobian(t, u, params):
        """-1 everywhere on the diagonal, in two halves."""
        return sparse.csc_array((np.full(2 * n, -0.5), np.repeat(np.arange(n), 2), 2 * np.arange(n + 1)), shape=(n, n))

    problem = ol.Problem(lambda t, u, params: -u, np.ones(n), (0.0, 1.0), jacobian=jacobian)
    linear = linearised(problem)
    J, _ = linear.derivatives(0.0, problem.u0, -problem.u0)
    np.testing.assert_allclose(linear.backsub(linear.factor(J, 0.5), np.ones(n)), 1.0 / 1.5)


def test_a_jacobian_that_is_not_the_derivative_is_named():
    """Plain Python steps with it, compiled code with derivatives of its own: whoever gave it gets to know."""

    def rhs(t, u, params):
        x, y = u
        return -50.0 * x + y * y, -y

    def wrong(t, u, params):
        return np.array([[-5.0, 0.0], [0.0, -1.0]])

    problem = ol.Problem(rhs, [1.0, 1.0], (0.0, 1.0), jacobian=wrong)
    with pytest.warns(RuntimeWarning, match="`jacobian` of rhs is not the derivative .* in row 0"):
        ol.solve(problem, ol.RODAS4, engine="python")


def relaxing(t, u, params):
    x, y = u
    return y, 50.0 * (1.0 - x * x) * y - x


RELAXING = ol.Problem(relaxing, [2.0, 0.0], (0.0, 20.0))


def turning_wrong(t, u, params):
    factor = 1.0 if t < 1.0 else -1.0
    return np.array([[0.0, 1.0], [factor * (-100.0 * u[0] * u[1] - 1.0), factor * 50.0 * (1.0 - u[0] ** 2)]])


@pytest.mark.parametrize("method", [ol.RODAS4, ol.RODAS5P, ol.ESDIRK43], ids=lambda one: one.name)
def test_after_its_warning_a_wrong_jacobian_is_not_used_any_more(method):
    """The run goes on with the derivative, also where dense output repeats its steps.

    At the latest it is compared after as many steps as there were before it turned wrong.
    """
    given = RELAXING.replace(jacobian=turning_wrong)
    derived = ol.solve(RELAXING, method, engine="python")
    with pytest.warns(RuntimeWarning, match="The run goes on with one by dual numbers") as said:
        dropped = ol.solve(given, method, engine="python")
    inside = dropped(dropped.step_t[:-1] + 0.5 * dropped.h)
    assert len(said) == 1
    assert dropped.derivatives == derived.derivatives
    assert dropped.steps <= 2 * derived.steps + 8
    without = dataclasses.replace(dropped.interpolant, problem=RELAXING)
    np.testing.assert_array_equal(inside, without(dropped.step_t[:-1] + 0.5 * dropped.h))


def test_at_a_kink_both_sides_are_right():
    problem = ol.Problem(
        lambda t, u, params: -np.maximum(u, 0.0) + 1.0,
        [0.0, 0.0],
        (0.0, 1.0),
        jacobian=lambda t, u, params: -np.diag(1.0 * (u > 0.0)),
    )
    assert ol.solve(problem, ol.RODAS4, engine="python").ok


def test_time_may_be_read_by_an_instruction_that_stores_something_else(monkeypatch):
    """From Python 3.13 on `x = ...; t` is one instruction."""

    def rhs(t, u, params):
        return -u

    both = types.SimpleNamespace(opname="STORE_FAST_LOAD_FAST", argval=("x", "t"))
    monkeypatch.setattr("dis.get_instructions", lambda function: [both])
    assert reads_time(rhs)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_jacobian_that_is_wrong_at_later_states_alone_is_named_too(sign, recwarn):
    """Where the run starts, y is zero and the entry right, whatever its sign."""

    def jacobian(t, u, params):
        x, y = u
        return np.array([[0.0, 1.0], [sign * 100.0 * x * y - 1.0, 50.0 * (1.0 - x * x)]])

    ol.solve(RELAXING.replace(jacobian=jacobian), ol.RODAS4, engine="python", throw=False, max_steps=200)
    said = [str(one.message) for one in recwarn if "is not the derivative" in str(one.message)]
    assert len(said) == (sign > 0)


def test_a_jacobian_may_be_rows_in_a_list_and_take_no_params():
    given = RELAXING.replace(jacobian=lambda t, u: [[0, 1], [-100.0 * u[0] * u[1] - 1.0, 50.0 * (1.0 - u[0] ** 2)]])
    own, derived = (ol.solve(one, ol.RODAS4, engine="python") for one in (given, RELAXING))
    assert own.derivatives == "the problem's own Jacobian, dense"
    np.testing.assert_allclose(own.end_u, derived.end_u, rtol=1e-9)
    np.testing.assert_allclose(ol.jacobian(given), [[0.0, 1.0], [-1.0, -150.0]])


@pytest.mark.parametrize(
    ("jacobian", "error", "words"),
    [
        (np.eye(2), TypeError, "`jacobian` must be a function jacobian(t, u, params), got array"),
        (lambda u: np.eye(2), TypeError, "`jacobian` must take (t, u, params), got <lambda>(u)"),
        (lambda t, u, params: [[1.0, 2.0], [3.0]], ValueError, "`jacobian` must be a row of numbers"),
        (
            lambda t, u, params: [[1.0, 2.0]],
            ValueError,
            "`jacobian` returned shape (1, 2) for 2 components at t = 0; it",
        ),
        (lambda t, u, params: None, ValueError, "`jacobian` returned shape () for 2 components"),
        (lambda t, u, params: 1j * np.eye(2), TypeError, "`jacobian` must return real numbers, got dtype complex128"),
    ],
)
def test_what_is_no_jacobian_is_said(jacobian, error, words):
    with pytest.raises(error) as refusal:
        ol.solve(RELAXING.replace(jacobian=jacobian), ol.RODAS4, engine="python")
    assert words in str(refusal.value)


class Decay:
    """A right-hand side that can be called, but not be the key of a dictionary."""

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, t, u, params):
        return -50.0 * (u - np.cos(t))


class TwoArguments(Decay):
    def __call__(self, t, u):
        return -50.0 * (u - np.cos(t))


def test_an_object_that_cannot_be_hashed_may_be_the_right_hand_side():
    for size, rhs in ((2, Decay()), (40, Decay()), (2, TwoArguments())):
        problem = ol.Problem(rhs, np.ones(size), (0.0, 1.0))
        assert "dual numbers" in ol.solve(problem, ol.RODAS4, engine="python").derivatives
        assert ol.solve(problem, ol.AUTO, events=lambda t, u, params: u[0] - 0.9).ok


@pytest.mark.parametrize("refused", [AssertionError, RuntimeError, KeyError])
def test_a_right_hand_side_that_refuses_duals_is_differentiated_by_differences(refused):
    def choosy(t, u, params):
        if not isinstance(u, np.ndarray):
            raise refused("arrays only")
        return -50.0 * u

    sol = ol.solve(ol.Problem(choosy, [1.0, 2.0], (0.0, 1.0)), ol.RODAS4, engine="python")
    assert f"by differences, as nothing else can follow the right-hand side ({refused.__name__}" in sol.derivatives
    np.testing.assert_allclose(sol.end_u, 0.0, atol=1e-6)


@pytest.mark.parametrize("outside", [None, np.nan])
def test_a_pattern_is_looked_for_where_the_right_hand_side_is_defined(outside):
    """Some components are zero at first, and must not become negative."""

    def concentrations(t, u, params):
        if (u < 0.0).any():
            if outside is None:
                raise ValueError("no concentration is negative")
            return np.full_like(u, outside)
        return 10.0 * np.concatenate(([0.0], u[:-1])) - 10.0 * u

    u0 = np.zeros(60)
    u0[0] = 1.0
    linear = linearised(ol.Problem(concentrations, u0, (0.0, 1.0)))
    J, _ = derivatives(linear, 0.0, u0)
    np.testing.assert_array_equal(J, 10.0 * (np.eye(60, k=-1) - np.eye(60)))
    assert len(linear.colouring.seeds) == 2
