"""The claims about attention values: are they constants, since when, what do they embody, and what do they cost?"""

import numpy as np
from scipy import stats

from studies.asr import design
from studies.asr.findings.evidence import (
    NOT_LOOKED_AT,
    Evidence,
    group_by_name,
    unmeasured_finding,
    verdict_if_complete,
)
from studies.lab.statistics import LEVEL, UNDECIDED, Estimate, Finding, estimate, listing, verdict_of_counts

CONSTANT = 0.9  # a share of the variance from which on gates may be called constants
COSTS_LITTLE = 2.0  # points: constants that lose less stand for the gates
PAPERS_LOSS = -28.0  # points or per cent, Section 6
PAPERS_REST = -15.0  # the same after fine-tuning
REMEMBERED = 0.5  # a correlation with the initial gates above which they are half remembered


def approach(e: Evidence) -> Finding:
    """The mean over blocks of share after minus share before, by module; gates that start constant are left out."""
    differences = {}
    for name, networks in group_by_name(e.shares).items():
        values, draws = [], []
        for one in networks:
            for after, before in zip(one.share, one.untrained, strict=True):
                if np.isfinite(before):
                    values.append(after.value - before)
                    draws.append(after.draws - before)
        if values:
            differences[name] = estimate(np.mean(values), np.mean(draws, axis=0))
    if not differences:
        claim = "Attention values approach constants in training."
        return unmeasured_finding(claim, "Section 3, Figure 2", NOT_LOOKED_AT)
    undefined = [name for name in group_by_name(e.shares) if name not in differences]
    words = f"Share of the gates' variance that is the channel's, after training minus before: {listing(differences)}."
    if undefined:
        words += f" The untrained gates of {', '.join(undefined)} are exactly constant: nothing to compare with."
    verdict = verdict_if_complete(differences, differences)
    return Finding("Attention values approach constants in training.", "Section 3, Figure 2", verdict, words)


def stripes(e: Evidence) -> Finding:
    """Constants in every block of every network of a module, by the interval of its smallest share."""
    above = below = 0
    words = []
    for name, networks in group_by_name(e.shares).items():
        all_of_them = [one for network in networks for one in network.share]
        smallest = min(all_of_them, key=lambda one: one.value)
        above += smallest.low > CONSTANT
        below += smallest.high < CONSTANT
        words.append(f"{name} {smallest.value:.2f} to {max(one.value for one in all_of_them):.2f}")
    claim = f"Trained attention values are constants (a share of at least {CONSTANT} in every block)."
    where = "Section 3, Figures 22 to 28"
    if not words:
        return unmeasured_finding(claim, where, NOT_LOOKED_AT)
    shown = f"Share from block to block: {'; '.join(words)}."
    return Finding(claim, where, verdict_of_counts(above, below, len(words)), shown)


def embody(e: Evidence) -> Finding:
    """A block contradicts where the interval of the correlation is above 0, supports where it is below a half."""
    networks = group_by_name(e.shares).get("SE", [])
    intervals = [
        fisher_interval(value, len(start))
        for one in networks
        for value, start in zip(one.origin, one.start, strict=True)
        if np.isfinite(value)
    ]
    remembered = sum(low > 0 for low, _ in intervals)
    forgotten = sum(high < REMEMBERED for _, high in intervals)
    verdict = verdict_of_counts(forgotten, remembered, len(intervals)) if intervals else UNDECIDED
    values = [value for one in networks for value in one.origin if np.isfinite(value)]
    words = (
        f"Correlation over the channels of SE's mean gates before and after training: {min(values):.2f} to "
        f"{max(values):.2f} over {len(values)} blocks, the interval above 0 in {remembered}. The constants remember "
        "the biases they were drawn with."
        if values
        else "No network of SE was looked at."
    )
    missing = []
    for part, scale in (("origin", design.LARGE_SCALE), ("small", design.SMALL_SCALE)):
        rows = e.rows.get((part, ""), {})
        for arm, how in (("SE", "as they are drawn"), ("SE, b2 = 0", "at 0 before training")):
            found = [block["origin"] for one in rows.get(arm, []) for block in one.blocks]
            found = [value for value in found if value is not None]
            if found:
                words += f" Trained {scale}, these biases {how}: {min(found):.2f} to {max(found):.2f}"
                words += f" over {len(found)} blocks of {len(rows[arm])} networks."
            else:
                missing.append(f"{scale}, biases {how}")
    if missing:
        words += f" Undecided, n = 0: {'; '.join(missing)}."
    return Finding("The constants embody priors of the data set.", "Section 3", verdict, words)


def fisher_interval(value: float, count: int) -> tuple[float, float]:
    """Fisher's interval of a correlation of `count` pairs."""
    centre, width = np.arctanh(min(value, 1 - 1e-12)), stats.norm.ppf(0.5 + LEVEL / 2) / np.sqrt(count - 3)
    return float(np.tanh(centre - width)), float(np.tanh(centre + width))


def changes_by_network(e: Evidence) -> dict[str, Estimate]:
    return {f"{one.name} (seed {one.seed})": one.change for one in e.replaced}


