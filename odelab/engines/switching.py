"""The engine of `odelab.auto`: an engine for each of two methods, and the decision which of them goes on.

From explicit to implicit: a step that stability limits has an error near the tolerance, whatever the solution does, so
the error does not tell which step accuracy would allow. Instead, the steps with h rho near the stability boundary are
counted. After enough of them one implicit step is tried, of the size with which an implicit run would begin here. Its
error tells how long implicit steps could be, and with the work of an attempt of each method this gives the ratio of
their costs. Before the first step, and where stages that show no large h rho take steps of one size, as stability makes
them, a few products of the Jacobian with a vector look for fast components that the stages do not see. A run whose
first explicit step would lie near the boundary tries an implicit one at once: what an unstable step has put into a fast
oscillation without damping would stay there.

From implicit to explicit: step size and Jacobian are known, so h rho is compared with the explicit method's boundary.
The run goes back, too, where implicit steps cost more than the explicit ones before them did.
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
from odelab.engines import Engine
from odelab.engines.python import checked_rhs
from odelab.engines.steps import Chunk, no_steps
from odelab.linear.linearisation import Linearisation
from odelab.linear.solvers import elimination_work
from odelab.methods.spectral_radius import first_direction
from odelab.status import Status
from odelab.stiffness.stable_step import nongrowing_radius

AT_BOUNDARY = 0.5  # of the real boundary: the mean step of a run that stability limits lies well below the boundary
FAR = 2.0  # times the real boundary: one step of such a size is enough for an implicit step to be tried
COUNT = 4  # an implicit step is tried when the steps near the boundary outnumber the others by so many
TRIED = 4.0  # the implicit step that is tried is at least so many times as long as the mean explicit step
FARTHEST = 10.0  # the error of the tried step is used to predict steps of up to so many times its size
LOOK_AFTER = 4  # attempts between two decisions; the number doubles while no step is near the boundary
EVEN = 1.25  # of one size are steps whose largest is at most so many times the smallest
PRODUCTS = 2  # with a vector by which the fastest rate is estimated; their geometric mean is no transient's growth
DISTANCE = 1.5e-8  # of the states whose difference stands for such a product, in the norm of the tolerances
DEARER = 1.5  # times what explicit steps cost: implicit ones that cost more, twice in a row, were a wrong choice
CLEARLY = 2.0  # times cheaper must implicit steps promise to be before any explicit one was taken
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
        self.engines = [make(one, controller.suited_to(one)) for one in method.members]
        if hasattr(self.engines[0], "look_at_stages"):
            self.engines[0].look_at_stages()
        self.name = self.engines[0].name
        self.rhs = checked_rhs(problem)
        self.linear = Linearisation(problem, self.rhs, controller.atol)
        self.implicit = False
        self.seen, self.patience, self.short, self.length = 0, COUNT, 0, LOOK_AFTER
        self.refused = self.changes = self.since = 0
        self.starting = True
        self.direction: np.ndarray | None = None  # where the power method begins next
        self.promised = 0.0  # how far an attempt of the explicit method went before the implicit one took over

    @property
    def derivatives(self) -> str:
        explicit, implicit = self.method.explicit.name, self.method.implicit.name
        changes = f"{self.changes} change{'s' if self.changes != 1 else ''}, beginning with"
        tried = f"; {implicit} was tried {self.refused} times and refused" if self.refused else ""
        return f"{self.engines[1].derivatives}; {changes} {explicit}{tried}"

    @property
    def look_inside(self) -> Callable | None:
        """The compiled look inside the implicit steps of this run; None where there is none."""
        return getattr(self.engines[1], "look_inside", None)

    def begin(self) -> tuple[State, int]:
        if self.name == "compiled":
            self.engines[1].begin()  # which makes the arrays that it writes its steps into
        return self.engines[0].begin()

    def advance(self, state: State, attempts: int) -> Chunk:
        """Go on with the present method, and decide which method goes on after that."""
        if self.starting and self.method.index is None:
            self.starting = False
            return self.at_the_start(state, attempts)
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
        value = checked_index(self.method.index(self.problem, state.t, np.array(state.u), size), state.t)
        if (value > 1.0 and not self.implicit) or (value < 0.5 and self.implicit):
            return chunk._replace(state=self.change_method(state, size))
        return chunk

    def forth(self, chunk: Chunk, attempts: int) -> Chunk:
        """Count the steps near the stability boundary; where they are many, try an implicit one."""
        boundary = self.method.explicit.real_boundary
        h_rho = chunk.h_rho
        assert h_rho is not None  # `as_chunk` has seen to that
        if np.isnan(h_rho).all():  # the stages do not tell, as where stiff components are very small
            h_rho = np.abs(chunk.h) * self.radius(chunk.state)
            chunk = chunk._replace(jacobians=chunk.jacobians + 1)
        elif not (h_rho >= AT_BOUNDARY * boundary).any() and is_even(np.abs(chunk.h[-LOOK_AFTER:])):
            rate, evaluations = self.fastest_rate(chunk.state)
            h_rho = np.fmax(h_rho, np.abs(chunk.h) * rate)
            chunk = chunk._replace(evaluations=chunk.evaluations + evaluations)
        shares = (h_rho / boundary).tolist()
        for share in shares:
            self.seen = max(0, self.seen + (self.patience if share >= FAR else 1 if share >= AT_BOUNDARY else -1))
        calm = not any(share >= AT_BOUNDARY for share in shares)
        self.length = min(2 * self.length, CALM) if calm else LOOK_AFTER
        if self.seen < self.patience:
            return chunk
        gone = float(np.abs(chunk.h).sum()) / (chunk.steps + chunk.rejected)
        return self.audition(chunk, gone, attempts)

    def audition(self, chunk: Chunk, gone: float, attempts: int, margin: float = 1.0) -> Chunk:
        """Try an implicit step behind a chunk, and let the implicit method go on where it is the cheaper one.

        gone    how far an attempt of the explicit method goes there
        margin  how many times cheaper implicit steps must promise to be
        """
        self.seen = 0
        usual, evaluations = self.first_step(chunk.state)
        chunk = chunk._replace(evaluations=chunk.evaluations + evaluations)
        enough = margin * gone * self.work(True) / self.work(False)
        size = max(TRIED * gone, usual, 2.0 * enough / FARTHEST)  # so long that it can promise twice what is enough
        trial, tried, reach = self.try_implicit(self.with_step_size(chunk.state, True, size))
        if self.elimination > 0.0 and trial.steps and trial.status == Status.ATTEMPTS_SPENT and not reach > enough:
            # Explicit steps leave as much in fast components as the tolerance allows. The error of an implicit step is
            # theirs, and damps them. Where implicit steps have to become much longer, only a second one can tell.
            second, tried, reach = self.try_implicit(trial.state)
            trial = join_two(with_work_of(trial, second), second)
        chunk = with_work_of(chunk, trial)
        if not reach > enough:
            self.refused += 1
            self.patience *= 2
            return chunk
        self.changes += 1
        self.implicit, self.length, self.promised = True, LOOK_AFTER, gone
        # Tried steps are taken again if one was rejected, or if not so many attempts are left.
        if trial.rejected or attempts < chunk.steps + chunk.rejected + trial.steps:
            return chunk._replace(
                state=self.with_step_size(chunk.state, True, min(reach, tried) if trial.steps else reach)
            )
        return join_two(chunk, trial)

    def try_implicit(self, start: State) -> tuple[Chunk, float, float]:
        """One attempt of the implicit method: its chunk, its size, and how long a step its error promises."""
        chunk = as_chunk(self.engines[1].advance(start, 1), start, True)
        size = min(abs(start.memory.history.next_step), abs(self.problem.t_span[1] - start.t))
        error = self.engines[1].controller.error(chunk.state.memory)
        if not error < math.inf:
            return chunk, size, 0.0
        longer = SET_POINT * max(error, 1e-12) ** (-1.0 / self.method.implicit.error_order)
        return chunk, size, min(longer, FARTHEST) * size

    def at_the_start(self, state: State, attempts: int) -> Chunk:
        """Try an implicit step at once where the first explicit one would lie near its stability boundary or beyond.

        How far explicit steps go is not known there but for the bound of the boundary, which they may pass for a while.
        So implicit steps have to be clearly cheaper, and nothing is promised.
        """
        size, boundary = abs(state.memory.history.next_step), self.method.explicit.real_boundary
        rate, evaluations = self.fastest_rate(state)
        chunk = as_chunk(no_steps(state, Status.ATTEMPTS_SPENT, evaluations), state, False)
        if size * rate >= AT_BOUNDARY * boundary:
            chunk = self.audition(chunk, min(size, boundary / rate), attempts, CLEARLY)
            self.promised = 0.0
        return chunk

    def fastest_rate(self, state: State) -> tuple[float, int]:
        """About the spectral radius at a state, and the evaluations that it takes to tell.

        A few steps of the power method in the norm of the tolerances, with differences for products with the Jacobian.
        """
        t, u = state.t, np.asarray(state.u)
        unit = np.abs(u) + np.asarray(self.controller.atol) / self.controller.rtol
        slope = state.slope if state.fresh else self.rhs(t, u, self.problem.params)
        if self.direction is None:
            self.direction, products = first_direction(slope / unit), PRODUCTS + 1
        else:
            products = PRODUCTS
        products = min(products, u.size)  # of one component the first product tells all
        rates, evaluations = [], products + (not state.fresh)
        for _ in range(products):
            step = DISTANCE * self.direction / np.linalg.norm(self.direction)
            change = (self.rhs(t, u + unit * step, self.problem.params) - slope) / unit
            grown = float(np.linalg.norm(change))
            if not 0.0 < grown < math.inf:
                self.direction = None
                return 0.0, evaluations
            rates.append(grown / DISTANCE)
            self.direction = change
        return math.prod(rates[-2:]) ** (1.0 / len(rates[-2:])), evaluations

    def back(self, chunk: Chunk) -> Chunk:
        """Compare implicit steps with what the explicit method could stably take."""
        self.since += chunk.steps
        if self.since < LOOK_AFTER:
            return chunk
        self.since = 0
        state, size = chunk.state, float(np.abs(chunk.h).mean())
        radius = self.radius(state)
        dear = 1.0 + self.elimination / self.work(False)  # what solving linear systems costs, no explicit step does
        near = size * radius < BACK * self.method.explicit.real_boundary * dear
        attempt = float(np.abs(chunk.h).sum()) / (chunk.steps + chunk.rejected)
        dearer = DEARER * attempt * self.work(False) < self.promised * self.work(True)
        self.short = self.short + 1 if near or dearer else 0
        if self.short < 2:
            return chunk
        self.patience = 2 * self.patience if dearer else COUNT
        stable = BACK * self.method.explicit.real_boundary / radius if radius > 0.0 else math.inf
        return chunk._replace(state=self.change_method(state, min(size, stable)))

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
        """What an attempt costs, in evaluations; a Jacobian counts as one per column that is found by itself.

        Linear systems count where SuperLU solves them, as on grids in two dimensions: there they cost most of all.
        """
        if not implicit:
            return float(self.method.explicit.stages - self.method.explicit.fsal)
        return float(1 + self.method.implicit.evaluations + self.columns) + self.elimination

    @property
    def columns(self) -> int:
        """How many columns of the Jacobian are found by themselves: all, or as many as a row of a sparse one has."""
        J = self.first_jacobian
        return self.problem.size if isinstance(J, np.ndarray) else int(np.diff(J.tocsr().indptr).max())

    @functools.cached_property
    def elimination(self) -> float:
        """What the linear systems of an attempt cost, in evaluations, where that is not little."""
        return elimination_work(self.first_jacobian)

    @functools.cached_property
    def first_jacobian(self):
        problem = self.problem
        t, u = problem.t_span[0], np.array(problem.u0)
        return self.linear.derivatives(t, u, self.rhs(t, u, problem.params))[0]

    def change_method(self, state: State, size: float) -> State:
        """Change to the other method; returns the state from which it goes on with a step of this size."""
        self.changes += 1
        self.implicit, self.seen, self.short, self.length = not self.implicit, 0, 0, LOOK_AFTER
        return self.with_step_size(state, self.implicit, size)

    def with_step_size(self, state: State, implicit: bool, size: float) -> State:
        """A state whose memory is that of a controller which begins with a step of this size."""
        engine = self.engines[implicit]
        controller = engine.controller
        settings = settings_of(
            controller.law, engine.method.error_order, controller.rtol, controller.atol, controller.max_step
        )
        step = math.copysign(min(size, controller.max_step), self.problem.t_span[1] - self.problem.t_span[0])
        return state._replace(memory=Memory(settings, History(step, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)))


def checked_index(value, t) -> float:
    """What the user's index says, as a number."""
    try:
        number = float(np.asarray(value).item())  # one number may come in an array
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number):
        raise ValueError(
            f"`index` returned {value!r} at t = {t:g}; it must return a number: above 1 implicit steps are taken, "
            "below 1/2 explicit ones."
        )
    return number


