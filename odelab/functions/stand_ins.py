"""What stands for Python's builtins, `math` and NumPy's own functions where a traced function names them.

Each takes nodes as well as numbers; for numbers it is the function itself.
"""

import builtins
import functools
import math
import numbers
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from odelab.graph import nodes, numpy_functions, ufuncs
from odelab.graph.arrays import Array, dtype_named, entries, has_nodes
from odelab.graph.forks import OutOfDomain, OutOfRange
from odelab.graph.graphs import Node
from odelab.graph.nodes import call_two, choose, logical, one, two
from odelab.graph.numpy_functions import double_precision, filled
from odelab.graph.operations import OF_ONE, checked_whole, raises_where, truth, wrapping_whole
from odelab.graph.trails import Untraceable

NO_COMPLEX = ("uses complex numbers", "split them into real and imaginary parts")


class Forbidden:
    """Stands for what must not be used: the reason is told when it is."""

    def __init__(self, reason: str, remedy: str = ""):
        self.__dict__["refusal"] = (reason, remedy)

    def refuse(self, *_, **__):
        raise Untraceable(*self.__dict__["refusal"])

    def __getattr__(self, name):
        if name.startswith("__array"):  # which NumPy looks for
            raise AttributeError(name)
        return self.refuse()

    __call__ = __iter__ = __next__ = __getitem__ = __setitem__ = __setattr__ = __len__ = __bool__ = refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __matmul__ = refuse
    __rmatmul__ = __pow__ = __rpow__ = __enter__ = __exit__ = __contains__ = __lt__ = __gt__ = __le__ = __ge__ = refuse


class Either:
    """A function that is `own` for numbers and `other` where a node is among its arguments."""

    def __init__(self, own: Callable, other: Callable):
        self.own, self.other = own, other

    def __call__(self, *arguments, **options):
        if has_nodes(arguments) or (options and has_nodes(options.values())):
            return self.other(*arguments, **options)
        return self.own(*arguments, **options)


def refusing(name: str) -> Callable:
    """A function that refuses nodes."""

    def refuse(*_, **__):
        raise Untraceable(f"gives {name} a number that depends on the state", f"write what {name} does with + and *")

    return refuse


class KindOfNumber(type):
    """The class of `float`, `int` and `bool` in traced code: a node is an instance of one of them."""

    def __instancecheck__(cls, x):
        return is_instance(x, cls.own)

    def __call__(cls, *arguments, **options):
        if len(arguments) == 1 and not options:
            (x,) = arguments
            x = entries(x).reshape(-1)[0] if isinstance(x, Array) and x.size == 1 else x
            if isinstance(x, Node):
                return cls.of_node(x)
        return cls.own(*arguments, **options)

    def __getattr__(cls, name):
        return getattr(cls.own, name)


def kind_of_number(own: type, of_node: Callable, dtype=None) -> type:
    """What stands for a class of numbers: `of_node` converts."""
    contents = {"own": own, "of_node": staticmethod(of_node), "dtype": np.dtype(own if dtype is None else dtype)}
    return KindOfNumber(own.__name__, (), contents)


Float, Integer, Truth = (
    kind_of_number(float, operator.methodcaller("real")),
    kind_of_number(int, checked_whole),
    kind_of_number(bool, truth),
)
OwnInteger = kind_of_number(int, wrapping_whole)
NUMPY_KINDS = {
    np.float64: kind_of_number(np.float64, operator.methodcaller("real")),
    np.int64: kind_of_number(np.int64, checked_whole),
    np.bool_: kind_of_number(np.bool_, truth),
}
LIKE = {"d": (0.0, np.float64(0.0)), "l": (0, np.int64(0)), "b": (False, np.bool_(False))}


def own_class(kind):
    """The class for which another stands."""
    if isinstance(kind, tuple):
        return tuple(map(own_class, kind))
    if isinstance(kind, types.UnionType):
        return tuple(map(own_class, kind.__args__))
    return vars(kind).get("own", kind) if isinstance(kind, KindOfNumber) else kind


def is_instance(x, kind) -> bool:
    """isinstance(x, kind); of a node what is true of Python's and NumPy's numbers of its kind, if they agree."""
    kind = own_class(kind)
    if not isinstance(x, Node):
        original = getattr(x, "_original", None) if getattr(type(x), "follows", False) else None
        return isinstance(x if original is None else original(), kind)
    answers = {isinstance(number, kind) for number in LIKE[x.kind]}
    if len(answers) == 2:
        raise Untraceable(f"asks whether a number is a {kind}, which depends on how it was called", "ask for float")
    return answers.pop()


def in_domain(trace, name: str, outside: Callable, x):
    """A function of `math`: where somebody may handle its exception, a branch outside of its domain."""
    value = one(name, x) if isinstance(x, Node) else getattr(math, name)(x)
    if trace.handles and isinstance(x, Node) and outside(x):
        raise OutOfDomain("math domain error")
    return value


