"""The claims of the block-level paper and their verdicts, by rules that were mostly fixed before any number.

Four things are younger than first numbers. All shipped networks and other inputs joined rules 1, 6, 8 and 9. The rule
on labels asks for variance components within blocks, and the rule on stiff modes for the interval of their share: both
had been planned so, but were first judged by shares of the variance over blocks, and by whether any mode was stiff.
Rule 9 asked within blocks alone, until the index was seen to tell blocks from one another.

Each function takes numbers and returns a Finding, so that made-up numbers can reach every verdict in a test.
"""

import dataclasses
import re
from collections.abc import Sequence

import numpy as np
from scipy import stats

from studies.block_stiffness import across_networks, paper
from studies.block_stiffness.report.figures import LABELS
from studies.lab.statistics import (
    CONTRADICTED,
    PARTLY,
    SUPPORTED,
    UNDECIDED,
    Estimate,
    Finding,
    chance_text,
    interval_text,
    verdict_of_counts,
)

CHANCE = 0.05
NTH = ("first", "second", "third", "fourth")
ALSO_PROSE = ("negative", "zero", "positive", "amplified", "stiff")  # names of measures that sentences use as well
IN_WORDS = {name: words for name, words in LABELS.items() if name not in ALSO_PROSE} | {"residual": "branch"}


def in_words(found: Finding, blocks: Sequence[str] = ()) -> Finding:
    """The finding with measures and readings called as in the figures, and the named blocks by their number."""
    words = IN_WORDS | {name: f"block {number}" for number, name in enumerate(blocks, 1)}
    names = "|".join(map(re.escape, words))
    return dataclasses.replace(found, words=re.sub(rf"\b({names})\b", lambda name: words[name[1]], found.words))


def printed_numbers(agreeing: int, total: int, pearson: float, spearman: float) -> Finding:
    """Supported if every printed count is that of slices and the untrained network follows Table 2 above r = 0.9."""
    verdict = SUPPORTED if agreeing == total and pearson > 0.9 else CONTRADICTED if agreeing < total / 2 else UNDECIDED
    return Finding(
        "the printed numbers are eigenvalues of slices, not of block Jacobians (our claim)",
        "Tables 1-11",
        verdict,
        f"{agreeing} of {total} printed counts of eigenvalues are the elements of the Jacobian divided by the height "
        f"of its input, which is what torch.linalg.eigvals gives for an unflattened Jacobian; this "
        f"includes the down-sampling blocks, which have no eigenvalues. Slices of an untrained ResNet-18 of the "
        f"paper's geometry have Table 2's percentages by block: Pearson {pearson:.2f}, Spearman {spearman:.2f}. This "
        f"is reproduction by computation; what the authors ran is not known.",
    )


def late_blocks(
    depth_relation: dict[str, tuple[float, float]],
    slices: tuple[float, float],
    across: dict[str, Estimate],
    blocks: int,
) -> Finding:
    """Supported if -min Re rises with depth in branch and whole block (p < 0.05), contradicted if it only falls.

    `blocks` is how many of them keep their shape. `across` has differences over all networks, between late and early
    stages and, at one size of map, within stages; their intervals must agree, too.
    """
    said = {reading: sign_of(*depth_relation[reading]) for reading in depth_relation}
    said |= {name: int(one.low > 0) - int(one.high < 0) for name, one in across.items() if np.isfinite(one.low)}
    if set(said.values()) == {1}:
        verdict = SUPPORTED
    elif -1 in said.values() and 1 not in said.values():
        verdict = CONTRADICTED
    else:
        verdict = PARTLY if 1 in said.values() else UNDECIDED
    numbers = ", ".join(
        f"{name} {r:+.2f} (p {chance_text(p)})" if np.isfinite(r) else f"{name} not defined, its min Re being 0"
        for name, (r, p) in depth_relation.items()
    )
    differences = "; ".join(f"{name} {interval_text(one, '+.2f')}" for name, one in across.items())
    return Finding(
        "late blocks are stiffer",
        "Tables 2, 5",
        verdict,
        f"Spearman of depth and -min Re, over the {blocks} blocks that keep the shape: {numbers}. "
        + (f"Differences of -min Re over all shipped networks: {differences}. " if differences else "")
        + f"The slices' percentage rises with depth all the same ({slices[0]:+.2f}, p {chance_text(slices[1])}), "
        "because smaller maps leave a slice fewer rows that must be zero.",
    )


