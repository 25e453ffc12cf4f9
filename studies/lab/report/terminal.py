"""What a study prints: what was asked, of which networks, the strip of claims, and where the page is."""

import collections
import sys
import textwrap

COLUMNS = 100
LINES = 25  # of everything that a run without --verbose prints
OPEN = ("undecided", "not run", "cannot be asked here")


def wrapped(words: str, most: int = LINES) -> list[str]:
    """Words in lines of COLUMNS; what does not fit into `most` lines ends in dots."""
    return textwrap.wrap(words, COLUMNS, max_lines=most, placeholder=" ...", break_on_hyphens=False)


def show_progress(words: str) -> None:
    """Say on the error stream how far a run is: in one line that is written over on a terminal, else line by line."""
    if sys.stderr.isatty():
        print(f"\r{words[: COLUMNS - 1]:<{COLUMNS - 1}}\r", end="", file=sys.stderr, flush=True)
    else:
        print(words, file=sys.stderr, flush=True)


def strip_lines(rows: list[dict], room: int) -> list[str]:
    """The strip in at most `room` lines: claim, here, n and verdict; decided claims first where not all have room.

    rows  as `strip.row_of` returns them

    >>> row = {"claim": "Attention helps.", "here": "+1.2 [+0.6, +1.9]", "n": "3 seeds", "verdict": "supported"}
    >>> print("\\n".join(strip_lines([row], 5)))
    Claim                                          Here                     n     Verdict
    Attention helps.                               +1.2 [+0.6, +1.9]        3     supported
    """
    if not rows:
        return []
    shown, most = rows, room - 2
    if len(rows) > most + 1:
        ranked = sorted(range(len(rows)), key=lambda place: rows[place]["verdict"] in OPEN)
        shown = [rows[place] for place in sorted(ranked[: max(most, 0)])]
    head = {"claim": "Claim", "here": "Here", "n": "n", "verdict": "Verdict"}
    lines = [in_columns(row) for row in (head, *shown)]
    rest = len(rows) - len(shown)
    return [*lines, f"... and {rest} more claims on the page"] if rest else lines


def in_columns(row: dict) -> str:
    widths = {"claim": 45, "here": 23, "n": 4, "verdict": 22}
    cells = row | {"n": row["n"].split(" ")[0], "claim": cut(row["claim"], widths["claim"], end=14)}
    return "  ".join(cut(cells[name], width).ljust(width) for name, width in widths.items()).rstrip()


def cut(words: str, width: int, end: int = 0) -> str:
    """Words in at most `width` characters; dots stand for what is left out, before the last `end` of them."""
    if len(words) <= width:
        return words
    return f"{words[: width - end - 3].rstrip()}...{words[len(words) - end :]}"


def count_verdicts(rows: list[dict]) -> str:
    """How many claims got which verdict, the most frequent first."""
    counts = collections.Counter(row["verdict"] for row in rows)
    total = f"{len(rows)} claim{'s' * (len(rows) != 1)}"
    return f"{total}: {', '.join(f'{count} {kind}' for kind, count in counts.most_common())}."
