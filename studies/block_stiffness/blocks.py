"""Blocks in three readings, by label and at other inputs (Tables 2, 3, 5, 6, 8 and 9, Section 5)."""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from scipy import stats

import netbridge as nb
from odelab.plot import style
from studies.block_stiffness import printed
from studies.block_stiffness.evidence import (
    CALLED,
    ENDS,
    LABELS,
    READING_WORDS,
    Component,
    Evidence,
    Order,
    case_row,
    correlation_interval,
    holm,
    name_reading,
    of_most_images,
    readable,
    relate,
    relation_rows,
    with_holm,
)
from studies.block_stiffness.measures import (
    LARGEST_FULL,
    READINGS,
    SPECTRA,
    Measured,
    finite,
    first_images,
    move_images,
    rows_of,
    values_of_images,
)
from studies.lab.exhibits import Exhibit
from studies.lab.page import Page
from studies.lab.statistics import (
    chance_text,
    estimate,
    interval_text,
    listing,
    mean_over_networks,
    rank_correlation,
)
from studies.lab.stiffness import prepare
from studies.lab.verdicts import (
    CHANCE,
    NOT_RUN,
    SUPPORTED,
    Finding,
    Verdict,
    Worlds,
    corrected,
    of_cases,
    of_each,
    of_interval,
    rule,
)

LABELLED = ("stiffness_index", "negative", "max_re", "min_re", "spectral_radius")  # their variance is split by label


# ---- By block: Tables 2, 5 and 8 ----


def block_rows(measured: Measured) -> list[dict]:
    """Tables 2, 5 and 8: index and percentage by block, in three readings; the paper's where the network is its own."""
    depth = printed.depth_of(measured.config)
    rows = []
    for (number, block), reading in itertools.product(enumerate(measured.blocks, 1), READINGS):
        table = rows_of(measured, block, reading)
        if not len(table):
            continue
        index = table["stiffness_index"]
        defined = np.isfinite(index)
        paper = {}
        if depth:
            cell = printed.printed_block(depth, number) or (float("nan"), float("nan"))
            paper = dict(zip(("S, paper", "%, paper"), cell, strict=True))
        rows.append(
            paper
            | {
                "block": number, "reading": reading, "images": len(table), "S, median": of_known(np.median, index),
                "S, mean": of_known(np.mean, index),
                "S, deviation": float(np.std(index[defined], ddof=1)) if defined.sum() > 1 else float("nan"),
                "S defined, %": 100 * float(defined.mean()), "negative, %": 100 * of_known(np.mean, table["negative"]),
                "zero, %": 100 * of_known(np.mean, table["zero"]), "max Re": float(table["max_re"].mean()),
                "min Re": float(table["min_re"].mean()), "min Re, lowest": float(table["min_re"].min()),
                "spectral radius": float(np.mean(table["spectral_radius"])),
                "stiff modes, %": 100 * float(np.mean(table["stiff"])),
            }
        )  # fmt: skip
    return readable(rows, measured.blocks)


def of_known(statistic, values) -> float:
    """A statistic of the values that are known, NaN of none; shares by sign need more than the ends of a spectrum."""
    values = finite(values)
    return float(statistic(values)) if len(values) else float("nan")


def reading_rows(measured: Measured) -> list[dict]:
    """What each reading of "the Jacobian of a block" gives: of how many blocks, and in how many images S is defined."""
    rows = []
    for reading, words in READINGS.items():
        tables = [table for block in measured.blocks if len(table := rows_of(measured, block, reading))]
        if not tables:
            continue
        rows.append(reading_row(reading, words, len(tables), np.concatenate(tables)))
        if reading == "residual":
            shifted = np.concatenate(tables)
            top, bottom = 1.0 + shifted["max_re"], 1.0 + shifted["min_re"]
            shifted["max_re"], shifted["min_re"] = top, bottom
            shifted["stiffness_index"] = np.where(bottom == 0.0, np.nan, top / np.where(bottom == 0.0, 1.0, bottom))
            rows.append(reading_row("step map", "I + f', the block without its final ReLU", len(tables), shifted))
    return readable(rows)


