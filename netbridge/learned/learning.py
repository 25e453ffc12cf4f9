"""Training of a `LearnedController` on the best steps of a method, which its error estimates determine."""

import math

import numpy as np
import torch

import odelab
from netbridge.learned.controller import LearnedController
from odelab.control.controllers import SET_POINT, error_ratio

STRETCH = 6.0  # how much more a step too long costs than one too short: it is rejected, the other is only small
ROUNDS = 8  # of the iteration for the best step
ROLLS = 12  # runs from which the states are taken


def learn_controller(
    problem: odelab.Problem,
    method: odelab.Method = odelab.DOPRI5,
    rtol: tuple[float, float] = (1e-8, 1e-4),
    atol_ratio: float = 1e-3,
    states: int = 3000,
    rounds: int = 1500,
    hidden: int = 48,
    spread: float = 0.1,
    seed: int = 0,
) -> LearnedController:
    """Train a step-size controller for one problem and method, in about half a minute.

    States are taken from runs of the problem that start near its own initial state. At each of them the step is found
    whose error is what the tolerance allows, and a small network learns that step from the state and its slope.

    problem     the Problem; best an autonomous one, where the state alone decides the step
    method      a Method with an error estimate; DOPRI5
    rtol        the range of relative tolerances it shall serve, (smallest, largest); each state gets one from it
    atol_ratio  the absolute tolerance is this times the relative one; 1e-3
    states      how many states to learn from; 3000
    rounds      of gradient descent (Adam); 1500
    hidden      units of the network's hidden layers; 48
    spread      standard deviation of the runs' initial states, relative to the problem's own; 0.1
    seed        of everything that is drawn; 0

    Returns a LearnedController. Raises TypeError for what is no problem, ValueError for a method
    without an error estimate.

    >>> import netbridge as nb, odelab as ol
    >>> problem = ol.problems.van_der_pol(mu=2.0).replace(t_span=(0.0, 3.0))
    >>> learned = nb.learn_controller(problem, ol.DOPRI5, states=100, rounds=20)
    >>> ol.solve(problem, ol.DOPRI5, learned.controller(rtol=1e-5)).ok
    True
    """
    if not isinstance(problem, odelab.Problem):
        raise TypeError(
            f"`problem` must be a Problem, got {type(problem).__name__}; odelab.problems has them by name, such as "
            "odelab.problems.van_der_pol(mu=2.0)."
        )
    if not method.embedded:
        raise ValueError(f"`method` = {method.name} has no error estimate to learn from; take DOPRI5, RKF45 or BS32.")
    low, high = sorted(rtol)
    random = np.random.default_rng(seed)
    u, start = visited_states(problem, method, (low, high), atol_ratio, states, spread, random)
    tolerances = np.exp(random.uniform(math.log(low), math.log(high), len(u)))
    slope, h, settled = best_steps(problem, method, u, start, tolerances, atol_ratio)
    u, slope, h, tolerances = u[settled], slope[settled], h[settled], tolerances[settled]
    module = LearnedController(problem.size, hidden, seed)
    module.method, module.problem, module.rtol, module.atol_ratio = method.name, problem.name, (low, high), atol_ratio
    fit(module, u, slope, np.log(tolerances)[:, None], np.log(h)[:, None], rounds)
    return module


def visited_states(problem, method, rtol, atol_ratio, states, spread, random):
    """States that runs pass through, and the sizes of the steps they took there."""
    found, sizes = [], []
    for _ in range(ROLLS):
        scale = 1.0 + spread * random.standard_normal(problem.size)
        tolerance = math.exp(random.uniform(math.log(rtol[0]), math.log(rtol[1])))
        run = odelab.solve(
            problem.replace(u0=problem.u0 * scale),
            method,
            odelab.adaptive(tolerance, atol_ratio * tolerance, law="h211b"),
            throw=False,
        )
        if run.steps:
            found.append(run.step_u[:-1])
            sizes.append(np.abs(run.h) / tolerance ** (1.0 / method.error_order))
    u, h = np.concatenate(found), np.concatenate(sizes)
    chosen = random.choice(len(u), min(states, len(u)), replace=False)
    return u[chosen], h[chosen]


