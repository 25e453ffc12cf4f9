"""What a forward pass did, as a list of operations, and which of its additions are residual steps.

A residual step is an addition of two things computed from one state: shortcut(x) + branch(x). The state is the
addition's immediate dominator, the last operation all of whose consequences meet again there. One summand is the state
itself, or comes from it without a nonlinearity (a projection, a padding); the other is the branch.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

ACTIVATIONS = set(
    "relu relu6 leaky_relu leakyrelu gelu silu mish elu celu selu hardswish hardsigmoid sigmoid tanh prelu softplus "  # noqa: SIM905
    "hardtanh threshold clamp clip softmax logsigmoid softsign rrelu".split()
)
TRANSPARENT = set(
    "identity dropout dropout1d dropout2d dropout3d alpha_dropout alphadropout feature_dropout featurealphadropout "  # noqa: SIM905
    "droppath drop_path stochasticdepth stochastic_depth contiguous to float type_as".split()
)  # of a network in evaluation mode
LONGEST_SHORTCUT = 6  # operations: pool, pad, convolution, normalisation and some slicing
LONGEST_TAIL = 3  # operations between an addition and the next state


class Operation(NamedTuple):
    """`inputs` are the operations whose tensors it takes; `operands` its first two arguments, None if no operation."""

    name: str
    inputs: tuple[int, ...]
    operands: tuple[int | None, int | None] = (None, None)
    shape: tuple[int, ...] | None = None  # of its tensor; None for anything else
    module: str = ""  # in whose forward it ran
    in_place: bool = False


class Gate(NamedTuple):
    """slope * step size: the product's operation and the place of the slope among its arguments."""

    operation: int
    side: int


class Step(NamedTuple):
    """One residual addition and where to look; `side` is the place of the shortcut among its arguments."""

    name: str
    module: str  # in whose forward the addition is
    addition: int
    side: int
    state: int  # x_t
    after: int  # x_{t+1}: the addition, or the activation or normalisation after it
    identity: bool  # the shortcut is x_t itself
    shape: tuple[int, ...]
    gates: tuple[Gate, ...] = ()  # the outermost first; the slope is what goes into the last
    inner: tuple[int, int] | None = None  # (x + f) + g: the inner addition and the place of x in it
    overwrites: bool = False  # x += f


def canonical(name: str) -> str:
    """relu_, ReLU and relu are one operation, and so are add, iadd, __add__ and add_."""
    name = name.strip("_").lower()
    return {"iadd": "add", "radd": "add", "imul": "mul", "rmul": "mul", "multiply": "mul"}.get(name, name)


