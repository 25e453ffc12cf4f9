"""Derivatives on the graph, forwards, and the elimination of a system whose pattern is known."""

from odelab.graph import nodes
import numpy as np
from odelab.graph.nodes import arguments_of, used
from odelab.graph.nodes import Array, Node
from odelab.graph.tracing import math, stand_in

from odelab.engines.rosenbrock.elimination import LARGEST_RESIDUAL, elimination
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


class Factors:
    """M = I - h gamma J, eliminated without pivoting in an order of little fill; `sound` after the first solution."""

    def __init__(self, J, hg):
        self.rows = [tuple(sorted(row)) for row in J]
        self.order, self.entries = found = elimination(self.rows)
        self.M = now = {}
        for i, row in enumerate(J):
            for j in sorted({*row, i}):
                of_j = hg * row[j] if j in row else None
                now[i, j] = 1.0 if of_j is None else 1.0 - of_j if i == j else -of_j
        now = dict(now)
        self.P, self.L, self.W, self.sound = {}, {}, {}, None
        for place, k in enumerate(self.order):
            self.P[k] = 1.0 / now[k, k]
            right = [self.order[j] for j in self.entries[place] if j > place]
            for j in right:
                self.W[k, j] = now[k, j] * self.P[k]
            for i in found.below(place):
                self.L[i, k] = now[i, k] * self.P[k]
                for j in right:
                    term = self.L[i, k] * now[k, j]
                    now[i, j] = now[i, j] - term if (i, j) in now else -term

    def solve(self, b):
        y, x, order = {}, {}, self.order
        for place, i in enumerate(order):
            y[i] = b[i]
            for k in self.entries[place]:
                if k < place:
                    y[i] = y[i] - self.L[i, order[k]] * y[order[k]]
        for place in reversed(range(len(order))):
            i = order[place]
            x[i] = y[i] * self.P[i]
            for j in reversed(self.entries[place]):
                if j > place:
                    x[i] = x[i] - self.W[i, order[j]] * x[order[j]]
        if self.sound is None:
            self.sound = self.check(b, x)
        return Array.of([x[i] for i in range(len(order))])

    def check(self, b, x):
        sound = True
        for i, row in enumerate(self.rows):
            left, size = b[i], [abs(b[i])]
            for j in sorted({*row, i}):
                term = self.M[i, j] * x[j]
                left, size = left - term, [*size, abs(term)]
            ok = abs(left) <= LARGEST_RESIDUAL * nodes.total(size)
            sound = ok if sound is True else sound & ok
        return sound
