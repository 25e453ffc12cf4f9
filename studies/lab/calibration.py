"""The calibration of the rules: how often each decides in made-up worlds, as `python -m studies.calibration` counted.

A row says of one rule: in what share of worlds without an effect it claims one, and in what share of worlds with an
effect of the paper's size it says so, at the number of units that its design names and at the present one.
"""

import dataclasses
import functools
import importlib
import json
import pkgutil
from pathlib import Path

import studies
from studies.lab import verdicts

FILE = Path(__file__).parent / "calibration.json"
PAGE = Path(studies.__file__).parent.parent / "docs" / "calibration.md"  # of a checkout
HEAD = """# How often the rules of the studies decide

Every rule that turns numbers into a verdict (`studies/lab/verdicts.py`) was tried in made-up worlds: in worlds without
an effect, where it should claim one in at most 5 % (an exact rule errs in just 5 %, so that of {worlds} worlds up to
8 % are chance), and in worlds with an effect of the paper's size, which it should find in 80 % at the number of units
that its design names. Where there are fewer at present, the last column says what they find. Rules about arithmetic
have no worlds. Written by `python -m studies.calibration --write`; a test tries the rules again.

| claim | rule | n | claims an effect without one | finds | at present |
|---|---|---|---|---|---|
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """What the calibration says of one rule.

    rule, claim  its name and the claim it judges
    worlds     how many worlds of each kind were made up
    n, units   how many units the design names, and what they are
    effect     what was planted
    alarms     the share of worlds without an effect in which the rule claims one
    found      the share of worlds with the effect in which the rule says so
    now        how many units there are at present, where that is another number
    found_now  the share of worlds with the effect in which it says so with `now` units
    """

    rule: str
    claim: str
    worlds: int
    n: int
    units: str
    effect: str
    alarms: float
    found: float
    now: int | None = None
    found_now: float | None = None

    def __str__(self):
        words = (
            f"In {self.worlds} made-up worlds without an effect the rule claims one in {100 * self.alarms:.0f} %. An "
            f"effect of {self.effect} it finds in {100 * self.found:.0f} % of the worlds with n = {self.n} {self.units}"
        )
        if self.now is None:
            return f"{words}."
        return f"{words}, and in {100 * (self.found_now or 0.0):.0f} % with the n = {self.now} that there are."


def rules(study: str = "") -> dict[str, verdicts.Rule]:
    """Every rule of a study, or of all, by its name: those that a module holds, alone or in a tuple or dictionary.

    A rule of `studies.lab.claims` belongs to each study that asks it.
    """
    rules: dict[str, verdicts.Rule] = {}
    for module in pkgutil.walk_packages(studies.__path__, "studies."):
        parts = module.name.split(".")
        if study in ("", parts[1]) and parts[-1] != "__main__":
            for value in vars(importlib.import_module(module.name)).values():
                several = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
                rules |= {one.name: one for one in several if isinstance(one, verdicts.Rule)}
    return rules


def measure(rule: verdicts.Rule, worlds: int = verdicts.WORLDS, seed: int = 0) -> Row:
    """The row of a rule that has worlds, by trying it in `worlds` of each kind."""
    made = rule.worlds
    if made is None:
        raise ValueError(f"the rule {rule.name} has no worlds: {rule.exempt}.")

    def share(effect, n):
        said = verdicts.calibrate(rule, effect, n, worlds, seed)
        return verdicts.share_supporting(said) if effect else verdicts.share_claiming(said)

    now = {} if made.now is None else {"now": made.now, "found_now": share(1.0, made.now)}
    about = (rule.name, rule.claim, worlds, made.n, made.units, made.effect)
    return Row(*about, share(0.0, made.n), share(1.0, made.n), **now)


@functools.cache
def table() -> dict[str, Row]:
    """The rows that were counted, by the name of the rule."""
    rows = json.loads(FILE.read_text()) if FILE.is_file() else []
    return {row["rule"]: Row(**row) for row in rows}


def page() -> str:
    """The table as a page of the documentation."""
    rows = table().values()
    lines = [
        f"| {row.claim} | `{row.rule}` | {row.n} {row.units} | {100 * row.alarms:.1f} % | {100 * row.found:.0f} % of "
        f"{row.effect} | {'' if row.now is None else f'n = {row.now}: {100 * (row.found_now or 0.0):.0f} %'} |\n"
        for row in rows
    ]
    return HEAD.format(worlds=max((row.worlds for row in rows), default=0)) + "".join(lines)


def sentence(rule: verdicts.Rule) -> str:
    """What a page says of the calibration of a rule."""
    if rule.worlds is None:
        return f"It is not tried in made-up worlds: {rule.exempt}."
    row = table().get(rule.name)
    return str(row) if row else "It has not been tried in made-up worlds yet: python -m studies.calibration."