def stand_in(e: Evidence) -> Finding:
    found = changes_by_network(e)
    claim = f"Constants can stand for the attention values (at a loss of less than {COSTS_LITTLE:g} points)."
    if not found:
        return unmeasured_finding(claim, "Section 3", NOT_LOOKED_AT)
    above = sum(one.low > -COSTS_LITTLE for one in found.values())
    below = sum(one.high < -COSTS_LITTLE for one in found.values())
    words = f"Points gained when every gate becomes its mean over training images: {listing(found)}."
    if len(e.replaced) > 2:
        rank = stats.spearmanr([one.share for one in e.replaced], [one.change.value for one in e.replaced])
        words += f" Loss follows the share that is constant: Spearman's rho {rank.statistic:.2f}, n = {len(found)}."
    return Finding(claim, "Section 3", verdict_of_counts(above, below, len(found)), words)


def papers_loss(e: Evidence) -> Finding:
    found = changes_by_network(e)
    if not found:
        return unmeasured_finding("Attention values replaced by constants cost 28 %.", "Section 6 (1)", NOT_LOOKED_AT)
    inside = sum(one.low <= PAPERS_LOSS <= one.high for one in found.values())
    verdict = verdict_of_counts(inside, len(found) - inside, len(found))
    words = f"The interval of the loss holds {-PAPERS_LOSS:g} points for {inside} of {len(found)} networks."
    return Finding("Attention values replaced by constants cost 28 %.", "Section 6 (1)", verdict, words)


def loss_after_finetuning(e: Evidence) -> Finding:
    """The interval of the loss that remains must hold 15 points for a network to agree."""
    results = {
        f"{name} (seed {one.seed})": Estimate(*one.beyond)
        for name, found in e.rows.get(("finetuned", ""), {}).items()
        for one in found
    }
    inside = sum(one.low <= PAPERS_REST <= one.high for one in results.values())
    verdict = verdict_of_counts(inside, len(results) - inside, len(results)) if results else UNDECIDED
    words = "n = 0."
    if results:
        words = (
            "Points above the network with its gates, when constants have replaced them and the other weights were "
            f"trained on for an epoch: {listing(results)}. The interval holds {PAPERS_REST:g} for {inside} of "
            f"{len(results)} networks."
        )
    return Finding("Even with fine-tuning the replacement costs 15 %.", "Section 6 (1)", verdict, words)


def first_decay(e: Evidence) -> Finding:
    """Per block, the slowdown of the gates at the first drop of the rate against that of the normalisations' scales.

    Decided where a network of every module is there that the design watches at the drop.
    """
    rows = e.rows.get(("dynamics", ""), {})
    steps = [one for name in design.AT_THE_DROP for one in rows.get(name, [])]
    constant = rows.get(design.AT_A_CONSTANT_RATE, [])
    drop = next((one.recipe["drops"][0] for one in steps if one.recipe.get("drops")), design.DYNAMICS["drops"][0])
    ratios = [ratio for one in steps for ratio in slowdowns(one, drop)]
    if not ratios:
        return unmeasured_finding(
            "Attention values converge at the first decay of the rate.", "Figures 2c and 11 to 18", "not run"
        )
    more, less = sum(ratio < 1 for ratio in ratios), sum(ratio > 1 for ratio in ratios)
    words = (
        f"How much the gates slow down at the drop, over how much the scales of all normalisations do: median "
        f"{np.median(ratios):.2f} over {len(ratios)} blocks (networks: {len(steps)}), below 1 in {more}."
    )
    still = [ratio for one in constant for ratio in slowdowns(one, drop, alone=True)]
    if still:
        words += f" At a constant rate the gates move {np.median(still):.2f} times as far as before at that epoch."
    missing = [name for name in design.AT_THE_DROP if not rows.get(name)]
    words += f" One seed each{'; n = 0: ' + '; '.join(missing) if missing else ''}."
    return Finding(
        "Attention values converge at the first decay of the rate.",
        "Figures 2c and 11 to 18",
        UNDECIDED if missing else verdict_of_counts(more, less, len(ratios)),
        words,
    )


def slowdowns(result, drop: int, alone: bool = False) -> list[float]:
    """Of every block: movement of the gates after the drop over before it, divided by the same of the scales."""
    moved = {record["epoch"]: record["moved"] for record in result.log if "moved" in record}
    if not {drop, drop + 1} <= moved.keys():
        return []
    before, after = moved[drop], moved[drop + 1]
    scales = 1.0 if alone else after["scales"] / before["scales"]
    return [
        after[key] / before[key] / scales
        for key in before
        if key.startswith("gate") and before[key] and after[key] is not None
    ]


def spatial(e: Evidence) -> Finding:
    """Per block of CBAM and of transformers, whether more of the variance is the images' or the position's."""
    kinds = {"CBAM's spatial gates": e.spatial, "transformers' attention": e.attention}
    values = {name: [x for one in found for x in one["share"] if np.isfinite(x)] for name, found in kinds.items()}
    every = [x for shares in values.values() for x in shares]
    more, less = sum(x < 0.5 for x in every), sum(x > 0.5 for x in every)
    words = "".join(
        f" Of {name}: {min(shares):.2f} to {max(shares):.2f}, above a half in {sum(x > 0.5 for x in shares)} of "
        f"{len(shares)} blocks."
        if shares
        else f" No network with {name} was looked at."
        for name, shares in values.items()
    )
    if every:
        words = f"Share of the variance that is the position's; above a half they are mostly constants.{words}"
    verdict = verdict_of_counts(more, less, len(every)) if every else UNDECIDED
    return Finding(
        "Spatial and transformer attention are not constant.", "Section 6 (4), Figure 29", verdict, words.strip()
    )
