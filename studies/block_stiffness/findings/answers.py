"""What stiffness goes with, image by image: right answers, loss, what an attacker gains, and Euler's error."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

from studies.block_stiffness import across_networks, paper
from studies.block_stiffness.analysis import Relation, correlation_interval, relation
from studies.block_stiffness.findings.blocks import SHAPE, cases_of_most_images, made_up_networks
from studies.block_stiffness.findings.evidence import CALLED, stage_of
from studies.lab.statistics import Estimate, correlate_rows, interval_text, listing, rank_correlation
from studies.lab.verdicts import (
    NOT_RUN,
    Verdict,
    Worlds,
    corrected,
    of_cases,
    of_each,
    of_interval,
    rule,
)

CLAIMED = {"stiffness_index": 1, "negative": -1}  # signs of the correlation with accuracy that the paper's words claim
LOSS = {measure: -sign for measure, sign in CLAIMED.items()}
TURNED = {"stiffness_index": -1, "negative": 1, "spectral_radius": 1}  # signs with flipped answers, if stiffness did it
NEGLIGIBLE = 0.06  # a correlation: half of the smaller of Table 1's means over its last three blocks
OTHER_MEASURES = ("max_re", "min_re", "spectral_radius", "nsi")  # told beside S, for the errors of steps
WRONG = 0.07  # of the answers of the worlds


def last_stage(cases: Sequence[Relation]) -> list[Relation]:
    """Those of the blocks of the last stage."""
    last = max((stage_of(case.block) for case in cases), default=0)
    return [case for case in cases if stage_of(case.block) == last]


def means_over_blocks(cases: Sequence[Relation]) -> dict[tuple[str, str], Estimate]:
    """By measure and target: the mean of the correlations within the blocks; all intervals hold together."""
    by_case: dict[tuple[str, str], list[Relation]] = {}
    for case in cases:
        by_case.setdefault((case.measure, case.target), []).append(case)
    return {
        name: correlation_interval([one.r for one in some], min(one.n for one in some), corrected(len(by_case)))
        for name, some in by_case.items()
    }


def judge_relations(relations: Sequence[Relation], signs: Mapping[str, int]) -> tuple[Verdict, str]:
    """Rank correlations over the images within each block of the last stage, where the paper has its stiff blocks;
    their mean over these blocks, for each of the measures. Supported where all of these means certainly have the sign
    that the claim asks for, contradicted where all certainly have the other one or are certainly within 0.06 of 0;
    intervals hold together. It is judged in the reading with the most images, slices where readings have equally many:
    the paper's numbers are those of slices."""
    reading, cases = cases_of_most_images(last_stage([one for one in relations if one.measure in signs]))
    means = means_over_blocks(cases)
    if not means:
        return NOT_RUN, "n = 0: there are too few images for a correlation; `--preset full` looks at 100 and more."
    verdict = of_cases(of_interval(e, signs[measure], NEGLIGIBLE) for (measure, _), e in means.items())
    targets = {target for _, target in means}
    called = {
        (measure, target): CALLED.get(measure, measure) + (f" with {target}" if len(targets) > 1 else "")
        for measure, target in means
    }
    told = listing({called[name]: e for name, e in means.items()})
    claimed = ", ".join(
        f"{CALLED.get(name, name)} {'above' if sign > 0 else 'below'} 0" for name, sign in signs.items()
    )
    n = min(e.n for e in means.values())
    words = (
        f"Means over the blocks of the last stage ({reading}, n = {n} images of one network): {told}. The claim asks "
        f"for {claimed}."
    )
    if targets <= {"accuracy", "loss"}:
        words += (
            " S is negative and a stiffer block has a more negative one, so the paper's own significant correlations "
            "of index and accuracy say the stiffer, the better."
        )
    return verdict, words


def worlds_of_images(target: str, signs: Mapping[str, int]):
    """Made-up images of a network's last three blocks, with the sizes of Table 1's last three."""
    printed = paper.CORRELATIONS[18][-3:]

    def make(chance, effect: float, n: int) -> tuple:
        loss = chance.standard_normal(n)
        right = loss < stats.norm.ppf(1.0 - WRONG)
        # The correlation of a normal number with whether another one is below a quantile is this much smaller.
        factor = stats.norm.pdf(stats.norm.ppf(WRONG)) / np.sqrt(WRONG * (1.0 - WRONG))
        values, shrunk = (right.astype(float), factor) if target == "accuracy" else (loss, 1.0)
        made = []
        for block, sizes in enumerate(printed):
            for measure, size in zip(CLAIMED, sizes[::2], strict=False):
                r = effect * signs[measure] * abs(size) / shrunk * (-1.0 if target == "accuracy" else 1.0)
                column = r * loss + np.sqrt(1.0 - r**2) * chance.standard_normal(n)
                made.append(relation(f"stages.2.blocks.{block}", "slices", measure, target, column, values))
        return tuple(one for one in made if one is not None), {name: signs[name] for name in CLAIMED}

    return make


