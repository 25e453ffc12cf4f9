"""The sections of the report of the block study, in the order of the page: tables and figures with their captions."""

import numpy as np
import torch

import netbridge as nb
from studies.block_stiffness import across_networks, measures, trainings
from studies.block_stiffness.report import figures, figures_of_networks, tables
from studies.lab.stiffness import prepare

REMEDY = "`python -m studies.block_stiffness --preset full --ship` measures them again."
CLOUDS = 8192  # units of a block up to which all eigenvalues are found for the figure


def write_sections(page, net, data, found, told, inner, clouds, looks: int):
    """All sections about one network and about all shipped ones.

    found    the spectra of the network
    told     what `gathering` and the trainings have computed, by its names
    inner    the blocks that keep the shape
    clouds   the parts of which all eigenvalues are drawn
    looks    images of each look through a training
    """
    counts(page)
    by_block(page, net, found, told["untrained"], data, clouds)
    activity(page, found, told["activity"])
    precision(page, told["precision"])
    by_label(page, found, inner, data, told)
    by_input(page, told["inputs"])
    answers_and_errors(page, found, told, inner)
    by_flow(page, found, told["accuracies"])
    adversarial(page, found, told, inner)
    all_networks(page, told["everything"])
    of_controllers(page, told)
    by_epoch(page, told["trained"], looks)
    of_the_geometry(page, told["geometry"])
    of_depths(page, told)
    equivalence(page, told)


def counts(page):
    """The printed numbers: what they are, and how many images they allow."""
    page.heading("What the printed numbers are (Tables 10 and 11)")
    page.table(
        "counts",
        tables.count_rows(),
        "Elements and eigenvalues of Jacobians",
        'The column "eigenvalues" of the paper is the elements divided by the height of the input in every row: the '
        "eigenvalues of the H x W slices of the Jacobian before it is flattened. A block that halves the map has a "
        "Jacobian that is not square, and no eigenvalues.",
        printed=False,
    )
    page.table(
        "sample_sizes",
        tables.sample_size_rows(),
        "How many images the printed correlations allow",
        "Each correlation and p-value, printed to two decimals, bounds the number of images; these numbers "
        "agree with all pairs of a printed table.",
        printed=False,
    )


def by_block(page, net, found, untrained, data, parts):
    page.heading("By block (Tables 2, 5 and 8)")
    page.table(
        "untrained",
        tables.untrained_rows(untrained),
        "Untrained networks in three readings beside Tables 2 and 5",
        "The paper's geometry, a quarter as wide: a 3x3 stem, a max-pool, widths 16 to 128; random weights of three "
        "seeds, one test image, output units of slices sampled. Blocks that open a stage have slices alone.",
    )
    page.figure(
        figures.percentages(untrained),
        "percentages",
        "The printed percentages jump with the size of the input map. A slice has at most as many eigenvalues that "
        "are not zero as its rows and columns share inside the window of two convolutions; half of them are of "
        "either sign, and dead outputs have none. Grey: the two other readings. Hollow: blocks that change the shape.",
    )
    page.table(
        "by_block",
        tables.readable(tables.block_rows(found, net), found.blocks),
        "Every block in three readings",
        "S is undefined where the smallest real part is zero. Stiff modes decay and grow under a step of size 1. Where "
        "the ends of a spectrum alone are known there are no shares by sign, and stiff modes are those found.",
    )
    page.table(
        "readings",
        tables.readable(tables.reading_rows(found), found.blocks),
        "What each reading gives",
        "The paper does not say which matrix its numbers belong to. The sign and the size of S depend on the reading, "
        "and in some readings S is not defined.",
    )
    page.figure(
        figures.along_depth(found),
        "along_depth",
        "Index, share of negative real parts and smallest real part along depth, in three readings. Points are medians "
        "over images, bars hold nine of ten. The dotted line is Euler's limit on the real axis.",
    )
    for part, name, words in (
        ("residual", "clouds", "branch at the first test image. Grey: the disc |1 + z| < 1 in which a step of size 1"),
        ("block", "clouds_block", "whole block at the first test image. Grey: the disc |z| < 1 in which the block"),
    ):
        spectra = clouds_of(net, data, found, part) if part in parts else {}
        if spectra:
            end = "damps a mode" if part == "residual" else "damps a change of its input; its dead outputs are zeros"
            page.figure(figures.clouds(spectra, part), name, f"Eigenvalues of the {words} {end}.")


