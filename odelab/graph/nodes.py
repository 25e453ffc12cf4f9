"""The operators of a node, and the functions of numbers that are made of several operations.

What the graph itself knows is in `odelab.graph.operations`; its functions are named here as well, because a function
that works on nodes needs both.
"""

import math
import operator
from collections.abc import Callable

import numpy as np

from odelab.graph.graphs import Graph, Node, arguments_of, is_number, lift, used
from odelab.graph.operations import (
    MOST_BITS,
    bits_of,
    call_two,
    checked_whole,
    choose,
    guard_divisor,
    integer,
    logical,
    one,
    raises_where,
    set_bits,
    truth,
    two,
    view,
    whole,
)
from odelab.graph.trails import TooLarge, Untraceable, innermost

__all__ = [
    "Graph",
    "Node",
    "TooLarge",
    "Untraceable",
    "arguments_of",
    "call_two",
    "checked_whole",
    "choose",
    "decide",
    "floor_divide",
    "heaviside",
    "is_number",
    "lift",
    "logical",
    "maximum",
    "minimum",
    "modulo",
    "one",
    "power",
    "raises_where",
    "sign",
    "two",
    "used",
    "view",
    "whole",
]

INDEX_BITS = 3  # of a whole number that is used as a place: one branch for each of its values
LARGEST_POWER = 16  # a whole exponent up to this one is multiplied out


def decide(trail, condition) -> bool:
    """The outcome of a condition on a trail; a condition and its negation are one."""
    if not isinstance(condition, Node):
        return bool(condition)
    if condition.op == "not":
        return not decide(trail, Node(condition.graph, condition.graph.ops[condition.i][2]))
    if condition.i in condition.graph.assumed:
        return condition.graph.assumed[condition.i]
    return trail.decide(condition.i)


def bitwise(op: str, a, b):
    """a & b and a | b of truth values; those of whole numbers are refused."""
    for x in (a, b):
        if not isinstance(x, bool | np.bool_) and not (isinstance(x, Node) and x.kind == "b"):
            raise Untraceable("combines the bits of whole numbers", "use %, // and *")
    return logical(op, a, b)


def both(a, b):
    return bitwise("and", a, b)


def either(a, b):
    return bitwise("or", a, b)


def differ(a, b):
    """a ^ b of truth values."""
    return logical("or", both(a, logical("not", b)), both(logical("not", a), b))


def shift_left(a, b):
    return shift("lshl", a, b)


def shift_right(a, b):
    return shift("lshr", a, b)


def shift(op: str, a, b):
    """a << b and a >> b, b being a number."""
    if not isinstance(a, Node) or a.kind != "l" or not isinstance(b, int | np.integer) or not 0 <= b < MOST_BITS:
        raise Untraceable("shifts bits by a number that depends on the state", "use % and //")
    bits = bits_of(a)
    node = a.graph.add(op, "l", a.i, a.graph.constant(int(b)).i)
    return set_bits(node, bits if bits is None else bits + int(b) if op == "lshl" else bits)


def operators(op: str):
    """The methods for `a op b` with a node on the left, and with one on the right."""

    def forward(self, other):
        return two(op, self, other)

    def reflected(self, other):
        return two(op, other, self)

    return forward, reflected


def operators_of(name: str):
    """The same for an operator that the function of this name in this module computes."""

    def forward(self, other):
        return globals()[name](self, other)

    def reflected(self, other):
        return globals()[name](other, self)

    return forward, reflected


