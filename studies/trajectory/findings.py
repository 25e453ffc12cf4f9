"""What the numbers say about Definition 3 and Section 3.1: the rules, and the sentences that their numbers give.

Images are not units of a statement about networks: every rule here takes one number for each network, or the mean over
the seeds of each controller.
"""

import functools
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

import odelab as ol
from studies.lab.comparisons import dunnett
from studies.lab.statistics import (
    Signs,
    chance_text,
    correlation_of_few,
    interval_text,
    listing,
    mean_with_interval,
    rank_correlation,
    relate_kinds,
    signs_beyond_chance,
)
from studies.lab.stiffness import READINGS, wording
from studies.lab.verdicts import (
    CONTRADICTED,
    NOT_ASKABLE,
    NOT_RUN,
    SUPPORTED,
    UNDECIDED,
    Finding,
    Rule,
    Verdict,
    Worlds,
    corrected,
    enough,
    joint,
    of_cases,
    of_correlation,
    of_each,
    of_interval,
    of_kinds,
    rule,
)
from studies.trajectory import worlds
from studies.trajectory.design import (
    DEGREES,
    FEWEST_BLOCKS,
    FEWEST_DEEP,
    FEWEST_SEEDS,
    LARGE,
    LEFT,
    NSI,
    WORDS,
)
from studies.trajectory.measures import FromProxy, by_controller

PLAIN = "constant"
LARGEST, AS_MANY, EQUAL = "largest", "smallest, as many", "smallest, equal norm"
Lines = dict[str, list[np.ndarray]]  # one per network, by controller


def after(was: str, why: str) -> str:
    """When a rule was fixed that changed when the twenty-two ResNet-20 had been seen."""
    return f"after the data: with 22 ResNet-20 seen, {why}. By the rule before: {was}"


def judge_nearer(proxies: Sequence[FromProxy]) -> tuple[Verdict, str]:
    """Distances from the best network, and from the next two in its place, minus those of networks with constant step
    sizes, by Dunnett over seeds. Supported under a measure and a proxy where every controller with attention is nearer,
    contradicted where every one is farther, true or false of some where only some are. The controller of the proxy is
    left out. The intervals hold together over controllers, measures and proxies. Cannot be asked where the proxy is a
    plain network; judged from two seeds of every controller on."""
    asked, said, words = sum(len(proxy.distances) for proxy in proxies), [], []
    for proxy in proxies:
        parts = []
        for measure, of in proxy.distances.items():
            values = {name: seeds for name, seeds in of.items() if name != proxy.controller}
            verdict, text = of_distances(values, proxy.controller, corrected(asked))
            floor = of.get(proxy.controller, ())
            other = f", other seeds of the proxy's controller {np.mean(floor):.3f}" if floor else ""
            parts.append(f"by {WORDS[measure]}: {verdict} (constant {mean_text(values.get(PLAIN, ()))}{other}{text})")
            said.append(verdict)
        words.append(f"Proxy {proxy.name}: {'; '.join(parts)}.")
    return joint(said), " ".join(words)


def of_distances(values: dict[str, list[float]], proxy: str, level: float) -> tuple[Verdict, str]:
    if proxy == PLAIN:
        return NOT_ASKABLE.because("the proxy is a plain network itself"), ""
    if PLAIN not in values or len(values) < 2:
        return NOT_RUN, ""
    few = enough(values, FEWEST_SEEDS)
    beyond = dunnett(PLAIN, values, level)
    signs = {name: of_interval(e, -1) for name, e in beyond.items()}
    listed = "".join(
        f"; {word} {', '.join(names)}"
        for word, kind in (("nearer", SUPPORTED), ("farther", CONTRADICTED))
        if (names := [name for name, sign in signs.items() if sign == kind])
    )
    return (UNDECIDED.because("too few seeds") if few else of_each(beyond, sign=-1)), listed


def mean_text(values: Sequence[float]) -> str:
    return f"{np.mean(values):.3f}" if len(values) else "none"


def rule_of_nearness(claim: str, measures: Sequence[str], why: str) -> Rule:
    """Closeness to the proxy by some of the measures."""
    made = Worlds(
        functools.partial(worlds.proxies, measures), n=6, units="seeds", effect="attention halves the distance", now=2
    )
    fixed = after("true of some, false of others", why)
    options = {"variant": " and ".join(measures), "fixed": fixed, "fewest": FEWEST_SEEDS, "worlds": made}
    return rule(claim, "Section 2.3, Figure 1", **options)(judge_nearer)


