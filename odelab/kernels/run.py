"""The kernel of a single run: its first state, and the loop of its attempts, as machine code."""

import operator
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from odelab.control.controllers import ends_within
from odelab.graph.llvm import Module
from odelab.graph.nodes import Graph
from odelab.kernels import store
from odelab.kernels.attempt import Asked, MemoryPlaces, attempt, fixed_names, fixed_values
from odelab.kernels.beginning import add_begin, beginning
from odelab.kernels.machine import Machine
from odelab.kernels.modules import module_of_run
from odelab.kernels.single import add_advance
from odelab.kernels.store import Traced


class RunKernel(NamedTuple):
    """The machine code of single runs.

    machine    the code, which lives as long as this object
    begin      as `odelab.kernels.beginning.add_begin` has it
    advance    as `odelab.kernels.single.add_advance` has it
    at         the place of each value that the loop carries, by its name
    memory     the places of what the controller remembers
    """

    machine: Machine
    begin: Callable
    advance: Callable
    at: dict[str, int]
    memory: MemoryPlaces


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

    made_for      span, method, controller, projection and whether it is exact
    functions     the user's functions, with what they have captured
    kernel        the kernel
    fixed         what stays as it is during a run: values of the controller, behind them the parameters, and behind
                  these the ends of listed steps
    parameters    how many numbers these two are
    """

    made_for: tuple
    functions: tuple[Traced, ...]
    kernel: RunKernel
    fixed: np.ndarray
    parameters: int

    def fits(self, made_for: tuple) -> bool:
        """Is it for this method, controller and so on, and have the functions captured nothing else since?"""
        same = all(map(operator.is_, self.made_for, made_for))
        return same and all(one.watch.is_unchanged() for one in self.functions)


def plan_of(problem, method, controller, project, exact: bool) -> Plan:
    """The plan of a run. A problem remembers the last one, for short runs of one problem again and again.

    A table of all problems would keep a problem alive whose own functions refer to it.
    """
    made_for = (problem.t_span, method, controller, project, exact)
    known = vars(problem).get("plan_of_graph")
    if known is not None and known.fits(made_for):
        return known
    slopes = store.slopes_of(problem)
    projection = None if project is None else store.projection_of(project, problem.size)
    kernel = kernel_of_run(Wanted(asked_of(problem, method, controller, exact), slopes, projection, exact))
    values = slopes.parameters.values
    given = np.array([*values, *ends_of(problem, controller)])
    fixed = np.array([*fixed_values(problem, controller, len(values)), *given], dtype=float)
    plan = Plan(made_for, (slopes, *([projection] if projection else [])), kernel, fixed, len(given))
    if slopes.parameters.are_lasting:
        vars(problem)["plan_of_graph"] = plan
    return plan


def ends_of(problem, controller) -> np.ndarray:
    """The ends of listed steps in a run; empty for other controllers."""
    return np.zeros(0) if controller.ends is None else ends_within(controller.ends, *problem.t_span)


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
        mass=None if problem.mass is None else problem.mass_matrix.entries,
    )


def kernel_of_run(wanted: Wanted) -> RunKernel:
    """The kernel of a run, from memory where there is one."""
    asked, slopes, projection, exact = wanted
    n, method, law, *options = asked
    key = ("run", n, id(method), id(law), *options, exact, slopes.key, projection and projection.key)
    return store.kernel(key, lambda: made(wanted), method, law)


def made(wanted: Wanted) -> RunKernel:
    module, names = module_and_names(wanted)
    machine = Machine(module.text())
    at = {name: place for place, name in enumerate(names)}
    return RunKernel(machine, machine.function("begin", 5), machine.function("advance", 7), at, MemoryPlaces(at))


def module_and_names(wanted: Wanted) -> tuple[Module, list[str]]:
    """The module of a single run, and the names of what its loop carries, in order."""
    asked, slopes, projection, exact = wanted
    module, parameters, fixed = module_of_run(exact, slopes, projection), slopes.parameters.names, fixed_names(asked)
    graph = Graph(trusted=True)
    project = None if projection is None else store.projection_in(graph, projection)
    one = attempt(asked, store.slopes_in(graph, slopes), graph, (), project)
    add_advance(module, one, fixed, parameters)
    graph = Graph(trusted=True)
    first = beginning(asked, store.slopes_in(graph, slopes), graph, ())
    add_begin(module, graph, first, list(one.carried), fixed, parameters)
    return module, list(one.carried)