def sign_of(r: float, p: float) -> int:
    """1 or -1 where a correlation differs from zero, 0 where it does not."""
    return int(np.sign(r)) if np.isfinite(r) and p < CHANCE else 0


def block_or_label(shares: list, components: list, across: list) -> Finding:
    """Supported if within each block labels certainly make up below 5 % of the variance of every measure; else partly.

    Within one block the part of the label alone and that of label and block together are one.
    """
    below = [one for one in components if one.share.high < 0.05]
    verdict = UNDECIDED if not components else SUPPORTED if len(below) == len(components) else PARTLY
    listed = "; ".join(
        f"{share.measure} ({share.reading}): block {100 * share.block.value:.0f} %, label "
        f"{100 * share.label.value:.1f} %, both together {100 * share.both.value:.1f} %"
        for share in shares
    )
    within = "no block has enough images"
    if components:
        largest = max(components, key=lambda one: one.share.value)
        beyond = sum(one.holm < CHANCE for one in components)
        within = (
            f"the label's share is certainly below 5 % in {len(below)} of {len(components)} cases and differs from 0 "
            f"in {beyond} after Holm's correction; the largest is {interval_text(largest.share, '.2f')}, "
            f"{largest.measure} of {largest.block} ({largest.reading}), n = {largest.n}"
        )
    agreeing = [row for row in across if row["p, Holm"] < CHANCE]
    same = (
        f"With networks as units, labels are ordered alike in {len(agreeing)} of {len(across)} cases (Friedman's test, "
        "Holm). "
        if across
        else ""
    )
    agreement = stats.pearsonr(paper.PERCENT_BY_LABEL[18], paper.PERCENT_BY_LABEL[34])
    return Finding(
        "stiffness varies with the block, not with the label",
        "Tables 3, 6, 9",
        verdict,
        f"Shares of the variance over blocks and images: {listed or 'not enough images'}. Within blocks, {within}. "
        f"{same}The paper's own label columns of ResNet-18 and ResNet-34 agree with each other, "
        f"r = {agreement.statistic:.2f} (p {chance_text(agreement.pvalue)}).",
    )


def correlates(target: str, where: str, claimed: dict[str, int], found: list) -> Finding:
    """Supported if some block has the claimed sign beyond Holm's correction and none the other; else contradicted."""
    holding = [one for one in found if one.holm < CHANCE and np.sign(one.r.value) == claimed[one.measure]]
    against = [one for one in found if one.holm < CHANCE and np.sign(one.r.value) == -claimed[one.measure]]
    if holding and not against:
        verdict = SUPPORTED
    elif against and not holding:
        verdict = CONTRADICTED
    else:
        verdict = PARTLY if holding else UNDECIDED
    strongest = max(holding or against or found, key=lambda one: abs(one.r.value), default=None)
    words = "Nothing could be correlated."
    if strongest is not None:
        words = (
            f"{len(found)} correlations within blocks, of which {len(holding)} hold with the claimed sign after Holm's "
            f"correction and {len(against)} with the other. The strongest is {strongest.measure} of "
            f"{strongest.block} ({strongest.reading}): {interval_text(strongest.r, '+.2f')}, n = {strongest.n}, "
            f"corrected p {chance_text(strongest.holm)}."
        )
        if where.startswith("Tables"):
            words += (
                " The index is negative and a stiffer block has a more negative one, so the paper's own significant "
                "correlations of index and accuracy say the stiffer, the better."
            )
    return Finding(f"stiffness of a block goes with {target}", where, verdict, words)


