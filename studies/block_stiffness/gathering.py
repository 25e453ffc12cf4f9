"""What is computed of one network, and of all shipped ones, by the names that sections and verdicts ask for."""

import functools

import numpy as np
from rich.progress import Progress

from studies.block_stiffness import (
    across_networks,
    adversarial,
    analysis,
    constant_gates,
    every_network,
    measures,
    subjects,
    trainings,
    untrained,
)
from studies.block_stiffness.findings.answers import CLAIMED, TURNED
from studies.lab import networks
from studies.lab.stiffness import prepare

LABELLED = ("stiffness_index", "negative", "max_re", "min_re", "spectral_radius")  # their variance is split by label
HELD = ("stiffness_index", "negative", "max_re", "min_re")
NETWORKS = {"full": 100}  # images of every shipped network
SWAPPED_IMAGES = 2  # at which learnt step sizes are compared with constants


def submit(executor, function, *arguments):
    """Start a call at once where there is an executor, at the latest when its result is asked for; returns a getter."""
    if executor is None:
        return functools.partial(function, *arguments)
    return executor.submit(function, *arguments).result


def compute_all(net, data, found, inner, arguments, preset, size, work) -> dict:
    """Everything that is computed of the network, by the names that the sections ask for."""
    answers = {"accuracy": found.right.astype(float), "loss": found.loss}
    targets = adversarial.robustness(net, data, np.unique(found.table["image"]))
    readings = [reading for reading in measures.READINGS if reading in arguments.parts]
    spectra = [reading for reading in measures.SPECTRA if reading in arguments.parts]
    errors = analysis.error_relations(found, measures.MEASURES, inner)
    last = [block for block in inner if block.split(".blocks")[0] == inner[-1].split(".blocks")[0]]
    first = slice(size.flows)
    flows = submit(
        work["executor"],
        measures.accuracy_by_flow,
        net,
        prepare(net, data, data.test_images[first]),
        data.test_labels[first],
    )
    slices = analysis.label_components(found, ["slices"], CLAIMED, found.blocks) if "slices" in readings else []
    everything = find_every_network(data, preset, arguments, work)
    return {
        "untrained": untrained.measure(data, preset, work),
        "activity": analysis.activity_relations(found, inner),
        "everything": everything,
        "related": analysis.relations(found, answers, CLAIMED, readings, found.blocks),
        "turned": analysis.relations(found, targets, TURNED, ["residual"], inner),
        "turned_norms": analysis.relations(found, targets, ("log_norm", "largest_singular"), ["norms"], inner),
        "errors": errors,
        "shares": variances(found, last, spectra, arguments.resamples),
        "components": [*analysis.label_components(found, spectra, LABELLED, inner), *slices],
        "label_orders": [] if everything is None else across_networks.label_orders(everything.rows),
        "mapped": [
            *analysis.relations(found, answers, measures.MEASURES, ["residual"], inner),
            *errors,
            *analysis.error_relations(found, measures.MEASURES, inner, "nsi"),
        ],
        "held": analysis.partial_relations(found, answers, HELD, ["residual"], inner),
        "inputs": measures.other_inputs(net, data, inner[-3:] if arguments.smoke else inner, size.inputs, work),
        "accuracies": flows(),
        "precision": [] if arguments.smoke else subjects.precision_rows(net, data, inner, work),
    }


def find_every_network(data, preset, arguments, work):
    """Measured now where that is asked for, else what the last large run left; None where there is neither.

    Of a record that has more, only the controllers and seeds that the options ask for are shown.
    """
    images = arguments.every_network or NETWORKS.get(preset)
    names = select_names(data.name, arguments)
    if images is None:
        found = every_network.shipped_run(data.name)
        return found and found._replace(rows=[row for row in found.rows if row["network"] in names])
    with Progress(transient=True) as progress:
        task = progress.add_task("every shipped network", total=len(names))
        found = every_network.look_at_all(data, images, work, lambda _: progress.advance(task), names)
    if arguments.ship:
        every_network.write(found)
    return found


def select_names(dataset: str, arguments) -> list[str]:
    """The names of the shipped networks that the options `controllers` and `seeds` leave."""
    there = every_network.networks_of(dataset)
    return [one.name for one in networks.select(there, arguments, dataset, "Leave the options out for all of them.")]


def variances(found, blocks, readings, resamples):
    """Shares of variance of the measures that the paper tells, in branch and whole block, over these blocks."""
    made = [
        analysis.variance_shares(found, reading, measure, blocks, resamples)
        for reading in readings
        for measure in LABELLED
    ]
    return [one for one in made if one is not None]


def constants_for_gates(data, work) -> list[dict]:
    """Learnt step sizes beside constants in their place; minutes, so that rows are kept in the folder of the cache."""
    made = functools.partial(constant_gates.swapped_rows, data, SWAPPED_IMAGES, 500, work)
    return trainings.keep_rows(work["cache"] / f"swapped-{data.name}-{SWAPPED_IMAGES}.json", made)


def measure_blocks(net, name, data, size, work, arguments) -> measures.Measured:
    """The spectra of all blocks of a network, with a progress bar."""
    with Progress(transient=True) as progress:
        task = progress.add_task("spectra", total=2 * len(net.stages) + 3)
        return measures.measure(
            net, name, data, size, work, arguments.parts, arguments.full_spectra, lambda *_: progress.advance(task)
        )
