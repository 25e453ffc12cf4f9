"""numba for people's functions: what a function calls or closes over is compiled with it."""

import types
from typing import Any

from odelab.engines.numba import overloads

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def jit(function, compiled=None, options=OPTIONS):
    """`function` as a numba function; plain helpers among its globals and closure are compiled too, recursively."""
    from numba import njit
    from numba.core.registry import CPUDispatcher

    known = overloads.register()
    compiled = {} if compiled is None else compiled
    if isinstance(function, CPUDispatcher) or not isinstance(function, types.FunctionType) or function in known:
        return function
    if function in compiled:
        return compiled[function]
    code = function.__code__
    globals_ = dict(function.__globals__)
    for name in called_names(code):
        value = globals_.get(name)
        if isinstance(value, types.FunctionType) and value is not function:
            globals_[name] = jit(value, compiled, options)
    closure = None
    if function.__closure__ is not None:
        closure = tuple(types.CellType(jit(cell.cell_contents, compiled, options)) for cell in function.__closure__)
    clone = types.FunctionType(code, globals_, function.__name__, function.__defaults__, closure)
    clone.__kwdefaults__ = function.__kwdefaults__
    clone.__module__ = function.__module__
    compiled[function] = njit(**options)(clone)
    return compiled[function]


def called_names(code):
    """Names a code object and the functions inside it look up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from called_names(constant)
