"""Verdicts: the only place where an interval becomes a word, and the rules of the studies as data.

| verdict | what it means |
|---|---|
| supported, contradicted | the whole interval lies on the claimed side, or on the other one |
| no difference | the whole interval lies within +-d of zero, d having been written down before the data |
| true of some, the rest undecided | at least one case is supported, and no case speaks against the claim |
| false of some, the rest undecided | at least one case is contradicted, and no case speaks for the claim |
| true of some, false of others | at least one case is supported, at least one contradicted or without difference |
| depends on the reading | readings of the paper differ in verdict |
| undecided | the interval allows both; the verdict says how many units would decide it |
| not run | nothing was measured |
| cannot be asked here | the measure is not defined on these networks, or the rule would be true of any numbers |

Several intervals that are judged together have to hold together: whoever asks `asked` questions computes each interval
at the level `corrected(asked)`, or by a procedure that covers all of them at once, such as Dunnett's.

A `Rule` joins a claim of a paper with the function that judges it, the text of the rule, and made-up worlds in which
the claim is true or nothing is there. `calibrate` counts how often the rule decides in such worlds: a rule that decides
about random numbers says nothing of measured ones.
"""

import collections
import dataclasses
import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from studies.lab.statistics import FEWEST, LEVEL, Correlation, Estimate, KindRelation

BEFORE = "before the data"
WORLDS = 400  # made-up worlds of each kind in which a rule is tried
CHANCE = 1.0 - LEVEL  # the share of worlds without an effect in which a rule may claim one


@dataclasses.dataclass(frozen=True)
class Case:
    """An interval that a verdict rests on, as the strip of claims shows it.

    name      what the interval is of, such as a controller under a reading; "" for the only one
    estimate  the interval; what it is compared with is 0, or `estimate.origin` as it was measured
    needed    how many units would decide it; None where it is decided, or no number would do
    """

    name: str
    estimate: Estimate
    needed: int | None = None


@dataclasses.dataclass(frozen=True)
class Verdict:
    """One of the words of the table above. Verdicts of one kind are equal, whatever their details.

    kind    the words
    detail  what stands behind them: how many cases, which margin, how many units would decide; "" for nothing
    cases   the intervals that it rests on
    """

    kind: str
    detail: str = dataclasses.field(default="", compare=False)
    cases: tuple[Case, ...] = dataclasses.field(default=(), compare=False, repr=False, metadata={"recorded": False})

    def __str__(self):
        return f"{self.kind} ({self.detail})" if self.detail else self.kind

    def because(self, detail: str) -> "Verdict":
        """The same verdict with another detail."""
        return dataclasses.replace(self, detail=detail)

    def resting_on(self, *verdicts: "Verdict", names: Iterable = ()) -> "Verdict":
        """The same verdict with the cases of others, which it was made of.

        verdicts  the others
        names     what each of them is of, to stand before the names of its cases
        """
        pairs = zip(verdicts, itertools.chain(names, itertools.repeat("")), strict=False)
        return dataclasses.replace(self, cases=tuple(named(case, name) for one, name in pairs for case in one.cases))

    @property
    def claims_effect(self) -> bool:
        """Does it say that something is there, on either side? In a world without an effect that is an error."""
        return self in EFFECTS


def named(case: Case, name: Any) -> Case:
    """The same case with what it is of before its name; the parts of a reading stand side by side."""
    words = " ".join(name) if isinstance(name, tuple) else str(name)
    return dataclasses.replace(case, name=", ".join(filter(None, (words, case.name))))


SUPPORTED, CONTRADICTED = Verdict("supported"), Verdict("contradicted")
NO_DIFFERENCE = Verdict("no difference")
TRUE_OF_SOME = Verdict("true of some, the rest undecided")
FALSE_OF_SOME = Verdict("false of some, the rest undecided")
SPLIT = Verdict("true of some, false of others")
BY_READING = Verdict("depends on the reading")
UNDECIDED, NOT_RUN = Verdict("undecided"), Verdict("not run")
NOT_ASKABLE = Verdict("cannot be asked here")
KINDS = (
    *(SUPPORTED, CONTRADICTED, NO_DIFFERENCE, TRUE_OF_SOME, FALSE_OF_SOME, SPLIT, BY_READING),
    *(UNDECIDED, NOT_RUN, NOT_ASKABLE),
)
EFFECTS = frozenset({SUPPORTED, CONTRADICTED, TRUE_OF_SOME, FALSE_OF_SOME, SPLIT, BY_READING})
OPEN = frozenset({UNDECIDED, NOT_RUN, NOT_ASKABLE})  # verdicts that decide nothing


