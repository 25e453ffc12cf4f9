"""sin, cos and tan: polynomials on [-pi/4, pi/4] for what `quarter_turns` leaves of x, right for every finite x.

SINE is (1 - sin(r) / r) / z and COSINE is (cos(r) - 1 + z / 2) / z^2 in powers of z = r^2; mpmath.chebyfit found both
with 50 digits, on that interval made wider by 1e-4 of itself. Their largest errors are 2.0e-17 and 1.3e-18.
"""

from odelab.elementary.machine import polynomial
from odelab.elementary.quarter_turns import reduced

SINE = (
    0.16666666666666666, -0.008333333333330948, 0.00019841269836756774, -2.7557316101617874e-06,
    2.505113165023518e-08, -1.5918115263265974e-10,
)  # fmt: skip
COSINE = (
    0.041666666666666664, -0.0013888888888887398, 2.480158729876456e-05, -2.7557317271145144e-07,
    2.087614614655861e-09, -1.1382623647474604e-11,
)  # fmt: skip


def _sine_and_cosine(r, rest):
    """Of r + rest, where the rest is below an ulp of r and r at most pi/4."""
    z = r * r
    sine = r - (r * z * polynomial(SINE, z) - rest)  # two differences: with sums the sine of -0.0 would be 0.0
    return sine, 1.0 - (0.5 * z - (z * z * polynomial(COSINE, z) - r * rest))


def _turned(machine, x, quarters):
    """sin(x + quarters pi/2)."""
    shifted, r, rest = reduced(machine, x)
    turns = machine.bits(shifted) + quarters  # the last bits of ROUNDER are 0
    sine, cosine = _sine_and_cosine(r, rest)
    value = machine.where(turns & 1 == 1, cosine, sine)
    return machine.where(turns & 2 == 2, -value, value)


def sin(machine, x):
    """The sine; error below 1.5 ulp for every finite x."""
    return _turned(machine, x, 0)


def cos(machine, x):
    """The cosine; error below 1.5 ulp for every finite x."""
    return _turned(machine, x, 1)


def tan(machine, x):
    """The tangent; error below 3 ulp for every finite x."""
    shifted, r, rest = reduced(machine, x)
    odd = machine.bits(shifted) & 1 == 1
    sine, cosine = _sine_and_cosine(r, rest)
    return machine.where(odd, -cosine, sine) / machine.where(odd, sine, cosine)
