"""A fingerprint of a function: everything its machine code depends on, as one digest.

When numba compiles a function, the machine code contains fixed copies of everything the function uses: its helpers, the
numbers and arrays it captured, the globals of its helpers. `fingerprint` visits all of them and adds their values to
the digest, so that equal digests mean equal machine code, in this process and in the next. A `Watch` checks before
every run whether the values have changed since; the check takes a few microseconds.

A helper that the user compiled with numba keeps the values it was compiled with, in plain Python too. Its fingerprint
therefore holds those frozen values, not the present ones.
"""

import builtins
import dis
import enum
import hashlib
import types
import weakref
from typing import Any, NamedTuple

import numpy as np

from odelab.functions import reach
from odelab.functions.watch import Watch, numbers_in, parts_of_container

PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
CODE = ("argcount", "posonlyargcount", "kwonlyargcount", "flags", "names", "varnames", "freevars", "cellvars")
PARTS = ("__code__", "__defaults__", "__kwdefaults__")  # of a function


class Unseen(TypeError):
    """A captured object for which compiled code cannot be trusted.

    Either changes of the object cannot be noticed, or its numbers behave differently in compiled code.

    The message says which object, and what to capture instead.
    """


class Fingerprint(NamedTuple):
    """What functions depend on.

    digest    equal for functions that make the same machine code
    watch     checks whether anything the digest covers has changed since
    lasting   may another process use machine code of this digest? Not where an address is part of it, nor where a
              function calls itself.
    """

    digest: str
    watch: Watch
    lasting: bool


def fingerprint(*functions) -> Fingerprint:
    """The fingerprint of functions that are compiled together; raises `Unseen` where none can be taken."""
    walk = Walk()
    for function in functions:
        walk.describe(function, getattr(function, "__name__", "function"))
    return Fingerprint(walk.sum.hexdigest(), walk.watch, walk.lasting)


