"""asin, acos, atan and atan2: multiples of pi/2 plus or minus an angle in [0, pi/4].

The tangent q of such an angle is split at about tan(pi/12): above, atan(q) = atan(c) + atan((q - c) / (1 + c q)) with
c = 37/64, so that polynomials are needed for |y| <= 0.2694 only. ARCTANGENT is (atan(y) / y - 1) / z in powers of
z = y^2, ARCSINE is (asin(y) / y - 1) / z for |y| <= 1/2; mpmath.chebyfit found both with 50 digits. Their largest
errors are 1.6e-17.
"""

import math

from odelab.elementary.machine import polynomial, with_sign

HALF_PI_HIGH, HALF_PI_LOW = 1.5707963267948948, 1.837589179357618e-15  # 48 bits behind the point, and the rest
SPLIT = 0.268
CENTRE = 0.578125  # 37/64: few bits, so that its products lose little
CENTRE_HIGH, CENTRE_LOW = 0.5241796287829104, 2.8920999581450486e-15  # atan(37/64): 48 bits, and the rest
ARCTANGENT = (
    -0.3333333333333333, 0.19999999999996612, -0.14285714284466455, 0.11111110933892729, -0.0909089645207819,
    0.0769179951731105, -0.06654590803338666, 0.057130981720015905, -0.03945967796650609,
)  # fmt: skip
ARCSINE = (
    0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247, 0.02237217294214989,
    0.017352392720869973, 0.013971212973552933, 0.011479177415184906, 0.01032281435018578, 0.005457506718640358,
    0.01740087944269402, -0.014851887071247204, 0.028757851367421566,
)  # fmt: skip
LARGE, TINY = 2.0**1000, 2.0**-900  # beyond them sums overflow or products lose digits


def _arctangent(machine, small, large, quarters, direction):
    """quarters pi/2 + direction atan(small / large), where the quotient is in [0, 1] and the direction 1 or -1."""
    steep = small > SPLIT * large
    height = machine.where(steep, small - CENTRE * large, small)
    y = direction * (height / machine.where(steep, large + CENTRE * small, large))
    high = quarters * HALF_PI_HIGH + direction * machine.where(steep, CENTRE_HIGH, 0.0)
    low = quarters * HALF_PI_LOW + direction * machine.where(steep, CENTRE_LOW, 0.0)
    z = y * y
    return high + (y + (low + y * z * polynomial(ARCTANGENT, z)))


def atan(machine, x):
    """The inverse tangent; error below 2 ulp."""
    size = abs(x)
    steep = size > 1.0
    small, large = machine.where(steep, 1.0, size), machine.where(steep, size, 1.0)
    quarters, direction = machine.where(steep, 1.0, 0.0), machine.where(steep, -1.0, 1.0)
    return with_sign(machine, _arctangent(machine, small, large, quarters, direction), x)


def _smaller_and_larger(machine, height, width):
    """Two sizes in order, scaled where their sums and products need it; their quotient stays what it is."""
    steep = height > width
    small, large = machine.where(steep, width, height), machine.where(steep, height, width)
    scale = machine.where(large > LARGE, 2.0**-60, machine.where(large < TINY, 2.0**120, 1.0))
    infinite = small == math.inf  # the other is infinite, too, or NaN
    divisor = machine.where(infinite, 1.0, machine.where(large == 0.0, 1.0, large * scale))
    return machine.where(infinite, machine.where(large == math.inf, 1.0, large), small * scale), divisor


def atan2(machine, y, x):
    """The angle of the point (x, y), from -pi to pi, with C's answers at zeros and infinities; error below 3 ulp."""
    height, width = abs(y), abs(x)
    steep, left = height > width, machine.bits(x) < 0
    small, large = _smaller_and_larger(machine, height, width)
    # in the octants in turn: a, pi/2 - a, pi/2 + a, pi - a
    quarters = machine.where(steep, 1.0, machine.where(left, 2.0, 0.0))
    direction = machine.where(steep, machine.where(left, 1.0, -1.0), machine.where(left, -1.0, 1.0))
    return with_sign(machine, _arctangent(machine, small, large, quarters, direction), y)


def _arcsine(machine, x):
    """Whether |x| > 1/2, and asin|x|, or acos|x| where it is."""
    size = abs(x)
    large = size > 0.5
    z = machine.where(large, 0.5 * (1.0 - size), size * size)
    y = machine.where(large, machine.sqrt(z), size)
    factor = machine.where(large, 2.0, 1.0)
    return large, factor * y, factor * (y * z * polynomial(ARCSINE, z))


def _angle(quarters, y, tail):
    """quarters pi/2 + (y + tail)."""
    return quarters * HALF_PI_HIGH + (y + (quarters * HALF_PI_LOW + tail))


def asin(machine, x):
    """The inverse sine; error below 2 ulp."""
    large, y, tail = _arcsine(machine, x)
    sign = machine.where(large, -1.0, 1.0)
    return with_sign(machine, _angle(machine.where(large, 1.0, 0.0), sign * y, sign * tail), x)


def acos(machine, x):
    """The inverse cosine; error below 2 ulp."""
    large, y, tail = _arcsine(machine, x)
    left = x < 0.0
    sign = machine.where(large, machine.where(left, -1.0, 1.0), machine.where(left, 1.0, -1.0))
    quarters = machine.where(large, machine.where(left, 2.0, 0.0), 1.0)
    return _angle(quarters, sign * y, sign * tail)
