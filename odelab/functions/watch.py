"""Whether everything that a function had captured when it was run on nodes is still what it was."""

import functools
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from odelab.functions.copies import LIBRARIES, room_of

INTERPOLANTS = ("c", "x", "y")  # attributes of SciPy's interpolants that hold numbers


class Watch:
    """Everything that a function has read from outside, as `odelab.functions.tracing.Trace.reached` lists it.

    function   the function itself; None where everything is noted by its owner
    reached    pairs of a function that reads a place again, and the object that was there
    """

    def __init__(self, function: Callable | None, reached: list[tuple[Callable, Any]]):
        self.places = reached
        self.contents: list[tuple[Any, Callable, Any]] = []
        self.known: dict[int, Any] = {}
        for value in (function, *(value for _, value in reached)):
            self.look_into(value)

    def look_into(self, value):
        """Note what is in an object that can change without being exchanged for another one, and what is in that."""
        read = reader_of(value)
        if read is None or id(value) in self.known:
            return
        self.known[id(value)] = value
        parts = self.note(value, read)
        if isinstance(parts, list):
            for part in parts:
                self.look_into(part)

    def note(self, value, read: Callable):
        """Note what read(value) tells of an object now, and return it."""
        parts = read(value)
        self.contents.append((value, read, parts))
        return parts

    def is_unchanged(self) -> bool:
        """Are the same objects in the same places, and is in them what was in them?"""
        try:
            for read, value in self.places:
                if read() is not value:
                    return False
            return all(same(read(value), before) for value, read, before in self.contents)
        except Exception:  # a name that is gone
            return False


def reader_of(value) -> Callable | None:
    """A function that lists what can change in an object; None where nothing can."""
    if isinstance(value, np.ndarray):
        return numbers_in
    if isinstance(value, types.FunctionType):
        return None if room_of(value) in LIBRARIES or room_of(value) == "odelab" else parts_of_function
    if isinstance(value, types.MethodType):
        return parts_of_method
    if isinstance(value, functools.partial):
        return parts_of_partial
    if isinstance(value, list | tuple | set | frozenset | dict):
        return parts_of_container
    if isinstance(value, type):
        return contents_of_class if is_users(value) else None
    if room_of(type(value)) == "scipy":
        return numbers_of_interpolant
    return contents_of_object if is_users(type(value)) else None


def is_users(kind: type) -> bool:
    return room_of(kind) not in LIBRARIES and room_of(kind) not in ("builtins", "odelab", "netbridge")


def numbers_in(array: np.ndarray):
    return array.shape, array.dtype, array.tobytes()


def parts_of_function(function: types.FunctionType) -> list:
    named = function.__kwdefaults__ or {}
    return [function.__code__, *(function.__defaults__ or ()), *named.values()]


def parts_of_method(method: types.MethodType) -> list:
    return [method.__func__, method.__self__]


def parts_of_partial(partial: functools.partial) -> list:
    return [partial.func, *partial.args, *partial.keywords.values()]


def parts_of_container(container) -> list:
    return [*container, *container.values()] if isinstance(container, dict) else list(container)


def contents_of_class(kind: type) -> list:
    """What a class and those it inherits from define, names included."""
    users = [base for base in kind.__mro__ if is_users(base)]
    return [one for base in users for item in list(vars(base).items()) for one in item]


def contents_of_object(value) -> list:
    """The attributes of an object, names included, and its class."""
    return [type(value), *(one for item in list(getattr(value, "__dict__", {}).items()) for one in item)]


def numbers_of_interpolant(value) -> list:
    found = (getattr(value, name, None) for name in INTERPOLANTS)
    return [one for one in found if isinstance(one, np.ndarray)]


def same(now, before) -> bool:
    """Are these the same objects in the same order? Numbers of an array are compared by their bits."""
    if isinstance(now, list):
        return len(now) == len(before) and all(map(operator.is_, now, before))
    return now == before