def reading_row(reading: str, words: str, blocks: int, table) -> dict:
    index = table["stiffness_index"]
    return {
        "reading": reading, "matrix": words, "blocks": blocks,
        "S defined, % of images": 100 * float(np.isfinite(index).mean()),
        "S below 0, %": 100 * of_known(lambda known: (known < 0).mean(), index),
        "S, median": of_known(np.median, index), "min Re, lowest": float(table["min_re"].min()),
        "max Re, highest": float(table["max_re"].max()),
    }  # fmt: skip


def precision_rows(net, data, inner: Sequence[str], work: dict) -> list[dict]:
    """All eigenvalues of the branches at the first test image in single and in double precision, and both ends alone.

    Only of blocks of which that takes seconds. Differences of the ends are relative to the spectral radius.
    """
    images = prepare(net, data, data.test_images[:1])
    sizes = {name: state[0].numel() for name, state in nb.block_states(net, images, inner).items()}
    blocks = [name for name in inner if sizes[name] <= LARGEST_FULL]
    if not blocks:
        return []
    single, double, ends = (
        nb.block_survey(net, images, "residual", blocks, values, dtype=dtype, **work)
        for values, dtype in (("full", torch.float32), ("full", torch.float64), ("extremes", torch.float32))
    )
    rows = []
    for name in blocks:
        one, two, end = (table[table["block"] == name][0] for table in (single, double, ends))
        missed = (float(max(abs(row[m] - two[m]) for m in ENDS[:2]) / two["spectral_radius"]) for row in (one, end))
        rows.append(
            {
                "block": net.block_names.index(name) + 1,
                "eigenvalues": int(two["n"]),
                "negative, double, %": 100 * float(two["negative"]),
                "single less double, points": 100 * float(one["negative"] - two["negative"]),
                **dict(zip(("ends, single", "ends alone"), missed, strict=True)),
            }
        )
    return rows


def clouds_of(net, data, measured: Measured, part: str) -> dict[str, np.ndarray]:
    """All eigenvalues of this part at the first test image, for blocks of which that is cheap."""
    states = nb.block_states(net, prepare(net, data, data.test_images[:1]))
    return {
        f"block {number}": nb.block_spectrum(
            net.get_submodule(block), states[block], part, "full", dtype=torch.float32, conditions=False
        ).values
        for number, block in enumerate(measured.blocks, 1)
        if len(rows_of(measured, block, part)) and states[block].numel() <= LARGEST_FULL
    }


def show_blocks(page: Page, evidence: Evidence):
    measured = evidence.measured
    page.table(
        "by_block",
        block_rows(measured),
        "Every block in three readings",
        "S is undefined where the smallest real part is zero. Stiff modes decay and grow under a step of size 1. Where "
        "the ends of a spectrum alone are known there are no shares by sign, and stiff modes are those found.",
    )
    page.table(
        "readings",
        reading_rows(measured),
        "What each reading gives",
        "The paper does not say which matrix its numbers belong to. The sign and the size of S depend on the reading, "
        "and in some readings S is not defined.",
    )
    page.figure(
        draw_along_depth(measured),
        "along_depth",
        "Index, share of negative real parts and smallest real part along depth, in three readings. Points are medians "
        "over images, bars hold nine of ten. The dotted line is Euler's limit on the real axis.",
    )
    for part, name, words in (
        (
            "residual",
            "clouds",
            "branch at the first test image. Grey: the disc |1 + z| < 1 in which a step of size 1 damps a mode",
        ),
        (
            "block",
            "clouds_block",
            "whole block at the first test image. Grey: the disc |z| < 1 in which the block damps a change of its "
            "input; its dead outputs are zeros",
        ),
    ):
        if evidence.clouds.get(part):
            page.figure(draw_clouds(evidence.clouds[part], part), name, f"Eigenvalues of the {words}.")
    activity = with_holm(
        relate(measured, block, "negative", "alive", reading)
        for block, reading in itertools.product(evidence.inner, READINGS)
    )
    page.table(
        "activity",
        relation_rows(activity, evidence.blocks),
        "The share of negative real parts against the share of live outputs, image by image within each block",
        "A dead output is a row of zeros in the Jacobian and in its slices. Spearman's correlation with its 95 % "
        "interval; Holm's correction over the rows.",
    )
    page.table(
        "precision",
        evidence.precision,
        "How far single precision and ends alone can be trusted, at the first test image",
        "Branches: all eigenvalues in double precision, what single precision changes, and by how much the ends from "
        "products with vectors miss those of all eigenvalues, relative to the spectral radius.",
    )


