"""What holds a stabilised run back: eigenvalues beside the narrow strip along the negative real axis.

Its stages follow the spectral radius, so h*rho says nothing. What says it is |R_s(h lambda)| of the leading eigenvalue:
steps at the edge of the region have it near 1 or above, those inside below 0.95.
"""

from typing import NamedTuple

import numpy as np

from odelab.methods import chebyshev
from odelab.stiffness import h_rho as stability

EDGE = 0.95  # |R| beyond it: the extrema of a damped Chebyshev polynomial inside the region are lower
RESOLVED = 0.1  # |h lambda| below it is followed, not damped: |R| near 1 is right there
COMPLEX = 0.15  # |Im| / |lambda|, a little under 9 degrees: nearer to the axis the strip holds it


class Beside(NamedTuple):
    """The share of sampled steps held back, a leading eigenvalue of theirs, and whether a given radius is to blame."""

    share: float
    eigenvalue: complex
    too_small: float = 0.0  # the given radius, where it is


NOTHING = Beside(0.0, 0j)


def held_back(trajectory) -> Beside:
    """Why a stabilised run took small steps, from the Jacobian at up to 24 of them."""
    problem, method = trajectory.problem, trajectory.method
    steps, t, u, h = stability.samples(trajectory)
    if len(steps) < 3:
        return NOTHING
    with np.errstate(all="ignore"):
        leading = np.array([stability.leading_eigenvalue(problem, *place) for place in zip(t, u, strict=True)])
        modulus = np.abs(leading)
        used = np.array(
            [
                method.given_radius(problem, time, state) or 1.2 * size
                for time, state, size in zip(t, u, modulus, strict=True)
            ]
        )
        stages = [chebyshev.stage_number(min(size, 1e12)) if size < np.inf else 2 for size in np.abs(h) * used]
        growth = np.abs([method.stability(z, s) for z, s in zip(h * leading, stages, strict=True)])
    edge = (growth > EDGE) & (np.abs(h) * modulus > RESOLVED)
    small = edge & (used < 0.9 * modulus)
    if np.mean(small) >= 0.3:
        first = int(np.argmax(small))
        return Beside(float(np.mean(small)), complex(leading[first]), float(used[first]))
    beside = edge & (np.abs(leading.imag) > COMPLEX * modulus)
    if not beside.any():
        return NOTHING
    return Beside(float(np.mean(beside)), complex(leading[int(np.argmax(beside))]))


def reason(beside: Beside) -> str:
    value = beside.eigenvalue
    if beside.too_small:
        return (
            f"the spectral radius given, {beside.too_small:.3g}, is below the one found, {abs(value):.3g}: give "
            "odelab.rkc2 a larger one, or none to have it estimated"
        )
    remedy = "an implicit method (odelab.RADAU)"
    if abs(value.real) < 0.3 * abs(value.imag):
        remedy = f"odelab.DOPRI5 or odelab.DOP853, whose regions hold a part of the imaginary axis, or {remedy}"
    return (
        f"its leading eigenvalues, {value.real:.3g} +- {abs(value.imag):.3g}i, lie beside the narrow strip along the "
        f"negative real axis where RKC2 is stable, and errors in their direction grow: use {remedy}"
    )
