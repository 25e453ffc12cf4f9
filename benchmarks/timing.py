"""Timing side by side: contestants run in turns within one run, and only after their answers were checked.

    rows = compare("van der Pol", Contestant("odelab", ours, error), {Contestant("scalar C", c, error): at_most(1.1)},
                   allowed=1e-4)

A shared machine changes speed by tens of percent within minutes, so times of different runs are never compared: every
round runs every contestant once, in rotating order, and a ratio is the median of the rounds' ratios.
"""

import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.rows import Goal, Row

SHORTEST = 5e-3  # seconds; a shorter call is repeated until one measurement lasts this long
SLOW = 5.0  # seconds; a slower call is measured once, by its first call
EQUAL_FACTOR = 3.0  # ours may be this many times less accurate and still count as equal
BUSY = 1.15  # cores; above this a contestant is said to have used several
UNITS = {"ms": 1e3, "us": 1e6, "s": 1.0}


class Contestant(NamedTuple):
    """`run` does the work once and returns its answer; `error(answer)` measures it against a reference.

    `run` None means that it is not installed, or not built yet; `missing` says why. `per` divides the time when one run
    does the work several times, or scales up a part of a work too slow to do whole. `fixed` is a run of next to no
    work, whose time is subtracted.
    """

    name: str
    run: Callable[[], Any] | None
    error: Callable[[Any], float] | None = None
    missing: str = ""
    per: float = 1.0
    fixed: Callable[[], Any] | None = None


class Sample(NamedTuple):
    """Seconds of each round's call: on the wall clock, and of processor time over all threads of this process."""

    wall: tuple[float, ...]
    processor: tuple[float, ...]

    @property
    def cores(self) -> float:
        """How many were busy."""
        return sum(self.processor) / sum(self.wall)

    def minus(self, other: "Sample") -> "Sample":
        return Sample(*(tuple(a - b for a, b in zip(x, y, strict=False)) for x, y in zip(self, other, strict=True)))


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


def interleave(runs: Sequence[Callable], rounds: int = 9, seconds: float = 60.0) -> list[Sample]:
    """Each of `runs` timed in turns after a call to warm up; at least 3 rounds, more while `seconds` last."""
    started = time.perf_counter()
    first = [measure(run, 1) for run in runs]
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


def samples_of(contestants: Sequence[Contestant], rounds: int, seconds: float) -> dict[Contestant, Sample]:
    """One sample per contestant that is present, its fixed part subtracted round by round."""
    runs = {(c, part): getattr(c, part) for c in contestants for part in ("run", "fixed") if getattr(c, part)}
    if not runs:
        return {}
    found = dict(zip(runs, interleave(list(runs.values()), rounds, seconds), strict=True))
    return {
        c: found[c, "run"].minus(found[c, "fixed"]) if c.fixed else found[c, "run"]
        for c in contestants
        if c.run is not None
    }


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


def compare(
    work: str,
    ours: Contestant,
    peers: Mapping[Contestant, Goal | None],
    allowed: float = math.inf,
    equal: float = EQUAL_FACTOR,
    rounds: int = 9,
    seconds: float = 60.0,
    unit: str = "ms",
    clock: str = "wall",
) -> list[Row]:
    """One row per peer. Answers first: an error of ours above `allowed` is wrong, above `equal` times theirs it is not
    equally good; then times, in turns.

    `clock` "processor" counts processor time over all threads: what one thread costs, undisturbed by the machine's
    other work; it sees no child process.
    """
    contestants = [ours, *peers]
    errors = {c: float(c.error(c.run())) for c in contestants if c.run is not None and c.error is not None}
    samples = samples_of(contestants, rounds, seconds)
    rows = []
    for peer, goal in peers.items():
        times = [[s / c.per for s in getattr(samples[c], clock)] if c in samples else [] for c in (ours, peer)]
        each = ratios(*times) if all(times) else []
        middle = [statistics.median(values) if values else None for values in (*times, each)]
        error, peer_error = errors.get(ours), errors.get(peer)
        rows.append(
            Row(
                work=work,
                name=ours.name,
                peer=peer.name,
                ours=None if middle[0] is None else middle[0] * UNITS[unit],
                theirs=None if middle[1] is None else middle[1] * UNITS[unit],
                ratio=middle[2],
                spread=quartiles(each),
                goal=goal,
                unit=unit,
                error=error,
                peer_error=peer_error,
                wrong=wrong_answer(error, allowed),
                unequal=unequal_errors(error, peer_error, equal),
                note="; ".join(filter(None, remarks(ours, peer, errors, samples))),
            )
        )
    return rows


def wrong_answer(error: float | None, allowed: float) -> str:
    if error is None or error <= allowed:
        return ""
    return f"our error {error:.2e} exceeds {allowed:.2e}"


def unequal_errors(error: float | None, peer_error: float | None, equal: float) -> str:
    """Ours may be the more accurate; being less accurate makes the times unfair."""
    if error is None or peer_error is None or error <= equal * peer_error:
        return ""
    return f"our error is {error / peer_error:.3g} times theirs" if peer_error else "their error is 0, ours is not"


def remarks(ours: Contestant, peer: Contestant, errors: Mapping, samples: Mapping[Contestant, Sample]):
    error, peer_error = errors.get(ours), errors.get(peer)
    if error and peer_error and peer_error > 10.0 * error:
        yield f"their error is {peer_error / error:.2g} times ours"
    for contestant in (ours, peer):
        if contestant.run is None:
            yield f"{contestant.name}: {contestant.missing}" if contestant.missing else ""
            continue
        sample = samples[contestant]
        if sample.cores > BUSY:
            yield f"{contestant.name} kept {sample.cores:.1f} cores busy"
        if len(sample.wall) == 1:
            yield f"{contestant.name} timed once"
