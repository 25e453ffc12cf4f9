"""The claims about attention values: are they constants, since when, what do they embody, and what do they cost?"""

import numpy as np
from scipy import stats

from studies.asr import design
from studies.asr.findings import worlds
from studies.asr.findings.evidence import (
    Evidence,
    Groups,
    exponential_text,
    group_by_name,
    over_networks,
)
from studies.lab.statistics import rank_correlation
from studies.lab.verdicts import NOT_ASKABLE, Verdict, Worlds, of_closeness, rule

UNITS_CHANGED = (
    "after the data: until 2026-11-19 images were the units and every network a case, and the verdict was {}. With two "
    "networks of each module seen, networks became the units"
)
NETWORKS = "networks of each module"


@rule(
    "Attention values approach constants in training.",
    "Section 3, Figure 2",
    fixed=UNITS_CHANGED.format("true of some, false of others"),
    fewest=design.FEWEST_NETWORKS,
    worlds=Worlds(worlds.approach, design.FEW, NETWORKS, "a share 0.2 larger than before, 0.1 to 0.3 by module", now=2),
)
def judge_approach(e: Evidence) -> tuple[Verdict, str]:
    """The share of the gates' variance that is the channel's, after training minus before, on average over the blocks
    of a network: above 0, by module, over networks, by intervals that hold together. Gates that begin as exact
    constants are left out.
    """
    differences: Groups = {}
    for name, networks in group_by_name(e.shares).items():
        changes = [
            [
                after.value - before
                for after, before in zip(one.share, one.untrained, strict=True)
                if np.isfinite(before)
            ]
            for one in networks
        ]
        differences[name] = [float(np.mean(change)) for change in changes if change]
    compared = over_networks(differences, least=-1.0, most=1.0)
    words = (
        f"{compared.lacking}Share of the gates' variance that is the channel's, after training minus before: "
        f"{compared.words}."
    )
    if constant := [name for name, values in differences.items() if not values]:
        words += f" The untrained gates of {', '.join(constant)} are exactly constant: nothing to compare with."
    return compared.verdict(), words


@rule(
    f"Trained attention values are constants (a share of at least {design.CONSTANT_SHARE:g} in every block).",
    "Section 3, Figures 22 to 28",
    fixed=UNITS_CHANGED.format("contradicted"),
    fewest=design.FEWEST_NETWORKS,
    worlds=Worlds(
        worlds.stripes, design.FEW, NETWORKS, "a smallest share of 0.98, where 0.9 is on the threshold", now=2
    ),
)
def judge_stripes(e: Evidence) -> tuple[Verdict, str]:
    """The smallest share over the blocks of a network above 0.9, by module, over networks, by intervals that hold
    together.
    """
    shares = {
        name: [[block.value for block in one.share] for one in networks]
        for name, networks in group_by_name(e.shares).items()
    }
    compared = over_networks(
        {name: [min(blocks) for blocks in networks] for name, networks in shares.items()},
        form=".2f",
        least=0.0,
        most=1.0,
    )
    medians = "; ".join(f"{name} {np.median(np.concatenate(networks)):.2f}" for name, networks in shares.items())
    words = f"{compared.lacking}Smallest share of a network, mean over networks: {compared.words}."
    if medians:
        words += f" Median over blocks: {medians}."
    return compared.verdict(threshold=design.CONSTANT_SHARE), words