def anything_stiff(smallest: dict[str, float], shares: dict[str, Estimate], across: Sequence[dict] = ()) -> Finding:
    """Supported if the share of stiff modes has an interval above 0 in every block, partly if it has in some.

    Contradicted if no image shows any such mode. `across` are rows of `every_network`; a network of them with a stiff
    mode anywhere makes a "none" true of some only.
    """
    stiff = [block for block, share in shares.items() if share.low > 0.0]
    some = [block for block, share in shares.items() if share.value > 0.0]
    beyond = {name: blocks for name, blocks in across_networks.by_network(across).items() if stiff_blocks(blocks)}
    verdict = UNDECIDED if some else CONTRADICTED
    if stiff or beyond:
        verdict = SUPPORTED if len(stiff) == len(shares) else PARTLY
    lowest = min(smallest, key=smallest.__getitem__)
    return Finding(
        "ResNets are stiff, numerically unstable equations",
        "Sections 1, 5, 6",
        verdict,
        f"A mode is stiff for Euler's step if it decays, faster than it turns, and the step of size 1 makes it grow: "
        f"|Re| > |Im| and |1 + lambda| > 1. {len(some)} of {len(shares)} "
        f"blocks have such modes at some image, {len(stiff)} with an interval of their share above 0; at most "
        f"{100 * max(share.value for share in shares.values()):.2g} % of the eigenvalues of a block. "
        f"The most negative real part is {smallest[lowest]:.2f}, in {lowest}; the limit on the real axis is -2."
        + stiff_elsewhere(across, beyond),
    )


def stiff_blocks(blocks: list[dict]) -> list[dict]:
    return [row for row in blocks if across_networks.lowest_real_part(row) < across_networks.LIMIT]


def stiff_elsewhere(across: Sequence[dict], beyond: dict[str, list[dict]]) -> str:
    """The sentence about all shipped networks, with the stages in which their stiff modes are."""
    if not across:
        return ""
    stages = [row["stage"] + 1 for blocks in beyond.values() for row in stiff_blocks(blocks)]
    where = ", ".join(f"{stages.count(stage)} in the {NTH[stage - 1]} stage" for stage in sorted(set(stages)))
    total = len(across_networks.by_network(across))
    return f" Of the {total} shipped networks, {len(beyond)} have modes with Re h lambda < -2 at some image" + (
        f", in {len(stages)} blocks: {where}." if stages else "."
    )


def same_as_ode_net(fits: list, solved: Sequence[dict] = ()) -> Finding:
    """Supported if the fits differ by less than a tenth of the outputs and their losses by less than a tenth.

    `solved` are rows of `ode_nets.rows_of_seeds`, which the words tell and the rule does not know.
    """
    if not fits:
        return Finding("ResNets correspond to ODE-nets", "Figure 2", UNDECIDED, "Nothing was fitted.")
    apart = max(fit.between_fits for fit in fits)
    losses = max(abs(fit.loss_resnet - fit.loss_ode) / fit.loss_ode for fit in fits)
    verdict = SUPPORTED if apart < 0.1 and losses < 0.1 else CONTRADICTED if apart > 0.5 else UNDECIDED
    largest = max(pair for fit in fits for pair in fit.scales)
    return Finding(
        "ResNets correspond to ODE-nets",
        "Figure 2",
        verdict,
        f"{len(fits)} pairs of fits to random points: predictions at most {apart:.3f} apart at outputs of size about "
        f"1, losses within {100 * losses:.1f} %. The same field under both schemes agrees as long as h rho is small: "
        f"at h rho = {largest[0]:.1f} they are {largest[1]:.2f} apart." + on_the_digits(solved),
    )


