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
