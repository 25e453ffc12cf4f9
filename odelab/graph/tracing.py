"""Run a user's function on nodes: a copy of it, in which `math`, NumPy's constructors and some builtins take nodes.

The user's function stays as it is. What it reaches (globals, closures, defaults, helpers) is looked through; every
captured object that was replaced is in `Trace.reached`, so that a change of it can be noticed.
"""

import builtins
import dis
import functools
import math
import types

from odelab.graph import nodes
import numpy as np
from odelab import core
from odelab.graph.forks import joined
from odelab.graph.nodes import Array, Graph, Node, Untraceable

SPELLED = {"fabs": "abs", "pow": "power"}
LIBRARIES = {"numpy", "scipy", "torch", "numba", "math", "builtins", "random"}
LIBRARIES |= {"node", "forks", "tracing", "derivatives", "attempt"}  # this package's own


def any_node(values):
    return any(isinstance(x, Node) or (isinstance(x, np.ndarray) and x.dtype == object) or (isinstance(x, (list, tuple)) and any_node(x)) for x in values)


class Library(types.SimpleNamespace):
    """A module of which some functions take nodes."""


@functools.cache
def stand_in(module):
    found = {}
    for name, own in vars(module).items():
        if callable(own) and not name.startswith("_"):
            other = known_function(module, name)
            found[name] = other_or(own, other) if other is not None else own
        elif not name.startswith("__"):
            found[name] = own
    if module is np:
        found |= {name: functools.partial(created, getattr(np, name)) for name in ("array", "asarray", "ascontiguousarray", "zeros", "ones", "empty", "full", "asfarray", "atleast_1d", "stack", "concatenate", "hstack", "vstack", "fromiter") if hasattr(np, name)}
        found |= {"float64": Float64, "int64": Int64, "float32": refuse_single}
        found["random"] = Forbidden()
    return Library(**found)


def refuse_single(*_):
    raise Untraceable("single precision")


DOMAINS = {"sqrt": lambda x: x < 0.0, "log": lambda x: x <= 0.0, "log2": lambda x: x <= 0.0, "log10": lambda x: x <= 0.0,
           "log1p": lambda x: x <= -1.0, "asin": lambda x: abs(x) > 1.0, "acos": lambda x: abs(x) > 1.0, "acosh": lambda x: x < 1.0,
           "atanh": lambda x: abs(x) >= 1.0}  # fmt: skip


OVERFLOWS = {"exp": 709.782712893384, "expm1": 709.782712893384, "sinh": 710.4758600739439, "cosh": 710.4758600739439}


def no_overflow(name, x, value):
    if (x if name.startswith("exp") else abs(x)) > OVERFLOWS[name]:
        raise OverflowError("math range error")
    return value


def known_function_of(name):
    if name == "log":
        return lambda x, base=None: nodes.one("log", x) if base is None else nodes.one("log", x) / math.log(base)
    return nodes.scalar_function(name)


def in_domain(name, x, value):
    """`math` raises outside of the domain: a fork, whose failing side the caller may have foreseen."""
    if DOMAINS[name](x):
        raise ValueError("math domain error")
    return value


class Forbidden:
    def __getattr__(self, name):
        raise Untraceable("random numbers")


def known_function(module, name):
    if module is math:
        if name == "log" and False:
            return lambda x, base=None: nodes.one("log", x) if base is None else nodes.one("log", x) / math.log(base)
        if name in ("floor", "ceil", "trunc"):
            return lambda x: nodes.whole(nodes.one(name, x))
        if name == "fmod":
            return lambda a, b: nodes.call_two("fmod", a, b)
        if name == "pow":
            return lambda a, b: nodes.call_two("pow", a, b)
        if name == "isclose":
            return lambda a, b, rel_tol=1e-9, abs_tol=0.0: abs(a - b) <= nodes.maximum(rel_tol * nodes.maximum(abs(a), abs(b)), abs_tol)
        if name in OVERFLOWS:
            return lambda x: no_overflow(name, x, nodes.one(name, x))
        if name in DOMAINS:
            return lambda x, *base: in_domain(name, x, known_function_of(name)(x, *base))
        if name == "hypot":
            return lambda a, b: nodes.call_two("hypot", a, b)
        if name in ("fsum", "prod", "dist", "gamma", "lgamma", "remainder", "gcd", "comb", "factorial"):
            return None
        return nodes.scalar_function(SPELLED.get(name, name))
    if module is np:
        if isinstance(getattr(np, name), np.ufunc):
            return None  # ufuncs ask nodes and arrays of them what to do
        return nodes.FUNCTIONS.get(getattr(np, name)) if not isinstance(getattr(np, name), type) else None
    if module.__name__ == "odelab.maths":
        return nodes.where if name == "where" else None if name.startswith("_") else nodes.scalar_function(name)
    return None


def other_or(own, other):
    @functools.wraps(own, assigned=("__name__",), updated=())
    def either(*arguments, **options):
        return other(*arguments, **options) if any_node(arguments) else own(*arguments, **options)

    return either