def corrected(asked: int) -> float:
    """The level of each of `asked` intervals that are to hold together (Bonferroni)."""
    return 1.0 - CHANCE / max(asked, 1)


def of_interval(e: Estimate, sign: int = 1, negligible: float = 0.0) -> Verdict:
    """The verdict of one interval on the claim that a number is above zero.

    e           the estimate; without an interval nothing is decided
    sign        -1 for the claim that it is below zero
    negligible  a number that is so near to zero makes no difference; 0 where no such margin was written down

    Returns supported, contradicted, no difference or undecided. An interval that lies on one side of zero and within
    the margin shows an effect, and the detail says how small it is.

    >>> from studies.lab.statistics import Estimate
    >>> print(of_interval(Estimate(0.3, 0.1, 0.5)), of_interval(Estimate(0.3, 0.1, 0.5), sign=-1))
    supported contradicted
    >>> print(of_interval(Estimate(0.02, -0.06, 0.1), negligible=0.15))
    no difference (beyond 0.15)
    >>> print(of_interval(Estimate(0.2, -0.2, 0.6, n=5)))
    undecided (n = 5, about 20 would decide it if the estimate stayed)
    """
    verdict = side_of(e, sign, negligible)
    needed = n_needed(e, negligible) if verdict == UNDECIDED else None
    return dataclasses.replace(verdict, cases=(Case("", e, needed),))


def side_of(e: Estimate, sign: int, negligible: float) -> Verdict:
    """On which side of zero an interval lies, as `of_interval` says it."""
    low, high = sorted((sign * e.low, sign * e.high))
    if math.isnan(low) or math.isnan(high):
        return UNDECIDED.because("too few for an interval")
    small = f"but by less than {negligible:g}" if max(-low, high) <= negligible else ""
    if low > 0.0:
        return SUPPORTED.because(small)
    if high < 0.0:
        return CONTRADICTED.because(small)
    if small:
        return NO_DIFFERENCE.because(f"beyond {negligible:g}")
    return UNDECIDED.because(say_needed(n_needed(e, negligible), e.n))


def of_robust(e: Estimate, without: Mapping[str, Estimate], sign: int = 1, negligible: float = 0.0) -> Verdict:
    """The verdict of one interval, where leaving out any one group of units does not change it.

    e        the estimate over all units
    without  the estimates over all units but those of one group, by its name
    sign, negligible  as in `of_interval`

    >>> from studies.lab.statistics import Estimate
    >>> print(of_robust(Estimate(0.3, 0.1, 0.5), {"SE": Estimate(0.3, 0.1, 0.5), "SEM": Estimate(0.0, -0.2, 0.2)}))
    undecided (supported, but not without SEM)
    """
    verdict = of_interval(e, sign, negligible)
    turning = [name for name, rest in without.items() if of_interval(rest, sign, negligible) != verdict]
    if verdict.claims_effect and turning:
        return UNDECIDED.because(f"{verdict.kind}, but not without {', '.join(turning)}").resting_on(verdict)
    return verdict


def of_closeness(e: Estimate, target: float, margin: float) -> Verdict:
    """The verdict on the claim that a number is about `target`: is the interval within `margin` of it, or beyond?

    >>> from studies.lab.statistics import Estimate
    >>> print(of_closeness(Estimate(27.0, 26.0, 28.0), target=28.0, margin=5.0))
    supported
    """
    apart = e.less(target)
    if math.isnan(apart.low) or math.isnan(apart.high):
        verdict = UNDECIDED.because("too few for an interval")
    elif -margin <= apart.low and apart.high <= margin:
        verdict = SUPPORTED
    elif apart.low > margin or apart.high < -margin:
        verdict = CONTRADICTED
    else:
        verdict = UNDECIDED.because("the interval is wider than that")
    return dataclasses.replace(verdict, cases=(Case("", apart),))


