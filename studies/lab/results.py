"""The files of one run of a study: figures, tables, and a record with arguments, versions, commit and numbers."""

import csv
import dataclasses
import datetime
import hashlib
import importlib.metadata
import json
import math
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from odelab.plot import style
from studies.lab.command import command

ROOT = Path(__file__).parents[2]
TRAINED_BY = tuple(
    ROOT / part
    for part in ("odelab/core.py", "netbridge/data", "netbridge/model", "netbridge/step_sizes", "netbridge/train")
)
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
        pictures = style.save(drawing, self.out / name, ("png",))
        drawing.set_layout_engine("none")  # the layout is computed once, not once per format
        self.files += [*pictures, *style.save(drawing, self.out / name, ("svg",))]
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

    def write_record(self) -> Path:
        """Write the record as JSON and print which files were written."""
        path = self.out / self.record
        record = self.provenance() | {"arguments": as_json(self.arguments), "numbers": as_json(self.numbers)}
        path.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n")
        print(f"\n{self.study} took {record['seconds']:.1f} s and wrote to {self.out}/:")
        print("\n".join(f"  {file.name}" for file in [*self.files, path]), flush=True)
        return path


def as_json(value):
    """`value` in what JSON can hold: dataclasses as dictionaries, arrays as lists, NaN and infinities as null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return as_json(dataclasses.asdict(value))
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


def commit() -> str:
    """The commit of the source, with a plus where it has changes; "unknown" outside a checkout."""

    def git(*words):
        done = subprocess.run(["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def source() -> dict[str, str]:
    """Which source made a result: its commit, and a digest of the files that every training goes through.

    A commit may get another name before it is published; the digest is of the files' contents alone. It changes with
    any of the files, and no other.
    """
    digest = hashlib.sha256()
    for folder in TRAINED_BY:
        for path in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]:
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return {"commit": commit(), "code": digest.hexdigest()[:12]}


def versions() -> dict[str, str]:
    """The versions of the packages that results depend on, as far as they are installed."""
    installed = {found.metadata["Name"].lower(): found.version for found in importlib.metadata.distributions()}
    return {package: installed[package] for package in PACKAGES if package in installed}


def peak_memory() -> float:
    """The most memory this process has held so far, in gigabytes; Linux reports kilobytes, macOS bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e9 if sys.platform == "darwin" else 1e6)
