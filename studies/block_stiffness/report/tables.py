"""The tables of the block study as rows of dictionaries."""

import re
from typing import Any

import numpy as np
from scipy import stats

from studies.block_stiffness import paper
from studies.block_stiffness.measures import READINGS, Measured, rows_of, values_of_images
from studies.block_stiffness.report.figures import LABELS
from studies.lab.statistics import interval_text, mean_over_networks, rank_correlation
from studies.lab.verdicts import corrected

READING_WORDS = {"residual": "branch", "block": "whole block"}


def count_rows() -> list[dict]:
    """Tables 10 and 11 beside what the counts are, for all 24 blocks."""
    rows = []
    for depth in (18, 34):
        printed = zip(paper.shapes(depth), paper.ELEMENTS[depth], paper.EIGENVALUES[depth], strict=True)
        for number, (shape, elements, eigenvalues) in enumerate(printed, 1):
            rows.append(
                {
                    "network": f"ResNet-{depth}",
                    "block": number,
                    "maps in": f"{shape.channels_in} x {shape.height_in} x {shape.height_in}",
                    "elements, printed": elements,
                    "elements": shape.elements,
                    '"eigenvalues", printed': eigenvalues,
                    "of slices": shape.elements // shape.height_in,
                    "of the Jacobian": shape.eigenvalues or "none, not square",
                }
            )
    return rows


def agreeing_counts() -> tuple[int, int]:
    rows = count_rows()
    return sum(row['"eigenvalues", printed'] == row["of slices"] for row in rows), len(rows)


def block_rows(found: Measured, net=None) -> list[dict]:
    """Tables 2, 5 and 8: index and percentage by block, in three readings; the paper's where the network is its own."""
    depth = None if net is None else paper.depth_of(net)
    rows = []
    for number, block in enumerate(found.blocks, 1):
        for reading in READINGS:
            table = rows_of(found, block, reading)
            if not len(table):
                continue
            index = table["stiffness_index"]
            defined = np.isfinite(index)
            printed = {}
            if depth:
                cell = paper.printed_block(depth, number) or (float("nan"), float("nan"))
                printed = dict(zip(("S, paper", "%, paper"), cell, strict=True))
            rows.append(
                printed
                | {
                    "block": number,
                    "reading": reading,
                    "images": len(table),
                    "S, median": of_known(np.median, index),
                    "S, mean": of_known(np.mean, index),
                    "S, deviation": float(np.std(index[defined], ddof=1)) if defined.sum() > 1 else float("nan"),
                    "S defined, %": 100 * float(defined.mean()),
                    "negative, %": 100 * of_known(np.mean, table["negative"]),
                    "zero, %": 100 * of_known(np.mean, table["zero"]),
                    "max Re": float(table["max_re"].mean()),
                    "min Re": float(table["min_re"].mean()),
                    "min Re, lowest": float(table["min_re"].min()),
                    "spectral radius": float(np.mean(table["spectral_radius"])),
                    "stiff modes, %": 100 * float(np.mean(table["stiff"])),
                }
            )
    return rows


def of_known(statistic, values) -> float:
    """A statistic of the values that are known, NaN of none; shares by sign need more than the ends of a spectrum."""
    known = values[np.isfinite(values)]
    return float(statistic(known)) if len(known) else float("nan")


def reading_rows(found: Measured) -> list[dict]:
    """What each reading of "the Jacobian of a block" gives: of how many blocks, and in how many images S is defined."""
    rows = []
    for reading, words in READINGS.items():
        tables = [table for block in found.blocks if len(table := rows_of(found, block, reading))]
        if not tables:
            continue
        rows.append(reading_row(reading, words, len(tables), np.concatenate(tables)))
        if reading == "residual":
            shifted = np.concatenate(tables)
            top, bottom = 1.0 + shifted["max_re"], 1.0 + shifted["min_re"]
            shifted["max_re"], shifted["min_re"] = top, bottom
            shifted["stiffness_index"] = np.where(bottom == 0.0, np.nan, top / np.where(bottom == 0.0, 1.0, bottom))
            rows.append(reading_row("step map", "I + f', the block without its final ReLU", len(tables), shifted))
    return rows


def reading_row(reading: str, words: str, blocks: int, table) -> dict:
    index = table["stiffness_index"]
    return {
        "reading": reading,
        "matrix": words,
        "blocks": blocks,
        "S defined, % of images": 100 * float(np.isfinite(index).mean()),
        "S below 0, %": 100 * of_known(lambda known: (known < 0).mean(), index),
        "S, median": of_known(np.median, index),
        "min Re, lowest": float(table["min_re"].min()),
        "max Re, highest": float(table["max_re"].max()),
    }


