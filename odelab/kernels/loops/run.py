"""The kernel of a single run: its first state, and the loop of its attempts, as machine code."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from odelab.control.controllers import ends_within
from odelab.graph.llvm import Module
from odelab.graph.nodes import Graph
from odelab.kernels import store
from odelab.kernels.attempt import Asked, MemoryPlaces, attempt, fixed_names, fixed_values, mass_of
from odelab.kernels.beginning import add_begin, beginning
from odelab.kernels.loops.single import add_advance
from odelab.kernels.loops.turns import add_functions
from odelab.kernels.loops.two_methods import stages_of
from odelab.kernels.machine import Machine, address
from odelab.kernels.modules import module_of_run
from odelab.kernels.start import search_of
from odelab.kernels.store import Traced
from odelab.problem import remembered


class RunKernel(NamedTuple):
    """The machine code of single runs.

    machine    the code, which lives as long as this object
    begin      as `odelab.kernels.beginning.add_begin` has it
    advance    as `odelab.kernels.loops.single.add_advance` has it
    at         the place of each value that `begin` writes and the loop carries, by its name
    memory     the places of what the controller remembers
    ratio      the cost of an implicit attempt over that of an explicit one, of a run by two methods
    """

    machine: Machine
    begin: Callable
    advance: Callable
    at: dict[str, int]
    memory: MemoryPlaces
    ratio: float


class Wanted(NamedTuple):
    """What a run asks of its kernel.

    asked         what its attempts depend on
    slopes        the right-hand side
    projection    the user's projection of states, None where there is none
    exact         whether it has the bits of plain Python
    """

    asked: Asked
    slopes: Traced
    projection: Traced | None = None
    exact: bool = False


class Plan(NamedTuple):
    """How a run is compiled.

    made_for      method, controller, projection and whether it is exact
    functions     the user's functions, with what they have captured
    kernel        the kernel
    fixed         what stays as it is during a run: values of the controller, behind them the parameters, and behind
                  these the ends of listed steps
    given         where these values and the parameters begin in memory
    """

    made_for: tuple
    functions: tuple[Traced, ...]
    kernel: RunKernel
    fixed: np.ndarray
    given: tuple[int, int]

    @property
    def is_valid(self) -> bool:
        """Have the user's functions captured nothing else since?"""
        return all(one.watch.is_unchanged() for one in self.functions)


def plan_of(problem, method, controller, project, exact: bool) -> Plan:
    """The plan of a run. A problem remembers the last ones, for short runs of one problem again and again.

    A table of all problems would keep a problem alive whose own functions refer to it.
    """
    made_for = (method, controller, project, exact)
    plans, place = remembered(problem, "plans_of_graph", *made_for)
    before = plans.get(place)  # once, as another thread may forget it
    if before is not None and before.is_valid:
        return before
    slopes = store.slopes_of(problem)
    projection = None if project is None else store.projection_of(project, problem.size)
    kernel = kernel_of_run(*wanted_of(problem, method, controller, slopes, projection, exact))
    values = slopes.parameters.values
    given = np.array([*values, *ends_of(problem, controller)])
    of_rule = [method.ratio or kernel.ratio] if method.switches else []  # behind all others
    fixed = np.array([*fixed_values(problem, controller, len(values)), *of_rule, *given], dtype=float)
    first = address(fixed)
    there = first, first + 8 * (len(fixed) - len(given))
    plan = Plan(made_for, (slopes, *([projection] if projection else [])), kernel, fixed, there)
    if slopes.parameters.are_lasting:
        plans[place] = plan
    return plan


def ends_of(problem, controller) -> np.ndarray:
    """The ends of listed steps in a run; empty for other controllers."""
    return np.zeros(0) if controller.ends is None else ends_within(controller.ends, *problem.t_span)


def wanted_of(problem, method, controller, slopes, projection=None, exact: bool = False) -> list[Wanted]:
    """What a run asks of its kernel, for each of its methods."""
    asked = [asked_of(problem, one, controller.suited_to(one), exact) for one in method.members]
    return [Wanted(one, slopes, projection, exact) for one in asked]


def ratio_of(problem, method, controller) -> float:
    """`RunKernel.ratio`, without a kernel."""
    return ratio_between(*wanted_of(problem, method, controller, store.slopes_of(problem)))


def ratio_between(explicit: Wanted, implicit: Wanted) -> float:
    """The same of what a run asks for; it is equal for all pieces of a run, with a window of times or without."""
    one, other = (wanted._replace(asked=wanted.asked._replace(windowed=False)) for wanted in (explicit, implicit))
    kept = [part for wanted in (one, other) for part in (wanted.asked.method, wanted.asked.law)]

    def count() -> float:
        return stages_of(one.asked, other.asked, lambda graph: store.slopes_in(graph, one.slopes)).ratio

    return store.kernel(("ratio", key_of(one), key_of(other)), count, *kept)


def asked_of(problem, method, controller, exact: bool = False) -> Asked:
    """What the attempts of a single run depend on."""
    vector, limited = isinstance(controller.atol, np.ndarray), bool(np.isfinite(controller.max_step))
    return Asked(
        problem.size,
        method,
        controller.law,
        vector,
        limited,
        rows=True,
        windowed=problem.window is not None,
        listed=controller.ends is not None,
        pivots=not exact,
        mass=mass_of(problem),
    )


def kernel_of_run(*wanted: Wanted) -> RunKernel:
    """The kernel of a run by one method or by two, from memory where there is one."""
    key = tuple(key_of(one) for one in wanted)
    kept = [part for one in wanted for part in (one.asked.method, one.asked.law)]
    return store.kernel(("run", *key), lambda: made(*wanted), *kept)


def key_of(wanted: Wanted) -> tuple:
    """Equal for what one kernel serves."""
    asked, slopes, projection, exact = wanted
    n, method, law, *options = asked
    return n, id(method), id(law), *options, exact, slopes.key, projection and projection.key


def made(*wanted: Wanted) -> RunKernel:
    module, names, ratio = module_and_names(*wanted)
    machine = Machine(module.text())
    at = {name: place for place, name in enumerate(names)}
    return RunKernel(machine, machine.function("begin", 5), machine.function("advance", 7), at, MemoryPlaces(at), ratio)


def module_and_names(*wanted: Wanted) -> tuple[Module, list[str], float]:
    """The module of a single run, the names of what `begin` writes, in order, and `RunKernel.ratio`.

    The loop carries the first of them; behind them is the slope at the start.
    """
    asked, slopes, projection, exact = wanted[0]
    module, parameters, fixed = module_of_run(exact, slopes, projection), slopes.parameters.names, fixed_names(asked)

    def slopes_in(graph):
        return store.slopes_in(graph, slopes)

    project_in = None if projection is None else functools.partial(store.projection_in, traced=projection)
    if len(wanted) > 1:
        stages = stages_of(asked, wanted[1].asked, slopes_in, project_in)
        ratio = ratio_between(*wanted) if asked.windowed else stages.ratio
        return module, add_functions(module, stages, slopes_in, fixed, parameters), ratio
    graph = Graph(trusted=True)
    project = None if project_in is None else project_in(graph)
    one = attempt(asked, slopes_in(graph), graph, (), project)
    add_advance(module, one, fixed, parameters)
    graph = Graph(trusted=True)
    names = [*one.carried, *(f"first_slope{i}" for i in range(asked.n))]
    first, search = beginning(asked, slopes_in(graph), graph, ()), search_of(asked, slopes_in)
    add_begin(module, graph, first, names, fixed, parameters, search=search)
    return module, names, 1.0
