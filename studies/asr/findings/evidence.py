"""What the findings are computed from, and how arms and networks are compared over seeds.

Seeds are the units of every claim about networks, never their images: arms are trained with at least three seeds each,
and of networks that are looked at there are at least two of each kind.
"""

import dataclasses

import numpy as np

from studies.asr import design
from studies.lab.comparisons import dunnett, welch
from studies.lab.statistics import LEVEL, Estimate, listing, mean_over_networks
from studies.lab.verdicts import NOT_RUN, UNDECIDED, Verdict, corrected, enough, of_each

Groups = dict[str, list[float]]  # numbers by arm or by kind of network, one for each seed


@dataclasses.dataclass
class Evidence:
    """All that the findings are computed from; a part that was not looked at is empty.

    rows     results by part of the study, column and arm: {(part, column): {arm: [Result]}}
    shares, replaced  of live modules, one entry per network
    bounds, maps, spatial  records of `measures`
    painted  what networks that repaint pictures score, see `style.Painted`; `originals` are the pictures
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
    originals: np.ndarray | None = None
    speeds: dict = dataclasses.field(default_factory=dict)
    merging: list = dataclasses.field(default_factory=list)
    shapes: list = dataclasses.field(default_factory=list)

    def accuracies(self, part: str, column: str = "", noisy: bool = False) -> Groups:
        rows = self.rows.get((part, column), {})
        kind = "noisy_accuracy" if noisy else "accuracy"
        return {arm: [getattr(one, kind) for one in found] for arm, found in rows.items()}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Estimates that decide a claim about several cases, such as arms at several scales or modules.

    beyond  the estimates that decide, by case; their intervals hold together
    words   what is known, the cases that do not decide among it
    among   the numbers behind every case, one for each seed
    fewest  how many of them each needs
    units   what they are
    """

    beyond: dict[str, Estimate]
    words: str
    among: Groups
    fewest: int
    units: str = "seeds"

    @property
    def lacking(self) -> str:
        """Why nothing is judged, as the beginning of a sentence; "" where something is."""
        some = any(map(len, self.among.values()))
        return enough(self.among, self.fewest, self.units) if some and not self.beyond else ""

    def verdict(self, sign: int = 1, negligible: float = 0.0, threshold: float = 0.0) -> Verdict:
        """The verdict on the claim that all cases lie above a threshold; with a sign of -1, below it."""
        if self.beyond:
            return of_each({case: e.less(threshold) for case, e in self.beyond.items()}, sign, negligible)
        return self.undecided

    @property
    def undecided(self) -> Verdict:
        """The verdict where nothing is judged."""
        return UNDECIDED.because(f"too few {self.units}") if any(map(len, self.among.values())) else NOT_RUN


def over_seeds(
    control: str, groups: Groups, names, level: float = LEVEL, fewest: int = design.FEWEST_SEEDS
) -> dict[str, Estimate]:
    """Some arms against one: by Dunnett's intervals, which pool the deviations, and of a single arm by Welch's, which
    let the two differ; without intervals where an arm has too few seeds.
    """
    among = {name: groups.get(name, []) for name in (control, *names)}
    if not among[control]:
        return {}
    several = {name: values for name, values in among.items() if len(values) >= fewest}
    found = (welch if len(several) == 2 else dunnett)(control, several, level) if control in several else {}
    for name in names:
        if name not in found and among[name]:
            difference = float(np.mean(among[name]) - np.mean(among[control]))
            found[name] = Estimate(difference, np.nan, np.nan)
    return {name: found[name] for name in names if name in found}


def over_settings(
    control: str, settings: dict[str, Groups], names, also=(), fewest=design.FEWEST_SEEDS, form: str = "+.2f"
) -> Comparison:
    """`over_seeds` in every setting; those decide whose arms all have enough seeds.

    settings  {what it is called: {arm: accuracies}}
    names     the arms that decide
    also      arms that stand beside them, and decide where they have enough seeds
    fewest    how many seeds are enough
    form      of a number in words
    """
    arms = (control, *names)
    known = {name: groups for name, groups in settings.items() if any(groups.get(arm) for arm in (*arms, *also))}
    deciding = [name for name, groups in known.items() if fewest_seeds(groups, arms) >= fewest]
    beyond: dict[str, Estimate] = {}
    words = []
    for setting, groups in known.items():
        found = over_seeds(control, groups, (*names, *also), corrected(len(deciding)), fewest)
        counts = count_seeds(groups, (*arms, *also))
        words.append(f"{setting}: {listing(found, form)} ({counts})" if found else f"{setting}: {counts}")
        if setting in deciding:
            beyond |= {f"{name}, {setting}": e for name, e in found.items() if len(groups[name]) >= fewest}
    if empty := [name for name in settings if name not in known]:
        words.append(f"n = 0: {', '.join(empty)}")
    among = {f"{arm}, {name}": groups.get(arm, []) for name, groups in known.items() for arm in arms}
    return Comparison(beyond, "; ".join(words), among, fewest)


def over_networks(kinds: Groups, form: str = "+.2f", least: float = -np.inf, most: float = np.inf) -> Comparison:
    """The mean of one number per network for every kind, by Student's intervals; those decide that have two networks.

    Every kind has its own deviation: those of modules differ by a factor of ten and more.

    kinds  numbers by kind, one for each network
    form   of a number in words
    least, most  what the mean can be; intervals end there
    """
    kinds = {name: values for name, values in kinds.items() if values}
    several = [name for name, values in kinds.items() if len(values) >= design.FEWEST_NETWORKS]
    means = {name: mean_over_seeds(values, corrected(len(several))) for name, values in kinds.items()}
    means = {name: dataclasses.replace(e, low=max(e.low, least), high=min(e.high, most)) for name, e in means.items()}
    words = f"{listing(means, form)} ({count_seeds(kinds, kinds)})" if kinds else "n = 0"
    deciding = {name: means[name] for name in several}
    return Comparison(deciding, words, kinds, design.FEWEST_NETWORKS, "networks")


def mean_over_seeds(values: list[float], level: float = LEVEL) -> Estimate:
    """The mean with Student's interval; without one where nothing varies, as two rounded numbers do by chance."""
    if np.ptp(values) > 0.0:
        return mean_over_networks(values, level)
    return Estimate(float(np.mean(values)), np.nan, np.nan, n=len(values))


def fewest_seeds(groups: Groups, names) -> int:
    return min(len(groups.get(name, [])) for name in names)


def count_seeds(groups: Groups, names) -> str:
    """How many seeds every arm has, in words: arms with as many seeds stand together."""
    counts: dict[int, list[str]] = {}
    for name in names:
        counts.setdefault(len(groups.get(name, [])), []).append(name)
    if len(counts) == 1:
        return f"n = {next(iter(counts))} each"
    return "; ".join(f"n = {count}: {', '.join(found)}" for count, found in sorted(counts.items(), reverse=True))


def exponential_text(e: Estimate, form: str = ".2f") -> str:
    """A positive number with its interval, of which the logarithm is known."""
    if not np.isfinite(e.value):
        return "undefined"
    value, low, high = np.exp([e.value, e.low, e.high])
    return f"{value:{form}} [{low:{form}}, {high:{form}}]" if np.isfinite(low) else f"{value:{form}}"


def group_by_name(networks) -> dict[str, list]:
    found: dict[str, list] = {}
    for one in networks:
        found.setdefault(one.name, []).append(one)
    return found
