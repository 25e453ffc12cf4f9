"""What a function reaches outside itself, and whether that is still what it was.

numba freezes captured values into the code it makes, so a kernel is good only as long as they stay the same.
"""

import types
from collections.abc import Callable
from typing import Any

import numpy as np

FOREIGN = ("math", "cmath", "numpy", "odelab", "builtins")  # what comes from here does not change within a process


class Watch:
    """Remembers captured values; a changed one calls for another kernel."""

    def __init__(self):
        self.seen: list[tuple[Callable, Any, Any]] = []

    def add(self, read: Callable, where, value):
        """`read(where)` gives the value now; arrays are compared by what they hold."""
        self.seen.append((read, where, value.copy() if isinstance(value, np.ndarray) else value))

    def unchanged(self) -> bool:
        return all(same(read(where), value) for read, where, value in self.seen)


def same(now, value) -> bool:
    if isinstance(value, np.ndarray):
        return isinstance(now, np.ndarray) and now.dtype == value.dtype and np.array_equal(now, value)
    return now is value


def watch_all(function, watch: Watch, done=None):
    """Note everything a function and its helpers captured."""
    done = set() if done is None else done
    if id(function) in done or not isinstance(function, types.FunctionType) or comes_from(function, FOREIGN):
        return
    done.add(id(function))
    for read, where in references(function):
        try:
            value = read(where)
        except ValueError:  # an empty cell
            continue
        watch.add(read, where, value)
        watch_all(value, watch, done)


def references(function):
    """(reader, place) of the cells and globals a function may look up."""
    for cell in function.__closure__ or ():
        yield read_cell, cell
    for name in set(all_names(function.__code__)):
        if name in function.__globals__:
            yield read_global, (function.__globals__, name)


def lookup(name: str, function):
    """(reader, place) of a name a function finds outside itself; (None, None) for a builtin or nothing."""
    code = function.__code__
    if name in code.co_freevars:
        return read_cell, function.__closure__[code.co_freevars.index(name)]
    if name in function.__globals__:
        return read_global, (function.__globals__, name)
    return None, None


def read_cell(cell):
    return cell.cell_contents


def read_global(place):
    names, name = place
    return names.get(name)


def read_attribute(place):
    module, name = place
    return getattr(module, name, None)


def all_names(code):
    """Names a code object and those inside it look up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from all_names(constant)


def comes_from(value, modules) -> bool:
    home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None) or ""
    return home.split(".")[0] in modules