@rule(
    "The constants are found in training, and are not those that the gates begin with.",
    "Section 3, Figure 2c",
    fixed="after the data: until 2026-11-19 correlations with the beginning decided the next claim, block by block; a "
    "block could vote for both sides, and the verdict was contradicted. With those of SE seen, the share of variance "
    "that the beginning explains became the measure, networks became the units, and ECA and FCA joined",
    fewest=design.FEWEST_NETWORKS,
    worlds=Worlds(
        worlds.memory, design.FEW, NETWORKS, "a share of 0.1 explained, where 0.5 is on the threshold", now=2
    ),
)
def judge_memory(e: Evidence) -> tuple[Verdict, str]:
    """The share of the variance of mean gates over channels that the gates before training explain (the square of their
    correlation), on average over the blocks of a network: below a half, by module, over networks, by intervals that
    hold together. SE is asked at the small scale, too, and there with the biases of its gates at 0 before training.
    """
    squares = {
        name: [[x**2 for x in one.origin if np.isfinite(x)] for one in networks]
        for name, networks in group_by_name(e.shares).items()
    }
    for part, scale in (("origin", design.LARGE_SCALE), ("small", design.SMALL_SCALE)):
        rows = e.rows.get((part, ""), {})
        for arm in ("SE", "SE, b2 = 0"):
            if not (arm == "SE" and part == "origin" and "SE" in squares):  # these networks are looked at already
                squares[f"{arm}, {scale}"] = [
                    [block["origin"] ** 2 for block in one.blocks if block["origin"] is not None]
                    for one in rows.get(arm, [])
                ]
    shares = {name: [float(np.mean(blocks)) for blocks in found if blocks] for name, found in squares.items()}
    compared = over_networks(shares, ".2f", least=0.0, most=1.0)
    words = f"{compared.lacking}Share of the variance that the beginning explains: {compared.words}."
    return compared.verdict(-1, threshold=design.REMEMBERED), words


@rule(
    "The constants embody priors of the data set.",
    "Section 6 (1)",
    fixed="after the data: until 2026-11-19 a correlation with the beginning contradicted this, but gates that "
    "remember their beginning may embody a data set as well",
    exempt="nothing is judged",
)
def judge_priors(e: Evidence) -> tuple[Verdict, str]:
    """Not judged: networks that begin alike and see different data sets would have to be compared; there are none."""
    return NOT_ASKABLE, (
        "A correlation with the values before training bounds what training changed between channels, and does not "
        "tell a prior of the data from a common level or a chance of training: networks of one beginning on different "
        "data sets would."
    )


@rule(
    f"Constants can stand for the attention values (at a loss of less than {design.COSTS_LITTLE:g} points).",
    "Section 3",
    fixed=UNITS_CHANGED.format("true of some, false of others"),
    fewest=design.FEWEST_NETWORKS,
    worlds=Worlds(
        worlds.replaced(0.0, -design.COSTS_LITTLE, 0.0),
        design.FEW,
        NETWORKS,
        "no loss, where 2 points are on the threshold",
        now=2,
    ),
)
def judge_stand_in(e: Evidence) -> tuple[Verdict, str]:
    """Points lost when every gate becomes its mean over training images, fewer than 2: by module, over networks, by
    intervals that hold together.
    """
    changes = {name: [one.change.value for one in networks] for name, networks in group_by_name(e.replaced).items()}
    compared = over_networks(changes)
    words = f"{compared.lacking}Points gained when every gate becomes its mean over training images: {compared.words}."
    pairs = [one.share for one in e.replaced], [one.change.value for one in e.replaced]
    rank, _ = rank_correlation(*pairs, stats.spearmanr)
    if np.isfinite(rank):
        words += f" Loss follows the share that is constant: Spearman's rho {rank:.2f}, n = {len(e.replaced)}."
    return compared.verdict(threshold=-design.COSTS_LITTLE), words


