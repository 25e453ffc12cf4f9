"""The kernel of a request, made once: kept in memory for this process, and its machine code on disk for later ones."""

import hashlib
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from odelab.engines.not_compilable import ASKED, NotCompilable
from odelab.engines.numba import cache
from odelab.engines.numba.fingerprint import Fingerprint, Unseen, fingerprint
from odelab.engines.numba.one_source import kernel_of
from odelab.engines.numba.request import Request
from odelab.functions.watch import Watch
from odelab.right_hand_side import name_of

# How many kernels are kept under their names. One of them also serves another function with the same fingerprint, such
# as a closure that was made again, or a function whose captured value was changed and changed back.
IN_PROCESS = 64

kept: weakref.WeakKeyDictionary[Callable, dict[tuple, "Kernel"]] = weakref.WeakKeyDictionary()
by_name: OrderedDict[str, Any] = OrderedDict()


class Kernel(NamedTuple):
    """A compiled function, and what tells whether the values that it was compiled with are still those used."""

    advance: Any
    watch: Watch


def kernel(request: Request):
    """The function that numba compiles for a request; raises `NotCompilable` where none can be trusted."""
    kernels = kept.setdefault(request.rhs, {})
    known = kernels.get(request[1:])
    if known is None or not known.watch.is_unchanged():
        try:
            taken = fingerprint(*request.functions.values())
        except Unseen as reason:
            raise NotCompilable(f"{ASKED} cannot compile {name_of(request.rhs)}: {reason}.") from reason
        known = kernels[request[1:]] = Kernel(named_kernel(request, taken), taken.watch)
    return known.advance


def named_kernel(request: Request, taken: Fingerprint):
    """The function of the name that a request has, made once for all functions with the same fingerprint."""
    name = name_of_kernel(request, taken)
    if name not in by_name:
        apart = cache.names_are_apart()  # before any function of the kernel gets its name
        by_name[name] = kernel_of(request)
        if apart and taken.lasting:
            by_name[name]._cache = cache.OnDisk(name)
        if len(by_name) > IN_PROCESS:
            by_name.popitem(last=False)
    by_name.move_to_end(name)
    return by_name[name]


def name_of_kernel(request: Request, taken: Fingerprint) -> str:
    """A name that is equal for equal machine code."""
    digest = hashlib.sha256(repr((request.words, taken.digest, cache.environment())).encode()).hexdigest()[:24]
    label = name_of(request.rhs)
    return f"{label if label.isidentifier() else 'rhs'}_{digest}"
