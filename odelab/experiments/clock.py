"""Calls measured in turns: every round runs each of them once, in rotating order, so that a drift of the machine's
speed meets all of them alike."""

import gc
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

SHORTEST = 5e-3  # seconds; a shorter call is repeated until one measurement lasts this long
SLOW = 5.0  # seconds; a slower call is measured once, by its first call


class Sample(NamedTuple):
    """Seconds of each round's call: on the wall clock, and of processor time over all threads of this process."""

    wall: tuple[float, ...]
    processor: tuple[float, ...]

    @property
    def cores(self) -> float:
        """How many cores were busy, in each round."""
        return sum(self.processor) / sum(self.wall)

    def minus(self, other: "Sample") -> "Sample":
        """The same times, less the median of another sample's."""
        return Sample(*(tuple(a - statistics.median(y) for a in x) for x, y in zip(self, other, strict=True)))


def measure(run: Callable, calls: int) -> tuple[float, float]:
    """(wall, processor) seconds of one call, averaged over `calls`, without the garbage collector."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        processor, start = time.process_time(), time.perf_counter()
        for _ in range(calls):
            run()
        return (time.perf_counter() - start) / calls, (time.process_time() - processor) / calls
    finally:
        if collecting:
            gc.enable()


def interleave(
    runs: Sequence[Callable],
    rounds: int = 9,
    seconds: float = 60.0,
    first: Sequence[tuple[float, float]] | None = None,
) -> list[Sample]:
    """Each of `runs` timed in turns after a call to warm up; at least 3 rounds, more while `seconds` last.

    `first` holds what `measure` said of the warm-up calls where they were made already.
    """
    started = time.perf_counter()
    first = [measure(run, 1) for run in runs] if first is None else first
    slow = [wall > SLOW for wall, _ in first]
    timed: list[list[tuple[float, float]]] = [[pair] if late else [] for pair, late in zip(first, slow, strict=True)]
    calls = [1 if late else enough_calls(run) for run, late in zip(runs, slow, strict=True)]
    for turn in range(rounds):
        if turn >= 3 and time.perf_counter() - started > seconds:
            break
        for place in range(len(runs)):
            i = (place + turn) % len(runs)
            if not slow[i]:
                timed[i].append(measure(runs[i], calls[i]))
    return [Sample(*zip(*pairs, strict=True)) for pairs in timed]


def enough_calls(run: Callable) -> int:
    """How many calls make one measurement long enough for the clock."""
    wall, _ = measure(run, 1)
    return max(1, math.ceil(SHORTEST / max(wall, 1e-7)))


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """ours/theirs, round by round; what was measured once is set against all rounds of the other."""
    if min(len(ours), len(theirs)) == 1:
        return [a / b for a in ours for b in theirs]
    return [a / b for a, b in zip(ours, theirs, strict=False)]


def quartiles(values: Sequence[float]) -> tuple[float, float] | None:
    if len(values) < 3:
        return None
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high
