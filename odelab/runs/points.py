"""Runs that keep only the states at requested times, to save memory with large systems.

The states at these times, and SAI and h rho of every step, are computed during the run, while the states exist.
"""

import numpy as np

from odelab.runs import h_rho as stability
from odelab.runs.dense import Dense
from odelab.runs.interior import SAMPLED, doubtful_time
from odelab.stiffness import indices as stiffness


class Points:
    """Collects the states of a run at `t_eval` alone, or only its end."""

    def __init__(self, engine, t_eval, by="dense"):
        self.engine, self.problem, self.by = engine, engine.problem, by
        self.doubt: float | None = None  # a time at which the state is doubtful
        self.looked = 0  # steps that were looked at for doubts
        self.direction = np.sign(self.problem.t_span[1] - self.problem.t_span[0])
        self.end_alone = t_eval is None
        self.times = np.zeros(0) if t_eval is None else t_eval
        self.met = 0
        self.found = [np.zeros((0, self.problem.size))]
        self.start = np.array(self.problem.u0)
        if hasattr(engine, "look_at_stages"):
            engine.look_at_stages()

    def begin(self, start):
        """Begin with the state from which the run starts."""
        self.start = start
        self.visit(np.array(self.problem.t_span[:1]), start[None], np.zeros(0), np.zeros(0))

    def look(self, chunk, state):
        """Find the requested points within a chunk that began at `state`; returns the chunk without its states."""
        if chunk.steps:
            t, u, h = chunk.at_hand(state)
            self.visit(t, u, h, chunk.took)
            if chunk.slope is not None:  # without slopes, the engine has computed SAI itself
                chunk = self.measure(chunk, t, u, h)
        return chunk.without_states()

    def measure(self, chunk, t, u, h):
        h_rho = chunk.h_rho
        if h_rho is None and self.engine.method.twin_stages is not None:
            h_rho = stability.h_rho(self.problem, self.engine.method, t[:-1], u[:-1], h)
        return chunk._replace(sai=stiffness.relative_slope(u[:-1], chunk.slope), h_rho=h_rho)

    def visit(self, t, u, h, took=None):
        """Find the states at the requested times that lie on some consecutive steps."""
        ahead = self.times[self.met :]
        wanted = ahead[(ahead - t[-1]) * self.direction <= 0]
        if wanted.size:
            dense = Dense(self.problem, self.engine.method, t, u, h, self.engine.project, took)
            self.found.append(dense.at(wanted, self.by))
            self.met += wanted.size
            if self.by == "dense" and self.doubt is None and self.looked < SAMPLED:
                self.looked += 1
                self.doubt = doubtful_time(dense, self.engine.controller, wanted)
        if hasattr(self.engine, "until"):  # an engine that stores only one step must stop after each point
            self.engine.until = float(self.times[self.met]) if self.met < self.times.size else self.problem.t_span[1]

    def points(self, t, u):
        """(times, states) to report of a run that has come to `u` at time `t`."""
        if self.end_alone:
            return np.array([self.problem.t_span[0], t]), np.stack([self.start, u])
        return self.times[: self.met], np.concatenate(self.found)
