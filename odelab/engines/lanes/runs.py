"""The runs of an ensemble: all that `odelab.ensemble` was asked for, once it is checked."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from odelab.control.controllers import Controller
from odelab.engines.lanes.rounds import Timetable
from odelab.problem import Problem


@dataclasses.dataclass(frozen=True, eq=False)
class Runs:
    """Runs of one problem.

    starts       (N, n), their initial states
    sets         (N, k), their parameters as the user gave them; None where all have those of the problem
    wanted       the times at which states are wanted, a row for all runs or a row for each; None for the ends alone
    by           "dense" or "step": how the states at wanted times are found
    timetable    the times of runs that have times of their own; None where all have those of the problem
    events       what is looked for in each run
    project      the user's projection of states, or None
    maxima       whether the largest SAI and h rho are kept
    max_steps    attempts of a run
    exact        whether every bit is that of plain Python
    """

    problem: Problem
    method: Any
    controller: Controller
    starts: Any = None
    sets: np.ndarray | None = None
    wanted: np.ndarray | None = None
    by: str = "dense"
    timetable: Timetable | None = None
    events: tuple = ()
    project: Callable | None = None
    maxima: bool = False
    max_steps: int = 1
    exact: bool = False

    def some(self, places) -> "Runs":
        """Some of the runs."""
        sets = None if self.sets is None else self.sets[places]
        times = None if self.timetable is None else self.timetable.of_runs(places)
        return dataclasses.replace(self, starts=self.starts[places], sets=sets, timetable=times)
