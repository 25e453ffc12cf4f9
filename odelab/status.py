"""How a run ends, as numbers that kernels write and words that users read."""

import enum


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

    TIME_SPENT = 10  # the run has taken as many seconds as it may
    NO_CONSISTENT_START = 11  # no state near the first one satisfies the algebraic equations, of a run or of a piece

    @property
    def word(self) -> str:
        """What a Trajectory or an Ensemble calls it."""
        words = {
            "ATTEMPTS_SPENT": "max_steps",
            "REACHED": "ok",
            "STEP_LOST": "step_too_small",
            "TIME_SPENT": "time_limit",
        }
        return words.get(self.name, self.name.lower())
