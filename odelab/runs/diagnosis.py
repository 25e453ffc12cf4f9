"""The message of a run: what happened, when, to which component, and what would help."""

import contextlib
from typing import NamedTuple

import numpy as np

from odelab.arrays import read_only
from odelab.engines import Status
from odelab.linear.linearisation import Linearisation
from odelab.methods import chebyshev
from odelab.methods.rosenbrock import RosenbrockMethod
from odelab.methods.spectral_radius import leading_eigenvalue, spectral_radius
from odelab.methods.stabilised import StabilisedMethod
from odelab.methods.tableau import Method
from odelab.problem import IN_PLACE, array_form, in_array_form
from odelab.stiffness import h_rho as stability

IMPLICIT = "an implicit method (odelab.RODAS4)"
STABILISED = f"odelab.RKC2, as the leading eigenvalues are real, or {IMPLICIT}"
HELD_BACK = 0.3  # a message mentions stability if it limited at least this share of the sampled steps
# No run stays at an h rho of more than 1.2 times the boundary: where the stages give such a value, it is estimated
# anew.
BEYOND = 1.2
# A lost step is so small that the rounded states it visits may all lie inside the domain, although the solution is
# about to leave it. To find the cause, steps of up to 1,024 times that size are tried.
AHEAD = 4 ** np.arange(6)
GROWTH = 1.003  # a fixed step is called unstable if |R(h lambda)| exceeds the growth of the solution by this factor
MOST_UNSTABLE_STEPS = 3  # a run must have more steps to be judged unstable, as the last one is cut to land on t1
LAST_STEPS = 100  # how many of the last steps are examined for a slope that jumps back and forth
BLOWN_UP = 1e8  # a solution has blown up if it has reached this many times the size of the initial state

# The next three are for stabilised methods, whose stability region is a narrow strip along the negative real axis.
EDGE = 0.95  # |R| above this means the edge of the region: inside, a damped Chebyshev polynomial stays below it
RESOLVED = 0.1  # a mode with |h lambda| below this is resolved and not damped, so that |R| near 1 is right for it
COMPLEX = 0.15  # |Im lambda| / |lambda| up to this (just under 9 degrees) lies inside the strip


def success(trajectory) -> str:
    """The message of a successful run; it says so if stability, and not accuracy, chose the steps."""
    done = f"reached t = {trajectory.step_t[-1]:g} in {trajectory.steps} steps{undefined_events(trajectory)}"
    if trajectory.controller is not None and not trajectory.controller.needs_error:
        return done + explosion(trajectory)
    limit = trajectory.limit
    if limit is None:
        return done
    held = f"{done}; {100 * limit.share:.0f} % of them were held back by stability, not by accuracy:"
    if limit.remedy:
        return f"{held} {limit.cause}. The problem is stiff: {limit.remedy} would need far fewer steps"
    return f"{held} {limit.cause}"


def undefined_events(trajectory) -> str:
    """Which events were not finite numbers, as an addition to a message; empty where all were."""
    said = [
        f"; event {number}{f' ({found.name})' if found.name else ''} was not a finite number on {found.undefined} of "
        f"{trajectory.steps} steps: no zero can be found there"
        for number, found in enumerate(trajectory.events)
        if found.undefined
    ]
    return "".join(said)


def explosion(trajectory) -> str:
    """An addition to the message of a run of fixed steps that was unstable or has grown very large; empty otherwise."""
    said = ""
    if isinstance(trajectory.method, Method) and trajectory.steps > MOST_UNSTABLE_STEPS:
        said = beyond_the_limit(trajectory)
    u = np.asarray(trajectory.end_u)
    if trajectory.problem is not None and has_blown_up(trajectory.problem.u0, u):
        component = int(np.abs(u).argmax())
        said += f"; component {component} has grown to {u[component]:.3g}"
    return said


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


class Limit(NamedTuple):
    """How stability limited a run: the share of its steps that were limited, the evidence, and a better method."""

    share: float
    cause: str
    remedy: str = ""  # empty if `cause` names it already


def stability_limit(trajectory) -> Limit | None:
    """How stability limited an adaptive explicit run; None if it chose less than 30 % of the steps."""
    method, controller = trajectory.method, trajectory.controller
    if trajectory.steps < 10 or controller is None or not controller.needs_error:
        return None
    if isinstance(method, StabilisedMethod):
        beside = beside_the_strip(trajectory)
        return Limit(beside.share, reason_beside(beside)) if beside.share >= HELD_BACK else None
    if not isinstance(method, Method):
        return None
    t, u, h, values = looked_at_steps(trajectory)
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


