"""The rows of every table of `cifar_tns`, from what was measured."""

from collections.abc import Iterator

import numpy as np
from scipy import stats

from studies.lab.comparisons import chance_cell, deviation_cell
from studies.lab.networks import groups
from studies.lab.statistics import LEVEL, Estimate, correlation, interval_text, mean_of, rank_correlation
from studies.lab.stiffness import READINGS, wording

DEGREES = ((0.1, 0.1), (0.25, 0.25), (0.5, 0.5))


def names_of(results) -> dict[str, list[int]]:
    return groups([r.subject for r in results])


def constant_beside(results, name) -> list:
    """The networks with constant step sizes of the same depth as `name`."""
    depth = results[names_of(results)[name][0]].subject.depth
    return [r for r in results if r.subject.controller == "constant" and r.subject.depth == depth]


def accuracy_rows(results) -> Iterator[dict]:
    """Table 1: accuracy over seeds, and the gain over constant step sizes."""
    for name, places in names_of(results).items():
        members = [results[place] for place in places]
        accuracies = [m.accuracy for m in members]
        plain = [m.accuracy for m in constant_beside(results, name)]
        is_plain = members[0].subject.controller == "constant"
        yield {
            "controller": name,
            "parameters (M)": f"{np.mean([m.subject.parameters for m in members]) / 1e6:.4f}",
            "networks": len(members),
            "accuracy (%)": f"{np.mean(accuracies):.2f}",
            "standard deviation": deviation_cell(accuracies, "one network"),
            "gain": "" if is_plain or not plain else f"{np.mean(accuracies) - np.mean(plain):+.2f}",
            "on the traced images (%)": f"{np.mean([m.measured_accuracy for m in members]):.2f}",
        }


def beside_rows(here, there, networks: int, population: int) -> Iterator[dict]:
    """The verdicts of a population, beside those of these networks on what the paper says at the same place."""
    verdicts = {finding.where: finding.verdict for finding in here}
    for cited in there:
        yield {
            "claim": cited.claim,
            f"these {networks} networks": verdicts.get(cited.where, "not asked"),
            f"{population} small networks": cited.verdict,
        }


def network_rows(results) -> Iterator[dict]:
    """Every network with its accuracy and its TNS under every reading."""
    for found in results:
        row = {
            "controller": found.name,
            "seed": "unknown" if found.subject.seed is None else found.subject.seed,
            "accuracy (%)": f"{found.accuracy:.2f}",
        }
        for reading in READINGS:
            row[f"TNS, {wording(*reading)}"] = interval_text(found.tns[reading])
        yield {**row, "file": found.subject.source}


def tns_rows(results) -> list[dict]:
    """Per controller the mean TNS of its networks."""
    return [
        {
            "controller": name,
            "networks": len(places),
            **{wording(*reading): interval_text(over_constant(results, name, reading)[0]) for reading in READINGS},
        }
        for name, places in names_of(results).items()
    ]


def excess_rows(results) -> Iterator[dict]:
    """Per controller how far its mean TNS is from that of constant step sizes."""
    for name in names_of(results):
        found = {reading: over_constant(results, name, reading)[1] for reading in READINGS}
        beyond = {wording(*reading): interval_text(one, "+.3f") for reading, one in found.items() if one is not None}
        if beyond:
            yield {"controller": name, **beyond}


def over_constant(results, name, reading) -> tuple[Estimate, Estimate | None]:
    places = names_of(results)[name]
    mean = mean_of(results[place].tns[reading] for place in places)
    plain = constant_beside(results, name)
    if not plain or results[places[0]].subject.controller == "constant":
        return mean, None
    return mean, mean.minus(mean_of(m.tns[reading] for m in plain))


def degree_rows(results) -> Iterator[dict]:
    """The share of images and of blocks that are stiff to three degrees, in per cent."""
    for of, mu in READINGS:
        for name, places in names_of(results).items():
            row = {"reading": wording(of, mu), "controller": name}
            for m1, m2 in DEGREES:
                records = [results[place].records[of] for place in places]
                row[f"images at ({m1:g}, {m2:g})"] = percent([r.delta(m1, m2, mu) for r in records])
                row[f"blocks at ({m1:g}, {m2:g})"] = percent([r.proportion(m1, m2, mu) for r in records])
            yield row


def gate_table(results, of) -> tuple[list, np.ndarray, np.ndarray]:
    """Networks with a step size that changes, and per block the rank correlation of gate and NSI with its p-value."""
    kept, table, chances = [], [], []
    width = max(len(found.records[of].names) for found in results)
    for found in results:
        line = np.full((2, width), np.nan)
        nsi = found.records[of].nsi
        for k in range(nsi.shape[1]):
            moves = np.ptp(found.gates[:, k]) > 1e-6 * np.abs(found.gates[:, k]).max()
            if moves and np.isfinite(nsi[:, k]).all():
                line[:, k] = rank_correlation(found.gates[:, k], nsi[:, k], stats.spearmanr)
        if np.isfinite(line[0]).any():
            kept.append(found)
            table.append(line[0])
            chances.append(line[1])
    return kept, np.array(table).reshape(-1, width), np.array(chances).reshape(-1, width)


def correlations(results, resamples: int, seed: int) -> tuple[dict, list[dict]]:
    """Figure 7: accuracy with TNS over networks under every reading, and the same over the means of controllers."""
    found, rows = {}, []
    names = names_of(results)
    for reading in READINGS:
        units = {"networks": [(r.tns[reading].value, r.accuracy) for r in results]}
        if len(names) < len(results):
            units["means of controllers"] = [
                tuple(np.mean([(results[p].tns[reading].value, results[p].accuracy) for p in places], axis=0))
                for places in names.values()
            ]
        for unit, pairs in units.items():
            stiffness, accuracies = zip(*pairs, strict=True)
            one = correlation(stiffness, accuracies, resamples, seed)
            if unit == "networks":
                found[reading] = one
            rows.append(
                {
                    "reading": wording(*reading),
                    "over": unit,
                    "n": one.n,
                    "Kendall": interval_text(one.kendall, "+.2f"),
                    "p (Kendall)": chance_cell(one.kendall_p),
                    "Spearman": interval_text(one.spearman, "+.2f"),
                    "p (Spearman)": chance_cell(one.spearman_p),
                    "positive correlation": one.verdict,
                }
            )
    return found, rows


def accuracy_errors(results, images: int) -> list[tuple[float, float]]:
    """Below and above each accuracy, in per cent: the exact binomial interval for so many test images."""
    errors = []
    for found in results:
        count = images if found.subject.accuracy is not None else len(found.correct)
        right = round(found.accuracy / 100.0 * count)
        reach = stats.binomtest(right, count).proportion_ci(LEVEL)
        errors.append((100.0 * (right / count - reach.low), 100.0 * (reach.high - right / count)))
    return errors


def percent(values) -> str:
    return f"{100.0 * np.mean(values):.1f}"
