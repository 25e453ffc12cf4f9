"""From a request to a compiled kernel, kept for the life of the process and on disk between processes."""

import functools
import textwrap
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from odelab.engines.compiled import NotCompilable, explained
from odelab.engines.numba import cache
from odelab.engines.numba.captured import Watch
from odelab.engines.numba.module import LLVM_OPTION, Module, functions_of, module_for
from odelab.engines.numba.request import Request
from odelab.problem import IN_PLACE

kept: weakref.WeakKeyDictionary[Callable, dict[tuple, Any]] = weakref.WeakKeyDictionary()


class Kernel(NamedTuple):
    """The compiled functions of a kernel's module, and what they captured; `made_for` keeps identities alive."""

    functions: dict[str, Any]
    watch: Watch
    made_for: tuple


def kernel(request: Request) -> Kernel:
    """The kernel of a request; functions that cannot be compiled raise `NotCompilable`, each time."""
    known = at_hand(request)
    if isinstance(known, NotCompilable):
        raise NotCompilable(*known.args)
    if known is None:
        try:
            known = compile_kernel(request)
        except NotCompilable as refused:
            keep(request, NotCompilable(*refused.args))  # without what it came from, which holds the compiler's frames
            raise
        keep(request, known)
    return known


def keep(request: Request, known: Kernel | NotCompilable):
    kept.setdefault(request.rhs, {})[key(request)] = known


def at_hand(request: Request) -> Kernel | NotCompilable | None:
    """What is known of a request without compiling or loading anything."""
    known = kept.get(request.rhs, {}).get(key(request))
    if isinstance(known, Kernel) and not known.watch.unchanged():
        return None
    return known


def key(request: Request) -> tuple:
    """The request without its right-hand side; method and law by identity, for a law's Fractions are slow to hash."""
    layout, _, form, n, parameters, method, law, *options = request
    return layout, form, n, parameters, id(method), id(law), *options


def compile_kernel(request: Request) -> Kernel:
    module = module_for(request)
    try:
        return Kernel(loaded(module), module.watch, (request.method, request.law))
    except Exception as reason:  # numba's own errors, and whatever else escapes its compiler
        raise NotCompilable(blame(request, reason)) from reason


@functools.cache
def vectorise_many_rows():
    """Let LLVM turn a loop over lanes into vector code whatever the number of arrays in it.

    The rows of a lane kernel are arrays of their own, and LLVM gives up above 128 checks that no two of them overlap:
    DOPRI5 with 8 components needs more. With them HIRES takes 14 ns a step instead of 71. Once per process, as LLVM
    asks; the new limit keeps the checks of the largest systems from outgrowing the loop.
    """
    import llvmlite.binding

    llvmlite.binding.set_option("", LLVM_OPTION)


def loaded(module: Module) -> dict[str, Any]:
    vectorise_many_rows()
    if not module.given:
        return cache.load(module.text, module.label)
    from odelab.engines.numba.jit import OPTIONS, jit

    options = {**OPTIONS, "fastmath": {"contract"}}
    compiled = {name: jit(function, options=options) for name, function in module.given.items()}
    return cache.in_memory(module.text, module.label, **compiled)


def blame(request: Request, reason) -> str:
    """numba's complaint about the function of the user's that it cannot compile, with the line in their own file."""
    from odelab.engines.numba.jit import jit

    for name, function in functions_of(request).items():
        try:
            jit(function).compile(signature(request, fills=name == "rhs" and request.form == IN_PLACE))
        except Exception as plainer:
            return explained(function, plainer)
    complaint = textwrap.shorten(f"{type(reason).__name__}: {reason}", 500)
    return (
        f"`engine='compiled'` has no kernel for {request.about}: your functions can be compiled, but not the kernel "
        f"around them ({complaint}). Use engine='python'."
    )


def signature(request: Request, fills: bool) -> tuple:
    """The types of (t, u, params) in a kernel, and of `out` for a function that fills it."""
    from numba import types

    array, number = types.float64[::1], types.float64
    u = array if request.form == IN_PLACE else types.UniTuple(number, request.n)
    return (number, u, types.UniTuple(number, request.parameters), *([array] if fills else []))