def looked_at_steps(trajectory):
    """(t, u, h, h rho) of steps spread over a run.

    A run that kept no states has recorded its h rho, whatever its engine; where a spectrum is needed, it is taken at
    the last state.
    """
    chosen, t, u, h = stability.samples(trajectory)
    if trajectory.step_u is None:
        return t, u, h, np.array(trajectory.h_rho[chosen])
    return t, u, h, stability.h_rho(trajectory.problem, trajectory.method, t, u, h)


def is_real(eigenvalue: complex) -> bool:
    return eigenvalue.real < 0 and abs(eigenvalue.imag) <= COMPLEX * abs(eigenvalue)


def diagnose_budget(trajectory, max_steps) -> str:
    where = f"max_steps = {max_steps} spent at t = {trajectory.step_t[-1]:g}"
    limit = trajectory.limit
    if limit is None:
        component = chattering(trajectory)
        if component is not None:
            return (
                f"{where}; the slope of component {component} changes its sign from step to step: the right-hand side "
                "jumps back and forth across a surface along which the solution slides. Replace the jump by a steep "
                "smooth function (odelab.maths.tanh), or end the run there with an event and go on along the surface"
            )
        ease = "loosen the tolerance" if trajectory.controller.needs_error else "take larger steps"
        return f"{where}; raise max_steps, {ease}, or shorten `t_span`"
    use = f": use {limit.remedy}" if limit.remedy else ""
    return f"{where}; the step is limited by stability, {limit.cause}{use}, or raise max_steps"


