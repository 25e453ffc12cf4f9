"""The files of one run of a study: figures, tables, and a record with arguments, versions, commit and numbers."""

import collections
import csv
import dataclasses
import datetime
import functools
import importlib.metadata
import json
import math
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from odelab.plot import style
from studies.lab.command import command

NOT_RECORDED = "not recorded"
SAME_NUMBERS = frozenset((  # digests of older measuring code; tests/studies/lab/older_code.py says what they gave
    "0ea2eb793c8c", "280ba698e63c", "2acbcc17c4bc", "3c0f788f4a6a", "6423ceaa7ea2", "7938651b693a",
    "861ab773d1c3", "8df0f78281d5", "9098870303e8", "971ccac500d1", "9817596778a8", "9b3ca99b2c95",
    "9e07efd52014", "a966648ce010", "d175eba17a7e", "e0687116e609", "e20d6ed6616d", "e354db7112d2",
))  # fmt: skip
PACKAGES = ("odelab", "numpy", "scipy", "numba", "matplotlib", "torch")


class Results:
    """The files and numbers of one run, in one folder; `write_record` ends it.

    study      name of the study, as in `python -m studies.NAME`
    arguments  the dataclass of its options; `arguments.out` is the folder, made where it is missing
    record     name of the JSON file; runs that share a folder take different names
    numbers    a dictionary of everything worth keeping; the record holds it
    files      the files that `write_record` lists
    """

    def __init__(self, study: str, arguments, record: str = "record.json"):
        self.study, self.arguments, self.record = study, arguments, record
        self.out = Path(arguments.out)
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SystemExit(f"studies.{study}: `--out` = {str(self.out)!r} cannot be a folder: {error}.") from None
        self.numbers: dict = {}
        self.files: list[Path] = []
        self.began = time.perf_counter()

    def save_figure(self, drawing, name: str) -> Path:
        """Write a figure as PNG and SVG; returns the path of the PNG."""
        pictures = style.save(drawing, self.out / name)
        self.files += pictures
        return pictures[0]

    def save_table(self, name: str, rows: list[dict], title: str, printed: bool = True) -> None:
        """Write rows as CSV, keep them for the record, and print them."""
        self.numbers[name] = rows
        path = self.out / f"{name}.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        self.files.append(path)
        if printed:
            print(f"\n{title}\n{plain_table(rows)}", flush=True)

    def name_older(self, made: list[dict], remedy: str = "") -> str:
        """Print and keep how many of the stored results that are shown were measured by other code than today's.

        made    of each result what `source` gave when it was measured, {} where nothing was recorded
        remedy  a sentence that says how they are measured again; by default that `--remeasure` does it

        Returns the sentences for the page, "" where all are of today's code. The results are shown as they are: what
        older code measured is not wrong for that, but whoever reads it is told.
        """
        codes = ("this code" if is_current(one) else one.get("measured_by", NOT_RECORDED) for one in made)
        counts = collections.Counter(self.numbers.get("measured by", {}))
        self.numbers["measured by"] = dict(counts + collections.Counter(codes))
        sentence = describe_older(made)
        if not sentence:
            return ""
        again = command(self.study, self.arguments)
        again += "" if "--remeasure" in again else " --remeasure"
        remedy = remedy or f"`{again}` trains and measures them again."
        words = f"{sentence} They are shown as they are. {remedy}"
        self.say(words)
        return words

    def say(self, words: str) -> None:
        """Print words, a paragraph of their own."""
        print(f"{words}\n", flush=True)

    def provenance(self) -> dict:
        """How this run came about: command, date, time taken, commit, versions, machine."""
        return {
            "study": self.study,
            "command": command(self.study, self.arguments),
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - self.began, 2),
            "commit": commit(),
            "python": platform.python_version(),
            "machine": platform.machine(),
            "peak memory (GB)": round(peak_memory(), 3),
            "versions": versions(),
        }

    def write_record(self, listed: bool = True) -> Path:
        """Write the record as JSON; with `listed`, print which files were written."""
        path = self.out / self.record
        names = [str(file.relative_to(self.out)) for file in [*self.files, path]]
        record = self.provenance() | {"files": names, "arguments": as_json(self.arguments)}
        text = json.dumps(record | {"numbers": as_json(self.numbers)}, indent=1, allow_nan=False)
        path.write_text(text + "\n")
        if listed:
            print(f"\n{self.study} took {record['seconds']:.1f} s and wrote to {self.out}/:")
            print("\n".join(f"  {name}" for name in names), flush=True)
        return path


