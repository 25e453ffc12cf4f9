"""odelab beside C and other libraries: `python -m benchmarks.ode [--PAGE] [--quick] [--only ...]`.

Every row sets two contestants side by side in one run, after checking their errors. Times are processor time of one
thread unless the row says otherwise, so that other work on the machine hardly counts. Ends with 1 if an answer of
odelab's is wrong, whatever the times; a missed goal is shown and is no failure.
"""

import sys

from benchmarks.harness import command
from benchmarks.ode.works import auto, doctor, equations, processor, sensitivities, stiff

PAGES = {
    "equations": equations,
    "stiff": stiff,
    "sensitivities": sensitivities,
    "auto": auto,
    "doctor": doctor,
    "processor": processor,
}


def main(arguments=None) -> int:
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    page = next((name for name in PAGES if f"--{name}" in arguments), "equations")
    sections: command.Sections = PAGES[page].SECTIONS
    parser = command.parser("ode", __doc__, sections)
    for name in list(PAGES)[1:]:
        parser.add_argument(f"--{name}", action="store_true", help=f"the sections on {name} instead of the others")
    options = parser.parse_args(arguments)
    return command.run(page, options, sections, equations.Size(options.quick))


if __name__ == "__main__":
    sys.exit(main())
