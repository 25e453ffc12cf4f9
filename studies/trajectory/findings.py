"""What the numbers say about Definition 3 and Section 3.1: verdicts by `design.RULES`, computed from the numbers."""

import numpy as np
from scipy import stats

from studies.lab.comparisons import compare_seeds
from studies.lab.networks import groups
from studies.lab.statistics import (
    CONTRADICTED,
    FEWEST,
    LEVEL,
    PARTLY,
    SUPPORTED,
    UNDECIDED,
    Estimate,
    Finding,
    Signs,
    bootstrap_mean,
    chance_text,
    correlation,
    interval_text,
    joint_verdict,
    mean_over_networks,
    mean_with_interval,
    rank_correlation,
    sign_of,
    sign_test,
    signs_beyond_chance,
    verdict_of_counts,
)
from studies.lab.stiffness import READINGS, wording
from studies.trajectory.design import DEGREES, FEWEST_BLOCKS, LARGE, MEASURES, WORDS


def nearer_finding(distances: dict[str, dict[str, list[Estimate]]], proxy: str, others: tuple = ()) -> Finding:
    """Section 2.3; `distances` are per measure and controller, of every network but the proxy.

    `proxy` names the controller of that; its other seeds are the floor. `others` are the findings with other proxies,
    (name, finding) each.
    """
    verdicts, words = [], []
    for measure in MEASURES:
        found = dict(distances[measure])
        floor, plain = found.pop(proxy, []), found.pop("constant", [])
        signs = {name: compare_seeds(here, plain) for name, here in found.items()} if plain else {}
        nearer, farther = list(signs.values()).count(-1), list(signs.values()).count(1)
        decidable = bool(floor and signs) and proxy != "constant"
        verdicts.append(verdict_of_counts(nearer, farther, len(signs)) if decidable else UNDECIDED)
        said = f"by {WORDS[measure]}, {nearer} of {len(signs)} nearer and {farther} farther"
        if plain:
            said += f" (constant {np.mean([e.value for e in plain]):.3f}"
            said += f", floor {np.mean([e.value for e in floor]):.3f})" if floor else ")"
        words.append(said)
    text = f"Of the controllers with attention, other than the proxy's, {proxy}: {'; '.join(words)}."
    if proxy == "constant":
        text += " The proxy is itself a network without attention, and the other plain ones share its kind."
    elif not any(distances[measure].get(proxy) for measure in MEASURES):
        text += " There is one seed of the proxy's controller only, so the floor is not known."
    for name, finding in others:
        text += f" With {name} as proxy: {finding.verdict}."
    claim = "Networks with attention are closer to the ground truth trajectory."
    verdict = joint_verdict([joint_verdict(verdicts), *(finding.verdict for _, finding in others)])
    return Finding(claim, "Section 2.3, Figure 1", verdict, text)


def accumulates_finding(blocks: dict[str, list[np.ndarray]]) -> Finding:
    """Section 2.3; `blocks` holds, per measure, the distance at every block of every network but the proxy."""
    verdicts, words = [], []
    for measure in MEASURES:
        slopes = [rank_correlation(np.arange(len(line)), line, stats.kendalltau)[0] for line in blocks[measure]]
        slopes = [tau for tau in slopes if np.isfinite(tau)]
        p = sign_test(slopes)
        verdict = UNDECIDED
        if p < 1.0 - LEVEL:
            verdict = SUPPORTED if np.count_nonzero(np.array(slopes) > 0) * 2 > len(slopes) else CONTRADICTED
        verdicts.append(verdict)
        rising = np.count_nonzero(np.array(slopes) > 0)
        middle = f", median tau {np.median(slopes):+.2f}" if slopes else ""
        words.append(f"by {WORDS[measure]} it rises in {rising} of {len(slopes)} networks{middle} (p {chance_text(p)})")
    return Finding(
        "A deviation from the ground truth accumulates along the trajectory.",
        "Section 2.3",
        joint_verdict(verdicts),
        f"Within each network, block by block: {'; '.join(words)}.",
    )