def as_json(value):
    """`value` in what JSON can hold: dataclasses as dictionaries, arrays as lists, NaN and infinities as null.

    A field of a dataclass whose metadata says {"recorded": False} is left out.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value) if field.metadata.get("recorded", True)]
        return {name: as_json(getattr(value, name)) for name in fields}
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def cell_text(value) -> str:
    """A cell of a table: numbers with four significant digits."""
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def plain_table(rows: list[dict]) -> str:
    """Rows in columns of equal width, for the terminal."""
    cells = [list(rows[0]), *([cell_text(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
    )


@functools.cache
def commit() -> str:
    """The commit of the source, with a plus where it has changes; "unknown" outside a checkout.

    It is asked for once in a process, which goes on with the code it has imported.
    """

    def git(*words):
        done = subprocess.run(["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def source(trained: tuple[str, ...] = (), measured: tuple[str, ...] = ()) -> dict[str, Any]:
    """Which source made a result: its commit, and digests of the code that trained and of the code that measured.

    A commit may get another name before it is published, and most commits change nothing that is computed; the digests
    change with what the code computes and with nothing else, see `netbridge.code_digests`.

    trained   rooms that the training went through beside the usual ones, such as "netbridge/detect"
    measured  rooms that the measurement went through beside the usual ones; they are kept, for `is_current`
    """
    from netbridge import code_digests  # here: netbridge imports torch, and studies of equations do without

    rooms = {"rooms": list(measured)} if measured else {}
    digests = {"trained_by": code_digests.trained_by(trained), "measured_by": code_digests.measured_by(measured)}
    return {"commit": commit()} | digests | rooms


def remember_source() -> None:
    """Read all code now: `source` then says what it was at this moment, though files change while a training lasts."""
    source(measured=("odelab", "netbridge"))


def is_current(made: dict) -> bool:
    """Has the code of today measured this result? `made` is what `source` gave when it was measured."""
    from netbridge import code_digests

    return made.get("measured_by") == code_digests.measured_by(tuple(made.get("rooms", ())))


def choose_current(results: list):
    """The first of these results that today's code has measured, else the first; None where there is none."""
    return next((one for one in results if is_current(one.made)), results[0] if results else None)


def describe_older(made: list[dict]) -> str:
    """How many of these results were measured by other code than today's, in a sentence; "" where none was.

    made  of each result what `source` gave when it was measured, {} where nothing was recorded
    """
    older = [one for one in made if not is_current(one)]
    if not older:
        return ""
    unknown = [one for one in older if "measured_by" not in one]
    same = [one for one in older if one.get("measured_by") in SAME_NUMBERS]
    groups = {
        "by older code that gives the same numbers of shipped networks, as a test shows": len(same),
        "by older code": len(older) - len(same) - len(unknown),
        "by code that was not recorded": len(unknown),
    }
    told = "; ".join(f"{count} {words}" for words, count in groups.items() if count)
    return f"{len(older)} of {len(made)} stored results were measured by other code than today's: {told}."


def versions() -> dict[str, str]:
    """The versions of the packages that results depend on, as far as they are installed."""
    installed = {found.metadata["Name"].lower(): found.version for found in importlib.metadata.distributions()}
    return {package: installed[package] for package in PACKAGES if package in installed}


def peak_memory() -> float:
    """The most memory this process has held so far, in gigabytes; Linux reports kilobytes, macOS bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e9 if sys.platform == "darwin" else 1e6)
