"""Every tableau: order conditions exactly, what is derived from them, and that damage is refused."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import odelab as ol
from odelab.methods import order_conditions as trees
from tests.odelab.solver_cases import EMBEDDED, EXPLICIT, NAMED, PENDULUM, Recorder, one_step, refused, unchecked
from tests.rounding import bound_of_sum

every_method = pytest.mark.parametrize("method", EXPLICIT, **NAMED)
embedded_method = pytest.mark.parametrize("method", EMBEDDED, **NAMED)


def defects(a, b, order):
    return [defect for _, defect in trees.defects(a, b, order)]


def allowed(method):
    """What published digits leave of a condition: nothing of fractions, 26 places of DOP853's decimals."""
    return 0 if method.order <= 5 else Fraction(1, 10**26)


def conditions_up_to_four(a, b):
    """The eight order conditions as textbooks print them (Hairer, Nørsett and Wanner II.2), left side minus right."""
    a, b = np.array(a, dtype=object), np.array(b, dtype=object)
    c = a.sum(axis=1)
    return [
        b.sum() - 1,
        b @ c - Fraction(1, 2),
        b @ c**2 - Fraction(1, 3),
        b @ a @ c - Fraction(1, 6),
        b @ c**3 - Fraction(1, 4),
        b @ (c * (a @ c)) - Fraction(1, 8),
        b @ a @ c**2 - Fraction(1, 12),
        b @ a @ a @ c - Fraction(1, 24),
    ]


CONDITIONS = {1: 1, 2: 2, 3: 4, 4: 8}


def test_rooted_trees_are_as_many_as_cayley_counted():
    assert [len(trees.trees(n)) for n in range(1, 9)] == [1, 1, 2, 4, 9, 20, 48, 115]


def test_densities_of_the_tall_and_the_bushy_tree():
    tall = ()
    for nodes in range(1, 8):
        assert trees.density(tall) == math.factorial(nodes)
        assert trees.density(((),) * nodes) == nodes + 1
        tall = (tall,)


@every_method
def test_row_sums(method):
    assert method.c == tuple(sum(row, Fraction(0)) for row in method.a)
    assert all(isinstance(x, Fraction) for row in (*method.a, method.b, method.c) for x in row)


@every_method
def test_textbook_conditions(method):
    count = CONDITIONS[min(method.order, 4)]
    assert max(abs(x) for x in conditions_up_to_four(method.square, method.b)[:count]) <= allowed(method)


@every_method
def test_order_is_reached_and_not_exceeded(method):
    assert max(map(abs, defects(method.square, method.b, method.order))) <= allowed(method)
    assert max(map(abs, defects(method.square, method.b, method.order + 1))) > 1e-6


@embedded_method
def test_embedded_order_is_reached_and_not_exceeded(method):
    assert method.order_low < method.order
    assert max(map(abs, defects(method.square, method.b_low, method.order_low))) <= allowed(method)
    assert max(map(abs, defects(method.square, method.b_low, method.order_low + 1))) > 1e-6


def damaged(method):
    """(what, a call that makes the method with one coefficient moved by 0.01) for every coefficient."""
    rows = {"b": method.b, "b_low": method.b_low, "b_lowest": method.b_lowest}
    kept = {name: getattr(method, name) for name in ("order", "order_low", "order_lowest", "extra", "dense")}
    kept |= {"name": method.name, "a": method.a, **rows}

    def call(**changes):
        return lambda: ol.Method(**{**kept, **changes})

    def moved(row, j):
        return tuple(x + Fraction(1, 100) * (i == j) for i, x in enumerate(row))

    for name in rows:
        for j in range(len(rows[name] or ())):
            yield f"{name}[{j}]", call(**{name: moved(rows[name], j)})
    for name in ("a", "extra", "dense"):
        for i, row in enumerate(kept[name] or ()):
            for j in range(len(row)):
                table = tuple(moved(r, j) if k == i else r for k, r in enumerate(kept[name]))
                yield f"{name}[{i}][{j}]", call(**{name: table})


