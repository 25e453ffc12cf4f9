"""The sections of the report of `cifar_tns`, in the order of the paper: tables and figures with their captions."""

import numpy as np

from studies.cifar_tns import charts, figures, tables
from studies.lab.comparisons import signed_cell
from studies.lab.stiffness import KINDS, READINGS, SWITCH, wording
from studies.population import design
from studies.population.citation import REMEDY, shipped_findings, shipped_sources

INDEX = {
    "slope": "the branch before its gate and the final ReLU, over the state",
    "increment": "Eq. 4 as printed, the change of the state over the state; undefined where a block changes the shape",
}
COUNTED = "The first block of every stage is drawn hollow and not counted."


TWO_BLOCKS = (
    " A stage counts two blocks here, so that its TNS is the difference of two numbers times the larger one over their "
    "mean, and one of the two is never below it."
)


def warn_of_two(results) -> str:
    """What a caption says of networks whose stages have few counted blocks; "" for others."""
    record = results[0].records["slope"].counted()
    return TWO_BLOCKS if max(np.bincount(record.stage.astype(int))) <= 2 else ""


def population(page, said, which):
    """The verdicts of the study of that name, where its measurements are shipped."""
    count, cited = shipped_findings()
    if count:
        page.table(
            "population",
            tables.beside_rows(said, cited, which, f"{count} small networks"),
            "The same claims beside a population of small networks",
            f"{count} of {len(design.queue())} networks of 14 to 32 layers, trained for 3 or 6 epochs at "
            f"{design.PIXELS} pixels. `python -m studies.population` shows numbers, rules and intervals, and with "
            "`--train` trains the rest.",
            printed=False,
        )
        page.words(page.name_older(shipped_sources(), REMEDY))


def accuracy(page, results, test_images):
    page.heading("Accuracy (Table 1)")
    page.table(
        "accuracy",
        tables.accuracy_rows(results),
        "Test accuracy",
        f"On all {test_images} test images as the training measured it, on the traced ones where a checkpoint does not "
        "say: mean and standard deviation over networks, and the gain over constant step sizes in points, with 95 % "
        "intervals of Dunnett over seeds.",
    )


def depth(page, results):
    page.heading("Stiffness along depth (Figures 1, 3 and 10)")
    page.chart(
        charts.depth_chart(results),
        "nsi_depth",
        f"NSI of every network at every block: its mean over the images, or of one of the first {charts.IMAGES} test "
        f"images. {COUNTED}",
    )
    for of in KINDS:
        page.figure(
            figures.single_figure(results, of),
            f"nsi_single_{of}",
            "NSI of single test images along depth. One line per image, the same images in every panel; NSI is "
            f"{INDEX[of]}. The paper's Figures 1 and 3 show such lines. {COUNTED}",
            reading=(of,),
        )
        page.figure(
            figures.averaged_figure(results, of),
            f"nsi_depth_{of}",
            "NSI along depth, averaged over the images. One line per seed (Figure 10); the band holds nine images of "
            f"ten for the first of them. {COUNTED}",
            reading=(of,),
        )


def first_figures(page, results, relations, test_images, surfaces):
    """What stands below the strip: every network as a point, and the surfaces with a slider for each degree."""
    page.switch(SWITCH)
    page.chart(
        charts.networks_chart(results, relations, tables.accuracy_errors(results, test_images)),
        "networks",
        "A point is a network, with 95 % intervals over test images. Point at it, or go with Tab and the arrow keys.",
        hero=True,
    )
    page.chart(
        charts.surface_chart(results, surfaces),
        "surface",
        "TNS is the volume below the share of images that are stiff to the degree (M1, M2), Figure 2. Move the degree; "
        "the share of blocks is Figure 6.",
        hero=True,
    )


def surfaces_of(results) -> dict[tuple, tuple]:
    """The shares of stiff images and blocks over both degrees, by share and reading."""
    return {
        (which, reading): figures.surfaces(results, *reading, which)
        for which in ("delta", "proportion")
        for reading in READINGS
    }


