"""A bar on the terminal that says how far a long work has come; elsewhere nothing is shown.

Not for the loops of studies, which use rich directly.
"""

import contextlib
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


@contextlib.contextmanager
def report_to(progress, title: str, total: int | None) -> Iterator[Callable]:
    """What the argument `progress` of a function asks for, as a function of (amount done, amount in all or None).

    progress  True for a bar with this title; a function, which is handed on; None or False for nothing
    """
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(f"`progress` must be True, or a function of (done, total), got {progress!r}.")
    if progress is not True:
        yield progress or (lambda done, total: None)
        return
    with progress_bar(title, total or 0) as advance:
        before = 0

        def report(done: int, total: int | None):
            nonlocal before
            advance(done - before)
            before = done

        yield report