@every_method
def test_every_damaged_coefficient_is_refused(method):
    assert [what for what, build in damaged(method) if not refused(build, method.name)] == []


@every_method
def test_the_undamaged_copy_is_accepted(method):
    fields = ("name", "order", "a", "b", "b_low", "order_low", "dense", "extra", "b_lowest", "order_lowest", "c")
    copy = ol.Method(**{name: getattr(method, name) for name in fields})
    assert copy.tableau == method.tableau


def test_a_damaged_node_is_refused():
    c = [*ol.RK4.c[:2], Fraction(51, 100), 1]
    with pytest.raises(ValueError, match=r"`c` of RK4 disagrees with row 2 of `a`: 51/100 against the sum 1/2"):
        ol.Method("RK4", 4, ol.RK4.a, ol.RK4.b, c=c)


def test_a_square_tableau_is_the_same_method():
    given = np.array(ol.DOPRI5.square, dtype=float)
    square = ol.Method("SQUARE", 5, given, ol.DOPRI5.b, ol.DOPRI5.b_low, 4)
    assert [len(row) for row in square.a] == list(range(7))
    np.testing.assert_array_equal(np.array(square.square, dtype=float), given)
    with pytest.raises(ValueError, match="`a` of IMPLICIT must have 1 rows, row i with i entries"):
        ol.Method("IMPLICIT", 1, [[1]], [1])


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"a": [[], ["1/2", 0], [0, "1/2"], [0, 0, 1]]}, "`a` of RK4 must have 4 rows"),
        ({"b": ["1/6", "1/3", "1/2"]}, "`a` of RK4 must have 3 rows"),
        ({"b_low": [1, 0, 0], "order_low": 1}, "`b_low` of RK4 must have 4 entries"),
        ({"dense": [0, 0, 0, 0]}, "`dense` of RK4 needs one weight per stage"),
        ({"order": 5}, "misses the order-5 condition"),
        ({"order": 0}, "`order` of RK4 must be a whole number from 1 up, got 0"),
        ({"b_low": [1, 0, 0, 0]}, "`order_low` of RK4 must be a whole number from 1 up, got 0"),
        ({"b_low": ol.RK4.b, "order_low": 4}, "`b_low` of RK4 gives an estimate of the error that is always zero"),
    ],
)
def test_a_tableau_of_the_wrong_shape_or_order_is_refused(changes, word):
    fields = {"name": "RK4", "order": 4, "a": ol.RK4.a, "b": ol.RK4.b}
    with pytest.raises(ValueError, match=word):
        ol.Method(**{**fields, **changes})


def test_new_tableau_in_ten_lines():
    ralston = ol.Method("RALSTON", order=2, a=[[], ["2/3"]], b=["1/4", "3/4"])
    assert float(ol.observed_order(ralston, PENDULUM)) == pytest.approx(2, abs=0.1)
    assert repr(ralston) == "RALSTON, order 2, 2 stages"


@every_method
def test_stability_polynomial_is_the_exponential_series_up_to_the_order(method):
    for power, coefficient in enumerate(method.stability_polynomial[: method.order + 1]):
        error = abs(coefficient - Fraction(1, math.factorial(power)))
        assert error <= allowed(method)
    assert len(method.stability_polynomial) <= method.stages + 1


@every_method
@given(z=st.complex_numbers(max_magnitude=6.0, allow_nan=False))
def test_stability_function_is_what_one_step_multiplies_by(method, z):
    matrix = np.array([[z.real, -z.imag], [z.imag, z.real]])
    u_new, *_ = one_step(method, lambda t, u, params: matrix @ u, 0.0, np.array([1.0, 0.0]), 1.0)
    expected = method.stability(z)
    assert abs(complex(*u_new) - expected) <= 1e-12 * (1.0 + abs(z) ** method.stages)


def first_exit(method, direction):
    """Where a scan along a ray first finds |R| > 1, to 1e-4."""
    x = np.arange(1, 80_000) * 1e-4
    growing = np.abs(method.stability(direction * x)) > 1.0 + 1e-11
    return x[growing][0]