def best_steps(problem, method, u, start, tolerances, atol_ratio):
    """Slopes, the steps whose error is theta^k of the tolerance, and where the iteration has settled; a batch at once.

    The same step and the same measure of error that `solve` will use.
    """
    order = method.error_order
    direction = math.copysign(1.0, problem.t_span[1] - problem.t_span[0])
    rhs = by_columns(problem)
    state = u.T
    slope = rhs(problem.t_span[0], state, problem.params)
    h = start * tolerances ** (1.0 / order)
    target = SET_POINT**order
    for _ in range(ROUNDS):
        errors, new = attempt(rhs, problem, method, state, slope, direction * h)
        ratio = np.array(
            [
                error_ratio([e[:, i] for e in errors], state[:, i], new[:, i], tol, atol_ratio * tol)
                for i, tol in enumerate(tolerances)
            ]
        )
        off = np.where(np.isfinite(ratio), (np.maximum(ratio, 1e-12) / target) ** (-1.0 / order), 0.1)
        h = h * np.clip(off, 0.3, 3.0)
    return slope.T, h, np.abs(off - 1.0) < 0.02


def by_columns(problem):
    """The right-hand side on states as columns, (n, N): at once in component form, one by one otherwise."""
    if problem.form == "component":

        def concatenate_columns(t, u, params):
            return np.stack([np.broadcast_to(row, u.shape[1:]) for row in problem.rhs(t, u, params)])

        return concatenate_columns
    return lambda t, u, params: np.stack([problem.slope(t, column) for column in u.T], axis=1)


def attempt(rhs, problem, method, u, slope, h):
    with np.errstate(all="ignore"):
        new, _, errors, *_ = method.step(rhs, problem.params, problem.t_span[0], u, slope, h, h)
    return errors, new


def fit(module: LearnedController, u, slope, log_rtol, log_h, rounds: int):
    """Adam with a decaying rate on the squared error of both phases, steps too long weighing more."""
    with torch.no_grad():
        module.state_scale.copy_(torch.from_numpy(np.median(np.abs(u), axis=0) + 1e-12))
        module.slope_scale.copy_(torch.from_numpy(np.median(np.abs(slope), axis=0) + 1e-12))
        module.coarse_out_bias.fill_(float(log_h.mean()))
    u, slope, log_rtol, log_h = (torch.from_numpy(np.ascontiguousarray(a)) for a in (u, slope, log_rtol, log_h))
    standardise(module, u, slope, log_rtol, log_h)
    optimiser = torch.optim.Adam(module.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, rounds)
    for _ in range(rounds):
        optimiser.zero_grad()
        coarse, fine = module(u, slope, log_rtol)
        loss = one_sided_loss(fine - log_h) + 0.1 * one_sided_loss(coarse - log_h)
        loss.backward()
        optimiser.step()
        schedule.step()


def one_sided_loss(excess: torch.Tensor) -> torch.Tensor:
    """The mean square of log(proposed / best step), where steps that are too large weigh STRETCH times as much."""
    return (torch.where(excess > 0, STRETCH, 1.0) * excess.square()).mean()


def standardise(module, u, slope, log_rtol, log_h):
    """Means and spreads of what each phase will see, the coarse step taken for the best one."""
    with torch.no_grad():
        seen = torch.arcsinh(u / module.state_scale)
        drive = torch.arcsinh(slope / module.slope_scale)
        ahead = torch.arcsinh((u + torch.exp(log_h) * slope) / module.state_scale)
        for phase, inputs in (
            ("coarse", torch.cat([seen, drive, log_rtol], 1)),
            ("fine", torch.cat([seen, ahead, drive, log_rtol, log_h], 1)),
        ):
            getattr(module, f"{phase}_mean").copy_(inputs.mean(0))
            getattr(module, f"{phase}_spread").copy_(inputs.std(0) + 1e-6)
