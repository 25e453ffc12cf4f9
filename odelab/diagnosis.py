"""The words a run ends with: what happened, when, to which component, and what would help."""

import numpy as np

from odelab import stability
from odelab.problem import array_form

REMEDY = "an implicit method (odelab.RADAU)"
BLOWN_UP = 1e8  # times the size of the initial state


def success(trajectory) -> str:
    """The message of a run that got through, saying so where stability and not accuracy chose the steps."""
    done = f"reached t = {trajectory.step_t[-1]:g} in {trajectory.steps} steps"
    share, typical, boundary = held_back(trajectory)
    if share < 0.3:
        return done
    return (
        f"{done}; {100 * share:.0f} % of them were held back by stability, not by accuracy: h*rho = {typical:.2f} "
        f"where the boundary is {boundary:.2f}. The problem is stiff: {REMEDY} would need far fewer steps"
    )


def held_back(trajectory) -> tuple[float, float, float]:
    """(share of steps at the stability boundary, median of h*rho there, the boundary) of an adaptive explicit run."""
    method, controller = trajectory.method, trajectory.controller
    if (
        trajectory.steps < 10
        or controller is None
        or not controller.needs_error
        or not hasattr(method, "real_boundary")
    ):
        return 0.0, 0.0, 0.0
    values = stability.sampled(trajectory)
    boundary = method.real_boundary
    near = values[values >= stability.NEAR * boundary]
    if not near.size:
        return 0.0, 0.0, boundary
    return near.size / values.size, float(np.median(near)), boundary


def budget_spent(trajectory, max_steps) -> str:
    where = f"max_steps = {max_steps} spent at t = {trajectory.step_t[-1]:g}"
    share, typical, boundary = held_back(trajectory)
    if share < 0.3:
        return f"{where}; raise max_steps, loosen the tolerance, or shorten `t_span`"
    return (
        f"{where}; the step is limited by stability, h*rho = {typical:.2f} where the boundary is {boundary:.2f}: "
        f"use {REMEDY}, or raise max_steps"
    )


def stopped(problem, method, state, last_step, gave_up) -> tuple[str, str]:
    """(status, message) of a run whose step was lost or whose judge gave up, found by looking at the last attempt."""
    t, u = state.t, np.asarray(state.u)
    with np.errstate(all="ignore"):
        place = first_failure(problem, method, t, u, last_step)
    size = float(np.abs(u).max()) if np.isfinite(u).all() else np.inf
    if size > BLOWN_UP * max(1.0, float(np.abs(problem.u0).max())):
        component = int(np.abs(u).argmax())
        return "blow_up", (
            f"the solution blows up near t = {t:.9g}: component {component} has reached {u[component]:.3g}; "
            "end `t_span` before, or check the sign of the right-hand side"
        )
    if place is not None:
        time, component, value, what = place
        if gave_up and what == "state" and np.isinf(value):
            return "blow_up", (
                f"the step from t = {t:.9g} overflowed in component {component}: the fixed step is far beyond the "
                f"stability limit or the solution blows up; take smaller steps or an adaptive controller"
            )
        return "not_finite", (
            f"the right-hand side returned {value} in component {component} at t = {time:.9g}; a square root or "
            "logarithm of a negative number, a division by zero or an overflow: keep the state in its domain "
            "(`project=`), or end `t_span` before"
        )
    return "step_too_small", (
        f"the step fell below the spacing of t at t = {t:.17g}: the solution has a singularity or the right-hand side "
        "a jump there, or the tolerance asks for more than double precision gives; loosen `rtol` and `atol`, locate "
        "the jump as an event, or end `t_span` before"
    )


def first_failure(problem, method, t, u, h):
    """(t, component, value, "slope" or "state") of the first number of a step that is not finite, or None."""
    rhs = array_form(problem)
    rows, b, _, c, _, _ = method.floats
    slopes: list[np.ndarray] = []
    for i in range(method.stages):
        inner = u + h * sum((w * k for w, k in zip(rows[i], slopes, strict=False) if w), np.zeros_like(u))
        time = t + c[i] * h
        for values, what in ((inner, "state"), (np.asarray(rhs(time, inner, problem.params)), "slope")):
            bad = np.flatnonzero(~np.isfinite(values))
            if bad.size:
                return time, int(bad[0]), float(values[bad[0]]), what
        slopes.append(np.array(values))
    u_new = u + h * sum((w * k for w, k in zip(b, slopes, strict=True) if w), np.zeros_like(u))
    bad = np.flatnonzero(~np.isfinite(u_new))
    return (t + h, int(bad[0]), float(u_new[bad[0]]), "state") if bad.size else None
