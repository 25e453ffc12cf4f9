"""odelab beside C and beside other libraries: `python -m benchmarks.ode [--quick] [--only SECTION ...] [--out FILE]`.

Every row sets two contestants side by side in one run, after checking their errors. Times are processor time of one
thread unless the row says otherwise, so that other work on the machine hardly counts. Ends with 1 if an answer of
odelab's is wrong, whatever the times; a missed goal is shown and is no failure.
"""

import argparse
import sys
import time
from pathlib import Path

from benchmarks.harness import machine, rows
from benchmarks.ode import works


def main(arguments=None) -> int:
    options = parsed(arguments)
    head = machine.describe()
    print(head, flush=True)
    started, found = time.perf_counter(), []
    for name in options.only or works.SECTIONS:
        print(f"\n{name}: {works.SECTIONS[name].__doc__}", flush=True)
        for row in works.SECTIONS[name](works.Size(options.quick)):
            found.append(row)
            print("  " + rows.line(row), flush=True)
    print(f"\n{rows.plain(found)}\n\n{rows.summary(found)}, {time.perf_counter() - started:.0f} s")
    if options.out:
        options.out.write_text(page(head, found, options.quick))
    for row in rows.wrong(found):
        print(f"wrong: {row.work}, {row.name}: {row.wrong}", file=sys.stderr)
    return 1 if rows.wrong(found) else 0


def parsed(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ode", description=works.__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, under a minute")
    parser.add_argument("--only", nargs="+", choices=works.SECTIONS, metavar="SECTION", help=", ".join(works.SECTIONS))
    parser.add_argument("--out", type=Path, help="write the table to this Markdown file")
    return parser.parse_args(arguments)


def page(head: str, found, quick: bool) -> str:
    sizes = "Quick sizes: the goals are meant for the full ones.\n\n" if quick else ""
    return f"{head}\n\n{sizes}{rows.markdown(found)}\n\n{rows.summary(found)}\n"


if __name__ == "__main__":
    sys.exit(main())
