"""Eighteen claims of the paper and the verdicts of these data; every rule stands here.

The rules were written before any number, but for one: findings 1 and 9 are decided by the arm with r = 4 alone where
the literal arm lacks seeds, which was settled when two seeds had been seen. Some claims were given more cases later,
each before any number of those cases was known: a small scale (uses, psi, ASR beside a module), larger images (speed),
and transformers (spatial attention).

A claim over several cases (modules, blocks, noises, arms) is supported where every case's interval lies on its side,
contradicted where every one lies on the other, true of some where both happen, and undecided otherwise. Seeds need to
be at least three in every arm of a comparison for an interval to be believed. Where a claim is asked at several scales,
under several noises or on several backbones, those decide whose arms all have their three seeds; the others are named.
"""

import dataclasses

import numpy as np
from scipy import stats

from studies.asr import design, style
from studies.asr.design import BIAS, FAITHFUL, GAMMA, HALF, LAYER_SCALE, LITERAL, PLAIN
from studies.lab.statistics import (
    LEVEL,
    UNDECIDED,
    Estimate,
    Finding,
    counted,
    decided,
    dunnett,
    estimate,
    shown_interval,
    told,
    welch,
)

FEWEST_SEEDS = 3
CONSTANT = 0.9  # a share of the variance from which on gates may be called constants
COSTS_LITTLE = 2.0  # points: constants that lose less stand for the gates
PAPERS_LOSS = -28.0  # points or per cent, Section 6
PAPERS_REST = -15.0  # the same after fine-tuning
PAPERS_SLOWDOWN = 0.36
ALIKE = 0.1  # of a loss: differences below that are no difference
NOT_LOOKED_AT = "these networks were not looked at in this run"
PAPERS_SIX = ("IE", "SRM", "CBAM", "SE", "DIA", "SPA")  # the modules of Table 1
REMEMBERED = 0.5  # a correlation with the initial gates above which they are half remembered


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
        if fewest(groups, (control, *names)) >= FEWEST_SEEDS:
            beyond |= {f"{name}, {setting}": one for name, one in found.items() if np.isfinite(one.low)}
        counts = seeds_of(groups, (control, *names, *also))
        words.append(f"{setting}: {told(found)} ({counts})" if found else f"{setting}: {counts}")
    if empty:
        words.append(f"n = 0: {', '.join(empty)}")
    return beyond, "; ".join(words)


def fewest(groups, names) -> int:
    return min(len(groups.get(name, [])) for name in names)


def seeds_of(groups, names) -> str:
    """How many seeds every arm has, in words: arms with as many seeds stand together."""
    counts: dict[int, list[str]] = {}
    for name in names:
        counts.setdefault(len(groups.get(name, [])), []).append(name)
    if len(counts) == 1:
        return f"n = {next(iter(counts))} each"
    return "; ".join(f"n = {count}: {', '.join(found)}" for count, found in sorted(counts.items(), reverse=True))


def ruled(beyond: dict[str, Estimate], names, sign: int = 1) -> str:
    """`decided`, over all the cases that the claim is about: one that is missing leaves it open."""
    verdict = decided(beyond, sign) if beyond else UNDECIDED
    complete = set(names) <= set(beyond) and all(np.isfinite(e.low) for e in beyond.values())
    return verdict if complete else UNDECIDED


def findings(e: Evidence) -> list[Finding]:
    """In the order of ASR's claims."""
    return [
        gain(e),
        attention(e),
        approach(e),
        stripes(e),
        embody(e),
        stand_in(e),
        papers_loss(e),
        finetuned(e),
        first_decay(e),
        constant_noise(e),
        random_noise(e),
        bound(e),
        several_uses(e),
        learnt_psi(e),
        beside(e),
        reparameterised(e),
        transformers(e),
        slower(e),
        paints_alike(e),
        centre(e),
        spatial(e),
    ]


def not_run(claim: str, where: str, why: str) -> Finding:
    return Finding(claim, where, UNDECIDED, f"n = 0: {why}.")


def living(e: Evidence, arm: str) -> str:
    """The hidden units of an arm's heads that are alive, of all blocks and seeds together."""
    results = [one for part in ("controls", "small") for one in e.rows.get((part, ""), {}).get(arm, [])]
    blocks = [block for one in results for block in one.blocks if block["hidden"]]
    if not blocks:
        return ""
    start, end, total = (sum(part) for part in zip(*((*b["alive"], b["hidden"]) for b in blocks), strict=True))
    return f" Hidden units alive in {arm}: {start} of {total} before training, {end} after it."


