"""Timing side by side: contestants run in turns within one run, and only after their answers were checked.

    rows = compare("van der Pol", Contestant("odelab", ours, error), {Contestant("scalar C", c, error): at_most(1.1)},
                   allowed=1e-4)

A shared machine changes speed by tens of percent within minutes, so times of different runs are never compared: every
round runs every contestant once, in rotating order, and a ratio is the median of the rounds' ratios.
"""

import math
import statistics
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from benchmarks.harness.rows import Goal, Row
from odelab.experiments.clock import Sample, interleave, measure, quartiles, ratios

EQUAL_FACTOR = 3.0  # ours may be this many times less accurate and still count as equal
BUSY = 1.15  # cores; above this a contestant is said to have used several
UNITS = {"ms": 1e3, "us": 1e6, "s": 1.0}


class Contestant(NamedTuple):
    """`run` does the work once and returns its answer; `error(answer)` measures it against a reference.

    `run` None means that it is not installed, or not built yet; `missing` says why. `per` divides the time when one run
    does the work several times, or scales up a part of a work too slow to do whole. `fixed` is a run of next to no
    work, whose time is subtracted; `warm` is called once before anything is timed, and compiles.
    """

    name: str
    run: Callable[[], Any] | None
    error: Callable[[Any], float] | None = None
    missing: str = ""
    per: float = 1.0
    fixed: Callable[[], Any] | None = None
    warm: Callable[[], Any] | None = None


class Check(NamedTuple):
    """What a contestant's first call showed: its error, its (wall, processor) seconds, or why it failed."""

    error: float | None = None
    first: tuple[float, float] = (0.0, 0.0)
    failure: str = ""

    def within(self, allowed: float) -> bool:
        return not self.failure and self.error is not None and self.error <= allowed


def check(contestant: Contestant) -> Check:
    answers: list = []
    run = contestant.run
    if run is None:
        return Check(failure=contestant.missing or "not installed")
    try:
        if contestant.warm is not None:
            contestant.warm()
        first = measure(lambda: answers.append(run()), 1)
        return Check(None if contestant.error is None else float(contestant.error(answers[0])), first)
    except Exception as reason:
        return Check(failure=f"{type(reason).__name__}: {' '.join(str(reason).split())[:200]}")


def samples_of(checks: Mapping[Contestant, Check], rounds: int, seconds: float) -> dict[Contestant, Sample]:
    """One sample per contestant, its fixed part subtracted."""
    runs = {(c, part): getattr(c, part) for c in checks for part in ("run", "fixed") if getattr(c, part)}
    if not runs:
        return {}
    first = [checks[c].first if part == "run" else measure(call, 1) for (c, part), call in runs.items()]
    found = dict(zip(runs, interleave(list(runs.values()), rounds, seconds, first), strict=True))
    return {c: found[c, "run"].minus(found[c, "fixed"]) if c.fixed else found[c, "run"] for c in checks}


def compare(
    work: str,
    ours: Contestant,
    peers: Mapping[Contestant, Goal | None],
    allowed: float = math.inf,
    equal: float = EQUAL_FACTOR,
    luck: float = 0.0,
    rounds: int = 15,
    seconds: float = 60.0,
    unit: str = "ms",
    clock: str = "wall",
) -> list[Row]:
    """One row per peer. Answers first: an error of ours above `allowed` is wrong, above `equal` times theirs it is not
    equally good, unless both are so small that luck decides; then times, in turns.

    `clock` "processor" counts processor time over all threads: what one thread costs, undisturbed by the machine's
    other work; it sees no child process.
    """
    checks = {c: check(c) if c.run else Check() for c in (ours, *peers)}
    samples = samples_of({c: done for c, done in checks.items() if c.run and not done.failure}, rounds, seconds)
    rows = []
    for peer, goal in peers.items():
        times = [[s / c.per for s in getattr(samples[c], clock)] if c in samples else [] for c in (ours, peer)]
        known = all(values and statistics.median(values) > 0.0 for values in times)
        each = ratios(*times) if known else []
        middle = [statistics.median(values) if values else None for values in (*times, each)]
        (error, _, failure), peer_error = checks[ours], checks[peer].error
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
                wrong=failure or wrong_answer(error, allowed),
                unequal=unequal_errors(error, peer_error, equal, luck),
                note="; ".join(filter(None, remarks(ours, peer, checks, samples))),
            )
        )
    return rows


def wrong_answer(error: float | None, allowed: float) -> str:
    if error is None or error <= allowed:
        return ""
    return f"our error {error:.2e} exceeds {allowed:.2e}"


def unequal_errors(error: float | None, peer_error: float | None, equal: float, luck: float = 0.0) -> str:
    """Ours may be the more accurate; being less accurate makes the times unfair."""
    if error is None or peer_error is None or error <= max(equal * peer_error, luck):
        return ""
    return f"our error is {error / peer_error:.3g} times theirs" if peer_error else "their error is 0, ours is not"


def remarks(
    ours: Contestant, peer: Contestant, checks: Mapping[Contestant, Check], samples: Mapping[Contestant, Sample]
):
    error, peer_error = checks[ours].error, checks[peer].error
    if error and peer_error and peer_error > 10.0 * error:
        yield f"their error is {peer_error / error:.2g} times ours"
    if checks[peer].failure:
        yield f"{peer.name} failed: {checks[peer].failure}"
    for contestant in (ours, peer):
        if contestant.run is None:
            yield f"{contestant.name}: {contestant.missing}" if contestant.missing else ""
        elif contestant in samples:
            sample = samples[contestant]
            if statistics.median(sample.processor) <= 0.0:
                yield f"{contestant.name} is lost in the fixed cost of a call"
            elif sample.cores > BUSY:
                yield f"{contestant.name} kept {sample.cores:.1f} cores busy"
            if len(sample.wall) == 1:
                yield f"{contestant.name} timed once"
