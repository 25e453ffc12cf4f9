"""A copy of a user's function that can be called with dual numbers, also where it uses `math` or creates arrays.

`math.exp` accepts only plain numbers, and `numpy.zeros` makes arrays that can hold nothing else. In the copy, and in
copies of the plain helpers that the function calls, such names stand for functions that accept duals as well. The
user's function stays as it is.
"""

import builtins
import functools
import math
import types
from collections.abc import Callable

import numpy as np

from odelab.linear import dual
from odelab.linear.dual import Dual

LIBRARIES = {"numpy", "scipy", "torch", "numba", "math"}
OWN = ("odelab.maths", "odelab.linear")
SPELLED = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "pow": "power", "log": "log",
}  # fmt: skip

OTHERS_IN_NUMPY = ("remainder", "isclose")  # NumPy's of the same name round, or compare, in another way


def copy_for_duals(function, m: int) -> Callable:
    """A copy of `function` for duals with m directions: of a plain function, of a method, or of an object's `__call__`.

    Anything else is returned as it is.
    """
    call = getattr(type(function), "__call__", None)  # noqa: B004 (its own, not whether it has one)
    if isinstance(call, types.FunctionType) and not hasattr(function, "py_func"):
        return types.MethodType(replacement(call, m, {}), function)
    return replacement(function, m, {})


def replacement(value, m, made):
    """The value that replaces, in the copy, a value that the function uses."""
    if value is math:
        return MathOfDuals()
    if value is np:
        return NumpyOfDuals(m)
    if isinstance(value, types.BuiltinFunctionType) and value.__module__ == "math":
        return getattr(MathOfDuals(), value.__name__)
    if value in CREATING:
        return getattr(NumpyOfDuals(m), value.__name__)
    if isinstance(value, types.MethodType):
        return types.MethodType(replacement(value.__func__, m, made), value.__self__)
    if isinstance(value, functools.partial):
        return functools.partial(replacement(value.func, m, made), *value.args, **value.keywords)
    value = getattr(value, "py_func", value)  # compiled by numba: what it was made of
    if not isinstance(value, types.FunctionType) or is_of_a_library(value.__module__ or ""):
        return value
    if value not in made:
        cells = tuple(types.CellType() for _ in value.__code__.co_freevars)
        names = dict(value.__globals__)
        other = types.FunctionType(value.__code__, names, value.__name__, value.__defaults__, cells or None)
        other.__kwdefaults__ = value.__kwdefaults__
        made[value] = other
        for name in names_looked_up(value.__code__):
            if name in names:
                names[name] = replacement(names[name], m, made)
        names.setdefault("float", Float)
        for cell, own in zip(cells, value.__closure__ or (), strict=True):
            if not is_empty(own):
                cell.cell_contents = replacement(own.cell_contents, m, made)
    return made[value]


def is_of_a_library(module: str) -> bool:
    return module.partition(".")[0] in LIBRARIES or module.startswith(OWN)


def is_empty(cell) -> bool:
    try:
        return cell.cell_contents is None
    except ValueError:
        return True


def names_looked_up(code) -> set[str]:
    """The names that code and the functions inside it look up."""
    inside = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*(names_looked_up(one) for one in inside))


class Floats(type):
    """What `isinstance` asks of `float`: a dual number is one, too."""

    def __instancecheck__(cls, x):
        return isinstance(x, builtins.float) or (isinstance(x, Dual) and x.ndim == 0)


class Float(metaclass=Floats):
    """`float`, which leaves a dual as it is; as the kind of an array it means what `float` means."""

    dtype = np.dtype(builtins.float)

    def __new__(cls, x=0.0):
        return x if isinstance(x, Dual) else builtins.float(x)


class MathOfDuals:
    """Python's `math`, for duals too."""

    def __getattr__(self, name):
        own = getattr(math, name)
        if not callable(own):
            return own

        def function(*arguments):
            if not any(isinstance(one, Dual) for one in arguments):
                return own(*arguments)
            own(*dual.plain(arguments))  # which raises outside the domain, as the right-hand side may expect
            if name == "log" and len(arguments) == 2:
                return np.log(arguments[0]) / np.log(arguments[1])
            if name in ("floor", "ceil", "trunc"):
                return own(arguments[0])
            if name in OTHERS_IN_NUMPY:
                raise dual.NotDifferentiable(f"math.{name} is not followed")
            from scipy import special

            other = getattr(np, SPELLED.get(name, name), getattr(special, name, None))
            if other is None:
                raise dual.NotDifferentiable(f"the derivative of math.{name} is not known")
            return other(*arguments)

        return function


class NumpyOfDuals:
    """NumPy, whose new arrays have room for derivatives in m directions."""

    def __init__(self, m):
        self.m = m

    def __getattr__(self, name):
        own = getattr(np, name)
        if not callable(own) or own not in CREATING:
            return own
        return lambda *arguments, **options: self.create(own, arguments, options)

    def create(self, own, arguments, options):
        if own in ROOM:
            array = own(*arguments, **options)
            return dual.constant(array, self.m) if array.dtype.kind in "fc" else array
        if not arguments or not dual.duals_in(tuple(arguments)):
            return own(*arguments, **options)
        joined = dual.gather(arguments[0])
        if own in ARRAYS:
            kind = options.get("dtype", arguments[1] if len(arguments) > 1 else joined.dtype)
            if len(arguments) > 2 or options.keys() - {"dtype"}:
                raise dual.NotDifferentiable(f"numpy.{own.__name__} is called in a way that is not followed")
            same = joined.astype(kind)
            return same.copy() if own is np.array else same
        return own(joined, *arguments[1:], **options)


ROOM = {np.zeros, np.empty, np.ones, np.full}
ARRAYS = {np.array, np.asarray, np.ascontiguousarray}
LISTS = {*ARRAYS, np.stack, np.sum, np.prod, np.max, np.min, np.mean, np.dot}
CREATING_LIST = [*ROOM, *LISTS]


class _Creating:
    """Whether a value is one of these functions, also for a value that cannot be hashed."""

    def __contains__(self, value):
        return any(value is one for one in CREATING_LIST)


CREATING = _Creating()