NEARER = rule_of_nearness(
    "Networks with attention are closer to the ground truth trajectory, whatever the size of their branches.",
    LEFT,
    "seeds became the units, where intervals over images and the order of two seeds had been, and the distance of NSI "
    "was freed of the scale of the branches",
)
NEARER_AS_IT_IS = rule_of_nearness(
    "Networks with attention are closer to the ground truth trajectory by NSI as it is.",
    (NSI,),
    "seeds became the units; most of this distance is the scale of the branches, which a gate below 1 lets grow",
)


@rule(
    "A deviation from the ground truth accumulates along the trajectory.",
    "Section 2.3",
    fixed=after(
        "supported by CKA and undecided by NSI",
        "a line of distances that all networks share became one observation, where each network had been one",
    ),
    worlds=Worlds(
        worlds.lines,
        n=27,
        units="blocks",
        effect="a fourfold distance at the last block, blocks scattering by 30 %",
        now=9,
    ),
)
def judge_accumulation(lines: Mapping[str, Lines]) -> tuple[Verdict, str]:
    """The distance from the proxy at each block, by the shape of NSI and by CKA. Networks of one depth share their
    stages, so two things are asked: whether the mean over networks rises with depth (Kendall and Spearman
    over blocks, by intervals and p-values), and whether the correlation within networks, averaged over the seeds of
    each controller, lies above 0 (Student over controllers). Supported where both say so, contradicted where both say
    the opposite. The intervals hold together over the two measures."""
    level, said, words = corrected(len(lines)), [], []
    for measure, of in lines.items():
        every = [line for each in of.values() for line in each]
        if not every:
            return NOT_RUN, "n = 0 networks beside the proxy."
        depth = np.arange(len(every[0]))
        along = correlation_of_few(depth, np.mean(every, axis=0), level)
        within = {name: [correlation_of_few(depth, line).kendall.value for line in each] for name, each in of.items()}
        over = mean_with_interval([np.mean(each) for each in within.values() if each], level)
        verdict = both(of_correlation(along), of_interval(over))
        rising = sum(tau > 0 for each in within.values() for tau in each)
        said.append(verdict)
        words.append(
            f"by {WORDS[measure]}: {verdict}; it rises in {rising} of {len(every)} networks, mean tau over controllers "
            f"{interval_text(over, '+.2f')}, tau of the mean over {along.n} blocks "
            f"{interval_text(along.kendall, '+.2f')} (p {chance_text(along.kendall_p)})"
        )
    return joint(said), f"The distance from the proxy, block by block: {'; '.join(words)}."


def both(first: Verdict, second: Verdict) -> Verdict:
    """What two tests say that both have to hold: their common verdict, or nothing."""
    return first if first == second else UNDECIDED.because("the two tests do not say the same")


@rule(
    "The closer to the ground truth trajectory, the better the network.",
    "Section 2.3",
    fixed=after("undecided", "controllers became the units, where networks had been"),
    worlds=Worlds(worlds.nearness, n=30, units="controllers", effect="Kendall's tau of 0.5 over controllers", now=11),
)
def judge_better(distances: Mapping[str, dict[str, list[float]]], accuracies: dict[str, list[float]]):
    """Rank correlations of nearness and accuracy over controllers, the means over their seeds without the proxy, by the
    shape of NSI and by CKA. Supported where Kendall's tau and Spearman's rho lie above 0 by their intervals and
    p-values, contradicted where below, and nothing where leaving out any one controller would change it. The intervals
    hold together over the two measures."""
    related = {
        measure: relate_kinds(
            {name: [-value for value in values] for name, values in of.items()}, accuracies, corrected(len(distances))
        )
        for measure, of in distances.items()
    }
    if not any(one.names for one in related.values()):
        return NOT_RUN, "n = 0 networks beside the proxy."
    verdicts = {measure: of_kinds(one) for measure, one in related.items()}
    words = "; ".join(
        f"by {WORDS[measure]} Kendall's tau {interval_text(one.whole.kendall, '+.2f')} ({verdicts[measure]})"
        for measure, one in related.items()
    )
    return joint(verdicts), f"Accuracy and nearness over {next(iter(related.values())).whole.n} controllers: {words}."


