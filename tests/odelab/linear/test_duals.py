"""Dual numbers: exact derivatives of right-hand sides as people write them, or a refusal in words."""

import functools
import math
from math import exp as bare_exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import odelab as ol
from odelab import maths
from odelab.linear.by_duals import ByDuals
from odelab.linear.dual import Dual, NotDifferentiable
from odelab.linear.linearisation import Linearisation

MATRIX = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 4.0], [2.0, 1.0, 1.0]])
TABLE = [1.0, 2.0, 5.0, 9.0]


def derivatives(problem, t, u):
    """(J, df/dt) from one run with n + 1 directions."""
    u, n = np.array(u, dtype=float), len(u)
    seeds, times = np.vstack([np.eye(n), np.zeros(n)]), np.append(np.zeros(n), 1.0)
    found = ByDuals(problem)(t, u, seeds, times)
    return found[:n].T, found[n]


def full(J):
    return J.toarray() if hasattr(J, "toarray") else np.asarray(J)


PROBLEMS = {name: make() for name, make in ol.problems.catalogue().items()}
WITH_JACOBIAN = [name for name, problem in PROBLEMS.items() if problem.jacobian is not None and problem.size <= 100]


@pytest.mark.parametrize("name", WITH_JACOBIAN)
def test_the_jacobians_of_the_catalogue(name):
    problem = PROBLEMS[name]
    rough = np.random.default_rng(3).uniform(0.9, 1.1, problem.size)
    t, u = problem.t_span[0] + 0.3, problem.u0 * rough + 0.01 * (rough - 1.0)
    expected = full(problem.jacobian(t, u, problem.params))
    found, _ = derivatives(problem, t, u)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def helper(x):
    return math.exp(-x) * bare_exp(x / 2.0)


def branches(t, u, params):
    x, y = u
    if x > y:
        return x * x * y, math.sin(t) * y
    return -x, helper(y)


def loops(t, u, params):
    x, y = u
    total = 0.0
    while total < x:
        total = total + 0.25 * y
    return total, sum(k * x for k in range(3)) + TABLE[int(y) % 4] * x


def powers(t, u, params):
    x, y = u
    return x**2.5 + params[0] ** y + x**y, max(x, y) ** 3 + abs(x - 3.0) + min(x, 2.0 * y)


def elementary(t, u, params):
    x, y = u
    smooth = maths.where(x > 1.0, x * x, y) + maths.maximum(x, 2.0 * y) + maths.tanh(x * t)
    return smooth, np.interp(x, [0.0, 1.0, 4.0], [0.0, 3.0, -2.0]) + float(y) * math.atan2(x, y) + math.log(x, 2.0)


X, Y, T, P = 1.3, 0.7, 0.4, 2.0
BY_HAND = [
    (branches, [[2 * X * Y, X * X], [0.0, math.sin(T)]], [0.0, math.cos(T) * Y]),
    (loops, [[0.0, 0.25 * 8], [3.0 + TABLE[0], 0.0]], [0.0, 0.0]),
    (
        powers,
        [
            [2.5 * X**1.5 + Y * X ** (Y - 1), P**Y * math.log(P) + X**Y * math.log(X)],
            [3 * X * X - 1.0 + 1.0, 0.0],
        ],
        [0.0, 0.0],
    ),
    (
        elementary,
        [
            [2 * X + T / math.cosh(X * T) ** 2, 2.0],
            [
                -5.0 / 3.0 + Y * Y / (X * X + Y * Y) + 1.0 / (X * math.log(2.0)),
                math.atan2(X, Y) - Y * X / (X * X + Y * Y),
            ],
        ],
        [X / math.cosh(X * T) ** 2, 0.0],
    ),
]


