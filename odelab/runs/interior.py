"""How exact linearly implicit steps are between their ends, which the control of step sizes does not see."""

import functools
import math
from typing import NamedTuple

import numpy as np

from odelab.methods.extension import LOOKED_AT, squared_error_inside
from odelab.problem import array_form
from odelab.runs.dense import Dense

WORTH_SAYING = 100.0  # times the tolerance; in the catalogue it is 50 at most, but for Prothero-Robinson
DOUBTFUL = 3.0  # times the tolerance, of the other steps of a run where this is worth saying
SAMPLED = 12  # steps that are looked at, the longest


class Interior(NamedTuple):
    """The largest error that was found within steps, over the tolerance, and where."""

    ratio: float
    t: float


def interior_error(trajectory) -> Interior | None:
    """The error of the dense output within the longest linearly implicit steps; None where there are none."""
    controller = trajectory.controller
    if controller is None or controller.law is None:
        return None
    pieces = [
        (dense, implicit_steps(dense)) for dense in getattr(trajectory.interpolant, "pieces", [trajectory.interpolant])
    ]
    lengths = np.concatenate([np.zeros(0), *(np.abs(dense.h[steps]) for dense, steps in pieces if steps.size)])
    if not lengths.size:
        return None
    least = np.sort(lengths)[-SAMPLED:][0]
    found = [
        interior_errors(dense, controller, steps[np.abs(dense.h[steps]) >= least])
        for dense, steps in pieces
        if steps.size
    ]
    ratios, times = (np.concatenate(columns) for columns in zip(*found, strict=True))
    worst = int(np.argmax(ratios))
    return Interior(float(ratios[worst]), float(times[worst]))


def implicit_steps(dense, first: int = 0, last: int | None = None) -> np.ndarray:
    """The numbers of the steps from `first` to before `last` that a method with a Jacobian has taken."""
    if not isinstance(dense, Dense):
        return np.zeros(0, int)
    steps = np.arange(first, len(dense.h) if last is None else last)
    if dense.method.switches:
        return steps[np.asarray(dense.took, dtype=bool)[steps]]
    return steps if dense.method.needs_jacobian else steps[:0]


def doubtful_steps(dense, controller, steps) -> np.ndarray:
    """Which of some steps with a Jacobian have doubtful states inside; all are looked at if a long one clearly has."""
    if controller is None or controller.law is None or not len(steps):
        return np.zeros(0, int)
    order = np.argsort(-np.abs(dense.h[steps]), kind="stable")
    longest, others = np.sort(steps[order[:SAMPLED]]), steps[order[SAMPLED:]]
    ratios = interior_errors(dense, controller, longest)[0]
    if not ((ratios >= WORTH_SAYING) & (ratios < np.inf)).any():
        return steps[:0]
    ratios = np.append(ratios, interior_errors(dense, controller, others)[0])
    return np.sort(np.append(longest, others)[ratios >= DOUBTFUL])


def doubtful_time(interpolant, controller, times) -> float | None:
    """One of some times at which the dense output of a run is much less exact than the ends of its steps; or None."""
    for dense in getattr(interpolant, "pieces", [interpolant]):
        implicit = implicit_steps(dense)
        if not implicit.size:
            continue
        forward = np.sign(dense.t[-1] - dense.t[0])
        inside = times[(forward * (times - dense.t[0]) > 0.0) & (forward * (dense.t[-1] - times) > 0.0)]
        inside = inside[~np.isin(inside, dense.t)]
        numbers = np.searchsorted(forward * dense.t, forward * inside) - 1
        doubtful = np.isin(numbers, doubtful_steps(dense, controller, np.intersect1d(numbers, implicit)))
        inside, numbers = inside[doubtful], numbers[doubtful]
        alone = implicit_alone(dense)
        for k in np.unique(np.linspace(0, len(inside) - 1, SAMPLED).astype(int)) if len(inside) else ():
            i, time = int(numbers[k]), float(inside[k])
            if errors_at(alone, controller, i, [(time - dense.t[i]) / dense.h[i]])[0] >= WORTH_SAYING:
                return time
    return None


def interior_errors(dense, controller, steps) -> tuple[np.ndarray, np.ndarray]:
    """The error of the dense output within each of some linearly implicit steps over the tolerance, and where."""
    if dense.look_inside is not None:
        squares, fractions = dense.look_inside(dense.t[steps], dense.u[steps], dense.h[steps])
        return np.sqrt(squares / dense.u.shape[1]), dense.t[steps] + fractions * dense.h[steps]
    implicit = implicit_alone(dense)
    found = [errors_at(implicit, controller, int(i), LOOKED_AT) for i in steps]
    worst = [int(np.argmax(ratios)) for ratios in found]
    ratios = np.array([row[k] for row, k in zip(found, worst, strict=True)])
    return ratios, dense.t[steps] + np.array(LOOKED_AT)[worst] * dense.h[steps]


def implicit_alone(dense: Dense) -> Dense:
    """What repeats the linearly implicit steps of a run."""
    return Dense(dense.problem, dense.method.members[-1], dense.t, dense.u, dense.h, dense.project)


def errors_at(implicit: Dense, controller, i: int, fractions) -> list[float]:
    """The errors of the dense output at some fractions of step i, over the tolerance; 0 where user code raises."""
    problem, method, linear = implicit.problem, implicit.method, implicit.stepper.linearisation
    rhs, params, weigh = array_form(problem), problem.params, problem.weigh
    t, u, h = float(implicit.t[i]), implicit.u[i], float(implicit.h[i])
    ratios = []
    with np.errstate(all="ignore"):
        (polynomial,) = implicit.polynomials(np.array([i]))
        J, _ = linear.derivatives(t, u, rhs(t, u, params))
        solve = functools.partial(linear.backsub, linear.factor(J, method.gamma * h))
        for theta in fractions:
            step = params, t, u, h, polynomial, theta, method.gamma
            try:
                square = squared_error_inside(rhs, *step, solve, controller.rtol, controller.atol, weigh)
            except Exception:  # the user's, of a state that no step has asked for
                square = 0.0
            ratios.append(0.0 if math.isnan(square) else math.sqrt(square / len(u)))
    return ratios


def interior_remark(trajectory) -> str:
    """An addition to the message of a run whose states within steps are much less exact than at their ends."""
    found = interior_error(trajectory)
    if found is None or not WORTH_SAYING <= found.ratio < np.inf:
        return ""
    return (
        f"; inside its steps states are less exact than at their ends, by {found.ratio:.0g} times the tolerance near "
        f"t = {found.t:.4g}, as components that are stiff follow others unseen: where states inside are asked for "
        '(sol(t), `t_eval`), give `t_eval_by="step"` or a `max_step`'
    )
