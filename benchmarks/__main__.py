"""All benchmarks, page after page, into one record: `python -m benchmarks [--quick] [--anew] [--record FILE]`.

It says beforehand how long that takes. Every page runs in a process of its own, as `python -m benchmarks.ode --stiff`
does, and each section is kept when it ends: what the record has of this commit is not measured again, so that the same
command goes on where it stopped. At the end docs/speed.md is written from the record. It ends with 1 if an answer was
wrong.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks import page as written
from benchmarks.harness import records


class Page(NamedTuple):
    """One of the pages: its command, and about how many minutes of one processor it takes in full and with --quick."""

    name: str
    command: tuple[str, ...]
    full: float
    quick: float


PAGES = (
    Page("equations", ("benchmarks.ode",), 25.0, 3.0),
    Page("stiff", ("benchmarks.ode", "--stiff"), 20.0, 2.0),
    Page("sensitivities", ("benchmarks.ode", "--sensitivities"), 5.0, 2.0),
    Page("auto", ("benchmarks.ode", "--auto"), 8.0, 1.0),
    Page("doctor", ("benchmarks.ode", "--doctor"), 30.0, 1.0),
    Page("networks", ("benchmarks.net",), 20.0, 2.0),
    Page("processor", ("benchmarks.ode", "--processor"), 2.0, 0.5),
)


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, not those of the goals")
    parser.add_argument("--anew", action="store_true", help="measure what the record has, too")
    parser.add_argument("--record", type=Path, help="the record's file; for small sizes there is none without it")
    options = parser.parse_args(arguments)
    minutes = [page.quick if options.quick else page.full for page in PAGES]
    for page, long in zip(PAGES, minutes, strict=True):
        print(f"python -m {' '.join(page.command)}: about {long:g} minutes")
    print(f"about {sum(minutes):g} minutes in all, more on a busy machine\n", flush=True)
    record = options.record or (None if options.quick else records.path_here())
    given = [*(["--quick"] if options.quick else []), *(["--anew"] if options.anew else [])]
    given += ["--record", str(record)] if record else []
    codes = [subprocess.run([sys.executable, "-m", *page.command, *given], check=False).returncode for page in PAGES]
    if record == records.path_here():
        written.write()
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
