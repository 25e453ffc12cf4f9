"""pow, cbrt and hypot.

pow(x, y) is 2^(y log2 |x|) with a logarithm of about 64 bits, as in fdlibm: with s = (m - 1) / (m + 1) and z = s^2,

    log2(m) = 2 / (3 log 2) s (3 + z + z^2 ARTANH(z)),

where s, z and the results are sums of two doubles, whose first has at most 26 bits, so that products are exact. ARTANH
is 3 (artanh(s) / s - 1 - z / 3) / z^2; mpmath.chebyfit found it with 50 digits, with an error of at most 2.9e-18.
"""

import math

from odelab.elementary.exponential import LN2, beyond_linear, scaled
from odelab.elementary.logarithm import mantissa_and_exponent
from odelab.elementary.machine import (
    ROUNDER,
    ROUNDER_BITS,
    clamp,
    high_part,
    polynomial,
    power_of_two,
    sum_of_large_and_small,
    with_sign,
)

ARTANH = (
    0.6, 0.4285714285714405, 0.3333333333248383, 0.272727275030892, 0.23076892443777647, 0.20002207040770967,
    0.1755935450923681, 0.17584767935814777,
)  # fmt: skip
UNIT, UNIT_HIGH, UNIT_LOW = 0.9617966939259756, 0.9617966860532761, 7.872699542894897e-09  # 2 / (3 log 2)
LN2_HIGH, LN2_LOW = 0.6931471675634384, 1.2996506893889889e-08  # the high part has 26 bits
OVERFLOWS = 1100.0  # 2 to this power does, and its inverse underflows
ALL_OR_NOTHING = 2.0**70  # |x| to this power is 0, 1 or infinite
NO_FRACTION = 2.0**52
CUBE_ROOT = (0.50683625199584, 0.6575101896288087, -0.19231962035689068, 0.025999034130979717)  # to 0.007 of itself


def _quotient_in_parts(machine, mantissa):
    """s = (m - 1) / (m + 1) as a double, as a number of 26 bits, and what is missing from that."""
    above = mantissa - 1.0
    inverse = 1.0 / (mantissa + 1.0)
    divisor_high = high_part(machine, mantissa + 1.0)
    divisor_low = mantissa - (divisor_high - 1.0)
    high = high_part(machine, above * inverse)
    low = ((above - high * divisor_high) - high * divisor_low) * inverse
    return high + low, high, low


def _log2_of_mantissa(machine, mantissa):
    """log2(m) in two parts."""
    s, s_high, s_low = _quotient_in_parts(machine, mantissa)
    z_high, z_low = s_high * s_high, s_low * (s_high + s)
    z = z_high + z_low
    beyond = z * z * polynomial(ARTANH, z) + z_low
    series_high = high_part(machine, 3.0 + z_high + beyond)
    series_low = beyond - ((series_high - 3.0) - z_high)
    product, rest = s_high * series_high, s_low * series_high + series_low * s
    high = high_part(machine, product + rest)
    low = rest - (high - product)
    return UNIT_HIGH * high, UNIT_LOW * high + low * UNIT


def _log2(machine, x):
    """log2(x) in two parts, the first of 26 bits, for a positive, finite x."""
    mantissa, k = mantissa_and_exponent(machine, x)
    fraction, rest = _log2_of_mantissa(machine, mantissa)
    high = high_part(machine, (fraction + rest) + k)
    return high, rest - ((high - k) - fraction)


def _exp2(machine, exponent, rest):
    """2 ** (exponent + rest) with few more roundings than the last; the exponent is of any size."""
    inside = clamp(machine, exponent, -OVERFLOWS, OVERFLOWS)
    rest = machine.where(abs(exponent) < OVERFLOWS, rest, 0.0)
    shifted = inside + ROUNDER
    fraction = inside - (shifted - ROUNDER)
    fraction_high = high_part(machine, fraction)
    high = fraction_high * LN2_HIGH
    low = ((fraction - fraction_high) + rest) * LN2 + fraction_high * LN2_LOW
    near_one, lost = sum_of_large_and_small(1.0, high)
    return scaled(machine, near_one + ((lost + low) + beyond_linear(high + low)), shifted)


