"""The compiled engine of small systems whose method is `odelab.auto`: both methods and the rule in one kernel."""

from collections.abc import Callable

from odelab.control.feedback import Memory
from odelab.control.turns import EXPLICIT, Turned, Turns
from odelab.core import State
from odelab.engines.python import PythonEngine
from odelab.engines.rows import Rows
from odelab.engines.steps import Record
from odelab.engines.switching import EMPTY, SwitchingEngine, laws_of, said_of, with_both_laws
from odelab.engines.traced import TracedEngine
from odelab.kernels.loops.two_methods import COUNTS, RULE


class TurnsEngine(TracedEngine):
    """Runs a small system by a kernel with two methods and the rule that chooses between them."""

    def __init__(self, problem, method, controller, project=None, exact=False):
        super().__init__(problem, method, controller, project, exact)
        self.given_controller, self.controller = controller, with_both_laws(controller)
        self.turns, self.counts = (slice(self.at[names[0]], self.at[names[0]] + len(names)) for names in (RULE, COUNTS))
        self.ratio = method.ratio or self.kernel.ratio
        self.now: Turns | None = None

    @property
    def derivatives(self) -> str:
        return f"exact Jacobian, eliminated straight through in the kernel; {said_of(self.method, self.now)}"

    def search(self, function) -> Callable | None:
        """None: events are searched for on the dense output."""

    def rows_from(self, state: State) -> Rows:
        rows = Rows(state.t, self.problem.t_span[1], state.u, turns=True)
        rows.tells_h_rho = True
        return rows

    def first_state(self) -> tuple[State, int]:
        evaluations = self.call_begin()
        if evaluations < 0:  # the right-hand side raises an error, which plain Python tells
            return self.plain_engine().begin()
        self.begun = State(self.problem.t_span[0], self.problem.u0, None, True, None)  # the kernel has the rest
        return self.begun, evaluations

    def take_over(self, state: State) -> int:
        numbers, memory = self.numbers, state.memory
        numbers[self.at["t"]] = state.t
        named = {"u0": state.u, "direction0": memory.direction} | ({"slope0": state.slope} if state.fresh else {})
        for name, row in named.items():
            numbers[self.at[name] : self.at[name] + self.problem.size] = row
        numbers[self.turns] = memory.turns
        self.whole[self.at["fresh"]], self.whole[self.at["prepared"]] = state.fresh, 0
        self.kernel.memory.write(memory, numbers)
        return 0

    def count_from(self, steps: int):
        super().count_from(steps)
        self.whole[self.counts] = 0

    def state_of(self, before: State, moved: bool) -> State:
        values = self.numbers.tolist()
        self.now = now = Turns._make(values[self.turns])
        settings = laws_of(self.method, self.given_controller)[now.mode != EXPLICIT][1]
        history = self.kernel.memory.read(values, Memory(settings, EMPTY)).history
        copy, n = self.numbers.copy(), self.problem.size
        u, slope, direction = (copy[self.at[name] : self.at[name] + n] for name in ("u0", "slope0", "direction0"))
        fresh = bool(self.whole[self.at["fresh"]])
        self.begun = State(values[self.at["t"]], u, slope, fresh, Turned(settings, history, now, direction))
        return self.begun

    def moved_last(self, ended: int, tried: int) -> bool:
        """The kernel itself knows what its work has come to."""
        return False

    def work(self, state, ended: int, moved: bool, steps: int, tried: int, early: int) -> tuple[int, int, int]:
        evaluated, jacobians, factorisations = self.whole[self.counts].tolist()
        explicit, implicit = self.method.members
        evaluated += (tried - factorisations) * explicit.evaluations + factorisations * implicit.evaluations
        return evaluated, jacobians, factorisations

    def plain_engine(self):
        return SwitchingEngine(self.problem, self.method, self.given_controller, self.project, PythonEngine, self.ratio)

    def record(self) -> Record:
        return self.rows.record(True)