def clouds_of(net, data, found, part):
    """All eigenvalues of this part at the first test image, for blocks of which that is cheap."""
    states = nb.block_states(net, prepare(net, data, data.test_images[:1]))
    result = {}
    for number, block in enumerate(found.blocks, 1):
        if len(measures.rows_of(found, block, part)) and states[block].numel() <= CLOUDS:
            spectrum = nb.block_spectrum(
                net.get_submodule(block), states[block], part, "full", dtype=torch.float32, conditions=False
            )
            result[f"block {number}"] = spectrum.values
    return result


def activity(page, found, related):
    page.table(
        "activity",
        tables.readable(tables.relation_rows(related), found.blocks),
        "The share of negative real parts against the share of live outputs, image by image within each block",
        "A dead output is a row of zeros in the Jacobian and in its slices. Spearman's correlation with its 95 % "
        "interval; Holm's correction over the rows.",
        printed=False,
    )


def precision(page, rows):
    page.table(
        "precision",
        rows,
        "How far single precision and ends alone can be trusted, at the first test image",
        "Branches: all eigenvalues in double precision, what single precision changes, and by how much the ends from "
        "products with vectors miss those of all eigenvalues, relative to the spectral radius.",
        printed=False,
    )


def by_label(page, found, inner, data, told):
    page.heading("By label (Tables 3, 6 and 9)")
    page.table(
        "variance",
        tables.readable(tables.share_rows(told["shares"]), found.blocks),
        "Where the variance is: block, label or image",
        "Shares of the sum of squares over the blocks of the last stage, with intervals over images within labels. "
        "With few images a label, chance alone gives labels a share.",
    )
    page.table(
        "label_components",
        tables.readable(tables.component_rows(told["components"]), found.blocks),
        "How much of the variance within a block is between labels",
        "The variance component of labels over its sum with that of images, which chance does not raise; exact 95 % "
        "intervals, and Holm's correction over the rows.",
        printed=False,
    )
    last = [block for block in inner if block.split(".blocks")[0] == inner[-1].split(".blocks")[0]]
    page.table(
        "by_label",
        tables.label_rows(found, "residual", last, data.names),
        "By label, branches of the last stage",
        "Means over images; accuracy is on more images than the spectra.",
        printed=False,
    )
    if told["shares"]:
        page.figure(
            figures.label_means(found, last, data.names),
            "label_means",
            "Means by label over the images of the label, with 95 % intervals, for the branches of the last stage.",
        )
    page.table(
        "label_orders",
        tables.readable(told["label_orders"], found.blocks),
        "Do networks order the labels alike?",
        "Networks are the units here: Friedman's test over their means by label, from the run over all shipped "
        "networks, with Holm's correction, and the mean rank correlation of two networks.",
        printed=False,
    )
    everything = told["everything"]
    if told["label_orders"]:
        page.figure(
            figures_of_networks.labels_by_network(everything.rows, data.names),
            "label_orders",
            "Means by label in every shipped network, less the network's own mean: the last block that keeps its "
            "shape. A line is a network; black is the mean over networks.",
        )


def by_input(page, inputs):
    page.heading("By input (Section 5)")
    page.table(
        "inputs",
        tables.readable(tables.input_rows(inputs), []),
        "Branches at inputs that are no test images",
        "Ends of the spectra over all branches, and Spearman's correlation of the blocks' means with those at test "
        "images: does a block stay where it is among the others?",
    )