@pytest.mark.parametrize(("rhs", "J", "slope_t"), BY_HAND, ids=lambda value: getattr(value, "__name__", ""))
def test_code_as_people_write_it(rhs, J, slope_t):
    problem = ol.Problem(rhs, [X, Y], (0.0, 1.0), params=(P,))
    found, found_t = derivatives(problem, T, [X, Y])
    np.testing.assert_allclose(found, J, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(found_t, slope_t, rtol=1e-13, atol=1e-14)


def test_the_other_branch_has_its_own_derivative():
    found, _ = derivatives(ol.Problem(branches, [X, Y], (0.0, 1.0)), T, [Y, X])
    np.testing.assert_allclose(found, [[-1.0, 0.0], [0.0, -0.5 * math.exp(-0.5 * X)]], rtol=1e-14)


def matrices(t, u, params):
    return -MATRIX @ u + np.roll(u, 1) * u + np.linalg.norm(u) * np.clip(u, 0.3, 1.5) + np.concatenate((u[1:], [t]))


def filled(t, u, params):
    du = np.zeros(3)
    du[0] = u[1] * u[2]
    du[1:] = np.tanh(u[:-1]) * t
    du[2] += np.sum(u**2)
    return du


def stacked(t, u, params):
    return np.array([u[1], -np.sin(u[0]) * np.cos(t), u.mean() + np.dot(u, u)])


def in_place(t, u, params, out):
    out[0] = u[0]
    for i in range(1, u.size):
        out[i] = u[i] * u[i - 1] + math.cos(t)
    out[1:] += u[:-1] ** 2
    inner = out[1:]
    inner *= 2.0


@pytest.mark.parametrize("rhs", [matrices, filled, stacked, in_place])
def test_arrays_and_loops_over_them(rhs):
    problem = ol.Problem(rhs, [0.5, 1.0, 2.0], (0.0, 1.0))
    found, found_t = derivatives(problem, T, problem.u0)
    np.testing.assert_allclose(found, ol.jacobian(problem, T, problem.u0), atol=1e-8)
    above, below = (problem.slope(T + s, problem.u0) for s in (1e-5, -1e-5))
    np.testing.assert_allclose(found_t, (above - below) / 2e-5, atol=1e-8)


number = st.floats(0.2, 3.0)
UNARY = ["exp", "log", "sin", "cos", "tan", "arctan", "sinh", "cosh", "tanh", "sqrt", "abs"]


@pytest.mark.parametrize("name", UNARY)
@given(x=number)
def test_the_chain_rule_through_every_function_of_maths(name, x):
    function = getattr(maths, name)
    found = function(Dual(np.float64(x), np.array([1.0, -2.0])) * 0.5)
    assert found.value == function(0.5 * x)
    slope = np.imag(getattr(np, name if name != "abs" else "positive")(0.5 * x + 1e-30j)) / 1e-30
    np.testing.assert_allclose(found.part, 0.5 * slope * np.array([1.0, -2.0]), rtol=1e-12)


@given(x=number, y=number)
def test_the_rules_of_arithmetic(x, y):
    a, b = Dual(np.float64(x), np.array([1.0, 0.0])), Dual(np.float64(y), np.array([0.0, 1.0]))
    expected = {
        "sum": (a + b, [1, 1]),
        "difference": (a - b, [1, -1]),
        "product": (a * b, [y, x]),
        "quotient": (a / b, [1 / y, -x / y**2]),
        "power": (a**b, [y * x ** (y - 1), x**y * math.log(x)]),
        "reflected": (2.0 / a - 3.0 + 1.0**a, [-2 / x**2, 0]),
        "remainder": (a % 0.3, [1, 0]),
        "negative": (-a, [-1, 0]),
    }
    for name, (found, part) in expected.items():
        np.testing.assert_allclose(found.part, part, rtol=1e-13, atol=1e-15, err_msg=name)


def test_what_is_not_followed_is_refused():
    def text(t, u, params):
        return (float(str(u[0])),)

    def unknown(t, u, params):
        return np.sort(u)

    def into_plain(t, u, params):
        kept = np.array([1.0, 2.0]).copy()
        kept += u
        return kept

    for rhs, u0 in ((text, [1.0]), (unknown, [1.0]), (into_plain, [1.0, 2.0])):
        with pytest.raises(NotDifferentiable):
            derivatives(ol.Problem(rhs, u0, (0.0, 1.0)), 0.0, u0)


def test_the_function_stays_as_it_is():
    before = (branches.__globals__["math"], helper.__globals__["np"], branches.__code__)
    derivatives(ol.Problem(branches, [X, Y], (0.0, 1.0)), T, [X, Y])
    assert (branches.__globals__["math"], helper.__globals__["np"], branches.__code__) == before
    assert math.exp(1.0) == math.e


def test_a_right_hand_side_cannot_write_to_the_state():
    def writes(t, u, params):
        if isinstance(u, Dual):
            u[0] = 3.0
        return -u

    with pytest.raises(NotDifferentiable, match="read-only"):
        derivatives(ol.Problem(writes, [1.0], (0.0, 1.0)), 0.0, [1.0])


def test_where_the_function_leaves_its_domain_there_is_no_derivative():
    problem = ol.Problem(lambda t, u, params: (math.sqrt(u[0]), 1.0 / u[1]), [1.0, 1.0], (0.0, 1.0))
    with np.errstate(all="ignore"):
        assert np.isnan(derivatives(problem, 0.0, [-1.0, 1.0])[0]).any()
        assert not np.isfinite(derivatives(problem, 0.0, [1.0, 0.0])[0]).all()


def filled_in_another_shape(t, u, params):
    du = np.zeros(9)
    du.reshape(3, 3)[1:, :] = u.reshape(3, 3)[:-1, :] ** 2
    return du


def filled_through_ravel(t, u, params):
    du = np.zeros((3, 3))
    np.ravel(du)[2:] = u[:-2] ** 2
    return du.reshape(-1)


def filled_transposed(t, u, params):
    du = np.zeros((3, 3))
    du.T[1:, :] = u.reshape(3, 3)[:-1, :] ** 2
    return du.ravel()


def filled_backwards(t, u, params):
    du = np.zeros(9)
    np.flip(du)[:] = u**2
    return du


def filled_after_a_view(t, u, params):
    du = np.zeros(9)
    backwards = np.flip(du)
    du[:] = u**2
    return backwards


def periodic_table(t, u, params):
    return -u * np.interp(u + 3.0, [0.0, 1.0, 2.0], [1.0, 2.0, 1.0], period=2.0)


def never_below(t, u, params):
    return -u * np.max(-u, initial=0.5) * np.maximum.reduce(-u, initial=0.25)


def nearest_turn(t, u, params):
    return u * math.remainder(u[0] + 5.0, 2.0 * math.pi) ** 2


def whole_numbers(t, u, params):
    return -u * np.array(3.0 * u, dtype=int) * np.asarray(3.0 * u, int)


def between_its_own_places(t, u, params):
    return u * np.trapezoid(u, u**2) + np.gradient(u**2, u)


def with_its_own_step(t, u, params):
    return u * np.trapezoid(u, dx=u[0])


def largest_beside(t, u, params):
    return np.pad(u**2, 1, mode="maximum")[2:]


def marked(t, u, params):
    high = np.zeros_like(u, dtype=bool)
    high[u > 1.0] = True
    return np.where(high, u**2, np.array(u) ** 3)


OTHER_SHAPES = [filled_in_another_shape, filled_through_ravel, filled_transposed, filled_backwards, filled_after_a_view]
OPTIONS = [periodic_table, never_below, whole_numbers, with_its_own_step, largest_beside, marked]


@pytest.mark.parametrize("rhs", [*OTHER_SHAPES, *OPTIONS, nearest_turn, between_its_own_places])
def test_no_derivative_is_silently_wrong(rhs):
    """Views that are written through, and options that make of a function another one."""
    u, size = np.linspace(0.31, 1.73, 9), 1e-6
    problem = ol.Problem(rhs, u, (0.0, 1.0))
    J, _ = Linearisation(problem, rhs).derivatives(0.0, u, rhs(0.0, u, ()))
    moved = size * np.eye(9)
    expected = [(rhs(0.0, u + one, ()) - rhs(0.0, u - one, ())) / (2.0 * size) for one in moved]
    np.testing.assert_allclose(J, np.transpose(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("rhs", "before"), [(filled_in_another_shape, 3), (filled_through_ravel, 2)])
def test_an_array_is_filled_through_another_shape_of_it(rhs, before):
    u = np.linspace(0.31, 1.73, 9)
    found, _ = derivatives(ol.Problem(rhs, u, (0.0, 1.0)), 0.0, u)
    np.testing.assert_array_equal(found, np.diag(2.0 * u[:-before], -before))


def test_what_is_not_chosen_may_have_an_infinite_derivative():
    def rhs(t, u, params):
        return 1.0 - np.maximum(np.sqrt(u), 1e-3)

    with np.errstate(divide="ignore", invalid="ignore"):  # as a run does
        found, _ = derivatives(ol.Problem(rhs, [0.0, 4.0], (0.0, 1.0)), 0.0, [0.0, 4.0])
    np.testing.assert_array_equal(found, [[0.0, 0.0], [0.0, -0.25]])


SPREAD = sparse.diags_array(([1.0, 2.0, 3.0], [-2.0, -3.0, -4.0, -5.0], [4.0, 0.0, 6.0]), offsets=(-1, 0, 1)).tocsr()
OLD = sparse.csr_matrix(SPREAD)  # of the class whose `*` is a product of matrices


ROOM = np.empty(4)


def into_room(t, u, params):
    out = np.empty_like(u)
    np.multiply(u, u, out=out)
    np.subtract(out[:2], u[2:], out=out[1:3])
    return out


def parts(t, u, params):
    left, right = np.split(u, 2)
    return np.concatenate((left * right, right - left))


BY_MATRICES = {
    "A @ u": (lambda t, u, params: SPREAD @ u, lambda A, u: A),
    "A.dot(u)": (lambda t, u, params: SPREAD.dot(u * u), lambda A, u: 2.0 * A * u),
    "u @ A": (lambda t, u, params: u @ SPREAD, lambda A, u: A.T),
    "A.T @ u": (lambda t, u, params: 2.0 * (SPREAD.T @ u) - u, lambda A, u: 2.0 * A.T - np.eye(4)),
    "A * u": (lambda t, u, params: OLD * u + np.sin(t), lambda A, u: A),
    "out=": (into_room, lambda A, u: np.diag(2.0 * u) * [[1], [0], [0], [1]] + beyond(u)),
    "split": (parts, lambda A, u: [[u[2], 0, u[0], 0], [0, u[3], 0, u[1]], [-1, 0, 1, 0], [0, -1, 0, 1]]),
}


def beyond(u):
    """Rows 1 and 2 of `into_room`: what stood before them, less what is two places on."""
    return np.array([[0, 0, 0, 0], [2 * u[0], 0, -1, 0], [0, 2 * u[1], 0, -1], [0, 0, 0, 0]])


@pytest.mark.parametrize("name", BY_MATRICES)
def test_sparse_matrices_and_results_written_in_place(name):
    rhs, expected = BY_MATRICES[name]
    u = np.array([0.3, -1.2, 2.0, 0.7])
    J, _ = derivatives(ol.Problem(rhs, u, (0.0, 1.0)), 0.4, u)
    np.testing.assert_allclose(J, expected(SPREAD.toarray(), u), rtol=1e-14)


@pytest.mark.parametrize(
    "rhs",
    [
        lambda t, u, params: SPREAD.multiply(u).sum(axis=1),
        lambda t, u, params: (SPREAD * u).sum(axis=1),  # of this class an elementwise product
        lambda t, u, params: (SPREAD @ u.reshape(4, 1)).ravel(),
        lambda t, u, params: np.add(u, u, out=ROOM),
        lambda t, u, params: np.add(u, u, casting="no"),
    ],
)
def test_what_else_is_done_with_them_is_refused(rhs):
    with pytest.raises(NotDifferentiable):
        derivatives(ol.Problem(rhs, np.ones(4), (0.0, 1.0)), 0.0, np.ones(4))


def test_a_right_hand_side_may_catch_what_math_raises():
    def rhs(t, u, params):
        try:
            root = math.sqrt(u[0])
        except ValueError:
            root = 0.0
        try:
            grown = math.exp(u[1])
        except OverflowError:
            grown = 2.0 * u[0]
        return root + u[1], grown

    problem = ol.Problem(rhs, [1.0, 1.0], (0.0, 1.0))
    np.testing.assert_array_equal(derivatives(problem, 0.0, [4.0, 0.0])[0], [[0.25, 1.0], [0.0, 1.0]])
    np.testing.assert_array_equal(derivatives(problem, 0.0, [-1.0, 1e3])[0], [[0.0, 1.0], [2.0, 0.0]])


class Model:
    """A right-hand side as a method, or as the object itself, which holds its numbers."""

    def __init__(self, rate):
        self.rate = rate

    def slopes(self, t, u, params):
        return np.array([-self.rate * math.sin(u[0]), float(u[1]) * np.zeros(2, dtype=float)[0] + u[0] ** 2])

    __call__ = slopes


def scaled_by(rate, t, u, params):
    return np.array([-rate * math.sin(u[0]), u[0] ** 2])


def typed(t, u, params):
    x, _ = u
    if not (isinstance(x, float) and isinstance(t, (int, float))):
        raise TypeError("numbers only")
    out = np.zeros(2, float)
    out[:] = np.array([-3.0 * math.sin(x), x**2], dtype=float).astype(float)
    return out


typed.__module__ = "math_models"  # a name that begins like a library's


@pytest.mark.parametrize(
    "rhs",
    [Model(3.0), Model(3.0).slopes, functools.partial(scaled_by, 3.0), typed],
    ids=["object", "method", "partial", "typed"],
)
def test_methods_objects_and_questions_of_type(rhs):
    found, _ = derivatives(ol.Problem(rhs, [0.5, 2.0], (0.0, 1.0)), 0.3, [0.5, 2.0])
    np.testing.assert_allclose(found, [[-3.0 * math.cos(0.5), 0.0], [1.0, 0.0]], rtol=1e-15)


def of_mass(t, u, params):
    """Equations of motion as they come from mechanics, with a mass that depends on the place."""
    angles, speeds = u.reshape(2, 2)
    mass = np.array([[2.0, np.cos(angles[0] - angles[1])], [np.cos(angles[0] - angles[1]), 1.0]])
    forces = np.array([-(speeds[1] ** 2) * np.sin(angles[0]), t - np.sin(angles[1])])
    return np.concatenate((speeds, np.linalg.solve(mass, forces)))


def by_an_inverse(t, u, params):
    return (np.linalg.inv(np.diag(1.0 + u**2) + MATRIX[:2, :2]) @ np.linalg.solve(MATRIX[:2, :2], u[::-1])).flatten()


@pytest.mark.parametrize("rhs", [of_mass, by_an_inverse])
def test_linear_systems_are_followed(rhs):
    u = np.array([0.5, 1.0, 2.0, -1.0]) if rhs is of_mass else np.array([0.5, -1.0])
    problem = ol.Problem(rhs, u, (0.0, 1.0))
    with np.errstate(invalid="ignore"):  # as a run does
        found, found_t = derivatives(problem, T, u)
    np.testing.assert_allclose(found, ol.jacobian(problem, T, u), atol=1e-8)
    above, below = (problem.slope(T + s, u) for s in (1e-5, -1e-5))
    np.testing.assert_allclose(found_t, (above - below) / 2e-5, atol=1e-8)
