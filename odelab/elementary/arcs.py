"""asin, acos, atan and atan2, as multiples of pi/4 plus a small angle.

ARCTANGENT is (atan(y) / y - 1) / z in powers of z = y^2 for |y| <= tan(pi/8), ARCSINE is (asin(y) / y - 1) / z for
|y| <= 1/2; mpmath.chebyfit found both with 50 digits. Their largest errors are 3.2e-17 and 1.6e-17.
"""

import math

from odelab.elementary.machine import polynomial, with_sign

EIGHTH_HIGH, EIGHTH_LOW = 0.7853981633974456, 2.6951514290790595e-15  # pi/4: 48 bits, and the rest
TAN_EIGHTH = 0.41421356237309503  # tan(pi/8)
ARCTANGENT = (
    -0.3333333333333333, 0.19999999999995516, -0.14285714284665682, 0.11111111015187018, -0.0909090457530649,
    0.07692183125376892, -0.06664510525508936, 0.05858140904866328, -0.050854078345894844, 0.03923044778479309,
    -0.019175404711104935,
)  # fmt: skip
ARCSINE = (
    0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247, 0.02237217294214989,
    0.017352392720869973, 0.013971212973552933, 0.011479177415184906, 0.01032281435018578, 0.005457506718640358,
    0.01740087944269402, -0.014851887071247204, 0.028757851367421566,
)  # fmt: skip
LARGE = 2.0**1000


def _angle(eighths, y, tail):
    """The angle eighths pi/4 + (y + tail)."""
    return eighths * EIGHTH_HIGH + (y + (eighths * EIGHTH_LOW + tail))


def _folded(machine, small, large):
    """y and a number of pi/4 (0 or 1) whose angle atan(y) + pi/4 has the tangent small / large, in [0, 1]."""
    steep = small > TAN_EIGHTH * large
    y = machine.where(steep, small - large, small) / machine.where(steep, small + large, large)
    return y, machine.where(steep, 1.0, 0.0)


def _arctangent(eighths, y):
    z = y * y
    return _angle(eighths, y, y * z * polynomial(ARCTANGENT, z))


def atan(machine, x):
    """The inverse tangent; error below 2 ulp."""
    size = abs(x)
    steep = size > 1.0
    y, eighths = _folded(machine, machine.where(steep, 1.0, size), machine.where(steep, size, 1.0))
    angle = _arctangent(machine.where(steep, 2.0 - eighths, eighths), machine.where(steep, -y, y))
    return with_sign(machine, angle, x)


def _smaller_and_larger(machine, height, width):
    """Two sizes in order, changed where their quotient could not be taken, which stays what it is."""
    steep = height > width
    small, large = machine.where(steep, width, height), machine.where(steep, height, width)
    scale = machine.where(large > LARGE, 2.0**-60, 1.0)
    infinite = small == math.inf  # the other is infinite, too, or NaN
    divisor = machine.where(infinite, 1.0, machine.where(large == 0.0, 1.0, large * scale))
    return machine.where(infinite, machine.where(large == math.inf, 1.0, large), small * scale), divisor


def atan2(machine, y, x):
    """The angle of the point (x, y), from -pi to pi, with C's answers at zeros and infinities; error below 2 ulp."""
    height, width = abs(y), abs(x)
    steep, left = height > width, machine.bits(x) < 0
    small, large = _smaller_and_larger(machine, height, width)
    slope, eighths = _folded(machine, small, large)
    # in the octants in turn: a, pi/2 - a, pi/2 + a, pi - a
    start = machine.where(steep, 2.0, machine.where(left, 4.0, 0.0))
    backwards = machine.where(steep, machine.where(left, 1.0, -1.0), machine.where(left, -1.0, 1.0))
    return with_sign(machine, _arctangent(start + backwards * eighths, backwards * slope), y)


def _arcsine(machine, x):
    """Whether |x| > 1/2, and asin|x|, or acos|x| where it is."""
    size = abs(x)
    large = size > 0.5
    z = machine.where(large, 0.5 * (1.0 - size), size * size)
    y = machine.where(large, machine.sqrt(z), size)
    factor = machine.where(large, 2.0, 1.0)
    return large, factor * y, factor * (y * z * polynomial(ARCSINE, z))


def asin(machine, x):
    """The inverse sine; error below 2 ulp."""
    large, y, tail = _arcsine(machine, x)
    sign = machine.where(large, -1.0, 1.0)
    return with_sign(machine, _angle(machine.where(large, 2.0, 0.0), sign * y, sign * tail), x)


def acos(machine, x):
    """The inverse cosine; error below 2 ulp."""
    large, y, tail = _arcsine(machine, x)
    left = x < 0.0
    sign = machine.where(large, machine.where(left, -1.0, 1.0), machine.where(left, 1.0, -1.0))
    eighths = machine.where(large, machine.where(left, 4.0, 0.0), 2.0)
    return _angle(eighths, sign * y, sign * tail)