@rule(
    "For most inputs the trajectory is stiff somewhere.",
    "property (1), Section 3.1",
    fixed=after(
        "true of some, false of others",
        "the shares got intervals over controllers, and the same NSI in random order became the measure of what is "
        "said of inputs",
    ),
    worlds=Worlds(
        worlds.shares, n=11, units="controllers", effect="80 % of the images, and 40 % where NSI is in random order"
    ),
)
def judge_property(shares: Mapping[tuple, Lines], shuffled: Mapping[tuple, Lines]) -> tuple[Verdict, str]:
    """The share of images with a counted block whose NSI is at least 1 + M1 times the mean of its stage, for M1 of 0.1,
    0.25 and 0.5, minus one half: Student over controllers, the intervals holding together over degrees and readings.
    At a degree: contradicted where the share is below one half, supported where it is above one half and above the
    share of the same NSI in random order (all values of a stage, over images and counted blocks, exchanged). Where it
    is above one half in random order, too, the claim is true of any such numbers and cannot be asked. Over degrees:
    true or false of some where only some are decided."""
    asked = len(shares) * len(DEGREES)
    verdicts, words = {}, []
    for reading, of in shares.items():
        if not any(of.values()):
            return NOT_RUN, "n = 0 networks."
        means, random = (over_seeds(one) for one in (of, shuffled[reading]))
        cases = [of_share(means[:, k], random[:, k], corrected(asked)) for k in range(means.shape[1])]
        verdicts[reading] = of_cases(cases)
        parts = ", ".join(
            f"{100 * mean:.0f} % ({100 * by_chance:.0f} % in random order; {case.kind})"
            for mean, by_chance, case in zip(means.mean(0), random.mean(0), cases, strict=True)
        )
        words.append(f"{wording(*reading)}: {parts}")
    degrees = ", ".join(f"{100 * degree:g} %" for degree in DEGREES)
    return joint(verdicts), (
        f"Share of images with a counted block at least {degrees} above the mean of its stage, mean over controllers: "
        f"{'; '.join(words)}. Of a stage's counted blocks one is never below their mean."
    )


def over_seeds(of: Mapping[str, Sequence]) -> np.ndarray:
    """The mean over the seeds of each controller, (controllers, ...)."""
    return np.array([np.mean(each, axis=0) for each in of.values() if len(each)])


def of_share(share: np.ndarray, random: np.ndarray, level: float) -> Verdict:
    """One degree of property (1), from a share per controller and the same of numbers in random order."""
    verdict = of_interval(mean_with_interval(share - 0.5, level))
    if verdict == SUPPORTED and of_interval(mean_with_interval(share - random, level)) != SUPPORTED:
        return NOT_ASKABLE.because("true of the same numbers in random order, too")
    return verdict


@rule(
    "In the first block of a stage the norm is extremely large.",
    "Section 2.2",
    fixed=after("contradicted", "controllers became the units, where images had been"),
    worlds=Worlds(
        worlds.ratios, n=11, units="controllers", effect="four times the others, where twofold counts as large"
    ),
)
def judge_first(ratios: Mapping[str, Lines]) -> tuple[Verdict, str]:
    """A stage's first block over the median of its others, of NSI and of the state's norm, the mean over images: is its
    logarithm above that of 2? Student over controllers, all stages and both quantities together. Supported where it is
    in every stage, contradicted where it is below in every one, true or false of some where only some are decided."""
    verdicts, words = {}, []
    for what, of in ratios.items():
        if not any(of.values()):
            return NOT_RUN, "n = 0 networks."
        means = np.log(over_seeds(of))
        level = corrected(len(ratios) * means.shape[1])
        stages = {str(k): mean_with_interval(column, level).less(np.log(LARGE)) for k, column in enumerate(means.T)}
        verdicts[what] = of_each(stages)
        every = np.array([line for each in of.values() for line in each])
        words.append(
            f"{what} {every.min():.2f} to {every.max():.2f} times the others in {every.size} stages of networks "
            f"({verdicts[what]})"
        )
    return joint(verdicts), f"First block of a stage over the median of its others: {'; '.join(words)}."