def on_the_digits(solved: Sequence[dict]) -> str:
    """A sentence about networks on the digits that are run by another scheme than the one they were trained with."""
    told = []
    for trained in dict.fromkeys(row["trained by"] for row in solved):
        own, other = (
            np.mean(
                [row["accuracy, %"] for row in solved if row["trained by"] == trained and is_own_scheme(row) is wanted]
            )
            for wanted in (True, False)
        )
        told.append(f"trained by {trained} {own:.0f} % as they were trained and {other:.0f} % under the other scheme")
    return f" Networks on the digits have an accuracy of: {'; '.join(told)}." if told else ""


def is_own_scheme(row: dict) -> bool:
    """Is a network run by the scheme that it was trained with?"""
    return row["run by"] == row["trained by"]


def predicts_error(within: list, between: dict[str, tuple[float, float]], across: dict[str, Estimate]) -> Finding:
    """Does the index go with Euler's error: over images, in most blocks beyond Holm's correction; and between blocks?

    Between blocks it does where the interval of its mean correlation over all networks leaves out 0. Supported where it
    does both, contradicted where it does neither, true of some where one; `across` may be empty, then it is not asked.
    """

    def significant_blocks(measure):
        return [one for one in within if one.measure == measure and one.holm < CHANCE]

    blocks = len({one.block for one in within})
    index = significant_blocks("stiffness_index")
    holds = [len(index) > blocks / 2]
    if "stiffness_index" in across and np.isfinite(across["stiffness_index"].low):
        holds.append(across["stiffness_index"].low > 0 or across["stiffness_index"].high < 0)
    verdict = verdict_of_counts(sum(holds), len(holds) - sum(holds), len(holds)) if blocks else UNDECIDED
    best = sorted({one.measure for one in within}, key=lambda measure: -len(significant_blocks(measure)))[:3]
    listed = ", ".join(f"{measure} in {len(significant_blocks(measure))}" for measure in best)
    means = ", ".join(
        f"{measure} {r:+.2f}" for measure, (r, _) in sorted(between.items(), key=lambda kv: -abs(kv[1][0]))
    )
    everywhere = ", ".join(f"{measure} {interval_text(one, '+.2f')}" for measure, one in across.items())
    return Finding(
        "the stiffness index tells where a block's step is wrong",
        "Section 4",
        verdict,
        f"Euler's error of a block against the exact flow of its branch, over images within {blocks} blocks: the index "
        f"goes with it in {len(index)}; most often do {listed or 'none, for want of images'}. Between the means of "
        f"these blocks (n = {blocks}): {means or 'too few blocks'}."
        + (f" The same, averaged over all shipped networks: {everywhere}." if everywhere else "")
        + " The index is negative: where it is the more negative, the error is larger if the correlation is below 0.",
    )


def generalises(orders: dict[str, float], blocks: int) -> Finding:
    """Supported if blocks keep their order from some inputs to others, Spearman above 0.9, in every comparison."""
    usable = {name: r for name, r in orders.items() if np.isfinite(r)}
    lowest = min(usable.values(), default=float("nan"))
    verdict = UNDECIDED if not usable else SUPPORTED if lowest > 0.9 else CONTRADICTED if lowest < 0.5 else PARTLY
    below = {name: r for name, r in usable.items() if r <= 0.9}
    least = min((r for r in usable.values() if r > 0.9), default=float("nan"))
    listed = "; ".join(f"{name} {r:+.2f}" for name, r in below.items())
    if len(below) < len(usable):
        rest = f"at least {least:+.2f}" if not below else f"the other {len(usable) - len(below)} at least {least:+.2f}"
        listed = "; ".join(part for part in (listed, rest) if part)
    return Finding(
        "the result generalises to other inputs",
        "Section 5",
        verdict,
        f"{len(usable)} rank correlations of block means (n = {blocks}), between two halves of the test images and "
        f"between test images and other inputs: {listed or 'not defined'}. Above 0.9 everywhere would support it, "
        "one below 0.5 contradict it.",
    )
