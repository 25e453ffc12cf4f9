"""How the operations of a forward pass hang together: what is computed from what, and what all of it comes from."""

import math
from collections.abc import Iterable
from typing import Any

from netbridge.foreign.choices import Choices
from netbridge.foreign.operations import Operation, Place
from netbridge.foreign.vocabulary import CURVED, JOINS, LAYOUTS, PRODUCTS, RANDOM, SHAPED, SLICES, TRANSPARENT, ZEROS


class Flow:
    """What depends on what in a pass.

    operations  in the order they ran; number 0 is the network's input
    outputs     the numbers of the operations that made what the network returned
    choices     what the caller decides
    """

    def __init__(self, operations: list[Operation], outputs: Iterable[int], choices: Choices | None = None):
        self.operations, self.choices = operations, choices or Choices()
        self.outputs = tuple(outputs)
        self.images = operations[0].shape[0]
        count = len(operations)
        self.live = [i == 0 for i in range(count)]  # computed from the input
        self.users: list[list[int]] = [[] for _ in range(count)]
        self.dominator, self.depth = [0] * count, [0] * count
        self.axis: list[int | None] = [None] * count  # along which the samples stand
        self.axis[0] = 0
        self.same = list(range(count))  # the first operation that computes the same
        known: dict[tuple, int] = {}
        for i, operation in enumerate(operations):
            if i and not self.is_unique(operation):
                self.same[i] = known.setdefault(self.description(operation), i)
        for i, operation in enumerate(operations[1:], start=1):
            sources = [j for j in dict.fromkeys(operation.inputs) if self.live[j]]
            if not sources or operation.shape is None or operation.name in SHAPED:
                continue
            self.live[i] = True
            common = sources[0]
            for j in sources:
                self.users[j].append(i)
                common = self.common_dominator(common, j)
            self.dominator[i], self.depth[i] = common, self.depth[common] + 1
            self.axis[i] = self.axis_of(operation, sources)

    def is_unique(self, operation: Operation) -> bool:
        """May an operation compute something else than another one that looks like it?"""
        drawn = any(word in operation.name for word in RANDOM)
        return drawn or operation.constants is None or any(self.operations[j].several for j in operation.inputs)

    def description(self, operation: Operation) -> tuple:
        """All that decides about the numbers that an operation computes."""

        def first(number):
            return tuple(map(first, number)) if isinstance(number, tuple) else number and self.same[number]

        taken = first(operation.operands), first(operation.inputs)
        return operation.name, operation.details, operation.numbers, operation.constants, taken, operation.shape

    def axis_of(self, operation: Operation, sources: list[int]) -> int | None:
        """Along which axis the samples stand behind an operation."""
        hits = [axis for axis, length in enumerate(operation.shape) if length == self.images]
        before = next((axis for j in sources if (axis := self.axis[j]) is not None), None)
        if operation.name in SLICES and before not in hits and not (before and before - 1 in hits):
            return None  # some of the samples
        if before is None and not (operation.name in LAYOUTS or operation.name in JOINS):
            return None  # where samples were folded into others, or cut, they stay so
        if before is None or len(hits) < 2:
            return hits[0] if hits else None
        more, dimensions = len(operation.shape) - len(self.operations[sources[0]].shape), len(operation.shape)
        axis = int(operation.number(1) or 0) % (dimensions + (more < 0))
        if operation.name in ("transpose", "swapaxes", "swapdims") and dimensions > 1:
            pair = axis, int(operation.number(2) or 0) % dimensions
            before = pair[1 - pair.index(before)] if before in pair else before
        elif operation.name == "permute" and before == 0:
            before = hits[1]
        elif more == 1 and operation.name in ("stack", "unsqueeze"):
            before += axis <= before
        elif more == -1:
            before -= axis < before
        return before if before in hits else hits[0]

    def features(self, i: int) -> tuple[int, ...]:
        """The shape of a sample."""
        shape, axis = self.operations[i].shape, self.axis[i]
        return shape if axis is None else (*shape[:axis], *shape[axis + 1 :])

    def common_dominator(self, i: int, j: int) -> int:
        """The last operation through which everything on the way to i and to j goes."""
        while i != j:
            if self.depth[i] < self.depth[j]:
                i, j = j, i
            i = self.dominator[i]
        return i

    def dominators(self, i: int) -> list[int]:
        """The operations through which everything on the way from the input to i goes."""
        found = [i]
        while i:
            i = self.dominator[i]
            found.append(i)
        return found

    def is_live(self, i: int | None) -> bool:
        """Is this an operation, and computed from the network's input?"""
        return isinstance(i, int) and self.live[i]

    def sources(self, i: int) -> list[int]:
        """The operations before i that are computed from the network's input."""
        return [j for j in self.operations[i].inputs if self.live[j]]

    def source(self, place: Place) -> int:
        """The operation whose result stands at a place; -1 for none."""
        found: Any = self.operations[place.operation].operands
        for index in place.path:
            found = found[index] if isinstance(found, tuple) and index < len(found) else None
        return found if isinstance(found, int) else -1

    def passes_on(self, i: int, names: set[str]) -> bool:
        """Is this one of the named operations, with one source whose numbers it keeps?

        A cast of floating numbers to whole numbers or truth values rounds them, so that what stands before it is
        another function than what stands behind it.
        """
        operation, sources = self.operations[i], self.sources(i)
        if operation.name not in names or len(sources) != 1:
            return False
        return self.operations[sources[0]].whole or not operation.whole

    def resolve(self, i: int, layouts: bool = False) -> int:
        """Through operations that only pass on: a dropout in evaluation, an identity; or also changes of layout."""
        while i and (self.is_transparent(i) or (layouts and self.is_layout(i))):
            (i,) = self.sources(i)
        return i

    def is_transparent(self, i: int) -> bool:
        """Does this operation return what it is given?"""
        passes = self.passes_on(i, TRANSPARENT) or self.adds_nothing(i)
        return passes and self.operations[self.sources(i)[0]].shape == self.operations[i].shape

    def adds_nothing(self, i: int) -> bool:
        """Is this a sum with a tensor of zeros, as where branches are collected in one that begins as `zeros_like`?"""
        operation = self.operations[i]
        if operation.name not in ("add", "sub") or operation.number(2) not in (None, 1) or len(self.sources(i)) != 1:
            return False
        left, right = operation.operand(0), operation.operand(1)
        return self.is_zero(right) or (operation.name == "add" and self.is_zero(left))

    def is_zero(self, i: int | None) -> bool:
        """Is this a tensor of zeros that nothing has been added to?"""
        return isinstance(i, int) and not self.live[i] and self.operations[i].name in ZEROS

    def is_layout(self, i: int) -> bool:
        """Does this operation return the same numbers in another order?"""
        if not self.passes_on(i, LAYOUTS):
            return False
        return math.prod(self.operations[self.sources(i)[0]].shape) == math.prod(self.operations[i].shape)

    def is_nonlinear(self, i: int) -> bool:
        """Is this operation nonlinear: an activation, a rounding cast, or a product of two things that are computed?"""
        operation, sources = self.operations[i], self.sources(i)
        rounds = operation.whole and not all(self.operations[j].whole for j in sources)
        return operation.name in CURVED or rounds or (operation.name in PRODUCTS and len(sources) > 1)

    def between(self, start: int, end: int) -> set[int]:
        """The operations that lead from `start` to `end`, without the former."""
        found, waiting = set(), [end]
        while waiting:
            i = waiting.pop()
            if i > start and self.live[i] and i not in found:
                found.add(i)
                waiting.extend(self.operations[i].inputs)
        return found

    def branch_between(self, start: int, end: int) -> set[int]:
        """The operations that lead from `start` to `end` and are computed from the former."""
        reached = {start}
        for i in sorted(self.between(start, end)):
            if not reached.isdisjoint(self.operations[i].inputs):
                reached.add(i)
        return reached - {start}

    def maker(self, place: Place, module: str) -> str:
        """The module in whose forward an argument was made, but for what `module` did to it alone; `module` if none."""
        i = self.source(place)
        while i >= 0 and self.operations[i].module == module:
            alive = self.sources(i)
            i = alive[0] if len(alive) == 1 else -1
        return module if i < 0 else self.operations[i].module
