"""Whether everything that a function had captured when it was run on nodes is still what it was."""

import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

READ_AGAIN = (list, dict, set)  # containers whose parts may be exchanged


class Watch:
    """Everything that a function has read from outside, as `odelab.functions.tracing.Trace.reached` lists it.

    reached    pairs of a function that reads a place again, and the object that was there
    """

    def __init__(self, reached: list[tuple[Callable, Any]]):
        self.places = reached
        self.contents: list[tuple[Any, Callable, Any]] = []
        known: set[int] = set()
        for _, value in reached:
            if id(value) not in known:
                known.add(id(value))
                self.look_into(value)

    def look_into(self, value):
        """Note what is in an object that can change without being exchanged for another one."""
        if isinstance(value, np.ndarray):
            self.contents.append((value, numbers_in, numbers_in(value)))
        elif isinstance(value, types.FunctionType):
            self.contents.append((value, parts_of_function, parts_of_function(value)))
        elif isinstance(value, READ_AGAIN):
            self.contents.append((value, parts_of_container, parts_of_container(value)))

    def is_unchanged(self) -> bool:
        """Are the same objects in the same places, and is in them what was in them?"""
        try:
            for read, value in self.places:
                if read() is not value:
                    return False
        except Exception:  # a name that is gone
            return False
        return all(same(read(value), before) for value, read, before in self.contents)


def numbers_in(array: np.ndarray):
    return array.shape, array.dtype, array.tobytes()


def parts_of_function(function: types.FunctionType):
    return function.__code__, function.__defaults__, function.__kwdefaults__


def parts_of_container(container):
    return [*container, *container.values()] if isinstance(container, dict) else list(container)


def same(now, before) -> bool:
    """Are these the same objects in the same order? Numbers of an array are compared by their bits."""
    if isinstance(now, list):
        return len(now) == len(before) and all(map(operator.is_, now, before))
    return now == before
