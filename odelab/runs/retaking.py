"""Steps of a run taken again, to end at other times: as exact as the ends of steps, where dense output may not be."""

from typing import Any

import numpy as np

from odelab.problem import array_form


class Retaken:
    """Takes the steps of a run again, in plain Python but where the run has a compiled step that solves its systems.

    dense    the run, as `odelab.runs.dense.Dense` has it
    taken    how many steps were taken so far
    """

    def __init__(self, dense):
        self.dense, self.rhs, self.taken = dense, array_form(dense.problem), 0
        self.steppers: dict[Any, Any] = {}
        self.prepared: tuple[int, Any] = (-1, None)  # the number of a step, and what was prepared for it

    def to(self, i: int, t: float) -> np.ndarray:
        """The state after a step from the beginning of step i to time t, by the method that took step i."""
        dense = self.dense
        self.taken += 1
        state = None if dense.step_again is None else dense.step_again(dense.t[i], dense.u[i], t - dense.t[i])
        if state is None or not np.isfinite(state).all():
            state = self.in_python(i, t)
        return state if dense.project is None else dense.project(state)

    def in_python(self, i: int, t: float) -> np.ndarray:
        """The same in plain Python, without the projection."""
        dense, params = self.dense, self.dense.problem.params
        method = dense.method.members[0 if dense.took is None else int(dense.took[i])]
        start, u = float(dense.t[i]), dense.u[i]
        with np.errstate(all="ignore"):
            if method not in self.steppers:
                self.steppers[method] = method.stepper(dense.problem, self.rhs)
            stepper = self.steppers[method]
            if self.prepared[0] != i:
                self.prepared = i, stepper.prepare(start, u, self.rhs(start, u, params), params)
            h = t - start
            return stepper.step(self.rhs, params, start, u, self.prepared[1], h, h)[0]

    def inside(self, i: int, theta: float) -> np.ndarray:
        """The state at a fraction of step i."""
        return self.to(i, float(self.dense.t[i] + theta * (self.dense.t[i + 1] - self.dense.t[i])))


def can_be_retaken(method) -> bool:
    """Does a step depend on nothing but where it begins and ends? Stabilised ones need their number of stages, too."""
    return not (method.adapts_stages or method.run_by_scipy)
