"""Which factors of a product are its coefficient, and which are the thing that is multiplied.

The answer follows from how the factors hang together and never from their values, so that it is the same for all data:

normalisation  f / s, where s grows as f does (its norm, its largest entry, the sum of it): one thing
activation     of which each element depends on one element of what it is computed from (a sigmoid(a)): one thing
coarse         what has fewer numbers than the product, also where it was expanded to its size: a coefficient
bounded        a factor of full size between 0 and some number, beside one that is not (a gate): a coefficient
else           neither is: the product is one thing
"""

import functools
import math
from fractions import Fraction
from typing import Any, NamedTuple

from netbridge.foreign.algebra import Algebra
from netbridge.foreign.vocabulary import EXPANDING, LAYOUTS, POINTWISE, RESIZING, TRANSPARENT

EPSILON = 1e-2  # what is added to a statistic, at most, to keep it from zero
INFINITE = (-math.inf, math.inf)
RANGES = {
    **dict.fromkeys("sigmoid hardsigmoid softmax gt ge lt le eq ne bool heaviside".split(), (0.0, 1.0)),  # noqa: SIM905
    **dict.fromkeys("tanh erf sin cos sign softsign hardtanh".split(), (-1.0, 1.0)),  # noqa: SIM905
    **dict.fromkeys("exp exp2 abs absolute square sqrt rsqrt softplus relu norm".split(), (0.0, math.inf)),  # noqa: SIM905
    "relu6": (0.0, 6.0),
}
DEGREES = {
    **dict.fromkeys(
        "mean sum amax max amin min norm linalg_norm linalg_vector_norm vector_norm std std_mean abs absolute relu "  # noqa: SIM905
        "leaky_relu cat concat stack avg_pool2d adaptive_avg_pool2d max_pool2d cumsum nansum median detach".split(),
        Fraction(1),
    ),
    **dict.fromkeys("square var".split(), Fraction(2)),  # noqa: SIM905
    "sqrt": Fraction(1, 2),
    "rsqrt": Fraction(-1, 2),
    "reciprocal": Fraction(-1),
}
KEEPING = LAYOUTS | EXPANDING | {"interpolate", "cat", "stack", "mean", "amax", "amin"}
SPREADING = EXPANDING | LAYOUTS | POINTWISE | TRANSPARENT | {"cat", "concat", "concatenate", "stack"}
JOINING = {"mul", "matmul", "bmm", "mm", "mv", "einsum", "dot", "inner"}  # their degrees add


class Atom(NamedTuple):
    """A factor of a product that is no product itself: the argument `side` of operation `of`."""

    of: int
    side: int
    operation: int
    inverse: bool


