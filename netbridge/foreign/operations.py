"""What is noted of a forward pass, and of a residual step that was found in it."""

from typing import Any, NamedTuple

UNSEEN = "unseen"  # stands for whatever made a tensor that no torch function returned: TorchScript, NumPy, vmap


class Operation(NamedTuple):
    """One torch function that ran.

    `inputs` are the operations whose numbers it takes, `operands` the operation behind each of its arguments.
    """

    name: str
    inputs: tuple[int, ...]
    operands: tuple[Any, ...] = (None, None)  # None where an argument comes from no operation; a tuple for a list
    shape: Any = None  # a tuple, of its tensor; None for anything else
    module: str = ""  # in whose forward it ran
    in_place: bool = False
    numbers: tuple[float | None, ...] = ()  # the arguments that are plain numbers, None at the other places
    whole: bool = False  # its tensor holds whole numbers or truth values
    details: str = ""  # what else tells it from another one: dimensions, modes, the name of a layer
    constants: tuple[Any, ...] | None = None  # the tensors that come from no operation, by `id`; None: not known
    several: bool = False  # it returns several tensors, which have one number
    again: Any = None  # of a change of layout: repeats it on another tensor of this shape
    line: str = ""  # the file and line of the user's code

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
    """A part of a coefficient: what stands at `place`, or `number` where there is no place."""

    place: Place | None
    how: str = "times"  # or "over", for a divisor, or "rest", for 1 - w
    number: float = 1.0
    live: bool = False  # computed from the network's input
    layouts: tuple[int, ...] = ()  # the changes of layout between the factor and the sum, in the order they ran


Product = tuple[Factor, ...]


class Branch(NamedTuple):
    """One summand beside the shortcut: f, which is what stands at `place` times `own`, and its weight, `factors`.

    how     "plain"; "towards", where the state is taken from it (f - x); "product", where f has factors of its own
    """

    place: Place
    factors: Product = ()
    how: str = "plain"
    layouts: tuple[int, ...] = ()  # the changes of layout between it and the sum
    own: Product = ()
    axis: int = 0  # of the samples, at its place


class Step(NamedTuple):
    """One residual sum, x' = p (x + h f), and where to look.

    The slope f is the sum of the branches, each times its own factors; of a tableau the sum divided by its weights.
    """

    name: str
    module: str  # in whose forward the sum is
    addition: int  # the operation that forms the sum
    state: int  # x_t
    after: int  # x_{t+1}: the sum, or the activation or normalisation after it
    identity: bool  # the shortcut is x_t itself, times p
    shape: tuple[int, ...]  # of the sum
    start: tuple[int, ...]  # the shape of x_t, or of its projection
    shortcut: Place
    branches: tuple[Branch, ...]  # more than one in x + f + g, whose slope is f + g
    overwrites: bool = False  # x += f
    size: tuple[Product, ...] = ()  # the products whose sum is h p; () for 1
    scale: tuple[Product, ...] = ()  # the products whose sum is p; () for 1
    tableau: tuple[int, ...] = ()  # the branches whose weights add up to a part of h: evaluations of one function
    axis: int = 0  # of the samples, in the sum
    end_axis: int = 0  # of the samples, in x_{t+1}
    layouts: tuple[int, ...] = ()  # the changes of layout between the shortcut and the sum
    tail: tuple[int, ...] = ()  # the changes of layout between the sum and x_{t+1}
    stages: tuple[int, ...] = ()  # sums of a state and a branch that are stages of its tableau

    @property
    def factors(self) -> Product:
        """All that the step size is made of."""
        return tuple(factor for product in (*self.size, *self.scale) for factor in product)


def is_within(module: str, name: str) -> bool:
    """Is a module another one or a part of it?"""
    return not name or module == name or module.startswith(f"{name}.")
