"""The engine of `odelab.auto`: an engine for each of two methods, and the decision which of them goes on.

From explicit to implicit: a step that stability limits has an error near the tolerance, whatever the solution does, so
the error does not tell which step accuracy would allow. Instead, the steps with h rho near the stability boundary are
counted. After enough of them one implicit step is tried, of the size with which an implicit run would begin here. Its
error tells how long implicit steps could be, and with the work of an attempt of each method this gives the ratio of
their costs.

From implicit to explicit: step size and Jacobian are known, so h rho is compared with the explicit method's boundary.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from odelab.control.controllers import SET_POINT, Start, initial_step, settings_of
from odelab.control.feedback import History, Memory
from odelab.core import State
from odelab.engines import Engine, Status
from odelab.engines.python import Chunk, checked_rhs
from odelab.linear.linearisation import Linearisation
from odelab.stiffness.stable_step import nongrowing_radius

AT_BOUNDARY = 0.5  # of the real boundary: the mean step of a run that stability limits lies well below the boundary
FAR = 2.0  # times the real boundary: one step of such a size is enough for an implicit step to be tried
COUNT = 4  # an implicit step is tried when the steps near the boundary outnumber the others by so many
TRIED = 4.0  # the implicit step that is tried is at least so many times as long as the mean explicit step
FARTHEST = 10.0  # the error of the tried step is used to predict steps of up to so many times its size
LOOK_AFTER = 4  # attempts between two decisions; the number doubles while no step is near the boundary
CALM = 128  # attempts between two decisions at most
BACK = 0.5  # of the explicit boundary: with h rho below it twice in a row the explicit method takes over
SPECTRUM = 64  # components up to which eigenvalues are found; beyond, the norm of J bounds them


class SwitchingEngine:
    """Runs a problem by two methods in turns.

    make    make(method, controller) -> Engine, for each of the two
    """

    def __init__(self, problem, method, controller, project, make: Callable[..., Engine]):
        self.problem, self.method, self.controller, self.project = problem, method, controller, project
        if controller.law_by_method:
            name = f"adaptive(rtol={controller.rtol:g}, atol={controller.atol}, each method's own law)"
            self.controller = dataclasses.replace(controller, name=name)
        self.engines = [make(one, controller.suited_to(one)) for one in (method.explicit, method.implicit)]
        if hasattr(self.engines[0], "look_at_stages"):
            self.engines[0].look_at_stages()
        self.name = self.engines[0].name
        self.rhs = checked_rhs(problem)
        self.linear = Linearisation(problem, self.rhs, controller.atol)
        self.implicit = False
        self.seen, self.patience, self.short, self.length = 0, COUNT, 0, LOOK_AFTER
        self.refused = self.changes = self.since = 0

    @property
    def derivatives(self) -> str:
        explicit, implicit = self.method.explicit.name, self.method.implicit.name
        changes = f"{self.changes} change{'s' if self.changes != 1 else ''}, beginning with"
        tried = f"; {implicit} was tried {self.refused} times and refused" if self.refused else ""
        return f"{self.engines[1].derivatives}; {changes} {explicit}{tried}"

    def begin(self) -> tuple[State, int]:
        if self.name == "compiled":
            self.engines[1].begin()  # which makes the arrays that it writes its steps into
        return self.engines[0].begin()

    def advance(self, state: State, attempts: int) -> Chunk:
        """Go on with the present method, and decide which method goes on after that."""
        engine = self.engines[self.implicit]
        chunk = as_chunk(engine.advance(state, min(attempts, self.length)), state, self.implicit)
        if chunk.status != Status.ATTEMPTS_SPENT or not chunk.steps:
            return chunk
        if self.method.index is not None:
            return self.by_index(chunk)
        return self.back(chunk) if self.implicit else self.forth(chunk, attempts)

    def by_index(self, chunk: Chunk) -> Chunk:
        """Let the user's own index decide which method goes on."""
        state, size = chunk.state, float(np.abs(chunk.h[-1]))
        value = float(self.method.index(self.problem, state.t, np.array(state.u), size))
        if (value > 1.0 and not self.implicit) or (value < 0.5 and self.implicit):
            return chunk._replace(state=self.changed(state, size))
        return chunk

    def forth(self, chunk: Chunk, attempts: int) -> Chunk:
        """Count the steps near the stability boundary; where they are many, try an implicit one."""
        boundary = self.method.explicit.real_boundary
        h_rho = chunk.h_rho
        assert h_rho is not None  # `as_chunk` has seen to that
        if np.isnan(h_rho).all():  # the stages do not tell, as where stiff components are very small
            h_rho = np.abs(chunk.h) * self.radius(chunk.state)
            chunk = chunk._replace(jacobians=chunk.jacobians + 1)
        shares = (h_rho / boundary).tolist()
        for share in shares:
            self.seen = max(0, self.seen + (self.patience if share >= FAR else 1 if share >= AT_BOUNDARY else -1))
        calm = not any(share >= AT_BOUNDARY for share in shares)
        self.length = min(2 * self.length, CALM) if calm else LOOK_AFTER
        if self.seen < self.patience:
            return chunk
        self.seen = 0
        gone = float(np.abs(chunk.h).sum()) / (chunk.steps + chunk.rejected)
        usual, evaluations = self.first_step(chunk.state)
        chunk = chunk._replace(evaluations=chunk.evaluations + evaluations)
        start = self.remembering(chunk.state, True, max(TRIED * gone, usual))
        trial = as_chunk(self.engines[1].advance(start, 1), start, True)
        error = trial.state.memory.history.error
        tried = min(abs(start.memory.history.next_step), abs(self.problem.t_span[1] - chunk.state.t))
        order = self.method.implicit.error_order
        reach = min(SET_POINT * max(error, 1e-12) ** (-1.0 / order), FARTHEST) * tried if error < math.inf else 0.0
        chunk = chunk._replace(
            evaluations=chunk.evaluations + trial.evaluations,
            jacobians=chunk.jacobians + trial.jacobians,
            factorisations=chunk.factorisations + trial.factorisations,
        )
        if not reach * self.work(False) > gone * self.work(True):
            self.refused += 1
            self.patience *= 2
            return chunk
        self.changes += 1
        self.implicit, self.length, self.patience = True, LOOK_AFTER, COUNT
        # The tried step is taken again if it was rejected, or if the chunk has used up the attempts asked for.
        if not trial.steps or attempts <= chunk.steps + chunk.rejected:
            return chunk._replace(
                state=self.remembering(chunk.state, True, min(reach, tried) if trial.steps else reach)
            )
        return join_two(chunk, trial)

    def back(self, chunk: Chunk) -> Chunk:
        """Compare implicit steps with what the explicit method could stably take."""
        self.since += chunk.steps
        if self.since < LOOK_AFTER:
            return chunk
        self.since = 0
        state, size = chunk.state, float(np.abs(chunk.h).mean())
        radius = self.radius(state)
        near = size * radius < BACK * self.method.explicit.real_boundary
        self.short = self.short + 1 if near else 0
        if self.short < 2:
            return chunk
        stable = BACK * self.method.explicit.real_boundary / radius if radius > 0.0 else math.inf
        return chunk._replace(state=self.changed(state, min(size, stable)))

    def first_step(self, state: State) -> tuple[float, int]:
        """With what step an implicit run would begin at a state, and the evaluations that it takes to tell."""
        controller, problem = self.engines[1].controller, self.problem
        slope = self.rhs(state.t, np.asarray(state.u), problem.params)
        run = Start(self.method.implicit, self.rhs, problem.params, state.t, problem.t_span[1], state.u, slope)
        size, evaluations = initial_step(run, controller.rtol, controller.atol)
        return size, evaluations + 1

    def radius(self, state: State) -> float:
        """The fastest rate of the problem at a state that is not growth, or a bound on it where it is large."""
        t, u = state.t, np.asarray(state.u)
        J, _ = self.linear.derivatives(t, u, self.rhs(t, u, self.problem.params))
        if not np.isfinite(J.data if hasattr(J, "indices") else J).all():
            return math.inf
        if J.shape[0] > SPECTRUM:
            return float(abs(J).sum(axis=1).max())
        return nongrowing_radius(np.linalg.eigvals(J.toarray() if hasattr(J, "toarray") else J))

    def work(self, implicit: bool) -> float:
        """What an attempt costs, in evaluations; a Jacobian counts as one per column that is found by itself."""
        if not implicit:
            return float(self.method.explicit.stages - self.method.explicit.fsal)
        return float(self.method.implicit.stages + self.columns)

    @functools.cached_property
    def columns(self) -> int:
        """How many columns of the Jacobian are found by themselves: all, or as many as a row of a sparse one has."""
        problem = self.problem
        t, u = problem.t_span[0], np.array(problem.u0)
        J, _ = self.linear.derivatives(t, u, self.rhs(t, u, problem.params))
        return problem.size if isinstance(J, np.ndarray) else int(np.diff(J.tocsr().indptr).max())

    def changed(self, state: State, size: float) -> State:
        """The state from which the other method goes on with a step of this size."""
        self.changes += 1
        self.implicit, self.seen, self.short, self.length = not self.implicit, 0, 0, LOOK_AFTER
        return self.remembering(state, self.implicit, size)

    def remembering(self, state: State, implicit: bool, size: float) -> State:
        """A state whose memory is that of a controller which begins with a step of this size."""
        engine = self.engines[implicit]
        controller = engine.controller
        settings = settings_of(
            controller.law, engine.method.error_order, controller.rtol, controller.atol, controller.max_step
        )
        step = math.copysign(min(size, controller.max_step), self.problem.t_span[1] - self.problem.t_span[0])
        return state._replace(memory=Memory(settings, History(step, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)))


