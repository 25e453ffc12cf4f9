"""Claims that are asked of networks of several kinds: their evidence, and the functions that judge it.

Do networks with attention have more of a quantity than those with constant step sizes, are few of their blocks stiff,
and does a larger NSI go with a smaller step size? `cifar_tns` asks it of residual networks, `transformer` of
transformers.
"""

import dataclasses

import numpy as np
from scipy import stats

import odelab as ol
from studies.lab.comparisons import dunnett
from studies.lab.networks import groups
from studies.lab.statistics import LEVEL, Estimate, interval_text, listing, mean_with_interval, rank_correlation
from studies.lab.stiffness import KINDS, SCALE, SHAPE, TNS, wording
from studies.lab.verdicts import (
    NOT_ASKABLE,
    NOT_RUN,
    SUPPORTED,
    UNDECIDED,
    Verdict,
    Worlds,
    corrected,
    enough,
    joint,
    of_cases,
    of_each,
    of_interval,
    rule,
)

FEWEST_SEEDS = 3
TABLE_7 = {  # Table 7: per cent, with the standard deviation over five seeds
    ("constant", "cifar10"): (89.08, 0.84),
    ("constant", "cifar100"): (66.32, 1.03),
    ("constant", "stl10"): (62.58, 1.02),
    ("stepnet", "cifar10"): (90.32, 0.48),
    ("stepnet", "cifar100"): (68.88, 0.25),
    ("stepnet", "stl10"): (65.58, 0.59),
}
SPREAD = {TNS: 0.1, SCALE: 0.05, SHAPE: 0.1}  # of seeds, where constant step sizes have 1


# ---- Controllers against constant step sizes (Figure 2) ----


@dataclasses.dataclass(frozen=True)
class Arms:
    """Numbers of several arms, one for each seed, and how far every other arm lies above the control.

    groups   values by name, the control's among them
    beyond   of the other arms, with intervals over seeds that hold together
    control  the name of the control; "" where there are several, such as one for each depth
    """

    groups: dict[str, list[float]]
    beyond: dict[str, Estimate]
    control: str = ""

    @classmethod
    def against(cls, control: str, groups: dict[str, list[float]], level: float = LEVEL) -> "Arms":
        """Compared by Dunnett over seeds; arms without a seed are not compared."""
        return cls(groups, dunnett(control, groups, level), control)

    @property
    def why_open(self) -> str:
        """Why nothing is judged yet, as the beginning of a sentence; "" where every arm has seeds enough."""
        return enough(self.groups, FEWEST_SEEDS)

    def verdict(self, sign: int = 1) -> Verdict:
        """The verdict on the claim that every arm lies above the control, below it with sign = -1."""
        if not self.beyond:
            return NOT_RUN
        return UNDECIDED.because("too few seeds") if self.why_open else of_each(self.beyond, sign)


def compare_seeds(results, values, level: float) -> Arms:
    """Dunnett's comparisons of every controller with constant step sizes, depth by depth."""
    compared: dict[str, list[float]] = {}
    beyond: dict[str, Estimate] = {}
    for depth in sorted({network.subject.depth for network in results}):
        members = [index for index, network in enumerate(results) if network.subject.depth == depth]
        names = groups([results[index].subject for index in members])
        by_name = {name: [values[members[index]] for index in indices] for name, indices in names.items()}
        plain = next(
            (name for name in names if results[members[names[name][0]]].subject.controller == "constant"), None
        )
        if plain is not None and len(by_name) > 1:
            compared |= by_name
            beyond |= dunnett(plain, by_name, level)
    return Arms(compared, beyond)


def judge_larger(compared: dict[tuple, Arms]) -> tuple[Verdict, str]:
    """Mean over the images of each network; each controller minus constant step sizes of the same depth, by Dunnett
    over seeds, the intervals holding together over controllers and readings. Under each reading: supported where every
    controller is above, contradicted where every one is below, true or false of some where only some are beyond 0.
    Judged from three seeds of every controller on."""
    if not any(arms.beyond for arms in compared.values()):
        return NOT_RUN, "n = 0: nothing to compare with constant step sizes."
    verdicts, first = {reading: arms.verdict() for reading, arms in compared.items()}, next(iter(compared.values()))
    parts = []
    for reading, arms in compared.items():
        above, below = (
            [name for name, e in arms.beyond.items() if of_interval(e, sign) == SUPPORTED] for sign in (1, -1)
        )
        sides = [f"{side}: {', '.join(names)}" for side, names in (("above", above), ("below", below)) if names]
        parts.append(f"{wording(*reading)}, {'; '.join(sides) or 'none beyond'}")
    words = f"Beyond constant step sizes with the whole interval, of {len(first.beyond)}: {'. '.join(parts)}."
    return joint(verdicts), f"{first.why_open}{words}"