def answers_and_errors(page, found, told, inner):
    page.heading("Accuracy, loss and the error of the step (Tables 1, 4 and 7)")
    if not told["related"] or not told["errors"]:
        page.words("There are too few images for correlations within blocks.")
        return
    page.table(
        "correlations",
        tables.readable(tables.relation_rows(told["related"]), found.blocks),
        "Measures against accuracy and loss, image by image within each block",
        "Spearman's correlation with its 95 % interval. Holm's correction is over the rows of one question.",
        printed=False,
    )
    page.table(
        "correlations_held",
        tables.readable(tables.relation_rows(told["held"]), found.blocks),
        "The same within labels, and beside activity and NSI",
        "Correlations of ranks minus the mean rank of the label, and minus a linear fit to the ranks of the "
        "share of live outputs and of NSI.",
        printed=False,
    )
    page.table(
        "predictors",
        tables.readable(tables.relation_rows(told["errors"]), found.blocks),
        "Measures of the branch against Euler's error, image by image within each block",
        "The error is the distance of the block's one step from the exact flow of its branch over the same time, "
        "relative to the step.",
        printed=False,
    )
    panels = {"accuracy": "right answer", "loss": "loss", "step_error": "Euler's error", "nsi": "NSI"}
    page.figure(
        figures.correlation_map(told["mapped"], found, inner, panels),
        "correlations",
        "Rank correlations of measures of the branch, image by image within each block. Framed: p < 0.05 after Holm's "
        "correction over all cells of a panel (the first two together). Grey: nothing to correlate, such as shares by "
        "sign where the ends of a spectrum alone are known.",
    )
    page.figure(
        figures.error_against(found, inner),
        "errors",
        "Euler's error of a block against measures of its branch. A point is an image, a colour a block.",
    )


def by_flow(page, found, accuracies):
    page.heading("How wrong a step is, and what that costs")
    page.table(
        "flows",
        tables.flow_rows(found, accuracies),
        f"One block at a time replaced by its exact flow; the network as it is: {100 * accuracies['']:.1f} %",
        "The flow of u' = f(u) over the time 1 by Runge-Kutta steps. The network was trained with Euler's steps, so a "
        "loss of accuracy is no sign of stiffness; it shows, as accuracy, how far the step is from the flow.",
    )


def adversarial(page, found, told, inner):
    related = [*told["turned"], *told["turned_norms"]]
    if not related:
        return
    page.heading("Adversarial examples (Section 1)")
    page.table(
        "adversarial",
        tables.readable(tables.relation_rows(related), found.blocks),
        "Measures of the branch against flipped answers, margins and the growth of a perturbation",
        "FGSM at 1/255 and 2/255; growth of the step of 1/255 from the state before the first block to that after the "
        "last one; minus the distance of the two largest logits. Log norm and largest singular value belong to the "
        "whole Jacobian of the branch. Holm's correction is over the measures of the paper and over the norms.",
        printed=False,
    )
    panels = {"flips at 1/255": "flips, 1/255", "flips at 2/255": "flips, 2/255", "small margin": "small margin"}
    page.figure(
        figures.correlation_map(related, found, inner, panels | {"growth": "growth"}, ("residual", "norms")),
        "adversarial",
        "Rank correlations with what an attacker gains, image by image within each block. Framed: p < 0.05 after "
        "Holm's correction. Grey: nothing to correlate.",
    )


def all_networks(page, everything):
    if everything is None or not everything.rows:
        return
    about, rows = everything
    page.heading("Every shipped network")
    page.words(
        f"From a run of {about['date']} (commit {about['commit']}) over {about['images']} test images of "
        f"{about['dataset']} a network, fewer where a table says so. Gates are held: eigenvalues are those of h f'.",
        page.name_older([about], REMEDY),
    )
    page.figure(
        figures_of_networks.most_negative(rows),
        "most_negative",
        "The most negative real part of h lambda at any image. A mode below the dotted line decays and grows under "
        "Euler's step of size 1; grey lines are networks with learnt step sizes.",
    )
    page.table(
        "every_network",
        across_networks.network_rows(rows),
        "Where the networks are stiffest, and where their steps have the largest error",
        printed=False,
    )
    page.table(
        "controllers",
        across_networks.controller_rows(rows),
        "Step-size controllers",
        "The difference of live and held is what the derivative of the step size adds to the ends of the spectrum.",
        printed=False,
    )
    page.table(
        "predictors_of_all",
        tables.readable(across_networks.predictors(rows), []),
        "Which measure of a block tells Euler's error, over all networks",
        "Spearman's correlation over the blocks of a network, its mean over networks with a 95 % interval; and the "
        "variance of log(error) that a line through log|measure| explains in networks left out of the fit.",
    )
    page.figure(
        figures_of_networks.error_of_every_block(rows),
        "errors_of_all",
        "Euler's error against measures of the step, medians over images. A point is a block of one network.",
    )


