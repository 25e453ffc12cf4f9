"""The rule of `odelab.auto`: which of two methods makes the next attempt.

From explicit to implicit: a step that stability limits has an error near the tolerance, whatever the solution does, so
the error does not tell which step accuracy would allow. Instead, the steps with h rho near the stability boundary are
counted. After enough of them an implicit step is tried, of the size with which an implicit run would begin here. Its
error tells how long implicit steps could be, and with the ratio of the costs of an attempt this tells which method is
cheaper. Before the first step, and where the stages do not tell h rho or steps are of one size, as stability makes
them, a few products of the Jacobian with a vector look for fast components that the stages do not see. A run whose
first explicit step would lie near the boundary tries an implicit one at once: what an unstable step has put into a fast
oscillation without damping would stay there.

From implicit to explicit: h rho is compared with the explicit method's boundary. The run goes back, too, where implicit
steps cost more than the explicit ones before them did.

The functions are closed like those of `odelab.core`: plain Python runs them, and kernels have them as graphs. Lengths
are sizes of steps without their signs; costs are counted in explicit attempts.
"""

import math
from typing import Any, NamedTuple

from odelab.control.controllers import SET_POINT
from odelab.control.feedback import LEAST_SQUARE, History, Settings
from odelab.control.powers import exp2, log2
from odelab.core import where

EXPLICIT, IMPLICIT, FIRST, SECOND = 0.0, 1.0, 2.0, 3.0  # who makes the next attempt; the last two are trials

AT_BOUNDARY = 0.5  # of the real boundary: the mean step of a run that stability limits lies well below the boundary
FAR = 2.0  # times the real boundary: one step of such a size counts as COUNT, enough for the first trial of a run
COUNT = 4.0  # an implicit step is tried when the steps near the boundary outnumber the others by so many
TRIED = 4.0  # the implicit step that is tried is at least so many times as long as the mean explicit step
FARTHEST = 10.0  # the error of the tried step is used to predict steps of up to so many times its size
TRIALS = 0.25  # of what is left of a run by explicit steps is the most that trials may have cost which are refused
EVEN = 0.125  # of one size are steps that differ from the first of them by at most this part
LOOK_AFTER, CALM = 16.0, 128.0  # even steps after which is looked for fast components; twice as many after each look,
# up to so many. Nor is a trial waited for any longer: then it costs a hundredth of the steps before it
MEASURE_AFTER = 4.0  # implicit attempts, after which their fastest rate is measured again
PRODUCTS = 3  # with a vector by which the fastest rate is estimated
FLOOR = 1e-12  # of the first direction stays in all later ones, whose numbers do not become smaller and smaller
DISTANCE = 1.5e-8  # of the states whose difference stands for such a product, in the norm of the tolerances
MEMORY = 0.25  # the weight of the last attempt in the mean size of explicit steps
DEARER = 1.5  # times what explicit steps cost: implicit ones that cost more were a wrong choice
BRIEF = 16.0  # implicit attempts, after which to go back means that to begin with them was wrong
CLEARLY = 2.0  # times cheaper must implicit steps promise to be before any explicit one was taken
BACK = 0.5  # of the explicit boundary: with h rho below it the explicit method takes over


class Rule(NamedTuple):
    """The numbers of the rule that stay as they are during a run.

    boundary   the real stability boundary of the explicit method
    order      of the implicit method's estimate of the error
    ratio      the cost of an implicit attempt over that of an explicit one
    """

    boundary: float
    order: float
    ratio: Any


def rule_of(explicit, implicit, ratio) -> Rule:
    """The rule of two methods."""
    return Rule(explicit.real_boundary, float(implicit.error_order), ratio)


class Turns(NamedTuple):
    """What the rule remembers.

    mode       who makes the next attempt: EXPLICIT, IMPLICIT, or a trial, FIRST or SECOND
    gone       how far an explicit attempt goes in the mean; one that is rejected goes nowhere
    seen       by how many the steps near the stability boundary outnumber the others
    patience   by how many they have to
    enough     the length that implicit steps have to exceed in a trial
    promised   `gone` when the implicit method took over; 0 where it did so before the first step
    short      how many implicit steps in a row were no longer than explicit ones could be, or cost more
    even       how many explicit steps in a row were of one size, or did not tell h rho; with the implicit method at
               work, how many attempts it has made
    level      the size of the first of these explicit steps; 0 before the first step
    wait       up to how many of them are waited for until the next look; with the implicit method at work, until its
               fastest rate is measured again
    shortest   the time in which that rate multiplies by e, 1 over it; 0 before it is measured
    changes, tried, refused   how often the method has changed, an implicit step was tried, and trials were refused
    """

    mode: Any
    gone: Any
    seen: Any
    patience: Any
    enough: Any
    promised: Any
    short: Any
    even: Any
    level: Any
    wait: Any
    shortest: Any
    changes: Any
    tried: Any
    refused: Any