def of_strength(e: Estimate, least: float, sign: int = 1, negligible: float = 0.0) -> Verdict:
    """The verdict on the claim that a number is above zero by more than `least`, where "no" is a weaker or no effect.

    e           the estimate
    least       how far beyond zero the claimed effect lies
    sign        -1 for the claim that it is below -`least`
    negligible  a number that is so near to zero is no effect, whatever its sign

    Supported where the whole interval lies beyond `least`, no difference where it lies within the margin, contradicted
    where it lies on the other side of zero; else undecided, although it may be known to be above zero.

    >>> from studies.lab.statistics import Estimate
    >>> weak, none = Estimate(0.1, 0.02, 0.18), Estimate(0.0, -0.1, 0.1)
    >>> print(of_strength(weak, 0.3), of_strength(none, 0.3, negligible=0.15), sep="; ")
    undecided (above 0 by less than 0.3); no difference (beyond 0.15)
    """
    beyond, plain = of_interval(e.less(sign * least), sign), of_interval(e, sign, negligible)
    if beyond == SUPPORTED:
        return beyond
    if plain != SUPPORTED:
        return plain
    if max(abs(e.low), abs(e.high)) <= negligible:
        return NO_DIFFERENCE.because(f"beyond {negligible:g}").resting_on(plain)
    by = f"by less than {least:g}" if beyond == CONTRADICTED else f"by {least:g} or less"
    return UNDECIDED.because(f"{'above' if sign > 0 else 'below'} 0 {by}").resting_on(beyond)


def of_correlation(found: Correlation, sign: int = 1, negligible: float = 0.0) -> Verdict:
    """The verdict on a monotone relation: both coefficients must say it, by their intervals and by their p-values.

    found       the correlations
    sign        -1 for the claim that the one falls where the other rises
    negligible  Kendall's tau within so much of zero is no relation to speak of
    """
    both = [of_interval(e, sign, negligible) for e in (found.kendall, found.spearman)]
    certain = max(found.kendall_p, found.spearman_p) < 1.0 - found.level
    if found.n >= FEWEST and (both[0] == NO_DIFFERENCE or (certain and both[0] == both[1])):
        return both[0]
    needed = n_needed(found.kendall, negligible) if found.n >= FEWEST else FEWEST
    few = f"{FEWEST} pairs are the least, n = {found.n}" if found.n < FEWEST else say_needed(needed, found.n)
    return dataclasses.replace(UNDECIDED.because(few), cases=(Case("", found.kendall, needed),))


def of_kinds(found: KindRelation, sign: int = 1, negligible: float = 0.0) -> Verdict:
    """The verdict on a monotone relation over kinds of networks, where leaving out any one kind does not change it."""
    verdict = of_correlation(found.whole, sign, negligible)
    if not verdict.claims_effect:
        return verdict
    turning = [name for name, one in found.without.items() if of_correlation(one, sign, negligible) != verdict]
    if not turning:
        return verdict
    return UNDECIDED.because(f"{verdict.kind}, but not without {', '.join(turning)}").resting_on(verdict)


def of_each(estimates: Mapping[str, Estimate], sign: int = 1, negligible: float = 0.0) -> Verdict:
    """The verdict on a claim about several cases, whose intervals hold together.

    estimates         the cases
    sign, negligible  as in `of_interval`

    >>> from studies.lab.statistics import Estimate
    >>> beyond, open_ = Estimate(2.0, 1.0, 3.0), Estimate(0.5, -1.0, 2.0)
    >>> print(of_each({"SE": beyond, "ECA": open_}))
    true of some, the rest undecided (1 of 2)
    >>> print(of_each({"SE": beyond, "ECA": open_}, sign=-1))
    false of some, the rest undecided (1 of 2)
    >>> print(of_each({"ECA": Estimate(0.5, -0.5, 1.5, n=3), "SRM": Estimate(0.2, -0.8, 1.2, n=3)}))
    undecided (in 2 of 2; n = 3, about 12 would decide the first of them if its estimate stayed)
    """
    each = [of_interval(e, sign, negligible) for e in estimates.values()]
    verdict = of_cases(each).resting_on(*each, names=estimates)
    undecided = [e for e in estimates.values() if of_interval(e, sign, negligible) == UNDECIDED]
    needed = [(number, e.n) for e in undecided if (number := n_needed(e, negligible))]
    if verdict != UNDECIDED or len(estimates) == 1 or not needed:
        return verdict
    least, n = min(needed)
    rest = "" if len(undecided) == len(estimates) else ", no difference in the rest"
    about = f"n = {n}, about {least:,} would decide the first of them if its estimate stayed"
    return verdict.because(f"in {len(undecided)} of {len(estimates)}{rest}; {about}")


