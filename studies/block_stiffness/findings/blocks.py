"""Which blocks are stiff, and whether any is: along depth, by label, at other inputs, against Euler's limit."""

from collections.abc import Sequence

import numpy as np
from scipy import stats

from studies.block_stiffness import across_networks, paper
from studies.block_stiffness.analysis import Component, correlation_interval
from studies.block_stiffness.findings.evidence import CALLED, Order
from studies.lab.statistics import chance_text, interval_text, listing, mean_with_interval, rank_correlation
from studies.lab.verdicts import (
    CHANCE,
    NOT_RUN,
    SUPPORTED,
    UNDECIDED,
    Verdict,
    Worlds,
    corrected,
    enough,
    of_cases,
    of_each,
    of_interval,
    rule,
)

FEWEST_NETWORKS = 3
SIGNS = {"stiffness_index": -1, "negative": 1}  # of the change that makes a block stiffer, by the paper's two measures
NEGLIGIBLE_SHARE = 0.05  # of the variance of a measure: what labels may have where they do not matter
NTH = ("first", "second", "third", "fourth")
SHAPE = ((0, 0, 0, 1, 1, 2, 2), 23)  # of the worlds: the stages of a ResNet-20's counted blocks, and its networks


def too_few(rows: Sequence[dict]) -> str:
    return enough({"shipped networks": list(across_networks.by_network(rows))}, FEWEST_NETWORKS, "networks")


def made_up_networks(columns: dict[str, np.ndarray], stages: Sequence[int] = SHAPE[0]) -> list[dict]:
    """Rows of networks from columns (networks, blocks)."""
    return [
        {"network": str(net), "block": block + 1, "stage": stages[block]}
        | {name: float(values[net, block]) for name, values in columns.items()}
        for net in range(len(next(iter(columns.values()))))
        for block in range(len(stages))
    ]


def worlds_along_depth(chance, effect: float, n: int) -> tuple:
    """Networks whose blocks have S and percentages as Table 2 has them by stage, or in any order."""
    stages = np.array(SHAPE[0])
    late = np.linspace(0.0, 1.0, len(stages))
    s = -4.0 - 8.0 * late * effect + 3.0 * chance.standard_normal((n, len(stages)))
    percent = 0.05 + 0.20 * late * effect + 0.05 * chance.standard_normal((n, len(stages)))
    rows = made_up_networks({"stiffness_index": s, "negative": percent, "min_re": s})
    return rows, None


@rule(
    "late blocks are stiffer",
    "Tables 2, 5",
    fixed="after the data: with S and the percentages of these networks known, because -min Re, by which it had been "
    "judged, is not one of the paper's measures; by the old rule the verdict was that it is true of some and false of "
    "others",
    fewest=FEWEST_NETWORKS,
    worlds=Worlds(
        worlds_along_depth,
        n=23,
        units="networks",
        effect="S that falls by 8 and percentages that rise by 20 points along depth, as in Table 2",
    ),
)
def judge_depth(rows: Sequence[dict], slices: tuple[float, float] | None) -> tuple[Verdict, str]:
    """By the paper's two measures, S (the more negative, the stiffer) and the percentage of eigenvalues with negative
    real part (the larger, the stiffer), of the branch. Each is asked twice: the mean of the last stage less that of the
    first stage where it is known (percentages need all eigenvalues, which the first stage of a ResNet-20 is too large
    for), and the last block of a stage less its first, at one size of map. Supported where all of them certainly make
    late blocks the stiffer ones, contradicted where all certainly do not. Intervals are over networks of one shape and
    hold together; another shape may differ."""
    several = too_few(rows)
    changes = {
        (measure, where): values
        for measure in SIGNS
        for where, values in across_networks.changes_with_depth(rows, measure).items()
        if len(values) > 1
    }
    level = corrected(len(changes))
    beyond = {(measure, where): mean_with_interval(values, level) for (measure, where), values in changes.items()}
    verdict = of_cases(of_interval(e, SIGNS[measure]) for (measure, _), e in beyond.items())
    form = {"stiffness_index": "+.2f", "negative": "+.1%"}
    told = "; ".join(
        f"{CALLED[measure]} {where} {interval_text(e, form[measure])}" for (measure, where), e in beyond.items()
    )
    n = len(across_networks.by_network(rows))
    words = [f"Changes along depth over n = {n} networks of one shape: {told or 'nothing to compare'}."]
    ends = {
        where: mean_with_interval(values)
        for where, values in across_networks.changes_with_depth(rows, "min_re").items()
        if len(values) > 1
    }
    if ends:
        words.append(
            f"S = max Re / min Re also grows where blocks decay more slowly: min_re itself changes by {listing(ends)} "
            "(above 0: it decays more slowly), and a mode is stiff for Euler's step where it decays fast."
        )
    if slices is not None:
        words.append(
            f"The slices' percentage rises with depth ({slices[0]:+.2f}, p {chance_text(slices[1])}) because smaller "
            "maps leave a slice fewer rows that must be zero."
        )
    return (UNDECIDED if several else verdict), several + " ".join(words)