# ---- Few blocks are stiff (Figure 6) ----
DEGREES = (0.1, 0.25, 0.5)  # M1; M2 is as many times the mean NSI of the network
FEW = 0.1  # the paper's "at most 10 %"
COUNTED_RULE = (
    "after the data: the older rule, most degrees of a grid with at most 10 % of the blocks stiff, said supported, and "
    "says so of random numbers as well"
)
IMAGES, BLOCKS, STAGES = 40, 8, 3  # of made-up networks


@dataclasses.dataclass(frozen=True)
class Shares:
    """Shares of the counted blocks that are stiff to each of DEGREES, by degree, one per network.

    permuted  the same where the NSI of every stage are permuted over images and blocks
    blocks    counted blocks of the longest stage
    """

    measured: dict[float, list[float]]
    permuted: dict[float, list[float]]
    blocks: int


def share_stiff_blocks(results) -> Shares:
    """How many of the counted blocks are stiff, in every network, and in the same indices permuted within stages."""
    records = [network.records["slope"].counted() for network in results]
    return shares_of([(record.nsi, record.stage) for record in records])


def shares_of(networks) -> Shares:
    """The same for pairs (indices (N, T), stages (T,)) of counted blocks."""
    measured: dict[float, list[float]] = {degree: [] for degree in DEGREES}
    permuted: dict[float, list[float]] = {degree: [] for degree in DEGREES}
    for number, (nsi, stage) in enumerate(networks):
        mean = float(nsi.mean())
        for shares, indices in ((measured, nsi), (permuted, permute_within_stages(nsi, stage, number))):
            for degree in DEGREES:
                shares[degree].append(float(ol.stiffness_proportion(indices, stage, degree, degree * mean)))
    return Shares(measured, permuted, int(np.bincount(networks[0][1].astype(int)).max()))


def permute_within_stages(nsi: np.ndarray, stage: np.ndarray, seed: int) -> np.ndarray:
    """The same indices in every stage, over images and blocks in random order."""
    chance, mixed = np.random.default_rng(seed), nsi.copy()
    for label in np.unique(stage):
        columns = np.flatnonzero(stage == label)
        mixed[:, columns] = chance.permutation(nsi[:, columns].ravel()).reshape(len(nsi), -1)
    return mixed


def worlds_of_shares(chance, effect, n) -> tuple[Shares]:
    """Indices without order in stages; or images of very different indices, with one block of 24 that stands out."""
    stage = np.repeat(np.arange(STAGES), BLOCKS)
    networks = []
    for _ in range(n):
        if effect:
            nsi = chance.lognormal(0.0, 1.0, (IMAGES, 1)) * chance.normal(1.0, 0.02, (IMAGES, len(stage)))
            nsi[np.arange(IMAGES), chance.integers(0, len(stage), IMAGES)] *= 3.0
        else:
            nsi = chance.lognormal(0.0, 0.5, (IMAGES, len(stage)))
        networks.append(nsi)
    return (shares_of([(nsi, stage) for nsi in networks]),)


@rule(
    "Only a few blocks of a trajectory are stiff, at most 10 % for most degrees.",
    "Figure 6, Section 3.1",
    fewest=FEWEST_SEEDS,
    fixed=COUNTED_RULE,
    worlds=Worlds(
        worlds_of_shares,
        n=8,
        units="networks",
        effect="one block of eight with three times the index of the others",
        now=12,
    ),
    paper="at most 10 %",
    unit="%",
)
def judge_few_blocks(stiff: Shares) -> tuple[Verdict, str]:
    """The share of counted blocks that are stiff to the degrees M1 = 0.1, 0.25 and 0.5, with M2 = M1 times the mean NSI
    of the network, under the sample's mean, and the same of its NSI permuted within stages over images and blocks. At
    each degree: supported where the interval over networks lies below 10 %, contradicted where it lies above; where the
    permuted numbers give the same answer, it cannot be asked. Under the mean over the data set permuting changes
    nothing, so that it can never be asked there."""
    if not stiff.measured:
        return NOT_RUN, "n = 0."
    verdicts, parts = [], []
    for degree in DEGREES:
        ours, permuted = (
            mean_with_interval(shares[degree], corrected(len(DEGREES))) for shares in (stiff.measured, stiff.permuted)
        )
        verdicts.append(of_share(ours, permuted, len(stiff.measured[degree])))
        parts.append(
            f"at M1 = {degree:g} {interval_text(percent(ours), '.1f')} %, permuted "
            f"{interval_text(percent(permuted), '.1f')} % ({verdicts[-1]})"
        )
    limit = (
        f" A stage has {stiff.blocks} counted blocks here, and one of them is never below their mean: with so few the "
        "claim says little."
        if stiff.blocks < 4
        else ""
    )
    words = f"Stiff blocks, over {len(stiff.measured[DEGREES[0]])} networks: {'; '.join(parts)}.{limit}"
    verdict = NOT_ASKABLE.because(f"{stiff.blocks} counted blocks a stage") if limit else of_cases(verdicts)
    return verdict.resting_on(*verdicts, names=[f"M1 = {degree:g}" for degree in DEGREES]), words


