"""What a forward pass did, as a list of operations, and which of its sums are residual steps.

A residual step is a sum of two things computed from one state: shortcut(x) + h branch(x). The state is the sum's
immediate dominator, the last operation all of whose consequences meet again there. One summand is the state itself, or
comes from it without a nonlinearity (a projection, a padding); the other is the branch. Sums are written as `x + f`,
`x - f`, `torch.add(x, f, alpha=h)`, `torch.addcmul(x, f, h)`, `torch.lerp(x, y, h)` or `torch.stack([x, f]).sum(0)`.

Whatever multiplies the branch is its step size h: numbers, parameters and gates, products and quotients, in any number.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

ACTIVATIONS = set(
    "relu relu6 leaky_relu leakyrelu gelu silu mish elu celu selu hardswish hardsigmoid sigmoid tanh prelu softplus "  # noqa: SIM905
    "hardtanh threshold clamp clip softmax logsigmoid softsign rrelu".split()
)
CURVED = ACTIVATIONS | set(
    "abs absolute sign square sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh erf "  # noqa: SIM905
    "pow reciprocal round floor ceil trunc frac fix maximum minimum floordiv floor_divide glu "
    "scaled_dot_product_attention multi_head_attention_forward lstm gru rnn_tanh rnn_relu".split()
)  # nonlinear functions: what goes through one is no shortcut
PRODUCTS = set("mul div matmul bmm mm mv einsum baddbmm addmm bilinear addcmul addcdiv lerp".split())  # noqa: SIM905
ADDING = set("add sub addcmul addcdiv lerp index_add scatter_add scatter_reduce index_put index_copy setitem".split())  # noqa: SIM905
ADDING_PRODUCTS = {"addmm", "baddbmm", "addbmm"}  # of which a factor need not be as large as the sum
TRANSPARENT = set(
    "identity dropout dropout1d dropout2d dropout3d alpha_dropout alphadropout feature_dropout featurealphadropout "  # noqa: SIM905
    "droppath drop_path stochasticdepth stochastic_depth contiguous clone detach alias data positive "
    "to type type_as float double half bfloat16 cpu cuda".split()
)  # of a network in evaluation mode; casts are so from one floating type to another only, see `Graph.passes`
LAYOUTS = set(
    "permute transpose t mt reshape reshape_as view view_as ravel flatten unflatten swapaxes swapdims movedim moveaxis "  # noqa: SIM905
    "squeeze unsqueeze roll getitem".split()
)  # the same numbers in another order: the norm of a sample does not change
RESHAPING = TRANSPARENT | {"reshape", "reshape_as", "view", "view_as", "ravel", "flatten", "unflatten", "squeeze"}
RESHAPING |= {"unsqueeze", "getitem"}  # the same numbers in the same order
SHAPED = set(
    "zeros_like ones_like empty_like full_like rand_like randn_like randint_like new_zeros new_ones new_empty new_full "  # noqa: SIM905
    "new_tensor".split()
)  # take the shape of a tensor and none of its numbers
LIKE = {"to", "type_as", "view_as", "reshape_as", "expand_as"}  # of a second tensor only its kind or shape is taken
SLICES = set("getitem index chunk split split_with_sizes tensor_split narrow select unbind index_select".split())  # noqa: SIM905
SPELLINGS = {
    "add": "iadd radd",
    "sub": "isub rsub subtract",
    "mul": "imul rmul multiply",
    "div": "truediv itruediv true_divide divide",
    "neg": "negative",
}
CANONICAL = {spelling: name for name, spellings in SPELLINGS.items() for spelling in spellings.split()}
SIGNATURES = {
    "add": ("input", "other", "alpha"),
    "sub": ("input", "other", "alpha"),
    "mul": ("input", "other"),
    "div": ("input", "other", "rounding_mode"),
    "neg": ("input",),
    "lerp": ("input", "end", "weight"),
    "addcmul": ("input", "tensor1", "tensor2", "value"),
    "addcdiv": ("input", "tensor1", "tensor2", "value"),
    "stack": ("tensors", "dim"),
    "sum": ("input", "dim"),
}  # the arguments of the operations that make a step, in torch's own order
UNSEEN = "unseen"  # stands for whatever made a tensor that no torch function returned: TorchScript, NumPy, vmap
LONGEST_SHORTCUT = 6  # operations: pool, pad, convolution, normalisation and some slicing
LONGEST_TAIL = 3  # operations between an addition and the next state


def describe(name: str, args, kwargs) -> tuple[str, list]:
    """An operation under the one name of all its spellings, and its arguments in the order of its signature.

    Adding the number 0 or multiplying by the number 1 is an identity, as in Python's own `sum`.
    """
    plain, args = name.strip("_").lower(), list(args)
    name = CANONICAL.get(plain, plain)
    signature = SIGNATURES.get(name, ())
    args += [kwargs.get(key) for key in signature[len(args) :]]
    if plain == "rsub":
        args[:2] = args[1::-1]
    if name == "getitem" and not is_plain_index(args[1]):
        return "index", args
    neutral = {"add": 0, "sub": 0, "mul": 1, "div": 1}.get(name)
    if name == "div" and args[2] is not None:
        return "floor_divide", args  # with a `rounding_mode`, which makes it another function
    if neutral is not None and is_number(args[1]) and args[1] == neutral:
        return "identity", args
    return name, args


def is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_plain_index(index) -> bool:
    """Is an index made of slices, numbers, None and ... alone, so that no element is taken twice?"""
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or part is ... or isinstance(part, int | slice) for part in parts)


class Operation(NamedTuple):
    """`inputs` are the operations whose numbers it takes; `operands` the operation behind each of its arguments."""

    name: str
    inputs: tuple[int, ...]
    operands: tuple[Any, ...] = (None, None)  # None where an argument comes from no operation; a tuple for a list
    shape: Any = None  # a tuple, of its tensor; None for anything else
    module: str = ""  # in whose forward it ran
    in_place: bool = False
    numbers: tuple[float | None, ...] = ()  # the arguments that are plain numbers, None at the other places
    whole: bool = False  # its tensor holds whole numbers or truth values

    def operand(self, place: int) -> Any:
        """The operation behind an argument: its number, a tuple of numbers for a list, or None."""
        return self.operands[place] if place < len(self.operands) else None

    def number(self, place: int) -> float | None:
        return self.numbers[place] if place < len(self.numbers) else None


class Place(NamedTuple):
    """One argument of an operation: `path` leads to it, (1,) is the second argument, (0, 2) the third of a list."""

    operation: int
    path: tuple[int, ...]


class Factor(NamedTuple):
    """A part of the step size: what stands at `place`, or `number` where there is no place."""

    place: Place | None
    how: str = "times"  # or "over", for a divisor, or "rest", for 1 - w
    number: float = 1.0
    live: bool = False  # computed from the network's input
    layout: int = 0  # how many changes of layout lie between the factor and the sum


class Branch(NamedTuple):
    """One summand beside the shortcut: the slope at `place`, and what it is multiplied by, the outermost first."""

    place: Place
    factors: tuple[Factor, ...] = ()
    how: str = "plain"  # or "towards": slope = end - state; "product", "quotient": of this argument and the next one


class Step(NamedTuple):
    """One residual sum and where to look."""

    name: str
    module: str  # in whose forward the sum is
    addition: int  # the operation that forms the sum
    state: int  # x_t
    after: int  # x_{t+1}: the sum, or the activation or normalisation after it
    identity: bool  # the shortcut is x_t itself
    shape: tuple[int, ...]  # of the sum
    start: tuple[int, ...]  # the shape of x_t, or of its projection
    shortcut: Place
    branches: tuple[Branch, ...]  # more than one in x + f + g, whose slope is f + g
    overwrites: bool = False  # x += f

    @property
    def factors(self) -> tuple[Factor, ...]:
        """What the step size is the product of; several branches have no common one."""
        return self.branches[0].factors if len(self.branches) == 1 else ()


class Summand(NamedTuple):
    operand: int
    branch: Branch


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
            if not sources or operation.shape is None or operation.name in SHAPED:
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

    def resolve(self, i: int, names: set[str] = TRANSPARENT) -> int:
        """Through operations that only pass on: a dropout in evaluation, an identity; with `RESHAPING`, a reshape."""
        while i and self.passes(i, names):
            (source,) = self.sources(i)
            shape, before = self.operations[i].shape, self.operations[source].shape
            if shape != before and not (names is RESHAPING and same_numbers(shape, before)):
                break
            i = source
        return i

    def sources(self, i: int) -> list[int]:
        """The operations before i that are computed from the network's input."""
        return [j for j in self.operations[i].inputs if self.live[j]]

    def passes(self, i: int, names: set[str]) -> bool:
        """Is this one of the named operations, with one source whose numbers it keeps?

        A cast of floating numbers to whole numbers or truth values rounds them, so that what stands before it is
        another function than what stands behind it.
        """
        operation, sources = self.operations[i], self.sources(i)
        if operation.name not in names or len(sources) != 1:
            return False
        return self.operations[sources[0]].whole or not operation.whole

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

    def steps(self) -> list[Step]:
        """The residual steps on the way to an output, in order."""
        found = self.candidates()
        origins = {step.state for step in found if step.identity}
        reached = {step.addition: self.after(step.addition, origins) for step in found}
        tails = {tail for after, tail in reached.values() if after is not None}
        found = [step._replace(after=self.settled(step.addition, reached[step.addition], tails)) for step in found]
        regions = {step.addition: self.branch_between(step.state, step.addition) - {step.addition} for step in found}
        found = [step for step in found if not bridges(step, found, regions)]
        return number_names(
            [step for step in found if not any(self.inside(step, regions[o.addition], o) for o in found)]
        )

    def inside(self, step: Step, region: set[int], outer: Step) -> bool:
        """Is this step a part of another's branch, and of nothing else? Half of a state may go on beside a branch."""
        if step.addition not in region:
            return False
        reached, waiting = {outer.addition}, [step.addition]
        while waiting:
            i = waiting.pop()
            if i not in reached:
                reached.add(i)
                waiting.extend(self.users[i])
        return not (reached - {outer.addition}) & set(self.outputs)

    def is_partial(self, step: Step) -> bool:
        """Is the shortcut a slice of the state, so that the step changes a part of it only?"""
        names = {self.operations[j].name for j in self.between(step.state, self.source(step.shortcut))}
        return bool(names & SLICES) and names <= SLICES | TRANSPARENT

    def source(self, place: Place) -> int:
        """The operation whose result stands at a place; -1 for none."""
        found: Any = self.operations[place.operation].operands
        for index in place.path:
            found = found[index] if isinstance(found, tuple) and index < len(found) else None
        return found if isinstance(found, int) else -1

    def in_branches(self, steps: list[Step]) -> set[int]:
        """The operations between the states of these steps and their sums."""
        return set().union(*(self.branch_between(step.state, step.addition) for step in steps))

    def maker(self, place: Place, module: str) -> str:
        """The module in whose forward an argument was made, but for what `module` did to it alone; `module` if none."""
        i = self.source(place)
        while i >= 0 and self.operations[i].module == module:
            alive = [j for j in self.operations[i].inputs if self.live[j]]
            i = alive[0] if len(alive) == 1 else -1
        return module if i < 0 else self.operations[i].module

    def obscured(self) -> list[str]:
        """The modules that add or multiply what was made out of sight, where nothing tells it from a constant."""
        hidden, found = [False] * len(self.operations), []
        for i, operation in enumerate(self.operations):
            hidden[i] = operation.name == UNSEEN or any(hidden[j] for j in operation.inputs)
            if operation.name in SIGNATURES and self.live[i]:
                unknown = [j for j in operation.inputs if hidden[j] and not self.live[j]]
                if any(self.operations[j].shape == operation.shape for j in unknown):
                    found.append(operation.module)
        return found

    def unexplained(self, steps: list[Step]) -> list[str]:
        """The modules that add two things computed from one state, on the way from state to state, without a step.

        steps   the steps that were found; what lies in their branches is no matter
        """
        ends = [*self.outputs, *(step.state for step in steps)]
        trunk = {i for end in ends for i in self.dominators(end)}
        covered = self.in_branches(steps)
        sizes = {math.prod(step.shape) for step in steps}
        found = []
        for i in sorted(trunk - covered):
            merged = self.merged(i)
            if len(merged) > 1 and math.prod(self.operations[i].shape) in sizes:
                within = self.between(self.meet(*merged[:2]), i)
                if within.isdisjoint(step.addition for step in steps):
                    found.append(self.operations[i].module)
        return list(dict.fromkeys(found))

    def dominators(self, i: int) -> list[int]:
        """The operations through which everything on the way from the input to i goes."""
        found = [i]
        while i:
            i = self.dominator[i]
            found.append(i)
        return found

    def merged(self, i: int) -> list[int]:
        """The things, as large as the result, that operation i adds or picks from: of a stack, what was stacked."""
        operation, sources = self.operations[i], self.sources(i)
        if operation.name in ADDING_PRODUCTS:
            return sources if self.is_live(operation.operand(0)) else []
        if operation.name in ("sum", "mean") and len(sources) == 1:
            stacked = self.resolve(sources[0])
            if self.operations[stacked].name in ("stack", "cat", "concat"):
                sources = self.sources(stacked)
        elif operation.name not in ADDING:
            return []
        size = math.prod(operation.shape)
        return [j for j in dict.fromkeys(map(self.resolve, sources)) if math.prod(self.operations[j].shape) == size]

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
        parted = self.part(state, summands) or self.part(state, summands, RESHAPING)
        if parted is None and (with_context := self.beside_context(summands)) is not None:
            state, parted = with_context
        if parted is None:
            identity, parted = False, self.projected(source, summands)
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

    def part(self, state: int, summands, names: set[str] = TRANSPARENT) -> tuple[Summand, list[Summand]] | None:
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
                inner = self.part(state, self.summands(end), names)
                if inner is not None and all(s.branch.how == "plain" for s in (*inner[1], *summands)):
                    return inner[0], [*inner[1], *(summand for j, summand in enumerate(summands) if j != k)]
        return None

    def beside_context(self, summands) -> tuple[int, tuple[Summand, list[Summand]]] | None:
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

    def projected(self, source: int, summands) -> tuple[Summand, list[Summand]] | None:
        """The summand that comes from the state without a nonlinearity, and by the shorter way."""
        if len(summands) != 2 or summands[1].branch.how == "towards":
            return None
        ways = [self.between(source, self.resolve(summand.operand)) for summand in summands]
        side = int(len(ways[1]) < len(ways[0]))
        if len(ways[0]) == len(ways[1]) or len(ways[side]) > LONGEST_SHORTCUT or any(map(self.bends, ways[side])):
            return None
        return None if summands[side].branch.factors else (summands[side], [summands[1 - side]])

    def bends(self, i: int) -> bool:
        """Is this operation nonlinear: an activation, a rounding cast, or a product of two things that are computed?"""
        operation = self.operations[i]
        sources = [j for j in operation.inputs if self.live[j]]
        rounds = operation.whole and not all(self.operations[j].whole for j in sources)
        return operation.name in CURVED or rounds or (operation.name in PRODUCTS and len(sources) > 1)

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
                if not self.passes(i, LAYOUTS) or not same_numbers(operation.shape, self.operations[source].shape):
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

    def is_live(self, i: int | None) -> bool:
        """Is this an operation, and computed from the network's input?"""
        return isinstance(i, int) and self.live[i]

    def after(self, addition: int, origins: set[int]) -> tuple[int | None, tuple[str, ...]]:
        """The next state if a step starts from it, and the names of the operations between."""
        i: int = addition
        names: list[str] = []
        for _ in range(LONGEST_TAIL + 1):
            if i in origins:
                return i, tuple(names)
            if len(self.users[i]) != 1 or self.operations[self.users[i][0]].shape != self.operations[addition].shape:
                break
            i = self.users[i][0]
            names.append(self.operations[i].name)
        return None, tuple(names)

    def settled(self, addition, reached, tails) -> int:
        """x_{t+1} of the step that adds at `addition`.

        A step followed by another ends where that one starts. The last step of a stage has no successor: it ends after
        the same operations (say norm, relu) as the steps before it, or, if none has any, after an activation that
        follows directly."""
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