class Graph:
    """Operations in the order they ran; number 0 is the network's input. `outputs` are what it returned."""

    def __init__(self, operations: list[Operation], outputs: Iterable[int]):
        self.operations = operations
        self.outputs = tuple(outputs)
        count = len(operations)
        self.live = [i == 0 for i in range(count)]  # computed from the input
        self.users: list[list[int]] = [[] for _ in range(count)]
        self.dominator, self.depth = [0] * count, [0] * count
        for i, operation in enumerate(operations[1:], start=1):
            sources = [j for j in dict.fromkeys(operation.inputs) if self.live[j]]
            if not sources or operation.shape is None:
                continue
            self.live[i] = True
            common = sources[0]
            for j in sources:
                self.users[j].append(i)
                common = self.meet(common, j)
            self.dominator[i], self.depth[i] = common, self.depth[common] + 1

    def meet(self, i: int, j: int) -> int:
        while i != j:
            if self.depth[i] < self.depth[j]:
                i, j = j, i
            i = self.dominator[i]
        return i

    def resolve(self, i: int) -> int:
        """Through operations that only pass on: a dropout in evaluation, an identity."""
        while self.operations[i].name in TRANSPARENT and i:
            sources = [j for j in self.operations[i].inputs if self.live[j]]
            if len(sources) != 1 or self.operations[sources[0]].shape != self.operations[i].shape:
                break
            i = sources[0]
        return i

    def between(self, start: int, end: int) -> set[int]:
        """The operations that lead from `start` to `end`, without the former."""
        found, waiting = set(), [end]
        while waiting:
            i = waiting.pop()
            if i > start and self.live[i] and i not in found:
                found.add(i)
                waiting.extend(self.operations[i].inputs)
        return found

    def steps(self) -> list[Step]:
        """The residual steps on the way to an output, in order."""
        needed = set().union(*(self.between(0, output) for output in self.outputs)) if self.outputs else set()
        found = [step for i in sorted(needed) if (step := self.candidate(i)) is not None]
        origins = {step.state for step in found if step.identity}
        reached = {step.addition: self.after(step.addition, origins) for step in found}
        tails = {tail for after, tail in reached.values() if after is not None}
        found = [step._replace(after=self.settled(step.addition, reached[step.addition], tails)) for step in found]
        regions = {step.addition: self.between(step.state, step.addition) - {step.addition} for step in found}
        found = [step for step in found if not bridges(step, found, regions)]
        nested = set().union(*(regions[step.addition] for step in found)) if found else set()
        return numbered([step for step in found if step.addition not in nested])

    def candidate(self, i: int) -> Step | None:
        operation = self.operations[i]
        left, right = operation.operands
        if operation.name != "add" or left is None or right is None or not (self.live[left] and self.live[right]):
            return None
        if not self.operations[left].shape == self.operations[right].shape == operation.shape:
            return None
        batch = self.operations[0].shape
        if operation.shape[0] != batch[0] or len(operation.shape) < 2:
            return None
        state = self.resolve(self.dominator[i])
        make = Step(operation.module, operation.module, i, 0, state, i, True, operation.shape)
        ends = self.resolve(left), self.resolve(right)
        if state in ends:
            if ends[0] == ends[1]:
                return None
            side = ends.index(state)
            overwrites = operation.in_place and side == 0
            return make._replace(side=side, gates=self.gates(operation.operands[1 - side]), overwrites=overwrites)
        for side, end in enumerate(ends):
            inner = self.operations[end]
            if inner.name == "add" and self.users[end] == [i] and state in map(self.resolved, inner.operands):
                place = [self.resolved(j) for j in inner.operands].index(state)
                return make._replace(side=side, inner=(end, place), overwrites=inner.in_place and place == 0)
        return self.projected(make, ends)

    def resolved(self, i: int | None) -> int | None:
        return None if i is None else self.resolve(i)

    def projected(self, make: Step, ends) -> Step | None:
        """The summand that comes from the state without a nonlinearity, and by the shorter way."""
        ways = [self.between(self.dominator[make.addition], end) for end in ends]
        side = int(len(ways[1]) < len(ways[0]))
        names = {self.operations[i].name for i in ways[side]}
        if len(ways[0]) == len(ways[1]) or len(ways[side]) > LONGEST_SHORTCUT or names & ACTIVATIONS:
            return None
        other = self.operations[make.addition].operands[1 - side]
        return make._replace(side=side, identity=False, gates=self.gates(other))

    def gates(self, i: int) -> tuple[Gate, ...]:
        """The products by something broadcast, or computed from the other factor, at the end of a branch."""
        gates = []
        while True:
            i = self.resolve(i)
            product = self.operations[i]
            if product.name != "mul" or None in product.operands or not all(self.live[j] for j in product.operands):
                return tuple(gates)
            side = self.slope_side(product)
            if side is None:
                return tuple(gates)
            gates.append(Gate(i, side))
            i = product.operands[side]

    def slope_side(self, product: Operation) -> int | None:
        sizes = [math.prod(self.operations[j].shape) for j in product.operands]
        if sizes[0] != sizes[1]:
            side = int(sizes[1] > sizes[0])
        elif product.operands[0] in self.between(0, product.operands[1]):
            side = 0
        elif product.operands[1] in self.between(0, product.operands[0]):
            side = 1
        else:
            return None
        return side if self.operations[product.operands[side]].shape == product.shape else None

    def after(self, addition: int, origins: set[int]) -> tuple[int | None, tuple[str, ...]]:
        """The next state if a step starts from it, and the names of the operations between."""
        i, names = addition, []
        for _ in range(LONGEST_TAIL + 1):
            if i in origins:
                return i, tuple(names)
            if len(self.users[i]) != 1 or self.operations[self.users[i][0]].shape != self.operations[addition].shape:
                break
            i = self.users[i][0]
            names.append(self.operations[i].name)
        return None, tuple(names)

    def settled(self, addition, reached, tails) -> int:
        """Of the last step of a stage: what the others of this network end with, else an activation after the sum."""
        after, names = reached
        if after is not None:
            return after
        fitting = [tail for tail in tails if names[: len(tail)] == tail]
        activated = not tails and bool(names) and names[0] in ACTIVATIONS
        length = max(map(len, fitting)) if fitting else int(activated)
        for _ in range(length):
            addition = self.users[addition][0]
        return addition


def bridges(step: Step, found: list[Step], regions: dict[int, set[int]]) -> bool:
    """Does this addition span a chain of steps, as a skip around a whole network does?"""
    inside = [other for other in found if other.addition in regions[step.addition]]
    states = {other.state for other in inside}
    return any(other.after in states for other in inside)


def numbered(steps: list[Step]) -> list[Step]:
    """Several additions in one module are told apart by a number."""
    modules = [step.module for step in steps]
    named = []
    for i, step in enumerate(steps):
        again = modules[: i + 1].count(step.module)
        alone = modules.count(step.module) == 1 and step.module
        named.append(step if alone else step._replace(name=f"{step.module} ({again})".strip()))
    return named


def stages(steps: list[Step]) -> tuple[list[int], list[bool]]:
    """The stage of every step, and whether it is the stage's first: a change of shape, or a projection, opens one."""
    stage, first = [], []
    for i, step in enumerate(steps):
        opens = i == 0 or not step.identity or step.shape[1:] != steps[i - 1].shape[1:]
        first.append(opens)
        stage.append((stage[-1] if stage else -1) + opens)
    return stage, first