def of_cases(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict from those of several cases that a claim is about; each is of `of_interval` or its like."""
    verdicts = list(verdicts)
    return count_cases(verdicts).resting_on(*verdicts)


def count_cases(verdicts: list[Verdict]) -> Verdict:
    """The verdict of `of_cases`, which adds the intervals."""
    counts = collections.Counter(verdicts)
    right, wrong, same, total = counts[SUPPORTED], counts[CONTRADICTED], counts[NO_DIFFERENCE], len(verdicts)
    shown = right + wrong + same
    if not total:
        return NOT_RUN
    if total == 1:
        return verdicts[0]
    if len(counts) == 1 and verdicts[0] != UNDECIDED:
        return verdicts[0].because(f"{total} of {total}")
    if right and wrong + same:
        return SPLIT.because(f"{right} true, {wrong + same} false, of {total}")
    if right:
        return TRUE_OF_SOME.because(f"{right} of {total}")
    if wrong and shown == total:
        return CONTRADICTED.because(f"{wrong} the other way, {same} without a difference, of {total}")
    if wrong:
        return FALSE_OF_SOME.because(f"{wrong + same} of {total}")
    return UNDECIDED.because(f"no difference in {same} of {total}" if same else f"0 of {total} decided")


def of_parts(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a claim all of whose parts have to be true: it falls with any of them.

    Each part is of `of_interval` or its like, at the level `corrected` to the number of parts where one of them alone
    may decide against the claim.

    >>> print(of_parts([SUPPORTED, UNDECIDED]), of_parts([SUPPORTED, CONTRADICTED]), sep="; ")
    undecided (1 of 2 parts supported); contradicted (1 of 2 parts)
    """
    verdicts = list(verdicts)
    counts = collections.Counter(verdicts)
    if len(counts) <= 1:
        return verdicts[0].because("").resting_on(*verdicts) if verdicts else NOT_RUN
    for against in (CONTRADICTED, NO_DIFFERENCE):
        if counts[against]:
            return against.because(f"{counts[against]} of {len(verdicts)} parts").resting_on(*verdicts)
    return UNDECIDED.because(f"{counts[SUPPORTED]} of {len(verdicts)} parts supported").resting_on(*verdicts)


def agreement(verdicts: Iterable[Verdict], of: str = "cases") -> Verdict:
    """The verdict on a claim that has to be decided alike everywhere, such as at every tolerance.

    verdicts  of every place; because all of them have to agree, their intervals need no correction for their number
    of        what the places are, in the detail

    Alike: that verdict. Supported here and contradicted or without a difference there: it depends on the reading.
    Anything else is open, because an interval that is open in one place does not show that the place matters.

    >>> print(agreement([SUPPORTED, UNDECIDED], "errors"), agreement([SUPPORTED, CONTRADICTED]), sep="; ")
    undecided (supported at 1 of 2 errors); depends on the reading (supported at 1 of 2 cases, contradicted at 1)
    """
    verdicts = list(verdicts)
    counts = collections.Counter(verdicts)
    if len(counts) <= 1:
        return verdicts[0].because("").resting_on(*verdicts) if verdicts else NOT_RUN
    said = [kind for kind in KINDS if counts[kind] and kind not in OPEN]
    parts = [f"{kind.kind} at {counts[kind]}" for kind in said]
    if parts:
        parts[0] += f" of {len(verdicts)} {of}"
    both = SUPPORTED in said and len(said) > 1
    return (BY_READING if both else UNDECIDED).because(", ".join(parts)).resting_on(*verdicts)


def joint(verdicts: Mapping[Any, Verdict] | Iterable[Verdict]) -> Verdict:
    """One verdict from those under the readings of a paper, whose intervals hold together.

    Readings that agree give their verdict. Where any of them decides what another leaves open or sees otherwise, the
    answer depends on the reading, and the detail says how.

    >>> print(joint([SUPPORTED, SUPPORTED]), joint([SUPPORTED, UNDECIDED]), sep="; ")
    supported; depends on the reading (supported under 1 of 2, undecided under 1)
    """
    if isinstance(verdicts, Mapping):
        return join_readings(list(verdicts.values())).resting_on(*verdicts.values(), names=verdicts)
    verdicts = list(verdicts)
    return join_readings(verdicts).resting_on(*verdicts)


def join_readings(verdicts: list[Verdict]) -> Verdict:
    """The verdict of `joint`, which adds the intervals."""
    counts = collections.Counter(verdicts)
    if not verdicts:
        return NOT_RUN
    if len(counts) == 1:
        details = {verdict.detail for verdict in verdicts}
        return verdicts[0] if len(details) == 1 else verdicts[0].because("")
    if counts.keys() <= OPEN:
        return UNDECIDED
    parts = [f"{kind.kind} under {counts[kind]}" for kind in KINDS if counts[kind]]
    parts[0] += f" of {len(verdicts)}"
    both = counts.keys() - OPEN == {NO_DIFFERENCE}  # nothing is claimed where the rest is open
    return (UNDECIDED if both else BY_READING).because(", ".join(parts))


def enough(groups: Mapping[str, Sequence], fewest: int, units: str = "seeds") -> str:
    """Why nothing is judged yet, as the beginning of a sentence; "" where every group has `fewest` units.

    >>> enough({"constant": [89.4, 89.5], "SE": [89.9]}, 3)
    'n = 1 seeds of SE, and the rule judges from 3 on. So far: '
    """
    if not groups:
        return "n = 0. "
    least = min(map(len, groups.values()))
    if least >= fewest:
        return ""
    names = [name for name, values in groups.items() if len(values) == least]
    of = names[0] if len(names) == 1 else "each" if len(names) == len(groups) else f"{len(names)} of {len(groups)}"
    return f"n = {least} {units} of {of}, and the rule judges from {fewest} on. So far: "


def n_needed(e: Estimate, negligible: float = 0.0) -> int | None:
    """How many units would decide an interval if its estimate stayed: widths go as 1 / sqrt(n).

    Decided is an interval that leaves out zero or, where a margin was written down, lies within it. None where the
    number of units behind the interval is not known, or no number would do.

    >>> from studies.lab.statistics import Estimate
    >>> n_needed(Estimate(0.5, -0.5, 1.5, n=3))
    12
    """
    half = (e.high - e.low) / 2
    distances = [abs(e.value), negligible - abs(e.value)]
    if not e.n or not math.isfinite(half) or max(distances) <= 0.0:
        return None
    widths = half / max(distances)
    needed = e.n * widths * widths
    return max(math.ceil(needed), e.n + 1) if math.isfinite(needed) else None


def say_needed(needed: int | None, n: int) -> str:
    if needed is None:
        return f"n = {n}" if n else ""
    about = f"{needed:,}" if needed < 10_000 else "more than 10,000"
    return f"n = {n}, about {about} would decide it if the estimate stayed"


@dataclasses.dataclass(frozen=True)
class Finding:
    """A claim of a paper, where the paper makes it, the verdict of these data, and the sentences that explain it.

    rule  the rule that gave the verdict; its text stands beside it
    """

    claim: str
    where: str
    verdict: Verdict
    words: str
    rule: "Rule | None" = None


@dataclasses.dataclass(frozen=True)
class Worlds:
    """Made-up evidence for a rule, to see how often it decides.

    make    a function (generator, effect, n) of the evidence that the rule's judge takes, as a tuple: with effect = 0
            nothing is there, with effect = 1 the claim is true in the size that the paper prints or, where it prints
            none, in the size that `effect` says, with effect = -1 it is as false; n is how many units there are
    n       how many units the design names; with so many the effect has to be found in 80 % of the worlds
    units   what n counts: seeds, networks, images
    effect  what stands behind effect = 1, in words
    now     how many units there are at present, where that is another number
    """

    make: Callable[[np.random.Generator, float, int], tuple]
    n: int
    units: str
    effect: str
    now: int | None = None


def agreeing(chance: np.random.Generator, values: np.ndarray, tau: float) -> np.ndarray:
    """Normal numbers whose Kendall's tau with `values`, normal numbers as well, is `tau` on average."""
    shared = math.sin(math.pi / 2 * tau)
    return shared * values + math.sqrt(1.0 - shared**2) * chance.normal(size=len(values))


def draw_seeds(
    chance: np.random.Generator, means: Mapping[str, float], deviation: float, n: int
) -> dict[str, list[float]]:
    """Made-up numbers of n seeds of several arms: normal, around these means, with one deviation."""
    return {name: chance.normal(mean, deviation, n).tolist() for name, mean in means.items()}


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule that turns evidence into a verdict, as data; call it with the evidence to get the `Finding`.

    claim       what the paper says
    where       where it says it
    text        the rule in sentences, as the page prints it
    judge       a function of the evidence that returns a verdict and the sentences that explain it
    fixed       when the rule was written: BEFORE the data, or after them, and then which numbers had been seen
    fewest      units below which nothing is judged; None where no number is asked for
    negligible  what counts as no difference; None where no margin was written down
    worlds      made-up evidence for the calibration; None where nothing is drawn at random
    exempt      why there are no worlds
    variant     tells rules apart that have one judge
    paper       the number that the paper prints for it; "" where it prints none, or the claim says it
    unit        what its estimates are in, such as points or per cent
    """

    claim: str
    where: str
    text: str
    judge: Callable[..., tuple[Verdict, str]]
    fixed: str = BEFORE
    fewest: int | None = None
    negligible: float | None = None
    worlds: Worlds | None = None
    exempt: str = ""
    variant: str = ""
    paper: str = ""
    unit: str = ""

    def __post_init__(self):
        if (self.worlds is None) == (not self.exempt):
            raise ValueError(f"the rule {self.name} needs `worlds`, or `exempt` with a reason why it has none.")

    @property
    def name(self) -> str:
        """The module and name of the function that judges, and the variant: by it the calibration is found."""
        spec = self.judge.__globals__.get("__spec__")  # a study that is run is called __main__
        module = (spec.name if spec else self.judge.__module__).removeprefix("studies.")
        function = f"{module}.{self.judge.__name__}"
        return f"{function}: {self.variant}" if self.variant else function

    def __call__(self, *evidence: Any, **options: Any) -> Finding:
        verdict, words = self.judge(*evidence, **options)
        return Finding(self.claim, self.where, verdict, words, self)


def rule(claim: str, where: str, **fields) -> Callable[[Callable], Rule]:
    """Makes a `Rule` of the function below it, whose docstring is the text of the rule."""

    def of(judge) -> Rule:
        return Rule(claim, where, " ".join((inspect.getdoc(judge) or "").split()), judge, **fields)

    return of


def calibrate(judged: Rule, effect: float, n: int | None = None, worlds: int = WORLDS, seed: int = 0) -> list[Verdict]:
    """The verdicts of a rule in made-up worlds.

    judged  the rule
    effect  0 for worlds without an effect, 1 for worlds with an effect of the paper's size, -1 with its opposite
    n       units in each world; by default as many as the design names
    worlds  how many worlds
    seed    of the generators, one for each world, so that more worlds begin with the same ones
    """
    if judged.worlds is None:
        raise ValueError(f"the rule {judged.name} has no worlds: {judged.exempt}.")
    n = judged.worlds.n if n is None else n
    chances = (np.random.default_rng((seed, world)) for world in range(worlds))
    return [judged(*judged.worlds.make(chance, effect, n)).verdict for chance in chances]


def share_claiming(verdicts: Sequence[Verdict]) -> float:
    """The share of verdicts that claim an effect, on either side; in worlds without one these are errors."""
    return sum(verdict.claims_effect for verdict in verdicts) / len(verdicts)


def share_supporting(verdicts: Sequence[Verdict]) -> float:
    """The share of verdicts that speak for the claim, wholly or of some cases, and nowhere against it."""
    return sum(verdict in (SUPPORTED, TRUE_OF_SOME) for verdict in verdicts) / len(verdicts)
