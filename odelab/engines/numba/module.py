"""The text of a kernel's module: the right-hand side, what it reaches, and the loop around it."""

import functools
import hashlib
import inspect
import platform
from collections.abc import Callable, Iterable
from importlib import metadata
from typing import NamedTuple

from odelab.engines.lanes import text as lanes
from odelab.engines.numba import large, single, stabilised
from odelab.engines.numba.captured import Watch, watch_all
from odelab.engines.numba.definition import Unreadable
from odelab.engines.numba.request import Request
from odelab.engines.numba.written import Written, bound_outside, written_together

HEADER = """
import math

import numpy as np
from numba import njit, types
from odelab.control import feedback as control, powers
from odelab.engines.numba import overloads

overloads.register()
CACHE = "__file__" in globals()  # a module in memory has no file to keep its machine code beside
EXACT = {"nogil": True, "error_model": "numpy", "fastmath": False}
OPTIONS = {**EXACT, "fastmath": {"contract"}}  # a * b + c as one operation; nothing else is loosened
LOOSE = {**EXACT, "fastmath": {"contract", "reassoc"}}  # sums over many components in any order
log2, exp2 = njit(**OPTIONS)(powers.log2), njit(**OPTIONS)(powers.exp2)
"""

NUMBERS, ROWS = "types.float64[::1]", "types.float64[:, ::1]"
WHOLE = "types.int64"
SINGLE_TYPES = {"counts": "types.int64[::1]", "attempts": WHOLE, **dict.fromkeys(("record", "states", "slopes"), ROWS)}
LANES_TYPES = {
    **{"queue": "types.int64[::1]", "sweeps": WHOLE, "share": "types.int64[::1]", "max_attempts": WHOLE},
    **dict.fromkeys(("starts", "params_in", "numbers", "ends", "maxima"), ROWS),
    **dict.fromkeys(("places", "counts"), "types.int64[:, ::1]"),
    **{"statuses": "types.int8[::1]", "points": "types.float64[:, :, ::1]"},
}


class Module(NamedTuple):
    """A kernel's source; `given` are its functions by name where their source could not be written down."""

    text: str
    label: str
    given: dict[str, Callable]
    watch: Watch


def module_for(request: Request) -> Module:
    """The module of a kernel, its right-hand side included where it can be written down."""
    watch, functions = Watch(), functions_of(request)
    definitions, text = layout(request)
    if request.layout != "stabilised":
        definitions = [proposal(request), *definitions]
    given: dict[str, Callable] = {}
    try:
        rhs, *others = written_together(functions, own_names(definitions, text), watch)
        origin = right_hand_side(rhs, inlined(request)) + aliases(functions, (rhs, *others))
    except Unreadable as reason:
        watch = Watch()
        for function in functions.values():
            watch_all(function, watch)
        given = functions
        origin = [f"# `rhs` is handed over: its source cannot be written down, {reason}."]
    parts = [
        f'"""A kernel of odelab: {request.about}.\n\nWritten for {environment()}.\n"""',
        HEADER.strip(),
        *origin,
        *definitions,
        "\n".join([decorator(request, text[0]), *text]),
    ]
    return Module("\n\n".join(parts) + "\n", request.rhs.__name__.strip("<>"), given, watch)


def own_names(definitions: list[str], text: list[str]) -> frozenset[str]:
    """The names a module gives a value at its top, the user's own apart; `text` is that of its last function."""
    return bound_outside("\n".join([HEADER, *definitions, f"{text[0]} pass"]))


def functions_of(request: Request) -> dict[str, Callable]:
    """What the module needs of the user's own: the right-hand side, and a spectral radius where it is a function."""
    radius = getattr(request.method, "spectral_radius", None)
    return {"rhs": request.rhs, **({"spectral_radius_of": radius} if callable(radius) else {})}


def right_hand_side(rhs: Written, options: str) -> list[str]:
    lines = list(rhs.imports)
    if rhs.imports or rhs.constants:
        lines = ["\n".join([*rhs.imports, *rhs.constants])]
    return lines + [f"@njit({options})\n{function}" for function in rhs.functions]


def inlined(request: Request) -> str:
    """A loop over lanes becomes vector code only if the right-hand side is a part of it."""
    return "forceinline=True, **OPTIONS" if request.layout == "lanes" else "**OPTIONS"


def aliases(functions: dict[str, Callable], written: Iterable[Written]) -> list[str]:
    """The user's functions under the names the rest of the module has for them."""
    together = zip(functions, written, strict=True)
    return [f"{alias} = {function.name}" for alias, function in together if function.name != alias]


def proposal(request: Request) -> str:
    """The step proposed is the one source's, compiled without contraction: times are to be the same in every engine."""
    return f"propose = njit(**EXACT)(control.{'landing_size' if request.law else 'counted_size'})"


def layout(request: Request) -> tuple[list[str], list[str]]:
    """(definitions, function) of a layout."""
    if request.layout == "lanes":
        definitions, function = lanes.lanes(request)
        return ["from odelab.engines.numba.atomic import fetch_add", lanes.CODES, *definitions], function
    if request.layout == "stabilised":
        return stabilised.advance(request)
    written_as = large if request.layout == "large" else single
    definitions, function = written_as.adaptive(request) if request.law else written_as.fixed(request)
    return [single.CODES, *definitions], function


def decorator(request: Request, definition: str) -> str:
    """The eager signature, from the names of the arguments."""
    types = LANES_TYPES if request.layout == "lanes" else SINGLE_TYPES
    if request.layout == "stabilised":
        types = {**types, **stabilised.types(request)}
    names = definition[definition.index("(") + 1 : definition.rindex(")")].split(", ")
    return f"@njit([({', '.join(types.get(name, NUMBERS) for name in names)})], cache=CACHE, **OPTIONS)"


LLVM_OPTION = "--vectorize-memory-check-threshold=2000"


@functools.cache
def environment() -> str:
    """What else machine code depends on: versions, the processor, and the parts of odelab compiled along."""
    import numba
    import numpy as np
    from llvmlite import binding

    from odelab import core, maths
    from odelab.control import controllers, powers
    from odelab.control import feedback as control
    from odelab.engines.numba import atomic, jit, overloads
    from odelab.engines.numba import rows as record
    from odelab.engines.numba import sink as blending
    from odelab.methods import chebyshev
    from odelab.methods import spectral_radius as radius
    from odelab.methods import stabilised as method

    one_source = (control, maths, powers, overloads, chebyshev, controllers, core, radius, method)
    sources = "".join(inspect.getsource(part) for part in (*one_source, blending, jit, stabilised, atomic, record))
    features = hashlib.sha256(binding.get_host_cpu_features().flatten().encode()).hexdigest()[:8]
    versions = {
        "odelab": f"{metadata.version('odelab')} ({hashlib.sha256(sources.encode()).hexdigest()[:8]})",
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "numba": numba.__version__,
        "llvmlite": metadata.version("llvmlite"),
        binding.get_host_cpu_name(): f"({features})",
        "LLVM": LLVM_OPTION,
    }
    return ", ".join(f"{name} {version}" for name, version in versions.items())
