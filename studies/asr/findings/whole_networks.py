"""The claims about whole networks: how fast they are, how they repaint pictures, and where in a picture they look."""

import numpy as np

from studies.asr import style
from studies.asr.findings.evidence import (
    FEWEST_SEEDS,
    NOT_LOOKED_AT,
    Evidence,
    count_seeds,
    fewest_seeds,
    over_seeds,
    unmeasured_finding,
    verdict_if_complete,
)
from studies.lab.comparisons import welch
from studies.lab.statistics import UNDECIDED, Estimate, Finding, interval_text, listing, verdict_of_counts

PAPERS_SLOWDOWN = 0.36
PAPERS_SIX = ("IE", "SRM", "CBAM", "SE", "DIA", "SPA")  # the modules of Table 1
ALIKE = 0.1  # of a loss: differences below that are no difference


def slower(e: Evidence) -> Finding:
    """The mean slowdown of the paper's six modules: at each size its rounds' quartiles lie on one side of 36 %."""
    claim, where = "Attention slows inference by more than 36 %.", "Table 1"
    known = {size: found for size, found in e.speeds.items() if set(PAPERS_SIX) <= set(found)}
    if not known:
        return unmeasured_finding(claim, where, "not measured")
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
    return Finding(claim, where, verdict_of_counts(above, below, len(known)), " ".join(words))


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
            counts = count_seeds(groups, (style.INSTANCE, *names))
            words.append(f"{picture}, {score}: {listing(beyond, '+.3f')} ({counts})" if beyond else f"{picture}: n = 0")
            if fewest_seeds(groups, (style.INSTANCE, style.WITH_ASR)) >= FEWEST_SEEDS:
                one, margin = beyond[style.WITH_ASR], ALIKE * np.mean(groups[style.INSTANCE])
                total += 1
                alike += -margin < one.low and one.high < margin
                apart += margin < one.low or one.high < -margin
    verdict = verdict_of_counts(alike, apart, total) if total else UNDECIDED
    shown = f"Losses above instance normalisation's, in evaluation mode, {'; '.join(dict.fromkeys(words))}."
    claim = "With ASR, batch normalisation transfers style as instance normalisation does."
    return Finding(claim, "Figure 5", verdict, shown)


def centre(e: Evidence) -> Finding:
    """Central mass of a module's maps minus the plain network's, per seed."""
    if not e.maps:
        return unmeasured_finding("A bias to the centre is attention's.", "Figure 4", NOT_LOOKED_AT)
    plain = {one["seed"]: one for one in e.maps if one["name"] == "plain"}
    beyond = {
        f"{one['name']} (seed {one['seed']})": difference(one, plain[one["seed"]])
        for one in e.maps
        if one["name"] != "plain" and one["seed"] in plain
    }
    masses = "; ".join(f"{one['name']} (seed {one['seed']}) {interval_text(one['mass'])}" for one in e.maps)
    words = (
        f"Mass in the central quarter, uniform 0.25: {masses}. Above plain: {listing(beyond, '+.3f') or 'none known'}."
    )
    return Finding("A bias to the centre is attention's.", "Figure 4", verdict_if_complete(beyond, beyond), words)


def difference(one, other) -> Estimate:
    """The mean difference of two independent rows of masses, with Welch's interval."""
    return welch("plain", {"plain": other["draws"], "own": one["draws"]})["own"]