def input_rows(tables: dict) -> list[dict]:
    """Ends of branches' spectra at inputs of several kinds, and whether the blocks keep their order of test images."""
    usual = block_means(tables["test images"])
    rows = []
    for name, table in tables.items():
        means = block_means(table)
        rows.append(
            {
                "input": name,
                "inputs": len(np.unique(table["image"])),
                "max Re, mean": float(table["max_re"].mean()),
                "min Re, mean": float(table["min_re"].mean()),
                "min Re, lowest": float(table["min_re"].min()),
                **{
                    f"order of {measure}": rank_correlation(means[measure], usual[measure], stats.spearmanr)[0]
                    for measure in ENDS
                },
            }
        )
    return rows


ENDS = ("max_re", "min_re", "spectral_radius")


def block_means(table) -> dict[str, list[float]]:
    names = list(dict.fromkeys(table["block"]))
    return {measure: [float(table[table["block"] == name][measure].mean()) for name in names] for measure in ENDS}


def flow_rows(found: Measured, accuracies: dict[str, float]) -> list[dict]:
    """A row per block: Euler's error, and the accuracy when the exact flow stands in the block's place."""
    rows = []
    for number, block in enumerate(found.blocks, 1):
        if block not in accuracies:
            continue
        errors = rows_of(found, block, "error")["step_error"]
        branch = rows_of(found, block, "residual")
        rows.append(
            {
                "block": number,
                "error of the step, median": float(np.median(errors)),
                "largest": float(errors.max()),
                "accuracy, %": 100 * accuracies[block],
                "less than the network's": 100 * (accuracies[""] - accuracies[block]),
                "max Re": float(branch["max_re"].mean()) if len(branch) else float("nan"),
                "min Re": float(branch["min_re"].mean()) if len(branch) else float("nan"),
            }
        )
    return rows


def untrained_rows(rows: list[dict]) -> list[dict]:
    """Untrained networks of the paper's geometry in three readings beside Tables 2 and 5, means over seeds."""
    made = []
    for depth in paper.BLOCKS:
        for number, (index, percent) in enumerate(zip(paper.INDEX[depth], paper.PERCENT[depth], strict=True), 1):
            ours = [row for row in rows if (row["depth"], row["block"]) == (depth, number)]
            by_reading = {reading: [row for row in ours if row["reading"] == reading] for reading in READINGS}
            percents = [row["negative"] for row in by_reading["slices"]]
            made.append(
                {
                    "network": f"ResNet-{depth}",
                    "block": number,
                    "%, paper": percent,
                    "%, slices": float(np.mean(percents)),
                    "over seeds": f"{min(percents):.2f} to {max(percents):.2f}",
                    "%, whole block": mean_cell(by_reading["block"], "negative"),
                    "%, branch": mean_cell(by_reading["residual"], "negative"),
                    "S, paper": index,
                    "S, slices": mean_cell(by_reading["slices"], "S"),
                }
            )
    return made


def mean_cell(rows: list[dict], column: str) -> float | str:
    return float(np.mean([row[column] for row in rows])) if rows else "no eigenvalues"


def reproduction_rows(found: Measured, kept: list[dict]) -> list[dict]:
    """Means over the images of this run beside those of the record: does it reproduce them?

    kept  rows of `block_rows` in the record, called as in the figures

    Intervals are Student's over this run's images and hold together.
    """
    columns = {"negative, %": ("negative", 100.0), "max Re": ("max_re", 1.0), "min Re": ("min_re", 1.0)}
    cases = []
    for row in kept:
        reading = next((name for name in READINGS if READING_WORDS.get(name, name) == row["reading"]), "")
        table = rows_of(found, found.blocks[int(row["block"]) - 1], reading)
        for column, (measure, factor) in columns.items():
            values = factor * table[measure]
            if len(values) > 1 and np.isfinite([*values, row[column]]).all() and np.ptp(values) > 0.0:
                cases.append((row, column, values))
    rows = []
    for row, column, values in cases:
        ours = mean_over_networks(values, corrected(len(cases)))
        rows.append(
            {"block": row["block"], "reading": row["reading"], "mean of": column, "record": row[column]}
            | {"this run": interval_text(ours, ".3g"), "images": len(values)}
            | {"reproduced": "yes" if ours.low <= row[column] <= ours.high else "no"}
        )
    return rows