def of_controllers(page, told):
    page.table(
        "swapped",
        told.get("swapped", []),
        "Learnt step sizes, and constants in their place",
        "Medians over the blocks of networks of seed 0: ends of the spectrum of h f' over h times those of f', h the "
        "gate's mean; with the gate as it is, and with the constant h in a network that has its own states under it.",
        printed=False,
    )


def by_epoch(page, rows, images):
    if not rows:
        return
    page.heading("Through training")
    page.figure(
        figures_of_networks.through_training(rows),
        "through_training",
        f"A ResNet-{trainings.DEPTH} on the digits, one seed, from its first weights on: ends of each branch's "
        f"spectrum and Euler's error, means over {images} images.",
    )
    page.table("through_training", rows, "The same in numbers", printed=False)


def of_the_geometry(page, rows):
    if not rows:
        return
    last = max(row["epoch"] for row in rows)
    page.table(
        "geometry",
        tables.geometry_rows([row for row in rows if row["epoch"] in (0, last)]),
        "Slices of a ResNet-18 of the paper's geometry, a quarter as wide, before and after training, beside Table 2",
    )
    page.figure(
        figures_of_networks.through_training([row for row in rows if np.isfinite(row["max_re"])]),
        "geometry_through_training",
        "The same network through training: ends of each branch's spectrum and Euler's error, means over images.",
    )
    page.table("geometry_through_training", rows, "The same in numbers", printed=False)


def of_depths(page, told):
    if not told.get("depths"):
        return
    page.heading("Deeper networks")
    powers = [trainings.exponent(told["depths"], measure) for measure in ("sigma, median", "rho, median")]
    page.words(
        f"From {told['depths'][0]['blocks']} to {told['depths'][-1]['blocks']} blocks the median largest singular "
        f"value changes as the number of blocks to the power {powers[0]:.2f}, the median spectral radius to "
        f"{powers[1]:.2f}; -1 would be steps that become smaller as there are more of them."
    )
    page.table(
        "depths",
        told["depths"],
        "Branches of networks of 14 to 56 layers on the digits",
        "Li and Papyan (NeurIPS 2023) find that largest singular values of branches fall as 1 / depth.",
    )
    page.figure(
        figures_of_networks.depths(told["depths"]),
        "depths",
        "Median over blocks and images of a branch's largest singular value and spectral radius, against the number of "
        "blocks that keep the shape. Dashed: as 1 / blocks, through the first point.",
    )


def equivalence(page, told):
    if not told["fits"] and not told.get("tolerances"):
        return
    page.heading("ResNet and ODE-net (Figure 2)")
    if told["fits"]:
        longest = max(fit.rounds for fit in told["fits"])
        page.table(
            "ode_net",
            tables.fit_rows(told["fits"]),
            "Fits to random points",
            "64 points in the plane, a field of 32 tanh units, eight steps against dopri5 at 1e-5; the paper states "
            "none of these numbers.",
        )
        page.figure(
            figures_of_networks.ode_net([fit for fit in told["fits"] if fit.rounds == longest]),
            "ode_net",
            f"How far eight residual steps and the exact flow of the same field are apart after {longest} rounds, when "
            "the field is scaled up. "
            "The dotted line is Euler's limit, h rho = 2.",
        )
    if told.get("tolerances"):
        page.table(
            "tolerances",
            told["tolerances"],
            "A ResNet-14 and an ODE-net on the digits, run by Euler's steps and by dopri5 at several tolerances",
            "Evaluations of a branch for each block that keeps the shape; Euler takes one.",
        )
        page.figure(
            figures_of_networks.tolerances(told["tolerances"]),
            "tolerances",
            "Accuracy and evaluations, run by Euler's steps and by dopri5 at several tolerances. A line is a network.",
        )


