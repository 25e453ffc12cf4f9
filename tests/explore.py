"""Search for counter-examples: `python -m tests.explore [--minutes 60] [--processes 2] [TESTS ...]`, or `make explore`.

Runs the property tests (those written with Hypothesis) again and again with fresh random examples, in rounds, until the
time is over or a round finds something. TESTS are files, folders or test names as pytest takes them; by default
everything under tests/. A find is printed as pytest prints it, with the falsifying example; Hypothesis keeps it in
`.hypothesis/`, so that the next round tries it first. Ends with 1 if anything was found.
"""

import argparse
import os
import subprocess
import sys
import time


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.explore", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="how long to search (60)")
    parser.add_argument("--processes", type=int, default=2, help="test processes side by side (2)")
    parser.add_argument("--examples", type=int, default=400, help="examples a property and round (400)")
    parser.add_argument("tests", nargs="*", default=["tests"], help="files, folders or tests (all)")
    options = parser.parse_args(arguments)
    environment = os.environ | {"HYPOTHESIS_PROFILE": "explore", "EXAMPLES": str(options.examples)}
    command = [sys.executable, "-m", "pytest", "-q", "-m", "hypothesis", "--timeout", "0"]
    command += ["-n", str(options.processes), "--dist", "worksteal", *options.tests]
    end, rounds = time.monotonic() + 60.0 * options.minutes, 0
    while rounds == 0 or time.monotonic() < end:
        rounds += 1
        code = subprocess.run(command, env=environment).returncode
        if code == 5:
            print(f"no property test among {', '.join(options.tests)}: name a file, a folder or a test under tests/.")
            return 2
        if code:
            print(f"round {rounds} found something; the examples above are kept in .hypothesis/.")
            return 1
    print(f"{rounds} rounds without a find.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
