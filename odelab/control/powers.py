"""Logarithm and power to base two and the arctangent for step control, short and with equal results in all engines.

The size of a step waits for them, and needs few of their digits: relative errors are at most 2e-9. What matters is that
the results are the same, to the bit, in plain Python, in compiled code and in its vector instructions, because another
bit is enough to make two adaptive runs take different steps. They use the bits of a number and minimax polynomials
(found with mpmath.chebyfit).
"""

import numpy as np

from odelab.core import where

SQRT_HALF_BITS = 4604544271217802189  # of the double nearest to sqrt(1/2)
ONE_EXPONENT = 1023  # the exponent field of 1.0


def log2(x):
    """log2 of a positive, finite, normal number."""
    bits = int(np.float64(x).view(np.int64))  # Python's own numbers: NumPy's are twice as slow in plain Python
    exponent = (bits - SQRT_HALF_BITS) >> 52
    mantissa = float(np.int64(bits - (exponent << 52)).view(np.float64))  # in [sqrt(1/2), sqrt(2))
    s = (mantissa - 1.0) / (mantissa + 1.0)
    z = s * s
    return exponent + s * (
        (2.8853900798025367 + 0.9617988394560251 * z) + (0.5767151118408125 + 0.4317197157256091 * z) * (z * z)
    )


def exp2(x):
    """2 ** x for |x| <= 1000."""
    whole = float(np.floor(x + 0.5))
    f = x - whole  # in [-1/2, 1/2]
    f2 = f * f
    low = (1.0 + 0.6931471805599453 * f) + (0.2402265092256076 + 0.05550410883930555 * f) * f2
    high = (0.00961805662050108 + 0.001333350234150156 * f) + (0.00015461467905285986 + 1.529734162283227e-05 * f) * f2
    scale = float(np.int64((int(whole) + ONE_EXPONENT) << 52).view(np.float64))
    return (low + high * (f2 * f2)) * scale


TAN_PI_8, TAN_3_PI_8 = 0.41421356237309503, 2.414213562373095
QUARTER, HALF = 0.7853981633974483, 1.5707963267948966  # of pi


def arctan(x):
    """arctan of a number, without a branch, for the limiter of the filters in lanes."""
    size = abs(x)
    steep, flat = size > TAN_3_PI_8, size <= TAN_PI_8
    # arctan x = pi/2 - arctan(1/x) = pi/4 + arctan((x - 1)/(x + 1)): the polynomial is good for |y| <= tan(pi/8)
    numerator = where(steep, -1.0, where(flat, size, size - 1.0))
    denominator = where(steep, size, where(flat, 1.0, size + 1.0))
    turn = where(steep, HALF, where(flat, 0.0, QUARTER))
    y = numerator / denominator
    z = y * y
    z2 = z * z
    low = (-0.3333333327922454 + 0.19999977248233528 * z) + (-0.1428415062973021 + 0.11071354571200326 * z) * z2
    angle = turn + (y + y * (z * (low + (-0.08624598215190177 + 0.050479374320275223 * z) * (z2 * z2))))
    return where(x >= 0.0, angle, -angle)
