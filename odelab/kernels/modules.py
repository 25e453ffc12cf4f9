"""Modules for kernels: which operations may be contracted, and who computes elementary functions."""

from odelab.graph.llvm import Module
from odelab.graph.trails import Untraceable
from odelab.kernels.closed import EXACT, FAST
from odelab.kernels.store import Traced

TIMES = ("t", "t0", "t1", "h", "count", "next_step", "given_step", "largest")  # the same bits in every engine
OF_LIBRARIES = ("erf", "erfc")  # functions that have no source of their own here


def module_of_run(exact: bool, *traced: Traced | None) -> Module:
    """The module of a single run.

    exact     whether it has the bits of plain Python, everywhere; otherwise a * b + c may be one operation, and C
              computes elementary functions
    traced    the user's functions
    """
    return exact_module(*traced) if exact else Module("contract", TIMES)


def module_of_lanes(exact: bool, *traced: Traced | None) -> Module:
    """The module of an ensemble, which has elementary functions of its own: they are computed in all lanes at once."""
    return exact_module(*traced) if exact else Module("contract", TIMES, FAST)


def module_of_large() -> Module:
    """The module of a large system, whose loops compute elementary functions of several components at once."""
    return Module("contract", TIMES, FAST)


def exact_module(*traced: Traced | None) -> Module:
    for one in traced:
        for operation in () if one is None else one.recorded.graph.ops:
            if operation[0] in OF_LIBRARIES:
                raise Untraceable(
                    f"calls {operation[0]}, whose last bits depend on a library", "take `exact=False`, the default"
                )
    return Module("", (), EXACT)
