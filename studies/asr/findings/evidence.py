"""What the findings are computed from, and how arms are compared: over seeds, and over scales, noises or backbones."""

import dataclasses

import numpy as np

from studies.lab.comparisons import dunnett, verdict_of_intervals
from studies.lab.statistics import UNDECIDED, Estimate, Finding, listing

FEWEST_SEEDS = 3
NOT_LOOKED_AT = "these networks were not looked at in this run"


@dataclasses.dataclass
class Evidence:
    """All that the findings are computed from; a part that was not looked at is empty.

    rows     results by part of the study, column and arm: {(part, column): {arm: [Result]}}
    shares, replaced  of live modules, one entry per network
    bounds, maps, spatial  records of `measures`
    painted  what networks that repaint pictures score, see `style.Painted`
    attention  records of `measures` on transformers
    speeds   {size of the images: {name: (ratio to plain, quartiles)}}
    merging, shapes  rows about backbones: errors of merging, and what is a step in them
    """

    rows: dict = dataclasses.field(default_factory=dict)
    shares: list = dataclasses.field(default_factory=list)
    replaced: list = dataclasses.field(default_factory=list)
    bounds: list = dataclasses.field(default_factory=list)
    maps: list = dataclasses.field(default_factory=list)
    spatial: list = dataclasses.field(default_factory=list)
    attention: list = dataclasses.field(default_factory=list)
    painted: list = dataclasses.field(default_factory=list)
    speeds: dict = dataclasses.field(default_factory=dict)
    merging: list = dataclasses.field(default_factory=list)
    shapes: list = dataclasses.field(default_factory=list)

    def accuracies(self, part: str, column: str = "", noisy: bool = False) -> dict[str, list[float]]:
        rows = self.rows.get((part, column), {})
        kind = "noisy_accuracy" if noisy else "accuracy"
        return {arm: [getattr(one, kind) for one in found] for arm, found in rows.items()}


def over_seeds(control: str, groups: dict[str, list[float]], names) -> dict[str, Estimate]:
    """Dunnett's comparisons of some arms with one; without intervals where an arm has too few seeds."""
    among = {name: groups.get(name, []) for name in (control, *names)}
    if not among[control]:
        return {}
    enough = {name: values for name, values in among.items() if len(values) >= FEWEST_SEEDS}
    found = dunnett(control, enough) if control in enough else {}
    for name in names:
        if name not in found and among[name]:
            difference = float(np.mean(among[name]) - np.mean(among[control]))
            found[name] = Estimate(difference, np.nan, np.nan)
    return {name: found[name] for name in names if name in found}


def over_settings(
    control: str, settings: dict[str, dict[str, list[float]]], names, also=()
) -> tuple[dict[str, Estimate], str]:
    """`over_seeds` in every setting: the comparisons where all arms have enough seeds, and what is known, in words.

    settings  {what it is called: {arm: accuracies}}
    names     the arms that decide
    also      arms that are told beside them, and count where they have enough seeds
    """
    beyond: dict[str, Estimate] = {}
    words, empty = [], []
    for setting, groups in settings.items():
        if not any(groups.get(name) for name in (control, *names, *also)):
            empty.append(setting)
            continue
        found = over_seeds(control, groups, (*names, *also))
        if fewest_seeds(groups, (control, *names)) >= FEWEST_SEEDS:
            beyond |= {f"{name}, {setting}": one for name, one in found.items() if np.isfinite(one.low)}
        counts = count_seeds(groups, (control, *names, *also))
        words.append(f"{setting}: {listing(found)} ({counts})" if found else f"{setting}: {counts}")
    if empty:
        words.append(f"n = 0: {', '.join(empty)}")
    return beyond, "; ".join(words)


def fewest_seeds(groups, names) -> int:
    return min(len(groups.get(name, [])) for name in names)


def count_seeds(groups, names) -> str:
    """How many seeds every arm has, in words: arms with as many seeds stand together."""
    counts: dict[int, list[str]] = {}
    for name in names:
        counts.setdefault(len(groups.get(name, [])), []).append(name)
    if len(counts) == 1:
        return f"n = {next(iter(counts))} each"
    return "; ".join(f"n = {count}: {', '.join(found)}" for count, found in sorted(counts.items(), reverse=True))


def verdict_if_complete(beyond: dict[str, Estimate], names, sign: int = 1) -> str:
    """`verdict_of_intervals` over all the cases that the claim is about: one that is missing leaves it open."""
    verdict = verdict_of_intervals(beyond, sign) if beyond else UNDECIDED
    complete = set(names) <= set(beyond) and all(np.isfinite(e.low) for e in beyond.values())
    return verdict if complete else UNDECIDED


def unmeasured_finding(claim: str, where: str, why: str) -> Finding:
    return Finding(claim, where, UNDECIDED, f"n = 0: {why}.")


def group_by_name(networks) -> dict[str, list]:
    found: dict[str, list] = {}
    for one in networks:
        found.setdefault(one.name, []).append(one)
    return found
