"""The steps of a run: those of one chunk, as an engine hands it to the driver, and those of the whole run."""

from typing import NamedTuple

import numpy as np

from odelab.core import State


class Chunk(NamedTuple):
    """What one call of an engine achieved; the arrays have an entry for each accepted step, of which there are m.

    status          how it ended, an `odelab.engines.Status`
    state           the state that the run has come to
    t, h            (m,), the times at which the steps began, and their sizes
    u               (m, n), the states at which they ended; of a compiled run that keeps no states the last two alone
    slope           (m, n), their effective slopes; None where the engine does not keep them
    error           (m,), their error ratios
    rejected        how many attempts were rejected
    evaluations     how often the right-hand side was evaluated
    word            the message of an error in the right-hand side
    sai, h_rho      (m,), where they are known already
    jacobians, factorisations   how many there were, of a linearly implicit method
    took            (m,), of a run by two methods whether the second one took the step
    """

    status: int
    state: State
    t: np.ndarray
    h: np.ndarray
    u: np.ndarray
    slope: np.ndarray | None
    error: np.ndarray
    rejected: int
    evaluations: int
    word: str = ""
    sai: np.ndarray | None = None
    h_rho: np.ndarray | None = None
    jacobians: int = 0
    factorisations: int = 0
    took: np.ndarray | None = None

    @property
    def steps(self) -> int:
        return len(self.t)

    @property
    def knots(self) -> np.ndarray:
        """Where the accepted steps ended."""
        return np.append(self.t[1:], self.state.t) if len(self.t) else self.t

    def at_hand(self, state: State):
        """(times, states, sizes) of consecutive steps whose states are known, of a chunk that began at `state`."""
        if len(self.u) < self.steps:
            return self.knots[-2:], self.u, self.h[-1:]
        return np.append(self.t[0], self.knots), np.concatenate([np.asarray(state.u)[None], self.u]), self.h

    def without_states(self) -> "Chunk":
        return self._replace(u=self.u[:0], slope=None)


class Record(NamedTuple):
    """The accepted steps of a whole run: their ends t (m+1,), u (m+1, n) where kept, and what is known of each step."""

    t: np.ndarray
    u: np.ndarray | None
    h: np.ndarray
    error: np.ndarray
    slope: np.ndarray | None = None
    sai: np.ndarray | None = None
    h_rho: np.ndarray | None = None
    took: np.ndarray | None = None
