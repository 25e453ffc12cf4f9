"""What the transformers say about Appendix G and Table 7: verdicts by `design.RULES`, computed from the numbers."""

import collections

import numpy as np

from studies.cifar_tns.findings import few_blocks_finding
from studies.lab.comparisons import compare_seeds, tukey, verdict_of_intervals
from studies.lab.statistics import (
    CONTRADICTED,
    LEVEL,
    PARTLY,
    SUPPORTED,
    UNDECIDED,
    Finding,
    bootstrap_mean,
    interval_text,
    joint_verdict,
    listing,
    sign_of,
    signs_beyond_chance,
    verdict_of_counts,
)
from studies.lab.stiffness import wording
from studies.transformer.design import APART, EXACT, READINGS
from studies.transformer.measures import STEPS


def by_controller(studied) -> dict[str, list]:
    """The networks of every controller, as the list has them."""
    found: dict[str, list] = {}
    for one in studied:
        found.setdefault(one.subject.controller, []).append(one)
    return found


def gain_finding(accuracies: dict[str, list[float]], dataset: str) -> Finding | None:
    """Table 7: StepNet's gain, with intervals over seeds."""
    beyond = tukey("constant", accuracies)
    if "StepNet" not in beyond:
        return None
    ours = {"StepNet": beyond["StepNet"]}
    fewest = min(len(accuracies["StepNet"]), len(accuracies["constant"]))
    words = f"On {dataset}, gains over constant step sizes in points: {listing(beyond)}."
    if fewest < 2:
        words += " One seed of each cannot tell StepNet from its seed."
    else:
        words += f" Intervals are over seeds, {fewest} at the least, and hold all together (Tukey-Kramer)."
    return Finding("StepNet raises the accuracy of a ViT.", "Table 7", verdict_of_intervals(ours), words)


def average_finding(attention) -> Finding:
    """Eq. 32; `attention` are the attention steps of all networks."""
    least, greatest = min(a.row_sums[0] for a in attention), max(a.row_sums[1] for a in attention)
    ones = max(abs(least - 1), abs(greatest - 1)) <= EXACT
    words = (
        f"Rows of the attention sum to {least:.6f} at the least and {greatest:.6f} at the most, over {len(attention)} "
        f"attention steps. Eq. 32 prints a product of attention and values element by element; what a transformer "
        "computes is an average over tokens, whose weights sum to 1: a step of exactly 1, which no input makes smaller."
    )
    claim = "A transformer's attention is a step size below 1, as a gate of channels is."
    return Finding(claim, "Appendix G, Eq. 32", CONTRADICTED if ones else UNDECIDED, words)


def inverse_finding(attention) -> Finding:
    """Eq. 33 with the value map of all heads together."""
    below = sum(a.recovered <= a.rounding for a in attention)
    conditions = [a.condition for a in attention]
    worst = max(attention, key=lambda a: a.recovered)
    verdict = SUPPORTED if below == len(attention) else PARTLY if below else CONTRADICTED
    words = (
        f"Q computed from V alone errs by at most {worst.recovered:.1e}, below ten rounding errors times the condition "
        f"of the value map at {below} of {len(attention)} steps (condition {min(conditions):.0f} to "
        f"{max(conditions):.0f}). About stiffness that says little: any invertible map of the tokens would do."
    )
    return Finding(
        "The queries are a function of the values, so attention sees the slope.", "Appendix G, Eq. 33", verdict, words
    )


def head_finding(attention, features: int) -> Finding:
    """Eq. 33 for one head, whose value map loses dimensions."""
    lower = sum(a.head_rank < features for a in attention)
    losses = [a.head_loss for a in attention]
    words = (
        f"A head's value map has rank {max(a.head_rank for a in attention)} for tokens of {features} features: it has "
        f"no inverse, and the best guess of a head's queries from its own values errs by {min(losses):.2f} to "
        f"{max(losses):.2f} of their norm. Attention is computed head by head."
    )
    verdict = CONTRADICTED if lower == len(attention) else PARTLY if lower else SUPPORTED
    return Finding("The same holds in every head, where attention is computed.", "Appendix G, Eq. 33", verdict, words)


