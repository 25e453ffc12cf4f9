"""Compiles the kernel of a request, and keeps it: in memory for this process, and on disk for later ones."""

import textwrap
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from odelab.engines.compiled import NotCompilable, explanation_of
from odelab.engines.numba import cache
from odelab.engines.numba.fingerprint import Unseen, Watch
from odelab.engines.numba.module import Module, module_for
from odelab.engines.numba.request import Request
from odelab.engines.python import on_a_copy
from odelab.right_hand_side import COMPONENT, IN_PLACE

# How many compiled modules are kept under their names. One of them also serves another function with the same
# fingerprint, such as a closure that was made again, or a function whose captured value was changed and changed back.
IN_PROCESS = 64

kept: weakref.WeakKeyDictionary[Callable, dict[tuple, "Kernel"]] = weakref.WeakKeyDictionary()
by_name: OrderedDict[str, dict[str, Any]] = OrderedDict()


class Kernel(NamedTuple):
    """What is known of a request: the names of its compiled module, or why there is none.

    functions   the names of the module; empty where it cannot be compiled
    watch       checks whether the values that the user's functions use are still those they were compiled with
    made_for    the method and the law, kept alive because kernels are found by their identity
    refusal     the message where it cannot be compiled
    """

    functions: dict[str, Any]
    watch: Watch
    made_for: tuple
    refusal: str = ""


def kernel(request: Request) -> Kernel:
    """The kernel of a request; functions that cannot be compiled raise `NotCompilable`, each time."""
    known = at_hand(request)
    if known is None:
        known = compile_kernel(request)
    if known.refusal:
        raise NotCompilable(known.refusal)
    return known


def at_hand(request: Request) -> Kernel | None:
    """The kernel of a request if it is in memory and still valid, else None; nothing is compiled or loaded."""
    known = kept.get(request.rhs, {}).get(key(request))
    return known if known is not None and known.watch.is_unchanged() else None


def key(request: Request) -> tuple:
    """The request without its right-hand side, to look a kernel up by.

    Method and law are replaced by their identities, because a law's Fractions are slow to hash.
    """
    layout, _, form, n, parameters, method, law, *options = request
    return layout, form, n, parameters, id(method), id(law), *options


def compile_kernel(request: Request) -> Kernel:
    try:
        module = module_for(request)
    except Unseen as reason:
        raise NotCompilable(f"`engine='compiled'` cannot compile {request.rhs.__name__}: {reason}.") from reason
    known = Kernel({}, module.taken.watch, (request.method, request.law))
    kernels = kept.setdefault(request.rhs, {})
    try:
        known = known._replace(functions=load_module(module))
    except Exception as reason:  # numba's own errors, and whatever else escapes its compiler
        # Only the message is stored, because the exception would keep the compiler's frames in memory.
        kernels[key(request)] = known._replace(refusal=blame(request, reason))
        raise NotCompilable(kernels[key(request)].refusal) from reason
    kernels[key(request)] = known
    return known


def load_module(module: Module) -> dict[str, Any]:
    """The names of the compiled module, made once for all functions with the same fingerprint."""
    if module.name not in by_name:
        cache.names_are_apart()  # before any function of the kernel gets its name
        given = compiled_functions(module.given, module.form, module.inline)
        if module.taken.lasting:
            by_name[module.name] = cache.load(module.text, module.name, given)
        else:
            by_name[module.name] = cache.in_memory(module.text, module.name, given)
        if len(by_name) > IN_PROCESS:
            by_name.popitem(last=False)
    by_name.move_to_end(module.name)
    return by_name[module.name]


def compiled_functions(functions: dict[str, Callable], form: str, inline: bool) -> dict[str, Any]:
    """The user's functions for numba to compile as soon as a kernel calls them, with their indices checked.

    inline   a loop over lanes becomes vector code only if the right-hand side is a part of it
    """
    from odelab.engines.numba.jit import CHECKED, jit, protect

    inlined = {**CHECKED, "forceinline": True}
    options = inlined if inline else CHECKED
    twins: dict = {}
    compiled = {}
    for name, function in functions.items():
        tuples = form == COMPONENT and name in ("rhs", "dual_rhs")
        # The right-hand side for dual numbers is always inlined; a call would pass hundreds of derivatives by memory.
        how: tuple = ({}, inlined) if name == "dual_rhs" else (twins, options)
        compiled[name] = jit(function, *how, returns_tuple=tuples, recompile=True)
        if form != COMPONENT and name == "rhs":
            compiled[name] = protect(compiled[name], fills=form == IN_PLACE)
        if name == "project":
            compiled[name] = jit(on_a_copy(compiled[name]))
    return compiled


def blame(request: Request, reason) -> str:
    """numba's complaint about the function of the user's that it cannot compile, with the line in their own file."""
    functions = request.functions
    for name, function in compiled_functions(functions, request.form, inline=False).items():
        if name not in ("rhs", "spectral_radius_of", "dual_rhs"):  # the others take other arguments
            continue
        try:
            if name == "dual_rhs":
                differentiate(function, request)
            else:
                function.compile(signature(request, fills=name == "rhs" and request.form == IN_PLACE))
        except Exception as plainer:
            said = explanation_of(functions[name], plainer)
            return said.replace("cannot compile", "cannot differentiate") if name == "dual_rhs" else said
    complaint = textwrap.shorten(f"{type(reason).__name__}: {reason}", 500)
    return (
        f"`engine='compiled'` has no kernel for {request.about}: your functions can be compiled, but not the kernel "
        f"around them ({complaint}). Use engine='python'."
    )


def differentiate(function, request: Request):
    """Compile a right-hand side for dual numbers; numba's own error where it cannot be."""
    from numba import types

    from odelab.engines.rosenbrock import dual_arrays, dual_functions, duals

    if request.form == IN_PLACE:
        function.compile(dual_arrays.kinds_of_arguments(request.parameters))
        return
    dual_functions.register()
    kinds = [duals.dual_type()((i,)) for i in range(request.n + 1)]
    params = types.UniTuple(types.float64, request.parameters)
    function.compile((kinds[-1], types.Tuple(kinds[:-1]), params))


def signature(request: Request, fills: bool) -> tuple:
    """The types of (t, u, params) in a kernel, and of `out` for a function that fills it."""
    from numba import types

    array, number = types.float64[::1], types.float64
    u = array if request.form != COMPONENT else types.UniTuple(number, request.n)
    return (number, u, types.UniTuple(number, request.parameters), *([array] if fills else []))
