"""How exact linearly implicit steps are between their ends, which the control of step sizes does not see."""

from typing import NamedTuple

import numpy as np

from odelab.problem import array_form
from odelab.runs.dense import Dense

WORTH_SAYING = 100.0  # times the tolerance; in the catalogue it is 50 at most, but for Prothero-Robinson
SAMPLED = 12  # steps that are looked at, the longest
PLACES = (0.25, 0.5, 0.75)  # of a step; in the middle alone the error may be near a zero of its polynomial


class Interior(NamedTuple):
    """The largest error that was found within steps, over the tolerance, and where."""

    ratio: float
    t: float


def interior_error(trajectory) -> Interior | None:
    """The error of the dense output within the longest linearly implicit steps; None where there are none.

    With v the state there and v' its slope along the dense output, the defect is f(t, v) - v'. It is multiplied by h
    gamma and by the inverse of I - h gamma J. What is left of a stiff component is its distance from where it would
    rest; of any other component, about what the defect adds up to. A mass matrix M multiplies v', and is there for I.
    """
    dense, controller, method = trajectory.interpolant, trajectory.controller, trajectory.method
    if not (isinstance(dense, Dense) and controller is not None and controller.law is not None):
        return None
    steps = np.arange(len(dense.h))
    if method.switches:
        steps, method = steps[np.asarray(dense.took, dtype=bool)], method.members[1]
    if not method.needs_jacobian or not steps.size:
        return None
    steps = np.sort(steps[np.argsort(np.abs(dense.h[steps]))[-SAMPLED:]])
    implicit = Dense(dense.problem, method, dense.t, dense.u, dense.h, dense.project)
    rhs, params, linear = array_form(dense.problem), dense.problem.params, implicit.stepper.linearisation
    mass = dense.problem.mass_matrix
    degrees = np.arange(1, len(method.extension_weights) + 1)
    worst = Interior(0.0, float(dense.t[0]))
    with np.errstate(all="ignore"):
        for i, polynomial in zip(steps, implicit.polynomials(steps), strict=True):
            t, u, h = float(dense.t[i]), dense.u[i], float(dense.h[i])
            J, _ = linear.derivatives(t, u, rhs(t, u, params))
            factors = linear.factor(J, method.gamma * h)
            for theta in PLACES:
                inside, time = u + theta**degrees @ polynomial, t + theta * h
                change = degrees * theta ** (degrees - 1) @ polynomial
                change = change if mass is None else mass.times(change)
                try:
                    defect = method.gamma * (h * rhs(time, inside, params) - change)
                except Exception:  # the user's, of a state that no step has asked for
                    continue
                scaled = linear.backsub(factors, defect) / (controller.atol + controller.rtol * np.abs(inside))
                ratio = float(np.sqrt(np.mean(scaled * scaled)))
                if ratio > worst.ratio:
                    worst = Interior(ratio, time)
    return worst


def interior_remark(trajectory) -> str:
    """An addition to the message of a run whose states within steps are much less exact than at their ends."""
    found = interior_error(trajectory)
    if found is None or not WORTH_SAYING <= found.ratio < np.inf:
        return ""
    return (
        f"; inside its steps states are less exact than at their ends, by {found.ratio:.0g} times the tolerance near "
        f"t = {found.t:.4g}, as components that are stiff follow others unseen: where states inside are asked for "
        "(`t_eval`, events, sol(t)), give a `max_step`"
    )
