"""What Table 4 and the tickets support of the paper's claims: rules, and the sentences that their numbers give."""

import functools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from studies.lab.comparisons import chance_of_one_mean
from studies.lab.statistics import LEVEL, chance_text, listing
from studies.lab.verdicts import (
    NOT_RUN,
    UNDECIDED,
    Finding,
    Verdict,
    Worlds,
    corrected,
    draw_seeds,
    enough,
    joint,
    of_each,
    rule,
)
from studies.step_control import design
from studies.step_control.design import Row
from studies.step_control.tables import PAPER, accuracies, gains

Groups = dict[str, list[float]]  # accuracies by row, one per seed
INPUTS, ADAPTORS, OTHERS = tuple(design.INPUTS), tuple(design.ADAPTORS), (design.RANDOM, design.LEAST)
TRAIN = "n = 0: `--train` makes the networks."
DRAWN = "Figure 5 is a drawing that does not settle what a to d are; these are four readings of it."
NAMES = {design.PLAIN: "the plain network", design.NONE: "no controllers", design.STIFFEST: "the stiffest blocks"}
PLACES = {design.EVERY: "among all blocks", design.COUNTED: "among the counted blocks"}
TICKETS = "lottery tickets, Section 3.1"
TWICE = (
    "before the data, but that intervals hold together under both readings of which blocks may be chosen; the verdicts "
    "on either reading were undecided before, too"
)
MARGIN = (
    "after the data: with two seeds seen and undecided. By the rule before it all blocks had to be worse than the few, "
    "so that doing as well could not be shown; the margin is half of what StepNet gains in Table 4"
)
GAIN = PAPER[design.OURS]["cifar10"][0] - PAPER[design.PLAIN]["cifar10"][0]


def findings(cells: dict[str, Row], tickets: dict[str, dict[str, Row]]) -> list[Finding]:
    """All findings about rows that were asked for; `tickets` holds the rows of the lottery tickets by reading."""
    table, placed = accuracies(cells), {reading: accuracies(rows) for reading, rows in tickets.items()}
    found = []
    if asks(cells, design.PLAIN, stepnets(cells)):
        found.append(judge_gain(table))
    if asks(cells, design.OURS, INPUTS):
        found.append(judge_inputs(table))
    if asks(cells, design.OURS, ADAPTORS):
        found.append(judge_adaptors(table))
    rows = next(iter(tickets.values()), {})
    if asks(rows, design.STIFFEST, [design.NONE]):
        found.append(judge_few(placed, counts={reading: count_of(rows) for reading, rows in tickets.items()}))
    if asks(rows, design.STIFFEST, OTHERS):
        found.append(judge_stiffest(placed, same={reading: coinciding(rows) for reading, rows in tickets.items()}))
    if asks(rows, design.STIFFEST, [design.ALL]):
        found.append(judge_all(placed))
    return found


def asks(rows: Iterable[str], control: str, others: Iterable[str]) -> bool:
    """Was the control asked for, and any of the others?"""
    return control in rows and any(name in rows for name in others)


def stepnets(rows: Iterable[str]) -> list[str]:
    return [name for name in rows if name not in (design.PLAIN, design.SE)]


def table_worlds(chance: np.random.Generator, effect: float, n: int) -> tuple[Groups]:
    """Table 4, in which all rows are alike or differ as the paper's do."""
    plain = PAPER[design.PLAIN]["cifar10"][0]
    means = {name: plain + effect * (columns["cifar10"][0] - plain) for name, columns in PAPER.items()}
    return (draw_seeds(chance, means, design.DEVIATION, n),)


