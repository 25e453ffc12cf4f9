"""The plain engine: `odelab.core.integrate` run by Python on NumPy arrays, a chunk of attempts at a time."""

import dataclasses
from collections.abc import Callable

import numpy as np

from odelab import core
from odelab.control.controllers import Controller, Start
from odelab.core import State
from odelab.engines.steps import Chunk
from odelab.linear.algebraic import consistent, slopes_of
from odelab.methods.interface import StepMethod
from odelab.problem import Problem, array_form, without_jacobian
from odelab.runs import h_rho as stability
from odelab.status import Status


class RightHandSideError(ValueError):
    """The right-hand side returned something that cannot be a slope: a wrong shape, or no real numbers."""


@dataclasses.dataclass
class PythonEngine:
    """Runs a problem with any right-hand side and any controller in plain Python."""

    problem: Problem
    method: StepMethod
    controller: Controller
    project: Callable | None = None

    name = "python"

    def __post_init__(self):
        self.keep: Callable = keep_row
        self.rhs = checked_rhs(self.problem)
        self.stepper = self.method.stepper(self.problem, self.rhs, self.controller.atol)
        self.after = core.no_projection if self.project is None else on_a_copy(self.project)
        self.controller = self.method.extend_controller(self.controller, self.rhs)

    @property
    def derivatives(self) -> str:
        return self.stepper.how

    def look_at_stages(self):
        """Compute h rho during the run, from the stages of each step; later they are gone, as states are not kept."""
        if self.method.twin_stages is not None:
            self.keep = rows_with_h_rho(self.method)

    def begin(self) -> tuple[State, int]:
        return begin(self.problem, self.method, self.controller, self.rhs)

    def advance(self, state: State, attempts: int) -> Chunk:
        rows: list = []
        word, rejected, evaluations = "", 0, 0
        before = self.stepper.work
        try:
            status, state, _, rejected, evaluations = core.integrate(
                self.stepper.step,
                self.stepper.prepare,
                self.rhs,
                self.problem.params,
                self.controller.propose,
                self.controller.judge,
                self.after,
                self.keep,
                rows,
                state,
                self.problem.t_span[1],
                attempts,
            )
        except (KeyboardInterrupt, RightHandSideError) as stop:
            status = Status.INTERRUPTED if isinstance(stop, KeyboardInterrupt) else Status.WRONG_SHAPE
            word = str(stop)
            evaluations = self.method.evaluations * len(rows)  # of the accepted steps at least
            if rows:
                t, dt, u, slope, memory, _ = rows[-1]
                state = State(t + dt, u, slope, False, memory)
        if self.stepper.linearisation is not None and self.stepper.linearisation.own is None:
            self.problem = without_jacobian(self.problem)  # it was wrong: dense output must not repeat steps with it
        work = [now - then for now, then in zip(self.stepper.work, before, strict=True)]
        return self.chunk(status, state, rows, rejected, evaluations + work.pop(), word, *work)

    def chunk(self, status, state, rows, rejected, evaluations, word, jacobians, factorisations) -> Chunk:
        size = self.problem.size
        t = np.array([row[0] for row in rows])
        h = np.array([row[1] for row in rows])
        u = np.array([row[2] for row in rows]).reshape(len(rows), size)
        slope = np.array([row[3] for row in rows]).reshape(len(rows), size)
        error = np.array([self.controller.error(row[4]) for row in rows])
        h_rho = None if self.keep is keep_row else np.array([row[5] for row in rows])
        return Chunk(
            status,
            state,
            t,
            h,
            u,
            slope,
            error,
            rejected,
            evaluations,
            word,
            h_rho=h_rho,
            jacobians=jacobians,
            factorisations=factorisations,
        )


def taken_over(plain: PythonEngine, rows, state: State, attempts: int, first: int, work) -> Chunk:
    """A chunk of a compiled run whose end is taken in plain Python: it pivots, and raises what the user's code raises.

    rows     what the run records, `odelab.engines.rows`
    first    the number of steps before the chunk
    work     the counts of the chunk so far: rejected attempts, evaluations, Jacobians, factorisations
    """
    with np.errstate(all="ignore"):
        chunk = plain.advance(state, attempts)
    rows.room(state.t, chunk.steps + 1)
    rows.add(chunk, state)
    more = (chunk.rejected, chunk.evaluations, chunk.jacobians, chunk.factorisations)
    counts = [before + now for before, now in zip(work, more, strict=True)]
    return rows.chunk(first, chunk.status, chunk.state, *counts)._replace(word=chunk.word)


def begin(problem, method, controller, rhs) -> tuple[State, int]:
    """The state every engine starts from, and the evaluations it took."""
    t0, t1 = problem.t_span
    u0 = consistent(problem).u
    slope0 = rhs(t0, u0, problem.params)
    slopes = slopes_of(problem, rhs)
    first = slope0 if slopes is rhs else slopes(t0, u0, problem.params)
    memory, evaluations = controller.start(Start(method, slopes, problem.params, t0, t1, u0, first))
    return State(t0, u0, slope0, True, memory), evaluations + 1


def keep_row(rows, memory, t, dt, h, u, slopes, mean_slope, u_new):
    rows.append((t, dt, u_new, mean_slope, memory, None))
    return rows


def rows_with_h_rho(method: StepMethod) -> Callable:
    """A function like `keep_row` that also computes h rho from the stages of the step."""

    def keep(rows, memory, t, dt, h, u, slopes, mean_slope, u_new):
        rows.append((t, dt, u_new, mean_slope, memory, stability.from_stages(method, u, dt, slopes)))
        return rows

    return keep


def checked_rhs(problem: Problem) -> Callable:
    """The right-hand side in array form; its result is copied, as it may reuse a buffer, and its shape is checked."""
    rhs = array_form(problem)
    shape = problem.u0.shape

    def call_and_check(t, u, params):
        answer = rhs(t, u, params)
        if answer is None:
            raise RightHandSideError(f"the right-hand side returned None at t = {t:g}; a branch of it has no `return`")
        slope = np.array(answer)
        if slope.shape != shape:
            raise RightHandSideError(
                f"the right-hand side returned shape {slope.shape} for a state of shape {shape} at t = {t:g}"
            )
        if slope.dtype != np.float64:
            if slope.dtype.kind not in "fiub":
                raise RightHandSideError(
                    f"the right-hand side returned dtype {slope.dtype} at t = {t:g}; slopes must be real"
                )
            slope = slope.astype(np.float64)
        return slope

    return call_and_check


def on_a_copy(project: Callable) -> Callable:
    """The user's projection, applied to a copy of the state, with its result checked; compiled code uses it, too.

    A projection may write into its argument, as in `u[u < 0.0] = 0.0`. Without the copy it would change the new state
    itself, and the slope that is already known would belong to another state.
    """

    def project_copy(u):
        answer = np.asarray(project(u.copy()))
        if answer.shape != u.shape or not np.isrealobj(answer):
            raise ValueError("`project` returned something else than one real number per component of the state.")
        return answer.astype(np.float64)

    return project_copy
