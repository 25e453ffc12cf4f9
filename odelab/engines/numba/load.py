"""Compiles the kernel of a request, and keeps it: in memory for this process, and on disk for later ones."""

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from odelab.engines.not_compilable import ASKED, NotCompilable
from odelab.engines.numba import cache
from odelab.engines.numba.fingerprint import Unseen, Watch
from odelab.engines.numba.jit import compiled_functions
from odelab.engines.numba.module import Module, module_for
from odelab.engines.numba.refusals import blame
from odelab.engines.numba.request import Request
from odelab.right_hand_side import name_of

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
        raise NotCompilable(f"{ASKED} cannot compile {name_of(request.rhs)}: {reason}.") from reason
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
        given = compiled_functions(module.given, module.form)
        if module.taken.lasting:
            by_name[module.name] = cache.load(module.text, module.name, given)
        else:
            by_name[module.name] = cache.in_memory(module.text, module.name, given)
        if len(by_name) > IN_PROCESS:
            by_name.popitem(last=False)
    by_name.move_to_end(module.name)
    return by_name[module.name]
