"""Linearly implicit tableaux: order conditions, stability, the extension, and that damage is refused."""

import dataclasses
import functools
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import odelab as ol
from odelab.methods import order_conditions as trees
from tests.odelab.solver_cases import NAMED, refused
from tests.rounding import bound_of_sum

METHODS = [ol.ROS2, ol.RODAS4, ol.RODAS5P]
every_method = pytest.mark.parametrize("method", METHODS, **NAMED)


DIGITS = Fraction(1, 10**14)  # what the published digits of the coefficients leave of a condition


@functools.cache
def exact(method):
    """(alpha, Gamma, b, b_low) of the textbooks' form as Fractions, from the coefficients that are stored."""
    gamma, stages = Fraction(method.gamma), range(method.stages)
    Gamma = np.array([[gamma * (i == j) for j in stages] for i in stages], dtype=object)
    for i in stages:  # the inverse of I / gamma - C, row by row
        for j in range(i):
            Gamma[i] += gamma * Fraction(method.C[i][j]) * Gamma[j]
    a = np.array([[Fraction(row[j]) if j < len(row) else Fraction(0) for j in stages] for row in method.a])
    m, e = (np.array([Fraction(weight) for weight in row]) for row in (method.m, method.e))
    return a @ Gamma, Gamma, m @ Gamma, (m - e) @ Gamma


def defects(method, weights, order):
    alpha, Gamma, *_ = exact(method)
    return max(abs(defect) for _, defect in trees.defects(alpha, weights, order, alpha + Gamma))


def textbook_conditions(method):
    """The conditions up to order four as Hairer and Wanner print them (II, Table 7.1), left side minus right."""
    a, Gamma, b, _ = exact(method)
    beta = a + Gamma
    c, one = a.sum(axis=1), beta.sum(axis=1)
    return [
        b.sum() - 1,
        b @ one - Fraction(1, 2),
        b @ c**2 - Fraction(1, 3),
        b @ beta @ one - Fraction(1, 6),
        b @ c**3 - Fraction(1, 4),
        b @ (c * (a @ one)) - Fraction(1, 8),
        b @ beta @ c**2 - Fraction(1, 12),
        b @ beta @ beta @ one - Fraction(1, 24),
    ]


CONDITIONS = {2: 2, 4: 8, 5: 8}


@every_method
def test_textbook_conditions(method):
    assert max(map(abs, textbook_conditions(method)[: CONDITIONS[method.order]])) <= DIGITS


@every_method
def test_the_orders_are_reached_and_not_exceeded(method):
    _, _, b, b_low = exact(method)
    assert defects(method, b, method.order) <= DIGITS
    assert defects(method, b, method.order + 1) > 1e-3
    assert defects(method, b_low, method.order_low) <= DIGITS
    assert defects(method, b_low, method.order_low + 1) > 1e-3


@every_method
def test_derived_coefficients_are_those_of_exact_arithmetic(method):
    """But for rounding: each is a sum of products along the stages before it, whose sizes a row of Gamma has."""
    alpha, Gamma, b, b_low = (np.array(rows, dtype=float) for rows in exact(method))
    stages = range(method.stages)
    sizes = method.gamma * np.eye(method.stages)  # of Gamma's terms
    for i in stages:
        sizes[i] += method.gamma * (np.abs(method.C[i]) @ sizes[:i])
    a = np.abs([[row[j] if j < len(row) else 0.0 for j in stages] for row in method.a])
    m = np.abs(method.m) + np.abs(method.e)
    roundings = 2.0 * method.stages**2  # a product and a sum for each stage before, and so in each of these
    for ours, wanted, size in (
        (method.Gamma, Gamma, sizes),
        (method.alpha, alpha, a @ sizes),
        (method.b, b, m @ sizes),
        (method.b_low, b_low, m @ sizes),
    ):
        assert (np.abs(ours - wanted) <= bound_of_sum(size, roundings=roundings)).all()


def test_nodes_with_one_branch_feel_the_implicit_weights():
    """With alpha alone, as for an explicit method, RODAS misses its conditions; ROS2 is of order two all the same."""
    alone = []
    for method in METHODS:
        alpha, _, b, _ = exact(method)
        alone.append(max(abs(defect) for _, defect in trees.defects(alpha, b, method.order)))
    assert alone[0] < DIGITS
    assert min(alone[1:]) > 0.01


