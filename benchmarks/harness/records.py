"""The record of a machine: one JSON file with the rows of every section, and under which conditions they were measured.

A section is kept as soon as it has ended, so that a run goes on where it stopped. Each has conditions of its own, since
a record may be completed on several days; pages are made of it by `benchmarks.page`.
"""

import dataclasses
import datetime
import json
import math
import re
import shutil
import subprocess
from pathlib import Path

from benchmarks.harness import machine
from benchmarks.harness.rows import Goal, Row

FOLDER = Path(__file__).parents[1] / "records"
MEASURED = ("odelab", "netbridge", "benchmarks", ":!benchmarks/records", ":!benchmarks/page.py")  # what rows depend on


@dataclasses.dataclass(frozen=True)
class Part:
    """The rows of one section.

    title      what the section sets side by side
    date       the day on which it ended
    commit     the last commit of the measured code, with a "+" where files differed from it
    load       processes wanting a core, before and after
    minutes    of processor time
    quick      whether sizes were small
    versions   of Python, the compilers and the packages
    rows       what was measured
    """

    title: str
    date: str
    commit: str
    load: tuple[float, float]
    minutes: float
    quick: bool
    versions: dict[str, str]
    rows: list[Row]

    def stands_for(self, commit: str, quick: bool) -> bool:
        """Whether the section need not be measured again for this commit and these sizes."""
        return self.commit == commit and self.quick <= quick


@dataclasses.dataclass
class Record:
    """What was measured on one machine.

    machine    the class of machines
    sections   {page: [section]}: all there are, in their order, measured or not
    parts      {"page/section": Part}
    """

    machine: str
    sections: dict[str, list[str]]
    parts: dict[str, Part]

    def missing(self) -> list[str]:
        """The sections that are not measured yet."""
        known = (f"{page}/{name}" for page, names in self.sections.items() for name in names)
        return [name for name in known if name not in self.parts]


def path_here() -> Path:
    """The record of this class of machines; its name is the processor's."""
    return FOLDER / (re.sub(r"[^a-z0-9]+", "-", machine.processor_name().lower()).strip("-") + ".json")


def load(path: Path) -> Record:
    """What a file holds; without one an empty record of this machine."""
    if not path.is_file():
        return Record(machine.machine_class(), {}, {})
    stored = json.loads(path.read_text())
    parts = {
        name: Part(**{**part, "load": tuple(part["load"]), "rows": [row_of(row) for row in part["rows"]]})
        for name, part in stored["parts"].items()
    }
    return Record(stored["machine"], stored["sections"], parts)


def keep(path: Path, page: str, sections: list[str], name: str, part: Part) -> None:
    """Write one of the sections of a page into the record, in place of what it had of it."""
    record = load(path)
    record.sections[page] = sections
    record.parts[f"{page}/{name}"] = part
    path.parent.mkdir(parents=True, exist_ok=True)
    waiting = path.with_suffix(".new")
    waiting.write_text(text_of(record))
    waiting.replace(path)


def text_of(record: Record) -> str:
    """JSON with a line for each row, so that a difference of two versions can be read."""
    found = []
    for name, part in sorted(record.parts.items()):  # pages have an order of their own
        about = {key: value for key, value in vars(part).items() if key != "rows"}
        rows = ",\n   ".join(json.dumps(fields_of(row), ensure_ascii=False) for row in part.rows)
        found.append(f'  {json.dumps(name)}: {json.dumps(about, ensure_ascii=False)[:-1]}, "rows": [\n   {rows}]}}')
    head = f'{{"machine": {json.dumps(record.machine)},\n "sections": {json.dumps(record.sections)},\n "parts": {{\n'
    return head + ",\n".join(found) + "\n}}\n"


def fields_of(row: Row) -> dict:
    """What a row says, to four digits, without what it leaves open."""
    given: dict = {key: value for key, value in vars(row).items() if value is not None and value != ""}
    if row.goal is not None:
        given["goal"] = [row.goal.kind, *(limit for limit in row.goal[1:] if limit > -math.inf)]
    return {key: short(value) for key, value in given.items()}


def short(value):
    if isinstance(value, list | tuple):
        return [short(one) for one in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def row_of(fields: dict) -> Row:
    """The row that `fields_of` wrote."""
    made = {"peer": "", "ours": None, "unit": "", **fields}
    if "goal" in fields:
        made["goal"] = Goal(*fields["goal"])
    if "spread" in fields:
        made["spread"] = tuple(fields["spread"])
    return Row(**made)


def commit() -> str:
    """The last commit that changed what is measured; "unknown" outside of a checkout."""
    if not (log := git("log", "-1", "--format=%h", "--", *MEASURED)):
        return "unknown"
    return log + ("+" if git("status", "--porcelain", "--", *MEASURED) else "")


def git(*arguments: str) -> str:
    if shutil.which("git") is None:
        return ""
    done = subprocess.run(["git", *arguments], cwd=FOLDER.parents[1], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def measured_now(title: str, began: tuple[float, float], quick: bool, rows: list[Row]) -> Part:
    """The part of a section that has just ended; it began at (load, processor seconds)."""
    minutes = round((machine.processor_seconds() - began[1]) / 60.0, 2)
    loads = (round(began[0], 1), round(machine.load(), 1))
    today = datetime.date.today().isoformat()
    return Part(title, today, commit(), loads, minutes, quick, machine.versions(), rows)
