"""How a single run gets on: tells of its progress as it goes, and ends it once it has taken too long."""

import math
import time
from collections.abc import Callable

from odelab.engines.lanes.progress import Line, nothing

SLICE, MOST = 0.05, 1 << 30  # seconds between two looks at the clock, and attempts at most


class Pace:
    """The clock of one run, which begins when it is made.

    t_span        the span of the whole run
    report        called with (time covered, length of the span) now and then, and at the end
    time_limit    seconds after which the run is to end; infinite for none

    `attempts` is how many attempts to make before `pass_time` is called again: about as many as take SLICE seconds.
    """

    def __init__(self, t_span, report: Callable[[float, float], None], time_limit: float):
        self.t0, self.span = t_span[0], abs(t_span[1] - t_span[0])
        self.report, self.time_limit = report, time_limit
        self.began = self.last = time.monotonic()
        self.attempts = 1

    @property
    def is_over(self) -> bool:
        """Has the run taken longer than it may?"""
        return time.monotonic() - self.began > self.time_limit

    def pass_time(self, t: float) -> bool:
        """Report that the run has come to t; True where its time is over."""
        now = time.monotonic()
        self.attempts = min(max(1, int(self.attempts * min(4.0, SLICE / max(now - self.last, 1e-6)))), MOST)
        self.last = now
        self.report(min(abs(t - self.t0), self.span), self.span)
        return self.is_over


def pace_of(t_span, progress, time_limit) -> Pace | None:
    """The pace of a run as the arguments of `odelab.solve` ask for it; None where they ask for nothing."""
    if progress is None and time_limit is None:
        return None
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(f"`progress` must be True, False, None or a function (done, total), got {progress!r}.")
    limit = math.inf if time_limit is None else time_limit
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0.0:
        raise ValueError(f"`time_limit` must be a positive number of seconds, got {time_limit!r}.")
    if not progress and time_limit is None:
        return None
    return Pace(t_span, share_on_a_line() if progress is True else progress or nothing, limit)


def share_on_a_line() -> Callable[[float, float], None]:
    """The function that shows how much of the span is covered on a line of the terminal."""
    line = Line(always=True, unit="% of the span")
    return lambda done, total: line(int(100.0 * done / total), 100)