def test_first_coefficients_are_those_of_the_literature():
    alpha, Gamma, *_ = exact(ol.RODAS4)
    np.testing.assert_allclose(np.float64(alpha.sum(axis=1)), [0.0, 0.386, 0.21, 0.63, 1.0, 1.0], atol=1e-15)
    np.testing.assert_allclose(np.float64(Gamma.sum(axis=1)), [0.25, -0.1043, 0.1035, -0.0362, 0.0, 0.0], atol=1e-15)
    alpha, Gamma, *_ = exact(ol.RODAS5P)
    assert abs(alpha[1].sum() - 3 * Gamma[0, 0]) <= DIGITS
    assert abs(Gamma[1].sum() + 2 * Gamma[0, 0]) <= DIGITS
    alpha, Gamma, b, _ = exact(ol.ROS2)
    gamma = 1 - np.sqrt(0.5)
    np.testing.assert_allclose(np.float64(alpha), [[0, 0], [1, 0]], atol=1e-15)
    np.testing.assert_allclose(np.float64(Gamma), [[gamma, 0], [-2 * gamma, gamma]], atol=1e-15)
    np.testing.assert_allclose(np.float64(b), [0.5, 0.5], rtol=1e-15)


@every_method
def test_what_drops_out_is_exactly_zero(method):
    whole = [x for x in (*method.c, *method.d) if abs(x - round(x)) < 1e-9]
    assert whole == [round(x) for x in whole]
    assert method.d[0] == method.gamma


@every_method
def test_r_vanishes_at_minus_infinity_like_one_over_z(method):
    z = -np.logspace(2, 12, 41)
    assert (np.abs(method.stability(z) * z) < 20).all()
    assert (np.abs(method.stability(1j * z) * z) < 20).all()


@every_method
def test_the_left_half_plane_is_stable(method):
    assert method.real_boundary == method.imaginary_boundary == np.inf
    size, angle = np.meshgrid(np.logspace(-3, 6, 60), np.linspace(np.pi / 2, 3 * np.pi / 2, 61))
    assert np.abs(method.stability(size * np.exp(1j * angle))).max() <= 1 + 1e-12


@every_method
def test_r_is_the_exponential_to_its_order(method):
    z = 0.4 * np.exp(1j * np.linspace(0, 2 * np.pi, 13))
    misses = [np.abs(method.stability(s * z) - np.exp(s * z)).max() for s in (1.0, 0.5)]
    assert misses[0] < 0.4**method.order * 0.05
    assert np.log2(misses[0] / misses[1]) > method.order + 0.7


@every_method
@given(z=st.complex_numbers(max_magnitude=1e6))
def test_r_is_that_of_the_textbook_form(method, z):
    """R(z) = 1 + z b (I - z B)^-1 1."""
    if abs(1.0 - method.gamma * z) < 1e-3:
        return
    stages = np.linalg.solve(np.eye(method.stages) - z * (method.alpha + method.Gamma), np.ones(method.stages))
    expected = 1.0 + z * (method.b @ stages)
    assert abs(method.stability(z) - expected) <= 1e-9 * max(1.0, abs(expected), abs(z) ** -1 if abs(z) > 1 else 0.0)


def test_a_boundary_is_found_where_there_is_one():
    explicit_like = ol.RosenbrockMethod("HALF", 1, gamma=0.25, a=[[]], C=[[]], m=[4.0], l_stable=False)
    # R(z) = (1 + 3z/4) / (1 - z/4) is -1 at z = -4
    assert explicit_like.real_boundary == pytest.approx(4.0, rel=1e-6)
    assert explicit_like.imaginary_boundary < 1e-5  # |R| - 1 grows with the square: rounding hides it nearer by


@pytest.mark.parametrize("method", [ol.RODAS4, ol.RODAS5P], **NAMED)
def test_the_last_two_stages_are_those_of_stiffly_accurate_methods(method):
    alpha, Gamma, b, b_low = exact(method)
    assert max(np.abs((alpha + Gamma)[-1] - b)) <= DIGITS
    assert max(np.abs((alpha + Gamma)[-2] - b_low)) <= DIGITS
    assert method.e == (*(0.0,) * (method.stages - 1), 1.0)  # the last increment is the estimate