def closeness(changes: dict[str, list[tuple[int | str, float]]], papers: float) -> tuple[Verdict, str]:
    """Whether the mean change over modules is about the paper's loss, and what both are.

    A seed counts that every module has: its mean over the modules is one number, however much the modules differ.

    changes  seed and change of every network, by module
    papers   what the paper says is lost
    """
    seeds = set.intersection(*({seed for seed, _ in found} for found in changes.values())) if changes else set()
    means = [
        float(np.mean([np.mean([x for other, x in found if other == seed]) for found in changes.values()]))
        for seed in sorted(seeds, key=str)
    ]
    compared = over_networks({f"mean over {len(changes)} modules": means}, "+.1f")
    by_module = ", ".join(f"{name} {np.mean([x for _, x in found]):+.1f}" for name, found in changes.items())
    words = f"{compared.lacking}{compared.words}; {-papers:+g} in the paper. By module: {by_module or 'n = 0'}."
    if not compared.beyond:
        return compared.undecided, words
    (mean,) = compared.beyond.values()
    return of_closeness(mean, -papers, design.ABOUT), words


EXACTLY = (
    "after the data: until 2026-11-19 the interval of every network had to hold {:g} exactly, which no precise "
    "measurement does, and the verdict was contradicted. With the losses of ten networks seen, the margin and the "
    "average over modules came in"
)


@rule(
    "Attention values replaced by constants cost 28 %.",
    "Section 6 (1)",
    fixed=EXACTLY.format(design.PAPERS_LOSS),
    fewest=design.FEWEST_NETWORKS,
    negligible=design.ABOUT,
    worlds=Worlds(
        worlds.replaced(-28.0, -23.0, 9.0), design.FEW, NETWORKS, "28 points, where 23 are on the margin", now=2
    ),
)
def judge_papers_loss(e: Evidence) -> tuple[Verdict, str]:
    """The mean loss over modules, seeds being the units, by Student's interval: within 5 points of the paper's 28, or
    beyond. 28 per cent of an accuracy of 89 are 25 points, which the margin covers. Of the paper's modules (SE, IE, SRM
    and SPA in Table 3) those are taken that networks are shipped of, and ECA and FCA with them.
    """
    networks = group_by_name(e.replaced)
    changes = {name: [(one.seed, one.change.value) for one in found] for name, found in networks.items()}
    verdict, words = closeness(changes, design.PAPERS_LOSS)
    return verdict, f"Points gained when every gate becomes its mean: {words}"


@rule(
    "Even with fine-tuning the replacement costs 15 %.",
    "Section 6 (1)",
    fixed=EXACTLY.format(design.PAPERS_REST),
    fewest=design.FEWEST_NETWORKS,
    negligible=design.ABOUT,
    worlds=Worlds(worlds.rest, design.FEW, NETWORKS, "15 points, where 10 are on the margin", now=2),
)
def judge_rest(e: Evidence) -> tuple[Verdict, str]:
    """The mean loss over modules that is left when constants have replaced the gates and the other weights were trained
    on for an epoch, seeds being the units, by Student's interval: within 5 points of the paper's 15, or beyond.
    """
    rows = e.rows.get(("finetuned", ""), {})
    changes = {name: [(one.seed, one.beyond[0]) for one in found] for name, found in rows.items() if found}
    verdict, words = closeness(changes, design.PAPERS_REST)
    return verdict, f"Points gained by constants in place of gates and an epoch of training of the rest: {words}"


