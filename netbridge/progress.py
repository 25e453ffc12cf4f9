"""A bar on the terminal that says how far a long work has come; elsewhere nothing is shown.

Not for the loops of studies, which use rich directly.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress_bar(title: str, total: int = 0, done: int = 0) -> Iterator[Callable]:
    """`with progress_bar("fetching", total) as advance: advance(amount, note)`; a total of 0 means unknown."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda amount=1, note="": None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[note]}"), console=console, transient=True) as shown:
        task = shown.add_task(title, total=total or None, completed=done, note="")
        yield lambda amount=1, note="": shown.update(task, advance=amount, note=note)


INTERVAL = 0.2  # seconds between two drawings on a terminal; without one, a line is printed every MINUTE
MINUTE = 60.0


class Progress:
    """`with Progress("fetching", total) as progress: progress.advance(n)`; total 0 means unknown."""

    def __init__(self, title: str, total: int, unit: str = "", stream=None, done: int = 0):
        self.title, self.total, self.unit = title, total, unit
        self.stream = stream or sys.stderr
        self.live = self.stream.isatty()
        self.done, self.counted, self.note = done, 0, ""

    def __enter__(self):
        self.began = self.drawn = time.monotonic()
        return self

    def __exit__(self, *failure):
        if self.live:
            self.draw()
            self.stream.write("\n")

    def advance(self, amount: int = 1, note: str = "", counted: bool = True):
        """`counted=False`: done before this run, and no measure of its speed."""
        self.done += amount
        self.counted += amount if counted else 0
        self.note = note or self.note
        now = time.monotonic()
        if now - self.drawn >= (INTERVAL if self.live else MINUTE):
            self.drawn = now
            self.draw()

    @property
    def seconds_left(self) -> float | None:
        if not self.counted or not self.total:
            return None
        return (time.monotonic() - self.began) / self.counted * (self.total - self.done)

    def draw(self):
        share = f"{100 * self.done / self.total:5.1f} %" if self.total else f"{self.done:,} {self.unit}"
        left = self.seconds_left
        text = f"{self.title}  {share}{'' if left is None else f', {clock(left)} left'}  {self.note}"
        self.stream.write(f"\r{text}\033[K" if self.live else text + "\n")
        self.stream.flush()


def clock(seconds: float) -> str:
    """1:02:03 or 2:03."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
