"""The functions of `odelab.elementary` in kernels: their own source, run on values that are instructions."""

from typing import NamedTuple

from odelab import elementary
from odelab.elementary import quarter_turns
from odelab.elementary.machine import Machine
from odelab.graph.llvm import Function

OPERATIONS = {
    **{"add": ("fadd", "add"), "sub": ("fsub", "sub"), "mul": ("fmul", "mul"), "truediv": ("fdiv", "")},
    **{"lshift": ("", "shl"), "rshift": ("", "ashr"), "and": ("", "and")},
}
COMPARISONS = {"lt": ("olt", "slt"), "le": ("ole", "sle"), "gt": ("ogt", "sgt"), "ge": ("oge", "sge")}
COMPARISONS |= {"eq": ("oeq", "eq"), "ne": ("une", "ne")}


class Value(NamedTuple):
    """A value of a function that is written; its operators add instructions.

    function   the function
    kind       "d", "l" or "b"
    name       of the value
    """

    function: Function
    kind: str
    name: str

    def other(self, x) -> str:
        return x.name if isinstance(x, Value) else self.function.constant(self.kind, x)

    def made(self, kind: str, instruction: str) -> "Value":
        return Value(self.function, kind, self.function.value(instruction))

    def binary(self, name: str, a: str, b: str) -> "Value":
        on_doubles, on_integers = OPERATIONS[name]
        word = on_doubles if self.kind == "d" else "and" if self.kind == "b" else on_integers
        return self.made(self.kind, f"{word} {self.function.type(self.kind)} {a}, {b}")

    def compared(self, name: str, x) -> "Value":
        on_doubles, on_integers = COMPARISONS[name]
        word = f"fcmp {on_doubles}" if self.kind == "d" else f"icmp {on_integers}"
        return self.made("b", f"{word} {self.function.type(self.kind)} {self.name}, {self.other(x)}")

    def __neg__(self):
        return self.made("d", f"fneg {self.function.type('d')} {self.name}")

    def __abs__(self):
        return self.called("abs")

    def __hash__(self):
        return hash(self.name)

    def called(self, op: str) -> "Value":
        return Value(self.function, "d", self.function.called(op, [self.name]))


def operator_of(name: str, swapped: bool):
    def operate(self, x):
        names = (self.other(x), self.name) if swapped else (self.name, self.other(x))
        return self.binary(name, *names)

    return operate


def comparison_of(name: str):
    def compare(self, x):
        return self.compared(name, x)

    return compare


for word in OPERATIONS:
    setattr(Value, f"__{word}__", operator_of(word, swapped=False))
    setattr(Value, f"__r{word}__", operator_of(word, swapped=True))
for word in COMPARISONS:
    setattr(Value, f"__{word}__", comparison_of(word))


def where(condition, x, y):
    """x in the lanes in which the condition holds, y in the others."""
    if not isinstance(condition, Value):
        return x if condition else y
    function = condition.function
    kind = next((one.kind for one in (x, y) if isinstance(one, Value)), "d")
    names = [one.name if isinstance(one, Value) else function.constant(kind, one) for one in (x, y)]
    types = [function.type(one) for one in ("b", kind, kind)]
    given = ", ".join(f"{one} {name}" for one, name in zip(types, [condition.name, *names], strict=True))
    return Value(function, kind, function.value(f"select {given}"))


def rarely(condition, usual, unusual):
    """Like `where` for each of two rows of values; the second row is computed only if some lane needs it."""
    function = condition.function
    places = [function.variable("d", one.name) for one in usual]
    with function.when(function.any(condition.name)):
        for place, one, other in zip(places, usual, unusual(), strict=True):
            place.set(where(condition, other, one).name)
    return tuple(Value(function, "d", place.get()) for place in places)


def bits(x):
    function = x.function
    return x.made("l", f"bitcast {function.type('d')} {x.name} to {function.type('l')}")


def number(x):
    function = x.function
    return x.made("d", f"bitcast {function.type('l')} {x.name} to {function.type('d')}")


def root(x):
    return x.called("sqrt")


def usually(condition, usual, unusual):
    """The first row: for functions whose rare arguments are looked after otherwise."""
    return usual


EVERYWHERE = elementary.functions(Machine(where, rarely, bits, number, root))
NEARBY = elementary.functions(Machine(where, usually, bits, number, root))
TURNING = (
    "sin",
    "cos",
    "tan",
)  # their arguments beyond `NEAR` take five hundred operations, which LLVM compiles slowly


class Closed(NamedTuple):
    """Writes the elementary functions of `odelab.elementary`.

    everywhere    also for arguments of the sine that are larger than `quarter_turns.NEAR`; otherwise C computes those
    """

    everywhere: bool

    @property
    def names(self):
        return EVERYWHERE.keys()

    def write(self, function: Function, op: str, arguments: list[str]) -> str:
        values = [Value(function, "d", name) for name in arguments]
        if self.everywhere or op not in TURNING:
            return EVERYWHERE[op](*values).name
        (x,) = values
        near = NEARBY[op](x)
        place = function.variable("d", near.name)
        far = abs(x) > quarter_turns.NEAR
        with function.when(function.any(far.name)):
            place.set(where(far, Value(function, "d", function.of_library(op, arguments)), near).name)
        return place.get()


EXACT, FAST = Closed(everywhere=True), Closed(everywhere=False)
