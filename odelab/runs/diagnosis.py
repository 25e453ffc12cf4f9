"""The message of a run: what happened, when, to which component, and what would help."""

import numpy as np

from odelab.arrays import read_only
from odelab.linear.linearisation import Linearisation
from odelab.problem import array_form, in_array_form
from odelab.right_hand_side import IN_PLACE
from odelab.runs.failures import AHEAD, first_failures, has_blown_up, statuses_of
from odelab.runs.interior import interior_remark
from odelab.runs.limits import beyond_the_limit
from odelab.runs.loosened import end_remark
from odelab.status import Status

CLOSE = 100.0  # tolerances within which a component stays whose slope jumps back and forth: 0.2 to 45 are seen
MOST_UNSTABLE_STEPS = 3  # a run must have more steps to be judged unstable, as the last one is cut to land on t1
LAST_STEPS = 100  # how many of the last steps are examined for a slope that jumps back and forth


def success_message(trajectory) -> str:
    """The message of a successful run; it says so if stability, and not accuracy, chose the steps."""
    done = trajectory.ending or f"reached t = {trajectory.step_t[-1]:g} in {trajectory.steps} steps"
    done += undefined_events_remark(trajectory)
    if trajectory.controller is not None and not trajectory.controller.needs_error:
        return done + explosion_remark(trajectory)
    limit = trajectory.limit
    if limit is None:
        return done + (end_remark(trajectory) or interior_remark(trajectory))
    held = f"{done}; {100 * limit.share:.0f} % of them were held back by stability, not by accuracy:"
    if limit.remedy:
        return f"{held} {limit.cause}. The problem is stiff: {limit.remedy} would need far fewer steps"
    return f"{held} {limit.cause}"


def undefined_events_remark(trajectory) -> str:
    """Which events were not finite numbers, as an addition to a message; empty where all were."""
    said = [
        f"; event {number}{f' ({found.name})' if found.name else ''} was not a finite number on {found.undefined} of "
        f"{trajectory.steps} steps: no zero can be found there"
        for number, found in enumerate(trajectory.events)
        if found.undefined
    ]
    return "".join(said)


def explosion_remark(trajectory) -> str:
    """An addition to the message of a run of fixed steps that was unstable or has grown very large; empty otherwise."""
    said = ""
    if trajectory.method.is_explicit and trajectory.steps > MOST_UNSTABLE_STEPS:
        said = beyond_the_limit(trajectory)
    u = np.asarray(trajectory.end_u)
    if trajectory.problem is not None and has_blown_up(trajectory.problem.u0, u):
        component = int(np.abs(u).argmax())
        said += f"; component {component} has grown to {u[component]:.3g}"
    return said


def interrupted(t) -> str:
    """The message of a run that Ctrl-C has ended."""
    return f"interrupted at t = {t:g}; what was computed until then is kept"


def diagnose_budget(trajectory, amount, budget="max_steps") -> str:
    """The message of a run that took as many attempts as it was allowed, or as much time."""
    where = f"{budget} = {amount} spent at t = {trajectory.step_t[-1]:g}"
    limit = trajectory.limit
    if limit is None:
        component = chattering_component(trajectory)
        if component is not None:
            return (
                f"{where}; the slope of component {component} changes its sign from step to step: the right-hand side "
                "jumps back and forth across a surface along which the solution slides. Replace the jump by a steep "
                "smooth function (odelab.maths.tanh), or end the run there with an event and go on along the surface"
            )
        ease = "loosen the tolerance" if trajectory.controller.needs_error else "take larger steps"
        return f"{where}; raise {budget}, {ease}, or shorten `t_span`"
    use = f": use {limit.remedy}" if limit.remedy else ""
    return f"{where}; the step is limited by stability, {limit.cause}{use}, or raise {budget}"


