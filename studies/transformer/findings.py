"""What the transformers say about Appendix G and Table 7: the rules, as functions of what `measures` has computed."""

import numpy as np
from scipy import stats

from studies.cifar_tns.evidence import Gates, Seeds, compare_seeds, correlate_gates, share_stiff_blocks
from studies.cifar_tns.findings import judge_correlations, judge_few_blocks, judge_larger
from studies.lab.comparisons import tukey
from studies.lab.statistics import Estimate, listing, rank_correlation
from studies.lab.stiffness import QUANTITIES, QUANTITY_NAMES, TNS
from studies.lab.verdicts import (
    CONTRADICTED,
    NOT_RUN,
    SUPPORTED,
    UNDECIDED,
    Finding,
    Rule,
    Verdict,
    Worlds,
    corrected,
    enough,
    of_cases,
    of_interval,
    rule,
)
from studies.transformer import worlds
from studies.transformer.design import EXACT, FEWEST_SEEDS, READINGS

ARITHMETIC = "what a transformer computes is arithmetic: nothing is drawn"
LATER = (
    "after the data: three transformers of CIFAR-10 and six of the digits had been seen when seeds became the units; "
    "nothing had been decided by the older rule where there was one seed"
)


def by_controller(studied) -> dict[str, list]:
    """The networks of every controller, as the list has them."""
    networks: dict[str, list] = {}
    for one in studied:
        networks.setdefault(one.subject.controller, []).append(one)
    return networks


@rule(
    "StepNet raises the accuracy of a ViT.",
    "Table 7",
    fewest=FEWEST_SEEDS,
    worlds=Worlds(worlds.gains, n=8, units="seeds", effect="+1.24 points, Table 7's gain on CIFAR-10", now=2),
)
def judge_gain(accuracies: dict[str, list[float]]) -> tuple[Verdict, str]:
    """StepNet's accuracy minus that of constant step sizes, by Tukey and Kramer over seeds, with those of all other
    controllers: supported where the interval lies above 0, contradicted where below. Judged from three seeds on."""
    beyond = tukey("constant", accuracies)
    if "StepNet" not in beyond:
        return NOT_RUN, "n = 0: no network with StepNet beside one with constant step sizes."
    few = enough({name: accuracies[name] for name in ("constant", "StepNet")}, FEWEST_SEEDS)
    words = f"{few}Points above constant step sizes: {listing(beyond)}."
    return (UNDECIDED.because("too few seeds") if few else of_interval(beyond["StepNet"])), words


@rule(
    "A transformer's attention is a step size below 1, as a gate of channels is.",
    "Appendix G, Eq. 32",
    exempt=ARITHMETIC,
)
def judge_average(attention) -> tuple[Verdict, str]:
    """Contradicted where every row of an attention sums to 1 within 1e-4: an average over tokens is a step of 1."""
    least, greatest = min(a.row_sums[0] for a in attention), max(a.row_sums[1] for a in attention)
    ones = max(abs(least - 1), abs(greatest - 1)) <= EXACT
    words = (
        f"Rows of the attention sum to {least:.6f} at the least and {greatest:.6f} at the most, over {len(attention)} "
        f"attention steps. Eq. 32 prints a product of attention and values element by element; what a transformer "
        "computes is an average over tokens, whose weights sum to 1: a step of exactly 1, which no input makes smaller."
    )
    return (CONTRADICTED if ones else UNDECIDED), words


@rule("The queries are a function of the values, so attention sees the slope.", "Appendix G, Eq. 33", exempt=ARITHMETIC)
def judge_inverse(attention) -> tuple[Verdict, str]:
    """With the value map of all heads together: supported at an attention step where the error of Q computed from V
    lies below ten rounding errors times the condition of the value map."""
    worst = max(attention, key=lambda a: a.recovered)
    conditions = [a.condition for a in attention]
    words = (
        f"Q computed from V alone errs by at most {worst.recovered:.1e}, below ten rounding errors times the condition "
        f"of the value map at {sum(a.recovered <= a.rounding for a in attention)} of {len(attention)} steps (condition "
        f"{min(conditions):.0f} to {max(conditions):.0f}). About stiffness that says little: any invertible map of the "
        "tokens would do."
    )
    return of_cases(SUPPORTED if a.recovered <= a.rounding else CONTRADICTED for a in attention), words


@rule("The same holds in every head, where attention is computed.", "Appendix G, Eq. 33", exempt=ARITHMETIC)
def judge_heads(attention, features: int) -> tuple[Verdict, str]:
    """Contradicted at an attention step where the value map of a head has a lower rank than tokens have features."""
    losses = [a.head_loss for a in attention]
    words = (
        f"A head's value map has rank {max(a.head_rank for a in attention)} for tokens of {features} features: it has "
        f"no inverse, and the best guess of a head's queries from its own values errs by {min(losses):.2f} to "
        f"{max(losses):.2f} of their norm. Attention is computed head by head."
    )
    return of_cases(CONTRADICTED if a.head_rank < features else SUPPORTED for a in attention), words


