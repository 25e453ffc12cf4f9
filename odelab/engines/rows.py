"""The arrays into which a kernel writes its accepted steps; they grow during a run.

Row 0 is the start. Every further row describes the end of a step: time, step size, error ratio, SAI, h rho and, for
a small system, the state. All columns are in one array, because the C library reuses a freed block for the next run; a
run that has to ask the system for new memory pages is a fifth slower. The states of a large system are in a second
array; where states are not to be kept, this array has two rows, which are used in turn.
"""

import contextlib
import functools

import numpy as np

from odelab.engines.steps import Chunk, Record
from odelab.kernels.machine import aligned_rows

TIME, SIZE, ERROR, SAI, RHO, STATE = range(6)  # columns
FIRST_NUMBERS, FIRST_ROWS = 1 << 14, 1024  # the size of the array at the start of a run, at most
LARGEST_GROWTH = 64  # the array becomes at most so many times larger at once


@functools.cache
def keep_freed_blocks():
    """Free one block of 16 MB, so that the C library (glibc) keeps smaller blocks for later use.

    glibc returns a freed block to the system at once if it is larger than every block that was freed before.
    """
    np.empty(1 << 21)


class Rows:
    """The steps of one run from `t0` towards `t1`, states included; of a run by two methods also who took them."""

    def __init__(self, t0: float, t1: float, u0, turns: bool = False):
        self.t0, self.t1 = t0, t1
        self.behind, self.turns = STATE + len(u0), turns
        self.width = self.behind + turns
        self.steps = 0
        self.array = np.empty((max(16, min(FIRST_ROWS, FIRST_NUMBERS // self.width)), self.width))
        self.array[0, TIME] = t0
        self.array[0, STATE : self.behind] = u0

    def arrays(self) -> tuple[np.ndarray, ...]:
        """What a kernel writes into."""
        return (self.array,)

    def room(self, t: float, attempts: int) -> int:
        """The number of free rows; if they are few, the array first grows by what the rest of the run seems to need."""
        if self.are_few(self.array, attempts):
            self.grow(self.rows_until_end(t))
        return len(self.array) - self.steps - 1

    def are_few(self, rows, attempts: int) -> bool:
        """Are there fewer free rows than attempts, and fewer than rows already filled?"""
        return len(rows) - self.steps - 1 < max(1, min(attempts, self.steps))

    def rows_until_end(self, t: float) -> int:
        """How many rows the run will need in all, judged by how far it came, and some more to spare."""
        rows = self.steps + 1
        covered = max((t - self.t0) / (self.t1 - self.t0), 1e-9)
        return int(min(1.25 / covered, LARGEST_GROWTH) * rows) + rows // 2

    def grow(self, rows: int):
        keep_freed_blocks()
        larger = np.empty((rows, self.width))
        larger[: self.steps + 1] = self.array[: self.steps + 1]
        self.array = larger

    def add(self, chunk, state):
        """Append the steps that another engine has taken from `state`; the caller has made sure that there is room."""
        if chunk.steps:
            rows = self.array[self.steps + 1 : self.steps + 1 + chunk.steps]
            before = np.concatenate([state.u[None], chunk.u[:-1]])
            rows[:, TIME], rows[:, SIZE], rows[:, ERROR] = chunk.knots, chunk.h, chunk.error
            rows[:, SAI] = np.linalg.norm(chunk.slope, axis=1) / np.linalg.norm(before, axis=1)
            rows[:, RHO] = np.nan
            if self.turns:
                rows[:, -1] = chunk.took
            self.steps += chunk.steps
            self.keep(chunk.u)

    def keep(self, states):
        """Write the states of the last steps."""
        self.array[self.steps + 1 - len(states) : self.steps + 1, STATE : self.behind] = states

    def restore(self, u):
        """Write the present state again, where an attempt that raised an error may have used its row."""

    def states(self, first: int, last: int) -> np.ndarray:
        """The states of rows first ... last - 1."""
        return self.array[first:last, STATE : self.behind]

    def chunk(self, first: int, status, state, rejected, evaluations, jacobians=0, factorisations=0) -> Chunk:
        """The steps behind row `first` as a chunk, whose arrays are views; of an array of two rows the last states."""
        steps = self.array[first + 1 : self.steps + 1]
        known = first + 1 if self.keeps_states else max(first + 1, self.steps - 1)
        return Chunk(
            status,
            state,
            self.array[first : self.steps, TIME],
            steps[:, SIZE],
            self.states(known, self.steps + 1),
            None,
            steps[:, ERROR],
            rejected,
            evaluations,
            sai=steps[:, SAI],
            h_rho=steps[:, RHO] if self.tells_h_rho else None,
            jacobians=jacobians,
            factorisations=factorisations,
            took=steps[:, -1] if self.turns else None,
        )

    def trim(self):
        """Shrink the array to the rows in use, unless a view of it still exists."""
        try:
            self.array.resize((self.steps + 1, self.width))
        except ValueError:
            return

    def record(self, has_rho: bool) -> Record:
        """The columns as arrays."""
        self.trim()
        rows = self.array[: self.steps + 1]
        steps = rows[1:]
        rho = steps[:, RHO] if has_rho else None
        states = self.states(0, self.steps + 1) if self.keeps_states else None
        took = steps[:, -1] if self.turns else None
        return Record(rows[:, TIME], states, steps[:, SIZE], steps[:, ERROR], None, steps[:, SAI], rho, took)

    keeps_states = True
    tells_h_rho = False  # in chunks


class LargeRows(Rows):
    """The same with a second array for the states: one row per step, or two rows that are used in turn."""

    def __init__(self, t0: float, t1: float, u0, keeps_states: bool):
        super().__init__(t0, t1, u0[:0])
        self.keeps_states = keeps_states
        count = max(16, min(len(self.array), FIRST_NUMBERS // len(u0))) if keeps_states else 2
        self.state_rows = aligned_rows(count, len(u0)) if not keeps_states else np.empty((count, len(u0)))
        self.state_rows[0] = u0

    def arrays(self):
        return self.array, self.state_rows

    def room(self, t: float, attempts: int) -> int:
        free = super().room(t, attempts)
        if not self.keeps_states:
            return free
        if self.are_few(self.state_rows, attempts):
            larger = np.empty((self.rows_until_end(t), self.state_rows.shape[1]))
            larger[: self.steps + 1] = self.state_rows[: self.steps + 1]
            self.state_rows = larger
        return min(free, len(self.state_rows) - self.steps - 1)

    def restore(self, u):
        self.state_rows[self.steps % len(self.state_rows)] = u

    def states(self, first: int, last: int) -> np.ndarray:
        if self.keeps_states:
            return self.state_rows[first:last]
        return self.state_rows[np.arange(first, last) % 2]  # only the last two states still exist

    def keep(self, states):
        for i in range(max(0, len(states) - len(self.state_rows)), len(states)):
            self.state_rows[(self.steps + 1 - len(states) + i) % len(self.state_rows)] = states[i]

    def trim(self):
        super().trim()
        if self.keeps_states:
            with contextlib.suppress(ValueError):
                self.state_rows.resize((self.steps + 1, self.state_rows.shape[1]))
