"""Every rule of every study in made-up worlds, where nothing is there or the paper's claim is true (about 10 min).

A verdict is worth what its rule would say of random numbers. This command makes up evidence for each rule, 400 times
without an effect and 400 times with one of the paper's size, and counts the verdicts; pages print the row of a rule
below its verdict. `--write` puts the table where pages read it.
"""

import dataclasses
import json
from pathlib import Path

from studies.lab import calibration, verdicts
from studies.lab.command import require_at_least, start
from studies.lab.results import Results

STUDY = "calibration"


@dataclasses.dataclass
class Arguments:
    """Try the rules of all studies in made-up worlds."""

    rules: tuple[str, ...] = ()
    """Only rules whose names begin so, such as population; all by default."""
    worlds: int = verdicts.WORLDS
    """Made-up worlds of each kind."""
    seed: int = 0
    """Of the worlds."""
    write: bool = False
    """Write the rows of these rules into the table that pages read, and into docs/calibration.md of a checkout."""
    out: Path = Path("results/calibration")
    """Where table and record go."""
    smoke: bool = False
    """A run of seconds with few worlds that only shows that everything works."""


def main(arguments: Arguments):
    require_at_least(1, arguments, "worlds")
    rules = {
        name: rule
        for name, rule in calibration.rules().items()
        if rule.worlds and (not arguments.rules or name.startswith(arguments.rules))
    }
    if not rules:
        known = ", ".join(sorted({name.split(".")[0] for name in calibration.rules()}))
        raise SystemExit(f"studies.calibration: no rule begins with {', '.join(arguments.rules)}; there are {known}.")
    if arguments.smoke:
        arguments, rules = dataclasses.replace(arguments, worlds=2), dict(list(rules.items())[:3])
    results = Results(STUDY, arguments)
    rows = []
    for rule in rules.values():
        rows.append(calibration.measure(rule, arguments.worlds, arguments.seed))
        print(f"{rule.name}: {rows[-1]}", flush=True)
    results.save_table("calibration", [cells(row) for row in rows], "Rules in made-up worlds", printed=False)
    if arguments.write:
        every = {name: row for name, row in calibration.table().items() if name in calibration.rules()}
        every |= {row.rule: row for row in rows}
        kept = [dataclasses.asdict(every[name]) for name in sorted(every)]
        calibration.FILE.write_text(json.dumps(kept, indent=1) + "\n")
        calibration.table.cache_clear()
        if calibration.PAGE.parent.is_dir():
            calibration.PAGE.write_text(calibration.page())
    results.write_record()


def cells(row: calibration.Row) -> dict:
    return {
        "rule": row.rule,
        "n": f"{row.n} {row.units}",
        "decided without an effect, %": round(100 * row.alarms, 1),
        "found when planted, %": round(100 * row.found, 1),
        "at present": "" if row.now is None else f"n = {row.now}: {100 * (row.found_now or 0.0):.0f} %",
        "planted": row.effect,
    }


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