class Walk:
    """Visits everything that functions use, and adds it to one digest."""

    def __init__(self):
        self.sum = hashlib.sha256()
        self.watch = Watch(None, [])
        self.lasting = True
        self.numbers: dict[int, tuple[int, Any]] = {}  # by identity: how many objects were met before this one
        self.inside: list[types.CodeType] = []  # of the functions that are being visited, the outermost first

    def say(self, *words):
        for word in words:
            text = str(word).encode("utf-8", "surrogatepass")
            self.sum.update(b"%d:" % len(text) + text)

    def first(self, value) -> bool:
        """Is this object met for the first time?

        If not, its number is added to the digest instead of its content, because objects may contain themselves.
        """
        if id(value) in self.numbers:
            self.say("again", self.numbers[id(value)][0])
            return False
        self.numbers[id(value)] = (len(self.numbers), value)
        return True

    def describe(self, value, name: str):
        """Take a value into the fingerprint; `name` is what the user calls it."""
        kind = type(value)
        if isinstance(value, np.generic | np.ndarray) and wraps_around(value.dtype):
            raise Unseen(
                f"it captured `{name}`, numbers of dtype {value.dtype}, which numba calculates with otherwise than "
                "NumPy, where 200 + 100 is 44: convert them first, `.astype(np.int64)`"
            )
        if kind in PLAIN:
            self.say(kind.__name__, repr(value))
        elif isinstance(value, np.generic) and value.dtype.kind in "fiubc":
            self.say("scalar", value.dtype.str, value.tobytes().hex())
        elif kind is np.ndarray and not value.dtype.hasobject:
            self.say("array", value.dtype.descr, value.shape, hashlib.sha256(value.tobytes()).hexdigest())
            self.watch.note(value, numbers_in)
        elif isinstance(value, tuple | frozenset | list | set | dict):
            self.container(value, name)
        elif isinstance(value, types.CodeType):
            self.code(value, name)
        elif isinstance(value, types.FunctionType):
            self.function(value)
        elif reach.is_dispatcher(value):
            self.numba_function(value)
        else:
            self.other(value, name)

    def container(self, value, name: str):
        if not self.first(value):
            return
        kind, parts = type(value), parts_of_container(value)
        if not isinstance(value, tuple | frozenset):
            self.watch.note(value, parts_of_container)
        self.say(kind.__qualname__, getattr(kind, "_fields", ""), len(parts))
        for part in sorted(parts, key=repr) if isinstance(value, set | frozenset) else parts:
            self.describe(part, name)

    def code(self, code, name: str):
        self.say("code", code.co_code.hex(), getattr(code, "co_exceptiontable", b"").hex())
        self.say(*(getattr(code, f"co_{part}") for part in CODE))
        for constant in code.co_consts:
            self.describe(constant, name)

    def function(self, function):
        if function.__code__ in self.inside:
            self.lasting = False  # machine code of a function that calls itself crashes when numba reads it from disk
        if reach.is_library(function):
            self.say("known", function.__module__, function.__qualname__)
        elif self.first(function):
            reference = weakref.ref(function)  # what is kept for a function must not keep it alive
            self.watch.places += [reach.link(part_of, reference, part) for part in PARTS]
            outside = reach.reached_by(function)
            self.parts(function, {names: links[-1][1] for names, links in outside.items()})
            self.watch.places += [one for links in outside.values() for one in links]

    def numba_function(self, dispatcher):
        """A helper that the user has handed to numba."""
        self.watch.note(dispatcher, parts_of_dispatcher)
        values = reach.frozen(dispatcher)
        if dispatcher.py_func.__code__ in self.inside:
            self.lasting = False
        if not dispatcher.overloads:
            self.function(dispatcher.py_func)
        elif values is None:
            self.lasting = False
            self.say("here", id(dispatcher))
        elif self.first(dispatcher):
            self.parts(dispatcher.py_func, values)

    def parts(self, function, outside: dict):
        """A function's code and default values, and what it reaches."""
        self.inside.append(function.__code__)
        for part in PARTS:
            self.describe(getattr(function, part), function.__name__)
        for names, value in outside.items():
            self.say("name", *names)
            if value is reach.NOTHING:
                self.say("builtin" if hasattr(builtins, names[0]) else "undefined")
                continue
            try:
                self.describe(value, ".".join(names))
            except Unseen as reason:
                where = line_of(function.__code__, names[-1])
                raise Unseen(f"{reason}{'' if 'File' in str(reason) else where}") from None
        self.inside.pop()

    def other(self, value: Any, name: str) -> None:
        if isinstance(value, types.ModuleType):
            self.say("module", value.__name__, getattr(value, "__version__", ""))
        elif isinstance(value, np.ufunc) and getattr(np, str(value.__name__), None) == value:
            self.say("ufunc", str(value.__name__))
        elif isinstance(value, type | types.BuiltinFunctionType) and reach.is_library(value):
            self.say("known", value.__module__, value.__qualname__)
        elif isinstance(value, enum.Enum):
            self.say("member", type(value).__qualname__, value.name)
            self.describe(value.value, name)
        elif isinstance(value, enum.EnumMeta):
            self.say("enum", value.__qualname__)
            members: dict[str, Any] = dict(value.__members__)
            self.describe({key: member.value for key, member in members.items()}, name)
        elif isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
            self.say("named tuple", value.__qualname__, value._fields)
        elif reach.comes_from(type(value), ("numba",)) and "types" in type(value).__module__:
            self.say("type", value)
        elif callable(value):  # a ctypes function, a class of numba's: fixed, but only in this process
            self.lasting = False
            self.say("here", id(value))
        else:
            raise Unseen(
                f"it captured `{name}`, a {type(value).__name__}, and whether such an object has changed cannot be "
                "seen; pass its numbers by `params`, or capture numbers, tuples or NumPy arrays instead"
            )


def wraps_around(dtype: np.dtype) -> bool:
    """Is it a type of whole numbers with a range so small that sums and differences leave it in everyday use?

    NumPy wraps around at its ends, numba widens to 64 bits. Types of 32 bits, as sparse matrices have for their
    indices, are let through.
    """
    return dtype.kind == "u" or (dtype.kind == "i" and dtype.itemsize < 4)


def line_of(code, name: str) -> str:
    """Where a name is used in a function: its file and line."""
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        line = instruction.starts_line or line
        if instruction.argval == name:
            break
    return f'. File "{code.co_filename}", line {line}'


def part_of(reference, part: str):
    return getattr(reference(), part, reach.NOTHING)


def parts_of_dispatcher(dispatcher) -> list:
    return list(reach.overloads_of(dispatcher))