def better_finding(distances: dict[str, list[float]], accuracies: list[float]) -> Finding:
    """Section 2.3: the nearer, the better; one number per network but the proxy."""
    found = {measure: correlation(-np.array(distances[measure]), accuracies) for measure in MEASURES}
    words = "; ".join(
        f"by {WORDS[measure]} Kendall's tau {interval_text(one.kendall, '+.2f')}" for measure, one in found.items()
    )
    text = f"Accuracy and nearness over n = {len(accuracies)} networks: {words}."
    if len(accuracies) < FEWEST:
        text += " So few cannot decide."
    return Finding(
        "The closer to the ground truth trajectory, the better the network.",
        "Section 2.3",
        joint_verdict(one.verdict for one in found.values()),
        text,
    )


def property_finding(shares: dict[tuple[str, str], np.ndarray]) -> Finding:
    """Property (1); `shares` are per reading, (networks, degrees)."""
    verdicts = [
        SUPPORTED if (share > 0.5).all() else CONTRADICTED if (share < 0.5).all() else PARTLY
        for share in shares.values()
    ]
    words = "; ".join(
        f"{wording(of, mu)}: {', '.join(f'{100 * mean:.0f} %' for mean in share.mean(0))}"
        for (of, mu), share in shares.items()
    )
    degrees = ", ".join(f"{100 * degree:g} %" for degree in DEGREES)
    return Finding(
        "For most inputs the trajectory is stiff somewhere.",
        "property (1), Section 3.1",
        joint_verdict(verdicts),
        f"Share of images with a counted block at least {degrees} above the mean of its stage, mean over networks: "
        f"{words}. A stage has few counted blocks, and one of them is never below their mean.",
    )


def first_finding(ratios: dict[str, list[Estimate]]) -> Finding:
    """Section 2.2; `ratios` of NSI and of the state's norm, one per network and stage."""
    verdicts, words = [], []
    for what, found in ratios.items():
        above, below = sum(e.low > LARGE for e in found), sum(e.high < LARGE for e in found)
        verdicts.append(verdict_of_counts(above, below, len(found)))
        values = [e.value for e in found]
        words.append(
            f"{what} {min(values):.2f} to {max(values):.2f} times the others, above {LARGE:g} in {above} of "
            f"{len(found)} stages"
        )
    return Finding(
        "In the first block of a stage the norm is extremely large.",
        "Section 2.2",
        joint_verdict(verdicts),
        f"First block of a stage over the median of its others, mean over images: {'; '.join(words)}.",
    )


def importance_finding(correlations: list[float], over_images: Signs) -> Finding:
    """Section 3.1; one correlation per network, and the signs of those over images."""
    defined = [rho for rho in correlations if np.isfinite(rho)]
    e = mean_with_interval(defined)
    sign = sign_of(e)
    verdict = SUPPORTED if sign > 0 else CONTRADICTED if sign < 0 else UNDECIDED
    words = (
        f"Spearman's correlation of NSI and rise of the loss over the counted blocks, mean over {len(defined)} "
        f"networks {interval_text(e, '+.2f')}. Over images at one block, {over_images.positive} of "
        f"{len(over_images.values)} correlations are positive and {over_images.negative} negative beyond chance "
        "(Bonferroni)."
    )
    return Finding("The stiff blocks are the important ones.", "Section 3.1", verdict, words)


def features_finding(differences: list[Estimate], as_many: float, equal: float, large: float) -> Finding:
    """Section 3.1; differences of the rise at equal norm, one per network and counted block, and three mean rises."""
    signs = [sign_of(e) for e in differences]
    words = (
        f"Without the largest elements of a slope the loss rises by {large:.3f} on average, without as many of the "
        f"smallest by {as_many:.3f}, without so many of the smallest as have the same norm by {equal:.3f}. At equal "
        f"norm the largest cost more in {signs.count(1)} of {len(signs)} blocks and less in {signs.count(-1)}, beyond "
        "chance."
    )
    return Finding(
        "Large features contribute most to the performance.",
        "Section 3.1",
        verdict_of_counts(signs.count(1), signs.count(-1), len(signs)),
        words,
    )


