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
SLOW = 5.0  # seconds; a slower call is measured in one round, its first call
EQUAL_FACTOR = 3.0  # ours may be this many times less accurate and still count as equal
BUSY = 1.15  # cores; above this a contestant is said to have used several


class Contestant(NamedTuple):
    """`run` does the work once and returns its answer; `error(answer)` measures it against a reference.

    `run` None means that it is not installed, or not built yet; `missing` says why. `per` divides the time when one run
    does the work several times, or scales up a part of a work too slow to do whole.
    """

    name: str
    run: Callable[[], Any] | None
    error: Callable[[Any], float] | None = None
    missing: str = ""
    per: float = 1.0


class Sample(NamedTuple):
    """Wall seconds per call in every round, and how many cores were busy."""

    seconds: tuple[float, ...]
    cores: float

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def clock(run: Callable, calls: int) -> tuple[float, float]:
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
    first = [clock(run, 1) for run in runs]
    slow = [wall > SLOW for wall, _ in first]
    timed: list[list[tuple[float, float]]] = [[pair] if late else [] for pair, late in zip(first, slow, strict=True)]
    calls = [1 if late else enough_calls(run) for run, late in zip(runs, slow, strict=True)]
    for turn in range(rounds):
        if turn >= 3 and time.perf_counter() - started > seconds:
            break
        for place in range(len(runs)):
            i = (place + turn) % len(runs)
            if not slow[i]:
                timed[i].append(clock(runs[i], calls[i]))
    return [
        Sample(tuple(wall for wall, _ in pairs), sum(cpu for _, cpu in pairs) / sum(wall for wall, _ in pairs))
        for pairs in timed
    ]


def enough_calls(run: Callable) -> int:
    """How many calls make one measurement long enough for the clock."""
    wall, _ = clock(run, 1)
    return max(1, math.ceil(SHORTEST / max(wall, 1e-7)))


def ratios(ours: Sample, theirs: Sample) -> list[float]:
    """ours/theirs, round by round; a contestant measured once is set against all rounds of the other."""
    if min(len(ours.seconds), len(theirs.seconds)) == 1:
        return [a / b for a in ours.seconds for b in theirs.seconds]
    return [a / b for a, b in zip(ours.seconds, theirs.seconds, strict=False)]


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
) -> list[Row]:
    """One row per peer. Answers first: an error of ours above `allowed` is wrong, above `equal` times theirs it is not
    equally good; then times, in turns."""
    contestants = [ours, *peers]
    present = [c for c in contestants if c.run is not None]
    errors = {c: checked_error(c) for c in present}
    samples = dict(zip(present, interleave([c.run for c in present], rounds, seconds), strict=True)) if present else {}
    return [row(work, ours, peer, goal, errors, samples, allowed, equal, unit) for peer, goal in peers.items()]


def checked_error(contestant: Contestant) -> float | None:
    if contestant.error is None:
        return None
    return float(contestant.error(contestant.run()))


def row(work, ours, peer, goal, errors, samples, allowed, equal, unit) -> Row:
    scale = {"ms": 1e3, "us": 1e6, "s": 1.0}[unit]
    times = [samples[c].median * scale / c.per if c in samples else None for c in (ours, peer)]
    ratio = spread = None
    if ours in samples and peer in samples:
        each = [r * peer.per / ours.per for r in ratios(samples[ours], samples[peer])]
        ratio, spread = statistics.median(each), quartiles(each)
    error, peer_error = errors.get(ours), errors.get(peer)
    return Row(
        work=work,
        name=ours.name,
        peer=peer.name,
        ours=times[0],
        theirs=times[1],
        ratio=ratio,
        spread=spread,
        goal=goal,
        unit=unit,
        error=error,
        peer_error=peer_error,
        wrong=wrong_answer(error, allowed),
        unequal=unequal_errors(error, peer_error, equal),
        note="; ".join(filter(None, remarks(ours, peer, errors, samples))),
    )


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
        if len(sample.seconds) == 1:
            yield f"{contestant.name} timed once"