class Operators:
    """The methods that a node gets from this module."""

    graph: Graph
    i: int
    kind: str
    real: Callable
    refuse: Callable

    def __bool__(self):
        trail = innermost.get()
        if trail is None:
            raise Untraceable("branches on a value outside of a traced function")
        return decide(trail, self if self.kind == "b" else self != 0)

    def __repr__(self):
        if innermost.get() is None:
            return f"Node({self.i}: {self.graph.ops[self.i]})"
        return self.refuse()

    def astype(self, kind, **_):
        letter = np.dtype(getattr(kind, "own", kind)).char
        if letter not in "dlq?":
            raise Untraceable("converts a number to another precision", "calculate in double precision")
        return self.real() if letter == "d" else self != 0 if letter == "?" else whole(self)

    def view(self, kind):
        return view(self, kind)  # type: ignore[arg-type]

    def __index__(self):
        bits, trail = self.graph.bits.get(self.i, MOST_BITS), innermost.get()
        if bits > INDEX_BITS or trail is None:  # a truth value is a place for Python, and none for NumPy
            return self.refuse()
        most = 2**bits - 1
        values = [*range(most + 1), *range(-1, -most - 1, -1)]
        return next((k for k in values[:-1] if decide(trail, two("eq", self, k))), values[-1])

    def __round__(self, digits=None):
        return whole(one("rint", self)) if digits is None else round_to_digits(self, digits)

    def __floor__(self):
        return whole(one("floor", self))

    def __ceil__(self):
        return whole(one("ceil", self))

    def __trunc__(self):
        return whole(self)

    def __pos__(self):
        return self

    def __neg__(self):
        return one("neg", self)

    def __abs__(self):
        return one("abs", self)

    def __invert__(self):
        if self.kind == "l":
            raise Untraceable("inverts the bits of a whole number")
        return logical("not", self)

    def __divmod__(self, other):
        return floor_divide(self, other), modulo(self, other)

    def __rdivmod__(self, other):
        return floor_divide(other, self), modulo(other, self)

    __add__, __radd__ = operators("add")
    __sub__, __rsub__ = operators("sub")
    __mul__, __rmul__ = operators("mul")
    __truediv__, __rtruediv__ = operators("div")
    __lt__, _ = operators("lt")
    __le__, _ = operators("le")
    __gt__, _ = operators("gt")
    __ge__, _ = operators("ge")
    __eq__, _ = operators("eq")
    __ne__, _ = operators("ne")
    __pow__, __rpow__ = operators_of("power")
    __floordiv__, __rfloordiv__ = operators_of("floor_divide")
    __mod__, __rmod__ = operators_of("modulo")
    __and__, __rand__ = operators_of("both")
    __or__, __ror__ = operators_of("either")
    __xor__, __rxor__ = operators_of("differ")
    __lshift__, __rlshift__ = operators_of("shift_left")
    __rshift__, __rrshift__ = operators_of("shift_right")


def install(methods: type):
    """Give nodes the methods of a class; they are written apart from Node, as they need what needs Node."""
    for name, method in vars(methods).items():
        if callable(method):
            setattr(Node, name, method)


install(Operators)


def graph_of(*values) -> Graph | None:
    """The graph of the first node among values; None where there is no node."""
    return next((x.graph for x in values if isinstance(x, Node)), None)


def power(a, b):
    """a ** b; a whole exponent up to LARGEST_POWER is multiplied out."""
    graph = graph_of(a, b)
    if graph is None:
        return np.float64(a) ** b if isinstance(a, float) else a**b
    base, exponent = lift(graph, a), lift(graph, b)
    if base is None or exponent is None:
        return NotImplemented
    count = exponent.value
    if count is not None and float(count).is_integer() and 0 <= abs(count) <= LARGEST_POWER:
        return product_of_powers(base, int(count), exponent.kind)
    result = call_two("pow", base, exponent)
    if graph.guarded:  # Python's floats raise where NumPy's are infinite
        raises_where(graph, logical("not", two("lt", one("abs", result), math.inf)))
    return result


def product_of_powers(base: Node, count: int, kind: str):
    """base ** count, multiplied out as LLVM does it for its own whole powers."""
    if base.kind == "b" or kind == "d":
        base = base.real()
    if count == 0:
        return base.graph.constant(1.0 if base.kind == "d" else 1)
    result, square, left = None, base, abs(count)
    while left:
        if left & 1:
            result = square if result is None else two("mul", result, square)
        left >>= 1
        square = two("mul", square, square) if left else square
    return result if count > 0 else two("div", 1.0, result)


def floor_divide(a, b):
    """a // b, as NumPy and Python compute it: the remainder is taken off before dividing."""
    return divided(a, b, operator.floordiv, floor_divide_integers, floor_divide_reals)


def modulo(a, b):
    """a % b, as NumPy and Python compute it: with the sign of b."""
    return divided(a, b, operator.mod, modulo_of_integers, modulo_of_reals)


def divided(a, b, plain: Callable, of_integers: Callable, of_reals: Callable):
    """An operation of division with a whole quotient, by the kinds of its operands."""
    graph = graph_of(a, b)
    if graph is None:
        return plain(np.float64(a) if isinstance(a, float) else a, b)
    a, b = lift(graph, a), lift(graph, b)
    if a is None or b is None:
        return NotImplemented
    if a.kind != "d" and b.kind != "d":
        return of_integers(integer(a), integer(b))
    guard_divisor(b)
    return of_reals(a.real(), b.real())


def floor_divide_reals(a: Node, b: Node):
    mod = call_two("fmod", a, b)
    quotient = two("div", two("sub", a, mod), b)
    wrong = logical("and", two("ne", mod, 0.0), two("ne", two("lt", b, 0.0), two("lt", mod, 0.0)))
    quotient = choose(wrong, two("sub", quotient, 1.0), quotient)
    near = one("floor", quotient)
    near = choose(two("gt", two("sub", quotient, near), 0.5), two("add", near, 1.0), near)
    exact = call_two("copysign", 0.0, two("div", a, b))
    return choose(two("eq", b, 0.0), two("div", a, b), choose(two("ne", quotient, 0.0), near, exact))