def worlds_near_the_limit(chance, effect: float, n: int) -> tuple:
    """Networks whose stiffest block is at Euler's limit, or beyond it by a tenth."""
    lowest = chance.normal(across_networks.LIMIT * (1.0 + 0.1 * effect), 0.2, n)
    others = chance.uniform(-1.2, -0.3, (n, len(SHAPE[0]) - 1))
    return (made_up_networks({"min_re": np.column_stack([lowest, others])}),)


@rule(
    "ResNets are stiff, numerically unstable equations",
    "Sections 1, 5, 6",
    fixed="after the data: with the numbers of images and networks that have such a mode known, because whether any "
    "image of any block has one depends on how many are looked at; by the old rule the verdict was that it is true of "
    "some and false of others",
    fewest=FEWEST_NETWORKS,
    worlds=Worlds(
        worlds_near_the_limit,
        n=23,
        units="networks",
        effect="a real part of -2.2 in the stiffest block (without an effect: -2, the limit)",
    ),
)
def judge_stiff(rows: Sequence[dict]) -> tuple[Verdict, str]:
    """A step of size 1 of Euler's method lets a mode grow that decays where h lambda is below -2 on the real axis.
    Supported where in the stiffest block of a network the most negative real part of h lambda, the median over images,
    is certainly below -2, contradicted where it is certainly above; the interval is over networks."""
    by_network = across_networks.by_network(rows)
    if not by_network:
        return NOT_RUN, "n = 0 networks; `--every-network 100` looks at them."
    few, limit = too_few(rows), across_networks.LIMIT
    lowest = [min(across_networks.value(row, "min_re") for row in blocks) for blocks in by_network.values()]
    typical = mean_with_interval(lowest)
    beyond = [blocks for blocks in by_network.values() if any(is_beyond(row) for row in blocks)]
    stages = [row["stage"] for blocks in beyond for row in blocks if is_beyond(row)]
    where = ", ".join(f"{stages.count(stage)} in the {NTH[stage]} stage" for stage in sorted(set(stages)))
    words = (
        f"The most negative real part of h lambda in the stiffest block of a network, at a typical image: "
        f"{interval_text(typical, '.2f')}, n = {len(lowest)} networks; Euler's limit is {limit:g}. At some image "
        f"{len(beyond)} of them have a mode beyond it" + (f", in {len(stages)} blocks: {where}." if stages else ".")
    )
    verdict = of_interval(typical.less(limit), sign=-1)
    return (UNDECIDED if few else verdict), few + words


def is_beyond(row: dict) -> bool:
    return across_networks.lowest_real_part(row) < across_networks.LIMIT


def worlds_of_labels(chance, effect: float, n: int) -> tuple:
    """Two measures of nine blocks over ten labels, which have a twentieth of the variance, or nothing."""
    share = NEGLIGIBLE_SHARE * (1.0 - effect)
    freedom = 9, n - 10
    spread = 1.0 + n / 10 * share / (1.0 - share)
    ratios = spread * chance.f(*freedom, 18)
    cases = [(f"stages.2.blocks.{block}", measure) for block in range(9) for measure in SIGNS]
    made = [
        Component(block, "slices", measure, float(f), 10, n) for (block, measure), f in zip(cases, ratios, strict=True)
    ]
    return tuple(made), ()


