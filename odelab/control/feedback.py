"""The functions that decide on a step: `propose` before it and `judge` after it.

They are closed like those of `odelab.core`: they run in NumPy and in compiled code, and their helpers are arguments, or
are bound by the function that makes them. Each receives the controller's memory and returns a new one. The errors in
the history of an adaptive controller change only when a step is accepted, so that after a rejected step nothing but the
proposed size is different.
"""

import math
from typing import Any, NamedTuple

from odelab.control.powers import exp2, log2
from odelab.core import where


class Counted(NamedTuple):
    """The memory of fixed steps: they end at t0 + n h."""

    t0: float
    h: float
    n: float  # steps so far


class Listed(NamedTuple):
    """The memory of steps that end at listed times."""

    ends: Any
    n: float  # steps so far


class Settings(NamedTuple):
    """The numbers of an adaptive controller that do not change during a run.

    rtol, atol          the tolerance of a step; atol may be an array with one number per component
    order               k: the error estimate is proportional to the k-th power of the step size
    set_point           log2 theta^k, the error over its tolerance that the law aims at
    b1, b2, b3, a2, a3  the law's exponents, as in `odelab.control.laws`
    largest_step        the largest size of a step, without its sign
    """

    rtol: float
    atol: Any
    order: float
    set_point: float
    b1: float
    b2: float
    b3: float
    a2: float
    a3: float
    largest_step: float


class History(NamedTuple):
    """What an adaptive controller remembers of the steps before.

    next_step   the size asked for next, with its sign
    last_step   the size of the last accepted step; 0 at first
    log_e1      log2 of the error of the last accepted step over its tolerance, against the set-point
    log_e2      the same, one step before
    log_r1      log2 of the ratio of the last two accepted steps
    rejected    1.0 where the last attempt was rejected, else 0.0
    error       the square of the error over its tolerance of the last attempt
    """

    next_step: float
    last_step: float
    log_e1: float
    log_e2: float
    log_r1: float
    rejected: float
    error: float


class Memory(NamedTuple):
    """What an adaptive controller carries from step to step."""

    settings: Settings
    history: History


def error_of_step(memory):
    """The error over its tolerance of the last attempt."""
    return math.sqrt(memory.history.error)


def no_error(memory):
    """Fixed steps have no error estimate."""
    return math.nan


def propose_counted(memory, t, t1, u, slope):
    """Propose a fixed step to t0 + (n + 1) h; adding h to t again and again would let rounding errors grow."""
    dt = counted_size(memory.t0, memory.h, memory.n, t, t1)
    return dt, dt, memory


def counted_size(t0, h, n, t, t1):
    """The size of the step from t to t0 + (n + 1) h, or to t1."""
    target = t0 + (n + 1.0) * h
    dt = target - t
    # If less than a millionth of a step were left after this one, it would come from rounding of (t1 - t0)/h.
    if (t1 - target) / h <= 1e-6:
        dt = t1 - t
    return dt


def propose_listed(memory, t, t1, u, slope):
    """Propose a step to the next time of the list, the last of which is t1."""
    dt = memory.ends[int(memory.n)] - t
    return dt, dt, memory


def accept_by(left_over, after_step):
    """A judge that accepts every step to a finite state, and gives up at the first other one.

    left_over     left_over(u_new) must be zero for a finite state and NaN for any other
    after_step    after_step(memory), the memory with one more step in it
    """

    def judge(memory, dt, errors, u, u_new):
        if left_over(u_new) != 0.0:
            return -1, memory
        return 1, after_step(memory)

    return judge


def one_more_counted(memory):
    return Counted(memory.t0, memory.h, memory.n + 1.0)


def one_more_listed(memory):
    return Listed(memory.ends, memory.n + 1.0)


def sum_of_differences(u_new):
    """Zero for a finite state, NaN for any other, because infinity minus infinity is NaN."""
    return (u_new - u_new).sum()


accept_finite = accept_by(sum_of_differences, one_more_counted)
accept_listed = accept_by(sum_of_differences, one_more_listed)


def propose_next(memory, t, t1, u, slope):
    """The step the last judgement asked for, or one that lands on t1."""
    dt = landing_size(memory.history.next_step, memory.settings.largest_step, t, t1)
    return dt, dt, memory


def landing_size(dt, largest, t, t1):
    """The size of the next step: `dt`, or what remains to t1 if that is at most 1 % more, to avoid a tiny last step."""
    remaining = t1 - t
    if abs(remaining) <= 1.01 * abs(dt):
        dt = remaining
        if abs(dt) > largest * (1.0 + 1e-9):  # beyond the largest step by more than the rounding of t
            dt = 0.5 * dt
    return dt


LEAST_SQUARE = 1e-24  # of an error over its tolerance; smaller ones are replaced by this one, whose logarithm is finite
OUT_OF_DOMAIN = 0.1  # the factor of the step size after an attempt whose error is NaN or infinite


