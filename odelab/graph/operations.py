"""The operations of a graph: arithmetic, comparisons, functions of one and of two numbers, choices.

Nothing is reordered. Only operations on constants are carried out, and factors of one are left out: nothing is
simplified that could change a bit.
"""

import operator

import numpy as np

from odelab.graph.graphs import Graph, Node, lift
from odelab.graph.trails import Untraceable, innermost

ARITHMETIC = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}
COMPARISONS = {
    **{"lt": operator.lt, "le": operator.le, "gt": operator.gt},
    **{"ge": operator.ge, "eq": operator.eq, "ne": operator.ne},
}
# The functions of one and of two numbers that a node may be, with NumPy's functions of the same name where they differ.
OF_ONE = (
    *("neg", "abs", "sqrt", "floor", "ceil", "trunc", "rint", "sin", "cos", "tan", "exp", "exp2", "expm1", "log"),
    *("log2", "log10", "log1p", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh"),
    *("erf", "erfc", "cbrt"),
)
OF_TWO = ("pow", "atan2", "hypot", "fmod", "copysign")
EXACT = {"neg": np.negative, "abs": np.abs, "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "rint": np.rint}
WHOLE_BITS = 31  # of int(x): beyond, plain Python repeats the attempt, as its integers have no largest one
MOST_BITS = 63


def raises_where(graph: Graph, condition):
    """The user's function raises, or may raise, where a condition holds on the path that is being followed."""
    if graph.trusted:
        return
    trail = innermost.get()
    for number, outcome in trail.seen.items() if trail is not None else ():
        on_path = Node(graph, number)
        condition = logical("and", condition, on_path if outcome else logical("not", on_path))
    node = lift(graph, condition)
    if node is not None and node.value is not False and all(node.i != known.i for known in graph.raised):
        graph.raised.append(node)


def two(op: str, a, b):
    """a op b, for an operation of ARITHMETIC or COMPARISONS; NotImplemented where one of them is no number."""
    if type(a) is not Node and type(b) is not Node:
        return of_numbers(op, a, b)
    graph = a.graph if type(a) is Node else b.graph
    a, b = lift(graph, a), lift(graph, b)
    if a is None or b is None:
        return NotImplemented
    return compare(op, a, b) if op in COMPARISONS else calculate(op, a, b)


def of_numbers(op: str, a, b):
    """a op b of two numbers, as NumPy computes it: a division by zero is no error."""
    with np.errstate(all="ignore"):
        if op in COMPARISONS:
            return bool(COMPARISONS[op](a, b))
        return ARITHMETIC[op](np.float64(a) if op == "div" or isinstance(a, float) else a, b)


def compare(op: str, a: Node, b: Node):
    graph, x, y = a.graph, a.value, b.value
    if x is not None and y is not None:
        return bool(COMPARISONS[op](x, y))
    if a.i == b.i and a.kind != "d":
        return op in ("le", "ge", "eq")
    if a.op == "select" and y is not None:
        condition, p, q = (Node(graph, i) for i in graph.ops[a.i][2:])
        if p.value is not None and q.value is not None:
            return of_outcomes(condition, COMPARISONS[op](p.value, y), COMPARISONS[op](q.value, y))
    if a.kind == b.kind == "l":
        return graph.add("l" + op, "b", a.i, b.i)
    return graph.add(op, "b", a.real().i, b.real().i)


def of_outcomes(condition: Node, yes: bool, no: bool):
    """The truth value that is `yes` where a condition holds and `no` elsewhere."""
    return yes if yes == no else condition if yes else logical("not", condition)


def calculate(op: str, a: Node, b: Node) -> Node:
    graph, x, y = a.graph, a.value, b.value
    if a.kind != "d" and b.kind != "d" and op != "div":
        return of_integers(op, a, b)
    if op == "div":
        guard_divisor(b)
    a, b = a.real(), b.real()
    if x is not None and y is not None:
        with np.errstate(all="ignore"):
            return graph.constant(ARITHMETIC[op](np.float64(x), np.float64(y)))
    if op == "mul" and (x == 1.0 or y == 1.0):
        return b if x == 1.0 else a
    if op == "div" and y == 1.0:
        return a
    if y is not None and a.op == "select" and between_constants(a):
        condition, p, q = (Node(graph, i) for i in graph.ops[a.i][2:])
        return choose(condition, calculate(op, p, b), calculate(op, q, b))
    if x is not None and b.op == "select" and between_constants(b):
        condition, p, q = (Node(graph, i) for i in graph.ops[b.i][2:])
        return choose(condition, calculate(op, a, p), calculate(op, a, q))
    return graph.add(op, "d", a.i, b.i)


def between_constants(node: Node) -> bool:
    """Is the node a choice between two constants?"""
    return all(node.graph.ops[i][0] == "const" for i in node.graph.ops[node.i][3:])


def guard_divisor(b: Node):
    """A handler of exceptions may see a division of Python's floats by zero, but none of NumPy's."""
    if b.graph.guarded:
        raises_where(b.graph, two("eq", b, 0))


def of_integers(op: str, a: Node, b: Node) -> Node:
    """The sum, difference or product of whole numbers or truth values."""
    graph = a.graph
    if a.kind == b.kind == "b":
        if op == "mul":
            return lift(graph, logical("and", a, b))  # type: ignore[return-value]
        raise Untraceable("adds truth values, which NumPy and Python do differently", "write float(x > 0.0) for each")
    if a.value is not None and b.value is not None:
        return graph.constant(ARITHMETIC[op](int(a.value), int(b.value)))
    a, b = integer(a), integer(b)
    widths = bits_of(a), bits_of(b)
    node = graph.add("l" + op, "l", a.i, b.i)
    if None not in widths:
        set_bits(node, sum(widths) if op == "mul" else max(widths) + 1)  # type: ignore[arg-type, type-var, operator]
    return node


def bits_of(node: Node) -> int | None:
    """How many bits an integer has at most; None where it wraps, as NumPy's integers do."""
    if node.op == "const":
        return int(node.value).bit_length()
    return node.graph.bits.get(node.i)


def set_bits(node: Node, bits: int | None) -> Node:
    if bits is not None:
        if bits > MOST_BITS and not node.graph.trusted:
            raise Untraceable("has whole numbers that may grow beyond 64 bits", "take their remainder, or use floats")
        node.graph.bits[node.i] = bits
    return node


def integer(node: Node) -> Node:
    """A whole number or a truth value as a whole number."""
    if node.kind == "l":
        return node
    if node.op == "const":
        return node.graph.constant(int(node.value))
    return set_bits(node.graph.add("whole", "l", node.real().i), 1 if node.kind == "b" else None)


def whole(x):
    """int(x), without a question whether it is finite."""
    if not isinstance(x, Node):
        return int(x)
    if x.kind != "d":
        return integer(x)
    value = x.value
    if value is not None:
        return x.graph.constant(int(value))
    return set_bits(x.graph.add("whole", "l", x.i), WHOLE_BITS)


def wrapping_whole(x):
    """int(x) in odelab's own functions, which know how large it is and may shift its bits."""
    return x.graph.add("whole", "l", x.i) if isinstance(x, Node) and x.kind == "d" and x.value is None else whole(x)


def checked_whole(x):
    """int(x) as Python has it: for NaN, infinity and numbers beyond WHOLE_BITS, plain Python is to be asked."""
    if isinstance(x, Node) and x.kind == "d":
        raises_where(x.graph, logical("not", two("lt", one("abs", x), 2.0**WHOLE_BITS)))
    return whole(x)


def one(op: str, x):
    """A function of OF_ONE of a node, or of a number."""
    if not isinstance(x, Node):
        return numpys(op)(x)
    if x.kind != "d" and op in ("neg", "abs"):
        return of_one_integer(op, x)
    x, graph = x.real(), x.graph
    if op in EXACT and x.op == "const":
        with np.errstate(all="ignore"):
            return graph.constant(EXACT[op](x.value))
    if op == "neg" and x.op == "neg":
        return Node(graph, graph.ops[x.i][2])
    return graph.add(op, "d", x.i)


def of_one_integer(op: str, x: Node):
    if x.kind == "b" and op == "neg":
        raise Untraceable("negates a truth value", "write `not`, or float(x > 0.0)")
    if x.kind == "b":
        return x
    return two("sub", 0, x) if op == "neg" else choose(two("lt", x, 0), two("sub", 0, x), x)


def call_two(op: str, a, b):
    """A function of OF_TWO of two numbers of which one at least is a node, or of two numbers."""
    if not isinstance(a, Node) and not isinstance(b, Node):
        return numpys(op)(a, b)
    graph = a.graph if isinstance(a, Node) else b.graph
    a, b = lift(graph, a), lift(graph, b)
    if a is None or b is None:
        return NotImplemented
    return graph.add(op, "d", a.real().i, b.real().i)


def numpys(op: str):
    """The function of NumPy or scipy.special that computes an operation of OF_ONE or OF_TWO."""
    if op in ("erf", "erfc"):
        import scipy.special

        return getattr(scipy.special, op)
    return {"neg": np.negative, "pow": np.power}.get(op) or getattr(np, op)


def truth(x):
    """A node or a number as a truth value."""
    return (x if x.kind == "b" else two("ne", x, 0)) if isinstance(x, Node) else bool(x)


def logical(op: str, *values):
    """ "and", "or", "not" of truth values; both sides are computed."""
    values = tuple(map(truth, values))
    if op == "not":
        x = values[0]
        if not isinstance(x, Node):
            return not x
        return Node(x.graph, x.graph.ops[x.i][2]) if x.op == "not" else x.graph.add("not", "b", x.i)
    a, b = values
    for x, other in ((a, b), (b, a)):
        if not isinstance(x, Node):
            return other if x == (op == "and") else x
    if a.i == b.i:
        return a
    return a.graph.add(op, "b", a.i, b.i)


def view(x: Node, kind) -> Node:
    """The bits of a double as a 64-bit integer, or the other way round."""
    letter = np.dtype(getattr(kind, "own", kind)).kind
    same = (letter == "f") == (x.kind == "d")
    return x if same else x.graph.add("bits", "l" if letter in "iu" else "d", x.i)


def choose(condition, a, b):
    """a where the condition holds, else b; both are computed."""
    condition = truth(condition)
    if not isinstance(condition, Node):
        return a if condition else b
    a, b = condition.lift(a), condition.lift(b)
    if a.kind != b.kind:
        a, b = (integer(a), integer(b)) if "d" not in a.kind + b.kind else (a.real(), b.real())
    if a.i == b.i:
        return a
    graph = condition.graph
    if condition.op == "not":
        return choose(Node(graph, graph.ops[condition.i][2]), b, a)
    merged = merged_choice(condition, a, b)
    return select(condition, a, b) if merged is None else merged


def select(condition: Node, a: Node, b: Node) -> Node:
    node = condition.graph.add("select", a.kind, condition.i, a.i, b.i)
    if a.kind == "l":
        widths = bits_of(a), bits_of(b)
        set_bits(node, None if None in widths else max(widths))  # type: ignore[type-var]
    return node


def merged_choice(condition: Node, a: Node, b: Node) -> Node | None:
    """Nested choices between the same two as one, because conditions are cheap; None where they are not nested."""
    graph = condition.graph
    if b.op == "select":
        inner, p, q = (Node(graph, i) for i in graph.ops[b.i][2:])
        if p.i == a.i:
            return choose(logical("or", condition, inner), a, q)
        if q.i == a.i:
            return choose(logical("or", condition, logical("not", inner)), a, p)
    if a.op == "select":
        inner, p, q = (Node(graph, i) for i in graph.ops[a.i][2:])
        if q.i == b.i:
            return choose(logical("and", condition, inner), p, b)
        if p.i == b.i:
            return choose(logical("and", condition, logical("not", inner)), q, b)
    return None