def another(page, net, found, name, number):
    """A further network of the user's: by block only."""
    page.heading(f"{name}, by block")
    page.table(
        f"by_block_{number}",
        tables.readable(tables.block_rows(found, net), found.blocks),
        f"Every block of {name} in three readings",
    )
    page.figure(figures.along_depth(found), f"along_depth_{number}", f"Along the depth of {name}.")


def this_run(page, found, kept, judged, alone):
    """What this run alone would have said, beside the verdicts of the best evidence; does it reproduce the record?

    kept    the record of this network; None where there is none
    judged  the findings of the best evidence
    alone   those of this run alone, in the same order
    """
    if kept is None:
        return
    about, rows = kept
    compared = tables.reproduction_rows(found, rows.get("by_block", []))
    same = sum(row["reproduced"] == "yes" for row in compared)
    page.heading("Does this run reproduce the record?")
    page.words(
        f"The verdicts above are those of the best evidence there is of this network: the record of {about['date']} "
        f"(commit {about['commit']}, weights {about['digest']}, `{about['command']}`) where it has more images. Of "
        f"{len(compared)} means over images in it, {same} lie within the intervals of this run's images, which hold "
        "together."
    )
    page.table(
        "this_run",
        [
            {"claim": one.claim, "verdict": str(one.verdict), "by this run alone": str(other.verdict)}
            for one, other in zip(judged, alone, strict=True)
        ],
        "The verdicts, and what this run alone would have said",
        printed=False,
    )
    page.table("reproduced", compared, "Means over images: the record, and this run", printed=False, told=False)


def slices_alone(page, found, relations, held, components):
    """Slices alone at many images: the correlations of Tables 1, 4 and 7, and what is between labels."""
    about = found.about
    page.heading("Slices alone (Tables 1, 4 and 7)")
    page.words(
        f"{about['images']:,} test images of {about['dataset']}, {about['rows']} output units of each block; "
        f"{about['date']}, commit {about['commit']}, {about['network']} (weights {about['digest']})."
    )
    page.table(
        "slices_alone",
        tables.readable(tables.relation_rows(relations), found.blocks),
        "S and percentage of slices against accuracy and loss, image by image within each block",
        "Spearman's correlation with its 95 % interval, and Holm's correction over the rows.",
    )
    page.table(
        "slices_alone_held",
        tables.readable(tables.relation_rows(held), found.blocks),
        "The same beside live outputs",
        "Correlations of ranks minus a linear fit to the ranks of the share of live outputs: a dead output is a row of "
        "zeros in its slices.",
        printed=False,
    )
    page.table(
        "slices_alone_labels",
        tables.readable(tables.component_rows(components), found.blocks),
        "How much of the variance within a block is between labels",
        "The variance component of labels over its sum with that of images; exact 95 % intervals, Holm's correction.",
        printed=False,
    )


def from_the_record(page, found, kept, size):
    """What the last large run left, with its date, commit and network; what this run has itself only if it had more."""
    if kept is None:
        return
    about, rows = kept
    page.heading("From the last large run")
    page.words(
        f"What follows is not of this run. It comes with the study: {about['date']}, commit {about['commit']}, network "
        f"{about['network']} (weights {about['digest']}), `{about['command']}`.",
        page.name_older([about], REMEDY),
    )
    titles = {
        "by_block": ("Every block in three readings", "As above, over more images."),
        "swapped": (
            "Learnt step sizes, and constants in their place",
            "Medians over the blocks of networks of seed 0: ends of the spectrum of h f' over h times those of f', h "
            "the gate's mean; with the gate as it is, and with the constant h.",
        ),
    }
    if sum(about["images a label"]["spectra"]) <= sum(size.spectra):
        titles = {"swapped": titles["swapped"]}
    for table, (title, caption) in titles.items():
        page.table(f"large_{table}", tables.readable(rows.get(table, []), found.blocks), title, caption, printed=False)
    of_depths(page, rows)
    equivalence(page, {"fits": [], "tolerances": rows.get("tolerances")})
