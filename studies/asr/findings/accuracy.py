"""The claims about accuracy: what ASR gains, alone, under noise, beside a module and on other backbones, and why."""

import numpy as np
from scipy import stats

from studies.asr import design
from studies.asr.design import BIAS, FAITHFUL, GAMMA, HALF, LAYER_SCALE, LITERAL, PLAIN
from studies.asr.findings.evidence import (
    FEWEST_SEEDS,
    Evidence,
    count_seeds,
    fewest_seeds,
    over_seeds,
    over_settings,
    verdict_if_complete,
)
from studies.lab.comparisons import welch
from studies.lab.statistics import UNDECIDED, Estimate, Finding, listing, verdict_of_counts


def living_units(e: Evidence, arm: str) -> str:
    """The hidden units of an arm's heads that are alive, of all blocks and seeds together."""
    results = [one for part in ("controls", "small") for one in e.rows.get((part, ""), {}).get(arm, [])]
    blocks = [block for one in results for block in one.blocks if block["hidden"]]
    if not blocks:
        return ""
    start, end, total = (sum(part) for part in zip(*((*b["alive"], b["hidden"]) for b in blocks), strict=True))
    return f" Hidden units alive in {arm}: {start} of {total} before training, {end} after it."


def controls_by_scale(e: Evidence) -> dict[str, dict[str, list[float]]]:
    """The accuracies of the controls at both scales."""
    return {design.LARGE_SCALE: e.accuracies("controls"), design.SMALL_SCALE: e.accuracies("small")}


def gain(e: Evidence) -> Finding:
    """By the arm whose heads have the paper's numbers of hidden units, and the literal one where it has its seeds."""
    beyond, words = over_settings(PLAIN, controls_by_scale(e), (FAITHFUL,), (LITERAL,))
    words = f"Points above the plain network, {words}." + "".join(living_units(e, name) for name in (FAITHFUL, LITERAL))
    return Finding(
        "ASR raises accuracy at no cost in inference.", "Tables 2 and 3", verdict_if_complete(beyond, beyond), words
    )


def attention(e: Evidence) -> Finding:
    beyond, words = over_settings(FAITHFUL, controls_by_scale(e), (HALF, GAMMA, BIAS))
    words = (
        f"Points of the controls above {FAITHFUL}, negative where the claim is right, {words}. A constant gate changes "
        f"no function class; all it can change is how training goes.{living_units(e, FAITHFUL)}"
    )
    verdict = verdict_if_complete(beyond, beyond, -1)
    return Finding("It is the attention module that does it.", "Sections 1 and 4", verdict, words)


def accuracies_by_noise(e: Evidence, random: bool) -> dict[str, dict[str, list[float]]]:
    """The accuracies under every noise of a kind."""
    kind = [name for name, noise in design.NOISES.items() if noise is not None and (noise[2] > 0.0) is random]
    return {name: e.accuracies("noise", name) for name in kind}


def constant_noise(e: Evidence) -> Finding:
    """ASR above the plain network and above a constant half, by Dunnett; Welch's intervals are told beside them."""
    settings = accuracies_by_noise(e, random=False)
    beyond, words = over_settings(FAITHFUL, settings, (PLAIN, HALF))
    words = f"Points above {FAITHFUL}, negative where the claim is right, {words}."
    apart = {
        f"{name}, {column}": one
        for column, groups in settings.items()
        if fewest_seeds(groups, (FAITHFUL, PLAIN, HALF)) >= FEWEST_SEEDS
        for name, one in welch(FAITHFUL, {arm: groups[arm] for arm in (FAITHFUL, PLAIN, HALF)}).items()
    }
    if apart:
        words += f" With deviations that may differ (Welch, each interval for itself): {listing(apart)}."
    words += " Constant noise is another first value of scale and shift, and no noise."
    return Finding("ASR regulates constant noise.", "Table 8", verdict_if_complete(beyond, beyond, -1), words)


def random_noise(e: Evidence) -> Finding:
    """Accuracy above the plain network's, and the variance over seeds below its, by a two-sided F-test.

    The claim is about both. The variance joined the verdict after the first numbers had been seen: with a gain of
    accuracy alone the claim would have counted as supported, beside a variance forty times as large.
    """
    settings = accuracies_by_noise(e, random=True)
    beyond, words = over_settings(PLAIN, settings, (FAITHFUL,))
    ratios = {
        column: variance_ratio(groups[FAITHFUL], groups[PLAIN])
        for column, groups in settings.items()
        if fewest_seeds(groups, (PLAIN, FAITHFUL)) >= FEWEST_SEEDS and np.var(groups[PLAIN]) > 0
    }
    above = sum(one.low > 0 for one in beyond.values()) + sum(one.high < 1 for one in ratios.values())
    below = sum(one.high < 0 for one in beyond.values()) + sum(one.low > 1 for one in ratios.values())
    verdict = verdict_of_counts(above, below, len(beyond) + len(ratios)) if beyond and ratios else UNDECIDED
    told = "; ".join(f"{name} {one.value:.2f} [{one.low:.2f}, {one.high:.2f}]" for name, one in ratios.items())
    words = (
        f"Points above the plain network, {words}. Variance over seeds, over the plain one's, below 1 where the claim "
        f"is right: {told or 'undecided, too few seeds'}. Points of a constant half above the plain network, "
        f"{over_settings(PLAIN, settings, (HALF,))[1]}."
    )
    return Finding("ASR regulates random noise, with a smaller variance.", "Table 8", verdict, words)


