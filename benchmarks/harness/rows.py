"""One line of a benchmark's table: what was compared, the goal, and the verdict; tables in plain text and Markdown."""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

NOT_AVAILABLE, NOT_MEASURED = "not available", "not measured"
WRONG, UNEQUAL, REACHED, MISSED, MEASURED = "WRONG ANSWER", "errors differ", "reached", "MISSED", "measured"


class Goal(NamedTuple):
    """`kind` is "slower": ours/theirs at most `limit`; "faster": theirs/ours at least; "value": ours alone at most, but
    at least `least`."""

    kind: str
    limit: float
    least: float = -math.inf

    def is_reached(self, ours: float, ratio: float | None) -> bool:
        if self.kind == "value":
            return self.least <= ours <= self.limit
        if ratio is None:
            return False
        return ratio <= self.limit if self.kind == "slower" else 1.0 / ratio >= self.limit

    def text(self, unit: str) -> str:
        if self.kind == "value":
            least = f"{number(self.least)} to " if self.least > -math.inf else "<= "
            return f"{least}{number(self.limit)} {unit}".rstrip()
        return f"<= {self.limit:.2f}" if self.kind == "slower" else f">= {number(self.limit)}x faster"


def at_most(ratio: float) -> Goal:
    """Ours may take at most `ratio` times what the other takes."""
    return Goal("slower", ratio)


def at_least(speedup: float) -> Goal:
    """Ours must be at least `speedup` times faster than the other."""
    return Goal("faster", speedup)


def below(value: float, least: float = -math.inf) -> Goal:
    """Ours alone must not exceed `value`, nor fall short of `least`, in the row's unit."""
    return Goal("value", value, least)


@dataclasses.dataclass(frozen=True)
class Row:
    """`ratio` is ours/theirs, the median over rounds, `spread` its quartiles; `note` says why a side is None."""

    work: str
    name: str  # ours
    peer: str  # theirs; empty where a row has no other side
    ours: float | None
    theirs: float | None = None
    ratio: float | None = None
    spread: tuple[float, float] | None = None
    goal: Goal | None = None
    unit: str = "ms"
    error: float | None = None
    peer_error: float | None = None
    wrong: str = ""  # why an answer of ours is wrong
    unequal: str = ""  # why the two answers are not equally good, so that times say nothing
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.wrong:
            return WRONG
        if self.ours is None:
            return NOT_AVAILABLE
        if self.peer and self.ratio is None:
            return NOT_MEASURED  # not installed, failed, or lost in the noise: the note says which
        if self.unequal:
            return UNEQUAL
        if self.goal is None:
            return MEASURED
        return REACHED if self.goal.is_reached(self.ours, self.ratio) else MISSED


HEADER = ("work", "ours", "time", "against", "time", "ratio", "goal", "verdict", "error ours / theirs", "note")


def cells(row: Row) -> tuple[str, ...]:
    return (
        row.work,
        row.name,
        quantity(row.ours, row.unit),
        row.peer or "-",
        quantity(row.theirs, row.unit),
        ratio_text(row),
        row.goal.text(row.unit) if row.goal else "-",
        row.verdict,
        error_text(row),
        "; ".join(part for part in (row.wrong, row.unequal, row.note) if part),
    )


def ratio_text(row: Row) -> str:
    """Slower than the other: ours/theirs; much faster: how many times."""
    if row.ratio is None:
        return "-"
    show = faster if row.ratio < 0.5 else slower
    quartiles = f" ({'..'.join(sorted((show(s) for s in row.spread), key=sort_key))})" if row.spread else ""
    return f"{show(row.ratio)}{'x faster' if row.ratio < 0.5 else ''}{quartiles}"


def slower(ratio: float) -> str:
    return f"{ratio:.2f}"


def faster(ratio: float) -> str:
    return number(1.0 / ratio)


def sort_key(text: str) -> float:
    return float(text.replace(",", ""))


def error_text(row: Row) -> str:
    if row.error is None and row.peer_error is None:
        return "-"
    return " / ".join("-" if error is None else f"{error:.1e}" for error in (row.error, row.peer_error))


def quantity(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{number(value)} {unit}".strip()


def number(value: float) -> str:
    """Three significant digits, or all before the point; no exponent, thousands separated."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(digits, 6)}f}"


def plain(rows: Iterable[Row]) -> str:
    """The table for a terminal."""
    lines = [HEADER, *map(cells, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def line(row: Row) -> str:
    """One row as it is found, before the widths of the table are known."""
    return " | ".join(cell for cell in cells(row) if cell and cell != "-")


def markdown(rows: Iterable[Row]) -> str:
    """The table for a page."""
    lines = [HEADER, tuple("---" for _ in HEADER), *map(cells, rows)]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in lines)


def summary(rows: Sequence[Row]) -> str:
    counts = {
        verdict: sum(row.verdict == verdict for row in rows) for verdict in dict.fromkeys(r.verdict for r in rows)
    }
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def wrong(rows: Iterable[Row]) -> list[Row]:
    """The rows whose answer is wrong: what makes a benchmark fail."""
    return [row for row in rows if row.verdict == WRONG]