def as_chunk(found, start: State, implicit: bool) -> Chunk:
    """An engine's chunk with arrays of its own (no views), and a column `took` that tells which method took a step."""
    steps = found.steps
    if isinstance(found, Chunk):
        h_rho = np.full(steps, np.nan) if found.h_rho is None else found.h_rho
        return found._replace(h_rho=h_rho, took=np.full(steps, implicit))
    return Chunk(
        found.status,
        found.state,
        np.append(start.t, found.knots)[:steps],
        found.h.copy(),
        found.u.copy(),
        None,
        found.error.copy(),
        found.rejected,
        found.evaluations,
        found.word,
        h_rho=np.full(steps, np.nan) if implicit else found.stage_h_rho,
        jacobians=found.jacobians,
        factorisations=found.factorisations,
        took=np.full(steps, implicit),
    )


def join_two(first: Chunk, second: Chunk) -> Chunk:
    """Two chunks that follow each other, as one; the work of the second is counted already."""
    columns: dict[str, Any] = {"status": second.status, "state": second.state, "slope": None}
    for name in ("t", "h", "u", "error", "h_rho", "took"):
        columns[name] = np.concatenate([getattr(first, name), getattr(second, name)])
    if first.slope is not None and second.slope is not None:
        columns["slope"] = np.concatenate([first.slope, second.slope])
    return first._replace(**columns)