def of_share(ours: Estimate, permuted: Estimate, n: int) -> Verdict:
    """The verdict at one degree."""
    if n < FEWEST_SEEDS:
        return UNDECIDED.because(f"n = {n}, judged from {FEWEST_SEEDS} on")
    said, of_noise = (of_interval(percent(e).less(100 * FEW), sign=-1) for e in (ours, permuted))
    return NOT_ASKABLE.because("permuted numbers say the same").resting_on(said) if said == of_noise else said


def percent(e: Estimate) -> Estimate:
    return Estimate(100 * e.value, 100 * e.low, 100 * e.high, n=e.n)


# ---- Step size against NSI (Figure 9) ----
MOVES = 0.01  # a step size whose standard deviation over the images is smaller stands still


@dataclasses.dataclass(frozen=True)
class Gates:
    """Mean correlations of step size and NSI, by index and controller, one per network in which a step size moves.

    still, cells  how many step sizes of counted blocks stand still, of how many
    """

    correlations: dict[str, dict[str, list[float]]]
    still: int
    cells: int


def correlate_gates(results, first_stage: bool = False) -> Gates:
    """Spearman's correlation of step size and NSI over images, averaged over the counted blocks where h moves."""
    correlations: dict[str, dict[str, list[float]]] = {of: {} for of in KINDS}
    still = cells = 0
    for network in results:
        if network.subject.controller == "constant":
            continue
        for of in KINDS:
            record = network.records[of]
            blocks = np.flatnonzero(~record.first & ((record.stage == record.stage[0]) | (not first_stage)))
            moving = [k for k in blocks if network.gates[:, k].std() >= MOVES]
            if of == KINDS[0]:
                still, cells = still + len(blocks) - len(moving), cells + len(blocks)
            rhos = [rank_correlation(network.gates[:, k], record.nsi[:, k], stats.spearmanr)[0] for k in moving]
            of_controller = correlations[of].setdefault(network.name, [])
            of_controller += [float(np.nanmean(rhos))] if np.isfinite(rhos).any() else []
    return Gates({f"{of} NSI": named for of, named in correlations.items() if named}, still, cells)


def judge_correlations(gates: Gates, what: str) -> tuple[Verdict, str]:
    """Means over the networks of each controller, of correlations that a claim says are below 0."""
    verdicts, parts, few = {}, [], ""
    asked = sum(map(len, gates.correlations.values()))
    for kind, named in gates.correlations.items():
        usable = {name: values for name, values in named.items() if len(values)}
        means = {name: mean_of_few(values, corrected(asked)) for name, values in usable.items()}
        why = enough(usable, FEWEST_SEEDS, "networks") if usable else ""
        said = of_each(means, sign=-1) if not why else UNDECIDED.because("too few networks")
        verdicts[kind] = said if usable else NOT_ASKABLE.because("no step size moves")
        parts.append(f"{kind}: {listing(means) or 'no step size moves'} ({verdicts[kind]})")
        few = few or why
    if not parts:
        return NOT_ASKABLE.because("no step size moves"), "No network here has a step size that moves with the image."
    return joint(verdicts), f"{few}Mean {what}. {'; '.join(parts)}."


def mean_of_few(values: list[float], level: float) -> Estimate:
    """The mean with Student's interval, which says nothing for fewer networks than the rule asks for."""
    e = mean_with_interval(values, level)
    return e if len(values) >= FEWEST_SEEDS else Estimate(e.value, np.nan, np.nan, n=e.n)


def gate_table(results, of) -> tuple[list, np.ndarray, np.ndarray]:
    """Networks with a step size that changes, and per block the rank correlation of gate and NSI with its p-value."""
    moving, table, chances = [], [], []
    width = max(len(network.records[of].names) for network in results)
    for network in results:
        line = np.full((2, width), np.nan)
        nsi = network.records[of].nsi
        for k in range(nsi.shape[1]):
            moves = network.gates[:, k].std() >= MOVES
            if moves and np.isfinite(nsi[:, k]).all():
                line[:, k] = rank_correlation(network.gates[:, k], nsi[:, k], stats.spearmanr)
        if np.isfinite(line[0]).any():
            moving.append(network)
            table.append(line[0])
            chances.append(line[1])
    return moving, np.array(table).reshape(-1, width), np.array(chances).reshape(-1, width)
