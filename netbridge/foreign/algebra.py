"""Coefficients as polynomials: what remains of them when sums are multiplied out and like terms joined.

A polynomial is a dictionary: the coefficient of every product of things that are no sums. So 1 - t and t are known to
add up to one, and 0 * y + 0.1 is known to be a number.
"""

from typing import Any

from netbridge.foreign.flow import Flow
from netbridge.foreign.operations import Factor, Place
from netbridge.foreign.vocabulary import EXPANDING, LAYOUTS, RESIZING, TRANSPARENT

Polynomial = dict[tuple, float]
ONE: Polynomial = {(): 1.0}
ARITHMETIC = {"add", "sub", "mul", "div", "neg", "reciprocal", "sigmoid"}  # 1 - sigmoid(a) is sigmoid(-a)
DEEPEST = 12  # sums and products within each other


class Algebra(Flow):
    """Multiplies out what stands at the arguments of operations."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.expansions: dict[tuple, Polynomial] = {}

    def factor_key(self, factor: Factor):
        """What must be equal for two factors to be the same one; a number is, where it is written once."""
        if factor.place is None:
            return factor.how, factor.number
        value = self.argument(factor.place)
        return factor.how, (factor.place if isinstance(value, float) else value), factor.layouts

    def argument(self, place: Place):
        """What stands at a place, as far as it is known: a number, ("result", operation) or ("constant", its id)."""
        operation, source = self.operations[place.operation], self.source(place)
        if source >= 0:
            return ("place", place) if self.operations[source].several else ("result", self.same[source])
        (k,) = place.path
        if (number := operation.number(k)) is not None:
            return number
        constants = operation.constants or ()
        return ("constant", constants[k]) if k < len(constants) and constants[k] else ("place", place)

    def polynomial(self, products) -> Polynomial:
        """A sum of products, expanded: the coefficient of every product of things that are no sums."""
        total: Polynomial = {}
        for product in products:
            part = ONE
            for factor in product:
                part = multiply(part, self.expanded(factor))
            total = add(total, part)
        return total

    def expanded(self, factor: Factor) -> Polynomial:
        if factor.place is None:
            return {(): factor.number}
        value = self.argument(factor.place)
        inside = {(): value} if isinstance(value, float) else self.expanded_value(value)
        if factor.how == "rest":
            return add(ONE, {key: -number for key, number in inside.items()})
        if factor.how == "over":
            return inverse(inside)
        return inside

    def expanded_value(self, value, depth: int = 0) -> Polynomial:
        """What is known of something: a polynomial in things that are no sums."""
        if (value, depth) not in self.expansions:
            self.expansions[value, depth] = self.expand(value, depth)
        return self.expansions[value, depth]

    def expand(self, value, depth: int) -> Polynomial:
        alone = {((value, 1),): 1.0}
        if value[0] != "result" or depth > DEEPEST:
            return alone
        i = value[1]
        operation = self.operations[i]
        if any(self.operations[j].several for j in operation.inputs):
            return alone
        name, inputs = operation.name, operation.inputs
        if name in ("ones_like", "ones", "new_ones"):
            return ONE
        if name in ("full", "full_like", "new_full"):
            known = [number for number in operation.numbers if number is not None]
            return {(): known[-1]} if known else alone
        if self.is_transparent(i) or self.takes_all(i) or self.broadcasts(i) or self.passes_constant(i):
            source = self.argument(Place(i, (0,)))
            return self.expanded_value(source, depth) if isinstance(source, tuple) else alone
        if name not in ARITHMETIC:
            return alone
        pair = [self.argument(Place(i, (k,))) for k in range(min(2, len(operation.operands)))]
        parts: list[Any] = [
            {(): one} if isinstance(one, float) else self.expanded_value(one, depth + 1) if one[0] != "place" else None
            for one in pair
        ]
        if name == "reciprocal" and parts and parts[0]:
            return inverse(parts[0])
        if name == "neg":
            return multiply({(): -1.0}, parts[0]) if parts[0] is not None else alone
        if name == "sigmoid" and parts and parts[0] is not None and self.is_negative(inputs[0]):
            (source,) = self.operations[inputs[0]].inputs[:1]
            return {(): 1.0, ((("sigmoid", self.same[source]), 1),): -1.0}
        if name == "sigmoid" and inputs:
            return {((("sigmoid", self.same[inputs[0]]), 1),): 1.0}
        if len(parts) < 2 or None in parts or operation.number(2) not in (None, 1):
            return alone
        if name == "add":
            return add(*parts)
        if name == "sub":
            return add(parts[0], multiply({(): -1.0}, parts[1]))
        if name == "mul":
            return multiply(*parts)
        if name == "div" and parts[1]:
            return multiply(parts[0], inverse(parts[1]))
        return alone

    def takes_all(self, i: int) -> bool:
        """Does a change of layout keep all numbers at their places? An index does that names no number, as [:, None]"""
        operation = self.operations[i]
        if operation.name == "getitem":
            return self.is_layout(i) or not any(map(str.isdigit, operation.details))
        return operation.name in LAYOUTS and operation.name != "roll"

    def passes_constant(self, i: int) -> bool:
        """Does this operation return the constant that it is given, as a cast does?"""
        operation = self.operations[i]
        return operation.name in TRANSPARENT and not (self.live[i] or operation.whole or self.is_unique(operation))

    def broadcasts(self, i: int) -> bool:
        """Does this operation repeat numbers along axes of length 1 alone, as a sum or product does by itself?"""
        operation = self.operations[i]
        if operation.name not in EXPANDING | RESIZING or len(operation.inputs) != 1:
            return operation.name == "expand"
        narrow, wide = self.operations[operation.inputs[0]].shape, operation.shape
        return all(one in (1, two) for one, two in zip(narrow[::-1], wide[::-1], strict=False))

    def is_negative(self, i: int) -> bool:
        operation = self.operations[i]
        return operation.name == "neg" or (operation.name == "mul" and -1.0 in operation.numbers)


def add(one: Polynomial, other: Polynomial) -> Polynomial:
    total = {key: one.get(key, 0.0) + other.get(key, 0.0) for key in {**one, **other}}
    return {key: value for key, value in total.items() if abs(value) > 1e-12}


def multiply(one: Polynomial, other: Polynomial) -> Polynomial:
    total: Polynomial = {}
    for first, number in one.items():
        for second, value in other.items():
            powers: dict = dict(first)
            for what, power in second:
                powers[what] = powers.get(what, 0) + power
            key = tuple(sorted(((what, power) for what, power in powers.items() if power), key=repr))
            total = add(total, {key: number * value})
    return total


def ratio(one: Polynomial, other: Polynomial) -> float | None:
    """1 or -1 where two polynomials are equal but for the sign, else None."""
    found = (sign for sign in (1.0, -1.0) if not add(one, {key: -sign * number for key, number in other.items()}))
    return next(found, None)


def inverse(polynomial: Polynomial) -> Polynomial:
    """One over it; a sum of several is a thing of its own."""
    if len(polynomial) != 1:
        return {((("sum", tuple(sorted(polynomial.items(), key=repr))), -1),): 1.0}
    ((key, number),) = polynomial.items()
    total = {(): 1 / number}
    for what, power in key:
        total = multiply(total, dict(what[1]) if what[0] == "sum" and power == -1 else {((what, -power),): 1.0})
    return total


def is_one(polynomial: Polynomial) -> bool:
    return set(polynomial) == {()} and abs(polynomial[()] - 1.0) < 1e-6
