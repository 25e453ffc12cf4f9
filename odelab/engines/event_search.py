"""The search for events on the steps of a compiled run by a kernel, and when such a kernel is compiled."""

import weakref
from collections.abc import Callable

import numpy as np

from odelab.engines.numba import load
from odelab.engines.numba.obstacles import is_plain, takes_tuples
from odelab.engines.numba.request import UNROLLED, Request, numbers
from odelab.engines.refusals import NotCompilable
from odelab.methods.tableau import Method
from odelab.right_hand_side import COMPONENT

# The work of a search with NumPy before its kernel is compiled, in steps: about half a second. Each search counts as
# PER_SEARCH steps at least, which is what its first step costs.
WORK, PER_SEARCH = 5_000_000, 4_000
ROWS = 64  # zeros in one call of the kernel, at first

done: weakref.WeakKeyDictionary[Callable, int] = weakref.WeakKeyDictionary()  # the work for an event's function


class Searches:
    """Makes the compiled searches for the events of a run.

    at_once    compile a search when it is first wanted, and not after some work with NumPy only
    """

    def __init__(self, problem, method, project, at_once: bool):
        self.problem, self.method = problem, method
        self.at_once = at_once
        self.params = numbers(problem.params)
        self.suited = isinstance(method, Method) and problem.form == COMPONENT and problem.size <= UNROLLED
        self.suited = self.suited and project is None

    def of(self, function: Callable, steps: int) -> Callable | None:
        """The compiled search for zeros of a function on so many steps; None where NumPy is to search.

        It is called with times (m+1,), states (m+1, n), step sizes (m,) and the function's value at the start, and
        returns (t, directions, states) of the zeros it found, and the numbers of the steps of which it is not sure.
        """
        if self.params is None or not (self.suited and is_plain(function)):
            return None
        if takes_tuples(function, self.problem) is False:
            return None
        rhs, form, n = self.problem.rhs, self.problem.form, self.problem.size
        request = Request("events", rhs, form, n, len(self.params), self.method, None, event=function)
        known = load.at_hand(request)
        if known is None and not self.at_once:
            done[function] = done.get(function, 0) + max(steps, PER_SEARCH)
            if done[function] < WORK:
                return None
        try:
            kernel = load.kernel(request).functions["search"]
        except NotCompilable:
            return None

        def search(t, u, h, before):
            return found_by(kernel, self.params, t, u, h, before)

        return search


def found_by(kernel, params, t, u, h, before):
    """The zeros on the steps between the times `t`, by a kernel that is called until all steps have been searched."""
    places, unsure = np.array([0, 0, 0]), np.empty(len(h), dtype=np.int64)
    last, rows, found = np.array([before]), ROWS, []
    while places[0] < len(h):
        zeros = np.empty((rows, 2 + u.shape[1]))
        places[1] = 0
        kernel(t, u, h, params, last, places, zeros, unsure)
        found.append(zeros[: places[1]])
        rows *= 4
    zeros = found[0] if len(found) == 1 else np.concatenate(found)
    return zeros[:, 0], zeros[:, 1].astype(int), zeros[:, 2:], unsure[: places[2]]
