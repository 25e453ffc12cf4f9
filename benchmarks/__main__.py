"""All benchmarks, page after page: `python -m benchmarks [--quick] [--out FOLDER]`.

It says beforehand how long that takes. Every page runs in a process of its own, as `python -m benchmarks.ode --stiff`
does. Ends with 1 if an answer was wrong.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Page(NamedTuple):
    """One of the pages: its command, and about how many minutes of one processor it takes in full and with --quick."""

    name: str
    command: tuple[str, ...]
    full: float
    quick: float


PAGES = (
    Page("equations", ("benchmarks.ode",), 25.0, 3.0),
    Page("stiff", ("benchmarks.ode", "--stiff"), 20.0, 2.0),
    Page("auto", ("benchmarks.ode", "--auto"), 8.0, 1.0),
    Page("doctor", ("benchmarks.ode", "--doctor"), 30.0, 1.0),
    Page("networks", ("benchmarks.net",), 20.0, 2.0),
)


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, not those of the goals")
    parser.add_argument("--out", type=Path, help="write each page's table to a Markdown file in this folder")
    options = parser.parse_args(arguments)
    minutes = [page.quick if options.quick else page.full for page in PAGES]
    for page, long in zip(PAGES, minutes, strict=True):
        print(f"python -m {' '.join(page.command)}: about {long:g} minutes")
    print(f"about {sum(minutes):g} minutes in all, more on a busy machine\n", flush=True)
    codes = []
    for page in PAGES:
        command = [sys.executable, "-m", *page.command, *(["--quick"] if options.quick else [])]
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            command += ["--out", str(options.out / f"{page.name}.md")]
        codes.append(subprocess.run(command, check=False).returncode)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
