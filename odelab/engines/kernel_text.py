"""What the kernel of a graph computes, as text: the graph of an attempt as arithmetic, or the IR."""

from odelab._choice import is_large
from odelab.control.controllers import Controller
from odelab.engines.lanes.runs import Runs
from odelab.engines.lanes.threads import prepare
from odelab.engines.large import LargeEngine, module_and_advance
from odelab.graph.arithmetic import lines_of
from odelab.graph.classes import RowClass
from odelab.graph.nodes import Graph
from odelab.graph.shapes import COLUMN, CONSTANTS, PARAMETERS, STATE
from odelab.kernels import store
from odelab.kernels.attempt import attempt
from odelab.kernels.large.array_attempt import array_attempt
from odelab.kernels.loops.run import Wanted, asked_of, module_and_names
from odelab.problem import Problem, without_jacobian

SOURCES = {STATE: "the state", PARAMETERS: "the parameters", CONSTANTS: "the constants", COLUMN: "the column"}


def graph_text(problem: Problem, method, controller: Controller, layout: str | None, ir: bool) -> str:
    """The arithmetic of an attempt, or the IR of the kernel."""
    if layout == "lanes" and ir:
        return prepare(Runs(problem, method, controller)).text
    if layout is None and is_large(problem, method):
        return text_of_large(problem, method, controller, ir)
    traced, asked = store.slopes_of(problem), asked_of(problem, method, controller)
    if ir:
        return module_and_names(Wanted(asked, traced))[0].text()
    graph = Graph(trusted=True)
    one = attempt(asked._replace(rows=layout != "lanes"), store.slopes_in(graph, traced), graph, ())
    after = {f"new {name}": now for name, (_, now) in one.carried.items()}
    lines = lines_of(graph, {**after, "status": one.status})
    behind = len(lines) - len(after) - 1
    return "\n".join(["in the attempt", *lines[:behind], "", "after the attempt", *lines[behind:]])


def text_of_large(problem: Problem, method, controller: Controller, ir: bool) -> str:
    """The arithmetic of rows that are alike, and of an attempt on arrays; or the IR of the kernel."""
    engine = LargeEngine(without_jacobian(problem), method, controller)
    if ir:
        return module_and_advance(engine.large, engine.loops, None)[0].text()
    one = array_attempt(engine.large)
    given = {f"for {one.graph.ops[i][2]}": action.given[0] for i, action in one.graph.actions.items()}
    after = {f"new {name}": now for name, (_, now) in one.carried.items()}
    lines = lines_of(one.graph, {**given, **after, "status": one.status})
    return "\n".join([*map(text_of_rows, engine.loops.classes.classes), "in the attempt, on arrays", *lines])


def text_of_rows(rows: RowClass) -> str:
    """The arithmetic of a class of rows, and where they are."""
    numbers = rows.rows()
    leaves = ", ".join(f"x{k} of {SOURCES[leaf.source]}" for k, leaf in enumerate(rows.leaves))
    where = f"row {numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} rows from {numbers[0]} to {numbers[-1]}"
    lines = lines_of(rows.recorded.graph, {rows.purpose: rows.recorded.outputs[0]})
    return "\n".join([f"{where}: {leaves or 'no leaves'}", *lines, ""])