@rule(
    "The stiff blocks are the important ones.",
    "Section 3.1",
    fixed=after(
        "undecided", "a profile that all networks share became one observation, where each network had been one"
    ),
    worlds=Worlds(
        worlds.profiles,
        n=24,
        units="counted blocks",
        effect="Kendall's tau of 0.5 over the blocks of every network",
        now=6,
    ),
)
def judge_importance(profiles: Mapping[str, list[tuple]], over_images: Signs | None = None) -> tuple[Verdict, str]:
    """NSI of the counted blocks and the rise of the loss without each, means over images. Two things are asked: whether
    the means over networks correlate over blocks (Kendall and Spearman, by intervals and p-values), and whether the
    correlations within networks, averaged over the seeds of each controller, lie above 0 (Student over controllers).
    Supported where both say so, contradicted where both say the opposite."""
    every = [pair for each in profiles.values() for pair in each]
    if not every:
        return NOT_RUN, "n = 0 networks."
    nsi, rise = (np.mean([pair[k] for pair in every], axis=0) for k in (0, 1))
    along = correlation_of_few(nsi, rise)
    within = [
        np.mean([correlation_of_few(*pair).spearman.value for pair in each]) for each in profiles.values() if each
    ]
    over = mean_with_interval(within)
    words = (
        f"Spearman's correlation of NSI and rise of the loss over the counted blocks: mean over {len(within)} "
        f"controllers {interval_text(over, '+.2f')}; of the means over networks, {along.n} blocks, "
        f"{interval_text(along.spearman, '+.2f')}."
    )
    if over_images is not None:
        words += (
            f" Over images at one block, {over_images.positive} of {len(over_images.values)} correlations are positive "
            f"and {over_images.negative} negative beyond chance (Bonferroni)."
        )
    return both(of_correlation(along), of_interval(over)), words


@rule(
    "Large features contribute most to the performance.",
    "Section 3.1",
    fixed=after(
        "true of some, false of others",
        "one number for each network replaced intervals over images for each of its blocks, 36 of them at 95 % each",
    ),
    worlds=Worlds(worlds.features, n=11, units="controllers", effect="twice the rise of the loss", now=3),
)
def judge_features(rises: Mapping[str, list[dict[str, float]]]) -> tuple[Verdict, str]:
    """How much the loss rises without the 10 % largest elements of a counted block's slope, beside so many of the
    smallest as have the same norm: the difference of the two divided by their sum, each the mean over images and
    blocks, and then over the seeds of each controller. Supported where Student's interval over controllers lies above
    0, contradicted where below."""
    contrasts = [np.mean([contrast(one[LARGEST], one[EQUAL]) for one in each]) for each in rises.values() if each]
    if not contrasts:
        return NOT_RUN, "n = 0 networks."
    e = mean_with_interval(contrasts)
    every = [one for each in rises.values() for one in each]
    means = {which: np.mean([one[which] for one in every]) for which in (LARGEST, AS_MANY, EQUAL)}
    return of_interval(e), (
        f"Without the largest elements of a slope the loss rises by {means[LARGEST]:.3f} on average, without as many "
        f"of the smallest by {means[AS_MANY]:.3f}, without so many of the smallest as have the same norm by "
        f"{means[EQUAL]:.3f}. The difference of largest and smallest at equal norm over their sum is "
        f"{interval_text(e, '+.2f')}, mean over {len(contrasts)} controllers."
    )


def contrast(one: float, other: float) -> float:
    """The difference of two numbers over the sum of their magnitudes: 1/3 where one is twice the other."""
    whole = abs(one) + abs(other)
    return (one - other) / whole if whole else 0.0


@rule(
    "Along a trajectory a larger NSI goes with a smaller step size.",
    "Figure 9b, as worded",
    fixed=(
        "after the data: with one ResNet-56 each of SE and StepNet seen, seeds became the units, where images had "
        "been. By the rule before: contradicted"
    ),
    fewest=FEWEST_DEEP,
    worlds=Worlds(
        worlds.along, n=4, units="seeds", effect="a mean correlation of -0.2, as SE has with the digits", now=1
    ),
)
def judge_along(means: Mapping[str, list[float]], blocks: int, which: str = "", negative: float = np.nan):
    """Spearman's correlation of step size and NSI along the counted blocks of a stage, averaged over the stages, then
    over images: a number for each network. By controller Student's interval over seeds, all controllers together.
    Supported where every controller lies below 0, contradicted where every one lies above, true or false of some where
    only some do. Judged from three seeds of every controller on; cannot be asked where a stage counts fewer than five
    blocks."""
    several = {name: values for name, values in means.items() if values}
    if not several:
        return NOT_RUN, "n = 0 networks whose step sizes change from image to image."
    estimates = {name: mean_with_interval(values, corrected(len(several))) for name, values in several.items()}
    few = enough(several, FEWEST_DEEP)
    share = f"; {100 * negative:.0f} % of all correlations are negative" if np.isfinite(negative) else ""
    words = f"{few}{which}Mean correlation by controller: {listing(estimates)}{share}. A stage counts {blocks} blocks"
    if blocks < FEWEST_BLOCKS:
        reason = f"a stage counts {blocks} blocks, and {FEWEST_BLOCKS} are the least"
        return NOT_ASKABLE.because(reason), f"{words}; all stages are pooled, whose indices differ by their width."
    verdict = UNDECIDED.because("too few seeds") if few else of_each(estimates, sign=-1)
    return verdict, f"{words}; correlations are within stages, averaged over them."


