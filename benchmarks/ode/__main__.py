"""odelab beside C and other libraries: `python -m benchmarks.ode [--PAGE] [--quick] [--only ...]`.

Every row sets two contestants side by side in one run, after checking their errors. Times are processor time of one
thread unless the row says otherwise, so that other work on the machine hardly counts. Ends with 1 if an answer of
odelab's is wrong, whatever the times; a missed goal is shown and is no failure.
"""

import sys

from benchmarks.harness import command
from benchmarks.ode import auto_works, doctor_works, processor_works, sensitivity_works, stiff_works, works

PAGES: dict[str, command.Sections] = {
    "equations": works.SECTIONS,
    "stiff": stiff_works.SECTIONS,
    "sensitivities": sensitivity_works.SECTIONS,
    "auto": auto_works.SECTIONS,
    "doctor": doctor_works.SECTIONS,
    "processor": processor_works.SECTIONS,
}


def main(arguments=None) -> int:
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    page = next((name for name in PAGES if f"--{name}" in arguments), "equations")
    sections = PAGES[page]
    parser = command.parser("ode", __doc__, sections)
    for name in list(PAGES)[1:]:
        parser.add_argument(f"--{name}", action="store_true", help=f"the sections on {name} instead of the others")
    options = parser.parse_args(arguments)
    return command.run(page, options, sections, works.Size(options.quick))


if __name__ == "__main__":
    sys.exit(main())