def is_even(sizes) -> bool:
    """Do step sizes hardly change, as where stability limits them?"""
    return len(sizes) == LOOK_AFTER and bool(sizes.max() <= EVEN * sizes.min())


def as_chunk(found: Chunk, start: State, implicit: bool) -> Chunk:
    """An engine's chunk with arrays of its own (no views), and a column `took` that tells which method took a step."""
    return found._replace(
        t=np.append(start.t, found.knots)[: found.steps],
        h=found.h.copy(),
        u=found.u.copy(),
        error=found.error.copy(),
        h_rho=np.full(found.steps, np.nan) if found.h_rho is None else found.h_rho.copy(),
        took=np.full(found.steps, implicit),
    )


def with_work_of(first: Chunk, second: Chunk) -> Chunk:
    """A chunk that also counts what another one took."""
    return first._replace(
        evaluations=first.evaluations + second.evaluations,
        jacobians=first.jacobians + second.jacobians,
        factorisations=first.factorisations + second.factorisations,
    )


def join_two(first: Chunk, second: Chunk) -> Chunk:
    """Two chunks that follow each other, as one; the work of the second is counted already."""
    rejected = first.rejected + second.rejected
    columns: dict[str, Any] = {"status": second.status, "state": second.state, "slope": None, "rejected": rejected}
    for name in ("t", "h", "u", "error", "h_rho", "took"):
        columns[name] = np.concatenate([getattr(first, name), getattr(second, name)])
    if first.slope is not None and second.slope is not None:
        columns["slope"] = np.concatenate([first.slope, second.slope])
    return first._replace(**columns)
