"""exp, exp2, expm1 and the hyperbolic functions: exp(x) = 2^k exp(r), where |r| <= log(2) / 2.

EXPONENTIAL is (exp(r) - 1 - r) / r^2 in powers of r; mpmath.chebyfit found it with 50 digits, on that interval
made wider by 1e-4 of itself. Its largest error is 1.1e-16.
"""

from odelab.elementary.machine import BIAS, ROUNDER, ROUNDER_BITS, clamp, polynomial, power_of_two

PER_LN2, LN2 = 1.4426950408889634, 0.6931471805599453
LN2_HIGH, LN2_LOW = 0.6931471805592082, 7.371002565167799e-13  # the high part has 40 bits: whole multiples are exact
EXPONENTIAL = (
    0.5000000000000001, 0.16666666666666669, 0.04166666666662413, 0.008333333333330062, 0.0013888888917213717,
    0.00019841269863053618, 2.4801521295954376e-05, 2.7557268459997064e-06, 2.7620088445409746e-07,
    2.510038549551032e-08,
)  # fmt: skip
NO_DIGIT_CHANGES = 2.0**-54  # expm1(x) is x below it
NO_CUBE = 2.0**-28  # sinh(x) and tanh(x) are x below it: x^3 is below half an ulp of x
LARGEST_HYPERBOLIC = 710.6  # above it sinh overflows


def scaled(machine, value, shifted):
    """value * 2^k, where `shifted` is k + ROUNDER; in two steps, because 2^k itself may be too large or too small."""
    power = machine.bits(shifted) - ROUNDER_BITS
    half = power >> 1
    return value * power_of_two(machine, half) * power_of_two(machine, power - half)


def _reduced(x):
    """k + ROUNDER, and x - k log(2) as a difference whose first term is exact."""
    shifted = x * PER_LN2 + ROUNDER
    k = shifted - ROUNDER
    return shifted, x - k * LN2_HIGH, k * LN2_LOW


def beyond_linear(r):
    """exp(r) - 1 - r."""
    return r * r * polynomial(EXPONENTIAL, r)


def exp(machine, x):
    """The exponential function; error below 1.5 ulp."""
    shifted, high, low = _reduced(clamp(machine, x, -746.0, 710.0))
    r = high - low
    return scaled(machine, 1.0 + (r + beyond_linear(r)), shifted)


def exp2(machine, x):
    """2 ** x, exact for whole x; error below 1.5 ulp."""
    x = clamp(machine, x, -1076.0, 1025.0)
    shifted = x + ROUNDER
    r = (x - (shifted - ROUNDER)) * LN2
    return scaled(machine, 1.0 + (r + beyond_linear(r)), shifted)


def _quarter_expm1(machine, x):
    """(exp(x) - 1) / 4 for -40 <= x <= 710.6: the quarter does not overflow where sinh does not."""
    shifted, high, low = _reduced(x)
    r = high - low
    lost = (high - r) - low
    quarter = machine.number((machine.bits(shifted) - (ROUNDER_BITS - BIAS + 2)) << 52)
    return ((quarter - 0.25) + quarter * r) + quarter * (beyond_linear(r) + lost)


def expm1(machine, x):
    """exp(x) - 1 without cancellation; error below 1.5 ulp."""
    value = 4.0 * _quarter_expm1(machine, clamp(machine, x, -40.0, LARGEST_HYPERBOLIC))
    return machine.where(abs(x) < NO_DIGIT_CHANGES, x, value)


def _odd(machine, x, size):
    """An odd function of x from its value at |x|, where the function is x itself for very small numbers."""
    return machine.where(abs(x) < NO_CUBE, x, machine.where(x < 0.0, -size, size))


def _quarter_at_size(machine, x):
    size = abs(x)
    return _quarter_expm1(machine, machine.where(size > LARGEST_HYPERBOLIC, LARGEST_HYPERBOLIC, size))


def sinh(machine, x):
    """The hyperbolic sine, from e = expm1(|x|) as e / 2 (1 + 1 / (1 + e)); error below 3 ulp."""
    quarter = _quarter_at_size(machine, x)
    return _odd(machine, x, 2.0 * quarter * (1.0 + 1.0 / (1.0 + 4.0 * quarter)))


def cosh(machine, x):
    """The hyperbolic cosine, from e = expm1(|x|) as (e + 1) / 2 + 1 / (2 (e + 1)); error below 2 ulp."""
    quarter = _quarter_at_size(machine, x)
    return (2.0 * quarter + 0.5) + 0.5 / (1.0 + 4.0 * quarter)


def tanh(machine, x):
    """The hyperbolic tangent, from e = expm1(2 |x|) as e / (e + 2); error below 3 ulp."""
    size = abs(x)
    quarter = _quarter_expm1(machine, 2.0 * machine.where(size > 22.0, 22.0, size))
    return _odd(machine, x, quarter / (quarter + 0.5))
