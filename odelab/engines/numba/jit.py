"""numba for people's functions: what a function calls or closes over is compiled with it."""

import dis
import itertools
import types
from collections.abc import Callable
from typing import Any

from odelab.arrays import read_only
from odelab.engines.numba import overloads
from odelab.engines.numba.fingerprint import NOTHING, frozen, is_dispatcher, is_library, reached

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# For people's functions. An index outside an array is refused, as in Python, instead of reading what lies behind it. It
# costs 4 % in a loop over the inside of a grid (16.1 us to 16.7 us for 100,000
# components); a right-hand side that only unpacks `u` has no index to check.
CHECKED: dict[str, Any] = {**OPTIONS, "fastmath": {"contract"}, "boundscheck": True}


def jit(function, compiled=None, options=OPTIONS, **how):
    """`function` as a numba function; plain helpers that it reaches are compiled too, recursively.

    compiled   collects the numba functions by what they were made of
    how        as for `twin`
    """
    from numba import njit

    return twin(function, njit(**options), {} if compiled is None else compiled, **how)


def twin(function, make: Callable, made: dict, returns_tuple: bool = False, recompile: bool = False):
    """What `make` makes of a function with the same code, whose globals hold nothing but what it reaches.

    The user's function stays as it is. What it calls is replaced in the same way.

    made            collects the results by function
    returns_tuple   make a tuple of a list that `function` returns
    recompile       replace numba's own functions, too, by twins that hold the values those were compiled with
    """
    if is_dispatcher(function) and recompile:
        plain, outside = function.py_func, frozen(function)
    elif isinstance(function, types.FunctionType) and not is_library(function) and function not in overloads.register():
        plain, outside = function, {found.names: found.value for found in reached(function)}
    else:
        return function
    if outside is None:
        return function
    if function in made:
        return made[function]
    code = with_tuples(plain.__code__) if returns_tuple else plain.__code__
    cells = tuple(types.CellType() for _ in code.co_freevars) or None
    names: dict[str, Any] = {}
    other = types.FunctionType(code, names, plain.__name__, plain.__defaults__, cells)
    other.__kwdefaults__ = plain.__kwdefaults__
    # numba imports the module that a function names when it loads its machine code, perhaps in a program that has none
    # of that name, or another one.
    other.__module__ = __name__
    made[function] = make(other)
    for (name, *attributes), value in outside.items():
        if value is not NOTHING:
            put(names, name, attributes, twin(value, make, made, recompile=recompile))
    for cell, name in zip(cells or (), code.co_freevars, strict=True):
        if name in names:
            cell.cell_contents = names.pop(name)
    return made[function]


def put(names: dict[str, Any], name: str, attributes: list[str], value):
    """names[name] = value, or a module under that name whose attribute it is."""
    for attribute in attributes:
        module = names.setdefault(name, types.ModuleType(f"twin_of_{name}"))
        names, name = vars(module), attribute
    names[name] = value


def with_tuples(code):
    """Code that returns a tuple wherever `code` returns a list display: numba keeps tuples in registers."""
    instructions = list(dis.get_instructions(code))
    content = bytearray(code.co_code)
    for one, following in itertools.pairwise(instructions):
        if (one.opname, following.opname) == ("BUILD_LIST", "RETURN_VALUE"):
            content[one.offset] = dis.opmap["BUILD_TUPLE"]
    return code.replace(co_code=bytes(content))


def protecting(function, arguments: int):
    """`function` (a numba function of t, u, ...) handed a `u` it cannot write to: the state is the engine's."""
    from numba import njit

    if arguments == 3:
        return njit(**OPTIONS)(lambda t, u, params: function(t, read_only(u), params))
    return njit(**OPTIONS)(lambda t, u, params, out: function(t, read_only(u), params, out))
