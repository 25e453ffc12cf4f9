"""Derivatives on the graph, forwards, and the elimination of a system whose pattern is known."""

from odelab.graph import nodes
import numpy as np
from odelab.graph.nodes import arguments_of, used
from odelab.graph.nodes import Array, Node
from odelab.graph.tracing import math, stand_in

from odelab.linear.rules import OF_ONE, OF_TWO

SPELLED = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
           "atan2": "arctan2"}  # fmt: skip


def rule(text, **values):
    return eval(text, {"math": stand_in(math), **values})


def derivatives(graph, outputs, inputs):
    """{place of an input: derivative} for each output; what is not there is zero whatever the state is."""
    place = {x.i: j for j, x in enumerate(inputs)}
    found = {}
    for i in used(graph, outputs):
        op, kind, *arguments = graph.ops[i]
        if i in place:
            found[i] = {place[i]: 1.0}
            continue
        of = [found.get(a, {}) for a in arguments_of(graph.ops[i])]
        if kind != "d" or not any(of):
            continue
        x = [Node(graph, a) for a in arguments]
        v = Node(graph, i)
        if op == "add":
            parts = [(of[0], 1.0), (of[1], 1.0)]
        elif op == "sub":
            parts = [(of[0], 1.0), (of[1], -1.0)]
        elif op == "mul":
            parts = [(of[0], x[1]), (of[1], x[0])]
        elif op == "div":
            parts = [(of[0], 1.0 / x[1]), (of[1], -(v / x[1]) if of[1] else 0.0)]
        elif op == "neg":
            parts = [(of[0], -1.0)]
        elif op == "select":
            found[i] = {k: nodes.choose(x[0], of[1].get(k, 0.0), of[2].get(k, 0.0)) for k in {**of[1], **of[2]}}
            continue
        elif op == "abs":
            parts = [(of[0], nodes.sign(x[0]))]
        elif op == "pow":
            exponent = x[1] * nodes.call_two("pow", x[0], x[1] - 1.0)
            parts = [(of[0], exponent), (of[1], nodes.choose(v == 0.0, 0.0, v * nodes.one("log", x[0])) if of[1] else 0.0)]
        elif op in ("floor", "ceil", "trunc", "rint"):
            continue
        elif op == "exp2":
            parts = [(of[0], 0.6931471805599453 * v)]
        elif op == "cbrt":
            parts = [(of[0], 1.0 / (3.0 * v * v))]
        elif op == "fmod":
            parts = [(of[0], 1.0), (of[1], -nodes.one("trunc", x[0] / x[1]) if of[1] else 0.0)]
        elif SPELLED.get(op, op) in OF_ONE:
            parts = [(of[0], rule(OF_ONE[SPELLED.get(op, op)], x=x[0], v=v))]
        elif SPELLED.get(op, op) in OF_TWO:
            a, b = (rule(text, a=x[0], b=x[1], v=v) for text in OF_TWO[SPELLED.get(op, op)])
            parts = [(of[0], a), (of[1], b)]
        else:
            raise nodes.Untraceable(f"the derivative of {op} is not known")
        sums = {}
        for derivative, factor in parts:
            for k, d in derivative.items():
                term = d * factor if not (isinstance(factor, float) and factor == 1.0) else d
                term = -d if isinstance(factor, float) and factor == -1.0 else term
                sums[k] = sums[k] + term if k in sums else term
        found[i] = sums
    return [found.get(node.i, {}) for node in outputs]
