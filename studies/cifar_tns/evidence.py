"""What the claims of `cifar_tns` are judged by, gathered from what every network did on the test images."""

import dataclasses

import numpy as np
from scipy import stats

import odelab as ol
from studies.lab.comparisons import dunnett
from studies.lab.networks import groups
from studies.lab.statistics import LEVEL, Estimate, KindRelation, rank_correlation, relate_kinds
from studies.lab.stiffness import KINDS, QUANTITIES, Measured
from studies.lab.verdicts import corrected

FEWEST_SEEDS = 3
DEGREES = (0.1, 0.25, 0.5)  # M1; M2 is as many times the mean NSI of the network
FEW = 0.1  # the paper's "at most 10 %"
MOVES = 0.01  # a step size whose standard deviation over the images is smaller stands still


@dataclasses.dataclass(frozen=True)
class Seeds:
    """Controllers against constant step sizes of the same depth.

    groups  values by name, one per network; those that nothing is compared with are left out
    beyond  how far the mean of every controller lies above: Dunnett, over seeds
    """

    groups: dict[str, list[float]]
    beyond: dict[str, Estimate]


@dataclasses.dataclass(frozen=True)
class Shares:
    """Shares of the counted blocks that are stiff to each of DEGREES, by degree, one per network.

    permuted  the same where the NSI of every stage are permuted over images and blocks
    blocks    counted blocks of the longest stage
    """

    measured: dict[float, list[float]]
    permuted: dict[float, list[float]]
    blocks: int


@dataclasses.dataclass(frozen=True)
class Gates:
    """Mean correlations of step size and NSI, by index and controller, one per network in which a step size moves.

    still, cells  how many step sizes of counted blocks stand still, of how many
    """

    correlations: dict[str, dict[str, list[float]]]
    still: int
    cells: int


@dataclasses.dataclass(frozen=True)
class Evidence:
    """All that `findings` judges; relations and comparisons by quantity and reading."""

    relations: dict[str, dict[tuple, KindRelation]]
    accuracies: Seeds
    compared: dict[str, dict[tuple, Seeds]]
    shares: Shares
    example: Gates
    gates: Gates


def gather(results: list[Measured]) -> Evidence:
    """The evidence that these networks give."""
    senets = [one for one in results if one.subject.controller.split("(")[0] == "SE"]
    return Evidence(
        {what: {reading: relate(results, what, reading) for reading in QUANTITIES[what]} for what in QUANTITIES},
        compare_seeds(results, [one.accuracy for one in results], LEVEL),
        {
            what: {
                reading: compare_seeds(
                    results, [one.stiffness[what][reading].value for one in results], corrected(len(readings))
                )
                for reading in readings
            }
            for what, readings in QUANTITIES.items()
        },
        share_stiff_blocks(results),
        correlate_gates(senets, first_stage=True),
        correlate_gates(results),
    )


def relate(results, what: str, reading) -> KindRelation:
    """Rank correlations of one quantity under one reading with the accuracy, over kinds of networks."""
    stiffness: dict[str, list[float]] = {}
    accuracies: dict[str, list[float]] = {}
    for one in results:
        stiffness.setdefault(one.name, []).append(one.stiffness[what][reading].value)
        accuracies.setdefault(one.name, []).append(one.accuracy)
    return relate_kinds(stiffness, accuracies, corrected(len(QUANTITIES[what])))


def compare_seeds(results, values, level: float) -> Seeds:
    """Dunnett's comparisons of every controller with constant step sizes, depth by depth."""
    kept: dict[str, list[float]] = {}
    beyond: dict[str, Estimate] = {}
    for depth in sorted({one.subject.depth for one in results}):
        here = [place for place, one in enumerate(results) if one.subject.depth == depth]
        names = groups([results[place].subject for place in here])
        by_name = {name: [values[here[place]] for place in places] for name, places in names.items()}
        plain = next((name for name in names if results[here[names[name][0]]].subject.controller == "constant"), None)
        if plain is not None and len(by_name) > 1:
            kept |= by_name
            beyond |= dunnett(plain, by_name, level)
    return Seeds(kept, beyond)


def share_stiff_blocks(results) -> Shares:
    """How many of the counted blocks are stiff, in every network, and in the same indices permuted within stages."""
    records = [one.records["slope"].counted() for one in results]
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


def correlate_gates(results, first_stage: bool = False) -> Gates:
    """Spearman's correlation of step size and NSI over images, averaged over the counted blocks where h moves."""
    correlations: dict[str, dict[str, list[float]]] = {of: {} for of in KINDS}
    still = cells = 0
    for one in results:
        if one.subject.controller == "constant":
            continue
        for of in KINDS:
            record = one.records[of]
            blocks = np.flatnonzero(~record.first & ((record.stage == record.stage[0]) | (not first_stage)))
            moving = [k for k in blocks if one.gates[:, k].std() >= MOVES]
            if of == KINDS[0]:
                still, cells = still + len(blocks) - len(moving), cells + len(blocks)
            found = [rank_correlation(one.gates[:, k], record.nsi[:, k], stats.spearmanr)[0] for k in moving]
            kept = correlations[of].setdefault(one.name, [])
            kept += [float(np.nanmean(found))] if np.isfinite(found).any() else []
    return Gates({f"{of} NSI": named for of, named in correlations.items() if named}, still, cells)
