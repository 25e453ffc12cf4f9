"""Exact derivatives of a graph, as nodes of the same graph: forwards, with the rules of `odelab.linear.rules`."""

import types

from odelab.graph import nodes
from odelab.graph.nodes import Graph, Node, Untraceable, arguments_of, call_two, choose, one, two, used
from odelab.linear.rules import OF_ONE, OF_TWO

SPELLED = {f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")}
FLAT = ("floor", "ceil", "trunc", "rint")
STEEP = ("sqrt", "cbrt", "pow", "hypot", "log", "log2", "log10", "log1p", "asin", "acos", "acosh", "atanh")


def function_of_one(op: str):
    def call(x):
        return one(op, x)

    return call


def copysign(a, b):
    return call_two("copysign", a, b)


MATH = types.SimpleNamespace(
    copysign=copysign,
    **{op: function_of_one(op) for op in ("exp", "sin", "cos", "sinh", "cosh", "sqrt", "floor", "trunc")},
)


def derivatives(graph: Graph, outputs, inputs) -> list[dict]:
    """The derivatives of each output: {index of an input: node}; what is not there is zero whatever the state is.

    >>> from odelab.graph.derivatives import derivatives
    >>> from odelab.graph.evaluation import evaluate
    >>> from odelab.graph.nodes import Graph
    >>> graph = Graph()
    >>> x, y = graph.inputs("u", 2)
    >>> (row,) = derivatives(graph, [x * x * y], [x, y])
    >>> [float(value) for value in evaluate(graph, [row[0], row[1]], {"u0": 3.0, "u1": 2.0})]
    [12.0, 9.0]
    """
    known: dict[int, dict] = {node.i: {j: graph.constant(1.0)} for j, node in enumerate(inputs)}
    for number in used(graph, outputs):
        operation = graph.ops[number]
        inner = [known.get(i, {}) for i in arguments_of(operation)]
        if number not in known and operation[1] == "d" and any(inner):
            known[number] = derivative(Node(graph, number), operation, inner)
    return [known.get(node.i, {}) for node in outputs]


def derivative(value: Node, operation: tuple, inner: list[dict]) -> dict:
    """The derivatives of one operation from those of its arguments."""
    graph, op = value.graph, operation[0]
    x = [Node(graph, i) for i in arguments_of(operation)]
    if op == "select":
        _, yes, no = inner
        return {k: choose(x[0], yes.get(k, 0.0), no.get(k, 0.0)) for k in {**yes, **no}}
    if op in FLAT:
        return {}
    return chained(inner, [lambda k=k: factor(op, k, x, value) for k in range(len(x))], op in STEEP)


def chained(inner: list[dict], factors: list, may_be_infinite: bool) -> dict:
    """The chain rule: the sum of factor times derivative; factors of arguments that do not depend are not made.

    may_be_infinite    a derivative of zero stays zero where the factor is infinite, as at rest that of the root of x^2
    """
    sums: dict = {}
    for row, make in zip(inner, factors, strict=True):
        scale = make() if row else None
        for k, entry in row.items():
            term = product(scale, entry)
            if may_be_infinite:
                term = choose(two("eq", entry, 0.0), 0.0, term)
            sums[k] = two("add", sums[k], term) if k in sums else term
    return sums


def product(scale, entry: Node):
    """scale * entry; a factor of -1 changes the sign."""
    constant = scale.value if isinstance(scale, Node) else scale
    return one("neg", entry) if constant == -1.0 else two("mul", entry, scale)


def factor(op: str, k: int, x: list[Node], value: Node):
    """The derivative of an operation with respect to its argument k."""
    if op in PARTIALS:
        return PARTIALS[op][k](x, value)
    name = SPELLED.get(op, op)
    if name in OF_ONE:
        return OF_ONE[name](MATH, x[0], value)
    if name in OF_TWO:
        return OF_TWO[name][k](MATH, *x, value)
    raise Untraceable(f"uses {op}, whose derivative is not known")


def unit(x, value):
    return 1.0


def minus_unit(x, value):
    return -1.0


def second(x, value):
    return x[1]


def first(x, value):
    return x[0]


def reciprocal_of_second(x, value):
    return 1.0 / x[1]


def by_divisor(x, value):
    return -(value / x[1])


def by_base(x, value):
    """y x^(y - 1); zero where the exponent is."""
    a, y = x
    return choose(two("eq", y, 0.0), 0.0, y * call_two("pow", a, y - 1.0))


def by_exponent(x, value):
    """x^y log(x); zero where the power is."""
    return choose(two("eq", value, 0.0), 0.0, value * one("log", x[0]))


def of_abs(x, value):
    return nodes.sign(x[0])


def of_exp2(x, value):
    return 0.6931471805599453 * value


def of_cbrt(x, value):
    return 1.0 / (3.0 * value * value)


PARTIALS = {
    **{"add": (unit, unit), "sub": (unit, minus_unit), "mul": (second, first), "neg": (minus_unit,)},
    **{"div": (reciprocal_of_second, by_divisor), "pow": (by_base, by_exponent), "abs": (of_abs,)},
    **{"exp2": (of_exp2,), "cbrt": (of_cbrt,)},
}
