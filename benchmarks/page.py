"""docs/speed.md, written from the newest record: `python -m benchmarks.page`; a test holds the page to the record.

A line of a table stands for the rows of a section that have one other side and one goal. Every goal that was missed is
named below its table. What cannot be measured, why something is slow, is written here, with its day.
"""

import collections
import re
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.harness import records
from benchmarks.harness.records import Part, Record
from benchmarks.harness.rows import (
    MISSED,
    NOT_AVAILABLE,
    NOT_MEASURED,
    REACHED,
    UNEQUAL,
    WRONG,
    Row,
    faster,
    number,
    quantity,
    slower,
)

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "speed.md"
TITLES = {  # of the pages, in their order
    "equations": "Equations that are not stiff, and diffusion",
    "stiff": "Stiff equations",
    "sensitivities": "Sensitivities",
    "auto": "AUTO",
    "doctor": "The doctor's advice",
    "networks": "Networks",
}
HEAD = """# How fast odelab and netbridge are

`python -m benchmarks` measures all of this anew, says beforehand how long that takes, and writes this page from its
record, `benchmarks/records/{file}`, which has each row with its errors and quartiles. Answers are checked before
times. A ratio is odelab's time over the other's, or its inverse where it says "faster": the median of rounds in
turns, and in a line for several works their median with the least and the largest. Times are processor time of one
thread, unless a row says otherwise. **{missed} of {goals} goals are missed**; each is named below its table, with the
reason where it is known.

{about}
"""
TABLE = "| work | odelab | against | ratio | goal |\n|---|---|---|---|---|"
UNTOLD = (NOT_MEASURED, NOT_AVAILABLE, UNEQUAL, WRONG)  # have no line, and are named below the table
WORD = re.compile(r", |: ")  # between the words of a work
MOST = 3  # other sides and works that a line names
BUSY = 2.0  # processes wanting a core; above it a record says so
DISTURBED = """times are up to twice those of an idle machine, ratios are right to about a tenth, of short calls a
fifth, and what is on the wall clock (two threads) says nothing."""
WHY = {
    "equations/rkc": """RKC2's stages grow as n, a banded factorisation does not. And `engine="auto"` counts steps, of
which RKC2 takes few long ones: to t = 0.1 the run stays in plain Python, 9.9 ms where `engine="compiled"` takes 0.9,
to t = 10 it begins there, 47 ms for 18 (2026-11-20).""",
    "equations/ensemble": """The hand-written C takes 16 lanes at once where clang is installed and 8 by gcc; odelab's
kernels beat scalar C by shorter chains of dependent operations, which C could have too.""",
    "stiff/cvode": """The goals came from a pilot with SUNDIALS 6.4.1 as Debian 12 builds it, against which all of
them are reached (`SUNDIALS=FOLDER` takes the libraries in a folder; 2026-11-19). The build in scikit-sundae's wheel
gives the same errors in a third of the time. An attempt of odelab's takes 80 to 210 ns for n <= 8, no more than C
takes for the same method, so that only fewer attempts would help; and a call costs what **fixed** says before it solves
anything.""",
    "stiff/algebraic": """Kernels find the consistent start of a run themselves since 2026-11-20; before,
plain Python found it, which took 0.7 ms of each call.""",
    "stiff/proportion": """HIRES is steeper: its errors fall from 2e-5 at rtol 1e-3 to 1e-12 at 1e-10. E5 has nine
tolerances only, and at the sharpest its errors are not far from the rounding of its data, whose rates span twenty
decades: with rates that differ in their last bits alone the slopes of RODAS4 are 1.27 on average, those of RODAS5P
0.75, with deviations of 0.06 and 0.07 (2026-11-19).""",
    "sensitivities/sensitivities": """A call with sensitivities costs 0.4 ms before it solves anything, as the system
of the run and its columns is made anew in plain Python. POLLU with its 25 columns has 520 components, too many for a
kernel, and runs in plain Python: 6 s, where pydiffsol takes 6 ms. SUNDIALS' CVODES comes with CasADi; scikit-sundae
has none (2026-11-20).""",
    "networks/merging": """Folding removes none of the convolutions, which take 87 % of a plain pass of ResNet-56 and
67 % of one of ResNet-164. What could be fused with them was tried by hand, with equal outputs, and gains 2 to 6 %
(2026-11-19).""",
    "networks/spectra": """On an untrained network fewer units are dead, and zero eigenvalues are what is gained by;
with the public ResNet-20 (`ODELAB_PUBLIC_WEIGHTS` names its folder) all values came 59 and 124 times as fast as by
jacrev (2026-11-19).""",
}
PROCESSOR = """## Why ratios to C differ by processor

10,000 van der Pol oscillators in lanes were 14 times as fast as scalar C on a processor of this class (2026-11-18)
and 8 times on another one, whose name was not kept, by the same code. A run in scalar C is a chain of operations that
wait for each other: it takes as long as their latencies, and wide vectors do not help it. Lanes have enough runs
under way that nothing waits: they take as long as the operations occupy the units, which halves when vectors are
twice as wide. The ratio is one of latency to throughput, and these are different properties of a processor. Here:

| operation in C | of many side by side | one after the other | times faster |
|---|---|---|---|
{arithmetic}

No run is multiplications alone: it loads, compares, chooses, and divides by the tolerance of each component. With
kernels made for shorter vectors (`ODELAB_PROCESSOR`), beside the same C on the same processor:

| work | odelab in lanes | scalar C | times faster |
|---|---|---|---|
{width}

So half the width costs nearly half the ratio, and a processor with AVX2, or one that passes its AVX-512 through units
of 256 bits, should be near the figure for these. That is an inference: no other processor was measured for this page.
A right-hand side with divisions, roots or exponentials gains another factor than one without, as the first table
says.
"""
LAST = """## What is not in the record

On an idle machine of this class (2026-11-19) single runs took 0.76 to 1.02 of scalar C's time, median 0.88, stiff
ones 0.77 to 1.01, median 0.84; a call cost 33 us before it solved anything, and two threads were 1.9 times as fast as
one.

On 2026-11-20 the kernels printed as text for numba gave way to one graph, printed as LLVM IR: steps took 0.43 to 1.13
of the time before, and 0.53 to 1.30 with `exact=True`, a first answer 0.03 to 0.05 of it. `python -m
benchmarks.ode.before FOLDER` sets this tree beside another one. RKC2 took 0.8 of its present time before indices were
checked; the reason is not found.

`make study` took 34.5 s on two idle cores, and 62 s beside two busy processes (2026-11-19): torch's threads wait
passively, so that they do not keep a core busy that another program could use."""