def show_others(page: Page, evidence: Evidence):
    """Further networks of the user's: by block only."""
    for number, measured in enumerate(evidence.others, 2):
        name = measured.name
        page.heading(f"{name}, by block")
        page.table(f"by_block_{number}", block_rows(measured), f"Every block of {name} in three readings")
        page.figure(draw_along_depth(measured), f"along_depth_{number}", f"Along the depth of {name}.")


def draw_along_depth(measured: Measured):
    """Index, percentage and smallest real part of every block, in the three readings; the bars hold the images."""
    panels = (("stiffness_index", "S = max Re / min Re"), ("negative", "share with Re < 0"), ("min_re", "min Re"))
    with style.figure(1, 3, height=2.8) as (drawing, axes):
        for axis, (measure, label) in zip(axes[0], panels, strict=True):
            for reading, look in zip(READINGS, ("o-", "s-", "^-"), strict=True):
                columns = [
                    (number, values)
                    for number, block in enumerate(measured.blocks, 1)
                    if len(values := finite(rows_of(measured, block, reading)[measure]))
                ]
                places, middle = [number for number, _ in columns], [np.median(values) for _, values in columns]
                low, high = ([np.percentile(values, p) for _, values in columns] for p in (5, 95))
                bars = np.subtract(middle, low), np.subtract(high, middle)
                axis.errorbar(places, middle, bars, fmt=look, markersize=3, linewidth=1, capsize=2, label=reading)
            axis.set(xlabel="block", xticks=range(1, len(measured.blocks) + 1, 1 + len(measured.blocks) // 10))
            axis.set_title(label, loc="left")
        axes[0, 0].set_yscale("symlog", linthresh=1.0)
        axes[0, 0].yaxis.set_major_formatter("{x:g}")
        axes[0, 2].axhline(-2.0, color="black", linewidth=0.8, linestyle=":")
        handles, names = axes[0, 0].get_legend_handles_labels()
        names = [READING_WORDS.get(name, name) for name in names]
        drawing.legend(handles, names, loc="outside lower center", ncols=3)
    return drawing


def draw_clouds(spectra: dict[str, np.ndarray], part: str):
    """The eigenvalues of one image, a panel for every block, with the disc in which Euler's step is stable."""
    columns = 4
    rows = -(-len(spectra) // columns)
    with style.figure(rows, columns, height=1.9 * rows + 0.3) as (drawing, axes):
        flat = list(axes.flat)
        centre = -1.0 if part == "residual" else 0.0
        angle = np.linspace(0.0, 2.0 * np.pi, 200)
        for axis, (name, values) in zip(flat, spectra.items(), strict=False):
            axis.fill(centre + np.cos(angle), np.sin(angle), color="#DDDDDD", zorder=0)
            axis.scatter(values.real, values.imag, s=1.5, linewidths=0, rasterized=True)
            axis.axvline(0.0, color="black", linewidth=0.5)
            axis.set_title(name, loc="left", fontsize=8)
            axis.set_aspect("equal", "datalim")
        for axis in flat[len(spectra) :]:
            axis.set_axis_off()
        drawing.supxlabel("Re", fontsize=8)
        drawing.supylabel("Im", fontsize=8)
    return drawing


# ---- By label: Tables 3, 6 and 9 ----

NEGLIGIBLE_SHARE = 0.05  # of the variance of a measure: what labels may have where they do not matter


def variance_row(measured: Measured, reading: str, measure: str, blocks, resamples: int) -> dict | None:
    """Shares of a measure's variance over images: of the block, of the label, of both together, of the image.

    From sums of squares of a balanced two-way layout, blocks by labels, with the label's interval over images within
    labels; None where a label has fewer than two images.
    """
    layers = []
    for block in blocks:
        rows = rows_of(measured, block, reading)
        labels = values_of_images(measured, measured.labels, rows)
        by_label = [rows[measure][labels == label] for label in np.unique(labels)]
        if not by_label or min(map(len, by_label)) < 2:
            return None
        layers.append(np.stack([values[: min(map(len, by_label))] for values in by_label]))
    shortest = min(layer.shape[1] for layer in layers)
    values = np.stack([layer[:, :shortest] for layer in layers])  # (block, label, image)
    if not np.isfinite(values).all() or np.ptp(values) == 0.0:
        return None
    generator = np.random.default_rng(0)
    draws = []
    for _ in range(resamples):
        chosen = generator.integers(0, shortest, values.shape[1:])
        draws.append(squares(np.take_along_axis(values, np.broadcast_to(chosen, values.shape), 2)))
    block, label, both, image = 100 * squares(values)
    return {
        "measure": measure, "reading": reading, "block, %": block,
        "label, %": interval_text(estimate(label, 100 * np.transpose(draws)[1]), ".1f"),
        "block and label, %": f"{both:.1f}", "image, %": f"{image:.1f}",
    }  # fmt: skip


def squares(values: np.ndarray) -> np.ndarray:
    """Shares of the sum of squares of values (block, label, image): block, label, both, image."""
    mean, images = values.mean(), values.shape[2]
    cells = values.mean(2)
    blocks, labels = cells.mean(1), cells.mean(0)
    between_blocks = images * values.shape[1] * np.square(blocks - mean).sum()
    between_labels = images * values.shape[0] * np.square(labels - mean).sum()
    both = images * np.square(cells - blocks[:, None] - labels[None] + mean).sum()
    within = np.square(values - cells[:, :, None]).sum()
    parts = np.array([between_blocks, between_labels, both, within])
    return parts / max(parts.sum(), np.finfo(float).tiny)


def label_components(measured: Measured, readings, measures, blocks) -> list[Component]:
    """The share of variance between labels of every measure in every block, whatever the block's own mean; Holm."""

    def each():
        for reading, measure, block in itertools.product(readings, measures, blocks):
            rows = rows_of(measured, block, reading)
            yield component(block, reading, measure, rows[measure], values_of_images(measured, measured.labels, rows))

    return with_holm(each())


def component(block, reading, measure, values, labels) -> Component | None:
    """The analysis of variance over labels; None where a label has fewer than two images, or nothing varies."""
    by_label = [values[labels == label] for label in np.unique(labels)]
    shortest = min(map(len, by_label), default=0)
    table = np.array([some[:shortest] for some in by_label])
    if shortest < 2 or len(table) < 2 or not np.isfinite(table).all() or np.ptp(table) == 0.0:
        return None
    means, (groups, each) = table.mean(1), table.shape
    between = each * np.square(means - means.mean()).sum() / (groups - 1)
    within = np.square(table - means[:, None]).sum() / (groups * (each - 1))
    return Component(block, reading, measure, float(between / max(within, np.finfo(float).tiny)), groups, table.size)


def label_orders(rows: Iterable[dict]) -> list[dict]:
    """Do networks order the labels alike? A row per block and measure, with the networks of one shape as units.

    Friedman's test that the labels do not differ, Holm's correction over the rows, and the mean rank correlation of two
    networks' means by label; only networks of which every label is known.
    """
    table, chances = [], []
    for block, measure in itertools.product(sorted({row["block"] for row in rows}), ENDS):
        column = f"{measure}_by_label"
        values = np.array([row[column] for row in rows if row["block"] == block and column in row])
        if values.ndim != 2 or len(values) < 3:
            continue
        pairs = [stats.spearmanr(one, other).statistic for one, other in itertools.combinations(values, 2)]
        chances.append(float(stats.friedmanchisquare(*values.T).pvalue))
        table.append(
            {"block": block, "measure": measure, "networks": len(values), "p": chances[-1], "p, Holm": 1.0}
            | {"Spearman of two networks, mean": float(np.mean(pairs))}
        )
    return [row | {"p, Holm": p} for row, p in zip(table, holm(chances), strict=True)]


def worlds_of_labels(chance, effect: float, n: int) -> tuple:
    """Two measures of nine blocks over ten labels, which have a twentieth of the variance, or nothing."""
    share = NEGLIGIBLE_SHARE * (1.0 - effect)
    spread = 1.0 + n / 10 * share / (1.0 - share)
    ratios = spread * chance.f(9, n - 10, 18)
    cases = itertools.product((f"stages.2.blocks.{block}" for block in range(9)), CALLED)
    made = [Component(block, "slices", measure, float(f), 10, n)
            for (block, measure), f in zip(cases, ratios, strict=True)]  # fmt: skip
    return tuple(made), ()


@rule(
    "stiffness varies with the block, not with the label",
    "Tables 3, 6, 9",
    fixed="after the data: with 0 of 54 cases certainly below 5 % and 0 that differ from 0 the old rule said that it "
    "is true of some and false of others, and could not say anything else; the two measures of the paper are left of "
    "five",
    negligible=NEGLIGIBLE_SHARE,
    worlds=Worlds(
        worlds_of_labels,
        3400,
        "images",
        "no difference between labels at all (without an effect: labels with 5 % of the variance)",
        100,
    ),
)
def judge_labels(components: Sequence[Component], orders: Sequence[dict]) -> tuple[Verdict, str]:
    """The share of labels in the variance of S and of the percentage over the images of a block, as the analysis of
    variance has it, in every block. Supported where every share is certainly below 5 %, contradicted where every one is
    certainly above; intervals hold together. It is judged in the reading with the most images, slices where readings
    have equally many."""
    reading, cases = of_most_images([case for case in components if case.measure in CALLED])
    if not cases:
        return NOT_RUN, "n = 0: no block has two images of each label; `--preset full` has ten."
    level = corrected(len(cases))
    shares = {(case.block, case.measure): case.share(level) for case in cases}
    verdict = of_cases(of_interval(share.less(NEGLIGIBLE_SHARE), sign=-1) for share in shares.values())
    least, most = min(case.n for case in cases), max(case.n for case in cases)
    images = f"{least} images" if least == most else f"{least} to {most} images"
    (block, measure), largest = max(shares.items(), key=lambda pair: pair[1].value)
    agreeing = [row for row in orders if row["p, Holm"] < CHANCE]
    same = (
        f" With networks as units, labels are ordered alike in {len(agreeing)} of {len(orders)} cases "
        "(Friedman's test, Holm)."
        if orders
        else ""
    )
    agreement = stats.pearsonr(printed.PERCENT_BY_LABEL[18], printed.PERCENT_BY_LABEL[34])
    return verdict, (
        f"{len(cases)} cases ({reading}, {images}). The largest share is {interval_text(largest, '.2f')}, of "
        f"{CALLED[measure]} in {block}.{same} The paper's own label columns of ResNet-18 and ResNet-34 agree with each "
        f"other, r = {agreement.statistic:.2f} (p {chance_text(agreement.pvalue)})."
    )


def judge_tables_3_6_9(evidence: Evidence) -> list[Finding]:
    return [judge_labels(evidence.components, label_orders(evidence.everything.rows))]


def show_labels(page: Page, evidence: Evidence):
    measured, last = evidence.measured, evidence.last
    shares = [
        row
        for reading, measure in itertools.product(SPECTRA, LABELLED)
        if (row := variance_row(measured, reading, measure, last, evidence.resamples))
    ]
    page.table(
        "variance",
        readable(shares),
        "Where the variance is: block, label or image",
        "Shares of the sum of squares over the blocks of the last stage, with intervals over images within labels. "
        "With few images a label, chance alone gives labels a share.",
    )
    page.table(
        "label_components",
        component_rows(evidence.components, evidence.blocks),
        "How much of the variance within a block is between labels",
        "The variance component of labels over its sum with that of images, which chance does not raise; exact 95 % "
        "intervals, and Holm's correction over the rows.",
    )
    page.table(
        "by_label",
        label_rows(measured, "residual", last, evidence.label_names),
        "By label, branches of the last stage",
        "Means over images; accuracy is on more images than the spectra.",
    )
    if shares:
        page.figure(
            draw_label_means(measured, last, evidence.label_names),
            "label_means",
            "Means by label over the images of the label, with 95 % intervals, for the branches of the last stage.",
        )
    orders = label_orders(evidence.everything.rows)
    page.table(
        "label_orders",
        readable(orders, evidence.blocks),
        "Do networks order the labels alike?",
        "Networks are the units here: Friedman's test over their means by label, from the run over all shipped "
        "networks, with Holm's correction, and the mean rank correlation of two networks.",
    )
    if orders:
        page.figure(
            draw_labels_by_network(evidence.everything.rows, evidence.label_names),
            "label_orders",
            "Means by label in every shipped network, less the network's own mean: the last block that keeps its "
            "shape. A line is a network; black is the mean over networks.",
        )


def component_rows(components: Iterable[Component], blocks: Sequence[str]) -> list[dict]:
    rows = (case_row(case, {"label's share": interval_text(case.share(), "+.2f"), "F": case.f}) for case in components)
    return readable(rows, blocks)


def label_rows(measured: Measured, reading: str, blocks, names) -> list[dict]:
    """Tables 3, 6 and 9: means by label over the blocks of the reading, beside the accuracy of the label."""
    tables = [rows_of(measured, block, reading) for block in blocks]
    rows = []
    for label in np.unique(measured.labels):
        chosen = [table[values_of_images(measured, measured.labels, table) == label] for table in tables]
        table = np.concatenate(chosen)
        rows.append({
            "label": names[label], "accuracy, %": 100 * float(measured.accuracy_by_label[label]),
            "S, median": of_known(np.median, table["stiffness_index"]),
            "negative, %": 100 * float(table["negative"].mean()), "max Re": float(table["max_re"].mean()),
            "min Re": float(table["min_re"].mean()),
        })  # fmt: skip
    return rows


def draw_label_means(measured: Measured, blocks: list[str], names, measures=("max_re", "min_re", "negative")):
    """Means by label with 95 % intervals over images, a panel per measure and a line per block of the last stage."""
    labels = np.unique(measured.labels)
    with style.figure(len(measures), 1, height=1.35 * len(measures) + 0.7, sharex=True) as (drawing, axes):
        for axis, measure in zip(axes[:, 0], measures, strict=True):
            for number, (block, mark) in enumerate(zip(blocks, "osD^v", strict=False)):
                rows = rows_of(measured, block, "residual")
                of_rows = values_of_images(measured, measured.labels, rows)
                by_label = {k: rows[measure][of_rows == label] for k, label in enumerate(labels)}
                usable = {k: values for k, values in by_label.items() if len(values) > 1}
                if not usable:
                    continue
                middle = [values.mean() for values in usable.values()]
                half = [
                    stats.t.ppf(0.975, len(v) - 1) * v.std(ddof=1) / np.sqrt(len(v)) for v in usable.values()
                ]  # fmt: skip
                places = np.array(list(usable)) + 0.12 * (number - (len(blocks) - 1) / 2)
                label = f"block {measured.blocks.index(block) + 1}"
                axis.errorbar(places, middle, half, fmt=mark, markersize=4, capsize=2, linewidth=1, label=label)
            axis.set_ylabel(LABELS[measure])
        axes[-1, 0].set_xticks(range(len(labels)), [names[label] for label in labels], rotation=30, ha="right")
        axes[0, 0].legend(ncols=len(blocks), loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
    return drawing


def draw_labels_by_network(rows: list[dict], names, measures=("max_re", "min_re")):
    """Means by label of the last block, less the network's mean; a line is a network, black the mean over networks."""
    last = max(row["block"] for row in rows)
    rows = [row for row in rows if row["block"] == last]
    with style.figure(len(measures), 1, height=1.5 * len(measures) + 0.7, sharex=True) as (drawing, axes):
        for axis, measure in zip(axes[:, 0], measures, strict=True):
            values = np.array([row[f"{measure}_by_label"] for row in rows if f"{measure}_by_label" in row])
            values = values - values.mean(1, keepdims=True)
            axis.plot(values.T, color="#9A9A9A", linewidth=0.6, alpha=0.8)
            axis.plot(values.mean(0), "o-", color="black", markersize=4)
            axis.axhline(0.0, color="black", linewidth=0.5)
            axis.set_ylabel(f"{LABELS[measure]}, less mean")
        axes[-1, 0].set_xticks(range(len(names)), names, rotation=30, ha="right")
    return drawing


# ---- By input: Section 5 ----


def other_inputs(net, data, blocks: Sequence[str], count: int, work: dict) -> dict[str, np.ndarray]:
    """Spectra of these blocks' branches at inputs that are no test images: a table of `nb.block_survey` each.

    Training images, Gaussian noise with the mean and deviation of the data, and test images moved by 8/255 along the
    sign of the loss's gradient (FGSM).
    """
    chosen, trained = (first_images(labels.numpy(), count, len(data.names)) for labels in
                       (data.test_labels, data.train_labels))  # fmt: skip
    images = prepare(net, data, data.test_images[chosen])
    kinds = {
        "test images": images,
        "training images": prepare(net, data, data.train_images[trained]),
        "noise": torch.randn(images.shape, generator=torch.Generator().manual_seed(0)),
        "FGSM, 8/255": move_images(net, images, data.test_labels[chosen], 8 / 255)[0].cpu(),
    }
    values = "extremes" if images.shape[-1] > 16 else "full"  # whichever is the cheaper one
    return {name: nb.block_survey(net, inputs, "residual", blocks, values, **work) for name, inputs in kinds.items()}


def block_means(table) -> dict[str, list[float]]:
    names = list(dict.fromkeys(table["block"]))
    return {measure: [float(table[table["block"] == name][measure].mean()) for name in names] for measure in ENDS}


def input_rows(tables: dict) -> list[dict]:
    """Ends of branches' spectra at inputs of several kinds, and whether the blocks keep their order of test images."""
    means = {name: block_means(table) for name, table in tables.items()}
    return [
        {
            "input": name, "inputs": len(np.unique(table["image"])), "max Re, mean": float(table["max_re"].mean()),
            "min Re, mean": float(table["min_re"].mean()), "min Re, lowest": float(table["min_re"].min()),
        }
        | {
            f"order of {end}": rank_correlation(means[name][end], means["test images"][end], stats.spearmanr)[0]
            for end in ENDS
        }
        for name, table in tables.items()
    ]  # fmt: skip


def correlate_halves(measured: Measured, reading: str, measure: str) -> float:
    """Rank correlation of block means over the first and the second half of the images."""
    columns = [rows_of(measured, block, reading)[measure] for block in measured.blocks]
    halves = [np.split(values, [len(values) // 2]) for values in columns if len(values) > 1]
    means = np.array([[half.mean() for half in pair] for pair in halves]).reshape(-1, 2)
    return rank_correlation(means[:, 0], means[:, 1], stats.spearmanr)[0] if np.isfinite(means).all() else float("nan")


def orders_of(measured: Measured, inputs: dict, blocks: int) -> Iterable[Order]:
    """Between halves of the test images, and between test images and other inputs."""
    for reading, end in itertools.product(SPECTRA, ENDS):
        name = f"halves of the test images, {READING_WORDS[reading]}"
        yield Order(name, end, correlate_halves(measured, reading, end), blocks)
    for row, end in itertools.product(input_rows(inputs)[1:], ENDS):
        yield Order(row["input"], end, row[f"order of {end}"], blocks)


def worlds_of_inputs(chance, effect: float, n: int) -> tuple:
    """Nine orders of the means of blocks that are the same but for a little, or have nothing to do with one another."""
    made = []
    for number in range(9):
        here = chance.standard_normal(n)
        there = effect * here + 0.15 * chance.standard_normal(n) if effect else chance.standard_normal(n)
        r = rank_correlation(here, there, stats.spearmanr)[0]
        made.append(Order(f"input {number // 3}", str(number % 3), r, n))
    return (made,)


@rule(
    "the result generalises to other inputs",
    "Section 5",
    fixed="after the data: with these correlations known, because they had no interval; by the old rule, above 0.9 "
    "everywhere or below 0.5 somewhere, the verdict was that it is true of some and false of others",
    worlds=Worlds(worlds_of_inputs, n=7, units="blocks", effect="orders that correlate by 0.97"),
)
def judge_inputs(orders: Sequence[Order]) -> tuple[Verdict, str]:
    """Rank correlations of the blocks' means at other inputs with those at test images, and between halves of the test
    images. Supported where blocks certainly keep their order, a correlation above 0, in every comparison, contradicted
    where it is certainly reversed in every one; intervals are over blocks and hold together."""
    orders = [order for order in orders if np.isfinite(order.r)]
    if not orders:
        return NOT_RUN, "n = 0: there are no two inputs to compare."
    level = corrected(len(orders))
    every = {f"{order.input}, {order.measure}": correlation_interval(order.r, order.n, level) for order in orders}
    same = {name: e for name, e in every.items() if of_interval(e) == SUPPORTED}
    others = {name: e for name, e in every.items() if name not in same}
    words = f"{len(orders)} rank correlations of block means (n = {orders[0].n}): "
    parts = [listing(others)] if others else []
    if same:
        parts.append(f"{'the other ' if others else ''}{len(same)} at least {min(e.value for e in same.values()):+.2f}")
    return of_each(every), f"{words}{'; '.join(parts)}."


def show_inputs(page: Page, evidence: Evidence):
    page.table(
        "inputs",
        readable(input_rows(evidence.inputs)),
        "Branches at inputs that are no test images",
        "Ends of the spectra over all branches, and Spearman's correlation of the blocks' means with those at test "
        "images: does a block stay where it is among the others?",
    )


# ---- Does a run reproduce the record? ----


def reproduction_rows(measured: Measured, recorded: Iterable[dict]) -> list[dict]:
    """Means over the images of this run beside those of the record: does it reproduce them?

    recorded  rows of `block_rows` in the record

    Intervals are Student's over this run's images and hold together.
    """
    columns = {"negative, %": ("negative", 100.0), "max Re": ("max_re", 1.0), "min Re": ("min_re", 1.0)}
    cases = []
    for row in recorded:
        table = rows_of(measured, measured.blocks[int(row["block"]) - 1], name_reading(row["reading"]))
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
            | {"reproduced": "no" if of_interval(ours.less(row[column])).claims_effect else "yes"}
        )
    return rows


EXHIBITS = (
    Exhibit("By block (Tables 2, 5 and 8)", printed.show_untrained),
    Exhibit("", show_blocks),
    Exhibit("By label (Tables 3, 6 and 9)", show_labels, judge_tables_3_6_9),
    Exhibit("By input (Section 5)", show_inputs, lambda evidence: [judge_inputs(evidence.orders)]),
)
