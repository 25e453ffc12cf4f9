"""The engines that run a problem (plain Python, compiled kernels, SciPy's solvers), and their driver.

Text of kernels is written in `numba/`, ensembles run in `lanes/`; the results of a run are in `odelab.runs`."""

import enum
from typing import Any, Protocol


class Status(enum.IntEnum):
    """How a run, or a part of one, ended. The first four are what `odelab.core.integrate` returns."""

    ATTEMPTS_SPENT = 0
    REACHED = 1  # the end of the span
    STEP_LOST = 2  # the step fell below the spacing of floating-point numbers near t
    NOT_FINITE = 3  # the controller's judge gave up: the new state was not finite
    INTERRUPTED = 4  # by Ctrl-C
    WRONG_SHAPE = 5  # the right-hand side returned something that is not one real slope per component
    EVENT = 6  # a terminal event ended the run
    BLOW_UP = 7  # `odelab.runs.diagnosis` found that a lost step, or a state that is not finite, was due to a blow-up
    SINGULAR = 8  # factors without pivoting have failed; never the end of a run, which goes on with pivoting
    RAISED = 9  # the right-hand side raises an error in the next attempt, which plain Python makes to show it

    @property
    def word(self) -> str:
        """What a Trajectory or an Ensemble calls it."""
        return {"ATTEMPTS_SPENT": "max_steps", "REACHED": "ok", "STEP_LOST": "step_too_small"}.get(
            self.name, self.name.lower()
        )


class Engine(Protocol):
    """What `odelab.engines.driver.run` asks of an engine.

    problem, method, controller     what is run; the controller may be another than the user's, steered by the method
    project     the user's projection of states, or None
    name        what `Trajectory.engine` says
    derivatives what `Trajectory.derivatives` says: how the Jacobians of a linearly implicit method were found
    """

    problem: Any
    method: Any
    controller: Any
    project: Any
    name: str

    @property
    def derivatives(self) -> str: ...

    def begin(self) -> tuple[Any, int]:
        """The `odelab.core.State` a run starts from, and the evaluations this took."""
        ...

    def advance(self, state: Any, attempts: int) -> Any:
        """Go on from `state` for at most `attempts` attempts; returns a `Chunk` with the accepted steps and the state
        they led to."""
        ...