def along_finding(along: list[np.ndarray], blocks: int, chosen: np.ndarray, which: str = "") -> Finding | None:
    """Figure 9b as worded; `along` per network, `blocks` counted ones in the longest stage; `which` networks."""
    if not along:
        return None
    means = [bootstrap_mean(values, chosen) for values in along]
    signs = [sign_of(e) for e in means]
    below = 100 * np.mean([np.mean(values < 0) for values in along])
    words = (
        f"{which}The mean over images lies between {min(e.value for e in means):+.2f} and "
        f"{max(e.value for e in means):+.2f}, below zero beyond chance for {signs.count(-1)} of {len(signs)} networks, "
        f"above for {signs.count(1)}; {below:.0f} % of all correlations are negative."
    )
    verdict = verdict_of_counts(signs.count(-1), signs.count(1), len(signs))
    if blocks >= FEWEST_BLOCKS:
        words += f" A stage counts {blocks} blocks; correlations are within stages, averaged over them."
    else:
        verdict = UNDECIDED
        words += (
            f" A stage has {blocks} counted blocks here; all stages are pooled, whose indices differ by their width."
        )
    return Finding(
        "Along a trajectory a larger NSI goes with a smaller step size.", "Figure 9b, as worded", verdict, words
    )


def distances_of(courses, proxy) -> dict[str, dict[str, list[Estimate]]]:
    """The distances from the proxy that were set, per measure and controller."""
    others = [one for one in courses if one is not proxy]
    names = groups([one.subject for one in others])
    return {
        measure: {name: [others[place].distance[measure] for place in places] for name, places in names.items()}
        for measure in MEASURES
    }


def findings(courses, proxy, nearer, losses, ratios, chosen, deep: Finding | None = None) -> list[Finding]:
    """All findings, in the order of the paper; `nearer` are those of other proxies, `losses` is from `importance`.

    `deep` is what deeper networks say of Figure 9b, in place of these.
    """
    others = [one for one in courses if one is not proxy]
    records = [one.found.records for one in courses]
    shares = {
        (of, mu): np.array([[float(record[of].delta(degree, 0.0, mu)) for degree in DEGREES] for record in records])
        for of, mu in READINGS
    }
    stage = records[0]["slope"].counted().stage
    found = [
        nearer_finding(distances_of(courses, proxy), proxy.subject.name, nearer),
        accumulates_finding({measure: [one.blocks[measure] for one in others] for measure in MEASURES}),
        better_finding(
            {measure: [one.distance[measure].value for one in others] for measure in MEASURES},
            [one.found.accuracy for one in others],
        ),
        property_finding(shares),
        first_finding(ratios),
        importance_finding([block_correlation(one) for one in losses], image_correlations(losses)),
        features_finding(
            [e for one in losses for e in feature_differences(one)],
            *(float(np.mean([one.features[which].mean() for one in losses])) for which in (AS_MANY, EQUAL, LARGEST)),
        ),
        deep or along_finding([one.along for one in courses if len(one.along)], int(np.bincount(stage).min()), chosen),
    ]
    return [finding for finding in found if finding is not None]


LARGEST, AS_MANY, EQUAL = "largest", "smallest, as many", "smallest, equal norm"


def block_correlation(one) -> float:
    """Spearman's correlation of mean NSI and mean rise of the loss, over the counted blocks of one network."""
    record = one.course.found.records["slope"]
    kept = ~record.first
    return rank_correlation(record.nsi.mean(0)[kept], one.rise.mean(0)[kept], stats.spearmanr)[0]


def image_correlations(losses) -> Signs:
    """The signs of the correlations of NSI and rise over images, one per network and counted block."""
    return signs_beyond_chance(
        (record.nsi[:, k], one.rise[:, k])
        for one in losses
        for record in [one.course.found.records["slope"]]
        for k in np.flatnonzero(~record.first)
    )


def feature_differences(one) -> list[Estimate]:
    """How much more the loss rises without the largest than without the smallest of equal norm, per counted block."""
    return [mean_over_networks(difference) for difference in (one.features[LARGEST] - one.features[EQUAL]).T]