@every_method
def test_stability_boundaries_are_where_a_scan_leaves_the_region(method):
    assert method.real_boundary == pytest.approx(first_exit(method, -1.0), abs=2e-4)
    if method.imaginary_boundary > 0.0:
        assert method.imaginary_boundary == pytest.approx(first_exit(method, 1j), abs=2e-4)
    else:
        assert first_exit(method, 1j) < 0.1


@pytest.mark.parametrize(
    ("method", "real", "imaginary"),
    [
        (ol.EULER, 2.0, 0.0),
        (ol.HEUN, 2.0, 0.0),
        (ol.MIDPOINT, 2.0, 0.0),
        (ol.BS32, 2.512745327, 1.732050808),
        (ol.RK4, 2.785293563, 2.828427125),
        (ol.RKF45, 3.678, 0.0),
        (ol.DOPRI5, 3.306567893, 0.997),
    ],
    **NAMED,
)
def test_known_stability_boundaries(method, real, imaginary):
    assert method.real_boundary == pytest.approx(real, abs=5e-4)
    assert method.imaginary_boundary == pytest.approx(imaginary, abs=5e-4)


def test_the_fourth_order_member_of_fehlbergs_pair():
    lower = ol.Method("RKF4", 4, ol.RKF45.a, ol.RKF45.b_low)
    assert lower.real_boundary == pytest.approx(3.020, abs=5e-4)


@every_method
def test_every_stage_is_evaluated_at_its_time_and_state(method):
    rhs = Recorder(lambda t, u, params: np.array([u[1] + t, -np.sin(u[0]) * u[1]]))
    t, h, u = 0.3, 0.2, np.array([1.0, 0.5])
    u_new, mean_slope, errors, slopes = one_step(method, rhs, t, u, h)
    a, b = np.array(method.square, dtype=float), np.array(method.b, dtype=float)
    k = np.array(slopes)
    assert len(rhs.times) == method.stages
    assert_sums(rhs.times, t, *(h * a.T))
    assert_sums(rhs.states, u, *(h * a[:, j, None] * k[j] for j in range(method.stages)))
    assert_sums(mean_slope, *(b[:, None] * k))
    assert_sums(u_new, u, *(h * b[:, None] * k))
    if method.embedded:
        low = np.array(method.b_low, dtype=float)
        assert_sums(errors[0], *(h * b[:, None] * k), *(-h * low[:, None] * k))


def assert_sums(found, *terms):
    """`found` is the sum of the terms but for rounding: of each product, of its factors, and of each sum."""
    assert (np.abs(np.array(found) - sum(terms)) <= bound_of_sum(*terms, roundings=2 * len(terms))).all()


@every_method
def test_evaluations_are_those_a_step_needs(method):
    run = ol.solve(PENDULUM, method, ol.fixed(0.1))
    per_step = method.stages - 1 if method.fsal else method.stages
    assert run.evaluations == 40 * per_step + (1 if method.fsal else 0)


@embedded_method
def test_evaluations_are_counted_one_by_one(method):
    rhs = Recorder(lambda t, u, params: np.array([u[1], 5.0 * (1.0 - u[0] ** 2) * u[1] - u[0]]))
    problem = ol.Problem(rhs, [2.0, 0.0], (0.0, 6.0))
    rhs.times.clear()
    run = ol.solve(problem, method, ol.adaptive(1e-5, 1e-8, law="i"))
    assert run.evaluations == len(rhs.times)
    assert run.rejected > 0


def test_a_damaged_tableau_shows_in_the_observed_order():
    for name, row in (("b", 3), ("a", 3)):
        exact = getattr(ol.RK4, name)
        if name == "b":
            broken = tuple(x + Fraction(1, 100) * (i == row) for i, x in enumerate(exact))
        else:
            broken = (*exact[:row], tuple(x + Fraction(1, 100) for x in exact[row]))
        order = float(ol.observed_order(unchecked(ol.RK4, **{name: broken}), PENDULUM, engine="python"))
        assert order < 3.0