def number_names(steps: list[Step]) -> list[Step]:
    """Several additions in one module are told apart by a number."""
    modules = [step.module for step in steps]
    named = []
    for i, step in enumerate(steps):
        again = modules[: i + 1].count(step.module)
        alone = modules.count(step.module) == 1 and step.module
        named.append(step if alone else step._replace(name=f"{step.module} ({again})".strip()))
    return named


def same_numbers(shape, other) -> bool:
    """May these be the same numbers of every sample, in another order?"""
    return shape[:1] == other[:1] and math.prod(shape) == math.prod(other)


def same_layout(shape, other) -> bool:
    """Is one shape (of a sample) the other with axes swapped, or with neighbours flattened into one?

    (H, W, C), (H W, C), (C, H, W) and (C, H W) are the same features in another layout.
    """
    if math.prod(shape) != math.prod(other):
        return False
    if len(shape) == len(other):
        return sorted(shape) == sorted(other)
    return bool({shape[0], shape[-1]} & {other[0], other[-1]})


def stages(steps: list[Step]) -> tuple[list[int], list[bool]]:
    """The stage of every step, and whether it is the stage's first.

    A change of the number of features, or a projection, opens a stage; a change of layout does not."""
    stage: list[int] = []
    first: list[bool] = []
    for i, step in enumerate(steps):
        opens = i == 0 or not step.identity or not same_layout(step.start[1:], steps[i - 1].start[1:])
        first.append(opens)
        stage.append((stage[-1] if stage else -1) + opens)
    return stage, first