@rule(
    "stiffness varies with the block, not with the label",
    "Tables 3, 6, 9",
    fixed="after the data: with 0 of 54 cases certainly below 5 % and 0 that differ from 0 the old rule said that it "
    "is true of some and false of others, and could not say anything else; the two measures of the paper are left of "
    "five",
    negligible=NEGLIGIBLE_SHARE,
    worlds=Worlds(
        worlds_of_labels,
        n=3400,
        units="images",
        effect="no difference between labels at all (without an effect: labels with 5 % of the variance)",
        now=100,
    ),
)
def judge_labels(components: Sequence[Component], label_orders: Sequence[dict]) -> tuple[Verdict, str]:
    """The share of labels in the variance of S and of the percentage over the images of a block, as the analysis of
    variance has it, in every block. Supported where every share is certainly below 5 %, contradicted where every one is
    certainly above; intervals hold together. It is judged in the reading with the most images, slices where readings
    have equally many."""
    reading, cases = cases_of_most_images([one for one in components if one.measure in SIGNS])
    if not cases:
        return NOT_RUN, "n = 0: no block has two images of each label; `--preset full` has ten."
    level = corrected(len(cases))
    shares = {(one.block, one.measure): one.share(level) for one in cases}
    verdict = of_cases(of_interval(share.less(NEGLIGIBLE_SHARE), sign=-1) for share in shares.values())
    least, most = min(one.n for one in cases), max(one.n for one in cases)
    images = f"{least} images" if least == most else f"{least} to {most} images"
    (block, measure), largest = max(shares.items(), key=lambda pair: pair[1].value)
    agreeing = [row for row in label_orders if row["p, Holm"] < CHANCE]
    same = (
        f" With networks as units, labels are ordered alike in {len(agreeing)} of {len(label_orders)} cases "
        "(Friedman's test, Holm)."
        if label_orders
        else ""
    )
    agreement = stats.pearsonr(paper.PERCENT_BY_LABEL[18], paper.PERCENT_BY_LABEL[34])
    return verdict, (
        f"{len(cases)} cases ({reading}, {images}). The largest share is {interval_text(largest, '.2f')}, of "
        f"{CALLED[measure]} in {block}.{same} The paper's own label columns of ResNet-18 and ResNet-34 agree with each "
        f"other, r = {agreement.statistic:.2f} (p {chance_text(agreement.pvalue)})."
    )


def cases_of_most_images(rows: Sequence) -> tuple[str, list]:
    """The reading whose blocks have the most images at least, slices first, and its rows."""
    readings = sorted({row.reading for row in rows}, key=("slices", "residual", "block").index)
    least = {reading: min(row.n for row in rows if row.reading == reading) for reading in readings}
    reading = max(readings, key=least.__getitem__, default="")
    return reading, [row for row in rows if row.reading == reading]


def worlds_of_inputs(chance, effect: float, n: int) -> tuple:
    """Nine orders of the means of blocks that are the same but for a little, or have nothing to do with one another."""
    made = []
    for number in range(9):
        here = chance.standard_normal(n)
        there = here + 0.15 * chance.standard_normal(n) if effect else chance.standard_normal(n)
        made.append(
            Order(f"input {number // 3}", str(number % 3), rank_correlation(here, there, stats.spearmanr)[0], n)
        )
    return (made,)


@rule(
    "the result generalises to other inputs",
    "Section 5",
    fixed="after the data: with these correlations known, because they had no interval; by the old rule, above 0.9 "
    "everywhere or below 0.5 somewhere, the verdict was that it is true of some and false of others",
    worlds=Worlds(worlds_of_inputs, n=7, units="blocks", effect="orders that correlate by 0.97"),
)
def judge_inputs(orders: Sequence[Order]) -> tuple[Verdict, str]:
    """Rank correlations of the blocks' means at other inputs with those at test images, and between halves of the test
    images. Supported where blocks certainly keep their order, a correlation above 0, in every comparison, contradicted
    where it is certainly reversed in every one; intervals are over blocks and hold together."""
    known = [one for one in orders if np.isfinite(one.r)]
    if not known:
        return NOT_RUN, "n = 0: there are no two inputs to compare."
    level = corrected(len(known))
    found = {f"{one.input}, {one.measure}": correlation_interval(one.r, one.n, level) for one in known}
    verdict = of_each(found)
    kept = {name: e for name, e in found.items() if of_interval(e) == SUPPORTED}
    others = {name: e for name, e in found.items() if name not in kept}
    words = f"{len(known)} rank correlations of block means (n = {known[0].n}): "
    parts = [listing(others)] if others else []
    if kept:
        parts.append(f"{'the other ' if others else ''}{len(kept)} at least {min(e.value for e in kept.values()):+.2f}")
    return verdict, f"{words}{'; '.join(parts)}."
