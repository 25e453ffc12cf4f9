"""How stability limited the steps of a run: the share of them, the evidence, and a better method."""

from typing import NamedTuple

import numpy as np

from odelab.methods import chebyshev
from odelab.methods.spectral_radius import leading_eigenvalue, spectral_radius
from odelab.runs import h_rho as stability

IMPLICIT = "an implicit method (odelab.RODAS4)"
STABILISED = f"odelab.RKC2, as the leading eigenvalues are real, or {IMPLICIT}"
HELD_BACK = 0.3  # a message mentions stability if it limited at least this share of the sampled steps
# No run stays at an h rho of more than 1.2 times the boundary: where the stages give such a value, it is estimated
# anew.
BEYOND = 1.2
GROWTH = 1.003  # a fixed step is called unstable if |R(h lambda)| exceeds the growth of the solution by this factor

# The next three are for stabilised methods, whose stability region is a narrow strip along the negative real axis.
EDGE = 0.95  # |R| above this means the edge of the region: inside, a damped Chebyshev polynomial stays below it
RESOLVED = 0.1  # a mode with |h lambda| below this is resolved and not damped, so that |R| near 1 is right for it
COMPLEX = 0.15  # |Im lambda| / |lambda| up to this (just under 9 degrees) lies inside the strip


class Limit(NamedTuple):
    """How stability limited a run: the share of its steps that were limited, the evidence, and a better method."""

    share: float
    cause: str
    remedy: str = ""  # empty if `cause` names it already


def stability_limit(trajectory) -> Limit | None:
    """How stability limited an adaptive explicit run; None if it chose less than 30 % of the steps."""
    method, controller = trajectory.method, trajectory.controller
    if trajectory.problem is None or method is None:  # of a run from a file
        return None
    if trajectory.steps < 10 or controller is None or not controller.needs_error:
        return None
    if method.adapts_stages:
        beside = beside_the_strip(trajectory)
        return Limit(beside.share, reason_beside(beside)) if beside.share >= HELD_BACK else None
    if not method.is_explicit:
        return None
    t, u, h, values = sampled_steps(trajectory)
    boundary = method.real_boundary
    for i in np.flatnonzero(~(values <= BEYOND * boundary)):  # NaN: the stages did not determine it
        values[i] = abs(h[i]) * spectral_radius(trajectory.problem, t[i], u[i])
    near = np.flatnonzero(values >= stability.NEAR * boundary)
    if near.size < max(1, HELD_BACK * values.size):
        return None
    cause = f"h*rho = {np.median(values[near]):.2f} where the boundary is {boundary:.2f}"
    looked_at = near[:: max(1, near.size // 3)]
    real = all(is_real(leading_eigenvalue(trajectory.problem, t[i], u[i])) for i in looked_at)
    return Limit(near.size / values.size, cause, STABILISED if real else IMPLICIT)


def sampled_steps(trajectory):
    """(t, u, h, h rho) of steps spread over a run.

    A run that kept no states has recorded its h rho, whatever its engine; where a spectrum is needed, it is taken at
    the last state.
    """
    chosen, t, u, h = stability.samples(trajectory)
    if trajectory.step_u is None:
        return t, u, h, np.array(trajectory.h_rho[chosen])
    return t, u, h, stability.h_rho(trajectory.problem, trajectory.method, t, u, h)


class Beside(NamedTuple):
    """The share of sampled steps that stability limited, a leading eigenvalue there, and the radius the user gave.

    The radius is 0 unless it was too small, which is then the cause.
    """

    share: float
    eigenvalue: complex
    too_small: float = 0.0  # the given radius, where it is


NOTHING = Beside(0.0, 0j)


def beside_the_strip(trajectory) -> Beside:
    """Why a run of a stabilised method took small steps, found from the Jacobian at up to 24 of them.

    Such a method adapts its number of stages to the spectral radius, so that h*rho does not show whether stability
    limits a step. |R_s(h lambda)| of the leading eigenvalue does: it is near 1 or above for a step at the edge of the
    narrow stability region, and below 0.95 inside.
    """
    problem, method = trajectory.problem, trajectory.method
    steps, t, u, h = stability.samples(trajectory)
    if len(steps) < 3:
        return NOTHING
    with np.errstate(all="ignore"):
        leading = np.array([leading_eigenvalue(problem, *place) for place in zip(t, u, strict=True)])
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


def reason_beside(beside: Beside) -> str:
    """The cause, as the message of a run names it, and what helps."""
    value = beside.eigenvalue
    if beside.too_small:
        return (
            f"the spectral radius given, {beside.too_small:.3g}, is below the one found, {abs(value):.3g}: give "
            "odelab.rkc2 a larger one, or none to have it estimated"
        )
    remedy = IMPLICIT
    if abs(value.real) < 0.3 * abs(value.imag):
        remedy = f"odelab.DOPRI5 or odelab.DOP853, whose regions hold a part of the imaginary axis, or {remedy}"
    return (
        f"its leading eigenvalues, {value.real:.3g} +- {abs(value.imag):.3g}i, lie beside the narrow strip along the "
        f"negative real axis where RKC2 is stable, and errors in their direction grow: use {remedy}"
    )


def beyond_the_limit(trajectory) -> str:
    """An addition to the message that names the share of unstable fixed steps; empty if it is below 30 %.

    A step is unstable if it multiplies an error along the leading eigenvector by more than the solution itself grows.
    """
    method, problem = trajectory.method, trajectory.problem
    _, t, u, h = stability.samples(trajectory)
    with np.errstate(all="ignore"):
        z = h * np.array([leading_eigenvalue(problem, *place) for place in zip(t, u, strict=True)])
        growth = np.abs(method.stability(z))
        unstable = np.flatnonzero(growth > GROWTH * np.maximum(1.0, np.exp(z.real)))
    if unstable.size < HELD_BACK * z.size:
        return ""
    middle = unstable[np.argsort(np.abs(z[unstable]))[unstable.size // 2]]
    z, growth, size = z[middle], growth[middle], abs(h[middle])
    share = f"{100 * unstable.size / len(t):.0f} % of them were beyond the stability limit of {method.name}"
    if is_real(z):
        smaller = f"{0.95 * size * method.real_boundary / abs(z):.3g}"
        return (
            f"; {share}: h*rho = {abs(z):.2f} where the boundary is {method.real_boundary:.2f}, so that errors grow "
            f"with every step: take steps of {smaller} or less, odelab.adaptive, or {STABILISED}"
        )
    return (
        f"; {share}: h*lambda = {z.real:.2g} +- {abs(z.imag):.2g}i, where each step multiplies errors by {growth:.3g}: "
        f"take smaller steps, odelab.adaptive, or {IMPLICIT}"
    )


def is_real(eigenvalue: complex) -> bool:
    """Does a mode decay, and so nearly without oscillation that it lies inside a strip along the real axis?"""
    return eigenvalue.real < 0 and abs(eigenvalue.imag) <= COMPLEX * abs(eigenvalue)