def in_range(trace, name: str, largest: float, x):
    value = one(name, x)
    if trace.handles and (x if name.startswith("exp") else abs(x)) > largest:
        raise OutOfRange("math range error")
    return value


def below_zero(x):
    return x < 0.0


def not_positive(x):
    return x <= 0.0


def infinite(x):
    return abs(x) == math.inf


def beyond_one(x):
    return abs(x) > 1.0


DOMAINS: dict[str, Callable] = {
    **{"sqrt": below_zero, "log": not_positive, "log2": not_positive, "log10": not_positive},
    **{"asin": beyond_one, "acos": beyond_one, "sin": infinite, "cos": infinite, "tan": infinite},
    "log1p": lambda x: x <= -1.0,
    "acosh": lambda x: x < 1.0,
    "atanh": lambda x: abs(x) >= 1.0,
}
RANGES = {
    **{"exp": 709.782712893384, "expm1": 709.782712893384, "exp2": 1023.9999999999999},
    **{"sinh": 710.4758600739439, "cosh": 710.4758600739439},
}


def logarithm(trace, x, base=None):
    numerator = in_domain(trace, "log", not_positive, x)
    return numerator if base is None else numerator / in_domain(trace, "log", not_positive, base)


def to_integer(op: str, x):
    """math.floor, math.ceil and math.trunc."""
    return checked_whole(one(op, x)) if x.kind == "d" else x


def hypotenuse(*values):
    return functools.reduce(functools.partial(call_two, "hypot"), values) if len(values) > 1 else abs(values[0])


def distance(p, q):
    return hypotenuse(*(a - b for a, b in zip(p, q, strict=True)))


def product(values, *, start=1):
    return functools.reduce(operator.mul, values, start)


def near(a, b, *, rel_tol=1e-9, abs_tol=0.0):
    """math.isclose."""
    allowed = nodes.maximum(rel_tol * nodes.maximum(abs(a), abs(b)), abs_tol)
    return logical("or", two("eq", a, b), logical("and", nodes.is_finite(a - b), two("le", abs(a - b), allowed)))


def split(x):
    """math.modf."""
    trunc = one("trunc", x)
    return call_two("copysign", choose(nodes.is_infinite(x), 0.0, x - trunc), x), trunc


def finite_or_raised(op: str, a, b):
    """math.pow and math.fmod, which raise where the result is no number, which a handler may see."""
    result = call_two(op, a, b)
    if result.graph.guarded:
        raises_where(result.graph, logical("not", nodes.is_finite(result)))
    return result


def math_functions(trace) -> dict[str, Callable]:
    """The functions of `math` on nodes."""
    inside = {name: functools.partial(in_domain, trace, name, outside) for name, outside in DOMAINS.items()}
    small = {name: functools.partial(in_range, trace, name, largest) for name, largest in RANGES.items()}
    rounded = {name: functools.partial(to_integer, name) for name in ("floor", "ceil", "trunc")}
    return MATH | inside | small | rounded | {"log": functools.partial(logarithm, trace)}


MATH: dict[str, Callable] = {
    **{name: functools.partial(finite_or_raised, name) for name in ("pow", "fmod")},
    **{name: functools.partial(one, name) for name in OF_ONE if hasattr(math, name)},
    **{name: functools.partial(call_two, name) for name in ("atan2", "copysign")},
    **{"fabs": functools.partial(one, "abs"), "hypot": hypotenuse, "dist": distance, "prod": product},
    **{"isfinite": nodes.is_finite, "isnan": nodes.is_nan, "isinf": nodes.is_infinite, "isclose": near, "modf": split},
    **{
        "degrees": functools.partial(two, "mul", 180.0 / math.pi),
        "radians": functools.partial(two, "mul", math.pi / 180.0),
    },
}


def smallest(*values, **options):
    return builtins.min(*values, **options) if options else nodes.minimum(*values)


def largest(*values, **options):
    return builtins.max(*values, **options) if options else nodes.maximum(*values)


def rounded(x, digits=None):
    """round(x) is a whole number, for which plain Python is asked where there is none."""
    if isinstance(x, Node) and digits is None:
        return checked_whole(one("rint", x)) if x.kind == "d" else x
    return builtins.round(x, digits)


def pythons_power(a, b, modulus=None):
    return nodes.power(a, b) if modulus is None else nodes.power(a, b) % modulus


def side_effect(name: str) -> Forbidden:
    return Forbidden(f"calls {name}(), which is a side effect or shows the value of a number", "leave it out")


FORBIDDEN = "print open input exec eval compile globals locals vars setattr delattr id breakpoint dir hash repr ascii"
BUILTINS: dict[str, Any] = {
    **{
        "float": Float,
        "int": Integer,
        "bool": Truth,
        "isinstance": is_instance,
        "complex": Either(complex, Forbidden(*NO_COMPLEX)),
    },
    **{"min": Either(min, smallest), "max": Either(max, largest), "round": Either(round, rounded)},
    **{"pow": Either(pow, pythons_power), "isinstance": is_instance, "type": Either(type, refusing("type"))},
    **{name: side_effect(name) for name in FORBIDDEN.split()},
}


