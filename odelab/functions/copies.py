"""Copies of a user's functions for nodes: with stand-ins for what they name, and with what they captured read-only.

The user's functions and objects stay as they are. What is read on the way is noted in `Trace.reached`.
"""

import abc
import builtins
import collections
import enum
import fractions
import functools
import importlib
import math
import operator
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from odelab import core
from odelab.functions import captured, stand_ins
from odelab.functions.bytecode import facts_of
from odelab.functions.helpers import Helper
from odelab.functions.reach import frozen, is_dispatcher, read_cell, values_reached
from odelab.functions.stand_ins import Either, Forbidden, refusing
from odelab.graph.arrays import Array
from odelab.graph.graphs import Graph, Node
from odelab.graph.operations import choose
from odelab.graph.trails import Untraceable

PLAIN = (Node, int, float, complex, str, bytes, type(None), np.generic, enum.Enum, range, slice, fractions.Fraction)
PLAIN_TYPES = frozenset((Node, int, float, bool, str, type(None), np.float64))
ON_NUMBERS = {"operator", "_operator", "functools", "_functools", "itertools", "copy", "collections", "types", "typing"}
ON_NUMBERS |= {
    "dataclasses",
    "enum",
    "numbers",
    "fractions",
    "abc",
    "contextlib",
    "warnings",
    "__future__",
    "_collections",
}
LIBRARIES = ON_NUMBERS | set(sys.stdlib_module_names) | {"numpy", "scipy", "torch", "numba", "jax", "pandas", "sympy"}
OF_NAMED_TUPLES = {name for name, member in vars(collections.namedtuple("Pair", "a")).items() if callable(member)}
OF_NAMED_TUPLES |= {"_make", "__new__"}
METHODS = (types.FunctionType, property, classmethod, staticmethod)
FIELDS = (types.MemberDescriptorType, type(vars(collections.namedtuple("Pair", "a"))["a"]))  # of slots and named tuples
NOT_PURE = "which may change from call to call or have side effects"
NUMBERS_IN = "hand its numbers in as parameters"
OWN_ARITHMETIC = ("odelab.core", "odelab.control", "odelab.maths", "odelab.methods", "odelab.stiffness")
OWN = ("odelab.graph", "odelab.functions", "odelab.kernels", "odelab.engines", "odelab.arrays")


def room_of(value) -> str:
    """The package that a function, a class or a module belongs to."""
    name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None) or ""
    return name.partition(".")[0]


