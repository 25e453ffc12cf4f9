"""The loop of one run: attempt after attempt until it ends, with a row of a table for each accepted step.

It knows nothing of methods or laws; what an attempt is, a graph says (`odelab.kernels.attempt`).
"""

from typing import Any

import numpy as np

from odelab.graph.evaluation import evaluate
from odelab.graph.llvm import Function, Module
from odelab.graph.nodes import Node
from odelab.kernels.attempt import Attempt

SAMPLES = 400  # random attempts from which the usual outcomes of conditions are told


ADVANCE = {
    **dict.fromkeys(("carried", "status", "fixed", "params", "record"), "p"),
    **dict.fromkeys(("attempts", "capacity"), "l"),
}  # the arguments of `advance`


def add_advance(module: Module, attempt: Attempt, fixed: list[str], parameters: list[str]) -> Function:
    """The function `advance(carried, status, fixed, params, record, attempts, capacity)` of a module.

    carried     the values that the loop carries, in the order of `Attempt.carried`
    status      of the run; only written
    fixed       the inputs of these names, which stay as they are
    params      in the order of `parameters`, which are names of inputs, too; behind them the ends of listed steps
    record      rows as `Attempt.row` has them; the row behind the last step is written in every attempt
    attempts    how many to make at most; one at least is made
    capacity    the number of steps at which the loop ends, because the table is full
    """
    function = module.function("advance", ADVANCE)
    names = list(attempt.carried)
    inputs = {name: function.load("d", "%fixed", k) for k, name in enumerate(fixed)}
    inputs |= {name: function.load("d", "%params", k) for k, name in enumerate(parameters)}
    kinds = {name: before.kind for name, (before, _) in attempt.carried.items()}
    variables = {
        name: function.variable(kinds[name], function.load(kinds[name], "%carried", k)) for k, name in enumerate(names)
    }
    made, ended = function.variable("l", "0"), function.variable("l", "0")
    with function.repeat() as again_when:
        now = {name: variable.get() for name, variable in variables.items()}
        if attempt.end is not None:
            (place,) = function.graph(attempt.graph, [attempt.end], inputs | now)
            now["end"] = function.load("d", "%params", place)
        after = [node for _, node in attempt.carried.values()]
        found = function.graph(attempt.graph, [*after, attempt.status, *attempt.row], inputs | now, usual(attempt))
        for name, value in zip(names, found, strict=False):
            variables[name].set(value)
        status, row = found[len(names)], found[len(names) + 1 :]
        ended.set(status)
        store_row(function, now["steps"], row)
        count = function.whole("add", made.get(), 1)
        made.set(count)
        room = function.compare("slt", found[names.index("steps")], "%capacity")
        more = function.logical("and", function.compare("slt", count, "%attempts"), room)
        again_when(function.logical("and", more, function.compare("eq", status, 0)))
    for k, name in enumerate(names):
        function.store(kinds[name], variables[name].get(), "%carried", k)
    function.store("l", ended.get(), "%status", 0)
    return function


def store_row(function: Function, steps: str, row: list[str]):
    """Write the row behind so many steps."""
    first = function.whole("mul", function.whole("add", steps, 1), len(row))
    for k, value in enumerate(row):
        function.store("d", value, "%record", function.whole("add", first, k))


def usual(attempt: Attempt) -> dict[int, bool]:
    """The outcomes of conditions that are the same in all accepted attempts well inside of a run.

    They are found on random states. What is not known to be usual only costs time.
    """
    graph, draw = attempt.graph, np.random.default_rng(0)
    if "error" not in attempt.carried:
        return {}
    kinds = {operation[2]: operation[1] for operation in graph.ops if operation[0] == "in"}
    inputs: dict[str, Any] = {
        name: np.zeros(SAMPLES, int) if kind == "l" else draw.uniform(0.1, 1.0, SAMPLES) for name, kind in kinds.items()
    }
    inputs |= {"t": 0.0, "t1": 1e6, "rtol": 10.0 ** draw.uniform(-12, -1, SAMPLES), "largest": np.inf}
    inputs |= {"next_step": 10.0 ** draw.uniform(-4, -1, SAMPLES), "was_rejected": 0.0, "log_e1": -1.0, "log_e2": -1.0}
    inputs |= {"log_r1": 0.0} | {name: 1e-12 for name in kinds if name.startswith("atol")}
    inputs |= {
        name: inputs[name] * draw.choice([-1.0, 1.0], SAMPLES) for name in kinds if name.startswith(("u", "slope"))
    }
    inputs["last_step"] = inputs["next_step"]
    conditions = [Node(graph, i) for i, operation in enumerate(graph.ops) if operation[1] == "b"]
    error, *found = evaluate(graph, [attempt.carried["error"][1], *conditions], inputs)
    good = (np.broadcast_to(error, SAMPLES) > 1e-4) & (np.broadcast_to(error, SAMPLES) < 0.81)
    if not good.any():
        return {}
    seen = {node.i: np.broadcast_to(outcome, SAMPLES)[good] for node, outcome in zip(conditions, found, strict=True)}
    return {i: bool(outcomes[0]) for i, outcomes in seen.items() if (outcomes == outcomes[0]).all()}