def newest() -> Path:
    """The record that was completed last."""
    return max(
        records.FOLDER.glob("*.json"), key=lambda path: max(part.date for part in records.load(path).parts.values())
    )


def text(path: Path) -> str:
    """The page of a record."""
    record = records.load(path)
    every = [row for part in record.parts.values() if not part.quick for row in part.rows]
    missed, reached = (sum(row.verdict == verdict for row in every) for verdict in (MISSED, REACHED))
    pieces = [HEAD.format(file=path.name, about=conditions(record), missed=missed, goals=missed + reached)]
    for page, title in TITLES.items():
        found = {name: record.parts.get(f"{page}/{name}") for name in record.sections.get(page, [])}
        if parts := {name: part for name, part in found.items() if part}:
            pieces += [f"## {title}\n", chapter(page, parts)]
    if not {"processor/arithmetic", "processor/width"} - set(record.parts):
        arithmetic, width = (record.parts[f"processor/{name}"].rows for name in ("arithmetic", "width"))
        pieces.append(PROCESSOR.format(arithmetic=gains(arithmetic), width=gains(width)))
    return "\n".join([*pieces, LAST, ""])


def gains(rows: Iterable[Row]) -> str:
    """How many times faster one side is, row by row, for a table that has its header."""
    said = []
    for row in rows:
        times = (quantity(row.ours, row.unit), quantity(row.theirs, row.unit))
        said.append(f"| {row.work}{row.note and f', {row.note}'} | {' | '.join(times)} | {faster(row.ratio or 1.0)} |")
    return "\n".join(said)