class Trace:
    """Copies of functions and of all that they call, for nodes.

    reached    what they read: (a function that reads it again, the object), in the order in which it was read
    handles    one of them has a handler of exceptions, so that `math` has to raise those it would raise
    """

    def __init__(self):
        self.reached: list[tuple[Callable, Any]] = []
        self.made: dict[tuple, tuple[Any, Any]] = {}
        self.handles = False
        self.graph: Graph | None = None
        self.builtins: dict[bool, dict[str, Any]] = {}
        self.libraries: dict[int, captured.Library] = {}

    def copy(self, value, read: Callable | None = None):
        """A value as traced code may use it; `read` reads it again, unless it is no part of what is captured."""
        if read is not None:
            self.reached.append((read, value))
        if type(value) in PLAIN_TYPES or isinstance(value, PLAIN):
            return value
        key = (id(value), False)
        if key not in self.made:
            self.made[key] = (self.made_from(value, read), value)  # which keeps the identity of the value
        return self.made[key][0]

    def made_from(self, value, read: Callable | None):
        if isinstance(value, np.ndarray):
            return captured_array(value)
        if isinstance(value, tuple | list | dict | set | frozenset):
            return self.container(value, read)
        if isinstance(value, types.ModuleType):
            return self.module(value)
        if isinstance(value, type):
            return self.of_class(value)
        if isinstance(value, types.FunctionType):
            return self.of_function(value)
        if callable(value):
            made = self.of_callable(value, read)
            if made is not None:
                return made
        return self.object(value)

    def container(self, value, read: Callable | None):
        """A list, tuple, dict or set that cannot be changed."""
        if isinstance(value, dict):
            if type(value) is not dict:
                raise Untraceable(f"uses a {type(value).__name__}", "use a dict")
            return captured.Dictionary({name: self.part(value, name, x, read) for name, x in value.items()})
        if isinstance(value, set | frozenset):
            return frozenset(value)
        parts = [self.part(value, place, x, read) for place, x in enumerate(value)]
        if hasattr(value, "_fields"):
            return type(value)(*parts) if has_no_code(type(value)) else self.object(value)
        return captured.Table(parts) if isinstance(value, list) else captured.TupleTable(parts)

    def part(self, whole, place, x, read: Callable | None):
        """A part of a container; plain numbers are noted with the whole."""
        if type(x) in PLAIN_TYPES or read is None:
            return self.copy(x)
        return self.copy(x, functools.partial(operator.getitem, whole, place))

    def module(self, value):
        if value is math or value is np or value.__name__ in ("odelab.maths", "numpy.linalg"):
            return self.library(value)
        if room_of(value) in ON_NUMBERS or value.__name__ == "builtins":
            return value
        if value.__name__ == "numpy.random" or room_of(value) in sys.stdlib_module_names:
            return Forbidden(f"uses {value.__name__}, {NOT_PURE}", NUMBERS_IN)
        return captured.Module(self, value)

    def library(self, module) -> captured.Library:
        if id(module) not in self.libraries:
            self.libraries[id(module)] = captured.Library(self, module)
        return self.libraries[id(module)]

    def of_class(self, value: type):
        name = value.__name__
        if stand_ins.BUILTINS.get(name) is not None and vars(builtins).get(name) is value:
            return stand_ins.BUILTINS[name]
        if room_of(value) == "numpy":
            return stand_ins.numpy_stand_in(value)
        if issubclass(value, BaseException | enum.Enum) or room_of(value) in ON_NUMBERS | {"builtins"}:
            return value
        if room_of(value) in sys.stdlib_module_names:
            return Forbidden(f"makes a {name}, {NOT_PURE}", NUMBERS_IN)
        if room_of(value) in LIBRARIES or has_no_code(value):
            return value
        return self.copy_of_class(value)

    def copy_of_class(self, value: type):
        """A class of the user's whose methods are traced, for objects that the function makes itself."""
        if type(value) is not type:
            raise Untraceable(f"makes objects of {value.__name__}, whose class has a class of its own")
        bases = tuple(self.copy(base) for base in value.__bases__)
        skipped = ("__dict__", "__weakref__", "__slots__", *vars(value).get("__slots__", ()))
        contents = {name: self.member(x) for name, x in vars(value).items() if name not in skipped}
        return type(value.__name__, bases, contents)

    def member(self, x):
        """What a class defines: a method, a property or a constant."""
        if isinstance(x, types.FunctionType):
            return captured.traced_later(self, x)
        if isinstance(x, property) and isinstance(x.fget, types.FunctionType):
            return property(captured.traced_later(self, x.fget))
        if isinstance(x, staticmethod):
            return staticmethod(self.copy(x.__func__))
        return (
            self.copy(x)
            if not isinstance(x, classmethod)
            else Forbidden("calls a method of a class", "write a function")
        )

    def of_function(self, value: types.FunctionType):
        if value is core.where:
            return choose
        room = room_of(value)
        if room == "numpy":
            return stand_ins.numpy_stand_in(value)
        if value.__module__ == "odelab.maths":
            return getattr(self.library(sys.modules["odelab.maths"]), value.__name__)
        if (value.__module__ or "").startswith(OWN) or room in ON_NUMBERS:
            return value
        if room in sys.stdlib_module_names:
            return Forbidden(f"calls {value.__module__}.{value.__name__}, {NOT_PURE}", NUMBERS_IN)
        if room in LIBRARIES:
            return Either(value, refusing(f"{value.__module__}.{value.__name__}"))
        return self.function(value)

    def of_callable(self, value, read: Callable | None):
        """What stands for a callable object that is no function of Python's; None for an object of the user's."""
        if isinstance(value, types.MethodType):
            return self.bound_method(value)
        if isinstance(value, functools.partial):
            arguments = [self.copy(x) for x in value.args]
            return functools.partial(
                self.copy(value.func), *arguments, **{k: self.copy(x) for k, x in value.keywords.items()}
            )
        if isinstance(value, functools._lru_cache_wrapper):
            return self.copy(value.__wrapped__)
        if is_dispatcher(value):
            return self.dispatcher(value)
        if isinstance(value, np.ufunc) or room_of(value) == "numpy":
            return stand_ins.numpy_stand_in(value)
        if isinstance(value, types.BuiltinFunctionType):
            return self.builtin(value)
        if captured.is_interpolant(value):
            return captured.interpolant(value)
        return None

    def bound_method(self, value: types.MethodType):
        owner = value.__self__
        if isinstance(owner, type):
            raise Untraceable("calls a method of a class", "write a function")
        return types.MethodType(
            self.function(value.__func__, method=True), self.copy(owner, functools.partial(getattr, value, "__self__"))
        )

    def builtin(self, value: types.BuiltinFunctionType):
        room, name = room_of(value), value.__name__
        if room == "math":
            return getattr(self.library(math), name)
        if room == "builtins" and isinstance(value.__self__, types.ModuleType):
            return stand_ins.BUILTINS.get(name, value)
        if room in ON_NUMBERS:
            return value
        return Forbidden(f"calls {name}, which is not followed", "write it with + and *")

    def dispatcher(self, value):
        """The function inside of one that numba compiled, if numba has not frozen other values than there are now."""
        old, now = frozen(value), values_reached(value.py_func)
        if old is None or old.keys() != now.keys() or not all(equal(old[names], now[names]) for names in now):
            raise Untraceable(
                f"calls {value.__name__}, which numba compiled with other values", "call its `recompile()`"
            )
        return self.function(value.py_func)

    def object(self, value):
        """What stands for an object that is no function."""
        kind = type(value)
        if hasattr(kind, "__next__"):
            raise Untraceable("reads a captured iterator, which goes on from call to call", "capture a list")
        if kind is types.SimpleNamespace or (room_of(kind) not in LIBRARIES and type(kind) in (type, abc.ABCMeta)):
            return captured.follower(self, value)
        return Forbidden(f"uses a {kind.__name__}, which is not followed", NUMBERS_IN)

    def attribute(self, value, follower, name: str):
        """An attribute of an object of the user's, as its methods see it."""
        member = next((vars(kind)[name] for kind in type(value).__mro__ if name in vars(kind)), None)
        if name not in getattr(value, "__dict__", ()):
            if isinstance(member, property | functools.cached_property):
                getter = member.fget if isinstance(member, property) else member.func
                return self.function(getter, method=True)(follower)
            if isinstance(member, types.FunctionType):
                return types.MethodType(self.function(member, method=True), follower)
            if isinstance(member, staticmethod):
                return self.copy(member.__func__)
            if hasattr(type(member), "__get__") and not isinstance(member, FIELDS):
                raise Untraceable(f"reads `.{name}`, which its class computes", "write a property or a function")
        read = functools.partial(getattr, value, name)
        return self.copy(read(), read)

    def function(self, own, method: bool = False) -> types.FunctionType:
        """A copy of a function, in which names stand for what takes nodes."""
        key = (id(own), method)
        if key in self.made:
            return self.made[key][0]
        facts = facts_of(own.__code__, method)
        for found in facts.obstacles:
            if found.name not in own.__globals__:
                place = f"line {found.line} of {os.path.basename(own.__code__.co_filename)}"
                raise Untraceable(found.reason, found.remedy, place)
        self.note_handler(facts.handles)
        names: dict[str, Any] = {
            "__builtins__": self.stand_ins_of_builtins(own.__module__),
            "__name__": own.__globals__.get("__name__", ""),
        }
        cells = tuple(types.CellType() for _ in own.__code__.co_freevars)
        other = types.FunctionType(own.__code__, names, own.__name__, None, cells or None)
        self.made[key] = other, own
        self.fill(own, other, names, facts.names)
        return other

    def fill(self, own, other, names: dict, globals_read: tuple[str, ...]):
        """Give a copy what the function captured: its globals, defaults and closure."""
        for name in globals_read:
            read = functools.partial(own.__globals__.get, name)
            if name in own.__globals__:
                names[name] = self.called(own.__globals__[name], read)
            else:  # a builtin, which a global may hide later
                self.reached.append((read, None))
        if own.__defaults__:
            self.reached.append((functools.partial(getattr, own, "__defaults__"), own.__defaults__))
            other.__defaults__ = tuple(map(self.copy, own.__defaults__))
        if own.__kwdefaults__:
            self.reached.append((functools.partial(getattr, own, "__kwdefaults__"), own.__kwdefaults__))
            other.__kwdefaults__ = {name: self.copy(x) for name, x in own.__kwdefaults__.items()}
        for cell, of_own in zip(other.__closure__ or (), own.__closure__ or (), strict=True):
            try:
                cell.cell_contents = self.called(of_own.cell_contents, functools.partial(read_cell, of_own))
            except ValueError:  # the variable has no value yet
                continue

    def called(self, value, read: Callable):
        """The copy of a value that a function captured; a helper of the user's is joined where it is called."""
        made = self.copy(value, read)
        is_users = isinstance(value, types.FunctionType) and not (value.__module__ or "").startswith("odelab.")
        return Helper(self, made) if is_users and isinstance(made, types.FunctionType) else made

    def note_handler(self, handles: bool):
        if handles:
            self.handles = True
            if self.graph is not None:
                self.graph.guarded = True

    def stand_ins_of_builtins(self, module: str | None) -> dict:
        """Python's builtins for nodes; odelab's own arithmetic converts to whole numbers without a question."""
        if not self.builtins:
            users = {**vars(builtins), **stand_ins.BUILTINS, "__import__": self.imported}
            self.builtins = {False: users, True: {**users, "int": stand_ins.OwnInteger}}
        return self.builtins[(module or "").startswith(OWN_ARITHMETIC)]

    def imported(self, name, names=None, local=None, wanted=(), level=0):
        if level:
            raise Untraceable("imports a module relative to its own", "import it at the top of the file")
        module = importlib.import_module(name) if wanted else __import__(name)
        return self.copy(module)


def captured_array(value: np.ndarray):
    """A captured array as one that cannot be written to, and that can be asked for the place of a node."""
    if isinstance(value, Array):
        return value
    if type(value) is not np.ndarray or value.dtype.kind not in "fiub" or value.dtype.itemsize > 8:
        return Forbidden(f"uses a {type(value).__name__} of {value.dtype}", "use an array of floats")
    view = value.view(Array)
    view.flags.writeable = False
    return view


def has_no_code(kind: type) -> bool:
    """Is a class what `namedtuple` makes, without methods of the user's?"""
    bases = [base for base in kind.__mro__ if room_of(base) not in LIBRARIES]
    methods = {name for base in bases for name, member in vars(base).items() if isinstance(member, METHODS)}
    return issubclass(kind, tuple) and methods <= OF_NAMED_TUPLES


def equal(a, b) -> bool:
    """Are two captured values the same, as far as compiled code sees them?"""
    if a is b:
        return True
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(equal, a, b))
    return isinstance(a, PLAIN) and repr(a) == repr(b)