def geometry_rows(rows: list[dict]) -> list[dict]:
    """Slices of a network with the blocks of ResNet-18, a row per block, a pair of columns per look, beside Table 2."""
    made = []
    for number, (index, percent) in enumerate(zip(paper.INDEX[18], paper.PERCENT[18], strict=True), 1):
        row = {"block": number, "%, paper": percent, "S, paper": index}
        for epoch in dict.fromkeys(row["epoch"] for row in rows):
            some = [one for one in rows if one["epoch"] == epoch and one["block"] == number]
            for name in ("%, slices", "S, slices"):
                row[f"{name}, epoch {epoch}"] = float(np.mean([one[name] for one in some]))
        made.append(row)
    return made


def label_rows(found: Measured, reading: str, blocks, names) -> list[dict]:
    """Tables 3, 6 and 9: means by label over the blocks of the reading, beside the accuracy of the label."""
    rows = []
    for label in np.unique(found.labels):
        chosen = []
        for block in blocks:
            table = rows_of(found, block, reading)
            chosen.append(table[values_of_images(found, found.labels, table) == label])
        table = np.concatenate(chosen)
        rows.append(
            {
                "label": names[label],
                "accuracy, %": 100 * float(found.accuracy_by_label[label]),
                "S, median": of_known(np.median, table["stiffness_index"]),
                "negative, %": 100 * float(table["negative"].mean()),
                "max Re": float(table["max_re"].mean()),
                "min Re": float(table["min_re"].mean()),
            }
        )
    return rows


def readable(rows: list[dict], blocks: list[str]) -> list[dict]:
    """The rows with blocks by their number, and measures and readings called as in the figures.

    blocks  the names of all blocks of the network, in order
    """
    words: dict[str, Any] = LABELS | READING_WORDS | {name: k for k, name in enumerate(blocks, 1)}
    named = ("block", "reading", "measure", "target")
    return [
        {
            re.sub("(?<=^order of ).*", lambda name: str(words[name[0]]), key): words.get(cell, cell)
            if key in named
            else cell
            for key, cell in row.items()
        }
        for row in rows
    ]


def component_rows(components) -> list[dict]:
    return [case_row(one, {"label's share": interval_text(one.share(), "+.2f"), "F": one.f}) for one in components]


def relation_rows(relations) -> list[dict]:
    """Correlations with their intervals, p-values alone and corrected."""
    return [
        case_row(one, {"target": one.target, "Spearman": interval_text(one.estimate(), "+.2f")}) for one in relations
    ]


def case_row(one, numbers: dict) -> dict:
    """What was computed of one measure of one block: its numbers between what it is of and how certain it is."""
    about = {"block": one.block, "reading": one.reading, "measure": one.measure}
    return about | numbers | {"p": one.p, "p, Holm": one.holm, "n": one.n}


def share_rows(shares) -> list[dict]:
    return [
        {
            "measure": share.measure,
            "reading": share.reading,
            "block, %": 100 * share.block.value,
            "label, %": f"{100 * share.label.value:.1f} [{100 * share.label.low:.1f}, {100 * share.label.high:.1f}]",
            "block and label, %": f"{100 * share.both.value:.1f}",
            "image, %": f"{100 * share.image.value:.1f}",
        }
        for share in shares
    ]


def sample_size_rows() -> list[dict]:
    """How many images the printed correlations and p-values allow."""
    rows = []
    for depth, columns in paper.CORRELATIONS.items():
        pairs = [(row[i], row[i + 1]) for row in columns for i in (0, 2, 4, 6)]
        allowed = paper.sample_sizes(pairs)
        rows.append(
            {
                "network": f"ResNet-{depth}",
                "tests": len(pairs),
                "images, at least": allowed[0] if allowed else "none fits",
                "images, at most": allowed[1] if allowed else "none fits",
            }
        )
    return rows


def fit_rows(fits) -> list[dict]:
    return [
        {
            "rounds": fit.rounds,
            "seed": fit.seed,
            "loss, ResNet": fit.loss_resnet,
            "loss, ODE-net": fit.loss_ode,
            "predictions apart": fit.between_fits,
            "ResNet to its own flow": fit.residual_to_flow,
            "ODE-net to its own steps": fit.flow_to_residual,
            "evaluations, ODE-net": fit.evaluations,
        }
        for fit in fits
    ]
