"""The doctor from a shell: `python -m odelab mine.py:problem` says whether a problem is stiff and what to do."""

import argparse
import sys

import odelab as ol
from odelab.doctor.shell import value_of


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m odelab", description=__doc__.split(": ", 1)[1])
    parser.add_argument(
        "problem",
        help="FILE.py:NAME of an odelab.Problem, or of a function that returns one; or a "
        "name of the catalogue, such as robertson",
    )
    parser.add_argument("--rtol", type=float, default=1e-6, help="the relative tolerance; 1e-6")
    parser.add_argument("--atol", type=float, default=1e-9, help="the absolute tolerance; 1e-9")
    parser.add_argument("--allowed", type=float, default=10.0, help="seconds for the comparison of methods; 10")
    parser.add_argument("--report", metavar="FOLDER", help="write a page with pictures into this folder, too")
    asked = parser.parse_args(arguments)
    try:
        found = ol.diagnose(named(asked.problem), asked.rtol, asked.atol, allowed=asked.allowed)
    except ValueError as error:
        parser.error(str(error))
    except ol.RunFailed as error:
        parser.exit(1, f"{error} Where a component stays below --atol = {asked.atol:g}, try a smaller one.\n")
    print(found)
    if asked.report:
        print(found.report(asked.report).resolve().as_uri())
    return 0


def named(text: str) -> ol.Problem:
    """The problem of this name: of a file, or of the catalogue."""
    if ":" not in text:
        known = {**ol.problems.catalogue(), **ol.problems.daes()}
        if text not in known:
            raise ValueError(f"there is no problem {text!r}; give FILE.py:NAME, or one of {', '.join(known)}")
        return known[text]()
    return value_of(text, ol.Problem, "problems")


if __name__ == "__main__":
    sys.exit(main())
