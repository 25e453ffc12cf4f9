"""The progress line on the terminal, shown for ensembles that take more than two seconds and for runs on request."""

import sys
import time
from collections.abc import Callable

QUIET, BETWEEN = 2.0, 0.2  # seconds before the first line, and between two of them


class Line:
    """`1,250 of 10,000 runs, 3 s` on one line of the terminal, rewritten as it goes.

    always    whether it is shown from the start on, and of work that takes a moment, too
    unit      what is counted
    """

    def __init__(self, always: bool, unit: str = "runs"):
        self.unit = unit
        self.began = self.last = time.monotonic()
        self.quiet = 0.0 if always else QUIET
        self.shown = False

    def __call__(self, done: float, total: float):
        now = time.monotonic()
        if now - self.began < self.quiet or (now - self.last < BETWEEN and done < total):
            return
        if done == total and self.quiet and not self.shown:
            return
        self.last, self.shown = now, True
        end = "\n" if done == total else ""
        print(f"\r{done:,} of {total:,} {self.unit}, {now - self.began:.0f} s ", end=end, file=sys.stderr, flush=True)


def nothing(done: float, total: float):
    pass


def reporter(progress) -> Callable[[int, int], None]:
    """The function that is called with (runs done, runs in all), as the argument `progress` asks for it."""
    if progress is None:
        return Line(always=False) if sys.stderr.isatty() else nothing
    if callable(progress):
        return progress
    if not isinstance(progress, bool):
        raise TypeError(f"`progress` must be True, False, None or a function (done, total), got {progress!r}.")
    return Line(always=True) if progress else nothing