class Turned(NamedTuple):
    """The memory of a run by two methods: that of the controller at work, the turns, and a direction.

    settings, history   as in `odelab.control.feedback.Memory`
    turns               what the rule remembers
    direction           along which products with the Jacobian tell its fastest rate; zeros where none was made
    """

    settings: Settings
    history: History
    turns: Turns
    direction: Any


def first_turns(size):
    """What the rule knows before a run whose first explicit step has this size: a look comes first."""
    return Turns(EXPLICIT, size, 0.0, COUNT, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def is_to_look(turns):
    """Is it time to look for fast components that the stages do not see?"""
    return (turns.mode == EXPLICIT) & (turns.even >= turns.wait)


def is_to_measure(turns):
    """Is it time to measure the fastest rate of the implicit method's Jacobian?"""
    return (turns.mode == IMPLICIT) & (turns.even >= turns.wait)


def after_measure(turns, shortest):
    """The turns after the shortest time was measured."""
    return turns._replace(shortest=shortest, wait=turns.even + MEASURE_AFTER)


def is_to_weigh(turns):
    """Have enough steps been near the stability boundary for an implicit step to be tried?"""
    return turns.seen >= turns.patience


def after_explicit(rule, turns, accepted, size, stiff, apart, told):
    """The turns after an explicit attempt.

    accepted       whether the attempt was accepted
    size           of its step
    stiff, apart   numbers whose ratio is the square of h rho
    told           whether the stages tell it
    """
    near = told & (stiff >= (AT_BOUNDARY * rule.boundary) ** 2 * apart)
    far = told & (stiff >= (FAR * rule.boundary) ** 2 * apart)
    vote = where(far, COUNT, where(near, 1.0, -1.0))
    unlike = abs(size - turns.level) > EVEN * turns.level
    even = where(near, 0.0, where(told & unlike, 1.0, turns.even + 1.0))
    return turns._replace(
        gone=turns.gone + MEMORY * (where(accepted, size, 0.0) - turns.gone),
        seen=max(turns.seen + where(accepted, vote, 0.0), 0.0),
        even=where(accepted, even, turns.even),
        level=where(unlike, size, turns.level),
    )


def after_look(rule, turns, size, rate):
    """The turns after a look for fast components.

    size    of the next explicit step
    rate    the fastest rate that was seen
    """
    is_first = turns.level == 0.0
    near = size * rate >= AT_BOUNDARY * rule.boundary
    return turns._replace(
        gone=where(is_first & near, min(size, rule.boundary / max(rate, 1e-300)), turns.gone),
        seen=where(near, turns.seen + 2.0 * max(turns.even, COUNT), turns.seen),  # they have counted as the others
        even=0.0,
        wait=where(is_first | near, LOOK_AFTER, min(2.0 * turns.wait, CALM)),
    )


def after_weighing(rule, turns, left):
    """The turns with an implicit step to be tried, where the run is long enough for that; otherwise it is counted anew.

    How far explicit steps go is not known before the first one but for the bound of the boundary, which they may pass
    for a while. There implicit steps have to be clearly cheaper, and nothing is promised.

    left    the length of the run that is left
    """
    is_first = turns.level == 0.0
    pays = (turns.refused + 1.0) * rule.ratio <= TRIALS * (left / turns.gone)
    return turns._replace(
        mode=where(pays, FIRST, EXPLICIT),
        seen=0.0,
        even=0.0,
        wait=where(pays, 0.0, LOOK_AFTER),
        shortest=0.0,
        enough=where(is_first, CLEARLY, 1.0) * turns.gone * rule.ratio,
        promised=where(is_first, 0.0, turns.gone),
        tried=where(pays, turns.tried + 1.0, turns.tried),
    )


def size_of_trial(turns, usual):
    """The size of the implicit step that is tried: so long that it can promise twice what is enough.

    usual    the size with which an implicit run would begin
    """
    return max(TRIED * turns.gone, usual, 2.0 * turns.enough / FARTHEST)


def after_implicit(rule, turns, accepted, size, square, proposed):
    """The turns after an implicit attempt, the size of the next step, and whether the explicit method takes over.

    accepted   whether the attempt was accepted
    size       of its step
    square     of its error over the tolerance
    proposed   the size that the law of step sizes proposes
    """
    counted = after_counting(rule, turns, accepted, size)
    return after_settling(rule, counted, accepted, size, square, proposed)


def after_counting(rule, turns, accepted, size):
    """The turns after an implicit attempt was counted; where `is_to_settle` then holds, there is more to decide."""
    near = size < BACK * rule.boundary * turns.shortest * max(rule.ratio, 1.0)
    short = where(near | is_dearer(rule, turns, size), turns.short + 1.0, 0.0)
    return turns._replace(short=where(accepted, short, turns.short), even=turns.even + 1.0)


def is_dearer(rule, turns, size):
    """Does an implicit step of this size cost clearly more than the explicit steps before did?"""
    return DEARER * size < turns.promised * rule.ratio


def is_to_settle(turns):
    """Was an implicit attempt, which is counted already, a trial, or is it time to go back?"""
    return (turns.mode >= FIRST) | (turns.short >= COUNT)


def after_settling(rule, turns, accepted, size, square, proposed):
    """What `after_implicit` returns, from turns in which the attempt is counted."""
    is_finite, is_trial = square < 1e300, turns.mode >= FIRST
    logarithm = 0.5 * log2(min(max(square, LEAST_SQUARE), 1e300))
    longer = where(is_finite, min(SET_POINT * exp2(-logarithm / rule.order), FARTHEST), 0.0)
    reach = longer * size
    good = is_trial & (reach > turns.enough)
    # Explicit steps leave as much in fast components as the tolerance allows. The error of an implicit step is theirs,
    # and damps them: where it is not good, only a second one can tell.
    again = (turns.mode == FIRST) & (reach <= turns.enough) & is_finite
    refused = where(good | again, False, is_trial)
    back = where(is_trial, False, turns.short >= COUNT)
    over = refused | back
    wrong = back & (is_dearer(rule, turns, size) | (turns.even <= BRIEF))
    stable = min(size, BACK * rule.boundary * turns.shortest)  # for explicit steps
    next_size = where(refused, turns.gone, where(back, stable, where(good & accepted, reach, proposed)))
    now = turns._replace(
        mode=where(over, EXPLICIT, where(again, SECOND, IMPLICIT)),
        gone=where(back, stable, turns.gone),
        patience=where(refused | wrong, min(2.0 * turns.patience, CALM), where(back, COUNT, turns.patience)),
        short=where(over | is_trial, 0.0, turns.short),
        even=where(over, 0.0, turns.even),
        wait=where(over, LOOK_AFTER, turns.wait),
        level=next_size,
        changes=where(good | back, turns.changes + 1.0, turns.changes),
        refused=where(refused, turns.refused + 1.0, turns.refused),
    )
    return now, next_size, over


def fastest_rate(rhs, params, t, u, slope, unit, direction, rough):
    """About the spectral radius at a state, and the direction in which to look the next time.

    A few steps of the power method in the norm of the tolerances, with differences for products with the Jacobian.

    unit        of each component, in which its tolerance is the same
    direction   where the power method begins; zeros or NaN where that is not known
    rough       random numbers, of length one, half of which the first direction has beside the slope
    """
    per = 1.0 / unit
    scaled = direction * per
    length = math.sqrt((scaled * scaled).sum())
    if not 0.0 < length < 1e300:
        scaled = slope * per
        scaled = scaled * (1.0 / max(math.sqrt((scaled * scaled).sum()), 1e-300)) + 0.5 * rough
        length = math.sqrt((scaled * scaled).sum())
    rate, last = 0.0, 0.0
    for k in range(min(PRODUCTS, rough.size)):
        moved = u + (DISTANCE / max(length, 1e-300)) * (unit * scaled)
        scaled = (rhs(t, moved, params) - slope) * per
        length = math.sqrt((scaled * scaled).sum())
        last, rate = rate, length * (1.0 / DISTANCE)
        if k == 0:
            last = rate
    rate = math.sqrt(last * rate)  # the geometric mean, which a pair of complex eigenvalues does not shake
    if not rate < 1e300:
        rate = 0.0
    return rate, unit * (scaled * (1.0 / max(length, 1e-300)))


def shortest_along(product, unit, direction, rough):
    """The time in which a product with the Jacobian multiplies a direction by e, and the direction for the next one.

    unit, rough    as for `fastest_rate`, in whose norm lengths are measured; that of the direction stays the same
    """
    per = 1.0 / unit
    before, after = direction * per, product * per
    square = (after * after).sum()
    shortest = math.sqrt((before * before).sum() / max(square, 1e-300))
    if not 1e-300 < square < 1e300:
        return shortest, unit * rough
    return shortest, product * shortest + FLOOR * (unit * rough)