def created(own, *arguments, **options):
    """A new array; one that may be filled with nodes."""
    kind = options.get("dtype")
    if own in (np.zeros, np.ones, np.empty, np.full):
        value = math.nan if own is np.empty else arguments[1] if own is np.full else float(own is np.ones)
        kind = kind if kind is not None else arguments[1] if own is not np.full and len(arguments) > 1 else float
        if np.dtype(kind).kind != "f" or np.dtype(kind) != np.float64:
            return own(*arguments, **options)
        return nodes.filled(arguments[0], value)
    if any_node(arguments):
        if kind is not None and np.dtype(kind) != np.float64:
            raise Untraceable("an array of another kind than double")
        if own in (np.array, np.asarray, np.ascontiguousarray, np.atleast_1d):
            return np.array(stripped(arguments[0]), dtype=object).view(Array)
        return own([stripped(x) for x in arguments[0]], **options).view(Array)
    return own(*arguments, **options)


def stripped(x):
    """Nested lists whose innermost parts are boxed, as NumPy would ask a node for its length."""
    if isinstance(x, Node):
        return x
    return nodes.plain(x) if isinstance(x, np.ndarray) else [stripped(y) for y in x] if isinstance(x, (list, tuple)) else x


class Floats(type):
    def __instancecheck__(cls, x):
        return isinstance(x, (builtins.float, Node))


class Float(metaclass=Floats):
    dtype = np.dtype(builtins.float)

    def __new__(cls, x=0.0):
        if isinstance(x, np.ndarray) and x.size == 1:
            x = x.reshape(-1)[0]
        return x.real() if isinstance(x, Node) else builtins.float(x)


class Float64(Float):
    def __new__(cls, x=0.0):
        return x.real() if isinstance(x, Node) else np.float64(x)


class Int64:
    dtype = np.dtype(np.int64)

    def __new__(cls, x=0):
        return nodes.whole(x) if isinstance(x, Node) else np.int64(x)


def forbidden(*_, **__):
    raise Untraceable("a side effect: print, input or open")


BUILTINS = {
    "float": Float, "int": other_or(int, nodes.whole), "min": other_or(min, nodes.minimum), "max": other_or(max, nodes.maximum),
    "abs": other_or(abs, lambda x: nodes.one("abs", x)), "pow": other_or(pow, nodes.power), "print": forbidden, "open": forbidden, "input": forbidden,
    "bool": lambda x=False: (x if x.kind == "b" else x != 0) if isinstance(x, Node) else bool(x),
}  # fmt: skip


class Trace:
    """Copies of a function and of all that it calls, for nodes."""

    def __init__(self):
        self.made, self.reached = {}, []

    def copy(self, value):
        if value is math or value is np or getattr(value, "__name__", "") == "odelab.maths":
            return stand_in(value)
        if isinstance(value, np.ndarray) and not isinstance(value, Array) and value.dtype.kind in "fiu":
            self.reached.append(value)
            return value.view(Array) if value.dtype != np.float32 else value
        if isinstance(value, (int, float, complex, str, type(None))):
            self.reached.append(value)
            return value
        if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
            self.reached.append(value)
            return Table(map(self.copy, value)) if isinstance(value, list) else TupleTable(map(self.copy, value))
        if isinstance(value, tuple):
            return type(value)(*map(self.copy, value))
        if isinstance(value, dict):
            return Dictionary({key: self.copy(x) for key, x in value.items()})
        if hasattr(value, "__next__"):
            raise Untraceable("a captured iterator gives another value each time: a side effect")
        if isinstance(value, types.MethodType):
            return types.MethodType(self.copy(value.__func__), value.__self__)
        if isinstance(value, functools.partial):
            return functools.partial(self.copy(value.func), *value.args, **value.keywords)
        if isinstance(value, types.BuiltinFunctionType) and value.__module__ == "math":
            return getattr(stand_in(math), value.__name__)
        if isinstance(value, types.BuiltinFunctionType) and value.__module__ == "time":
            return forbidden
        if isinstance(value, types.ModuleType) and value.__name__ in ("random", "time", "numpy.random"):
            return Forbidden()
        if isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] not in LIBRARIES:
            return Copied(self, value)
        value = getattr(value, "py_func", value)
        own = getattr(value, "_implementation", None)
        if (value in nodes.FUNCTIONS if isinstance(value, types.FunctionType) or callable(value) and value.__class__.__hash__ else False):
            return other_or(value, nodes.FUNCTIONS[value])
        if isinstance(value, types.BuiltinFunctionType) and (value.__module__ or "").startswith("numpy") and hasattr(np, value.__name__):
            return getattr(stand_in(np), value.__name__)
        if isinstance(value, np.ufunc):
            return value
        if isinstance(value, types.FunctionType):
            return value if own or (value.__module__ or "").partition(".")[0] in LIBRARIES else self.function(value)
        if type(value).__module__.startswith("scipy.interpolate"):
            return interpolant(value)
        call = getattr(type(value), "__call__", None)
        if isinstance(call, types.FunctionType) and not isinstance(value, type) and (call.__module__ or "").partition(".")[0] not in LIBRARIES:
            return types.MethodType(self.copy(call), value)
        return value

    def function(self, own):
        if own in self.made:
            return self.made[own]
        if (own.__module__ or "").startswith(("odelab.graph", "odelab.kernels")):
            return own
        if own is core.where:
            return nodes.choose
        if "." in (own.__module__ or "") and own.__module__.startswith("odelab.maths"):
            return own
        cells = tuple(types.CellType() for _ in own.__code__.co_freevars)
        names = dict(BUILTINS)
        other = types.FunctionType(own.__code__, names, own.__name__, None, cells or None)
        self.made[own] = other
        names["__builtins__"] = {**vars(builtins), "__import__": self.imported}
        code = own.__code__
        for x in dis.get_instructions(code):
            if x.opname in ("STORE_GLOBAL", "STORE_ATTR") or (x.opname == "STORE_DEREF" and x.argval in code.co_freevars):
                raise Untraceable(f"{x.argval} is changed, which outlives the call: a side effect")
        for name in names_in(code):
            if name in own.__globals__:
                names[name] = self.copy(own.__globals__[name])
        other.__defaults__ = tuple(map(self.copy, own.__defaults__ or ())) or None
        other.__kwdefaults__ = {k: self.copy(x) for k, x in (own.__kwdefaults__ or {}).items()} or None
        for cell, of_own in zip(cells, own.__closure__ or ()):
            try:
                cell.cell_contents = self.copy(of_own.cell_contents)
            except ValueError:  # an empty cell
                pass
        return other

    def imported(self, *arguments):
        return self.copy(__import__(*arguments))


