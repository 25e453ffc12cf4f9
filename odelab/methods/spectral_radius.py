"""The spectral radius of the Jacobian by a power method, and a controller that keeps it up to date.

The non-linear power method and its use are those of the code of Sommeijer, Shampine and Verwer (J. Comput. Appl. Math.
88 (1998) 315-326, Section 3). Closed like `odelab.core`; helpers are bound by the functions that make them.
"""

from typing import Any, NamedTuple

import numpy as np

from odelab.arrays import read_only
from odelab.methods.chebyshev import Gain
from odelab.problem import array_form

LIFE = 25.0  # after so many accepted steps the spectral radius is estimated anew
FEWEST, FEWEST_ANEW = 2, 8  # iterations at least; 8 at first and after a rejection, as the eigenvector may be wrong


def norm(v):
    return float(np.sqrt((v * v).sum()))


def power_method(norm):
    """A non-linear power method, made of its helper."""

    def estimate(rhs, params, t, u, slope, direction, fewest):
        """(1.2 times the spectral radius at (t, u), the eigenvector for the next time, evaluations).

        Products with the Jacobian are replaced by differences of the right-hand side over sqrt(eps) ||u||. The
        iteration ends when the estimate changes by less than 1 %. With a pair of complex eigenvalues it may not
        converge; then the largest of the last ten estimates of 50 is used.
        """
        size = norm(u)
        distance = 1.5e-8 * size
        if size == 0.0:
            distance = 1.5e-8
        length = norm(direction)
        if not 0.0 < length < 1e300:
            direction = 1.0 + 0.0 * u
            length = norm(direction)
        step = (distance / length) * direction
        radius, largest, evaluations = 0.0, 0.0, 0
        for iteration in range(1, 51):
            change = rhs(t, u + step, params) + (-1.0) * slope
            evaluations += 1
            grown = norm(change)
            last, radius = radius, grown / distance
            if iteration > 40:
                largest = max(largest, radius)
            if not 0.0 < grown < 1e300 or (iteration >= fewest and abs(radius - last) <= 0.01 * radius):
                break
            step = (distance / grown) * change
        return 1.2 * max(radius, largest), step, evaluations

    return estimate


def first_direction(slope):
    """The first direction of the power method: the slope plus random numbers.

    A smooth slope alone has so small a part along the leading eigenvector that the method would need many iterations.
    """
    return slope / (np.linalg.norm(slope) or 1.0) + rough_direction(slope.size)


def rough_direction(n: int):
    """A random direction of n components, of length one, always the same."""
    rough = np.random.default_rng(0).standard_normal(n)
    return rough / np.linalg.norm(rough)


def spectral_radius(problem, t, u) -> float:
    """The spectral radius of the Jacobian of a problem at (t, u), to a few per cent; NaN where it is not defined."""
    return abs(leading_eigenvalue(problem, t, u))


def leading_eigenvalue(problem, t, u) -> complex:
    """The eigenvalue of largest modulus of the Jacobian at (t, u), one of a pair if complex; NaN where undefined.

    The power method gives a vector v; v and J v approximately span the eigenvectors of the leading eigenvalue and of
    its conjugate. The Ritz values on this span show whether there is a complex pair or a real eigenvalue, and they are
    more precise than the ratio of norms with which the power method ends.
    """
    rhs, params = array_form(problem), problem.params
    slope = rhs(t, u, params)
    _, v, _ = power_method(norm)(rhs, params, t, u, slope, first_direction(slope), FEWEST_ANEW)
    distance = 1e-7 * (1.0 + np.linalg.norm(u))
    vectors, images = [], []
    for _ in range(2):
        v = v / (np.linalg.norm(v) or 1.0)
        vectors.append(v)
        v = (rhs(t, u + distance * v, params) - slope) / distance
        images.append(v)
        if not np.isfinite(v).all():
            return complex("nan")
        if not v.any():
            return 0j
    projected = np.linalg.lstsq(np.stack(vectors, 1), np.stack(images, 1), rcond=0.02)[
        0
    ]  # nearly parallel: one real eigenvalue
    values = np.linalg.eigvals(projected)
    return complex(values[np.abs(values).argmax()])


def given_radius(radius):
    """The function `estimate` for a spectral radius that the user gives as a function radius(t, u, params)."""

    def estimate(rhs, params, t, u, slope, direction, fewest):
        return float(radius(t, read_only(u), params)), direction, 0

    return estimate


def carried_radius(rhs, params, t, u, slope, direction, fewest):
    """The function `estimate` for a spectral radius given as a number, which is passed in place of the direction."""
    return float(direction[0]), direction, 0


class Steering(NamedTuple):
    """What a controller remembers in order to choose the number of stages.

    params      the parameters of the right-hand side, which the estimate evaluates
    radius      the spectral radius, as last estimated
    direction   its eigenvector, where the next estimate begins
    age         the accepted steps since then; negative where it is to be estimated anew
    most        the largest number of stages allowed
    stages      the number of stages of the step at hand
    spent       evaluations made so far beyond those that `odelab.core.integrate` counts
    """

    params: Any
    radius: Any
    direction: Any
    age: float
    most: float
    stages: float
    spent: float


class Steered(NamedTuple):
    """The memory of a steered controller: its own, and that of the stage number."""

    control: Any
    steering: Steering


def steering(estimate, stage_number, most_stable, life, again=FEWEST, anew=FEWEST_ANEW):
    """A function that extends a controller's propose and judge: they then also choose the number of stages."""

    def steer(propose, judge, rhs):
        def propose_stable(memory, t, t1, u, slope):
            dt, h, control = propose(memory.control, t, t1, u, slope)
            params, rho, direction, age, most, _, spent = memory.steering
            if age < 0.0 or age >= life:
                fewest = anew if age < 0.0 else again
                rho, direction, evaluations = estimate(rhs, params, t, u, slope, direction, fewest)
                age = 0.0
                spent += evaluations
                if not rho < 1e300:
                    rho = 0.0  # the slopes are not finite, which the step will find out
            needed = stage_number(abs(dt) * rho)
            if needed > most:  # rounding grows with s^2
                needed = int(most)
                h = h * (most_stable(needed) / (abs(dt) * rho))
                dt = h
            steering = Steering(params, rho, direction, age, most, float(needed), spent)
            return dt, Gain(h, needed), Steered(control, steering)

        def judge_stable(memory, dt, errors, u, u_new):
            accept, control = judge(memory.control, dt, errors, u, u_new)
            params, rho, direction, age, most, stages, spent = memory.steering
            spent += stages - 1.0
            if accept == 1:
                age += 1.0
            elif age > 0.0:
                age = -1.0  # rejected with an old estimate, which is made anew
            return accept, Steered(control, Steering(params, rho, direction, age, most, stages, spent))

        return propose_stable, judge_stable

    return steer
