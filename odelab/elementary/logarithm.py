"""log, log1p, log2, log10 and the inverse hyperbolic functions: log(x) = k log(2) + log(1 + f).

The mantissa 1 + f lies in [sqrt(1/2), sqrt(2)). With s = f / (2 + f) and z = s^2,

    log(1 + f) = f - f^2 / 2 + s (f^2 / 2 + z LOGARITHM(z))

where LOGARITHM is (2 artanh(s) - 2 s) / (s z); mpmath.chebyfit found it with 50 digits, on that interval made wider
by 1e-4 of itself. Its largest error is 3.1e-16. The arrangement is that of fdlibm.
"""

import math
from typing import NamedTuple

from odelab.elementary.exponential import LN2, LN2_HIGH, LN2_LOW
from odelab.elementary.machine import ROUNDER, ROUNDER_BITS, high_part, polynomial, sum_of_two, with_sign

SQRT_HALF_BITS = 4604544271217802189  # of the double nearest to sqrt(1/2)
SMALLEST_NORMAL = 2.0**-1022
LOGARITHM = (
    0.666666666666667, 0.39999999999899444, 0.2857142862600327, 0.22222211130259878, 0.18182889455674947,
    0.15331710618210773, 0.14616585424888623,
)  # fmt: skip
PER_LN2_HIGH, PER_LN2_LOW = 1.4426950216293335, 1.9259629911266175e-08  # the high parts have 26 bits ...
PER_LN10_HIGH, PER_LN10_LOW = 0.4342944771051407, 4.798111141615973e-09
LOG10_OF_2_HIGH, LOG10_OF_2_LOW = 0.30102999566361177, 3.694239077158931e-13  # ... and 40 bits
ONE_IS_LOST = 2.0**60  # x^2 + 1 is x^2 above it


class LogarithmOfMantissa(NamedTuple):
    """log(1 + f) = f - half_square + tail."""

    f: float
    half_square: float
    tail: float


def mantissa_and_exponent(machine, x):
    """m in [sqrt(1/2), sqrt(2)) and a whole number k, with x = m 2^k, for a positive, finite x."""
    small = x < SMALLEST_NORMAL
    bits = machine.bits(machine.where(small, x * 2.0**54, x))
    exponent = (bits - SQRT_HALF_BITS) >> 52
    k = machine.number(exponent + ROUNDER_BITS) - machine.where(small, ROUNDER + 54.0, ROUNDER)
    return machine.number(bits - (exponent << 52)), k


def _logarithm_of_mantissa(mantissa):
    f = mantissa - 1.0
    s = f / (mantissa + 1.0)
    z = s * s
    half_square = 0.5 * f * f
    return LogarithmOfMantissa(f, half_square, s * (half_square + z * polynomial(LOGARITHM, z)))


def _natural(mantissa, k, low):
    """log(mantissa 2^k), where `low` is k LN2_LOW or differs from it by the logarithm of a number next to 1."""
    f, half_square, tail = _logarithm_of_mantissa(mantissa)
    return k * LN2_HIGH - ((half_square - (tail + low)) - f)


def _at_the_ends(machine, x, value):
    """A logarithm of x that is `value` inside of its domain."""
    inside = machine.where(x < math.inf, value, x)
    return machine.where(x > 0.0, inside, machine.where(x == 0.0, -math.inf, math.nan))


def log(machine, x):
    """The natural logarithm; error below 1 ulp."""
    mantissa, k = mantissa_and_exponent(machine, x)
    return _at_the_ends(machine, x, _natural(mantissa, k, k * LN2_LOW))


def log1p(machine, x):
    """log(1 + x) without cancellation; error below 1 ulp."""
    total, lost = sum_of_two(1.0, x)
    mantissa, k = mantissa_and_exponent(machine, total)
    value = _natural(mantissa, k, k * LN2_LOW + lost / machine.where(total == 0.0, 1.0, total))
    return machine.where(x == 0.0, x, _at_the_ends(machine, total, value))


def _in_another_base(machine, x, of_two, unit):
    """The logarithm of x where 2 has the logarithm `of_two` and e has `unit`, both as a high part and the rest."""
    mantissa, k = mantissa_and_exponent(machine, x)
    f, half_square, tail = _logarithm_of_mantissa(mantissa)
    high = high_part(machine, f - half_square)
    low = ((f - high) - half_square) + tail
    whole, fraction = k * of_two[0], high * unit[0]
    value = whole + fraction
    rest = (k * of_two[1] + (low + high) * unit[1]) + low * unit[0]
    return _at_the_ends(machine, x, value + (rest + ((whole - value) + fraction)))


def log2(machine, x):
    """The logarithm to base two, exact for powers of two; error below 1 ulp."""
    return _in_another_base(machine, x, (1.0, 0.0), (PER_LN2_HIGH, PER_LN2_LOW))


def log10(machine, x):
    """The logarithm to base ten, exact for whole powers of ten; error below 1 ulp."""
    return _in_another_base(machine, x, (LOG10_OF_2_HIGH, LOG10_OF_2_LOW), (PER_LN10_HIGH, PER_LN10_LOW))


def asinh(machine, x):
    """The inverse hyperbolic sine; error below 2 ulp."""
    size = abs(x)
    square = size * size
    large = size > ONE_IS_LOST
    beyond = machine.where(large, size, size + square / (1.0 + machine.sqrt(1.0 + square)))
    return with_sign(machine, log1p(machine, beyond) + machine.where(large, LN2, 0.0), x)


def acosh(machine, x):
    """The inverse hyperbolic cosine; error below 3 ulp."""
    above = x - 1.0
    large = x > ONE_IS_LOST
    beyond = machine.where(large, x, above + machine.sqrt(2.0 * above + above * above))
    return machine.where(x < 1.0, math.nan, log1p(machine, beyond) + machine.where(large, LN2, 0.0))


def atanh(machine, x):
    """The inverse hyperbolic tangent; error below 3 ulp."""
    size = abs(x)
    gap = 1.0 - size
    quotient = (size + size) / machine.where(gap == 0.0, 2.0**-1074, gap)
    return with_sign(machine, 0.5 * log1p(machine, quotient), x)
