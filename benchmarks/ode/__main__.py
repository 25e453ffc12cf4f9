"""odelab beside C and other libraries: `python -m benchmarks.ode [--stiff | --auto | --doctor] [--quick] [--only ...]`.

Every row sets two contestants side by side in one run, after checking their errors. Times are processor time of one
thread unless the row says otherwise, so that other work on the machine hardly counts. Ends with 1 if an answer of
odelab's is wrong, whatever the times; a missed goal is shown and is no failure.
"""

import sys

from benchmarks.harness import command
from benchmarks.ode import auto_works, doctor_works, stiff_works, works

PAGES: dict[str, command.Sections] = {
    "equations": works.SECTIONS,
    "stiff": stiff_works.SECTIONS,
    "auto": auto_works.SECTIONS,
    "doctor": doctor_works.SECTIONS,
}


def main(arguments=None) -> int:
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    page = next((name for name in PAGES if f"--{name}" in arguments), "equations")
    sections = PAGES[page]
    parser = command.parser("ode", __doc__, sections)
    parser.add_argument("--stiff", action="store_true", help="the sections on stiff problems instead of the others")
    parser.add_argument("--auto", action="store_true", help="the sections on AUTO instead of the others")
    parser.add_argument("--doctor", action="store_true", help="the sections on the advice of ol.diagnose")
    options = parser.parse_args(arguments)
    return command.run(page, options, sections, works.Size(options.quick))


if __name__ == "__main__":
    sys.exit(main())
