"""The rows of every table of `trajectory`, from what was measured."""

from collections.abc import Iterator

import numpy as np
from scipy import stats

from studies.lab.comparisons import signed_cell
from studies.lab.statistics import bootstrap_mean, interval_text, rank_correlation
from studies.lab.stiffness import READINGS, wording
from studies.trajectory.design import DEGREES, MEASURES
from studies.trajectory.findings import block_correlation
from studies.trajectory.measures import first_ratios

ABOUT_A_DISTANCE = (" distance", ", above the floor", ", tau")


def distance_rows(courses, proxy) -> Iterator[dict]:
    """Every network, the best first: accuracy, distances from the proxy, and whether they grow with depth.

    What is above the floor is the distance without that of the proxy's other seeds, where there are any.
    """
    seeds = [one for one in courses if one is not proxy and one.subject.name == proxy.subject.name]
    floor = {measure: np.mean([one.distance[measure].value for one in seeds]) for measure in MEASURES if seeds}
    for one in sorted(courses, key=lambda one: -one.measured.accuracy):
        row = {"network": one.name, "accuracy (%)": f"{one.measured.accuracy:.2f}"}
        if one is proxy:
            row |= dict.fromkeys((f"{measure}{what}" for measure in MEASURES for what in ABOUT_A_DISTANCE), "")
            row[f"{MEASURES[0]}{ABOUT_A_DISTANCE[0]}"] = "the proxy"
            yield row
            continue
        for measure in MEASURES:
            e = one.distance[measure]
            above = f"{e.value - floor[measure]:+.3f}" if floor else ""
            cells = interval_text(e), above, f"{with_depth(one.blocks[measure]):+.2f}"
            row |= {f"{measure}{what}": cell for what, cell in zip(ABOUT_A_DISTANCE, cells, strict=True)}
        yield row


def with_depth(line: np.ndarray) -> float:
    """Kendall's correlation of a distance with depth."""
    return rank_correlation(np.arange(len(line)), line, stats.kendalltau)[0]


def property_rows(courses) -> Iterator[dict]:
    """Property (1): the share of images that are stiff somewhere, per network and reading."""
    for one in courses:
        for of, mu in READINGS:
            record = one.measured.records[of]
            yield {"network": one.name, "reading": wording(of, mu)} | {
                f"M1 = {degree:g} (%)": f"{100 * float(record.delta(degree, 0.0, mu)):.1f}" for degree in DEGREES
            }


def first_rows(courses, chosen) -> Iterator[dict]:
    """A stage's first block over the median of its others."""
    for one in courses:
        for what, ratios in first_ratios(one).items():
            yield {"network": one.name, "of": what} | {
                f"stage {stage + 1}": interval_text(bootstrap_mean(values, within(chosen, len(values))), ".2f")
                for stage, values in enumerate(ratios.T)
            }


def within(chosen: np.ndarray, images: int) -> np.ndarray:
    """The resamples folded onto fewer images."""
    return chosen[:, :images] % images


def importance_rows(losses) -> Iterator[dict]:
    """What every network loses without each of its blocks."""
    for one in losses:
        record = one.course.measured.records["slope"]
        for k, name in enumerate(record.names):
            yield {
                "network": one.course.name,
                "block": name,
                "counted": "no" if record.first[k] else "yes",
                "NSI": f"{record.nsi[:, k].mean():.3f}",
                "loss rises by": f"{one.rise[:, k].mean():.3f}",
                "accuracy without (%)": f"{one.accuracy[k]:.1f}",
                "rank correlation over images": signed_cell(
                    rank_correlation(record.nsi[:, k], one.rise[:, k], stats.spearmanr)[0]
                ),
            }


def correlation_rows(losses) -> Iterator[dict]:
    """One correlation of NSI and importance per network."""
    for one in losses:
        everything = rank_correlation(
            one.course.measured.records["slope"].nsi.mean(0), one.rise.mean(0), stats.spearmanr
        )[0]
        yield {
            "network": one.course.name,
            "accuracy (%)": f"{one.course.measured.accuracy:.2f}",
            "over the counted blocks": signed_cell(block_correlation(one)),
            "over all blocks": signed_cell(everything),
        }


def feature_rows(losses) -> Iterator[dict]:
    """The rise of the loss without large or small elements, per network and counted block."""
    for one in losses:
        record = one.course.measured.records["slope"]
        for place, block in enumerate(np.flatnonzero(~record.first)):
            yield {"network": one.course.name, "block": record.names[block]} | {
                f"without the {which}": f"{rises[:, place].mean():.4f}" for which, rises in one.features.items()
            }