def _power_of_size(machine, size, y):
    """size ** y for a positive, finite size."""
    log_high, log_low = _log2(machine, size)
    y = clamp(machine, y, -ALL_OR_NOTHING, ALL_OR_NOTHING)
    y_high = high_part(machine, y)
    return _exp2(machine, *sum_of_large_and_small(y_high * log_high, (y - y_high) * log_high + y * log_low))


def _is_fractional(machine, size):
    """Whether a number that is not negative has digits behind the point; infinity has none."""
    size = machine.where(size > NO_FRACTION, NO_FRACTION, size)
    return (size + NO_FRACTION) - NO_FRACTION != size


def _power_at_the_ends(machine, size, y):
    """size ** y where size is 0 or infinite; NaN where y is NaN."""
    growth = machine.where(size == 0.0, -y, y)
    return machine.where(growth > 0.0, math.inf, machine.where(growth < 0.0, 0.0, growth))


def _power_of_negative(machine, x, y, value):
    """x ** y from |x| ** y: negative if y is odd, NaN if y is not whole and x is finite."""
    fractional = _is_fractional(machine, abs(y))
    odd = machine.where(fractional, 1.0, machine.where(_is_fractional(machine, 0.5 * abs(y)), x, 1.0))
    of_negative = machine.where(x > -math.inf, machine.where(fractional, math.nan, value), value)
    defined = machine.where(x < 0.0, of_negative, value)
    return with_sign(machine, defined, odd)


def pow(machine, x, y):
    """x ** y with C's answers at zeros, infinities and NaN; error below 1 ulp."""
    size = abs(x)
    regular = _power_of_size(machine, size, y) + (x - x)
    ends = _power_at_the_ends(machine, size, y)
    value = machine.where(size == 0.0, ends, machine.where(size == math.inf, ends, regular))
    signed = _power_of_negative(machine, x, y, value)
    return machine.where(y == 0.0, 1.0, machine.where(x == 1.0, 1.0, signed))


def _root_of_mantissa(machine, m):
    """The cube root of m in [2^-1.5, 2^1.5]: Halley's step, cut to 26 bits, and another with exact products."""
    root = polynomial(CUBE_ROOT, m)
    cube = root * root * root
    root = high_part(machine, root * (cube + (m + m)) / ((cube + cube) + m))
    quotient = m / (root * root)
    return root + root * ((quotient - root) / ((root + root) + quotient))


def cbrt(machine, x):
    """The cube root of a number of either sign; error below 1 ulp."""
    size = abs(x)
    mantissa, k = mantissa_and_exponent(machine, size)
    third = machine.bits(k * (1.0 / 3.0) + ROUNDER) - ROUNDER_BITS
    left_over = machine.bits(k + ROUNDER) - ROUNDER_BITS - ((third << 1) + third)
    value = _root_of_mantissa(machine, mantissa * power_of_two(machine, left_over)) * power_of_two(machine, third)
    regular = machine.where(size == 0.0, size, machine.where(size < math.inf, value, size))
    return with_sign(machine, regular, x)


def hypot(machine, x, y):
    """sqrt(x^2 + y^2) without overflow on the way; infinite where x or y is; error below 1.5 ulp."""
    x, y = abs(x), abs(y)
    large, small = machine.where(x > y, x, y), machine.where(x > y, y, x)
    scale = machine.where(large > 2.0**500, 2.0**-600, machine.where(large < 2.0**-500, 2.0**600, 1.0))
    unscale = machine.where(large > 2.0**500, 2.0**600, machine.where(large < 2.0**-500, 2.0**-600, 1.0))
    large, small = large * scale, small * scale
    size = machine.sqrt(large * large + small * small) * unscale
    return machine.where(x == math.inf, math.inf, machine.where(y == math.inf, math.inf, size))