def floor_divide_integers(a: Node, b: Node):
    """a // b of whole numbers: plain Python is to be asked where b is zero."""
    graph = a.graph
    if a.value is not None and b.value:
        return graph.constant(a.value // b.value)
    raises_where(graph, two("eq", b, 0))
    divisor = choose(two("eq", b, 0), 1, b)
    quotient = set_bits(graph.add("ldiv", "l", a.i, lift_integer(graph, divisor).i), bits_of(a))
    remainder = unchecked("lsub", a, unchecked("lmul", quotient, divisor))
    odd = logical("and", two("ne", remainder, 0), two("ne", two("lt", a, 0), two("lt", divisor, 0)))
    return choose(odd, two("sub", quotient, 1), quotient)


def lift_integer(graph: Graph, x) -> Node:
    return integer(graph.constant(x) if not isinstance(x, Node) else x)


def unchecked(op: str, a, b) -> Node:
    """A product or difference of whole numbers that is known to be small."""
    graph = a.graph if isinstance(a, Node) else b.graph
    node = graph.add(op, "l", lift_integer(graph, a).i, lift_integer(graph, b).i)
    graph.bits.setdefault(node.i, MOST_BITS - 1)
    return node


def modulo_of_reals(a: Node, b: Node):
    mod = call_two("fmod", a, b)
    wrong = two("ne", two("lt", b, 0.0), two("lt", mod, 0.0))
    return choose(two("ne", mod, 0.0), choose(wrong, two("add", mod, b), mod), call_two("copysign", 0.0, b))


def modulo_of_integers(a: Node, b: Node):
    graph = a.graph
    if a.value is not None and b.value:
        return graph.constant(a.value % b.value)
    quotient = floor_divide_integers(a, b)
    remainder = unchecked("lsub", a, unchecked("lmul", quotient, b))
    known = bits_of(b) if b.value is None else (abs(b.value) - 1).bit_length()
    graph.bits[remainder.i] = min(known or MOST_BITS, MOST_BITS - 1)
    return remainder


def minimum(*values):
    """Python's min: the first of the smallest."""
    return pick("lt", values)


def maximum(*values):
    """Python's max: the first of the largest."""
    return pick("gt", values)


def pick(op: str, values):
    values = list(values[0]) if len(values) == 1 else values
    best = values[0]
    for x in values[1:]:
        best = choose(two(op, x, best), x, best)
    return best


def larger(a, b):
    """np.maximum: a NaN wins."""
    return choose(logical("or", two("ge", a, b), two("ne", a, a)), a, b)


def smaller(a, b):
    """np.minimum: a NaN wins."""
    return choose(logical("or", two("le", a, b), two("ne", a, a)), a, b)


def larger_number(a, b):
    """np.fmax: a number wins over NaN."""
    return choose(logical("or", two("ge", a, b), two("ne", b, b)), a, b)


def smaller_number(a, b):
    """np.fmin: a number wins over NaN."""
    return choose(logical("or", two("le", a, b), two("ne", b, b)), a, b)


def sign(x):
    """-1, 0 or 1; NaN of NaN."""
    return choose(two("gt", x, 0.0), 1.0, choose(two("lt", x, 0.0), -1.0, choose(two("eq", x, 0.0), 0.0, x)))


def heaviside(x, at_zero):
    """0 below zero, 1 above, the second argument at zero; NaN of NaN."""
    return choose(two("lt", x, 0.0), 0.0, choose(two("gt", x, 0.0), 1.0, choose(two("eq", x, 0.0), at_zero, x)))


def is_finite(x):
    return two("lt", one("abs", x), math.inf)


def is_infinite(x):
    return two("eq", one("abs", x), math.inf)


def is_nan(x):
    return two("ne", x, x)


def round_to_digits(x, digits: int):
    """round(x, digits), which Python and NumPy round differently next to a tie: plain Python is to be asked there."""
    if not isinstance(x, Node) or x.kind != "d":
        return x if isinstance(x, Node) and digits >= 0 else round(x, digits)
    scaled = two("mul" if digits >= 0 else "div", x, 10.0 ** abs(digits))
    from_tie = one("abs", two("sub", one("abs", two("sub", scaled, one("trunc", scaled))), 0.5))
    raises_where(x.graph, logical("not", two("gt", from_tie, two("mul", 1e-14, two("add", one("abs", scaled), 1.0)))))
    return two("div" if digits >= 0 else "mul", one("rint", scaled), 10.0 ** abs(digits))


def unequal(a, b):
    """np.logical_xor."""
    return differ(truth(a), truth(b))


def inverted(x):
    """np.invert of a truth value."""
    return x.__invert__() if isinstance(x, Node) else ~x