def rule_on(target: str, claim: str, where: str, signs: Mapping[str, int], n: int, now: int, fixed: str):
    """The rule on one target, with its own worlds."""
    effect = "the sizes of Table 1's last three blocks, 0.12 for S and 0.31 for percentages"
    worlds = Worlds(worlds_of_images(target, signs), n, "images", effect, now)
    return rule(claim, where, fixed=fixed, negligible=NEGLIGIBLE, worlds=worlds, variant=target)(judge_relations)


BEFORE_SLICES = (
    "after the data: with correlations over 20 and 100 images known, before those over 3,400. The last stage stands "
    "for the blocks that the paper calls stiff, where one block of any stage had been enough; by the old rule the "
    "verdict was "
)
RULES = {
    "accuracy": rule_on(
        "accuracy",
        "stiffness of a block goes with accuracy",
        "Tables 1, 4, 7",
        CLAIMED,
        3400,
        400,
        f"{BEFORE_SLICES}undecided",
    ),
    "loss": rule_on(
        "loss",
        "stiffness of a block goes with loss",
        "Tables 1, 4, 7",
        LOSS,
        3400,
        400,
        f"{BEFORE_SLICES}that it is true of some and false of others",
    ),
    "flips": rule_on(
        "flips",
        "stiffness of a block goes with adversarial examples (FGSM)",
        "Section 1",
        TURNED,
        400,
        40,
        f"{BEFORE_SLICES}that it is true of some and false of others",
    ),
}


def profile_of(rows: Sequence[dict], measure: str) -> np.ndarray:
    """A measure of every network and block, (networks, blocks), of the networks that have the most blocks alike."""
    groups: dict[tuple, list] = {}
    for blocks in across_networks.by_network(rows).values():
        groups.setdefault(tuple(row["block"] for row in blocks), []).append(blocks)
    most = max(groups.values(), key=len, default=[])
    return np.array([[across_networks.value(row, measure) for row in blocks] for blocks in most])


def worlds_of_errors(chance, effect: float, n: int) -> tuple:
    """Networks of one shape, n blocks: S and the error of a step by block, by network and by image."""
    networks = SHAPE[1]
    s, error = (chance.standard_normal(n) for _ in range(2))
    here, there = (0.4 * chance.standard_normal((networks, n)) for _ in range(2))
    if effect:
        error, there = -s + 0.2 * error, -0.9 * here + 0.2 * there
    stages = np.minimum(np.arange(n) * 3 // n, 2)
    rows = made_up_networks({"stiffness_index": s + here, "step_error": error + there}, stages.tolist())
    images = np.tanh(chance.normal(-0.4 * effect, 1.0 / np.sqrt(397.0), n))
    cases = [Relation(f"stages.{k}.blocks.{i}", "residual", "stiffness_index", "step_error", float(r), 400)
             for i, (k, r) in enumerate(zip(stages, images, strict=True))]  # fmt: skip
    return rows, tuple(cases)


@rule(
    "the stiffness index tells where a block's step is wrong",
    "Section 4",
    fixed="after the data: with all correlations known, because one over the blocks of networks of one shape had an "
    "interval over networks, and because correlations of either sign counted; by the old rule the verdict was "
    "supported",
    worlds=Worlds(
        worlds_of_errors,
        n=7,
        units="blocks",
        effect="correlations of -0.98 over blocks, -0.98 over networks and -0.4 over images",
    ),
)
def judge_errors(rows: Sequence[dict], errors: Sequence[Relation]) -> tuple[Verdict, str]:
    """Rank correlations of S with Euler's error of a block against the exact flow of its branch, asked in three ways:
    between the blocks of a network, of the means over networks, with an interval over blocks; between networks, within
    each block, their mean over blocks with an interval over networks; and between images, within each block of one
    network, their mean over blocks with an interval over images. Supported where all three are certainly below 0 (the
    more negative S, the larger the error), contradicted where all are certainly above; intervals hold together."""
    level = corrected(3)
    s, wrong = (profile_of(rows, measure) for measure in ("stiffness_index", "step_error"))
    found: dict[str, Estimate] = {}
    if s.size and s.shape[1] > 2:
        between = rank_correlation(s.mean(0), wrong.mean(0), stats.spearmanr)[0]
        found["between blocks"] = correlation_interval(between, s.shape[1], level)
    if len(s) > 2:
        by_block = correlate_rows(s.T, wrong.T)
        found["between networks, within blocks"] = correlation_interval(by_block, len(s), level)
    own = [one for one in errors if one.measure == "stiffness_index"]
    if own:
        images = correlation_interval([one.r for one in own], min(one.n for one in own), level)
        found["between images, within blocks"] = images
    if not found:
        return NOT_RUN, "n = 0: neither networks nor images were looked at."
    units = {"between blocks": "blocks", "between networks, within blocks": "networks"}
    told = "; ".join(
        f"{name} {interval_text(e, '+.2f')} (n = {e.n} {units.get(name, 'images')})" for name, e in found.items()
    )
    others = across_networks.error_relations(list(rows), OTHER_MEASURES)
    everywhere = listing(others)
    return of_each(found, sign=-1), (
        f"S with Euler's error: {told}. S is negative: the more negative it is, the larger the error where the "
        "correlation is below 0."
        + (f" Other measures over the blocks of each network, means over networks: {everywhere}." if everywhere else "")
    )
