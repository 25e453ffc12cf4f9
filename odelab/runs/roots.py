"""All sign changes of a function over one step; the interval is divided until none can be missed.

On each interval the function is interpolated by a polynomial, and both are compared at other places. Their difference
there, times a safety factor, bounds the error of the polynomial. If within this bound the function has no zero, or is
monotone, the interval is finished; otherwise it is halved.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

DEGREE = 8
NODES = np.linspace(0.0, 1.0, DEGREE + 1)
PROBES = np.array([0.0714, 0.4031, 0.8527])  # where function and interpolant are compared, off the nodes
MARGIN = 4.0  # the error of the interpolant is taken to be at most so many times the largest difference at the probes
NARROWEST = 1e-9  # of the step: near a minimum, rounding hides differences within the square root of rounding
LOOKS = 20_000  # evaluations per step at most, for a function whose noise is larger than its rounding error
PROBED = len(PROBES)
ROUNDING = 1e-11  # the effect of rounding errors on Bernstein coefficients, relative to the largest value
AHEAD = 1e-6  # of the step: how far after an exact zero the function is evaluated, to see which sign follows


def powers(places) -> np.ndarray:
    return np.vander(places, DEGREE + 1, increasing=True)


_BASIS = np.linalg.inv(powers(NODES))
AT_PROBES = powers(PROBES) @ _BASIS
BERNSTEIN = np.linalg.inv(
    np.array([[math.comb(DEGREE, j) * x**j * (1.0 - x) ** (DEGREE - j) for j in range(DEGREE + 1)] for x in NODES])
)
AT_PLACES = np.concatenate([AT_PROBES, BERNSTEIN])
AT_FINE = powers(np.linspace(0.0, 1.0, 8 * DEGREE + 1)) @ _BASIS


def sign_changes(g: Callable, at_start: float, at_end: float, noise: Callable) -> Iterator[tuple[float, int]]:
    """(theta, +1 rising or -1 falling) of the zeros of g in (0, 1], given its values at both ends.

    A zero counts if g changes its sign there, or if g becomes zero and stays zero; it does not count if g touches zero
    and turns back. A zero at theta = 0 belongs to the step before. `noise()` is the rounding error of g, which is
    needed only where the interpolant alone does not decide.
    """
    left, last = 0.0, at_start
    for theta, value in points(g, 0.0, 1.0, {0.0: at_start, 1.0: at_end}, noise):
        if np.sign(last) * np.sign(value) < 0.0:
            yield brent(g, left, theta), int(np.sign(value))
        elif last > 0.0 == value or last < 0.0 == value:
            beyond = theta + AHEAD if theta == 1.0 else min(theta + AHEAD, 1.0)
            ahead = g(beyond)
            if np.sign(ahead) == np.sign(last):  # a touch
                continue
            yield arrival(g, left, theta) if ahead == 0.0 else theta, -int(np.sign(last))
            theta, value = beyond, ahead
        left, last = theta, value


def points(g, left, right, known, noise) -> Iterator[tuple[float, float]]:
    """(theta, g) over (left, right], close enough that between neighbours there is at most one change of sign."""
    thetas = left + (right - left) * NODES
    for theta in thetas:
        if theta not in known:
            known[theta] = g(theta)
    values = np.array([known[theta] for theta in thetas])
    if not np.isfinite(values).all():  # g is not defined everywhere, so it cannot be interpolated
        yield from zip(thetas[1:].tolist(), values[1:].tolist(), strict=True)
    elif right - left < NARROWEST or len(known) > LOOKS or has_at_most_one_zero(g, left, right, values, noise):
        yield right, known[right]
    else:
        middle = float(thetas[DEGREE // 2])
        yield from points(g, left, middle, known, noise)
        yield from points(g, middle, right, known, noise)


def has_at_most_one_zero(g, left, right, values, noise) -> bool:
    """Is it sure that g has at most one zero here (or is nothing but rounding error)?"""
    if not values.any():
        return True
    missed = np.abs(AT_PROBES @ values - [g(left + (right - left) * probe) for probe in PROBES]).max()
    fine = AT_FINE @ values
    rise = np.diff(fine)
    between = np.abs(np.diff(rise)).max()  # what may happen between two fine points
    for shape in (fine, rise):  # of one sign, or monotone
        lowest, highest = shape.min(), shape.max()
        if lowest * highest > 0.0 and min(abs(lowest), abs(highest)) > MARGIN * missed + between:
            return True
    return bool(np.abs(values).max() <= noise())


def sort_steps(ends, values) -> tuple[np.ndarray, ...]:
    """The steps with exactly one sign change, and the steps that have to be examined one by one; the others have none.

    Returned with them is (left, right, g at left, g at right) of the steps of the first kind: there the sign changes.

    `ends` (k + 1,) are the values of g at the ends of k steps, `values` (places, k) those at the inner nodes and at the
    probes.
    """
    inner = DEGREE - 1
    nodes = np.concatenate([ends[None, :-1], values[:inner], ends[None, 1:]])
    clear = is_clear(AT_PLACES @ nodes, values[inner:], ends[1:])
    passed = ends[:-1] * ends[1:] < 0.0
    single, unclear = np.flatnonzero(clear & passed), np.flatnonzero(~clear)
    chosen = nodes[:, single]
    first = (np.sign(chosen) == np.sign(chosen[-1])).argmax(axis=0)  # node beyond the sign change
    here = np.arange(single.size)
    return single, unclear, NODES[first - 1], NODES[first], chosen[first - 1, here], chosen[first, here]


def is_clear(shapes, at_probes, end):
    """Is it sure that g has no zero on a step, or one at which it is monotone? For one step, or for many in a row.

    shapes       `AT_PLACES` times the values of g at the nodes: the interpolant at the probes, and its Bernstein
                 coefficients. It lies between the smallest and the largest of these, and is monotone if they are: this
                 replaces the evaluation at 65 points in `has_at_most_one_zero`
    at_probes    g itself at the probes
    end          g at the end of the step; an exact zero there is looked at more closely

    A value that is not finite makes every coefficient of its step NaN, and the answer is no.
    """
    missed = np.abs(shapes[0] - at_probes[0])
    for j in range(1, PROBED):
        missed = np.maximum(missed, np.abs(shapes[j] - at_probes[j]))
    lowest = highest = shapes[PROBED]
    least = most = shapes[PROBED + 1] - shapes[PROBED]
    for j in range(PROBED + 1, PROBED + DEGREE + 1):
        lowest, highest = np.minimum(lowest, shapes[j]), np.maximum(highest, shapes[j])
        rise = shapes[j] - shapes[j - 1]
        least, most = np.minimum(least, rise), np.maximum(most, rise)
    margin = MARGIN * missed + ROUNDING * np.maximum(highest, -lowest)
    of_one_sign = (lowest > margin) | (highest < -margin)
    monotone = (least > DEGREE * margin) | (most < -DEGREE * margin)
    return of_one_sign | (monotone & (end != 0.0))


MOST_PASSES = 120  # of Chandrupatla's method; about ten are enough


def between(g: Callable, left, right, at_left, at_right):
    """The zeros of many g(theta), each between `left` and `right`, where it has opposite signs.

    Chandrupatla's method (Adv. Eng. Software 28 (1997) 145-149): bisection, or inverse quadratic interpolation where
    the three last points promise that it is faster.
    """
    bracket = right, left, at_right, at_left, at_right / (at_right - at_left)
    best = right
    for _ in range(MOST_PASSES):
        best, done, bracket = narrower(g, *bracket)
        if np.all(done):
            break
    return best


def narrower(g: Callable, a, b, fa, fb, fraction):
    """One pass of Chandrupatla's method: (the best zero so far, whether that will do, the next bracket).

    A bracket is two places, the values of g there and the fraction of the way from the first to the second at which g
    is evaluated next.
    """
    x = a + fraction * (b - a)
    fx = g(x)
    same = np.sign(fx) == np.sign(fa)
    c, fc = np.where(same, a, b), np.where(same, fa, fb)
    b, fb = np.where(same, b, a), np.where(same, fb, fa)
    a, fa = x, fx
    nearer = np.abs(fa) < np.abs(fb)
    best, least = np.where(nearer, a, b), np.where(nearer, fa, fb)
    width = (2.0 * 4e-16 * np.abs(best) + 1e-18) / np.abs(b - a)
    done = (width > 0.5) | (least == 0.0)
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    inverse = (phi * phi < xi) & ((1.0 - phi) ** 2 < 1.0 - xi)
    quadratic = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    fraction = np.where(inverse, quadratic, 0.5)
    fraction = np.where(done, 0.0, np.minimum(np.maximum(fraction, width), 1.0 - width))
    # Where a zero has been found already, its place is not changed any more.
    return best, done, (np.where(done, best, a), b, np.where(done, least, fa), fb, fraction)


def brent(g, left, right, near: float = 4e-16) -> float:
    """The zero between two values of opposite sign, to the spacing of theta, or as near as is asked for."""
    from scipy.optimize import brentq

    return float(brentq(g, left, right, xtol=near, rtol=1e-15, maxiter=200))


def arrival(g, left, right) -> float:
    """The first zero of a g that is zero from there to `right`, by bisection."""
    while right - left > 1e-15:
        middle = 0.5 * (left + right)
        if g(middle) == 0.0:
            right = middle
        else:
            left = middle
    return right
