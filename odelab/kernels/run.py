"""The kernel of a single run: its first state, and the loop of its attempts, as machine code."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from odelab.graph.llvm import Module
from odelab.graph.machine import Machine
from odelab.graph.nodes import Graph
from odelab.kernels import store
from odelab.kernels.attempt import Asked, attempt, fixed_names
from odelab.kernels.beginning import add_begin, beginning
from odelab.kernels.modules import module_of_run
from odelab.kernels.single import add_advance
from odelab.kernels.store import Traced


class RunKernel(NamedTuple):
    """The machine code of single runs.

    machine    the code, which lives as long as this object
    begin      as `odelab.kernels.beginning.add_begin` has it
    advance    as `odelab.kernels.single.add_advance` has it
    at         the place of each value that the loop carries, by its name
    asked      what it was made for, kept alive because kernels are found by the identity of method and law
    """

    machine: Machine
    begin: Callable
    advance: Callable
    at: dict[str, int]
    asked: Asked


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


def asked_of(problem, method, controller) -> Asked:
    """What the attempts of a single run depend on."""
    vector, limited = isinstance(controller.atol, np.ndarray), bool(np.isfinite(controller.max_step))
    return Asked(problem.size, method, controller.law, vector, limited, rows=True)


def kernel_of_run(wanted: Wanted) -> RunKernel:
    """The kernel of a run, from memory where there is one."""
    asked, slopes, projection, exact = wanted
    n, method, law, *options = asked
    key = ("run", n, id(method), id(law), *options, exact, slopes.key, projection and projection.key)
    return store.kernel(key, lambda: made(wanted))


def made(wanted: Wanted) -> RunKernel:
    module, names = module_and_names(wanted)
    machine = Machine(module.text())
    at = {name: place for place, name in enumerate(names)}
    return RunKernel(machine, machine.function("begin", 5), machine.function("advance", 7), at, wanted.asked)


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
