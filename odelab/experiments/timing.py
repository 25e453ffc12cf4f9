"""How long an attempted step takes, and how long its parts do: evaluations, Jacobian, factors and solutions."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from odelab._choice import obstacle_to_lanes
from odelab._solve import solve
from odelab.control.controllers import adaptive, fixed
from odelab.engines.not_compilable import ASKED, NotCompilable
from odelab.engines.python import checked_rhs
from odelab.graph.llvm import Module
from odelab.graph.nodes import Untraceable
from odelab.kernels import store
from odelab.kernels.machine import Machine, address
from odelab.kernels.parts import add_repeated, parts_of
from odelab.linear.linearisation import Linearisation
from odelab.methods.implicit import RODAS4
from odelab.problem import Problem

__all__ = ["Parts", "seconds_of_parts", "seconds_per_attempt"]

ENOUGH = 5e-4  # seconds that are timed at least, beside which the call of a kernel does not count
SHORTEST = 3e-10  # about a cycle: what a part takes at least, as a difference of two times may be nothing or less
STEP = 1e-3  # of the span: the size of the step whose matrix is factored
LATE = 0.3  # of the span: the time, as functions of the time may be quick at zero


class Parts(NamedTuple):
    """What the parts of a linearly implicit attempt take, in seconds.

    evaluation       of the right-hand side, once
    jacobian         all of the Jacobian, with the derivative with respect to time where there is one
    factorisation    the factors of I - h gamma J, with the check of a first solution that kernels make
    solve            one solution with these factors
    engine           whose parts they are, "compiled" or "python"
    """

    evaluation: float
    jacobian: float
    factorisation: float
    solve: float
    engine: str


def seconds_of_parts(problem: Problem, engine: str = "auto", repeats: int = 15) -> Parts:
    """Measure what the parts of a linearly implicit attempt take, at the state in which a problem starts.

    In a kernel, whose attempt is one piece of code, each part is repeated in a loop of its own: the same operations,
    every repetition waiting for the one before as in a run. In plain Python the functions of the run are called.

    problem    the Problem; kernels are for small systems
    engine     "compiled", "python", or "auto", the default: the kernel's parts where a linearly implicit method has
               one for the problem
    repeats    the best of so many times counts; 15

    Returns `Parts`.

    >>> import odelab as ol
    >>> from odelab.experiments import timing
    >>> parts = timing.seconds_of_parts(ol.problems.robertson(), engine="python")
    >>> parts.engine, parts.jacobian > parts.evaluation > 0.0
    ('python', True)
    """
    if engine not in ("auto", "compiled", "python"):
        raise ValueError(f"`engine` must be 'auto', 'compiled' or 'python', got {engine!r}.")
    if engine != "python":
        reason = obstacle_to_lanes(problem, RODAS4, fixed(1.0))
        try:
            if reason is None:
                return of_kernel(problem, repeats)
        except Untraceable as refusal:
            reason = str(refusal)
        if engine == "compiled":
            raise NotCompilable(f"{ASKED} cannot compile this run: {reason}; use engine='python'.")
    return of_functions(problem, repeats)


def of_kernel(problem: Problem, repeats: int) -> Parts:
    traced = store.slopes_of(problem)
    t, hg = time_and_factor(problem)
    known = {"t": t, "hg": hg, **{f"u{i}": float(x) for i, x in enumerate(problem.u0)}}
    known |= dict(zip(traced.parameters.names, traced.parameters.values, strict=True))
    module, parts = Module("contract"), parts_of(traced, problem.size)
    for name, part in parts.items():
        add_repeated(module, name, part)
    machine, found = Machine(module.text()), np.zeros(1)
    runs = []
    for name, part in parts.items():
        # Entries of matrices have no other value here: how long a multiplication takes does not depend on it.
        inputs = np.array([known.get(one, 1.0 if one[0] in "bP" else 0.5) for one in part.inputs])
        call = machine.function(name, 3)
        runs.append(lambda count, call=call, inputs=inputs: call(address(inputs), address(found), count))
    nothing, evaluation, jacobian, factorisation, solution = best_times(runs, repeats)
    return Parts(
        evaluation=max(SHORTEST, evaluation - nothing),
        jacobian=max(SHORTEST, jacobian - nothing),
        factorisation=max(SHORTEST, factorisation - solution),
        solve=max(SHORTEST, solution - nothing),
        engine="compiled",
    )


def of_functions(problem: Problem, repeats: int) -> Parts:
    (t, hg), u = time_and_factor(problem), np.array(problem.u0)
    rhs = checked_rhs(problem)
    linear = Linearisation(problem, rhs)
    slope = rhs(t, u, problem.params)
    J, _ = linear.derivatives(t, u, slope)
    factors = linear.factor(J, hg)
    calls = (
        lambda: rhs(t, u, problem.params),
        lambda: linear.derivatives(t, u, slope),
        lambda: linear.factor(J, hg),
        lambda: linear.backsub(factors, slope),
    )
    evaluation, jacobian, factorisation, solve = best_times([repeated(one) for one in calls], repeats)
    return Parts(evaluation, jacobian, factorisation, solve, "python")


def repeated(call: Callable) -> Callable:
    def run(count):
        for _ in range(count):
            call()

    return run


def time_and_factor(problem: Problem) -> tuple[float, float]:
    """A time, and h gamma of the matrix that is factored; how long that takes does not depend on it."""
    t0, t1 = problem.t_span
    return t0 + LATE * (t1 - t0), RODAS4.gamma * STEP * (t1 - t0)


def best_times(runs: list[Callable], repeats: int) -> list[float]:
    """Seconds per repetition of functions that are told how often to repeat something; they take turns."""
    counts = [enough(run) for run in runs]
    times = [[seconds(run, count) / count for run, count in zip(runs, counts, strict=True)] for _ in range(repeats)]
    return np.min(times, axis=0).tolist()


def enough(run: Callable) -> int:
    """So many repetitions that they take a while, also where nothing else holds them up."""
    count = 1
    while min(seconds(run, count) for _ in range(3)) < ENOUGH:
        count *= 4
    return count


def seconds(run: Callable, *arguments) -> float:
    began = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - began


def seconds_per_attempt(problem: Problem, method, rtol: float = 1e-6, attempts=(50, 1050), repeats: int = 15) -> float:
    """What an attempted step takes: the time of a long run less that of a short one, each the best of several.

    problem   the Problem, from its start
    method    any method of odelab with an error estimate
    rtol      the relative tolerance, 1e-6; steps are at most so large that the span takes enough of them
    attempts  about so many in the short and in the long run; (50, 1050)
    repeats   15

    Returns seconds, of compiled code where there can be some; a first run that makes a kernel is not timed.

    >>> import odelab as ol
    >>> from odelab.experiments import timing
    >>> timing.seconds_per_attempt(ol.problems.van_der_pol(), ol.BS32) > 0.0
    True
    """
    size = np.abs(problem.u0).max() or 1.0
    largest = (problem.t_span[1] - problem.t_span[0]) / max(attempts)
    controller = adaptive(rtol, 1e-3 * rtol * size, max_step=abs(largest))

    def run(piece, engine, **options):
        return solve(piece, method, controller, engine=engine, **options)

    try:
        engine = "compiled"
        run(problem, engine, max_steps=max(attempts), throw=False)
    except NotCompilable:
        engine = "python"
    # A run that uses up its attempts is diagnosed, which takes longer than the run. So each ends where so many lead.
    pieces = []
    for most in sorted(attempts):
        reached = run(problem, engine, max_steps=most, throw=False).step_t[-1]
        pieces.append(problem.replace(t_span=(problem.t_span[0], float(reached))))
    counted = [found.steps + found.rejected for found in (run(piece, engine) for piece in pieces)]
    best = np.min([[seconds(run, piece, engine) for piece in pieces] for _ in range(repeats)], axis=0).tolist()
    return max(best[1] - best[0], SHORTEST) / (counted[1] - counted[0])
