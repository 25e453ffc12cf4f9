"""Where a kernel writes its accepted steps: one array that grows, so that nothing is put together at the end.

A row per step end: time, step size, error ratio, SAI, h rho, state; row 0 is the start. One array, because a run that
has to ask the system for fresh pages is a fifth slower, and the C library keeps a freed block for the next one.
"""

import contextlib
import functools

import numpy as np

from odelab.engine import Record

TIME, SIZE, ERROR, SAI, RHO, STATE = range(6)  # columns
FIRST_NUMBERS, FIRST_ROWS = 1 << 14, 1024  # of a short run
LARGEST_GROWTH = 64  # times


@functools.cache
def keep_freed_blocks():
    """glibc returns blocks larger than the largest it has seen freed to the system at once: show it one of 16 MB."""
    np.empty(1 << 21)


class Rows:
    """The steps of one run from `t0` towards `t1`."""

    def __init__(self, t0: float, t1: float, u0):
        self.t0, self.t1 = t0, t1
        self.width = STATE + len(u0)
        self.steps = 0
        self.array = np.empty((max(16, min(FIRST_ROWS, FIRST_NUMBERS // self.width)), self.width))
        self.array[0, TIME] = t0
        self.array[0, STATE:] = u0

    def room(self, t: float) -> int:
        """Free rows; where there are none, as many more as the rest of the way from `t` seems to need."""
        rows = self.steps + 1
        if rows == len(self.array):
            covered = max((t - self.t0) / (self.t1 - self.t0), 1e-9)
            wanted = int(min(1.25 / covered, LARGEST_GROWTH) * rows) + rows // 2
            keep_freed_blocks()
            larger = np.empty((wanted, self.width))
            larger[:rows] = self.array
            self.array = larger
        return len(self.array) - rows

    def record(self, has_rho: bool) -> Record:
        """The columns as arrays; what was not used goes back, unless somebody still looks at it."""
        with contextlib.suppress(ValueError):
            self.array.resize((self.steps + 1, self.width))
        rows = self.array[: self.steps + 1]
        steps = rows[1:]
        rho = steps[:, RHO] if has_rho else None
        return Record(rows[:, TIME], rows[:, STATE:], steps[:, SIZE], steps[:, ERROR], None, steps[:, SAI], rho)
