"""What a study leaves behind: figures, tables and record.json with arguments, versions, commit and numbers."""

import csv
import dataclasses
import datetime
import importlib.metadata
import json
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from odelab.plot import style

PACKAGES = ("odelab", "numpy", "scipy", "numba", "matplotlib", "torch")


class Record:
    """Collects the results of one run of a study under `out` and prints where it put what."""

    def __init__(self, name: str, arguments, out: Path | str):
        self.name, self.arguments = name, arguments
        self.out = Path(out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.numbers: dict = {}
        self.files: list[Path] = []
        self.began = time.perf_counter()

    def figure(self, drawing, name: str):
        self.files += style.save(drawing, self.out / name)

    def table(self, name: str, rows: list[dict], title: str = ""):
        """The same rows as Markdown and as CSV, and in the record."""
        self.numbers[name] = rows
        heads = list(rows[0])
        lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
        lines += [f"| {' | '.join(shown(row[head]) for head in heads)} |" for row in rows]
        markdown, sheet = self.out / f"{name}.md", self.out / f"{name}.csv"
        markdown.write_text("\n".join([f"# {title}\n", *lines, ""] if title else [*lines, ""]))
        with sheet.open("w", newline="") as file:
            writer = csv.DictWriter(file, heads, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        self.files += [markdown, sheet]
        if title:
            print(f"\n{title}")
        print(plain_table(heads, rows))

    def text(self, name: str, lines: list[str]):
        """A page of words."""
        self.numbers[name] = lines
        path = self.out / f"{name}.md"
        path.write_text("\n".join([*lines, ""]))
        self.files.append(path)
        print("\n" + "\n".join(lines))

    def close(self):
        """Write record.json and say what lies where."""
        path = self.out / "record.json"
        record = {
            "study": self.name,
            "command": " ".join(["python", "-m", f"studies.{self.name}", *sys.argv[1:]]),
            "arguments": plain(self.arguments),
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - self.began, 2),
            "commit": commit(),
            "python": platform.python_version(),
            "machine": platform.machine(),
            "versions": versions(),
            "numbers": plain(self.numbers),
        }
        path.write_text(json.dumps(record, indent=1, allow_nan=True) + "\n")
        print(f"\n{self.name} took {record['seconds']:.1f} s and wrote to {self.out}/:")
        for file in [*self.files, path]:
            print(f"  {file.name}")


def plain(value):
    """`value` in what JSON can say."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(dataclasses.asdict(value))
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    return str(value) if isinstance(value, Path) else value


def shown(value) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return str(value)


def plain_table(heads, rows) -> str:
    cells = [heads, *([shown(row[head]) for head in heads] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
    )


def commit() -> str:
    """The commit of the source, with a plus where it has changes; 'unknown' outside a checkout."""
    here = Path(__file__).parent
    try:
        head = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=here, capture_output=True, text=True, check=True
        )
        dirty = subprocess.run(
            ["git", "status", "--porcelain", "-uno"], cwd=here, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head.stdout.strip() + ("+" if dirty.stdout.strip() else "")


def versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