def scales(e: Evidence) -> dict[str, dict[str, list[float]]]:
    """The accuracies of the controls at both scales."""
    return {design.LARGE_SCALE: e.accuracies("controls"), design.SMALL_SCALE: e.accuracies("small")}


def gain(e: Evidence) -> Finding:
    """By the arm whose heads have the paper's numbers of hidden units, and the literal one where it has its seeds."""
    beyond, words = over_settings(PLAIN, scales(e), (FAITHFUL,), (LITERAL,))
    words = f"Points above the plain network, {words}." + "".join(living(e, name) for name in (FAITHFUL, LITERAL))
    return Finding("ASR raises accuracy at no cost in inference.", "Tables 2 and 3", ruled(beyond, beyond), words)


def attention(e: Evidence) -> Finding:
    beyond, words = over_settings(FAITHFUL, scales(e), (HALF, GAMMA, BIAS))
    words = (
        f"Points of the controls above {FAITHFUL}, negative where the claim is right, {words}. A constant gate changes "
        f"no function class; all it can change is how training goes.{living(e, FAITHFUL)}"
    )
    verdict = ruled(beyond, beyond, -1)
    return Finding("It is the attention module that does it.", "Sections 1 and 4", verdict, words)


def approach(e: Evidence) -> Finding:
    """The mean over blocks of share after minus share before, by module; gates that start constant are left out."""
    differences = {}
    for name, networks in by_name(e.shares).items():
        values, draws = [], []
        for one in networks:
            for after, before in zip(one.share, one.untrained, strict=True):
                if np.isfinite(before):
                    values.append(after.value - before)
                    draws.append(after.draws - before)
        if values:
            differences[name] = estimate(np.mean(values), np.mean(draws, axis=0))
    if not differences:
        return not_run("Attention values approach constants in training.", "Section 3, Figure 2", NOT_LOOKED_AT)
    undefined = [name for name in by_name(e.shares) if name not in differences]
    words = f"Share of the gates' variance that is the channel's, after training minus before: {told(differences)}."
    if undefined:
        words += f" The untrained gates of {', '.join(undefined)} are exactly constant: nothing to compare with."
    verdict = ruled(differences, differences)
    return Finding("Attention values approach constants in training.", "Section 3, Figure 2", verdict, words)


def stripes(e: Evidence) -> Finding:
    """Constants in every block of every network of a module, by the interval of its smallest share."""
    above = below = 0
    words = []
    for name, networks in by_name(e.shares).items():
        all_of_them = [one for network in networks for one in network.share]
        smallest = min(all_of_them, key=lambda one: one.value)
        above += smallest.low > CONSTANT
        below += smallest.high < CONSTANT
        words.append(f"{name} {smallest.value:.2f} to {max(one.value for one in all_of_them):.2f}")
    claim = f"Trained attention values are constants (a share of at least {CONSTANT} in every block)."
    where = "Section 3, Figures 22 to 28"
    if not words:
        return not_run(claim, where, NOT_LOOKED_AT)
    shown = f"Share from block to block: {'; '.join(words)}."
    return Finding(claim, where, counted(above, below, len(words)), shown)


def embody(e: Evidence) -> Finding:
    """A block contradicts where the interval of the correlation is above 0, supports where it is below a half."""
    networks = by_name(e.shares).get("SE", [])
    intervals = [
        fisher(value, len(start))
        for one in networks
        for value, start in zip(one.origin, one.start, strict=True)
        if np.isfinite(value)
    ]
    remembered = sum(low > 0 for low, _ in intervals)
    forgotten = sum(high < REMEMBERED for _, high in intervals)
    verdict = counted(forgotten, remembered, len(intervals)) if intervals else UNDECIDED
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


def fisher(value: float, count: int) -> tuple[float, float]:
    """Fisher's interval of a correlation of `count` pairs."""
    centre, width = np.arctanh(min(value, 1 - 1e-12)), stats.norm.ppf(0.5 + LEVEL / 2) / np.sqrt(count - 3)
    return float(np.tanh(centre - width)), float(np.tanh(centre + width))


def losses(e: Evidence) -> dict[str, Estimate]:
    return {f"{one.name} (seed {one.seed})": one.change for one in e.replaced}


