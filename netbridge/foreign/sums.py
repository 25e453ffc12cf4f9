"""Sums of a shortcut and a branch, in all their spellings, and the step size that stands at the end of a branch.

A residual step is a sum of two things computed from one state: shortcut(x) + h branch(x). The state is the sum's
immediate dominator, the last operation all of whose consequences meet again there. One summand is the state itself, or
comes from it without a nonlinearity (a projection, a padding); the other is the branch. Sums are written as `x + f`,
`x - f`, `torch.add(x, f, alpha=h)`, `torch.addcmul(x, f, h)`, `torch.lerp(x, y, h)` or `torch.stack([x, f]).sum(0)`.

Whatever multiplies the branch is its step size h: numbers, parameters and gates, products and quotients, in any number.
"""

import math
from typing import Any

from netbridge.foreign.flow import Flow, same_numbers
from netbridge.foreign.operations import Branch, Factor, Operation, Place, Step, Summand
from netbridge.foreign.vocabulary import LAYOUTS, RESHAPING, TRANSPARENT

LONGEST_SHORTCUT = 6  # operations: pool, pad, convolution, normalisation and some slicing


class Sums(Flow):
    """Finds every sum of a shortcut and a branch, also those inside the branch of another."""

    def candidates(self) -> list[Step]:
        """Every sum of a shortcut and a branch, also inside the branch of another and around a whole network."""
        needed = set().union(*(self.between(0, output) for output in self.outputs)) if self.outputs else set()
        return [step for i in sorted(needed) if (step := self.candidate(i)) is not None]

    def candidate(self, i: int) -> Step | None:
        operation = self.operations[i]
        if not operation.shape or operation.shape[0] != self.operations[0].shape[0] or len(operation.shape) < 2:
            return None
        summands = self.summands(i)
        if len(summands) < 2:
            return None
        source = self.dominator[summands[0].branch.place.operation]  # of a stack, not of its sum
        state = self.resolve(source)
        identity = True
        parted = self.split_identity(state, summands) or self.split_identity(state, summands, RESHAPING)
        if parted is None and (with_context := self.split_conditional(summands)) is not None:
            state, parted = with_context
        if parted is None:
            identity, parted = False, self.split_projection(source, summands)
        if parted is None:
            return None
        shortcut, others = parted
        branches = tuple(other.branch for other in others)
        if len(others) == 1 and branches[0].how == "plain":
            branches = (self.with_gates(others[0], state),)
        place = shortcut.branch.place
        overwrites = self.operations[place.operation].in_place and place.path == (0,)
        name, shape = operation.module, operation.shape
        start = self.operations[state].shape if identity else shape
        return Step(name, name, i, state, i, identity, shape, start, place, branches, overwrites)

    def summands(self, i: int) -> list[Summand]:
        """What operation i adds up, [] unless all of it has the shape of the sum and is computed from the input."""
        operation = self.operations[i]
        name = operation.name
        found: list[tuple[Any, ...]] = []
        if name in ("add", "sub"):
            factors = [Factor(None, number=-1.0)] if name == "sub" else []
            if operation.number(2) not in (None, 1):
                factors.append(Factor(Place(i, (2,))))
            found = [(operation.operand(0), (0,), (), "plain"), (operation.operand(1), (1,), tuple(factors), "plain")]
        elif name in ("addcmul", "addcdiv"):
            found = [(operation.operand(0), (0,), (), "plain"), self.added_product(i)]
        elif name == "lerp":  # x + w (y - x) = y + (1 - w) (x - y): either end may be the state
            ends = operation.operand(0), operation.operand(1)
            if None not in ends:
                start, end = map(self.resolve, ends)
                side = int(start in self.between(-1, end)) if start != end else 0
                weight = Factor(Place(i, (2,)), "times" if side else "rest", live=self.is_live(operation.operand(2)))
                found = [(ends[1 - side], (1 - side,), (), "plain"), (ends[side], (side,), (weight,), "towards")]
        elif name == "sum":
            stack = operation.operand(0)
            if stack is not None and self.operations[stack].name == "stack" and self.users[stack] == [i]:
                stacked = self.operations[stack]
                if (operation.number(1) or 0) == (stacked.number(1) or 0) and isinstance(stacked.operand(0), tuple):
                    found = [(item, (0, k), (), "plain") for k, item in enumerate(stacked.operand(0))]
                    i = stack
        good = all(self.is_live(j) and self.operations[j].shape == operation.shape for j, *_ in found)
        return [Summand(j, Branch(Place(i, path), factors, how)) for j, path, factors, how in found] if good else []

    def added_product(self, i: int):
        """The second summand of addcmul and addcdiv: operand, path, factors, and how its slope is formed."""
        operation = self.operations[i]
        value = (Factor(Place(i, (3,))),) if operation.number(3) not in (None, 1) else ()
        over = operation.name == "addcdiv"
        side = self.slope_side(operation, (1, 2))
        if side is None or (over and side == 2):
            either = next((j for j in operation.operands[1:3] if self.is_live(j)), None)
            return either, (1,), value, "quotient" if over else "product"
        other = Factor(
            Place(i, (3 - side,)), "over" if over else "times", live=self.is_live(operation.operand(3 - side))
        )
        return operation.operand(side), (side,), (*value, other), "plain"

    def split_identity(self, state: int, summands, names=TRANSPARENT) -> tuple[Summand, list[Summand]] | None:
        """The summand that is the state itself, perhaps in a sum within the sum, and all the others."""
        state = self.resolve(state, names)
        ends = [self.resolve(summand.operand, names) for summand in summands]
        sides = [k for k, end in enumerate(ends) if end == state and not summands[k].branch.factors]
        if len(sides) > 1 or (sides and any(end == state for k, end in enumerate(ends) if k not in sides)):
            return None
        if sides:
            return summands[sides[0]], [summand for k, summand in enumerate(summands) if k != sides[0]]
        for k, end in enumerate(ends):
            users = [summands[0].branch.place.operation]
            if end > state and self.users[end] == users and not summands[k].branch.factors:
                inner = self.split_identity(state, self.summands(end), names)
                if inner is not None and all(s.branch.how == "plain" for s in (*inner[1], *summands)):
                    return inner[0], [*inner[1], *(summand for j, summand in enumerate(summands) if j != k)]
        return None

    def split_conditional(self, summands) -> tuple[int, tuple[Summand, list[Summand]]] | None:
        """x + f(x, c), whose branch sees something else beside the state: another sequence, a time, a class.

        The state and its step, None where there is none: where c goes on as the state does (a momentum, the halves of a
        reversible network, x_{n-1} + f(x_n)), a sum on the way to the branch has a summand that is not computed from x.
        """
        for k, summand in enumerate(summands if len(summands) == 2 else ()):
            other, state = summands[1 - k], self.resolve(summand.operand)
            way = self.branch_between(state, other.operand)
            if summand.branch.factors or other.operand not in way:
                continue
            sums = [[self.resolve(one.operand) for one in self.summands(i)] for i in way]
            if other.branch.how == "plain" and all(i == state or i in way for ends in sums for i in ends):
                return state, (summand, [other])
        return None

    def split_projection(self, source: int, summands) -> tuple[Summand, list[Summand]] | None:
        """The summand that comes from the state without a nonlinearity; of two such, by the shorter way."""
        if len(summands) != 2 or summands[1].branch.how == "towards":
            return None
        ways = [self.between(source, self.resolve(summand.operand)) for summand in summands]
        lengths = [len(way) for way in ways]
        linear = [
            side
            for side, way in enumerate(ways)
            if lengths[side] <= LONGEST_SHORTCUT and not any(map(self.is_nonlinear, way))
        ]
        if not linear or (len(linear) == 2 and lengths[0] == lengths[1]):
            return None
        side = min(linear, key=lengths.__getitem__)
        return None if summands[side].branch.factors else (summands[side], [summands[1 - side]])

    def with_gates(self, summand: Summand, state: int) -> Branch:
        """The slope behind all products and quotients at the end of a branch, which are its step size.

        A product with something that is broadcast, computed from the other factor, or not computed from the input at
        all is taken apart; a change of layout on the way to one is seen through.
        """
        place, factors, layout, i = summand.branch.place, list(summand.branch.factors), 0, summand.operand
        while True:
            i = self.resolve(i)
            operation = self.operations[i]
            if operation.name in LAYOUTS:
                source = self.sources(i)[0]
                if not self.passes_on(i, LAYOUTS) or not same_numbers(operation.shape, self.operations[source].shape):
                    break
                i, layout = source, layout + 1
                continue
            if operation.name == "neg":
                side: Any = 0
                factor = Factor(None, number=-1.0, layout=layout)
            elif operation.name in ("mul", "div"):
                side = self.slope_side(operation, (0, 1))
                over = operation.name == "div"
                if side is None or (over and side == 1):
                    break
                live = self.is_live(operation.operand(1 - side))
                factor = Factor(Place(i, (1 - side,)), "over" if over else "times", live=live, layout=layout)
            else:
                break
            inside = operation.operand(side)
            if not self.is_live(inside) or self.resolve(inside) == state:
                break
            factors.append(factor)
            place, i = Place(i, (side,)), inside
        return Branch(place, tuple(factors))

    def slope_side(self, product: Operation, places: tuple[int, int]) -> int | None:
        """Which of two factors is the slope and not the step size: None where neither can be told."""
        pair = [product.operand(place) for place in places]
        alive = [self.is_live(j) for j in pair]
        if sum(alive) == 1:
            side = alive.index(True)
        elif not any(alive):
            return None
        else:
            sizes = [math.prod(self.operations[j].shape) for j in pair]
            if sizes[0] != sizes[1]:
                side = int(sizes[1] > sizes[0])
            elif pair[0] in self.between(-1, pair[1]):
                side = 0
            elif pair[1] in self.between(-1, pair[0]):
                side = 1
            else:
                return None
        return places[side] if self.operations[pair[side]].shape == product.shape else None
