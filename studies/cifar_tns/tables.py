"""The rows of every table of `cifar_tns`, from what was measured."""

from collections.abc import Iterator

import numpy as np
from scipy import stats

from studies import population
from studies.lab.claims import DEGREES, compare_seeds
from studies.lab.comparisons import chance_cell, deviation_cell, interval_cell, seed_deviation
from studies.lab.networks import groups
from studies.lab.statistics import LEVEL, interval_text
from studies.lab.stiffness import QUANTITIES, READINGS, wording
from studies.lab.verdicts import of_kinds


def names_of(results) -> dict[str, list[int]]:
    return groups([r.subject for r in results])


def accuracy_rows(results) -> Iterator[dict]:
    """Table 1: accuracy over seeds, and the gain over constant step sizes."""
    beyond = compare_seeds(results, [one.accuracy for one in results], LEVEL).beyond
    for name, places in names_of(results).items():
        members = [results[place] for place in places]
        accuracies = [m.accuracy for m in members]
        yield {
            "controller": name,
            "parameters (M)": f"{np.mean([m.subject.parameters for m in members]) / 1e6:.4f}",
            "networks": len(members),
            "accuracy (%)": f"{np.mean(accuracies):.2f}",
            "standard deviation": deviation_cell(accuracies, "one network"),
            "gain": interval_cell(beyond, name),
            "on the traced images (%)": f"{np.mean([m.measured_accuracy for m in members]):.2f}",
        }


def beside_rows(here, there, networks: str, others: str) -> Iterator[dict]:
    """The verdicts on the same claims, of these networks and of others; what one of them was not asked is said."""
    verdicts = {finding.claim: finding.verdict for finding in here}
    for cited in there:
        way = f": {population.OVER_ALL}."
        claim = f"{cited.claim.removesuffix(way)}." if cited.claim.endswith(way) else cited.claim
        yield {"claim": cited.claim, networks: verdicts.get(claim, "not asked"), others: cited.verdict}


def network_rows(results) -> Iterator[dict]:
    """Every network with its accuracy, and TNS, scale and shape under every reading."""
    for found in results:
        row = {
            "controller": found.name,
            "seed": "unknown" if found.subject.seed is None else found.subject.seed,
            "accuracy (%)": f"{found.accuracy:.2f}",
        }
        for what, readings in QUANTITIES.items():
            for reading in readings:
                row[f"{what}, {wording(*reading)}"] = interval_text(found.stiffness[what][reading])
        yield {**row, "file": found.subject.source}


def stiffness_rows(results) -> Iterator[dict]:
    """Per controller the mean of TNS, scale and shape over its networks, and the seeds' standard deviation."""
    for name, places in names_of(results).items():
        row = {"controller": name, "networks": len(places)}
        for what, readings in QUANTITIES.items():
            for reading in readings:
                values = [results[place].stiffness[what][reading].value for place in places]
                spread = f" +- {seed_deviation(values):.3f}" if len(values) > 1 else ""
                row[f"{what}, {wording(*reading)}"] = f"{np.mean(values):.3f}{spread}"
        yield row


def excess_rows(results, compared) -> Iterator[dict]:
    """Per controller how far TNS, scale and shape lie above those of constant step sizes, over seeds."""
    for name in names_of(results):
        row = {
            f"{what}, {wording(*reading)}": interval_cell(one.beyond, name, "+.3f")
            for what, readings in compared.items()
            for reading, one in readings.items()
        }
        if any(row.values()):
            yield {"controller": name, **row}


def degree_rows(results) -> Iterator[dict]:
    """The share of images and of blocks that are stiff to three degrees, in per cent; M2 is M1 times the mean NSI."""
    for of, mu in READINGS:
        for name, places in names_of(results).items():
            row = {"reading": wording(of, mu), "controller": name}
            records = [results[place].records[of] for place in places]
            scales = [results[place].stiffness["scale"][(of,)].value for place in places]
            for m1 in DEGREES:
                pairs = list(zip(records, scales, strict=True))
                row[f"images at {m1:g}"] = percent([record.delta(m1, m1 * scale, mu) for record, scale in pairs])
                row[f"blocks at {m1:g}"] = percent([record.proportion(m1, m1 * scale, mu) for record, scale in pairs])
            yield row


def correlation_rows(relations) -> Iterator[dict]:
    """Figure 7: the accuracy with TNS, scale and shape over kinds of networks."""
    for what, readings in relations.items():
        for reading, one in readings.items():
            whole = one.whole
            yield {
                "quantity": what,
                "reading": wording(*reading),
                "kinds": whole.n,
                "Kendall": interval_text(whole.kendall, "+.2f"),
                "p (Kendall)": chance_cell(whole.kendall_p),
                "Spearman": interval_text(whole.spearman, "+.2f"),
                "p (Spearman)": chance_cell(whole.spearman_p),
                "positive": of_kinds(one),
            }


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