def conditions(record: Record) -> str:
    """Days, commits, loads and versions; what was measured in small sizes, and what was not."""
    groups, versions = collections.Counter[str](), collections.defaultdict[str, set](set)
    for part in record.parts.values():
        groups[f"{part.date} at commit {part.commit}"] += 1
        for name, version in part.versions.items():
            versions[name].add(version)
    loads = [load for part in record.parts.values() for load in part.load]
    minutes = sum(part.minutes for part in record.parts.values())
    counts = (f"{group}: {count} section{'s' * (count > 1)}" for group, count in groups.items())
    said = f"{record.machine}; {'; '.join(counts)}"
    said += f"; {minutes:.0f} minutes of processor time. With "
    said += ", ".join(f"{name} {' and '.join(sorted(found))}" for name, found in versions.items()) + "."
    if max(loads) > BUSY:
        said += f" Others wanted the machine, too (load {min(loads):.0f} to {max(loads):.0f}): {DISTURBED}"
    small = [name for name, part in record.parts.items() if part.quick]
    for words, names in (
        ("In small sizes, for which goals are not meant nor counted", small),
        ("Not measured yet", record.missing()),
    ):
        said += f" {words}: {', '.join(names)}." if names else ""
    return textwrap.fill(said, 120, break_long_words=False, break_on_hyphens=False)


def chapter(page: str, parts: dict[str, Part]) -> str:
    """Of each section of a page its table, then what was missed, what has no ratio, and why."""
    command = "benchmarks.net" if page == "networks" else f"benchmarks.ode{'' if page == 'equations' else f' --{page}'}"
    lines = [f"`python -m {command}`, with `--only` and the name of a section:", ""]
    for name, part in parts.items():
        groups = split(part.rows)
        told = ([row for row in group if row.verdict not in UNTOLD] for group in groups)
        table = [line(group) for group in told if group]
        said = [*works(groups), *missed(groups), *unknown(part.rows), WHY.get(f"{page}/{name}", "").replace("\n", " ")]
        lines += [f"### {name}", "", part.title, "", *([TABLE, *table, ""] if table else [])]
        lines += [" ".join(filter(None, said)), ""] if any(said) else []
    return "\n".join(lines)


def base(name: str) -> str:
    """A contestant without its tolerance and the number of its runs."""
    return name.split(" rtol ")[0].split(" (")[0]