def stand_in(e: Evidence) -> Finding:
    found = losses(e)
    claim = f"Constants can stand for the attention values (at a loss of less than {COSTS_LITTLE:g} points)."
    if not found:
        return not_run(claim, "Section 3", NOT_LOOKED_AT)
    above = sum(one.low > -COSTS_LITTLE for one in found.values())
    below = sum(one.high < -COSTS_LITTLE for one in found.values())
    words = f"Points gained when every gate becomes its mean over training images: {told(found)}."
    if len(e.replaced) > 2:
        rank = stats.spearmanr([one.share for one in e.replaced], [one.change.value for one in e.replaced])
        words += f" Loss follows the share that is constant: Spearman's rho {rank.statistic:.2f}, n = {len(found)}."
    return Finding(claim, "Section 3", counted(above, below, len(found)), words)


def papers_loss(e: Evidence) -> Finding:
    found = losses(e)
    if not found:
        return not_run("Attention values replaced by constants cost 28 %.", "Section 6 (1)", NOT_LOOKED_AT)
    inside = sum(one.low <= PAPERS_LOSS <= one.high for one in found.values())
    verdict = counted(inside, len(found) - inside, len(found))
    words = f"The interval of the loss holds {-PAPERS_LOSS:g} points for {inside} of {len(found)} networks."
    return Finding("Attention values replaced by constants cost 28 %.", "Section 6 (1)", verdict, words)


def finetuned(e: Evidence) -> Finding:
    """The interval of the loss that remains must hold 15 points for a network to agree."""
    results = {
        f"{name} (seed {one.seed})": Estimate(*one.beyond)
        for name, found in e.rows.get(("finetuned", ""), {}).items()
        for one in found
    }
    inside = sum(one.low <= PAPERS_REST <= one.high for one in results.values())
    verdict = counted(inside, len(results) - inside, len(results)) if results else UNDECIDED
    words = "n = 0." if not results else (
        "Points above the network with its gates, when constants have replaced them and the other weights were trained "
        f"on for an epoch: {told(results)}. The interval holds {PAPERS_REST:g} for {inside} of {len(results)} networks."
    )  # fmt: skip
    return Finding("Even with fine-tuning the replacement costs 15 %.", "Section 6 (1)", verdict, words)