def chattering_component(trajectory) -> int | None:
    """The component whose slope changed its sign again and again lately and did not shrink; None if none did.

    Where the error chooses the steps, such a component has stayed within some tolerances: an oscillation, of which an
    exact method may take a step for each half, has not. Linearly implicit methods take several steps to turn.
    """
    if trajectory.step_u is None or trajectory.steps < LAST_STEPS:
        return None
    slopes, states = (np.asarray(rows)[-LAST_STEPS:] for rows in (trajectory.slope, trajectory.step_u))
    turns = np.mean(slopes[1:] * slopes[:-1] < 0.0, axis=0)
    turning, controller = turns > 0.6, trajectory.controller
    if controller.needs_error:
        stays = np.ptp(states, axis=0) <= CLOSE * (controller.atol + controller.rtol * np.abs(states).min(axis=0))
        turning = (turns > 0.2) & stays
    lasting = np.abs(slopes[LAST_STEPS // 2 :]).mean(axis=0) > 0.5 * np.abs(slopes[: LAST_STEPS // 2]).mean(axis=0)
    found = np.flatnonzero(turning & lasting)
    return int(found[0]) if found.size else None


def leaves_domain(problem, t, u, last_step) -> bool:
    """Is the right-hand side not finite a little later, at the same state?"""
    rhs = array_form(problem)
    with np.errstate(all="ignore"):
        return not all(np.isfinite(rhs(t + times * last_step, u, problem.params)).all() for times in AHEAD)


def diagnose_stop(problem, method, state, last_step, gave_up, project=None) -> tuple[str, str]:
    """(status, message) of a run whose step became too small or whose judge gave up.

    The cause is found by repeating the last attempt.
    """
    t, u = state.t, np.asarray(state.u)
    said = "" if project is None else projection_message(problem, method, t, u, last_step, project)
    if method.needs_jacobian and not said and not leaves_domain(problem, t, u, last_step):
        said = insoluble_message(problem, t, u, method.gamma * last_step)
        said = said or (unsolved_message(problem, method, t, u, last_step) if gave_up else "")
    if said:
        return Status.NOT_FINITE.word, said
    with np.errstate(all="ignore"):
        for times in (1,) if gave_up else AHEAD:
            known = (array_form(problem), method, problem.params, t, u)
            failure = first_failures(*known, times * last_step, problem.mass_matrix)
            if failure.found[0]:
                break
    grown = bool(has_blown_up(problem.u0, u))
    cause = Status(int(statuses_of(grown, failure.found, failure.overflowed, gave_up)[0]))
    if cause is Status.BLOW_UP and grown:
        message = blow_up_message(t, u)
        if gave_up:
            message += "; or the fixed step is beyond the stability limit: take smaller steps or an adaptive controller"
    elif cause is Status.BLOW_UP:
        message = (
            f"the step from t = {t:.9g} overflowed in component {failure.component[0]}: the fixed step is far beyond "
            "the stability limit or the solution blows up; take smaller steps or an adaptive controller"
        )
    elif failure.found[0]:
        place = float(failure.t[0]), failure.u[:, 0]  # a Python float, for which 1 / 0 raises, as in the run
        message = not_finite_message(problem, *place, int(failure.component[0]), float(failure.value[0]))
    else:
        message = (
            f"the step fell below the spacing of t, {np.spacing(abs(t)):.2g}, at t = {t:.17g}: the solution has a "
            "singularity or the right-hand side a jump there, or the tolerance asks for more than double precision "
            "gives; loosen `rtol` and `atol`, locate the jump as an event, end `t_span` before, or count time from "
            "another origin where |t| is large"
        )
    return cause.word, message


def projection_message(problem, method, t, u, last_step, project) -> str:
    """The message if the projection has no finite value at a new state that is finite; empty if it has."""
    rhs = array_form(problem)
    with np.errstate(all="ignore"):
        for times in AHEAD:
            weighed = () if problem.mass is None else (problem.mass_matrix,)
            reached = np.asarray(method.one_step(rhs, problem.params, t, u, times * last_step, *weighed))
            projected = np.asarray(project(reached.copy()), dtype=float)
            bad = np.flatnonzero(~np.isfinite(projected))
            if np.isfinite(reached).all() and bad.size:
                return (
                    f"`project` returned {projected[bad[0]]} in component {bad[0]} soon after t = {t:.9g}, though the "
                    f"state is finite there, {reached[bad[0]]:.9g}: it must return a finite number for every component "
                    "of every state that a step reaches"
                )
    return ""


def insoluble_message(problem, t, u, hg) -> str:
    """The message if the matrix I - hg J makes a step from (t, u) impossible; empty if the cause is another one.

    Either a derivative is not finite there, although the right-hand side is. Or the matrix is singular, which is an
    accident of the step size: an adaptive run takes another size, a run with fixed steps cannot.
    """
    rhs = array_form(problem)
    with np.errstate(all="ignore"):
        slope = rhs(t, u, problem.params)
        if not np.isfinite(slope).all():
            return ""
        linear = Linearisation(problem, rhs)
        J, slope_t = linear.derivatives(t, u, slope)
        regular = np.isfinite(linear.backsub(linear.factor(J, hg), np.ones_like(slope))).all()
    entries = np.asarray(J.toarray() if hasattr(J, "toarray") else J)
    bad = np.argwhere(~np.isfinite(entries))
    in_time = np.broadcast_to(slope_t, u.shape)
    late = np.flatnonzero(~np.isfinite(in_time))
    if not (len(bad) or len(late)):
        unit, of = ("I", "the Jacobian") if problem.mass is None else ("M", "the pencil (J, M)")
        singular = (
            f"the matrix {unit} - h gamma J of the step from t = {t:.9g} is singular, as an eigenvalue of {of} is "
            f"1 / (h gamma) = {1.0 / hg:.6g}: take another step size, or odelab.adaptive"
        )
        return "" if regular else singular
    if len(bad):
        row, column = bad[0]
        what = f"the derivative of component {row} with respect to component {column} is {entries[row, column]}"
    else:
        what = f"the derivative of component {late[0]} with respect to time is {in_time[late[0]]}"
    own = "check `jacobian`" if problem.jacobian is not None else "give the problem a `jacobian` that is finite there"
    return (
        f"the Jacobian is not finite at t = {t:.9g}: {what}, though the right-hand side is finite there "
        f"({linear.how}); a linearly implicit method cannot step from such a state: {own}, start beside it, or take an "
        "explicit method"
    )


def unsolved_message(problem, method, t, u, h) -> str:
    """The message if a step of fixed size refuses itself, as its stages could not be solved; empty otherwise.

    It does where its new state is NaN, although the stages are finite.
    """
    rhs, params = array_form(problem), problem.params
    with np.errstate(all="ignore"):
        stepper = method.stepper(problem, rhs)
        known = stepper.prepare(t, u, rhs(t, u, params), params)
        u_new, _, _, returned, _ = stepper.step(rhs, params, t, u, known, h, h)
    if np.isfinite(u_new).all() or not np.isfinite(returned).all():
        return ""
    return (
        f"Newton's method does not solve the stages of {method.name} for the step from t = {t:.9g}: take smaller "
        "steps, or odelab.adaptive, which finds their size"
    )


def blow_up_message(t, u) -> str:
    """The message of a run whose solution has grown without bound."""
    component = int(np.abs(u).argmax())
    return (
        f"the solution blows up near t = {t:.9g}: component {component} has reached {u[component]:.3g}; end `t_span` "
        "before, or check the sign of the right-hand side"
    )


def not_finite_message(problem, t, u, component, value) -> str:
    """The message about a right-hand side that has no finite value at (t, u).

    With plain numbers a division by zero raises an error; then the message quotes it.
    """
    if problem.form == IN_PLACE and np.isnan(value):
        fault = fault_of_unset(problem, t, u, component)
        if fault:
            return (
                f"the right-hand side left component {component} at nan at t = {t:.9g}; {fault}: an in-place "
                "right-hand side must assign every `out[i]`, and nothing it returns is used"
            )
    did = f"returned {value} in component {component}"
    try:
        in_array_form(problem)(problem.seen(t), u, problem.params)
    except (ArithmeticError, ValueError) as error:
        did = f"raised {type(error).__name__} ({error})"
    return (
        f"the right-hand side {did} at t = {t:.9g}; a square root or logarithm of a negative number, a division by "
        "zero or an overflow: guard it inside the function, as in sqrt(max(u, 0)), as stages leave the domain before "
        "states do; or end the run with an event, or `t_span`, before"
    )


def fault_of_unset(problem, t, u, component) -> str:
    """What an in-place right-hand side did wrong with a component of `out`; empty if nothing.

    It is called twice, with `out` filled by different numbers: a component that keeps them was never set.
    """
    found = []
    for before in (0.7310585786300049, -2.718281828459045):
        out = np.full(len(u), before)
        problem.rhs(problem.seen(t), read_only(np.asarray(u)), problem.params, out)
        found.append((out[component], before))
    if all(after == before for after, before in found):
        return f"`out[{component}]` was never set"
    same = found[0][0] == found[1][0] or np.isnan(found[0][0])
    return "" if same else f"`out[{component}]` was read before it was set"