def variance_ratio(ours: list[float], theirs: list[float]) -> Estimate:
    """The quotient of two variances, with its interval by the F-distribution."""
    ratio = np.var(ours, ddof=1) / np.var(theirs, ddof=1)
    low, high = (ratio / stats.f.ppf(q, len(ours) - 1, len(theirs) - 1) for q in (0.975, 0.025))
    return Estimate(float(ratio), float(low), float(high))


def bound(e: Evidence) -> Finding:
    """log10 of the bound: ASR's below the plain network's, over the seeds of each scale, by Dunnett."""
    settings = {
        scale: {arm: [one.bound[0] for one in found if one.bound] for arm, found in e.rows.get((part, ""), {}).items()}
        for part, scale in (("controls", design.LARGE_SCALE), ("small", design.SMALL_SCALE))
    }
    beyond, words = over_settings(PLAIN, settings, (FAITHFUL,), (LITERAL,))
    words = f"log10 of the bound above the plain network's, negative where the claim is right, {words}."
    if e.bounds:
        logs = "; ".join(
            f"{one['name']} (seed {one['seed']}) {float(one['bound'][-1]):.2f}, growth {one['growth'][-1]:.0f}"
            for one in e.bounds
        )
        words += f" Shipped networks, whose psi decays: {logs}. A larger bound cannot explain a smaller growth."
    claim = "The bound on perturbations explains ASR's robustness."
    return Finding(claim, "Theorem 6.1", verdict_if_complete(beyond, beyond, -1), words)


def accuracies_by_scale(e: Evidence, part: str) -> dict[str, dict[str, list[float]]]:
    """The accuracies of a part at both scales, with those of the controls of each scale."""
    return {
        design.LARGE_SCALE: e.accuracies("controls") | e.accuracies(part),
        design.SMALL_SCALE: e.accuracies("small") | e.accuracies(part, design.SMALL_SCALE),
    }


def several_uses(e: Evidence) -> Finding:
    """Every number of uses against one; a constant of the same size stands beside it in the table."""
    beyond, words = over_settings(FAITHFUL, accuracies_by_scale(e, "uses"), design.DECIDING_USES)
    words = f"Points above one use, {words}."
    return Finding(
        "Several uses help, up to two or three.", "Tables 6 and 14", verdict_if_complete(beyond, beyond), words
    )


def learnt_psi(e: Evidence) -> Finding:
    """Every fixed psi against one that is learnt, from 0.1 on."""
    beyond, words = over_settings(FAITHFUL, accuracies_by_scale(e, "fixed"), design.FIXED)
    psi = [
        block["psi"]
        for part in ("controls", "small")
        for one in e.rows.get((part, ""), {}).get(FAITHFUL, [])
        for block in one.blocks
    ]
    words = f"Points above a learnt psi, negative where the claim is right, {words}."
    if psi := [one for one in psi if one]:
        moved = [abs(mean - start) for mean, _, start in psi]
        words += f" A learnt psi, which does not decay here, moved by {np.mean(moved):.4f} on average from its 0.1."
    return Finding(
        "psi must be learnt, and 0.1 is crucial.", "Tables 7 and 13", verdict_if_complete(beyond, beyond, -1), words
    )


def beside(e: Evidence) -> Finding:
    """Every module with ASR beside it against the module alone; a scale decides that has all four with their seeds."""
    decisive: dict[str, Estimate] = {}
    told_of = []
    for scale, groups in accuracies_by_scale(e, "beside").items():
        names = {module: f"{module} + ASR({module})" for module in ("SE", "IE", "SRM", "SPA")}
        found = {k: v for module, name in names.items() for k, v in over_seeds(module, groups, (name,)).items()}
        if fewest_seeds(groups, (*names, *names.values())) >= FEWEST_SEEDS:
            decisive |= {f"{name}, {scale}": one for name, one in found.items()}
        counts = count_seeds(groups, names.values())
        told_of.append(f"{scale}: {listing(found)} ({counts})" if found else f"{scale}: {counts}")
    words = f"Points above the live module alone, {'; '.join(told_of)}."
    return Finding(
        "ASR raises accuracy beside a live module.", "Table 4", verdict_if_complete(decisive, decisive), words
    )


def accuracies_by_backbone(e: Evidence, names) -> dict[str, dict[str, list[float]]]:
    return {name: e.accuracies("backbones", name) for name in names}


def reparameterised_backbones(e: Evidence) -> Finding:
    """RepVGG and ACNet with ASR against the same network without ASR."""
    settings = accuracies_by_backbone(e, design.SRP)
    beyond, words = over_settings(PLAIN, settings, (FAITHFUL,))
    words = f"Points above the same network without ASR, {words}."
    return Finding(
        "ASR raises accuracy on top of RepVGG and ACNet.", "Table 5", verdict_if_complete(beyond, beyond), words
    )


def transformers(e: Evidence) -> Finding:
    """Above the plain transformer and above LayerScale, which starts at the same value."""
    name = design.TRANSFORMER
    beyond, words = over_settings(FAITHFUL, accuracies_by_backbone(e, [name]), (PLAIN, LAYER_SCALE))
    words = f"Points above ASR(SE) with tanh and {design.FIRST_FACTOR:g}, negative where the claim is right, {words}."
    claim = "ASR raises the accuracy of vision transformers, beyond what LayerScale does."
    return Finding(claim, "Table 2", verdict_if_complete(beyond, beyond, -1), words)
