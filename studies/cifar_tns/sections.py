"""The sections of the report of `cifar_tns`, in the order of the paper: tables and figures with their captions."""

import numpy as np

from studies.cifar_tns import figures, tables
from studies.lab.comparisons import signed_cell
from studies.lab.stiffness import KINDS, READINGS, wording
from studies.population import design
from studies.population.citation import REMEDY, shipped_findings, shipped_sources

INDEX = {
    "slope": "the branch before its gate and the final ReLU, over the state",
    "increment": "Eq. 4 as printed, the change of the state over the state; undefined where a block changes the shape",
}
COUNTED = "The first block of every stage is drawn hollow and not counted."


def population(page, said, networks):
    """The verdicts of the study of that name, where its measurements are shipped."""
    count, cited = shipped_findings()
    if count:
        page.table(
            "population",
            tables.beside_rows(said, cited, networks, count),
            "The same claims beside a population of small networks",
            f"{count} of {len(design.queue())} networks of 14 to 32 layers, trained for 3 or 6 epochs at "
            f"{design.PIXELS} pixels and judged by rules that were fixed before. They leave every claim undecided "
            f"with fewer than {design.FEWEST_NETWORKS} networks. `python -m studies.population` shows numbers and "
            "intervals, and with `--train` trains the rest.",
        )
        page.words(page.name_older(shipped_sources(), REMEDY))


def accuracy(page, results, test_images):
    page.heading("Accuracy (Table 1)")
    page.table(
        "accuracy",
        tables.accuracy_rows(results),
        "Test accuracy",
        f"On all {test_images} test images as the training measured it, on the traced ones where a checkpoint does not "
        "say: mean and standard deviation over networks, and the gain over constant step sizes in points.",
    )


def depth(page, results):
    page.heading("Stiffness along depth (Figures 1, 3 and 10)")
    first, second = KINDS
    page.figure(
        figures.single_figure(results, first),
        f"nsi_single_{first}",
        "NSI of single test images along depth. One line per image, the same images in every panel; NSI is "
        f"{INDEX[first]}. The paper's Figures 1 and 3 show such lines. {COUNTED}",
    )
    page.figure(
        figures.averaged_figure(results, first),
        f"nsi_depth_{first}",
        "NSI along depth, averaged over the images. One line per seed (Figure 10); the band holds nine images of ten "
        f"for the first of them. {COUNTED}",
    )
    page.figure(
        figures.single_figure(results, second),
        f"nsi_single_{second}",
        f"The same images by the other index. NSI is now {INDEX[second]}.",
    )
    page.figure(
        figures.averaged_figure(results, second),
        f"nsi_depth_{second}",
        "The average by the other index. Increments, as printed in Eq. 4, after the final ReLU.",
    )


def stiffness(page, results):
    reading = READINGS[0]
    page.heading("Total neural stiffness (Figure 2)")
    page.figure(
        figures.surface_figure(results, *reading, "delta"),
        f"tns_surface_{'_'.join(reading)}",
        f"The share of images that are stiff to the degree (M1, M2), with {wording(*reading)}. TNS is the "
        "volume below the surface, and is computed exactly, without this grid. Means over the seeds.",
    )
    page.figure(
        figures.tns_figure(results),
        "tns",
        "Exact TNS of every network with its 95 % bootstrap interval over images, under all four readings. Dashed: the "
        "mean of the networks with constant step sizes.",
    )
    page.table(
        "tns",
        tables.tns_rows(results),
        "TNS per controller, with 95 % intervals over images",
        "Means over the networks of a controller; how much another seed would change them is not in the intervals.",
    )
    page.table(
        "tns_over_constant",
        tables.excess_rows(results),
        "TNS beyond that of constant step sizes, with 95 % intervals over images",
        "The intervals are paired: both networks see the same images.",
    )


def proportion(page, results):
    reading = READINGS[0]
    page.heading("Stiffness proportion (Figure 6)")
    page.figure(
        figures.surface_figure(results, *reading, "proportion"),
        f"proportion_{'_'.join(reading)}",
        f"The expected share of counted blocks that are stiff to the degree (M1, M2), with {wording(*reading)}."
        " The paper finds at most 10 % for most degrees.",
    )
    page.table(
        "degrees",
        tables.degree_rows(results),
        "Shares of images and of counted blocks that are stiff to three degrees (M1, M2), in per cent",
        printed=False,
    )