def chattering(trajectory) -> int | None:
    """The component whose slope changed its sign on most of the last steps and did not shrink; None if none did."""
    if trajectory.step_u is None or trajectory.steps < LAST_STEPS:
        return None
    slopes = np.asarray(trajectory.slope)[-LAST_STEPS:]
    turns = np.mean(slopes[1:] * slopes[:-1] < 0.0, axis=0)
    lasting = np.abs(slopes[LAST_STEPS // 2 :]).mean(axis=0) > 0.5 * np.abs(slopes[: LAST_STEPS // 2]).mean(axis=0)
    found = np.flatnonzero((turns > 0.6) & lasting)
    return int(found[0]) if found.size else None


def diagnose_stop(problem, method, state, last_step, gave_up, project=None) -> tuple[str, str]:
    """(status, message) of a run whose step became too small or whose judge gave up.

    The cause is found by repeating the last attempt.
    """
    t, u = state.t, np.asarray(state.u)
    said = "" if project is None else undefined_projection(problem, method, t, u, last_step, project)
    if isinstance(method, RosenbrockMethod) and not said:
        said = insoluble(problem, t, u, method.gamma * last_step)
    if said:
        return Status.NOT_FINITE.word, said
    with np.errstate(all="ignore"):
        for times in (1,) if gave_up else AHEAD:
            failure = first_failures(array_form(problem), method, problem.params, t, u, times * last_step)
            if failure.found[0]:
                break
    grown = bool(has_blown_up(problem.u0, u))
    cause = Status(int(causes(grown, failure.found, failure.overflowed, gave_up)[0]))
    if cause is Status.BLOW_UP and grown:
        message = blown_up(t, u)
        if gave_up:
            message += "; or the fixed step is beyond the stability limit: take smaller steps or an adaptive controller"
    elif cause is Status.BLOW_UP:
        message = (
            f"the step from t = {t:.9g} overflowed in component {failure.component[0]}: the fixed step is far beyond "
            "the stability limit or the solution blows up; take smaller steps or an adaptive controller"
        )
    elif cause is Status.NOT_FINITE:
        place = float(failure.t[0]), failure.u[:, 0]  # a Python float, for which 1 / 0 raises, as in the run
        message = not_finite(problem, *place, int(failure.component[0]), float(failure.value[0]))
    else:
        message = (
            f"the step fell below the spacing of t, {np.spacing(abs(t)):.2g}, at t = {t:.17g}: the solution has a "
            "singularity or the right-hand side a jump there, or the tolerance asks for more than double precision "
            "gives; loosen `rtol` and `atol`, locate the jump as an event, end `t_span` before, or count time from "
            "another origin where |t| is large"
        )
    return cause.word, message


def undefined_projection(problem, method, t, u, last_step, project) -> str:
    """The message if the projection has no finite value at a new state that is finite; empty if it has."""
    rhs = array_form(problem)
    with np.errstate(all="ignore"):
        for times in AHEAD:
            reached = np.asarray(method.one_step(rhs, problem.params, t, u, times * last_step))
            projected = np.asarray(project(reached.copy()), dtype=float)
            bad = np.flatnonzero(~np.isfinite(projected))
            if np.isfinite(reached).all() and bad.size:
                return (
                    f"`project` returned {projected[bad[0]]} in component {bad[0]} soon after t = {t:.9g}, though the "
                    f"state is finite there, {reached[bad[0]]:.9g}: it must return a finite number for every component "
                    "of every state that a step reaches"
                )
    return ""


def insoluble(problem, t, u, hg) -> str:
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
        singular = (
            f"the matrix I - h gamma J of the step from t = {t:.9g} is singular, as an eigenvalue of the Jacobian is "
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


def has_blown_up(u0, u):
    """Is a state, or each column of (n, m), so much larger than the initial one that the solution must have a pole?"""
    return np.abs(u).max(axis=0) > BLOWN_UP * np.maximum(1.0, np.abs(u0).max(axis=0))


def blown_up(t, u) -> str:
    component = int(np.abs(u).argmax())
    return (
        f"the solution blows up near t = {t:.9g}: component {component} has reached {u[component]:.3g}; end `t_span` "
        "before, or check the sign of the right-hand side"
    )


def not_finite(problem, t, u, component, value) -> str:
    """The message about a right-hand side that has no finite value at (t, u).

    With plain numbers a division by zero raises an error; then the message quotes it.
    """
    if problem.form == IN_PLACE and np.isnan(value):
        fault = unset(problem, t, u, component)
        if fault:
            return (
                f"the right-hand side left component {component} at nan at t = {t:.9g}; {fault}: an in-place "
                "right-hand side must assign every `out[i]`, and nothing it returns is used"
            )
    did = f"returned {value} in component {component}"
    try:
        in_array_form(problem)(t, u, problem.params)
    except (ArithmeticError, ValueError) as error:
        did = f"raised {type(error).__name__} ({error})"
    return (
        f"the right-hand side {did} at t = {t:.9g}; a square root or logarithm of a negative number, a division by "
        "zero or an overflow: keep the state in its domain (`project=`), or end `t_span` before"
    )


def unset(problem, t, u, component) -> str:
    """What an in-place right-hand side did wrong with a component of `out`; empty if nothing.

    It is called twice, with `out` filled by different numbers: a component that keeps them was never set.
    """
    found = []
    for before in (0.7310585786300049, -2.718281828459045):
        out = np.full(len(u), before)
        problem.rhs(t, read_only(np.asarray(u)), problem.params, out)
        found.append((out[component], before))
    if all(after == before for after, before in found):
        return f"`out[{component}]` was never set"
    same = found[0][0] == found[1][0] or np.isnan(found[0][0])
    return "" if same else f"`out[{component}]` was read before it was set"


class Failures(NamedTuple):
    """For a step from each column, the first number that was not finite: time and state, component, and its value.

    `found` (m,) tells which columns have such a number, `in_state` whether it was part of a state or of a slope.
    """

    found: np.ndarray
    t: np.ndarray
    u: np.ndarray  # (n, m)
    component: np.ndarray
    value: np.ndarray
    in_state: np.ndarray

    @property
    def overflowed(self) -> np.ndarray:
        """For each column: was an infinite state the first number that was not finite?"""
        return self.found & self.in_state & np.isinf(self.value)


class AllFound(Exception):
    """Every column has failed: the step need not be finished."""


def first_failures(rhs, method, params, t, u, h) -> Failures:
    """The first number that is not finite in a step of size h from each column of u (n, m), or from one state (n,)."""
    u = np.asarray(u)
    m = 1 if u.ndim == 1 else u.shape[1]
    first = Failures(
        np.zeros(m, bool), np.zeros(m), np.zeros((len(u), m)), np.zeros(m, int), np.zeros(m), np.zeros(m, bool)
    )

    def look(time, states, values, in_state):
        columns = values.reshape(len(values), m)
        bad = ~np.isfinite(columns)
        new = np.flatnonzero(bad.any(axis=0) & ~first.found)
        first.component[new] = bad[:, new].argmax(axis=0)
        first.value[new] = columns[first.component[new], new]
        first.found[new], first.in_state[new] = True, in_state
        first.t[new], first.u[:, new] = np.broadcast_to(time, m)[new], states.reshape(len(states), m)[:, new]
        if first.found.all():
            raise AllFound

    def watch_and_call(time, states, params):
        look(time, states, states, True)
        slopes = np.asarray(rhs(time, states, params), dtype=float)
        look(time, states, slopes, False)
        return slopes

    with contextlib.suppress(AllFound):
        end = method.one_step(watch_and_call, params, t, u, h)
        look(t + h, end, end, True)
    return first


def causes(grown, found, overflowed, gave_up) -> np.ndarray:
    """The status of each of some failed runs.

    grown        whether the state is so large that the solution must have a pole
    found        whether the last step met a number that is not finite
    overflowed   whether that number was an infinite state
    gave_up      whether steps are fixed, so that the judge gave up instead of making the step smaller
    """
    return np.where(
        grown | (overflowed & gave_up), Status.BLOW_UP, np.where(found, Status.NOT_FINITE, Status.STEP_LOST)
    )
