"""The step-size laws a kernel can be written for, and their judgement as source text.

The feedback of `odelab.control.error_control` for the clipped laws without step ratios (i, pi42, pi33, pi34), rewritten
for speed: q, n times the squared error ratio, takes the place of the ratio, and a fixed power of it that of logarithm
and exponential. With c = theta^-k the law's factor is (c e_n)^(-b1/k) (c e_{n-1})^(-b2/k).

A kernel knows its exponents p when it is written, so that x ** p takes half the time of `pow`: x = m 2^E with m in
[1, 2) gives a polynomial in m, and 2^(p E), which is looked up. Relative errors are below 2e-15 where long doubles are
longer than doubles.
"""

import math
from fractions import Fraction
from typing import Any, NamedTuple

from numpy.polynomial import chebyshev

from odelab.control.controllers import SET_POINT
from odelab.control.laws import Law
from odelab.engines.numba.stages import number, polynomial

LEAST_RATIO_SQUARED = 1e-24  # an error of 1e-12 of the tolerance is as good as none
SMALLEST, LARGEST = "0.2", "10.0"  # `odelab.control.clip`
FRACTION_BITS = 4503599627370495  # the low 52 bits of a double
ONE_BITS = 4607182418800017408  # the bits of 1.0
EXPONENT_OF_ONE = 1023
LEAST_EXPONENT, LARGEST_EXPONENT = -90, 16  # of what a single run looks up
EXACT_DEGREE = 19


class Gains(NamedTuple):
    """b1 and b2 of a law, and the order k of the error estimate."""

    b1: Fraction
    b2: Fraction
    order: int

    def exponent(self, gain: Fraction) -> float:
        """Of q, the square of the ratio."""
        return -float(gain) / (2.0 * self.order)

    def factor(self, gain: Fraction, n: int) -> float:
        """What the set-point and the mean over n components make of (theta^-k sqrt(q / n))^(-gain / k)."""
        return SET_POINT ** float(gain) * n ** (float(gain) / (2.0 * self.order))


def supported(law: Law) -> bool:
    return not law.smooth and law.b[2] == 0 and not any(law.a)


def gains(law: Law, method) -> Gains:
    return Gains(law.b[0], law.b[1], method.error_order)


def least(n: int) -> str:
    return number(n * LEAST_RATIO_SQUARED)


def tables(gains: Gains) -> list[str]:
    """What `accepted` looks up, as definitions of a module."""
    lines = [table("POWERS", gains.exponent(gains.b1))]
    if gains.b2:
        lines.append(table("EARLIER_POWERS", gains.exponent(gains.b2)))
    return lines


def accepted(gains: Gains, n: int) -> list[str]:
    """dt_next after an accepted step, and what this error will mean to the next judgement (`earlier`)."""
    lines = ["# the next step: a root of the error", f"x = max(q, {least(n)})", *split("x", "")]
    lines += looked_up("now", gains.exponent(gains.b1), gains.factor(gains.b1, n), "POWERS")
    lines += [
        f"factor = min(max(now{' * earlier' if gains.b2 else ''}, {SMALLEST}), {LARGEST})",
        "if was_rejected != 0.0:",
        "    factor = min(factor, 1.0)",
        "dt_next = dt * factor",
        "if abs(dt_next) > largest:",
        "    dt_next = dt_next * (largest / abs(dt_next))",
    ]
    if gains.b2:
        lines += ["# what this error means to the next judgement"]
        lines += looked_up("earlier", gains.exponent(gains.b2), gains.factor(gains.b2, n), "EARLIER_POWERS")
    return lines


def rejected(gains: Gains, n: int) -> list[str]:
    """dt after a rejected step, by the elementary controller; a tenth where the error is not even a number."""
    one = Fraction(1)
    constant = number(gains.factor(one, n))
    exponent = number(gains.exponent(one))
    return [
        "shrink = 0.1",
        "if q < math.inf:",
        f"    shrink = min(max({constant} * exp2({exponent} * log2(min(q, 1e30))), {SMALLEST}), {LARGEST})",
        "dt = dt * shrink",
    ]


def earlier_from_history(gains: Gains) -> str:
    """`earlier` from log2 e_{n-1} against the set-point, as a run's memory keeps it."""
    return f"earlier = exp2({number(-float(gains.b2) / gains.order)} * log_e1)" if gains.b2 else "earlier = 1.0"


def set_point(gains: Gains) -> float:
    """log2 theta^k"""
    return gains.order * math.log2(SET_POINT)


def mantissa_coefficients(exponent: float, factor: float, degree: int) -> list[float]:
    """factor * m**exponent as a polynomial in y = 2 m - 3 on [-1, 1]."""
    return interpolated(lambda y: factor * (0.5 * (y + 3.0)) ** exponent, degree)


def interpolated(function: Any, degree: int) -> list[float]:
    """The polynomial through a function on [-1, 1] at Chebyshev's points, lowest power first."""
    return chebyshev.cheb2poly(chebyshev.chebinterpolate(function, degree)).tolist()


def split(source: str, tag: str) -> list[str]:
    """bits, and y = 2 m - 3 of the mantissa m in [1, 2)."""
    return [
        f"bits{tag} = np.float64({source}).view(np.int64)",
        f"y{tag} = 2.0 * np.int64((bits{tag} & {FRACTION_BITS}) | {ONE_BITS}).view(np.float64) - 3.0",
    ]


def table(name: str, exponent: float) -> str:
    """The definition of a table of 2**(exponent * E); the product rounded to double would cost up to 25 last places."""
    powers = f"np.longdouble({number(exponent)}) * np.arange({LEAST_EXPONENT}.0, {LARGEST_EXPONENT + 1}.0)"
    return f"{name} = (np.longdouble(2.0) ** ({powers})).astype(np.float64)"


def looked_up(target: str, exponent: float, factor: float, table: str) -> list[str]:
    """target = factor * x**exponent of the x that was split, by a table of powers of two."""
    shift = EXPONENT_OF_ONE + LEAST_EXPONENT
    return [
        *polynomial(mantissa_coefficients(exponent, factor, EXACT_DEGREE), "y", "root", "r"),
        f"{target} = root * {table}[np.uint64((bits >> 52) - {shift})]",
    ]
