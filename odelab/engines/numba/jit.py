"""Compiles a user's function with numba: its plain Python helpers, too, and the functions of `odelab.maths`."""

import dis
import functools
import itertools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from odelab import maths
from odelab.arrays import read_only
from odelab.engines.numba import CONTRACTED, EXACT, OPTIONS, blending
from odelab.engines.python import RightHandSideError, on_a_copy
from odelab.functions.reach import NOTHING, frozen, is_dispatcher, is_library, values_reached
from odelab.right_hand_side import COMPONENT, IN_PLACE

# Options for users' functions. An index outside an array raises IndexError, as in Python, instead of reading memory
# behind the array. The check costs 4 % in a loop over the inside of a grid (16.7 us instead of 16.1 us for 100,000
# components), and nothing in a right-hand side that only unpacks `u`.
CHECKED: dict[str, Any] = {**CONTRACTED, "boundscheck": True}
ANOTHER_NUMBER = "the right-hand side returned another number of slopes than the state has components"

ELEMENTARY = {
    maths.exp: np.exp,
    maths.log: np.log,
    maths.sin: np.sin,
    maths.cos: np.cos,
    maths.tan: np.tan,
    maths.arctan: np.arctan,
    maths.sinh: np.sinh,
    maths.cosh: np.cosh,
    maths.tanh: np.tanh,
    maths.sqrt: np.sqrt,
    maths.abs: np.abs,
    maths.sign: np.sign,
}


def jit(function, compiled=None, options=OPTIONS, **how):
    """`function` as a numba function; plain helpers that it reaches are compiled too, recursively.

    compiled   collects the numba functions, each under the plain function that it was made of
    how        as for `twin`
    """
    from numba import njit

    return twin(function, njit(**options), {} if compiled is None else compiled, **how)


made_once: dict[str, dict] = {}


def jit_once(function, options):
    """`jit` for a function of odelab's own: one numba function for every kernel of this process, by its options.

    Half the time that numba takes to compile the kernel of a small system goes into the control of step sizes, and the
    next kernel with the same law has the same control. The user's functions are not kept so, since the values that they
    use can change.
    """
    return jit(function, made_once.setdefault(repr(options), {}), options)


def twin(function, make: Callable, made: dict, returns_tuple: bool = False, recompile: bool = False):
    """Copy a function and apply `make` to the copy, whose globals hold only the values that the function uses.

    The user's function stays as it is. The functions it calls are replaced in the same way.

    made            collects the results by function
    returns_tuple   make a tuple of a list that `function` returns
    recompile       replace numba's own functions, too, by twins that hold the values those were compiled with
    """
    if is_dispatcher(function) and recompile:
        plain, outside = function.py_func, frozen(function)
    elif isinstance(function, types.FunctionType) and not is_library(function) and function not in teach_maths():
        plain, outside = function, values_reached(function)
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
    # When numba loads machine code it imports the module named in `__module__`. The user's module may not exist in the
    # program that loads it, or be another one of the same name; this module exists always.
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


def protect(function, fills: bool):
    """A numba function of t, u, ... that hands `function` a read-only `u`, because the state is the engine's.

    fills    does it fill its argument `out`? What it returns otherwise must have the shape of the state.
    """
    from numba import njit

    if fills:
        return njit(**EXACT)(lambda t, u, params, out: function(t, read_only(u), params, out))

    def checked(t, u, params):
        answer = function(t, read_only(u), params)
        if answer is None:
            raise RightHandSideError("the right-hand side returned None")
        slopes = np.asarray(answer)
        if slopes.shape != u.shape:
            raise RightHandSideError(ANOTHER_NUMBER)
        return slopes

    return njit(**EXACT)(checked)


def compiled_functions(functions: dict[str, Callable], form: str) -> dict[str, Any]:
    """The user's functions for numba to compile as soon as a kernel calls them, with their indices checked."""
    twins: dict = {}
    compiled = {}
    for name, function in functions.items():
        tuples = form == COMPONENT and name == "rhs"
        compiled[name] = jit(function, twins, CHECKED, returns_tuple=tuples, recompile=True)
        if form != COMPONENT and name == "rhs":
            compiled[name] = protect(compiled[name], fills=form == IN_PLACE)
        if name == "project":
            compiled[name] = jit(on_a_copy(compiled[name]), options=EXACT)
    return compiled


@functools.cache
def teach_maths() -> frozenset:
    """Teach numba the functions of `odelab.maths`, once; returns the functions that it knows then."""
    from numba.core import types
    from numba.extending import intrinsic, overload

    def teach(function, numpy_function):
        @overload(function)
        def elementary(x):
            return lambda x: numpy_function(x)

    for function, numpy_function in ELEMENTARY.items():
        teach(function, numpy_function)

    def scalars(*kinds):
        return all(isinstance(kind, types.Number | types.Boolean) for kind in kinds)

    @overload(maths.maximum)
    def maximum(x, y):
        if scalars(x, y):  # a comparison turns into one vector instruction; NaN in either is passed on by the sum
            return lambda x, y: x if x > y else (y if y >= x else x + y)
        return lambda x, y: np.maximum(x, y)

    @overload(maths.minimum)
    def minimum(x, y):
        if scalars(x, y):
            return lambda x, y: x if x < y else (y if y <= x else x + y)
        return lambda x, y: np.minimum(x, y)

    @overload(maths.where)
    def where(condition, x, y):
        if scalars(condition, x, y):
            return lambda condition, x, y: x if condition else y
        return lambda condition, x, y: np.where(condition, x, y)

    @overload(np.clip)  # numba's own takes arrays alone
    def clip(a, a_min, a_max):
        if scalars(a, a_min, a_max):
            return lambda a, a_min, a_max: np.minimum(np.maximum(a, a_min), a_max)
        return None

    @intrinsic
    def lock(context, array):
        def same(context, builder, signature, values):
            context.nrt.incref(builder, signature.args[0], values[0])
            return values[0]

        return array.copy(readonly=True)(array), same

    @overload(read_only)
    def unwritable(u):
        return lambda u: lock(u)  # type: ignore[call-arg]

    stages = blending.register()
    return frozenset([*ELEMENTARY, maths.maximum, maths.minimum, maths.where, read_only, *stages])