def interpolant(spline):
    """A scipy.interpolate.PPoly (CubicSpline, PchipInterpolator, Akima) or a linear interp1d, for nodes."""
    def at(x, *rest):
        x = nodes.unboxed(x)
        if not isinstance(x, Node):
            return spline(x, *rest)
        if rest or not hasattr(spline, "c") or np.ndim(spline.c) != 2 or spline.extrapolate not in (True, None):
            if getattr(spline, "_kind", "") == "linear" and not rest:
                knots, values = spline.x, spline.y
                k = piece(x, knots)
                low = nodes.look_up(knots[:-1].view(Array), (k,))
                slope = nodes.look_up((np.diff(values) / np.diff(knots)).view(Array), (k,))
                return slope * (x - low) + nodes.look_up(values[:-1].view(Array), (k,))
            raise Untraceable(f"{type(spline).__name__} is not followed")
        k = piece(x, spline.x)
        s = x - nodes.look_up(spline.x[:-1].copy().view(Array), (k,))
        value, z = 0.0, 1.0
        for row in spline.c[::-1]:
            value = value + nodes.look_up(np.ascontiguousarray(row).view(Array), (k,)) * z
            z = z * s
        return value

    def piece(x, knots):
        k = x.graph.add("search", "l", x.graph.table(knots), x.real().i) - 1
        return nodes.choose(k < 0, 0, nodes.choose(k > len(knots) - 2, len(knots) - 2, k))

    return at


class Copied:
    """A module of the user's, whose functions are copied as they are used."""

    def __init__(self, trace, module):
        self._trace, self._module = trace, module

    def __getattr__(self, name):
        return self._trace.copy(getattr(self._module, name))


def refuse_change(*_):
    raise Untraceable("a captured list or dictionary is changed: a side effect")


class Table(list):
    append = extend = insert = pop = remove = clear = sort = reverse = __setitem__ = __delitem__ = refuse_change

    def __getitem__(self, place):
        return chosen_of(self, place) if isinstance(place, Node) else super().__getitem__(place)


class Dictionary(dict):
    pop = popitem = clear = update = setdefault = __setitem__ = __delitem__ = __ior__ = refuse_change


class TupleTable(tuple):
    def __getitem__(self, place):
        return chosen_of(self, place) if isinstance(place, Node) else super().__getitem__(place)


def chosen_of(items, place):
    return nodes.look_up(np.array(list(items), dtype=float).view(Array) if all(map(nodes.is_number, items)) else Array.of(list(items)), (place,))


@functools.cache
def names_in(code):
    inside = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return frozenset(code.co_names).union(*(names_in(one) for one in inside))


def traced(graph: Graph, rhs, form="component", n=None, trace=None):
    """The right-hand side as a function of nodes: (t, u, params) -> Array of n nodes, without branches."""
    copy = (trace or Trace()).copy(rhs)

    def slopes(t, u, params):
        u = nodes.plain(u).copy().view(Array)
        if form == "in-place":
            out = nodes.filled(len(u), math.nan)
            copy(t, u, params, out)
            answer = out
        else:
            answer = copy(t, u, params)
        answer = [x[()] if isinstance(x, np.ndarray) and x.ndim == 0 else x for x in (answer if not isinstance(answer, Node) else Node.refuse(answer))]
        if len(answer) != len(u):
            raise Untraceable(f"it returns {len(answer)} slopes for {len(u)} components")
        return Array.of([graph.input("t").lift(x).real() for x in answer])

    return joined(graph, slopes)


def traced_projection(graph, function, n):
    copy = Trace().copy(function)
    return joined(graph, lambda u: Array.of(list(copy(Array.of(list(u))))))
