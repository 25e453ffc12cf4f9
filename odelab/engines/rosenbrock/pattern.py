"""The sparsity pattern of a right-hand side, found by evaluating it with marks in place of numbers.

A `Mark` stands for a number that depends on certain variables; it holds these variables and no value. The result of an
operation depends on the variables of all its operands. Code that needs the value of a mark, for a branch or a table,
stops the evaluation, because other values could lead to other results; the pattern then counts as full. A pattern that
is found therefore holds for all states, times and parameters.
"""

import builtins
import functools
import math
import operator
import os
import traceback
import types
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from odelab import maths


class Pattern(NamedTuple):
    """What a right-hand side depends on.

    rows          for each component of the right-hand side, the numbers of the state's components it depends on
    autonomous    whether it does not depend on time
    """

    rows: tuple[tuple[int, ...], ...]
    autonomous: bool

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(row, column) of the entries of the Jacobian that need not be zero."""
        return [(i, j) for i, row in enumerate(self.rows) for j in row]


class ValueWanted(Exception):
    """Code has asked for the value of a mark, which has none."""


class WholeArrays(ValueWanted):
    """Code computes with arrays instead of their entries."""


class Mark:
    """The variables that a number depends on."""

    __slots__ = ("places",)
    __array_ufunc__ = None  # makes NumPy's numbers call the mark's own operators

    def __init__(self, places=()):
        self.places = frozenset(places)

    def with_others(self, *others):
        return unite(self, *others)

    def alone(self, *_):
        return Mark(self.places)

    def no_value(self, *_):
        raise ValueWanted

    for name in ("add", "sub", "mul", "truediv", "pow", "mod"):
        locals()[f"__{name}__"] = locals()[f"__r{name}__"] = with_others
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):  # true or false, nobody knows: what `where` may be asked
        locals()[f"__{name}__"] = with_others
    for name in ("neg", "pos", "abs"):
        locals()[f"__{name}__"] = alone
    for name in ("bool", "int", "float", "index", "floordiv", "rfloordiv", "round"):
        locals()[f"__{name}__"] = no_value
    for name in ("iter", "len", "getitem", "hash", "floor", "ceil", "trunc", "complex"):
        locals()[f"__{name}__"] = no_value
    del name


def unite(*numbers) -> Mark:
    """A mark that depends on the variables of all given marks; plain numbers add none."""
    found: set = set()
    for number in numbers:
        if isinstance(number, Mark):
            found |= number.places
        elif isinstance(number, Marks | np.ndarray):
            raise WholeArrays
        elif not isinstance(number, int | float | np.number):
            raise ValueWanted
    return Mark(found)


class Marks:
    """An array of marks, which can do what arrays of dual numbers in compiled code can, and nothing else.

    It has entries and parts, which share them, and a part can be filled with one number.
    """

    __array_ufunc__ = None  # makes NumPy's numbers and arrays call the operators below

    def __init__(self, marks, writable: bool):
        self.marks, self.writable = marks, writable
        self.size, self.shape = marks.size, marks.shape

    def __len__(self):
        return len(self.marks)

    def __iter__(self):
        return iter(self.marks)

    def __getitem__(self, place):
        if isinstance(place, slice) and place.step is None:
            return Marks(self.marks[place], self.writable)
        return self.marks[operator.index(place)]

    def __setitem__(self, place, new):
        if not self.writable:
            raise ValueWanted
        self.marks[place if isinstance(place, slice) else operator.index(place)] = unite(new)

    def whole(self, *_):
        raise WholeArrays

    for name in ("add", "sub", "mul", "truediv", "pow", "mod", "matmul"):
        locals()[f"__{name}__"] = locals()[f"__r{name}__"] = locals()[f"__i{name}__"] = whole
    for name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "array"):
        locals()[f"__{name}__"] = whole
    del name


def united_or(function) -> Callable:
    """`function` extended to marks, for which it returns a mark that depends on the variables of all of them."""

    @functools.wraps(function, assigned=("__name__",), updated=())
    def either(*numbers):
        return unite(*numbers) if any(isinstance(number, Mark | Marks) for number in numbers) else function(*numbers)

    return either


def where(condition, x, y):
    """Like `odelab.maths.where`; the mark depends on both branches, not on the condition, which has no derivative."""
    if any(isinstance(value, Mark) for value in (condition, x, y)):
        return unite(x, y)
    return maths.where(condition, x, y)


def interp(x, times, values):
    return x.alone() if isinstance(x, Mark) else np.interp(x, times, values)


SMOOTH = (
    *("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "fabs"),
    *("asin", "acos", "atan", "asinh", "acosh", "atanh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"),
    *("pow", "power", "hypot", "atan2", "arctan2", "abs", "erf", "erfc", "maximum", "minimum", "copysign", "sign"),
    *("fmod", "clip", "heaviside"),
)


def replacements() -> dict:
    """The modules and functions that replace `math`, NumPy and `odelab.maths` while marks are evaluated."""
    found: dict = {}
    for module in (math, np, maths):
        smooth = {name: united_or(getattr(module, name)) for name in SMOOTH if hasattr(module, name)}
        smooth |= {function.__name__: function for function in (where, interp) if hasattr(module, function.__name__)}
        stand_in = types.SimpleNamespace(**{**vars(module), **smooth})
        found[id(module)] = stand_in
        found |= {id(getattr(module, name)): function for name, function in smooth.items()}
    return found


def pattern_of(rhs, n: int, parameters: int) -> Pattern:
    """The pattern of a right-hand side in component form; full where the evaluation with marks fails."""
    found = find_pattern(rhs, n, parameters, in_place=False)
    return found if isinstance(found, Pattern) else full(n)


def find_pattern(rhs, n: int, parameters: int, in_place: bool) -> Pattern | str:
    """The pattern of a right-hand side; in words why there is none where the evaluation with marks fails.

    in_place    whether it fills its argument `out`; otherwise it is in component form
    """
    from odelab.engines.numba.jit import twin

    stand_ins = replacements()
    made: dict = {}
    state = Marks(np.fromiter((Mark((i,)) for i in range(n)), dtype=object), False)
    out = Marks(np.full(n, 0.0, dtype=object), True)
    params = tuple(Mark() for _ in range(parameters))
    try:
        marked = twin(rhs, lambda function: function, made, recompile=True)
        for function in made.values():
            replace_names(function, stand_ins)
        answers = marked(Mark((n,)), state, params, out) if in_place else marked(Mark((n,)), tuple(state), params)
        found = [unite(answer).places for answer in (out if in_place else tuple(answers))]
    except Exception as error:  # whatever a right-hand side raises that is handed no numbers
        return no_pattern(error, {function.__code__ for function in [rhs, *made] if hasattr(function, "__code__")})
    if len(found) != n:
        return f"it returns {len(found)} slopes for {n} components"
    return Pattern(tuple(tuple(sorted(row - {n})) for row in found), not any(n in row for row in found))


def no_pattern(error: Exception, codes: set) -> str:
    """Why the evaluation with marks failed, with the last line of the user's functions that it reached."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code in codes]
    files = [frame.f_code.co_filename for frame in frames if frame.f_code in codes]
    place = f"line {lines[-1]} of {os.path.basename(files[-1])}" if lines else "it"
    if isinstance(error, WholeArrays):
        return (
            f"{place} computes with whole arrays, which linearly implicit steps do in plain Python alone. Written as a "
            "loop over the components it can be compiled"
        )
    return (
        f"what its components depend on cannot be told without values, and {place} needs one: a branch that looks at "
        "the state or the time, a place in a table, or a new array that is filled. Write a branch as "
        "odelab.maths.where, and numbers that are used again as variables"
    )


def replace_names(function, stand_ins: dict):
    """In a function made by `twin`, replace the modules and functions that it uses by their stand-ins."""
    names = function.__globals__
    for name in ("abs", "max", "min", "pow"):
        names.setdefault(name, united_or(getattr(builtins, name)))
    for name, value in list(names.items()):
        names[name] = stand_ins.get(id(value), value)
    for cell in function.__closure__ or ():
        cell.cell_contents = stand_ins.get(id(cell.cell_contents), cell.cell_contents)


def full(n: int) -> Pattern:
    return Pattern(tuple(tuple(range(n)) for _ in range(n)), False)