def findings(courses, proxy, nearer: Sequence[FromProxy], losses, ratios, along: Finding) -> list[Finding]:
    """All findings, in the order of the paper.

    courses  of all networks, with their distances from the proxy
    nearer   distances from each network that stands in for a ground truth
    losses   from `importance`
    ratios   from `first_ratios`, one per network
    along    what is said of Figure 9b
    """
    others = [one for one in courses if one is not proxy]
    generator = np.random.default_rng(0)
    return [
        NEARER([one.by(LEFT) for one in nearer]),
        NEARER_AS_IT_IS([one.by((NSI,)) for one in nearer]),
        judge_accumulation({measure: by_controller(others, lambda one, m=measure: one.blocks[m]) for measure in LEFT}),
        judge_better(
            {measure: by_controller(others, lambda one, m=measure: one.distance[m].value) for measure in LEFT},
            by_controller(others, lambda one: one.measured.accuracy),
        ),
        judge_property(
            {reading: by_controller(courses, lambda one, r=reading: shares_of(one, r)) for reading in READINGS},
            {
                reading: by_controller(courses, lambda one, r=reading: shares_of(one, r, generator))
                for reading in READINGS
            },
        ),
        judge_first(
            {
                what: by_controller(courses, lambda one, w=what: ratios[courses.index(one)][w].mean(0))
                for what in ("NSI", "norm")
            }
        ),
        judge_importance(
            by_controller([one.course for one in losses], lambda one: profile_of(losses, one)),
            image_correlations(losses),
        ),
        judge_features(
            by_controller(
                [one.course for one in losses],
                lambda one: {which: float(x.mean()) for which, x in importance_of(losses, one).features.items()},
            )
        ),
        along,
    ]


def shares_of(course, reading, shuffle: np.random.Generator | None = None) -> np.ndarray:
    """The share of images with a counted block so far above the mean of its stage, (degrees,).

    shuffle  exchanges all values of a stage, over images and counted blocks
    """
    of, mu = reading
    record = course.measured.records[of].counted()
    nsi = np.array(record.nsi, dtype=float)
    if shuffle is not None:
        for stage in np.unique(record.stage):
            here = record.stage == stage
            nsi[:, here] = shuffle.permutation(nsi[:, here].ravel()).reshape(nsi[:, here].shape)
    return np.array([float(ol.delta(nsi, record.stage, degree, 0.0, mu)) for degree in DEGREES])


def importance_of(losses, course):
    """What was lost without the blocks of one network."""
    return next(one for one in losses if one.course is course)


def profile_of(losses, course) -> tuple[np.ndarray, np.ndarray]:
    """NSI of the counted blocks of a network, and the rise of the loss without each; means over images."""
    record, one = course.measured.records["slope"], importance_of(losses, course)
    return record.nsi.mean(0)[~record.first], one.rise.mean(0)[~record.first]


def block_correlation(one) -> float:
    """Spearman's correlation of mean NSI and mean rise of the loss, over the counted blocks of one network."""
    return rank_correlation(*profile_of([one], one.course), stats.spearmanr)[0]


def image_correlations(losses) -> Signs:
    """The signs of the correlations of NSI and rise over images, one per network and counted block."""
    return signs_beyond_chance(
        (record.nsi[:, k], one.rise[:, k])
        for one in losses
        for record in [one.course.measured.records["slope"]]
        for k in np.flatnonzero(~record.first)
    )