@rule(
    "StepNet raises the accuracy, with any input and any adaptor.",
    "Table 4",
    fewest=design.FEWEST_SEEDS,
    worlds=Worlds(table_worlds, n=5, units="seeds", effect="Table 4's gains on CIFAR-10, +0.7 to +1.8 points", now=2),
)
def judge_gain(groups: Groups) -> tuple[Verdict, str]:
    """Accuracies of the eight StepNets of Table 4 minus that of the plain network, by Tukey and Kramer over seeds, all
    differences of the table together. Supported where every StepNet is above, contradicted where every one is below,
    true or false of some where only some are beyond 0."""
    names = stepnets(groups)
    verdict, words = against(design.PLAIN, groups, names)
    several = [groups[name] for name in names if groups[name]]
    p = chance_of_one_mean(several)
    if np.isfinite(p):
        order = "they differ beyond chance" if p < 1.0 - LEVEL else "their order may be that of other seeds"
        words += f" Among the {len(several)} StepNets an analysis of variance finds p {chance_text(p)}: {order}."
    return verdict, words


@rule(
    "x_t and x_{t+1} together are the better input.",
    "Table 4, Section 3.1",
    fewest=design.FEWEST_SEEDS,
    worlds=Worlds(
        table_worlds, n=9, units="seeds", effect="Table 4's differences on CIFAR-10, 0.5 to 0.8 points", now=2
    ),
)
def judge_inputs(groups: Groups) -> tuple[Verdict, str]:
    """Accuracies with the three other inputs minus that with both states, by Tukey and Kramer over seeds, all
    differences of Table 4 together. Supported where every other input is below, contradicted where every one is above,
    true or false of some where only some are beyond 0."""
    return against(design.OURS, groups, INPUTS, sign=-1)


@rule(
    "The chosen adaptor is the better one.",
    "Table 4, Figure 5",
    fewest=design.FEWEST_SEEDS,
    worlds=Worlds(
        table_worlds, n=5, units="seeds", effect="Table 4's differences on CIFAR-10, 0.2 to 1.1 points", now=2
    ),
)
def judge_adaptors(groups: Groups) -> tuple[Verdict, str]:
    """Accuracies with the adaptors a to d minus that with the chosen one, by Tukey and Kramer over seeds, all
    differences of Table 4 together. Supported where every other adaptor is below, contradicted where every one is
    above, true or false of some where only some are beyond 0."""
    verdict, words = against(design.OURS, groups, ADAPTORS, sign=-1)
    return verdict, f"{words} {DRAWN}"


def against(
    control: str, groups: Groups, others: Sequence[str], sign: int = 1, asked: int = 1, beyond: float = 0.0
) -> tuple[Verdict, str]:
    """The verdict on several rows beside one, and the numbers behind it.

    control, others  names of rows
    sign             -1 for the claim that the others are below the control
    asked            how many tables are judged together
    beyond           differences are counted from this number of points
    """
    several = {name: groups[name] for name in (control, *others) if groups.get(name)}
    if len(several) < 2 or control not in several:
        return NOT_RUN, TRAIN
    found = gains(groups, control, corrected(asked))
    found = {name: found[name] for name in several if name != control}
    few = enough(several, design.FEWEST_SEEDS)
    words = f"{few}Points above {NAMES.get(control, control)}: {listing(found)}."
    if few:
        return UNDECIDED.because("too few seeds"), words
    return of_each({name: e.less(beyond) for name, e in found.items()}, sign), words


def by_reading(tickets: dict[str, Groups], judge: Callable) -> tuple[Verdict, str]:
    """One verdict from those under every reading of which blocks may be chosen; `judge` is told reading and groups."""
    said = {reading: judge(reading, groups) for reading, groups in tickets.items()}
    if all(verdict == NOT_RUN for verdict, _ in said.values()):
        return NOT_RUN, TRAIN
    words = " ".join(f"{PLACES[reading].capitalize()}: {verdict}. {text}" for reading, (verdict, text) in said.items())
    return joint([verdict for verdict, _ in said.values()]), words


