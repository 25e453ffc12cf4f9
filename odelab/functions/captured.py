"""What a traced function captured, to be read and not to be changed: containers, objects, modules, interpolants."""

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from odelab.functions import stand_ins
from odelab.graph.arrays import Array, elementwise, entries, gather, has_nodes, look_up
from odelab.graph.graphs import Node, is_number
from odelab.graph.nodes import two
from odelab.graph.numpy_functions import piece_of
from odelab.graph.trails import Untraceable


def refuse_change(*_) -> Any:
    raise Untraceable("changes a captured list, dict or object: a side effect", "use a local variable")


def entry_at(items, place: Node):
    """An entry of a list or tuple at a place that is a node."""
    if not all(is_number(x) or isinstance(x, Node | list | tuple) for x in items):
        raise Untraceable("looks up a list of objects at a place that depends on the state", "keep numbers in the list")
    if has_nodes(items):
        return look_up(entries(items).view(Array), (place,))
    return look_up(np.array(items).view(Array), (place,))


class Table(list):
    """A captured list."""

    append = extend = insert = pop = remove = clear = sort = reverse = refuse_change  # type: ignore[assignment]
    __setitem__ = __delitem__ = __iadd__ = __imul__ = refuse_change

    def __getitem__(self, place):
        return entry_at(self, place) if isinstance(place, Node) else super().__getitem__(place)


class TupleTable(tuple):
    """A captured tuple."""

    __slots__ = ()

    def __getitem__(self, place):
        return entry_at(self, place) if isinstance(place, Node) else super().__getitem__(place)


class Dictionary(dict):
    """A captured dict."""

    pop = popitem = clear = update = setdefault = refuse_change  # type: ignore[assignment]
    __setitem__ = __delitem__ = __ior__ = refuse_change


class Follower:
    """Stands for an object of the user's: its attributes are read from it, and its methods are traced with it.

    `follows` tells `isinstance` to ask the object itself.
    """

    __slots__ = ("_object", "_trace")
    follows = True

    def _original(self):
        return self._object

    def __getattr__(self, name):
        if name.startswith("__array"):  # which NumPy looks for
            raise AttributeError(name)
        return self._trace.attribute(self._object, self, name)

    def __setattr__(self, name, value):
        refuse_change()

    def __delattr__(self, name):
        refuse_change()


NOT_FOLLOWED = {
    *(
        "__init__",
        "__new__",
        "__setattr__",
        "__delattr__",
        "__del__",
        "__repr__",
        "__str__",
        "__format__",
        "__reduce__",
    ),
    *("__init_subclass__", "__class_getitem__", "__getstate__", "__setstate__", "__reduce_ex__", "__sizeof__"),
}
TAKEN_OVER = ("__getattr__", "__getattribute__")


def follower(trace, value) -> Follower:
    """A follower of an object, with the special methods that its class defines in Python."""
    contents: dict = {"__slots__": ()}
    for kind in reversed(type(value).__mro__[:-1]):
        for name, member in vars(kind).items():
            if name in TAKEN_OVER and isinstance(member, types.FunctionType):
                raise Untraceable(f"uses an object whose class defines {name}", "write its attributes out")
            special = name.startswith("__") and name.endswith("__") and name not in NOT_FOLLOWED
            if special and isinstance(member, types.FunctionType):
                contents[name] = traced_later(trace, member)
    made: Any = object.__new__(type(type(value).__name__, (Follower,), contents))
    object.__setattr__(made, "_object", value)
    object.__setattr__(made, "_trace", trace)
    return made


def traced_later(trace, member):
    """A method that is traced when it is first called: `dataclass` makes some that nobody calls."""

    def call(self, *arguments, **options):
        return trace.function(member, method=True)(self, *arguments, **options)

    return call


def is_interpolant(value) -> bool:
    return (type(value).__module__ or "").startswith("scipy.interpolate")


def interpolant(spline):
    """A scipy.interpolate.PPoly (CubicSpline, PchipInterpolator, Akima) or a linear interp1d, for nodes."""

    def at(x, *rest):
        if not has_nodes((x,)):
            return spline(x, *rest)
        evaluate = piecewise(spline) if not rest else None
        if evaluate is None:
            raise Untraceable(f"calls a {type(spline).__name__}, which is not followed", "use CubicSpline or np.interp")
        return elementwise(evaluate, x)

    return at


def piecewise(spline):
    """The function of one number that a spline is; None where it is none that is followed."""
    coefficients: Any = getattr(spline, "c", None)
    if np.ndim(coefficients) == 2 and spline.extrapolate in (True, None) and hasattr(spline, "x"):
        return functools.partial(polynomial, np.array(spline.x, dtype=float), np.array(coefficients, dtype=float))
    extrapolates = getattr(spline, "_extrapolate", False)
    if getattr(spline, "_kind", "") == "linear" and np.ndim(spline.y) == 1 and extrapolates:
        return functools.partial(straight, np.array(spline.x, dtype=float), np.array(spline.y, dtype=float))
    return None


def polynomial(knots, coefficients, x):
    """The piece of degree k at x: the sum of c[i] (x - knot)^(k - i), added as scipy adds it."""
    if not isinstance(x, Node):
        raise Untraceable("interpolates numbers and nodes in one array", "call it for each")
    piece = piece_of(knots, x)
    apart = two("sub", x, gather(piece, knots[:-1]))
    value, power = 0.0, 1.0
    for row in coefficients[::-1]:
        value, power = two("add", two("mul", gather(piece, row), power), value), two("mul", power, apart)
    return value


def straight(knots, values, x):
    if not isinstance(x, Node):
        raise Untraceable("interpolates numbers and nodes in one array", "call it for each")
    piece = piece_of(knots, x)
    slope = gather(piece, np.diff(values) / np.diff(knots))
    return two("add", two("mul", slope, two("sub", x, gather(piece, knots[:-1]))), gather(piece, values[:-1]))


class Library:
    """`math`, NumPy or `odelab.maths`: each of its attributes has a stand-in, which is made when it is read."""

    def __init__(self, trace, module):
        self.__dict__["_trace"], self.__dict__["_module"] = trace, module

    def __getattr__(self, name):
        made = self.__dict__[name] = self._made(name, getattr(self._module, name))
        return made

    def __setattr__(self, name, value):
        refuse_change()

    def _made(self, name, value):
        if isinstance(value, types.ModuleType):
            return self._trace.module(value)
        if self._module.__name__ in ("numpy", "numpy.linalg"):
            return stand_ins.numpy_stand_in(value)
        if not callable(value):
            return value
        if self._module.__name__ == "math":
            other = stand_ins.math_functions(self._trace).get(name)
            return stand_ins.Either(value, other or stand_ins.refusing(f"math.{name}"))
        return stand_ins.Either(value, of_maths(name))


def of_maths(name: str) -> Callable:
    """A function of `odelab.maths` on nodes: NumPy's function of the same name."""
    return stand_ins.numpy_stand_in(getattr(np, name))


class Module:
    """A module of the user's, or one that is not followed, whose attributes are copied as they are read."""

    def __init__(self, trace, module):
        self.__dict__["_trace"], self.__dict__["_module"] = trace, module

    def __getattr__(self, name):
        read = functools.partial(getattr, self._module, name)
        return self._trace.copy(read(), read)

    def __setattr__(self, name, value):
        refuse_change()