def law_of_sizes(power, limit):
    """Söderlind's law of step sizes, for every row of his table, with a given power function and limiter.

    Returns a function that computes the ratio of the next step size to the last. It has no branches, because it is
    compiled for many runs at once. After a rejected attempt it ignores the history: there the elementary controller
    decides, whose factor is below theta. Its arguments:

    order, b1 ... a3        the order of the error estimate and the exponents of the law
    accepted                whether the attempt was accepted
    may_grow                whether the next step may be larger than the last
    errors                  the estimated errors, for a `power` that computes the result from them and not from log_e
    log_e, log_e1, log_e2   log2 of the last three errors relative to the set-point, that of this attempt first
    log_r, log_r1           log2 of the last two ratios of step sizes
    """

    def size_factor(order, b1, b2, b3, a2, a3, accepted, may_grow, errors, log_e, log_e1, log_e2, log_r, log_r1):
        # What comes of earlier steps is known before the attempt ends: afterwards only the error is waited for.
        # Weights are compared with zero because compiled code would otherwise multiply by them.
        share = 1.0 / order
        earlier = -(b2 * share) * log_e1 if b2 != 0.0 else 0.0
        if b3 != 0.0:
            earlier = earlier - b3 * share * log_e2
        if a2 != 0.0:
            earlier = earlier - a2 * log_r
        if a3 != 0.0:
            earlier = earlier - a3 * log_r1
        exponent = where(accepted, b1 * share, share)
        return min(limit(power(errors, log_e, exponent, where(accepted, earlier, 0.0))), where(may_grow, math.inf, 1.0))

    return size_factor


def power_of_logarithm(exp2):
    """A `power` computed from logarithms: e^-exponent 2^earlier, where e is the error relative to the set-point."""

    def power(errors, log_e, exponent, earlier):
        return exp2(min(max(earlier - exponent * log_e, -100.0), 100.0))

    return power


def error_control(squared_error, log2, power, limit, cautious):
    """The judge of an adaptive controller (Söderlind 2003), made from its helper functions.

    squared_error   squared_error(errors, u, u_new, rtol, atol), the square of the error over its tolerance: no root has
                    to be waited for
    log2            the logarithm of a number
    power, limit    as for `law_of_sizes`
    cautious        whether the step must not grow right after a rejection; it may with the filters
    """
    size_factor = law_of_sizes(power, limit)

    def judge(memory, dt, errors, u, u_new):
        settings, history = memory
        rtol, atol, order, set_point, b1, b2, b3, a2, a3, largest = settings
        _, last, log_e1, log_e2, log_r1, rejected, _ = history
        square = squared_error(errors, u, u_new, rtol, atol)
        log_e = 0.5 * log2(max(square, LEAST_SQUARE)) - set_point
        log_r = 0.0
        if a2 != 0.0 or a3 != 0.0:  # a field of the history that the law does not use stays zero
            log_r = log2(dt / where(last != 0.0, last, dt))  # without a branch, which would double what follows
        accepted = square <= 1.0
        may_grow = not cautious or rejected == 0.0
        factor = OUT_OF_DOMAIN
        if square < 1e300:  # it is neither NaN nor infinite
            factor = size_factor(
                order, b1, b2, b3, a2, a3, accepted, may_grow, errors, log_e, log_e1, log_e2, log_r, log_r1
            )
        proposed = dt * factor
        if not accepted:
            return 0, Memory(settings, History(proposed, last, log_e1, log_e2, log_r1, 1.0, square))
        if abs(proposed) > largest:
            proposed = math.copysign(largest, proposed)
        if b2 == 0.0 and b3 == 0.0:
            log_e = 0.0
        return 1, Memory(settings, History(proposed, dt, log_e, log_e1, log_r, 0.0, square))

    return judge


def clip(factor):
    return min(max(factor, 0.2), 10.0)


def smooth_limiter(arctan):
    """1 + kappa arctan((x - 1)/kappa), kappa = 1: no kinks, so the filters keep their spectra; range (0.21, 2.57)."""

    def limit(factor):
        return 1.0 + arctan(factor - 1.0)

    return limit


def trial_step(state, slope, span):
    """A step that changes the state by about one hundredth, to find out how fast the slope changes."""
    trial = 1e-6
    if state > 1e-5 and slope > 1e-5:
        trial = 0.01 * state / slope
    return min(trial, span)


def first_step(trial, slope, bend, order, span):
    """The step whose local error would be about a hundredth of the tolerance, from the sizes of u' and u''."""
    if bend - bend != 0.0:  # infinite or undefined
        return 1e-3 * trial
    largest = max(slope, bend)
    better = max(1e-6, 1e-3 * trial)
    if largest > 1e-15:
        better = exp2(log2(0.01 / largest) / order)
    return min(100.0 * trial, better, span)