def compare_stiffness(studied, what: str) -> dict[tuple, Seeds]:
    """TNS, its scale or its shape against constant step sizes, over seeds; TNS under each of eight readings."""
    readings = READINGS if what == TNS else QUANTITIES[what]
    level = corrected(len(readings))

    def value(one, reading) -> Estimate:
        return one.tns[reading] if what == TNS else one.found.stiffness[what][reading]

    networks = [one.found for one in studied]
    return {
        reading: compare_seeds(networks, [value(one, reading).value for one in studied], level) for reading in readings
    }


def correlate_diagonals(studied) -> Gates:
    """What a token keeps of itself and NSI over images, averaged over the counted attention steps of each network."""
    networks: dict[str, list[float]] = {}
    for one in studied:
        record = one.found.records["slope"]
        columns = {step.name: record.names.index(step.name) for step in one.attention}
        counted = [step for step in one.attention if not record.first[columns[step.name]]]
        values = [
            rank_correlation(step.diagonal, record.nsi[: one.seen, columns[step.name]], stats.spearmanr)[0]
            for step in counted
        ]
        networks.setdefault(one.subject.controller, []).append(float(np.nanmean(values)))
    return Gates({"slope": networks}, 0, 0)


def correlate_along(studied) -> Gates:
    """Step size and NSI along the counted steps of each image, averaged over the images of each network."""
    kinds: dict[str, dict[str, list[float]]] = {}
    for one in studied:
        for kind, values in one.along.items():
            kinds.setdefault(kind, {}).setdefault(one.subject.controller, []).append(float(np.mean(values)))
    return Gates({KIND_NAMES[kind]: networks for kind, networks in kinds.items()}, 0, 0)


def judge_along(found: Gates) -> tuple[Verdict, str]:
    """Spearman's correlation of step size and NSI along the counted steps of single images, over all steps, over
    attentions and over MLPs; its mean over the images of a network, and over the networks of a controller with
    Student's interval, all holding together. Supported where every controller is below 0, contradicted where every one
    is above. Judged from three networks of each controller on."""
    return judge_correlations(found, "correlation of step size and NSI along trajectories")


def judge_gates(found: Gates) -> tuple[Verdict, str]:
    """Spearman's correlation of step size and NSI over images, averaged over the counted steps whose mean step size
    moves by a standard deviation of at least 0.01; the mean over the networks of a controller with Student's interval,
    those of controllers and of both indices holding together. Supported where every controller is below 0, contradicted
    where every one is above. Judged from three networks of each controller on."""
    return judge_correlations(found, "correlation of step size and NSI over images")


def judge_diagonals(found: Gates) -> tuple[Verdict, str]:
    """Spearman's correlation, over images, of the share of itself that a token keeps in an attention and of NSI there,
    averaged over the counted attention steps; the mean over the networks of a controller with Student's interval, those
    of the controllers holding together. Supported where every controller is below 0, contradicted where every one is
    above. Judged from three networks of each controller on."""
    return judge_correlations(found, "correlation of the share that a token keeps and NSI")


def rule_of_correlations(judge, claim: str, where: str) -> Rule:
    effect = "a correlation of -0.5 in every network"
    made = Worlds(worlds.correlations, n=8, units="networks", effect=effect, now=1)
    return rule(claim, where, fewest=FEWEST_SEEDS, fixed=LATER, worlds=made)(judge)


def rule_of_comparison(what: str) -> Rule:
    """Figure 2 on transformers, for one quantity."""
    effect = "half as much again as constant step sizes have"
    made = Worlds(worlds.stiffness_of(what), n=5, units="seeds", effect=effect, now=1)
    claim = f"Transformers with step-size control have a larger {QUANTITY_NAMES[what]}."
    options = {"fewest": FEWEST_SEEDS, "fixed": LATER, "worlds": made, "variant": f"transformers, {what}"}
    return rule(claim, "Figure 2", **options)(judge_larger)


KIND_NAMES = {"all": "all steps", "attention": "attentions", "MLP": "MLPs"}
COMPARED = {what: rule_of_comparison(what) for what in QUANTITIES}
GATES = rule_of_correlations(judge_gates, "At a step, a larger NSI goes with a smaller step size.", "Figure 9a")
ALONG = rule_of_correlations(
    judge_along, "Along a trajectory a larger NSI goes with a smaller step size.", "Figure 9b, as worded"
)
DIAGONALS = rule_of_correlations(
    judge_diagonals, "Where NSI is larger, tokens keep less of themselves.", "Figure 9, on attention"
)


def findings(studied) -> list[Finding]:
    """All findings that these networks allow, in the order of the paper."""
    attention = [step for one in studied for step in one.attention]
    (features,) = {one.subject.net.config["widths"][0] for one in studied} or {0}
    accuracies = {name: [one.found.accuracy for one in members] for name, members in by_controller(studied).items()}
    networks = [one.found for one in studied]
    return [
        judge_gain(accuracies),
        judge_average(attention),
        judge_inverse(attention),
        judge_heads(attention, features),
        *(COMPARED[what](compare_stiffness(studied, what)) for what in COMPARED),
        judge_few_blocks(share_stiff_blocks(networks)),
        GATES(correlate_gates(networks)),
        ALONG(correlate_along(studied)),
        DIAGONALS(correlate_diagonals(studied)),
    ]
