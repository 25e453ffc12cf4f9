"""The engine of `odelab.auto` where there is no kernel for both methods: an engine for each of them takes its turn.

`odelab.control.turns` decides after each attempt. A large system is given to its kernels for several attempts at once,
and the rule looks at them behind. Where the user has an index of stiffness, that decides.
"""

import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np

from odelab.control import turns
from odelab.control.controllers import Start, initial_step, settings_of
from odelab.control.feedback import History, Memory
from odelab.control.turns import EXPLICIT, FIRST, IMPLICIT, Rule, Turned, Turns
from odelab.core import State
from odelab.engines import Engine
from odelab.engines.python import checked_rhs
from odelab.engines.steps import Chunk
from odelab.linear.linearisation import FULL, Linearisation
from odelab.linear.solvers import elimination_work, search_work
from odelab.methods.spectral_radius import rough_direction
from odelab.status import Status

AT_ONCE = 16, 128  # attempts that a kernel of a large system is given at once: the fewest, and the most
PLAIN = 5.0  # times longer takes an evaluation in plain Python than in a kernel, of a large system
EMPTY = History(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class SwitchingEngine:
    """Runs a problem by two methods in turns.

    make     make(problem, method, controller, project) -> Engine, for each of the two
    ratio    the cost of an implicit attempt over that of an explicit one; None where it is to be found out
    """

    def __init__(self, problem, method, controller, project, make: Callable[..., Engine], ratio=None):
        self.problem, self.method, self.project = problem, method, project
        self.controller = with_both_laws(controller)
        laws = laws_of(method, controller)
        self.engines = [make(problem, one, own, project) for one, (own, _) in zip(method.members, laws, strict=True)]
        self.settings = [settings for _, settings in laws]
        if hasattr(self.engines[0], "look_at_stages"):
            self.engines[0].look_at_stages()
        self.name = self.engines[0].name
        self.rhs = checked_rhs(problem)
        self.linear = Linearisation(problem, self.rhs, controller.atol)
        self.rough = rough_direction(problem.size)
        self.length, self.ratio = AT_ONCE[0], ratio or self.known_ratio()
        self.now: Turns | None = None

    @property
    def derivatives(self) -> str:
        return f"{self.engines[1].derivatives}; {said_of(self.method, self.now)}"

    @property
    def until(self) -> float:
        """The time behind which a run that keeps no states is to stop."""
        return self.problem.t_span[1]

    @until.setter
    def until(self, t: float):
        for engine in self.engines:
            vars(engine)["until"] = t

    @property
    def look_inside(self) -> Callable | None:
        """The compiled look inside the implicit steps of this run; None where there is none."""
        return getattr(self.engines[1], "look_inside", None)

    def begin(self) -> tuple[State, int]:
        if self.engines[1].name == "compiled":
            self.engines[1].begin()  # which makes the arrays that it writes its steps into
        state, evaluations = self.engines[0].begin()
        settings, history = state.memory
        now = turns.first_turns(abs(history.next_step))
        return state._replace(memory=Turned(settings, history, now, np.zeros(self.problem.size))), evaluations

    def advance(self, state: State, attempts: int) -> Chunk:
        """Go on with the present method, and decide which method goes on after that."""
        evaluations, before = 0, self.work_of_implicit
        if self.method.index is None:
            state, evaluations = self.prepared(state)
        jacobians, _, more = (now - then for now, then in zip(self.work_of_implicit, before, strict=True))
        now = state.memory.turns
        implicit = now.mode != EXPLICIT
        alone = self.engines[implicit].name == "python" or now.mode >= FIRST
        count = 1 if self.method.index is None and alone else self.length
        settings, history = state.memory[:2]
        chunk = self.engines[implicit].advance(state._replace(memory=Memory(settings, history)), min(attempts, count))
        chunk = as_chunk(chunk, state, implicit)
        after = Turned(*chunk.state.memory, *state.memory[2:])
        chunk = chunk._replace(
            state=chunk.state._replace(memory=after), evaluations=chunk.evaluations + evaluations + more
        )
        chunk = chunk._replace(jacobians=chunk.jacobians + jacobians)
        if chunk.status == Status.ATTEMPTS_SPENT and chunk.steps + chunk.rejected:
            if self.method.index is not None:
                chunk = self.by_index(chunk)
            else:
                chunk = self.after_implicit(chunk, state) if implicit else self.after_explicit(chunk)
        self.now = chunk.state.memory.turns
        return chunk

    @property
    def work_of_implicit(self) -> tuple[int, int, int]:
        """Jacobians, factorisations and evaluations for them so far, of an implicit method in plain Python."""
        stepper = getattr(self.engines[1], "stepper", None)
        return (0, 0, 0) if stepper is None else stepper.work

    def prepared(self, state: State) -> tuple[State, int]:
        """The state before an attempt of the method whose turn it is, and the evaluations that were needed.

        Where it is time for it, this looks for fast components, or measures the fastest rate.
        """
        if turns.is_to_measure(state.memory.turns):
            return self.measured(state)
        if not turns.is_to_look(state.memory.turns):
            return state, 0
        slope, evaluations = state.slope, 0
        t, u, params = state.t, np.asarray(state.u), self.problem.params
        if not state.fresh:
            slope, evaluations = self.rhs(t, u, params), 1
        memory = state.memory
        given = (self.rhs, params, t, u, slope, self.unit(u), memory.direction, self.rough)
        rate, direction = turns.fastest_rate(*given)
        now = turns.after_look(self.rule, memory.turns, abs(memory.history.next_step), rate)
        state = state._replace(slope=slope, fresh=True, memory=memory._replace(turns=now, direction=direction))
        state, more = self.weighed(state)
        return state, evaluations + more + min(turns.PRODUCTS, u.size)

    def weighed(self, state: State) -> tuple[State, int]:
        """A state before an implicit step that is tried, where there is reason to, and the evaluations that it takes.

        What linear systems cost is found out only where such a step would be tried if they cost nothing.
        """
        if not turns.is_to_weigh(state.memory.turns):
            return state, 0
        left, before = abs(self.problem.t_span[1] - state.t), state.memory.turns
        now = turns.after_weighing(self.rule, before, left)
        if now.mode == FIRST and self.ratio is None:
            self.ratio = self.ratio_of(self.work_of_jacobian())
            now = turns.after_weighing(self.rule, before, left)
        state = state._replace(memory=state.memory._replace(turns=now))
        return self.opened(state) if now.mode == FIRST else (state, 0)

    def opened(self, state: State) -> tuple[State, int]:
        """A state before an implicit step that is tried, with its size, and the evaluations that it takes to tell."""
        problem, evaluations, slope = self.problem, 0, state.slope
        if not state.fresh:
            slope, evaluations = self.rhs(state.t, np.asarray(state.u), problem.params), 1
        run = Start(self.method.implicit, self.rhs, problem.params, state.t, problem.t_span[1], state.u, slope)
        usual, more = initial_step(run, self.controller.rtol, self.controller.atol)
        size = turns.size_of_trial(state.memory.turns, usual)
        return self.with_step(state._replace(slope=slope, fresh=True), size, IMPLICIT), evaluations + more

    def after_explicit(self, chunk: Chunk) -> Chunk:
        """Let the rule look at explicit attempts; behind the last of them an implicit step may be tried."""
        now = chunk.state.memory.turns
        attempts = [(False, 0.0, 0.0, 1.0, False)] * chunk.rejected
        assert chunk.h_rho is not None  # `as_chunk` has seen to that
        steps = zip(abs(chunk.h).tolist(), (chunk.h_rho**2).tolist(), strict=True)
        attempts += [(True, size, square, 1.0, square == square) for size, square in steps]
        for attempt in attempts:
            now = turns.after_explicit(self.rule, now, *attempt)
            if turns.is_to_weigh(now):
                break
        self.length = AT_ONCE[0] if now.seen > 0.0 else min(2 * self.length, AT_ONCE[1])
        state = chunk.state._replace(memory=chunk.state.memory._replace(turns=now))
        state, evaluations = self.weighed(state)
        return chunk._replace(state=state, evaluations=chunk.evaluations + evaluations)

    def after_implicit(self, chunk: Chunk, before: State) -> Chunk:
        """Let the rule look at implicit attempts."""
        memory = chunk.state.memory
        now, history = memory.turns, memory.history
        step = abs(self.controller.propose(before.memory, before.t, self.problem.t_span[1], before.u, None)[0])
        attempts = [(False, step, history.error)] * chunk.rejected
        attempts += [(True, abs(h), e * e) for h, e in zip(chunk.h.tolist(), chunk.error.tolist(), strict=True)]
        for accepted, size, square in attempts:
            proposed = abs(history.next_step)
            now, following, over = turns.after_implicit(self.rule, now, accepted, size, square, proposed)
            if over:
                break
        state = chunk.state._replace(memory=memory._replace(turns=now))
        if over:
            state = self.with_step(state, following, EXPLICIT)
        elif following != proposed:
            history = history._replace(next_step=self.signed(following))
            state = state._replace(memory=state.memory._replace(history=history))
        return chunk._replace(state=state)

    def unit(self, u):
        """What each component is measured in, so that its tolerance is the same."""
        return np.abs(u) + np.asarray(self.controller.atol) / self.controller.rtol

    def measured(self, state: State) -> tuple[State, int]:
        """A state with the fastest rate there, and the evaluations that it takes to tell."""
        t, u, params, direction = state.t, np.asarray(state.u), self.problem.params, state.memory.direction
        slope, evaluations = (state.slope, 0) if state.fresh else (self.rhs(t, u, params), 1)
        stepper = getattr(self.engines[1], "stepper", None)
        if stepper is not None:
            product = stepper.prepare(t, state.u, slope, params)[1] @ direction
        else:
            distance = turns.DISTANCE / max(float(np.linalg.norm(direction / self.unit(u))), 1e-300)
            product = (self.rhs(t, u + distance * direction, params) - slope) / distance
            evaluations += 1
        shortest, direction = turns.shortest_along(product, self.unit(u), direction, self.rough)
        memory = state.memory._replace(turns=turns.after_measure(state.memory.turns, shortest), direction=direction)
        return state._replace(slope=slope, fresh=True, memory=memory), evaluations

    def by_index(self, chunk: Chunk) -> Chunk:
        """Let the user's own index decide which method goes on."""
        state, size = chunk.state, float(np.abs(chunk.h[-1])) if chunk.steps else 0.0
        now = state.memory.turns
        value = checked_index(self.method.index(self.problem, state.t, np.array(state.u), size), state.t)
        implicit = IMPLICIT if value > 1.0 else EXPLICIT if value < 0.5 else now.mode
        if not chunk.steps or implicit == now.mode:
            return chunk
        now = now._replace(mode=implicit, changes=now.changes + 1.0)
        state = state._replace(memory=state.memory._replace(turns=now))
        return chunk._replace(state=self.with_step(state, size, implicit))

    def with_step(self, state: State, size: float, mode: float) -> State:
        """A state from which a method begins with a step of this size, and with no history."""
        memory = state.memory._replace(settings=self.settings[mode != EXPLICIT])
        return state._replace(memory=memory._replace(history=EMPTY._replace(next_step=self.signed(size))))

    def signed(self, size: float) -> float:
        """A size of a step with its sign, and no larger than allowed."""
        return math.copysign(min(size, self.controller.max_step), self.problem.t_span[1] - self.problem.t_span[0])

    @property
    def rule(self) -> Rule:
        """The numbers of the rule; a ratio that is not known is that of what it takes to find it out."""
        ratio = self.ratio or self.ratio_of(search_work(self.problem.size))
        return turns.rule_of(self.method.explicit, self.method.implicit, ratio)

    def ratio_of(self, work: float) -> float:
        """The ratio of costs where a Jacobian and the linear systems of an attempt take so many evaluations."""
        explicit, implicit = self.method.members
        dearer = PLAIN if self.name == "compiled" and self.engines[1].name == "python" else 1.0
        return dearer * (1 + implicit.evaluations + work) / explicit.evaluations

    def known_ratio(self) -> float | None:
        """The ratio of costs, where it is known without a Jacobian."""
        loops = getattr(self.engines[1], "loops", None)
        if loops is not None:
            return self.ratio_of(loops.band.below + 1 + loops.band.above)
        return self.ratio_of(self.problem.size) if self.problem.size <= FULL else None

    def work_of_jacobian(self) -> float:
        """What a Jacobian and linear systems cost, in evaluations: one per column that is found by itself.

        Linear systems count where SuperLU solves them, as on grids in two dimensions: there they cost most of all.
        """
        problem, u = self.problem, np.array(self.problem.u0)
        t = problem.t_span[0]
        J = self.linear.derivatives(t, u, self.rhs(t, u, problem.params))[0]
        columns = problem.size if isinstance(J, np.ndarray) else int(np.diff(J.tocsr().indptr).max())
        return columns + elimination_work(J)


@functools.lru_cache(maxsize=64)
def with_both_laws(controller):
    """The controller that a run by two methods shows, where each of them has its own usual law."""
    if not controller.law_by_method:
        return controller
    name = f"adaptive(rtol={controller.rtol:g}, atol={controller.atol}, each method's own law)"
    return dataclasses.replace(controller, name=name)


@functools.lru_cache(maxsize=64)
def laws_of(method, controller) -> list:
    """For each of two methods: the controller with its own law, and the settings of that."""
    suited = [controller.suited_to(one) for one in method.members]
    return [
        (own, settings_of(own.law, one.error_order, own.rtol, own.atol, own.max_step))
        for one, own in zip(method.members, suited, strict=True)
    ]


def said_of(method, now: Turns | None) -> str:
    """How often the method has changed and steps were tried, in words."""
    explicit, implicit = (one.name for one in method.members)
    changes, refused = (0, 0) if now is None else (int(now.changes), int(now.refused))
    tried = f"; {implicit} was tried {refused} times and refused" if refused else ""
    return f"{changes} change{'s' if changes != 1 else ''}, beginning with {explicit}{tried}"


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


def as_chunk(found: Chunk, start: State, implicit: bool) -> Chunk:
    """An engine's chunk with arrays of its own (no views), and a column `took` that tells which method took a step."""
    return found._replace(
        t=np.append(start.t, found.knots)[: found.steps],
        h=found.h.copy(),
        u=found.u.copy(),
        error=found.error.copy(),
        sai=None if found.sai is None else found.sai.copy(),
        h_rho=np.full(found.steps, np.nan) if found.h_rho is None else found.h_rho.copy(),
        took=np.full(found.steps, implicit),
    )