def new_array(value: float, own: Callable, shape, dtype=None, order="C", **options):
    """np.zeros, np.ones and np.empty: an array that may be filled with nodes, unless it is none of doubles."""
    kind = dtype_named(float if dtype is None else dtype)
    return filled(shape, value) if kind == np.float64 else own(shape, kind, order, **options)


def full_array(shape, value, dtype=None, order="C", **options):
    if dtype is not None and dtype_named(dtype) != np.float64:
        return np.full(shape, value, dtype_named(dtype), order, **options)
    return numpy_functions.filled_by(shape, value if dtype is None or has_nodes((value,)) else float(value))


def array_of_nodes(x, dtype=None, copy=True, order=None, ndmin=0, **_):
    """np.array, np.asarray and the like of something in which there is a node."""
    double_precision(dtype)
    items = entries(x).copy() if copy else entries(x)
    return items.reshape((1,) * (ndmin - items.ndim) + items.shape).view(Array)


def asarray_of_nodes(x, dtype=None, order=None, **_):
    double_precision(dtype)
    return x if isinstance(x, Array) else entries(x).view(Array)


def from_iterable(items, dtype=float, count=-1, **_):
    """np.fromiter; what comes out of a generator is known only afterwards."""
    double_precision(dtype)
    return Array.of(list(items)[: None if count < 0 else count])


def of_numpy(own: Callable, *arguments, **options):
    """A function of NumPy, of whose arguments lists may hold nodes as well."""
    return numpy_functions.call(
        own, tuple(map(with_own_class, arguments)), {name: with_own_class(x) for name, x in options.items()}
    )


def with_own_class(x):
    return own_class(x) if isinstance(x, KindOfNumber) else x


class NumpyFunction:
    """A ufunc or another function of NumPy; other attributes, such as `np.add.reduce`, are its own."""

    def __init__(self, own: Callable):
        self.own = own

    def __call__(self, *arguments, **options):
        if not isinstance(self.own, np.ufunc):
            return of_numpy(self.own, *arguments, **options)
        arguments = tuple(
            entries(x).view(Array) if isinstance(x, list | tuple) and has_nodes(x) else x for x in arguments
        )
        return ufuncs.as_captured(self.own(*arguments, **{name: with_own_class(x) for name, x in options.items()}))

    def __getattr__(self, name):
        return getattr(self.own, name)


def captured_result(own: Callable) -> Callable:
    """A function of NumPy whose result can be asked for the place of a node."""

    def call(*arguments, **options):
        return ufuncs.as_captured(own(*arguments, **{name: with_own_class(x) for name, x in options.items()}))

    return call


def quiet_errors(**options):
    """np.errstate, whose exceptions would go unseen."""
    if not {"raise", "call", "print", "log"}.isdisjoint(options.values()):
        raise Untraceable("turns results that are no numbers into exceptions", "ask np.isfinite")
    return np.errstate(**options)


SIDE_EFFECTS = (
    *("seterr", "seterrcall", "setbufsize", "set_printoptions", "printoptions", "save", "savez", "savez_compressed"),
    *("savetxt", "load", "loadtxt", "genfromtxt", "fromfile", "fromregex", "memmap", "info", "show_config", "test"),
)
ARRAYS = (
    Either(captured_result(np.array), array_of_nodes),
    Either(captured_result(np.asarray), asarray_of_nodes),
)
MAKERS: dict[Any, Callable] = {
    **{np.zeros: functools.partial(new_array, 0.0, np.zeros), np.ones: functools.partial(new_array, 1.0, np.ones)},
    **{np.empty: functools.partial(new_array, math.nan, np.empty), np.full: full_array, np.array: ARRAYS[0]},
    **{np.asarray: ARRAYS[1], np.asanyarray: ARRAYS[1], np.ascontiguousarray: ARRAYS[1]},
    np.fromiter: from_iterable,
    np.isscalar: Either(np.isscalar, functools.partial(is_instance, kind=numbers.Number)),
}


def numpy_stand_in(value):
    """What stands for an attribute of NumPy."""
    if getattr(value, "__name__", "") in SIDE_EFFECTS:
        return side_effect(f"np.{value.__name__}")
    if value is np.errstate:
        return quiet_errors
    if isinstance(value, type):
        return NUMPY_KINDS.get(value, value)
    if not callable(value):
        return value
    if value in MAKERS:
        return MAKERS[value]
    follows = isinstance(value, np.ufunc) or hasattr(value, "_implementation") or value in numpy_functions.FUNCTIONS
    follows = follows or value in numpy_functions.MOVING or hasattr(value, "__wrapped__")
    return NumpyFunction(value) if follows else Either(value, refusing(f"np.{getattr(value, '__name__', 'it')}"))
