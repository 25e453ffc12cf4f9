"""What a function uses that is defined outside of it: globals, captured variables, attributes of the user's modules.

A function that the user compiled with numba keeps the values it was compiled with, in plain Python too; `frozen` finds
those. Every value is reached by a chain of names, each of them read from a place: a namespace, a cell, a module.
"""

import copy
import dis
import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

VERSIONED = ("math", "cmath", "numpy", "numba", "builtins", "operator")  # modules that change with their version only
NOTHING = object()  # stands for a name that has no value

Names = tuple[str, ...]  # of a value, and of the attributes on the way to it
Link = tuple[Callable, Any]  # a function without arguments that reads a place, and what was there


def values_reached(function) -> dict[Names, Any]:
    """The values that a function uses and that are defined outside of it, by their names."""
    return {names: links[-1][1] for names, links in reached_by(function).items()}


def reached_by(function) -> dict[Names, list[Link]]:
    """The same with a link for each name on the way to a value; the last one reads the value itself."""
    found: dict[Names, list[Link]] = {}
    for names in names_outside(function.__code__):
        found |= follow(function, names)
    return found


def follow(function, names: Names) -> dict[Names, list[Link]]:
    """What a chain of names, such as `module.rate`, leads to.

    The chain is followed only through modules of the user's own; attributes of anything else do not count.
    """
    code, root = function.__code__, names[0]
    if root in code.co_freevars:
        links = [link(read_cell, function.__closure__[code.co_freevars.index(root)])]
    else:
        links = [link(function.__globals__.get, root, NOTHING)]
    for depth, name in enumerate(names[1:], 1):
        module = links[-1][1]
        if not is_users_module(module):
            return {names[:depth]: links}
        links.append(link(getattr, module, name, NOTHING))
    value = links[-1][1]
    if not is_users_module(value):
        return {names: links}
    # The function uses the module itself as a value, so any name in the function may be an attribute read from it.
    attributes = [name for inner in codes(code) for name in inner.co_names]
    parts = {(*names, name): [*links, link(getattr, value, name, NOTHING)] for name in attributes}
    return {name: to for name, to in parts.items() if not is_module_or_nothing(to[-1][1])}


def link(read: Callable, *where) -> Link:
    """The link to what read(*where) returns now."""
    here = functools.partial(read, *where)
    return here, here()


def read_cell(cell):
    try:
        return cell.cell_contents
    except ValueError:  # the variable has no value yet
        return NOTHING


@functools.lru_cache(maxsize=512)
def names_outside(code) -> tuple[Names, ...]:
    """The outside names that a code object and those inside it use, each with the attributes read from it."""
    found: dict[Names, None] = {}
    for inner in codes(code):
        chain: Names = ()
        for instruction in dis.get_instructions(inner):
            operation, name = instruction.opname, instruction.argval
            if operation in ("LOAD_ATTR", "LOAD_METHOD") and chain:
                chain = (*chain, name)
            elif operation != "EXTENDED_ARG":
                found |= {chain: None} if chain else {}
                from_outside = operation in ("LOAD_GLOBAL", "LOAD_NAME") or (
                    operation in ("LOAD_DEREF", "LOAD_CLASSDEREF") and name in code.co_freevars
                )
                chain = (name,) if from_outside else ()
    return tuple(found)


def codes(code) -> Iterator[types.CodeType]:
    """A code object and those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


frozen_before: weakref.WeakKeyDictionary[Any, tuple] = weakref.WeakKeyDictionary()


def frozen(dispatcher) -> dict[Names, Any] | None:
    """The values that a function compiled by numba uses, as they were when numba compiled it; None if unknown.

    Numbers are found in the intermediate code that numba stores. That code does not hold the contents of arrays, nor
    the attributes that were read from modules: these are copied when the function is met for the first time.
    """
    overloads = overloads_of(dispatcher)
    known, values = frozen_before.get(dispatcher, (None, None))
    if overloads and known is overloads[0]:
        return values
    values = values_reached(dispatcher.py_func)
    if not overloads:
        return values
    blocks = getattr(overloads[0].type_annotation, "blocks", None)
    if blocks is None:  # loaded from numba's own files
        fixed = (is_module_or_nothing(value) or comes_from(value, VERSIONED) for value in values.values())
        values = {} if all(fixed) else None
    else:
        from numba.core import ir

        for block in blocks.values():
            for found in block.find_insts(ir.Assign):
                if isinstance(found.value, ir.Global | ir.FreeVar) and (found.value.name,) in values:
                    values[found.value.name,] = found.value.value
        values = {names: own_copy(value) for names, value in values.items()}
    frozen_before[dispatcher] = (overloads[0], values)
    return values


def own_copy(value):
    return copy.deepcopy(value) if isinstance(value, np.ndarray | tuple | list) else value


def is_module_or_nothing(value) -> bool:
    return value is NOTHING or isinstance(value, types.ModuleType)


def overloads_of(dispatcher) -> tuple:
    return tuple(dispatcher.overloads.values())


def is_dispatcher(value) -> bool:
    """Is it a function that somebody has handed to numba?"""
    registry = sys.modules.get("numba.core.registry")
    return registry is not None and isinstance(value, registry.CPUDispatcher)


def is_library(function) -> bool:
    """Does this function belong to a library that numba knows, so that it need not be compiled or looked into?"""
    return comes_from(function, VERSIONED) or function.__module__ == "odelab.maths"


def is_users_module(value) -> bool:
    return isinstance(value, types.ModuleType) and not comes_from(value, (*VERSIONED, "odelab"))


def comes_from(value, modules) -> bool:
    home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None) or ""
    return home.split(".")[0] in modules
