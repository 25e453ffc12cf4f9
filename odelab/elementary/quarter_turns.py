"""x = n pi/2 + r with |r| <= pi/4, for every finite x, as far as sines need it: n mod 4, and r in two parts.

Up to |x| = 2^30 parts of pi/2 with 23 bits are taken away (Cody and Waite): their products with n are exact.
Beyond, the digits of 2/pi that matter are multiplied by x (Payne and Hanek); `Machine.rarely` decides whether numbers
that do not need it pay for it.
"""

import math
from functools import partial

from odelab.elementary.machine import (
    ROUNDER,
    clamp,
    high_part,
    power_of_two,
    sum_of_large_and_small,
    sum_of_two,
)

PER_HALF_PI = 0.6366197723675814
HALF_PI_HIGH, HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17
# pi/2 in parts: bits 0 to 22 behind the point, 23 to 45, 46 to 68, 69 to 91, and 53 bits from there on.
HALF_PI_1, HALF_PI_2, HALF_PI_3 = 1.570796251296997, 7.549789415861596e-08, 5.39030083589187e-15
HALF_PI_4, HALF_PI_5 = 2.0222659584103533e-21, 2.9038559739793605e-28
NEAR = 2.0**30  # 2^30 is the largest n whose products with 23 bits are exact
# 0, then 2/pi in parts of 32 bits, the k-th in units of 2^(-32 k)
TWO_PER_PI = (
    0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561, 0xB7246E3A,
    0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484, 0xE99C7026, 0xB45F7E41,
    0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F, 0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF,
    0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B, 0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08,
    0x56033046,
)  # fmt: skip
PARTS_THAT_MATTER = 7  # they leave out less than 2^-138 of a quarter turn; no double is within 2^-62 of a whole one


def reduced(machine, x):
    """(n + ROUNDER, r, rest): r + rest is x - n pi/2 with at least 70 bits. For infinite x they are NaN."""
    return machine.rarely(abs(x) > NEAR, _reduced_near(x), partial(_reduced_far, machine, x))


def _reduced_near(x):
    shifted = x * PER_HALF_PI + ROUNDER
    n = shifted - ROUNDER
    above = (x - n * HALF_PI_1) - n * HALF_PI_2
    small, lost = sum_of_large_and_small(n * HALF_PI_3, n * HALF_PI_4)
    r, rest = sum_of_large_and_small(above, -small)
    return shifted, r, rest - (lost + n * HALF_PI_5)


def _reduced_far(machine, x):
    """With |x| = m 2^e: the parts of 2/pi whose products with m 2^e are whole turns are left out."""
    bits = machine.bits(clamp(machine, abs(x), NEAR, math.inf))
    place = (bits >> 52) - 1045  # the first part that matters is number place >> 5
    scale = power_of_two(machine, (place & 31) - 30)
    mantissa = machine.number((bits & ((1 << 52) - 1)) + (1075 << 52)) * scale
    shifted, fraction, rest = _turns(_pieces(machine, mantissa), _digits(machine, place >> 5))
    return _with_symmetry(machine, x, shifted, *_times_half_pi(machine, fraction, rest))


def _with_symmetry(machine, x, shifted, r, rest):
    """The reduction of x from that of |x|; NaN for an infinite x."""
    sign = machine.where(abs(x) < math.inf, machine.where(x < 0.0, -1.0, 1.0), math.nan)
    return (shifted - ROUNDER) * sign + ROUNDER, r * sign, rest * sign


def _pieces(machine, mantissa):
    """A number of 53 bits as three of at most 18 bits each."""
    keep_18_bits = -(1 << 35)
    first = machine.number(machine.bits(mantissa) & keep_18_bits)
    second = machine.number(machine.bits(mantissa - first) & keep_18_bits)
    return first, second, (mantissa - first) - second


def _digits(machine, start):
    """The parts of 2/pi from number `start` on, where start < 32, chosen without an index, like a shift by its bits."""
    window = [float(part) for part in TWO_PER_PI]
    for step in (16, 8, 4, 2, 1):
        far = start & step == step
        window = [machine.where(far, later, here) for here, later in zip(window, window[step:], strict=False)]
    return [digits * 2.0 ** (-32 * row) for row, digits in enumerate(window[:PARTS_THAT_MATTER])]


def _without_turns(x):
    """x less a multiple of 4 quarter turns, such that little is left of an x below 2^86."""
    for _ in range(2):
        x = x - 4.0 * ((0.25 * x + ROUNDER) - ROUNDER)
    return x


def _turns(pieces, digits):
    """n + ROUNDER and two parts of the rest, for the sum of all products, which is added with three times 53 bits."""
    large = [_without_turns(piece * digit) for digit in digits[:2] for piece in pieces]
    small = [piece * digit for digit in digits[2:] for piece in pieces]  # below 2^22
    high, middle, low = 0.0, 0.0, 0.0
    for product in (*large, *small):
        high, error = sum_of_two(high, product)
        middle, error = sum_of_two(middle, error)
        low = low + error
    shifted = high + ROUNDER
    fraction, error = sum_of_two(high - (shifted - ROUNDER), middle)
    return shifted, fraction, error + low


def _times_half_pi(machine, x, rest):
    """(x + rest) pi/2 in two parts: the rounding error of the first product comes from products that are exact."""
    product = x * HALF_PI_HIGH
    x_high, pi_high = high_part(machine, x), HALF_PI_1
    x_low, pi_low = x - x_high, HALF_PI_HIGH - HALF_PI_1
    error = ((x_high * pi_high - product) + x_high * pi_low + x_low * pi_high) + x_low * pi_low
    return sum_of_large_and_small(product, error + (x * HALF_PI_LOW + rest * HALF_PI_HIGH))