def split(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows that share a line: those with one other side, goal and unit."""
    each_once = len({row.work for row in rows}) == len(rows)  # against the best one, another from work to work
    several = each_once and len({base(row.peer) for row in rows}) > MOST
    groups: dict[tuple, list[Row]] = {}
    for row in rows:
        key = ("" if several else base(row.peer), bool(row.peer), row.goal, row.unit)
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def line(group: Sequence[Row]) -> str:
    """One line of a table."""
    first = group[0]
    peers = dict.fromkeys(base(row.peer) for row in group)
    goal = first.goal.text(first.unit) if first.goal else ""
    verdicts = [row.verdict for row in group]
    if goal and len(group) > 1 and verdicts.count(REACHED) + verdicts.count(MISSED):
        goal += f": {verdicts.count(REACHED)} of {verdicts.count(REACHED) + verdicts.count(MISSED)}"
    ours = dict.fromkeys(base(row.name).removeprefix("odelab ") for row in group)
    work = label(group)
    name = "".join(f", {one}" for one in ours if len(ours) == 1 and one not in ("odelab", *WORD.split(work)))
    against = " / ".join(peers) if len(peers) <= MOST else "the best of others"
    if len(group) == 1 and first.theirs is not None and first.unit:
        against += f", {quantity(first.theirs, first.unit)}"
    return f"| {work}{name} | {span(group)} | {against} | {figure(group)} | {goal} |"


def label(group: Sequence[Row]) -> str:
    """The work of a row; of several their names or how many they are, and what they have in common."""
    known, names = common(group), names_of(group)
    if len(group) == 1 or (not known and len(names) == 1):
        return group[0].work
    said = "; ".join(names) if len(names) <= MOST else f"{len(group)} works"
    first = bool(known) and group[0].work.startswith(known[0])
    return ", ".join([*known, said] if first else [said, *known])


def names_of(group: Sequence[Row]) -> list[str]:
    """What is different in the works of a group."""
    known = common(group)
    names = (", ".join(word for word in WORD.split(row.work) if word not in known) for row in group)
    return list(dict.fromkeys(names))


def works(groups: Iterable[Sequence[Row]]) -> Iterable[str]:
    """The works of the first line that only counts them, unless they are too many."""
    counted = next((found for group in groups if len(found := names_of(group)) > MOST), [])
    if 0 < len(counted) <= 2 * MOST:
        yield f"The {len(counted)}: {'; '.join(counted)}."


def common(group: Sequence[Row]) -> list[str]:
    words = [WORD.split(row.work) for row in group]
    return [word for word in words[0] if all(word in other for other in words)] if len(group) > 1 else []


def span(group: Sequence[Row]) -> str:
    """The least and the largest of our figures."""
    ours = sorted(row.ours for row in group if row.ours is not None and row.ours > 0.0)
    if not ours or (group[0].peer and not group[0].unit):
        return ""
    ends = [quantity(value, group[0].unit) for value in dict.fromkeys((ours[0], ours[-1]))]
    return " to ".join([*(end.removesuffix(f" {group[0].unit}") for end in ends[:-1]), ends[-1]])


def figure(group: Sequence[Row]) -> str:
    """The median of the ratios, with the least and the largest; the way round that the goal is, if ours is faster."""
    ratios = sorted(row.ratio for row in group if row.ratio is not None)
    if not ratios:
        return ""
    middle, goal = statistics.median(ratios), group[0].goal
    inverse = middle < (0.5 if goal is None else 1.0 if goal.kind == "faster" else 0.0)
    show = faster if inverse else slower if middle >= 0.1 else number
    ends = sorted((ratios[0], ratios[-1]), reverse=inverse)
    between = f" ({show(ends[0])} to {show(ends[1])})" if len(ratios) > 1 else ""
    return f"{show(middle)}{'x faster' if inverse else ''}{between}"


def missed(groups: Iterable[Sequence[Row]]) -> Iterable[str]:
    """The goals of a section that were missed, a sentence for each line of the table that has some."""
    for group in groups:
        late = [row for row in group if row.verdict == MISSED]
        if late:
            first, known = late[0], common(group)
            against = (
                f" against {base(first.peer)}" if first.peer and len({base(row.peer) for row in late}) == 1 else ""
            )
            works = [", ".join(word for word in WORD.split(row.work) if word not in known) or row.name for row in late]
            ours = [base(row.name).removeprefix("odelab ") for row in late]
            if len(set(works)) < len(works):
                works = [f"{work}, {name}" for work, name in zip(works, ours, strict=True)]
            elif len(set(ours)) == 1 and ours[0] not in ("odelab", *WORD.split(first.work)):
                known = [*known, ours[0]]
            goal = first.goal.text(first.unit) if first.goal else ""
            said = [figure([row]) or span([row]) for row in late]
            said = [f"{row.ratio:.4g}" if f"<= {one}" == goal else one for one, row in zip(said, late, strict=True)]
            found = "; ".join(f"{work} {one}{once(row)}" for work, one, row in zip(works, said, late, strict=True))
            yield f"{', '.join(['Missed', *known])} ({goal}{against}): {found}."


def once(row: Row) -> str:
    """That our side was too slow for a second run: its first one may have compiled, or waited for others."""
    return ", timed once" if f"{row.name} timed once" in row.note else ""


def unknown(rows: Iterable[Row]) -> Iterable[str]:
    """Why rows have no ratio that says something."""
    reasons = collections.defaultdict[str, list](list)
    for row in rows:
        if row.verdict in UNTOLD:
            reasons["; ".join(filter(None, (row.wrong, row.unequal, row.note)))].append(row.work)
    for reason, works in reasons.items():
        where = "" if reason.endswith("not installed") else f" ({'; '.join(works)})"
        yield f"No ratio: {reason}{where}."


def write() -> None:
    """Write the page of the newest record."""
    PAGE.write_text(text(newest()))


if __name__ == "__main__":
    write()
