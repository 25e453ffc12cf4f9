"""The step-size laws a kernel can be written for, and their judgement as source text.

The feedback of `odelab.control.error_control` for the clipped laws without step ratios (i, pi42, pi33, pi34), rewritten
for speed: q, n times the squared error ratio, takes the place of the ratio, and a fixed power of it that of logarithm
and exponential. With c = theta^-k the law's factor is (c e_n)^(-b1/k) (c e_{n-1})^(-b2/k).
"""

import math
from fractions import Fraction
from typing import NamedTuple

from odelab.control.controllers import SET_POINT
from odelab.control.laws import Law
from odelab.engines.numba import root
from odelab.engines.numba.expressions import number

LEAST_RATIO_SQUARED = 1e-24  # an error of 1e-12 of the tolerance is as good as none
SMALLEST, LARGEST = "0.2", "10.0"  # `odelab.control.clip`


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
    lines = [root.table("POWERS", gains.exponent(gains.b1))]
    if gains.b2:
        lines.append(root.table("EARLIER_POWERS", gains.exponent(gains.b2)))
    return lines


def accepted(gains: Gains, n: int) -> list[str]:
    """dt_next after an accepted step, and what this error will mean to the next judgement (`earlier`)."""
    lines = ["# the next step: a root of the error", f"x = max(q, {least(n)})", *root.split("x", "")]
    lines += root.looked_up("now", gains.exponent(gains.b1), gains.factor(gains.b1, n), "POWERS")
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
        lines += root.looked_up("earlier", gains.exponent(gains.b2), gains.factor(gains.b2, n), "EARLIER_POWERS")
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


def set_point_squared(gains: Gains) -> float:
    """theta^-2k: turns the squared ratio into the squared error against the set-point."""
    return SET_POINT ** (-2.0 * gains.order)


def set_point(gains: Gains) -> float:
    """log2 theta^k"""
    return gains.order * math.log2(SET_POINT)


def whole_powers(gains: Gains) -> tuple[int, int, int]:
    """(n1, n2, d) with b1 = n1/d, b2 = n2/d: lanes take one root of a product of whole powers."""
    d = math.lcm(gains.b1.denominator, gains.b2.denominator)
    return int(gains.b1 * d), int(gains.b2 * d), d
