"""The path that a traced function follows through its branches, and the refusal to trace it."""

import contextvars
import os
import sys
import types
from collections.abc import Iterator

MOST_DECISIONS = 1_000_000  # of one path; a loop without end, whose condition never changes, is left then


PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
HOMES = tuple(os.path.join(os.path.dirname(os.path.dirname(__file__)), room) for room in ("graph", "functions"))


def is_users_code(file: str) -> bool:
    return not file.startswith(PACKAGE) and "site-packages" not in file and not file.startswith("<frozen")


def place_in_code(frame: types.FrameType | None) -> str:
    """The line of the user's code that leads to a frame of this package; empty where there is none."""
    while frame is not None and frame.f_code.co_name != "follow":
        if is_users_code(frame.f_code.co_filename):
            return f"line {frame.f_lineno} of {os.path.basename(frame.f_code.co_filename)}"
        frame = frame.f_back
    return ""


class Untraceable(Exception):
    """The function cannot be written as a graph.

    reason    what is in the way, in words that follow "the function": "asks for a random number"
    remedy    what the user can write instead
    place     where in the user's code it is, such as "line 3 of model.py"; found where a function is being followed

    The paths that are being followed remember the refusal, as a function may catch it (`except Exception`).
    """

    def __init__(self, reason: str, remedy: str = "", place: str = ""):
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy
        self.place = place or (place_in_code(sys._getframe(1)) if innermost.get() is not None else "")
        for trail in open_trails():
            trail.refusal = trail.refusal or self

    def __str__(self):
        return f"{self.place or 'the function'} {self.reason}{': ' if self.remedy else ''}{self.remedy}"


class TooLarge(Untraceable):
    """The graph has more operations than its limit."""


class Trail:
    """One path through the branches of a function.

    outcomes    of the first conditions that are met, in their order; those after them are taken as true
    seen        {number of a condition: its outcome}, in the order in which they were met
    outer       the trail of the function that calls this one
    """

    def __init__(self, outcomes: list[bool], outer: "Trail | None"):
        self.outcomes, self.outer = outcomes, outer
        self.seen: dict[int, bool] = {}
        self.refusal: Untraceable | None = None
        self.decisions = 0

    def decide(self, condition: int) -> bool:
        """The outcome of a condition on this path."""
        self.decisions += 1
        if self.decisions > MOST_DECISIONS:
            raise Untraceable("has a loop that does not end", "count its passes and leave it after so many")
        if condition not in self.seen:
            known = len(self.seen) < len(self.outcomes)
            self.seen[condition] = self.outcomes[len(self.seen)] if known else True
        return self.seen[condition]


innermost: contextvars.ContextVar[Trail | None] = contextvars.ContextVar("innermost", default=None)


def open_trails() -> Iterator[Trail]:
    """The trails that are being followed in this thread, innermost first."""
    trail = innermost.get()
    while trail is not None:
        yield trail
        trail = trail.outer