class Judging(Algebra):
    """Tells coefficients from what they multiply."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.judged: dict[int, tuple[list[Atom], str]] = {}

    def coefficients(self, product: int, sides: tuple[int, int] = (0, 1)) -> tuple[list[Atom], str]:
        """The factors of a product of two live things that are its coefficient, and what the product is otherwise.

        product     the operation
        sides       which of its arguments are the factors
        """
        if product not in self.judged:
            self.judged[product] = self.judge(product, sides)
        return self.judged[product]

    def judge(self, product: int, sides: tuple[int, int]) -> tuple[list[Atom], str]:
        over = self.operations[product].name in ("div", "addcdiv")
        by_side = [self.atoms(product, side, over and side == sides[1]) for side in sides]
        if (wanted := self.choices.verdict(self.operations[product])) is not None:
            return {"slope": [], "left": by_side[0], "right": by_side[1]}[wanted], "chosen"
        atoms = [*by_side[0], *by_side[1]]
        size, floor, why = math.prod(self.operations[product].shape), self.dominator[product], ""
        numbers = [atom for atom in atoms if set(self.expanded_value(("result", self.same[atom.operation]))) <= {()}]
        groups: list[list[Atom]] = []
        for atom in (atom for atom in atoms if atom not in numbers):
            bonds = [(word, group) for group in groups for other in group if (word := self.bond(atom, other, floor))]
            why = bonds[0][0] if bonds else why
            joined = [group for group in groups if any(group is other for _, other in bonds)]
            groups = [group for group in groups if group not in joined]
            groups.append([*(one for group in joined for one in group), atom])
        full = [group for group in groups if sum(self.counts[atom.operation] for atom in group) >= size]
        if not full:
            return numbers, why or "coarse"
        chosen = [*numbers, *(atom for group in groups if group not in full for atom in group)]
        if len(full) > 1:
            bounded = [group for group in full if len(group) == 1 and self.is_bounded(group[0])]
            why = "undecided"
            if 0 < len(bounded) < len(full):
                chosen += [atom for group in bounded for atom in group]
                why = "bounded"
        return chosen, why

    def verdict(self, i: int) -> tuple[list[Atom], str]:
        """The coefficient of a product of live things, and what is said of the product; "" for no such product."""
        operation = self.operations[i]
        sides = (1, 2) if operation.name in ("addcmul", "addcdiv") else (0, 1)
        multiplies = sides == (1, 2) or operation.name in ("mul", "div")
        alive = [k for k in sides if self.is_live(operation.operand(k))]
        return self.coefficients(i, sides) if multiplies and len(alive) > 1 else ([], "")

    def atoms(self, of: int, side: int, inverse: bool) -> list[Atom]:
        """The live factors of an argument of an operation that are no products themselves."""
        i = self.operations[of].operand(side)
        inner = self.resolve(i)
        operation = self.operations[inner]
        if operation.name in ("mul", "div", "neg"):
            sides = [k for k in range(2) if self.is_live(operation.operand(k))]
            over = operation.name == "div"
            return [atom for k in sides for atom in self.atoms(inner, k, inverse != (over and k == 1))]
        return [Atom(of, side, i, inverse)]

    def bond(self, one: Atom, other: Atom, floor: int) -> str:
        """Why two factors are one thing: "normalisation", "activation", or "" where they are not."""
        pair = [self.behind(atom.operation, floor) for atom in (one, other)]
        common = pair[0] & pair[1]
        last = (i for i in common if not common & {self.same[j] for j in self.users[i]})
        for origin in sorted(i for i in last if not self.operations[i].several):
            degrees: list[Any] = [self.degree(atom.operation, origin, floor) for atom in (one, other)]
            if None not in degrees:
                signed = [-d if atom.inverse else d for d, atom in zip(degrees, (one, other), strict=True)]
                if signed[0] and not sum(signed) and self.counts[one.operation] != self.counts[other.operation]:
                    return "normalisation"
            full = self.operations[origin].shape == self.operations[max(one.of, other.of)].shape
            if full and all(self.is_pointwise(atom.operation, origin) for atom in (one, other)):
                return "activation"
        return ""

    def behind(self, i: int, floor: int) -> set[int]:
        """An operation and what it is computed from, behind `floor` and with it; of equal ones the first."""
        found, waiting = set(), [i]
        while waiting:
            j = self.same[waiting.pop()]
            if j >= floor and self.live[j] and j not in found:
                found.add(j)
                if j > floor:
                    waiting.extend(self.operations[j].inputs)
        return found

    def is_pointwise(self, i: int, origin: int) -> bool:
        """Is every element of operation i computed from one element of `origin`, and of nothing else that is live?"""
        i = self.same[i]
        if i == origin:
            return True
        if i < origin:
            return False
        operation = self.operations[i]
        keeps = operation.name in POINTWISE or self.is_transparent(i)
        return keeps and all(self.is_pointwise(j, origin) for j in self.sources(i))

    @functools.cached_property
    def counts(self) -> list[int]:
        """How many numbers there can be in the result of every operation, seen through whatever expands it."""
        found = [0] * len(self.operations)
        for i, operation in enumerate(self.operations):
            if self.live[i]:
                sources = self.sources(i)
                if not any(self.operations[j].several for j in sources):
                    sources = list({self.same[j] for j in sources})
                seen_through = operation.name in SPREADING
                if operation.name in RESIZING and len(sources) == 1:
                    seen_through = math.prod(self.operations[min(sources)].shape[2:]) == 1
                size = math.prod(operation.shape)
                found[i] = min(size, sum(found[j] for j in sources)) if seen_through and sources else size
        return found

    def degree(self, i: int, origin: int, floor: int) -> Fraction | None:
        """By which power of a number operation i is multiplied when `origin` is multiplied by it; None for no power."""
        i = self.same[i]
        if i == origin:
            return Fraction(1)
        if i < origin or origin not in self.behind(i, floor):
            return Fraction(0)
        operation = self.operations[i]
        name, sources = operation.name, self.sources(i)
        degrees: list[Any] = [self.degree(j, origin, floor) for j in sources]
        if None in degrees:
            return None
        if len(sources) == 1 and (name in LAYOUTS | EXPANDING or self.is_transparent(i)):
            return degrees[0]
        if name in DEGREES:
            return DEGREES[name] * degrees[0] if len(set(degrees)) == 1 else None
        if name == "neg" or name in JOINING:
            return sum(degrees, Fraction(0))
        if name == "pow":
            power = operation.number(1)
            return None if power is None else Fraction(power) * degrees[0]
        if name == "div":
            whole = [self.is_live(operation.operand(k)) for k in (0, 1)]
            return degrees[0] - degrees[-1] if all(whole) else degrees[0] if whole[0] else -degrees[0]
        if name in ("add", "sub", "clamp", "clip", "clamp_min", "maximum"):
            numbers = operation.numbers[: 2 if name in ("add", "sub") else 3]
            small = all(value is None or abs(value) <= EPSILON for value in numbers)
            tensor = any(constant is not None for constant in operation.constants or ())
            alike = len(set(degrees)) == 1
            return degrees[0] if alike and small and not (tensor and len(sources) == 1) else None
        return None

    @functools.cached_property
    def ranges(self) -> list[tuple[float, float]]:
        """The least and the largest number that every operation can return, as far as its name says."""
        found: list[tuple[float, float]] = []
        for i, operation in enumerate(self.operations):
            name = operation.name
            sources = [found[j] for j in self.sources(i)]
            pair = [
                (number, number) if number is not None else found[j] if self.is_live(j) else INFINITE
                for number, j in zip(map(operation.number, (0, 1)), map(operation.operand, (0, 1)), strict=True)
            ]
            low, high = operation.number(1), operation.number(2)
            if name in RANGES:
                found.append(RANGES[name])
            elif sources and (name in KEEPING or self.is_transparent(i)):
                found.append((min(one for one, _ in sources), max(one for _, one in sources)))
            elif name in ("clamp", "clip"):
                found.append((-math.inf if low is None else low, math.inf if high is None else high))
            elif name in ("add", "sub", "mul", "div", "neg") and high in (None, 1):
                found.append(range_of(name, *pair))
            else:
                found.append(INFINITE)
        return found

    def is_bounded(self, atom: Atom) -> bool:
        """Does a factor lie between 0 and some number, which may be negative?"""
        low, high = self.ranges[atom.operation]
        low, high = (-high, -low) if high <= 0 else (low, high)
        return low > 0 if atom.inverse else low >= 0 and high < math.inf


def range_of(name: str, one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Interval arithmetic."""
    (a, b), (c, d) = one, other
    if name == "neg":
        return -b, -a
    if name == "add":
        return a + c, b + d
    if name == "sub":
        return a - d, b - c
    if name == "div":
        if c < 0 or d <= 0:
            return INFINITE
        c, d = 1 / d, 1 / c if c else math.inf
    corners = [0.0 if 0 in (x, y) else x * y for x in (a, b) for y in (c, d)]
    return min(corners), max(corners)
