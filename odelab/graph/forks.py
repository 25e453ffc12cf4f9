"""Branches on values: a function is run again for each outcome, and the results are joined by choices.

`joined(function)` is a function of nodes without branches. It is run once for the same nodes: as equal operations are
one node, calling it again with equal arguments costs nothing, and running the loop around it for each outcome adds no
operation to the graph.
"""

import math

import numpy as np
from odelab.graph.nodes import Array, Node, Untraceable, choose, is_number

MOST_PATHS = 128
trails = []  # of the functions that are being traced, innermost last


class Trail:
    def __init__(self, outcomes):
        self.outcomes, self.seen = outcomes, {}


def decide(condition):
    """The outcome of a condition in the path that is being followed."""
    if not trails:
        raise Untraceable("a branch on a value outside of a traced function")
    seen = trails[-1].seen
    if condition.op == "not":
        return not decide(Node(condition.graph, condition.graph.ops[condition.i][2]))
    if condition.i in condition.graph.assumed:
        return condition.graph.assumed[condition.i]
    if condition.i not in seen:
        seen[condition.i] = trails[-1].outcomes[len(seen)] if len(seen) < len(trails[-1].outcomes) else True
    return seen[condition.i]


def leaves(tree):
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in leaves(part)]
    if isinstance(tree, np.ndarray):
        return list(tree.reshape(-1))
    return [tree]


def rebuilt(tree, found):
    if isinstance(tree, (tuple, list)):
        parts = [rebuilt(part, found) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if isinstance(tree, np.ndarray):
        return Array.of([next(found) for _ in range(tree.size)]).reshape(tree.shape)
    return next(found)


def paths_of(call, graph, shape_of_failure=None):
    found, todo, failure = [], [[]], None
    while todo:
        trail = Trail(todo.pop())
        trails.append(trail)
        before = Untraceable.count
        try:
            result = call()
            if Untraceable.count != before:
                raise Untraceable("the function catches an error that a number without value raises")
        except (Untraceable, TypeError, AttributeError, NameError, NotImplementedError, RecursionError) as error:
            raise error if isinstance(error, Untraceable) else Untraceable(f"{type(error).__name__}: {error}") from error
        except Exception as error:  # NaN, as where plain Python is outside of the domain; it raises again when the
            result, failure = None, error  # driver takes the attempt that ended the run once more in plain Python
        finally:
            trails.pop()
        found.append((list(trail.seen.items()), result))
        if len(found) > MOST_PATHS:
            raise Untraceable(f"more than {MOST_PATHS} ways through its branches")
        for k in range(len(trail.outcomes), len(trail.seen)):
            outcomes = list(trail.seen.values())
            todo.append([*outcomes[:k], False])
    if all(result is None for _, result in found):
        raise Untraceable(f"it raises {type(failure).__name__}: {failure}")
    return found


def join(graph, call):
    """The result of `call` over all its paths."""
    paths = paths_of(call, graph)
    whole = next((result for _, result in paths if result is not None), None)
    if len(paths) == 1:
        if whole is None:
            raise Untraceable("it fails in every way through its branches")
        return whole
    count = len(leaves(whole))
    rows = [(seen, [math.nan] * count if result is None else leaves(result)) for seen, result in paths]
    if any(len(row) != count for _, row in rows):
        raise Untraceable("its branches return different numbers of results")
    return rebuilt(whole, iter(merge(graph, rows, 0)))


def merge(graph, rows, k):
    if len(rows) == 1:
        return rows[0][1]
    condition = Node(graph, rows[0][0][k][0])
    yes, no = (merge(graph, [row for row in rows if row[0][k][1] is side], k + 1) for side in (True, False))
    return [either(condition, a, b) for a, b in zip(yes, no)]


def either(condition, a, b):
    if a is b:
        return a
    if not isinstance(a, Node) and not isinstance(b, Node):
        if type(a) is type(b) and a == b:
            return a
        if not (is_number(a) and is_number(b)):
            raise Untraceable("its branches return different objects")
    return choose(condition, a, b)


def key_of(leaf):
    return ("node", leaf.i) if isinstance(leaf, Node) else (type(leaf), leaf if is_number(leaf) else id(leaf))


def joined(graph, function):
    """`function` without branches, run once for equal arguments."""
    known = {}

    def run(*arguments):
        key = tuple(key_of(leaf) for leaf in leaves(arguments))
        if key not in known:
            known[key] = (join(graph, lambda: function(*arguments)), arguments)
        return known[key][0]

    return run