def larger_finding(studied) -> Finding | None:
    """Figure 2 on transformers, under each of the eight readings."""
    groups = by_controller(studied)
    plain = groups.pop("constant", [])
    if not plain or not groups:
        return None
    verdicts, words = {}, collections.defaultdict(list)
    for reading in READINGS:
        signs = [
            compare_seeds([one.tns[reading] for one in members], [one.tns[reading] for one in plain])
            for members in groups.values()
        ]
        verdicts[reading] = verdict_of_counts(signs.count(1), signs.count(-1), len(signs))
        outcome = f"{signs.count(1)} above, {signs.count(-1)} below, of {len(signs)}"
        words[outcome].append(reading_in_words(reading))
    parts = [
        f"{outcome} ({'all eight readings' if len(readings) == len(READINGS) else '; '.join(readings)})"
        for outcome, readings in words.items()
    ]
    text = f"Controllers whose TNS is above or below that of constant step sizes: {'; '.join(parts)}."
    verdict = joint_verdict(verdicts.values())
    if min(map(len, (plain, *groups.values()))) < 2:
        text += " There is one network of some of them, and another seed could reverse this."
        verdict = UNDECIDED
    return Finding("Transformers with step-size control have a larger TNS.", "Figure 2", verdict, text)


def reading_in_words(reading) -> str:
    of, mu, kinds = reading
    return wording(of, mu) + (", kinds apart" if kinds == APART else "")


def step_finding(claim: str, where: str, pairs) -> Finding | None:
    """Correlations over images at single steps, counted."""
    found = signs_beyond_chance(pairs)
    total = len(found.values)
    if not total:
        return None
    words = (
        f"Correlations over images, one per network and step: {total}, beyond chance {found.negative} of them negative "
        f"and {found.positive} positive (Bonferroni, {100 * LEVEL:.0f} %). They lie between {min(found.values):+.2f} "
        f"and {max(found.values):+.2f}."
    )
    return Finding(claim, where, verdict_of_counts(found.negative, found.positive, total), words)


def gate_pairs(studied):
    """Step size and NSI over images, at every counted step with a step size that varies."""
    for one in studied:
        record = one.found.records["slope"].counted()
        yield from zip(record.step_sizes.T, record.nsi.T, strict=True)


def diagonal_pairs(studied):
    """What a token keeps of itself and NSI over images, at every counted attention step."""
    for one in studied:
        record = one.found.records["slope"]
        for step in one.attention:
            column = record.names.index(step.name)
            if not record.first[column]:
                yield step.diagonal, record.nsi[: one.seen, column]


def along_finding(along: list[dict[str, np.ndarray]], chosen: np.ndarray) -> Finding | None:
    """Figure 9b as worded: per trajectory, over its steps; `along` holds one dictionary per network."""
    verdicts, words = [], []
    for kind in STEPS:
        means = [bootstrap_mean(one[kind], chosen) for one in along if kind in one]
        if not means:
            continue
        signs = [sign_of(e) for e in means]
        verdicts.append(verdict_of_counts(signs.count(-1), signs.count(1), len(signs)))
        below = np.mean([np.mean(one[kind] < 0) for one in along if kind in one])
        steps = "all steps" if kind == "all" else f"{kind} steps alone"
        words.append(
            f"over {steps} the mean is {', '.join(interval_text(e, '+.2f') for e in means)}, "
            f"negative for {100 * below:.0f} % of the images"
        )
    if not verdicts:
        return None
    return Finding(
        "Along a trajectory a larger NSI goes with a smaller step size.",
        "Figure 9b, as worded",
        joint_verdict(verdicts),
        f"Spearman's correlation along the counted steps of single images, network by network: {'; '.join(words)}.",
    )


def findings(studied, dataset: str, chosen: np.ndarray) -> list[Finding]:
    """All findings that these networks allow, in the order of `design.RULES`."""
    attention = [step for one in studied for step in one.attention]
    (features,) = {one.subject.net.config["widths"][0] for one in studied} or {0}
    accuracies = {name: [one.found.accuracy for one in members] for name, members in by_controller(studied).items()}
    few = few_blocks_finding([one.found for one in studied])
    all_of_them = [
        gain_finding(accuracies, dataset),
        average_finding(attention),
        inverse_finding(attention),
        head_finding(attention, features),
        larger_finding(studied),
        few,
        step_finding("At a step, a larger NSI goes with a smaller step size.", "Figure 9a", gate_pairs(studied)),
        along_finding([one.along for one in studied if one.along], chosen),
        step_finding(
            "Where NSI is larger, tokens keep less of themselves.", "Figure 9, on attention", diagonal_pairs(studied)
        ),
    ]
    return [finding for finding in all_of_them if finding is not None]
