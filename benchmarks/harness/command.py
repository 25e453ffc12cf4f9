"""The command line that all benchmarks share: run sections, print their rows, write the table.

A section is a function that takes a Size and yields rows; its docstring is its title. What is wrong fails the command,
a missed goal is shown and does not.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness import machine, records, rows

Sections = dict[str, Callable]


def parser(name: str, description: str, sections: Sections) -> argparse.ArgumentParser:
    """The options of every benchmark: --quick, --only, --out."""
    made = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    made.add_argument("--quick", action="store_true", help="small sizes, under a minute, not those of the goals")
    made.add_argument("--only", nargs="+", choices=sections, metavar="SECTION", help=", ".join(sections))
    made.add_argument("--out", type=Path, help="write the table to this Markdown file")
    made.add_argument("--record", type=Path, help="keep each section in this record; those it has are not run again")
    made.add_argument("--anew", action="store_true", help="run those, too")
    return made


def left(page: str, options: argparse.Namespace, sections: Sections) -> list[str]:
    """The sections that the record does not have yet."""
    parts = records.load(options.record).parts if options.record and not options.anew else {}
    has = {name for name, part in parts.items() if part.stands_for(records.commit(), options.quick)}
    return [name for name in sections if f"{page}/{name}" not in has]


def run(page: str, options: argparse.Namespace, sections: Sections, size, about: str = "") -> int:
    """Print every section's rows as they come, then the table; 1 if an answer was wrong.

    page        name of the page, under which a record keeps the sections
    options     what `parser` read
    sections    title to function
    size        handed to every section
    about       a line more on how things were measured, under the description of the machine
    """
    head = "\n".join(line for line in (machine.describe(), about) if line)
    print(head, flush=True)
    started, found = time.perf_counter(), []
    for name in options.only or left(page, options, sections):
        print(f"\n{name}: {sections[name].__doc__}", flush=True)
        began, mine = (machine.load(), machine.processor_seconds()), []
        for row in sections[name](size):
            mine.append(row)
            print("  " + rows.line(row), flush=True)
        if options.record:
            title = " ".join((sections[name].__doc__ or name).split("\n\n")[0].split())
            part = records.measured_now(title, began, options.quick, mine)
            records.keep(options.record, page, list(sections), name, part)
        found += mine
    print(f"\n{rows.plain(found)}\n\n{rows.summary(found)}, {time.perf_counter() - started:.0f} s")
    if options.out:
        sizes = "Quick sizes: the goals are meant for the full ones.\n\n" if options.quick else ""
        options.out.write_text(f"{head}\n\n{sizes}{rows.markdown(found)}\n\n{rows.summary(found)}\n")
    for row in rows.wrong(found):
        print(f"wrong: {row.work}, {row.name}: {row.wrong}", file=sys.stderr)
    return 1 if rows.wrong(found) else 0
