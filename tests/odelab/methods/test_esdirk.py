"""Diagonally implicit tableaux: order conditions, stability, the extension, and that damage is refused."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import odelab as ol
from odelab.methods import order_conditions as trees
from odelab.methods.implicit import ESDIRK
from tests.odelab.solver_cases import NAMED
from tests.rounding import bound_of_sum

METHODS = list(ESDIRK.values())
every_method = pytest.mark.parametrize("method", METHODS, **NAMED)


def exact(method):
    """(A, b, b_low) as Fractions."""
    stages = range(method.stages)
    rows = [[*method.a[i], method.gamma * (i > 0), *[Fraction(0)] * (method.stages - 1 - i)] for i in stages]
    return np.array(rows), np.array(rows[-1]), np.array(method.b_low)


def remade(method, **changes):
    """The method made anew with other coefficients."""
    fields = ("name", "order", "gamma", "a", "b_low", "order_low", "l_stable", "about")
    return ol.EsdirkMethod(**{name: getattr(method, name) for name in fields} | changes)


def words_of(build):
    """What a refused method is told."""
    with pytest.raises(ValueError, match="`") as refusal:
        build()
    return str(refusal.value)


@every_method
def test_the_orders_are_reached_and_not_exceeded(method):
    A, b, b_low = exact(method)
    for weights, order in ((b, method.order), (b_low, method.order_low)):
        assert all(defect == 0 for _, defect in trees.defects(A, weights, order))
        assert max(abs(defect) for _, defect in trees.defects(A, weights, order + 1)) > 1e-4


@every_method
def test_every_stage_is_of_order_two_and_the_last_one_is_the_new_state(method):
    A, b, _ = exact(method)
    c = A.sum(axis=1)
    assert (A @ c == c * c / 2).all()
    assert c[-1] == 1
    np.testing.assert_array_equal(np.float64(c), method.c)
    np.testing.assert_array_equal(np.float64(b), method.tableau.b)


@every_method
def test_stage_times_lie_inside_the_step(method):
    """So that nothing is evaluated beyond a jump at which a step ends."""
    assert min(method.c) >= 0.0
    assert max(method.c) <= 1.0


@every_method
@given(x=st.floats(-8.0, 8.0), y=st.floats(-8.0, 8.0))
def test_the_stability_function_is_that_of_the_tableau(method, x, y):
    """R(z) = det(I - z A + z 1 b) / det(I - z A) (Hairer and Wanner, Solving ODEs II, IV.3)."""
    z = complex(x, y)
    A, b, _ = (np.float64(rows) for rows in exact(method))
    unit = np.eye(method.stages)
    below = np.linalg.det(unit - z * A)
    if abs(below) > 1e-3:  # elsewhere a pole, 1 / gamma, is near
        wanted = np.linalg.det(unit - z * A + z * np.outer(np.ones(method.stages), b)) / below
        size = np.linalg.norm(unit - z * A, 2) ** method.stages / abs(below)
        assert abs(method.stability(z) - wanted) <= bound_of_sum(size, roundings=8.0 * method.stages**2)


@every_method
def test_it_is_stable_on_the_whole_left_half_plane_and_damps_at_infinity(method):
    assert method.real_boundary == np.inf
    assert method.imaginary_boundary == np.inf
    z = np.array([-1e4, -1e6, -1e8])
    damped = np.abs(method.stability(z))
    assert (damped * np.abs(z) < 20.0).all()  # R(z) ~ C / z


@every_method
def test_the_estimate_is_bounded_at_infinity(method):
    A, b, b_low = (np.float64(rows) for rows in exact(method))
    estimates = [
        abs(z * ((b - b_low) @ np.linalg.solve(np.eye(method.stages) - z * A, np.ones(method.stages))))
        for z in (-1e2, -1e4, -1e6)
    ]
    assert max(estimates) < 1.0


@every_method
def test_the_extension_has_its_order_ends_at_the_new_state_and_is_bounded_at_infinity(method):
    A, b, _ = (np.float64(rows) for rows in exact(method))
    weights = method.extension_weights
    assert method.dense_order == 3
    np.testing.assert_allclose(weights.sum(axis=0), b, rtol=1e-14, atol=1e-14)
    phi = trees.ElementaryWeights(A)
    for nodes in range(1, method.dense_order + 1):
        for tree in trees.trees(nodes):
            wanted = (np.arange(1, len(weights) + 1) == nodes) / trees.density(tree)
            terms = weights * phi.at(tree)
            bound = bound_of_sum(np.abs(weights).sum(axis=1), roundings=20.0 * method.stages)
            assert (np.abs(terms.sum(axis=1) - wanted) <= bound).all()
    far = [weights @ (z * np.linalg.solve(np.eye(method.stages) - z * A, np.ones(method.stages))) for z in (-1e3, -1e6)]
    assert np.abs(far).max() < 50.0


@every_method
@given(place=st.integers(0, 13), size=st.sampled_from([1e-9, -1e-6, 0.01]))
def test_a_damaged_coefficient_is_refused(method, place, size):
    rows = [list(row) for row in method.a]
    entries = [(i, j) for i in range(method.stages) for j in range(i)]
    i, j = entries[place % len(entries)]
    rows[i][j] += Fraction(size)
    message = words_of(lambda: remade(method, a=rows))
    assert message.startswith(f"`a` of {method.name} misses")


@every_method
@pytest.mark.parametrize("size", [1e-9, -0.01])
def test_a_damaged_diagonal_or_estimate_is_refused(method, size):
    words_of(lambda: remade(method, gamma=method.gamma + Fraction(size)))
    low = list(method.b_low)
    low[2] += Fraction(size)
    message = words_of(lambda: remade(method, b_low=low))
    assert message.startswith(f"`b_low` of {method.name} misses the order-1 condition")


def test_what_is_claimed_and_not_so_is_refused():
    trapezoid = {"order": 2, "gamma": "1/2", "a": [[], ["1/2"]]}
    assert ol.EsdirkMethod("TRAPEZOID", **trapezoid, l_stable=False).real_boundary == np.inf
    message = words_of(lambda: ol.EsdirkMethod("TRAPEZOID", **trapezoid))
    assert message.startswith("`l_stable` is claimed of TRAPEZOID, but R(infinity) = -1")
    low = {"b_low": [1, 0], "order_low": 1}
    message = words_of(lambda: ol.EsdirkMethod("TRAPEZOID", **trapezoid, **low, l_stable=False))
    assert message.startswith("`b_low` of TRAPEZOID gives an estimate of the error that grows without bound")
    message = words_of(lambda: remade(ol.ESDIRK43, b_low=ol.ESDIRK43.b, order_low=3))
    assert "always zero" in message
    message = words_of(lambda: remade(ol.ESDIRK43, order=5))
    assert "misses the order-5 condition" in message


def test_stage_order_two_is_asked_for():
    """Two stages of the implicit Euler method behind each other are of order one, but no stage is of order two."""
    message = words_of(lambda: ol.EsdirkMethod("EULERS", 1, "1/2", a=[[], [0], [0, "1/2"]]))
    assert message.startswith("`a` of EULERS misses stage order two")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"gamma": 0}, "`gamma` of ESDIRK43 must be positive, got 0.0."),
        ({"gamma": "-1/4"}, "`gamma` of ESDIRK43 must be positive, got -0.25."),
        ({"a": [[], [1, 2]]}, "`a` of ESDIRK43 must have two rows at least, row i with i entries"),
        ({"a": [[]]}, "`a` of ESDIRK43 must have two rows at least, row i with i entries"),
        ({"b_low": [1]}, "`b_low` of ESDIRK43 must have 6 entries, one per stage, got 1."),
        ({"order": 0}, "`order` of ESDIRK43 must be a whole number from 1 up, got 0."),
        ({"order_low": 2.5}, "`order_low` of ESDIRK43 must be a whole number from 1 up, got 2.5."),
    ],
)
def test_malformed_tableaux_are_refused_in_words(changes, said):
    assert words_of(lambda: remade(ol.ESDIRK43, **changes)).startswith(said)


def test_a_start_is_a_polynomial_through_the_stages_before():
    """Of degree two where there are three of them: it is exact for parabolas."""
    for i, row in enumerate(ol.ESDIRK43.start[1:], 1):
        c = np.array(ol.ESDIRK43.c)
        for degree in range(min(i, 3)):
            bound = bound_of_sum(np.abs(row), roundings=20.0)
            assert abs(row @ c**degree - c[i] ** degree) <= bound.sum()


def test_methods_are_pickled_by_name_and_own_ones_by_their_coefficients():
    assert pickle.loads(pickle.dumps(ol.ESDIRK43)) is ol.ESDIRK43
    own = remade(ol.ESDIRK43, name="OWN")
    again = pickle.loads(pickle.dumps(own))
    assert (again.name, again.a, again.b_low) == ("OWN", own.a, own.b_low)
    assert repr(own) == "OWN, order 4(3), 6 stages, diagonally implicit"