def first_decay(e: Evidence) -> Finding:
    """Per block, the slowdown of the gates at the first drop of the rate against that of the normalisations' scales."""
    rows = e.rows.get(("dynamics", ""), {})
    steps = [one for name in design.AT_THE_DROP for one in rows.get(name, [])]
    constant = rows.get(design.AT_A_CONSTANT_RATE, [])
    drop = next((one.recipe["drops"][0] for one in steps if one.recipe.get("drops")), design.DYNAMICS["drops"][0])
    ratios = [ratio for one in steps for ratio in slowdowns(one, drop)]
    if not ratios:
        return not_run(
            "Attention values converge at the first decay of the rate.", "Figures 2c and 11 to 18", "not run"
        )
    more, less = sum(ratio < 1 for ratio in ratios), sum(ratio > 1 for ratio in ratios)
    words = (
        f"How much the gates slow down at the drop, over how much the scales of all normalisations do: median "
        f"{np.median(ratios):.2f} over {len(ratios)} blocks of {len(steps)} networks, below 1 in {more}."
    )
    still = [ratio for one in constant for ratio in slowdowns(one, drop, alone=True)]
    if still:
        words += f" At a constant rate the gates move {np.median(still):.2f} times as far as before at that epoch."
    words += " One seed each."
    return Finding(
        "Attention values converge at the first decay of the rate.",
        "Figures 2c and 11 to 18",
        counted(more, less, len(ratios)),
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


def noises(e: Evidence, random: bool) -> dict[str, dict[str, list[float]]]:
    """The accuracies under every noise of a kind."""
    kind = [name for name, noise in design.NOISES.items() if noise is not None and (noise[2] > 0.0) is random]
    return {name: e.accuracies("noise", name) for name in kind}


def constant_noise(e: Evidence) -> Finding:
    """ASR above the plain network and above a constant half, by Dunnett; Welch's intervals are told beside them."""
    settings = noises(e, random=False)
    beyond, words = over_settings(FAITHFUL, settings, (PLAIN, HALF))
    words = f"Points above {FAITHFUL}, negative where the claim is right, {words}."
    apart = {
        f"{name}, {column}": one
        for column, groups in settings.items()
        if fewest(groups, (FAITHFUL, PLAIN, HALF)) >= FEWEST_SEEDS
        for name, one in welch(FAITHFUL, {arm: groups[arm] for arm in (FAITHFUL, PLAIN, HALF)}).items()
    }
    if apart:
        words += f" With deviations that may differ (Welch, each interval for itself): {told(apart)}."
    words += " Constant noise is another first value of scale and shift, and no noise."
    return Finding("ASR regulates constant noise.", "Table 8", ruled(beyond, beyond, -1), words)


def random_noise(e: Evidence) -> Finding:
    """Accuracy above plain; the variance over seeds beside it, by a two-sided F-test."""
    settings = noises(e, random=True)
    beyond, words = over_settings(PLAIN, settings, (FAITHFUL,))
    ratios = []
    for column, groups in settings.items():
        ours, plain = groups.get(FAITHFUL, []), groups.get(PLAIN, [])
        if fewest(groups, (PLAIN, FAITHFUL)) >= FEWEST_SEEDS and np.var(plain) > 0:
            ratio = np.var(ours, ddof=1) / np.var(plain, ddof=1)
            low, high = (ratio / stats.f.ppf(q, len(ours) - 1, len(plain) - 1) for q in (0.975, 0.025))
            ratios.append(f"{column} {ratio:.2f} [{low:.2f}, {high:.2f}]")
    words = f"Points above the plain network, {words}. "
    words += f"Variance over seeds, over the plain one's: {'; '.join(ratios) or 'undecided, too few seeds'}."
    claim = "ASR regulates random noise, with a smaller variance."
    return Finding(claim, "Table 8", ruled(beyond, beyond), words)


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
    return Finding(claim, "Theorem 6.1", ruled(beyond, beyond, -1), words)


def twice(e: Evidence, part: str) -> dict[str, dict[str, list[float]]]:
    """The accuracies of a part at both scales, with those of the controls of each scale."""
    return {
        design.LARGE_SCALE: e.accuracies("controls") | e.accuracies(part),
        design.SMALL_SCALE: e.accuracies("small") | e.accuracies(part, design.SMALL_SCALE),
    }


def several_uses(e: Evidence) -> Finding:
    """Every number of uses against one; a constant of the same size stands beside it in the table."""
    beyond, words = over_settings(FAITHFUL, twice(e, "uses"), design.DECIDING_USES)
    words = f"Points above one use, {words}."
    return Finding("Several uses help, up to two or three.", "Tables 6 and 14", ruled(beyond, beyond), words)


def learnt_psi(e: Evidence) -> Finding:
    """Every fixed psi against one that is learnt, from 0.1 on."""
    beyond, words = over_settings(FAITHFUL, twice(e, "fixed"), design.FIXED)
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
    return Finding("psi must be learnt, and 0.1 is crucial.", "Tables 7 and 13", ruled(beyond, beyond, -1), words)


def beside(e: Evidence) -> Finding:
    """Every module with ASR beside it against the module alone; a scale decides that has all four with their seeds."""
    decisive: dict[str, Estimate] = {}
    told_of = []
    for scale, groups in twice(e, "beside").items():
        names = {module: f"{module} + ASR({module})" for module in ("SE", "IE", "SRM", "SPA")}
        found = {k: v for module, name in names.items() for k, v in over_seeds(module, groups, (name,)).items()}
        if fewest(groups, (*names, *names.values())) >= FEWEST_SEEDS:
            decisive |= {f"{name}, {scale}": one for name, one in found.items()}
        counts = seeds_of(groups, names.values())
        told_of.append(f"{scale}: {told(found)} ({counts})" if found else f"{scale}: {counts}")
    words = f"Points above the live module alone, {'; '.join(told_of)}."
    return Finding("ASR raises accuracy beside a live module.", "Table 4", ruled(decisive, decisive), words)


def on_backbones(e: Evidence, names) -> dict[str, dict[str, list[float]]]:
    return {name: e.accuracies("backbones", name) for name in names}


def reparameterised(e: Evidence) -> Finding:
    """Against the same network without ASR."""
    settings = on_backbones(e, design.SRP)
    beyond, words = over_settings(PLAIN, settings, (FAITHFUL,))
    words = f"Points above the same network without ASR, {words}."
    return Finding("ASR raises accuracy on top of RepVGG and ACNet.", "Table 5", ruled(beyond, beyond), words)


def transformers(e: Evidence) -> Finding:
    """Above the plain transformer and above LayerScale, which starts at the same value."""
    name = design.TRANSFORMER
    beyond, words = over_settings(FAITHFUL, on_backbones(e, [name]), (PLAIN, LAYER_SCALE))
    words = f"Points above ASR(SE) with tanh and {design.FIRST_FACTOR:g}, negative where the claim is right, {words}."
    claim = "ASR raises the accuracy of vision transformers, beyond what LayerScale does."
    return Finding(claim, "Table 2", ruled(beyond, beyond, -1), words)


def slower(e: Evidence) -> Finding:
    """The mean slowdown of the paper's six modules: at each size its rounds' quartiles lie on one side of 36 %."""
    claim, where = "Attention slows inference by more than 36 %.", "Table 1"
    known = {size: found for size, found in e.speeds.items() if set(PAPERS_SIX) <= set(found)}
    if not known:
        return not_run(claim, where, "not measured")
    above = below = 0
    words = []
    for size, found in known.items():
        six = [found[name] for name in PAPERS_SIX]
        slowdown = [1 - ratio for ratio, _ in six]
        low = float(np.mean([1 - quarters[1] if quarters else np.nan for _, quarters in six]))
        high = float(np.mean([1 - quarters[0] if quarters else np.nan for _, quarters in six]))
        above += low > PAPERS_SLOWDOWN
        below += high < PAPERS_SLOWDOWN
        words.append(
            f"At {size} pixels the six modules of Table 1 cost {100 * np.mean(slowdown):.0f} % of the plain speed on "
            f"average (rounds' quartiles {100 * low:.0f} to {100 * high:.0f}), {100 * np.median(slowdown):.0f} % in "
            f"the median; speed over the plain network's: merged {found['ASR(SE) merged'][0]:.2f}, folded "
            f"{found['ASR(SE) folded'][0]:.2f}."
        )
    return Finding(claim, where, counted(above, below, len(known)), " ".join(words))


def paints_alike(e: Evidence) -> Finding:
    """Content and Gram losses against instance normalisation's, in evaluation: within a tenth of it, whole intervals.

    A score agrees where its interval lies within a tenth of the mean of instance normalisation around 0, and disagrees
    where it lies outside.
    """
    names = (style.WITH_ASR, style.BATCH, style.HALVED)
    alike, apart, total, words = 0, 0, 0, []
    for picture in style.STYLES:
        for place, score in enumerate(style.SCORES[:2]):
            own = [one for one in e.painted if one.painting.style == picture]
            groups = {arm: [one.evaluation[place] for one in own if one.painting.arm == arm] for arm in style.ARMS}
            beyond = over_seeds(style.INSTANCE, groups, names)
            counts = seeds_of(groups, (style.INSTANCE, *names))
            words.append(f"{picture}, {score}: {told(beyond, '+.3f')} ({counts})" if beyond else f"{picture}: n = 0")
            if fewest(groups, (style.INSTANCE, style.WITH_ASR)) >= FEWEST_SEEDS:
                one, margin = beyond[style.WITH_ASR], ALIKE * np.mean(groups[style.INSTANCE])
                total += 1
                alike += -margin < one.low and one.high < margin
                apart += margin < one.low or one.high < -margin
    verdict = counted(alike, apart, total) if total else UNDECIDED
    shown = f"Losses above instance normalisation's, in evaluation mode, {'; '.join(dict.fromkeys(words))}."
    claim = "With ASR, batch normalisation transfers style as instance normalisation does."
    return Finding(claim, "Figure 5", verdict, shown)


def centre(e: Evidence) -> Finding:
    """Central mass of a module's maps minus the plain network's, per seed."""
    if not e.maps:
        return not_run("A bias to the centre is attention's.", "Figure 4", NOT_LOOKED_AT)
    plain = {one["seed"]: one for one in e.maps if one["name"] == "plain"}
    beyond = {
        f"{one['name']} (seed {one['seed']})": difference(one, plain[one["seed"]])
        for one in e.maps
        if one["name"] != "plain" and one["seed"] in plain
    }
    masses = "; ".join(f"{one['name']} (seed {one['seed']}) {shown_interval(one['mass'])}" for one in e.maps)
    words = f"Mass in the central quarter, uniform 0.25: {masses}. Above plain: {told(beyond, '+.3f') or 'none known'}."
    return Finding("A bias to the centre is attention's.", "Figure 4", ruled(beyond, beyond), words)


def difference(one, other) -> Estimate:
    """The mean difference of two independent rows of masses, with Welch's interval."""
    return welch("plain", {"plain": other["draws"], "own": one["draws"]})["own"]


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
    verdict = counted(more, less, len(every)) if every else UNDECIDED
    return Finding(
        "Spatial and transformer attention are not constant.", "Section 6 (4), Figure 29", verdict, words.strip()
    )


def by_name(networks) -> dict[str, list]:
    found: dict[str, list] = {}
    for one in networks:
        found.setdefault(one.name, []).append(one)
    return found