def stiffness(page, results, compared, surfaces):
    page.heading("Total neural stiffness, its scale and its shape (Figure 2)")
    page.words(
        "TNS grows in proportion to NSI: a network whose branches are three times larger, because a gate of 0.3 "
        "follows them, has three times the TNS. The scale is the mean NSI of the counted blocks; the shape is TNS "
        "divided by it, and says how far the stiffest blocks lie above the mean of their stage."
    )
    for reading in READINGS:
        page.figure(
            figures.surface_figure(results, *reading, "delta", surfaces["delta", reading]),
            f"tns_surface_{'_'.join(reading)}",
            f"The share of images that are stiff to the degree (M1, M2), with {wording(*reading)}. TNS is the "
            f"volume below the surface, and is computed exactly, without this grid. Means over the seeds."
            f"{warn_of_two(results)}",
            reading=reading,
        )
    page.figure(
        figures.parts_figure(results),
        "tns",
        "Exact TNS, its scale and its shape, of every network with 95 % bootstrap intervals over images. Dashed: the "
        f"mean of the networks with constant step sizes.{warn_of_two(results)}",
    )
    page.table(
        "tns",
        tables.stiffness_rows(results),
        "TNS, scale and shape per controller: mean and standard deviation over seeds",
        printed=False,
    )
    page.table(
        "tns_over_constant",
        tables.excess_rows(results, compared),
        "TNS, scale and shape beyond those of constant step sizes",
        "Intervals of Dunnett over seeds; all of one quantity, over its readings, hold together with 95 %.",
    )


def proportion(page, results, surfaces):
    page.heading("Stiffness proportion (Figure 6)")
    for reading in READINGS:
        page.figure(
            figures.surface_figure(results, *reading, "proportion", surfaces["proportion", reading]),
            f"proportion_{'_'.join(reading)}",
            f"The expected share of counted blocks that are stiff to the degree (M1, M2), with {wording(*reading)}."
            f" The paper finds at most 10 % for most degrees.{warn_of_two(results)}",
            reading=reading,
        )
    page.table(
        "degrees",
        tables.degree_rows(results),
        "Shares of images and of counted blocks that are stiff to three degrees M1, in per cent",
        "M2 is M1 times the mean NSI of the network's counted blocks.",
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
        example = next((i for i, found in enumerate(kept) if found.subject.controller.split("(")[0] == "SE"), 0)
        blocks = clearest(table[example])
        page.figure(
            figures.cloud_figure(kept[example], of, blocks, table[example]),
            f"gate_cloud_{of}",
            f"Mean step size of an image against its NSI ({of}) at {len(blocks)} blocks. In the title Spearman's "
            "correlation; the paper shows three blocks of the first stage of SENet-164.",
            reading=(of,),
        )
        rows = [figures.row_name(found) for found in kept]
        page.figure(
            figures.gate_figure(rows, table, of),
            f"gate_{of}",
            f"Spearman's correlation of step size and NSI ({of}) over images, for every network and block. A dot "
            "stands where the step size moves by less than 0.01 (standard deviation over the images), or the index is "
            "undefined.",
            reading=(of,),
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


def appendix(page, which, results, said, here, there):
    """Other networks by the same rules: their verdicts, and what these rest on."""
    page.heading(f"Appendix: {which}")
    page.words(f"The same rules on {which}.{warn_of_two(results)}")
    page.table(
        "appendix_claims",
        tables.beside_rows(said, there, "the networks above", "these"),
        "The same claims, judged on these networks",
        printed=False,
    )
    page.table("appendix_accuracy", tables.accuracy_rows(results), "Their test accuracy", printed=False)
    page.figure(
        figures.averaged_figure(results, KINDS[0]),
        "appendix_nsi_depth",
        f"NSI along depth, averaged over the images, a line per seed. {COUNTED}",
    )
    page.figure(
        figures.parts_figure(results),
        "appendix_tns",
        f"Exact TNS, its scale and its shape, with 95 % bootstrap intervals over images.{warn_of_two(results)}",
    )
    page.figure(
        figures.relation_figure(results, here.relations, tables.accuracy_errors(results, 10_000)),
        "appendix_accuracy_tns",
        "Accuracy against TNS and its shape, one mark per network; in the titles Kendall's tau over controllers."
        f"{warn_of_two(results)}",
    )
    page.table(
        "appendix_correlations", tables.correlation_rows(here.relations), "Their rank correlations", printed=False
    )
    page.table("appendix_networks", tables.network_rows(results), "These networks", printed=False, told=False)


def clearest(line) -> list[int]:
    """The first three blocks with a correlation: those of the first stage, as far as it has them."""
    return [int(k) for k in np.flatnonzero(np.isfinite(line))[:3]]


def relation(page, results, relations, test_images):
    page.heading("Accuracy and TNS (Figure 7)")
    page.figure(
        figures.relation_figure(results, relations, tables.accuracy_errors(results, test_images)),
        "accuracy_tns",
        "Accuracy against TNS and against its shape, one mark per network, under all four readings. Bars: 95 % "
        "intervals over images. In the titles Kendall's tau over kinds of networks, each with the mean of its seeds."
        f"{warn_of_two(results)}",
    )
    page.table(
        "correlations",
        tables.correlation_rows(relations),
        "Rank correlation of the accuracy with TNS, scale and shape, over kinds of networks",
        "Intervals of Fieller, Hartley and Pearson; those of one quantity hold together over its readings.",
        printed=False,
    )
    page.table("networks", tables.network_rows(results), "Every network", printed=False)