@rule(
    "Attention values converge at the first decay of the rate.",
    "Figures 2c and 11 to 18",
    fixed="after the data: until 2026-11-19 the gates' slowdown at the decay was held against that of the "
    "normalisations' scales, block by block in one network of each module, which judges who slows down more and not "
    "who stands still; the verdict was contradicted. With those three networks seen, the movement behind the decay "
    "became the measure, and after that two more networks of each module were trained",
    fewest=design.FEWEST_NETWORKS,
    worlds=Worlds(worlds.first_decay, design.FEW, NETWORKS, "0.03 of the deviation, where 0.1 is on the threshold"),
)
def judge_first_decay(e: Evidence) -> tuple[Verdict, str]:
    """How far the gates of the median block move in the epoch behind the first decay, over their standard deviation:
    below 0.1, by module, over networks, by intervals of the logarithm that hold together.
    """
    rows = e.rows.get(("dynamics", ""), {})
    networks = {name.partition(",")[0]: rows.get(name, []) for name in design.AT_THE_DROP}
    behind = {name: [movement(one, "gate", 1) for one in found] for name, found in networks.items()}
    compared = over_networks({name: [float(np.log(x)) for x in found if x > 0] for name, found in behind.items()})
    words = f"{compared.lacking}Movement of the gates in the epoch behind the decay, over their deviation: "
    if not any(compared.among.values()):
        return compared.undecided, f"{words}{compared.words}."
    parts = [
        f"{name} {exponential_text(compared.beyond[name]) if name in compared.beyond else f'{np.median(found):.2f}'} "
        f"(n = {len(found)}), before the decay {np.median([movement(one, 'gate', 0) for one in networks[name]]):.2f}"
        for name, found in behind.items()
        if found
    ]
    scales = [
        np.median([movement(one, "scales", epoch) for found in networks.values() for one in found]) for epoch in (0, 1)
    ]
    words += (
        f"{'; '.join(parts)}. The scales of the normalisations, which are no attention, go from {scales[0]:.2f} to "
        f"{scales[1]:.2f}: whatever is trained stands stiller at a smaller rate."
    )
    if constant := [movement(one, "gate", 1) for one in rows.get(design.AT_A_CONSTANT_RATE, [])]:
        words += f" Without a decay SE's gates move by {np.median(constant):.2f} in that epoch."
    return compared.verdict(-1, threshold=float(np.log(design.STILL))), words


def movement(result, what: str, behind: int) -> float:
    """How far the gates of the median block, or the scales, moved in the last epoch before the decay or in the next.

    result  what was observed of a network; with a constant rate the decay is where the others have it
    what    "gate" or "scales"
    behind  0 for the epoch before the decay, 1 for the one behind it

    Returns the mean absolute difference over the deviation, NaN where it is not known.
    """
    epoch = (result.recipe.get("drops") or design.DYNAMICS["drops"])[0] + behind
    moved: dict = next((record["moved"] for record in result.log if record["epoch"] == epoch and "moved" in record), {})
    values = [x for name, x in moved.items() if name.startswith(what) and x is not None]
    return float(np.median(values)) if values else float("nan")


@rule(
    "Spatial and transformer attention are not constant.",
    "Section 6 (4), Figure 29",
    fixed="after the data: until 2026-11-19 every block of two networks with CBAM and of one transformer was a case "
    "without an interval, and the verdict was true of some, false of others. With those seen, networks became units",
    fewest=design.FEWEST_NETWORKS,
    worlds=Worlds(
        worlds.spatial, design.FEW, "networks of each kind", "a share of 0.2, where 0.5 is on the threshold", now=2
    ),
)
def judge_spatial(e: Evidence) -> tuple[Verdict, str]:
    """The share of the variance that is the position's and not the image's, on average over the blocks of a network:
    below a half, for CBAM's spatial gates and for the attention of transformers, over networks, by intervals that hold
    together.
    """
    kinds = {"CBAM's spatial gates": e.spatial, "transformers' attention": e.attention}
    shares = {
        name: [[x for x in one["share"] if np.isfinite(x)] for one in networks] for name, networks in kinds.items()
    }
    compared = over_networks(
        {name: [float(np.mean(blocks)) for blocks in networks if blocks] for name, networks in shares.items()},
        form=".2f",
        least=0.0,
        most=1.0,
    )
    words = f"{compared.lacking}Share of the variance that is the position's, mean over blocks: {compared.words}."
    for name, networks in shares.items():
        blocks = [x for found in networks for x in found]
        above = sum(x > design.POSITIONS for x in blocks)
        if blocks:
            words += (
                f" Of {name} {min(blocks):.2f} to {max(blocks):.2f}, above a half in {above} of {len(blocks)} blocks."
            )
    return compared.verdict(-1, threshold=design.POSITIONS), words