def gates(page, results):
    page.heading("Step size and stiffness (Figure 9)")
    drawn = False
    for of in KINDS:
        kept, table, _ = tables.gate_table(results, of)
        if not len(table):
            continue
        drawn = True
        example = next((i for i, found in enumerate(kept) if found.subject.controller == "SE"), 0)
        blocks = clearest(table[example])
        page.figure(
            figures.cloud_figure(kept[example], of, blocks, table[example]),
            f"gate_cloud_{of}",
            f"Mean step size of an image against its NSI ({of}) at {len(blocks)} blocks. In the title Spearman's "
            "correlation; the paper shows three blocks of the first stage of SENet-164.",
        )
        rows = [figures.row_name(found) for found in kept]
        page.figure(
            figures.gate_figure(rows, table, of),
            f"gate_{of}",
            f"Spearman's correlation of step size and NSI ({of}) over images, for every network and block. A dot "
            "stands where the step size is the same for all images, or the index is undefined.",
        )
        page.table(
            f"gate_{of}",
            [
                {"network": name, **{f"block {k + 1}": signed_cell(value) for k, value in enumerate(line)}}
                for name, line in zip(rows, table, strict=True)
            ],
            f"Spearman's correlation of step size and NSI ({of})",
            printed=of == KINDS[0],
            told=False,  # the report shows the figure instead, which has the same numbers
        )
    if not drawn:
        page.words("No network here has a step size that changes from image to image: nothing to correlate.")


def nine_blocks(page, deep, deeper):
    """Figures 3, 6 and 9 on networks whose stages have enough blocks for them."""
    page.heading("Nine blocks a stage (Figures 3, 6 and 9)")
    page.words(
        f"{deep}, on {len(deeper[0].correct)} of its test images. A stage counts eight blocks; the figures above "
        "show networks that count two, of which one is never below their mean."
    )
    of, mu = READINGS[0]
    page.figure(
        figures.averaged_figure(deeper, of),
        "deep_nsi_depth",
        f"NSI along depth, averaged over the images. A line per seed; the band holds nine images of ten for the first "
        f"of them. {COUNTED}",
    )
    page.figure(
        figures.surface_figure(deeper, of, mu, "proportion"),
        "deep_proportion",
        f"The expected share of counted blocks that are stiff to the degree (M1, M2), with {wording(of, mu)}.",
    )
    kept, table, _ = tables.gate_table(deeper, of)
    if len(table):
        page.figure(
            figures.gate_figure([figures.row_name(found) for found in kept], table, of),
            "deep_gate",
            f"Spearman's correlation of step size and NSI ({of}) over images, for every network and block. White: the "
            "step size is the same for all images.",
        )
    page.table(
        "deep_networks",
        [
            {key: row[key] for key in ("controller", "seed", "accuracy (%)", "file")}
            for row in tables.network_rows(deeper)
        ],
        "The deep networks",
        printed=False,
    )


def clearest(line) -> list[int]:
    """The first three blocks with a correlation: those of the first stage, as far as it has them."""
    return [int(k) for k in np.flatnonzero(np.isfinite(line))[:3]]


def relation(page, results, found, rows, test_images):
    page.heading("Accuracy and TNS (Figure 7)")
    page.figure(
        figures.relation_figure(results, found, tables.accuracy_errors(results, test_images)),
        "accuracy_tns",
        "Accuracy against TNS, one mark per network, under all four readings. Bars: 95 % intervals over images. In the "
        "titles Kendall's tau and Spearman's rho with 95 % bootstrap (BCa) intervals over networks.",
    )
    page.table(
        "correlations",
        rows,
        "Rank correlation of TNS and accuracy, with 95 % bootstrap intervals",
        "A positive correlation is called supported or contradicted only where both coefficients, their intervals and "
        "their p-values agree.",
    )
    page.table("networks", tables.network_rows(results), "Every network", printed=False)


def other_readings(page, results):
    page.heading("Figures 2 and 6 under the other readings")
    page.words(
        "The paper leaves open whether NSI is of the branch or of the change of the state after its ReLU, and whether "
        "mu is the mean over a stage of one image or of all images."
    )
    for of, mu in READINGS[1:]:
        for which, name, what in (
            ("delta", "tns_surface", "images (Figure 2)"),
            ("proportion", "proportion", "blocks (Figure 6)"),
        ):
            page.figure(
                figures.surface_figure(results, of, mu, which),
                f"{name}_{of}_{mu}",
                f"The share of stiff {what}, with {wording(of, mu)}.",
            )
