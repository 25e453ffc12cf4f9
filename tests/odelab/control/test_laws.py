"""The step-size laws: Söderlind's Table III transcribed anew, and the orders that give the laws their names.

With e = phi h^k, P(q) = q^2 + a2 q + a3 and B(q) = b1 q^2 + b2 q + b3, a law is (q - 1) P(q) log h = -(1/k) B(q) log e.
Söderlind's name H p_D p_A p_F counts the order of the dynamics, the zeros of (q - 1) P at q = 1 (adaptivity) and those
of B at q = -1 (the filter); a leading 0 says that all poles of the closed loop lie at 0.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import odelab as ol
from odelab.control import laws

# k beta_1, k beta_2, k beta_3; alpha_2, alpha_3: Söderlind, ACM Trans. Math. Software 29 (2003), Table III and text.
TABLE = {
    "i": "1 0 0 0 0",
    "pi42": "3/5 -1/5 0 0 0",
    "pi33": "2/3 -1/3 0 0 0",
    "pi34": "7/10 -2/5 0 0 0",
    "pc11": "2 -1 0 -1 0",
    "h0211": "1/2 1/2 0 1/2 0",
    "h211b": "1/4 1/4 0 1/4 0",
    "h211pi": "1/6 1/6 0 0 0",
    "h0312": "1/4 1/2 1/4 3/4 1/4",
    "h312b": "1/8 1/4 1/8 3/8 1/8",
    "h312pid": "1/18 1/9 1/18 0 0",
    "h0321": "5/4 1/2 -3/4 -1/4 -3/4",
    "h321": "1/3 1/18 -5/18 -5/6 -1/6",
}
FILTERS = ("h0211", "h211b", "h211pi", "h0312", "h312b", "h312pid", "h0321", "h321")


def polynomials(law):
    """B, and (q - 1) P, highest power first."""
    gains = np.array(law.b, dtype=object)
    ratios = np.array([Fraction(1), *law.a], dtype=object)
    return gains, np.polymul([Fraction(1), Fraction(-1)], ratios)


def zeros_at(polynomial, point):
    """The multiplicity of `point` as a zero, exactly."""
    count = 0
    while any(polynomial) and np.polyval(polynomial, point) == 0:
        quotient = [polynomial[0]]  # Horner's division
        for coefficient in polynomial[1:-1]:
            quotient.append(coefficient + point * quotient[-1])
        polynomial = quotient
        count += 1
    return count


@pytest.mark.parametrize("name", TABLE)
def test_coefficients_are_those_of_the_table(name):
    law = ol.LAWS[name]
    assert [*law.b, *law.a] == [Fraction(x) for x in TABLE[name].split()]
    assert law.name == name


def test_the_table_is_complete():
    assert set(ol.LAWS) == set(TABLE)
    assert set(laws.FILTERS) == set(FILTERS)


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_has_the_orders_of_its_name(name):
    digits = name.removeprefix("h").removeprefix("0")[:3]
    dynamics, adaptivity, smoothing = (int(digit) for digit in digits)
    gains, integrating = polynomials(ol.LAWS[name])
    assert zeros_at(integrating, 1) == adaptivity
    assert zeros_at(gains, -1) == smoothing
    closed = np.trim_zeros(np.polyadd(integrating, gains), "b")
    assert len(closed) - 1 <= dynamics
    if name.startswith("h0"):
        assert list(np.polyadd(integrating, gains)) == [1, 0, 0, 0]


@pytest.mark.parametrize("name", TABLE)
def test_the_closed_loop_is_stable(name):
    gains, integrating = polynomials(ol.LAWS[name])
    poles = np.roots(np.polyadd(integrating, gains).astype(float))
    assert np.all(np.abs(poles) < 1.0)


@given(b=st.integers(2, 50))
def test_filters_keep_their_orders_at_every_gain(b):
    for law, smoothing in ((laws.h211b(b), 1), (laws.h312b(b), 2)):
        gains, integrating = polynomials(law)
        assert (zeros_at(integrating, 1), zeros_at(gains, -1)) == (1, smoothing)


def test_short_names():
    assert laws.law_named("pi") is ol.LAWS["pi42"]
    assert laws.law_named("pid") is ol.LAWS["h312pid"]
    assert laws.law_named("PI42") is ol.LAWS["pi42"]


def test_weights_left_out_are_zero_and_others_are_numbers():
    short, whole = ol.Law("short", (0.5, -0.25)), ol.Law("whole", (0.5, -0.25, 0.0), (0.0, 0.0), smooth=False)
    problem = ol.problems.van_der_pol()
    runs = [ol.solve(problem, ol.DOPRI5, ol.adaptive(1e-6, law=law), engine="python") for law in (short, whole)]
    np.testing.assert_array_equal(runs[0].t, runs[1].t)
    for wrong, field in ((("b", ()), "b"), (("b", (1, 2, 3, 4)), "b"), (("b", ("1", 2)), "b"), (("a", (1, 2, 3)), "a")):
        with pytest.raises(ValueError, match=f"`{field}` of the law 'short' must hold up to"):
            ol.adaptive(law=short._replace(**{wrong[0]: wrong[1]}))


def test_a_law_of_ones_own_passes_through():
    mine = ol.Law("mine", (Fraction(1, 2), Fraction(0), Fraction(0)), (Fraction(0), Fraction(0)), smooth=True)
    assert ol.adaptive(law=mine).law is mine


@pytest.mark.parametrize("name", ["h211", "", 3])
def test_an_unknown_law_is_refused(name):
    with pytest.raises(ValueError, match=r"`law` must be one of \['h0211', .*'pid'\] or a Law of your own, got"):
        ol.adaptive(law=name)
