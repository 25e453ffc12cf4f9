"""The order in which `cifar_tns` tells what it found: every figure and table, with its caption."""

import contextlib
import io

import numpy as np

from odelab.plot import style
from studies.cifar_tns import tables as tables
from studies.cifar_tns.depth_figures import averaged_figure, single_figure
from studies.cifar_tns.relation_figures import cloud_figure, gate_figure, relation_figure
from studies.cifar_tns.stiffness_figures import surface_figure, tns_figure, wording
from studies.lab.measure import KINDS, READINGS

INDEX = {
    "slope": "the branch before its gate and the final ReLU, over the state",
    "increment": "Eq. 4 as printed, the change of the state over the state; undefined where a block changes the shape",
}
COUNTED = "The first block of every stage is drawn hollow and not counted."


class Page:
    """Every figure and table goes to its files and into the report at once."""

    def __init__(self, record, report):
        self.record, self.report = record, report

    def figure(self, drawing, name, caption):
        path = self.record.out / name
        self.record.files += style.save(drawing, path, ("png",))
        drawing.set_layout_engine("none")  # laid out once, not once per format
        self.record.files += style.save(drawing, path, ("svg",))
        self.report.figure(self.record.out / f"{name}.png", caption)

    def table(self, name, rows, title, caption="", printed=True, told=True):
        """Always to files; `printed` on the terminal, `told` in the report, where there is room for the `caption`."""
        with contextlib.nullcontext() if printed else contextlib.redirect_stdout(io.StringIO()):
            self.record.table(name, rows, title)
        if told:
            self.report.table(rows, f"{title}. {caption}")


def tell(page: Page, results, correlations, test_images: int) -> None:
    accuracy(page, results, test_images)
    depth(page, results)
    stiffness(page, results)
    proportion(page, results)
    gates(page, results)
    relation(page, results, correlations, test_images)
    other_readings(page, results)


def accuracy(page, results, test_images):
    page.report.heading("Accuracy (Table 1)")
    page.table(
        "accuracy",
        tables.accuracy_rows(results),
        "Test accuracy",
        f"On all {test_images} test images as the training measured it, on the traced ones where a checkpoint does not "
        "say: mean and standard deviation over networks, and the gain over constant step sizes in points.",
    )


def depth(page, results):
    page.report.heading("Stiffness along depth (Figures 1, 3 and 10)")
    first, second = KINDS
    page.figure(
        single_figure(results, first),
        f"nsi_single_{first}",
        "NSI of single test images along depth. One line per image, the same images in every panel; NSI is "
        f"{INDEX[first]}. The paper's Figures 1 and 3 show such lines. {COUNTED}",
    )
    page.figure(
        averaged_figure(results, first),
        f"nsi_depth_{first}",
        "NSI along depth, averaged over the images. One line per seed (Figure 10); the band holds nine images of ten "
        f"for the first of them. {COUNTED}",
    )
    page.figure(
        single_figure(results, second),
        f"nsi_single_{second}",
        f"The same images by the other index. NSI is now {INDEX[second]}.",
    )
    page.figure(
        averaged_figure(results, second),
        f"nsi_depth_{second}",
        "The average by the other index. Increments, as printed in Eq. 4, after the final ReLU.",
    )


def stiffness(page, results):
    reading = READINGS[0]
    page.report.heading("Total neural stiffness (Figure 2)")
    page.figure(
        surface_figure(results, *reading, "delta"),
        f"tns_surface_{'_'.join(reading)}",
        f"The share of images that are stiff to the degree (M1, M2), with {wording(*reading)}. TNS is the volume below "
        "the surface, and is computed exactly, without this grid. Means over the seeds.",
    )
    page.figure(
        tns_figure(results),
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
    beyond = tables.excess_rows(results)
    if beyond:
        page.table(
            "tns_over_constant",
            beyond,
            "TNS beyond that of constant step sizes, with 95 % intervals over images",
            "The intervals are paired: both networks see the same images.",
        )


def proportion(page, results):
    reading = READINGS[0]
    page.report.heading("Stiffness proportion (Figure 6)")
    page.figure(
        surface_figure(results, *reading, "proportion"),
        f"proportion_{'_'.join(reading)}",
        f"The expected share of counted blocks that are stiff to the degree (M1, M2), with {wording(*reading)}. The "
        "paper finds at most 10 % for most degrees.",
    )
    page.table(
        "degrees",
        tables.degree_rows(results),
        "Shares of images and of counted blocks that are stiff to three degrees (M1, M2), in per cent",
        printed=False,
    )


def gates(page, results):
    page.report.heading("Step size and stiffness (Figure 9)")
    drawn = False
    for of in KINDS:
        kept, table, _ = tables.gate_table(results, of)
        if not len(table):
            continue
        drawn = True
        example = next((i for i, found in enumerate(kept) if found.subject.controller == "SE"), 0)
        blocks = clearest(table[example])
        page.figure(
            cloud_figure(kept[example], of, blocks, table[example]),
            f"gate_cloud_{of}",
            f"Mean step size of an image against its NSI ({of}) at {len(blocks)} blocks. In the title Spearman's "
            "correlation; the paper shows three blocks of the first stage of SENet-164.",
        )
        rows = [row_name(found) for found in kept]
        page.figure(
            gate_figure(rows, table, of),
            f"gate_{of}",
            f"Spearman's correlation of step size and NSI ({of}) over images, for every network and block. A dot "
            "stands where the step size is the same for all images, or the index is undefined.",
        )
        page.table(
            f"gate_{of}",
            [
                {"network": name, **{f"block {k + 1}": tables.signed(value) for k, value in enumerate(line)}}
                for name, line in zip(rows, table, strict=True)
            ],
            f"Spearman's correlation of step size and NSI ({of})",
            printed=of == KINDS[0],
            told=False,  # the figure has the same numbers
        )
    if not drawn:
        page.report.words("No network here has a step size that changes from image to image: nothing to correlate.")


def clearest(line) -> list[int]:
    """The first three blocks with a correlation: those of the first stage, as far as it has them."""
    return [int(k) for k in np.flatnonzero(np.isfinite(line))[:3]]


def row_name(found) -> str:
    return found.name if found.subject.seed is None else f"{found.name}, seed {found.subject.seed}"


def relation(page, results, correlations, test_images):
    found, rows = correlations
    page.report.heading("Accuracy and TNS (Figure 7)")
    page.figure(
        relation_figure(results, found, tables.accuracy_errors(results, test_images)),
        "accuracy_tns",
        "Accuracy against TNS, one mark per network, under all four readings. Bars: 95 % intervals over images. In the "
        "titles Kendall's tau and Spearman's rho with 95 % bootstrap intervals over networks.",
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
    page.report.heading("Figures 2 and 6 under the other readings")
    page.report.words(
        "The paper leaves open whether NSI is of the branch or of the change of the state after its ReLU, and whether "
        "mu is the mean over a stage of one image or of all images."
    )
    for of, mu in READINGS[1:]:
        for which, name, what in (
            ("delta", "tns_surface", "images (Figure 2)"),
            ("proportion", "proportion", "blocks (Figure 6)"),
        ):
            page.figure(
                surface_figure(results, of, mu, which),
                f"{name}_{of}_{mu}",
                f"The share of stiff {what}, with {wording(of, mu)}.",
            )