@every_method
@given(theta=st.floats(0.0, 1.0))
def test_the_extension_has_its_order_everywhere(method, theta):
    weights = theta ** np.arange(1, len(method.extension_weights) + 1) @ method.extension_weights @ method.Gamma
    phi = trees.ElementaryWeights(method.alpha, method.alpha + method.Gamma)

    def missed(order):
        found = trees.trees(order)
        return max(abs(weights @ phi.at(tree) - theta**order / trees.density(tree)) for tree in found)

    assert max(missed(order) for order in range(1, method.dense_order + 1)) < 1e-9
    assert method.dense_order == max(2, method.order - 1)


@every_method
def test_the_extension_meets_the_step(method):
    np.testing.assert_allclose(method.extension_weights.sum(axis=0), method.m, rtol=1e-13, atol=1e-13)


def test_without_weights_it_is_a_parabola_or_a_straight_line():
    gamma = ol.ROS2.gamma
    halves = np.array([0.5 + 0.5 / (1.0 - 2.0 * gamma), 0.5 - 0.5 / (1.0 - 2.0 * gamma)])  # of theta, by hand
    np.testing.assert_allclose(ol.ROS2.extension_weights @ ol.ROS2.Gamma, [halves, [0.5, 0.5] - halves], rtol=1e-13)
    euler = ol.RosenbrockMethod("EULER1", order=1, gamma=1.0, a=[[]], C=[[]], m=[1.0])
    middle = ol.RosenbrockMethod("MIDDLE", order=2, gamma=0.5, a=[[]], C=[[]], m=[2.0], l_stable=False)
    for line in (euler, middle):
        np.testing.assert_array_equal(line.extension_weights, [line.m])
    assert [one.dense_order for one in (ol.ROS2, euler, middle)] == [2, 1, 1]


def fields(method):
    return {field.name: getattr(method, field.name) for field in dataclasses.fields(method)}


def damaged(method):
    """(what, a call that makes the method with one coefficient moved by 0.01) for every coefficient.

    But for the weights of RODAS' last increment in the estimate and in the extension: it is the estimate itself, and
    any share of it keeps their orders.
    """

    def call(**changes):
        return lambda: ol.RosenbrockMethod(**{**fields(method), **changes})

    def moved(row, j):
        return tuple(x + 0.01 * (i == j) for i, x in enumerate(row))

    yield "gamma", call(gamma=method.gamma + 0.01)
    for name in ("m", "e"):
        for j in range(method.stages):
            if (name, j) != ("e", method.stages - 1) or not method.stiffly_accurate:
                yield f"{name}[{j}]", call(**{name: moved(getattr(method, name), j)})
    for name in ("a", "C", "dense"):
        table = getattr(method, name) or ()
        for i, row in enumerate(table):
            for j in range(len(row) - (name == "dense")):
                yield f"{name}[{i}][{j}]", call(**{name: (*table[:i], moved(row, j), *table[i + 1 :])})


@every_method
def test_every_damaged_coefficient_is_refused(method):
    assert [what for what, build in damaged(method) if not refused(build, method.name)] == []


@every_method
def test_the_undamaged_copy_is_accepted_and_pickled(method):
    copy = ol.RosenbrockMethod(**fields(method))
    assert pickle.loads(pickle.dumps(method)) is method
    again = pickle.loads(pickle.dumps(copy))
    assert again is not method
    assert again.tableau == method.tableau


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gamma": 0.0}, "`gamma` of RODAS4 must be positive and finite"),
        ({"a": [[], [1.0]]}, "`a` of RODAS4 must have 6 rows"),
        ({"C": [[1.0]] * 6}, "`C` of RODAS4 must have 6 rows"),
        ({"e": [1.0]}, "`e` of RODAS4 needs one weight per stage, 6, got 1"),
        ({"dense": [[1.0]]}, "`dense` of RODAS4 needs one weight per stage"),
        ({"order": 5}, "not of order 5"),
        ({"order_low": 4}, "not of order 4"),
        ({"dense": [[0.0] * 6]}, "the extension is not of order 2"),
        ({"gamma": np.inf}, "`gamma` of RODAS4 must be positive and finite, got inf"),
        ({"e": [np.nan] * 6}, "`e` of RODAS4 misses the order-1 condition"),
        ({"order": 0}, "`order` of RODAS4 must be a whole number from 1 up, got 0"),
        ({"order": 4.0}, "`order` of RODAS4 must be a whole number from 1 up, got 4.0"),
        ({"order_low": 0}, "`order_low` of RODAS4 must be a whole number from 1 up, got 0"),
        ({"e": [0.0] * 6}, "`e` of RODAS4 gives an estimate of the error that is always zero"),
    ],
)
def test_wrong_input_is_named(changes, words):
    with pytest.raises(ValueError, match="`") as refusal:
        ol.RosenbrockMethod(**{**fields(ol.RODAS4), **changes})
    assert words in str(refusal.value)


