"""What the claims of `cifar_tns` are judged by, gathered from what every network did on the test images."""

import dataclasses

from studies.lab.claims import Gates, Seeds, Shares, compare_seeds, correlate_gates, share_stiff_blocks
from studies.lab.statistics import LEVEL, KindRelation, relate_kinds
from studies.lab.stiffness import QUANTITIES, Measured
from studies.lab.verdicts import corrected


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