def ticket_worlds(chance, effect, n, lost: float = 0.0) -> tuple[dict[str, Groups]]:
    """Tickets under both readings; on the stiffest blocks StepNet gains what it gains on all in Table 4, or nothing.

    `lost` is what is lost with the few where there is no effect.
    """
    gained = {design.STIFFEST: effect * GAIN, design.ALL: effect * GAIN + (1.0 - effect) * lost}
    means = dict.fromkeys(design.TICKETS, 80.0)
    means |= {name: 80.0 + gain for name, gain in gained.items()}
    return ({reading: draw_seeds(chance, means, design.DEVIATION, n) for reading in PLACES},)


@rule(
    "Controllers on a small number of blocks are a remarkable improvement.",
    TICKETS,
    fixed=TWICE,
    fewest=design.FEWEST_SEEDS,
    worlds=Worlds(ticket_worlds, n=5, units="seeds", effect="+1.8 points, what StepNet gains in Table 4", now=2),
)
def judge_few(tickets: dict[str, Groups], counts: dict[str, int] | None = None) -> tuple[Verdict, str]:
    """Accuracy with controllers on the stiffest blocks minus that of the plain network, by Tukey and Kramer over seeds,
    once with all blocks to choose from and once with those that the paper counts. Supported where it lies above 0 under
    both, contradicted where below under both; the intervals hold together."""

    def judge(reading, groups):
        verdict, words = against(design.NONE, groups, [design.STIFFEST], asked=len(tickets))
        return verdict, words + (f" Blocks: {counts[reading]}." if counts else "")

    return by_reading(tickets, judge)


@rule(
    "The blocks that need a controller are the stiff ones.",
    TICKETS,
    fixed=TWICE,
    fewest=design.FEWEST_SEEDS,
    worlds=Worlds(ticket_worlds, n=5, units="seeds", effect="+1.8 points, what StepNet gains in Table 4", now=2),
)
def judge_stiffest(tickets: dict[str, Groups], same: dict[str, str] | None = None) -> tuple[Verdict, str]:
    """Accuracies with controllers on random and on the least stiff blocks minus that with controllers on as many of the
    stiffest, by Tukey and Kramer over seeds, under both readings of which blocks may be chosen. Supported where both
    lie below 0, contradicted where both lie above, true or false of some where only one does; the intervals hold
    together."""

    def judge(reading, groups):
        verdict, words = against(design.STIFFEST, groups, OTHERS, sign=-1, asked=len(tickets))
        return verdict, words + (same[reading] if same else "")

    return by_reading(tickets, judge)


@rule(
    "The stiffest blocks alone do as well as all.",
    TICKETS,
    fixed=MARGIN,
    fewest=design.FEWEST_SEEDS,
    negligible=design.AS_WELL,
    worlds=Worlds(
        functools.partial(ticket_worlds, lost=design.AS_WELL),
        n=9,
        units="seeds",
        effect="no loss at all, where without it the loss is just 0.9 points",
        now=2,
    ),
)
def judge_all(tickets: dict[str, Groups]) -> tuple[Verdict, str]:
    """Accuracy with controllers on all blocks minus that with controllers on the stiffest, by Tukey and Kramer over
    seeds, under both readings of which blocks may be chosen. Supported where the interval lies below 0.9 points,
    contradicted where it lies above; the intervals hold together. No visible difference is no proof of doing as well,
    which is why there is a margin."""
    return by_reading(
        tickets,
        lambda reading, groups: against(
            design.STIFFEST, groups, [design.ALL], sign=-1, asked=len(tickets), beyond=design.AS_WELL
        ),
    )


def count_of(rows: dict[str, Row]) -> int:
    """How many blocks a ticket has."""
    found = rows[design.STIFFEST].found
    return len(found[0][0].acting) if found else 0


def coinciding(rows: dict[str, Row]) -> str:
    """Names the seeds whose random choice is the stiffest blocks: one network then stands in two rows."""
    stiffest = {run.stem for run, _ in rows[design.STIFFEST].found}
    random = rows[design.RANDOM].found if design.RANDOM in rows else []
    seeds = [str(run.seed) for run, _ in random if run.stem in stiffest]
    return f" With seed {', '.join(seeds)} the random blocks are the stiffest ones." if seeds else ""
