"""Linearly implicit steps in which a component stops being stiff: then their ends are wrong, and no estimate sees it.

While a component is stiff, its error is divided by its rate, and so is the error that a step estimates of it. Where the
rate falls within a step, to that of the problem's slow components, the polynomial inside the step is left as it is, and
with it the end.
"""

import functools

import numpy as np

from odelab.methods.extension import squared_error_inside
from odelab.problem import array_form
from odelab.runs.dense import Dense
from odelab.runs.interior import SAMPLED, WORTH_SAYING, Interior, implicit_alone

LATE = 1.0 - 1e-6  # of a step: before a jump of the right-hand side that lies on its end


def end_error(trajectory) -> Interior | None:
    """The largest error at the ends of the longest linearly implicit steps, and where; None where there are none.

    It is found from the defect as `odelab.runs.interior` finds that within steps, but with the Jacobian at the end: a
    component that is still stiff there has lost its error, and one that is not has kept it.
    """
    controller = trajectory.controller
    if controller is None or controller.law is None:
        return None
    pieces = getattr(trajectory.interpolant, "pieces", [trajectory.interpolant])
    ends = sorted((end for dense in pieces for end in longest(dense)), key=lambda end: -abs(end[0].h[end[1]]))[:SAMPLED]
    found = [Interior(error_at_the_end(dense, i, controller), float(dense.t[i + 1])) for dense, i in ends]
    return max(found, default=None)


def longest(dense) -> list[tuple[Dense, int]]:
    """The longest linearly implicit steps of a run or a piece of one: what repeats them, and their numbers."""
    if not isinstance(dense, Dense) or not dense.method.members[-1].needs_jacobian:
        return []
    steps = np.arange(len(dense.h)) if dense.took is None else np.flatnonzero(dense.took)
    implicit = implicit_alone(dense)
    return [(implicit, int(i)) for i in steps[np.argsort(-np.abs(dense.h[steps]), kind="stable")[:SAMPLED]]]


def error_at_the_end(dense: Dense, i: int, controller) -> float:
    """The error at the end of step i over the tolerance; 0 where the user's function raises an error there."""
    problem, linear, gamma = dense.problem, dense.stepper.linearisation, dense.method.gamma
    rhs, params, t, u, h = array_form(problem), problem.params, float(dense.t[i]), dense.u[i], float(dense.h[i])
    with np.errstate(all="ignore"):
        parts = dense.polynomials(np.array([i]))[0]
        late, end = t + LATE * h, u + LATE ** np.arange(1, len(parts) + 1) @ parts
        try:
            J, _ = linear.derivatives(late, end, rhs(late, end, params))
            solve = functools.partial(linear.backsub, linear.factor(J, gamma * h))
            step = params, t, u, h, parts, LATE, gamma, solve, controller.rtol, controller.atol, problem.weigh
            square = squared_error_inside(rhs, *step)
        except Exception:  # the user's, of a state that no step has asked for
            return 0.0
        return float(np.nan_to_num(np.sqrt(square / len(u)), posinf=0.0))


def end_remark(trajectory) -> str:
    """An addition to the message of a run some of whose steps have wrong ends."""
    found = end_error(trajectory)
    if found is None or found.ratio < WORTH_SAYING:
        return ""
    return (
        f"; its states are wrong by {found.ratio:.0g} times the tolerance near t = {found.t:.4g}, as a stiff "
        "component stopped being stiff within a step, which error estimates of linearly implicit methods do not see: "
        "give the times of such changes as `tstops`, or take odelab.ESDIRK43"
    )
