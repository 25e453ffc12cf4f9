"""The command line that all benchmarks share: run sections, print their rows, write the table.

A section is a function that takes a Size and yields rows; its docstring is its title. What is wrong fails the command,
a missed goal is shown and does not.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness import machine, rows

Sections = dict[str, Callable]


def parser(name: str, description: str, sections: Sections) -> argparse.ArgumentParser:
    """The options of every benchmark: --quick, --only, --out."""
    made = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    made.add_argument("--quick", action="store_true", help="small sizes, under a minute, not those of the goals")
    made.add_argument("--only", nargs="+", choices=sections, metavar="SECTION", help=", ".join(sections))
    made.add_argument("--out", type=Path, help="write the table to this Markdown file")
    return made


def run(options: argparse.Namespace, sections: Sections, size, about: str = "") -> int:
    """Print every section's rows as they come, then the table; 1 if an answer was wrong.

    options     what `parser` read
    sections    title to function
    size        handed to every section
    about       a line more on how things were measured, under the description of the machine
    """
    head = "\n".join(line for line in (machine.describe(), about) if line)
    print(head, flush=True)
    started, found = time.perf_counter(), []
    for name in options.only or sections:
        print(f"\n{name}: {sections[name].__doc__}", flush=True)
        for row in sections[name](size):
            found.append(row)
            print("  " + rows.line(row), flush=True)
    print(f"\n{rows.plain(found)}\n\n{rows.summary(found)}, {time.perf_counter() - started:.0f} s")
    if options.out:
        sizes = "Quick sizes: the goals are meant for the full ones.\n\n" if options.quick else ""
        options.out.write_text(f"{head}\n\n{sizes}{rows.markdown(found)}\n\n{rows.summary(found)}\n")
    for row in rows.wrong(found):
        print(f"wrong: {row.work}, {row.name}: {row.wrong}", file=sys.stderr)
    return 1 if rows.wrong(found) else 0