def test_claims_of_stability_are_checked():
    one_stage = {"name": "ONE", "order": 1, "a": [[]], "C": [[]], "m": [1.0]}
    with pytest.raises(ValueError, match=r"`l_stable` is claimed of ONE, but R\(infinity\) = -1"):
        ol.RosenbrockMethod(**{**one_stage, "m": [2.0]}, gamma=0.5)
    assert ol.RosenbrockMethod(**{**one_stage, "m": [2.0]}, gamma=0.5, l_stable=False).stability(-1e12) < -0.99
    with pytest.raises(ValueError, match=r"claimed of ROS2, but `e` does not vanish .*, it is 2\.41"):
        ol.RosenbrockMethod(**{**fields(ol.ROS2), "stiffly_accurate": True})
    with pytest.raises(ValueError, match="`stiffly_accurate` is claimed of ROS2, but the last row"):
        ol.RosenbrockMethod(**{**fields(ol.ROS2), "stiffly_accurate": True, "e": None, "order_low": None})


def test_l_stable_is_claimed_of_methods_that_are_stable_on_the_imaginary_axis():
    """Two stages of order 1 whose R vanishes at infinity, but exceeds 1 on the imaginary axis: gamma is too small."""
    gamma = 0.2
    Gamma = np.array([[gamma, 0.0], [2.0 * (gamma - gamma**2) - 1.0, gamma]])
    inverse = np.linalg.inv(Gamma)
    a, C, m = np.array([[0.0, 0.0], [1.0, 0.0]]) @ inverse, np.eye(2) / gamma - inverse, [0.5, 0.5] @ inverse
    made = {"name": "LOW", "order": 1, "gamma": gamma, "a": [[], [a[1, 0]]], "C": [[], [C[1, 0]]], "m": m}
    with pytest.raises(
        ValueError, match=r"`l_stable` is claimed of LOW, but \|R\(iy\)\| exceeds 1 from y = .* A-stable"
    ):
        ol.RosenbrockMethod(**made)
    low = ol.RosenbrockMethod(**made, l_stable=False)
    assert abs(low.stability(-1e9)) < 1e-7
    assert abs(low.stability(1j)) > 1.0


@every_method
def test_from_a_textbook_comes_the_same_method(method):
    given = method.alpha, method.Gamma, method.b, method.b_low
    again = ol.RosenbrockMethod.from_textbook("AGAIN", method.order, *given, order_low=method.order_low)
    for name in ("gamma", "m", "e", "alpha", "Gamma", "b", "b_low", "c", "d"):
        np.testing.assert_allclose(getattr(again, name), getattr(method, name), rtol=1e-12, atol=1e-12)
    for name in ("a", "C"):
        for row, wanted in zip(getattr(again, name), getattr(method, name), strict=True):
            np.testing.assert_allclose(row, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"Gamma": [[0.5, 0.0], [-1.0, 0.4]]}, "`Gamma` of MINE must be lower triangular, 2 x 2, with one positive"),
        ({"Gamma": [[0.0, 0.0], [-1.0, 0.0]]}, "`Gamma` of MINE must have a positive diagonal, got 0.0"),
        ({"Gamma": [[0.5]]}, "`Gamma` of MINE must be lower triangular, 2 x 2"),
        ({"alpha": [[0.0, 1.0], [1.0, 0.0]]}, "`alpha` of MINE must be lower triangular, 2 x 2, with zeros"),
        ({"b": [0.4, 0.5]}, "`m` of MINE misses the order-1 condition"),
    ],
)
def test_a_textbook_tableau_that_cannot_be_is_refused(change, words):
    rows = {"alpha": [[0.0, 0.0], [1.0, 0.0]], "Gamma": [[0.5, 0.0], [-1.0, 0.5]], "b": [0.5, 0.5]}
    with pytest.raises(ValueError, match=words):
        ol.RosenbrockMethod.from_textbook("MINE", 2, **{**rows, **change}, l_stable=False)
