"""odelab beside C and beside other libraries: `python -m benchmarks.ode [--quick] [--only SECTION ...] [--out FILE]`.

Every row sets two contestants side by side in one run, after checking their errors. Times are processor time of one
thread unless the row says otherwise, so that other work on the machine hardly counts. Ends with 1 if an answer of
odelab's is wrong, whatever the times; a missed goal is shown and is no failure.
"""

import sys

from benchmarks.harness import command
from benchmarks.ode import works


def main(arguments=None) -> int:
    options = command.parser("ode", __doc__, works.SECTIONS).parse_args(arguments)
    return command.run(options, works.SECTIONS, works.Size(options.quick))


if __name__ == "__main__":
    sys.exit(main())
