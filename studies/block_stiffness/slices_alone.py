"""Slices alone at as many images as the paper looked at, some 3,400: the question of Tables 1, 4 and 7 with its power.

An image costs a fifteenth of a second a block, so 3,400 images of a ResNet-20 take about 36 minutes of one core. What
is done is kept, and a stopped run goes on. What is found comes with the study, a small file for each network.
"""

import dataclasses
import datetime
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from rich.progress import Progress
from scipy import stats

import netbridge as nb
from odelab.files import replacing
from studies.block_stiffness import analysis, measures, record
from studies.block_stiffness.findings import answers, blocks, in_words
from studies.block_stiffness.findings.evidence import Evidence
from studies.block_stiffness.report import sections
from studies.block_stiffness.subjects import STUDY
from studies.lab.page import Page
from studies.lab.results import commit
from studies.lab.stiffness import prepare

IMAGES = 3400  # Table 1's correlations and p-values allow 2,945 to 3,897
ROWS = 300  # output units that slices look at, of every image the same ones
PORTION = 50  # images between two entries in the cache: their states are held in memory
COLUMNS = ("stiffness_index", "negative", "alive")
HELD = "beside live outputs"


@dataclasses.dataclass(frozen=True, eq=False)
class Slices:
    """What slices of a network's blocks are at many test images, and how it answers to these.

    about   network, digest of its weights, data set, date, commit, images, rows of slices
    blocks  their names
    images  numbers within the test set, (N,)
    labels, loss, right     of the images, (N,)
    stiffness_index, negative, alive    S, the share of negative real parts and that of live outputs, (N, blocks)
    """

    about: dict
    blocks: tuple[str, ...]
    images: np.ndarray
    labels: np.ndarray
    loss: np.ndarray
    right: np.ndarray
    stiffness_index: np.ndarray
    negative: np.ndarray
    alive: np.ndarray

    @property
    def targets(self) -> dict[str, np.ndarray]:
        return {"accuracy": self.right.astype(float), "loss": self.loss}


def path_of(folder: Path, network: str) -> Path:
    """Where the slices of a network are in a folder."""
    return folder / f"slices-{network.replace('/', '-')}.npz"


def measure(net, network: str, data, count: int, work: dict, rows: int = ROWS, on_progress=None) -> Slices:
    """Look at slices of all blocks at `count` test images, balanced over labels.

    work         as `nb.block_survey` takes it; with a `cache` a stopped run goes on
    rows         output units that slices look at
    on_progress  called with (images done, images in all)
    """
    labels = data.test_labels.numpy()
    chosen = measures.nested_images(labels, -(-count // len(data.names)))[:count]
    names = tuple(net.block_names)
    columns: dict[str, list[np.ndarray]] = {name: [] for name in COLUMNS}
    for start in range(0, len(chosen), PORTION):
        images = prepare(net, data, data.test_images[chosen[start : start + PORTION]])
        table = nb.block_survey(net, images, "slices", rows=rows, **work)
        table = table[np.argsort(table["image"], kind="stable")].reshape(len(images), len(names))
        for name in COLUMNS[:2]:
            columns[name].append(table[name])
        columns["alive"].append(live_outputs(net, images))
        if on_progress:
            on_progress(min(start + PORTION, len(chosen)), len(chosen))
    loss, right = measures.answers(net, data, chosen)
    about = {
        "network": network,
        "digest": record.digest_of(net),
        "dataset": data.name,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit(),
        "images": len(chosen),
        "rows": rows,
    }
    found = {name: np.concatenate(values).astype(np.float32) for name, values in columns.items()}
    return Slices(about, names, chosen, labels[chosen], loss, right, **found)


def live_outputs(net, images: torch.Tensor) -> np.ndarray:
    """The share of outputs above zero of every block at every image, (images, blocks)."""
    states = nb.block_states(net, images)
    with torch.inference_mode():
        outputs = [net.get_submodule(name)(state) for name, state in states.items()]
    return np.stack([(output > 0).flatten(1).double().mean(1).cpu().numpy() for output in outputs], 1)


def write(found: Slices, path: Path) -> None:
    """Keep what was found in a file."""
    arrays = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
    about = json.dumps(found.about)
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        np.savez_compressed(file, **arrays | {"about": np.array(about), "blocks": np.array(found.blocks)})


def read(path: Path) -> Slices:
    """What `write` has written."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {field.name: file[field.name] for field in dataclasses.fields(Slices)}
    about, blocks = json.loads(str(arrays.pop("about"))), tuple(map(str, arrays.pop("blocks")))
    return Slices(about, blocks, **arrays)


def find(network: str, digest: str, *folders: Path) -> Slices | None:
    """The slices of these very weights at the most images, in the folders; None where there are none."""
    there = [read(path) for folder in folders if (path := path_of(folder, network)).is_file()]
    there = [one for one in there if one.about["digest"] == digest]
    return max(there, key=lambda one: one.about["images"], default=None)


def columns_of(found: Slices) -> Iterator[tuple[int, str, str, np.ndarray]]:
    """(number, block, measure, values) of the paper's two measures in every block."""
    for number, block in enumerate(found.blocks):
        for name in COLUMNS[:2]:
            yield number, block, name, getattr(found, name)[:, number]


def relations(found: Slices) -> list[analysis.Relation]:
    """Rank correlations of both measures with accuracy and loss over the images, within each block; Holm over all."""
    made = [
        analysis.relation(block, "slices", name, target, values, wanted)
        for _, block, name, values in columns_of(found)
        for target, wanted in found.targets.items()
    ]
    return analysis.with_holm([one for one in made if one is not None])


def relations_held(found: Slices) -> list[analysis.Relation]:
    """The correlations of what is left of the ranks beside those of the share of live outputs; Holm over all."""
    made = []
    for number, block, name, values in columns_of(found):
        held = np.column_stack([np.ones(len(values)), stats.rankdata(found.alive[:, number])])
        for target, wanted in found.targets.items():
            one = analysis.partial_correlation(block, "slices", name, f"{target}, {HELD}", values, wanted, held)
            made += [] if one is None else [one]
    return analysis.with_holm(made)


def components(found: Slices) -> list[analysis.Component]:
    """How much of the variance of both measures within each block is between labels; Holm over all."""
    made = [
        analysis.component(block, "slices", name, values, found.labels) for _, block, name, values in columns_of(found)
    ]
    return analysis.with_holm([one for one in made if one is not None])


def evidence_of(found: Slices) -> Evidence:
    """What the rules judge."""
    return Evidence(components=tuple(components(found)), relations=tuple(relations(found)))


def run(arguments, net, network: str, data, work: dict) -> None:
    """Look at slices alone, keep what was found, and say what it answers."""
    page = Page(STUDY, arguments, "Slices of Jacobians, and right answers", f"{network} on {data.name}.")
    with Progress(transient=True) as progress:
        task = progress.add_task("slices", total=arguments.slice_images)
        found = measure(
            net,
            network,
            data,
            arguments.slice_images,
            work,
            on_progress=lambda done, _: progress.update(task, completed=done),
        )
    write(found, path_of(record.SHIPPED if arguments.ship else arguments.out, network))
    related, by_label = relations(found), components(found)
    page.heading("What these data say")
    page.findings(
        [
            in_words(one, found.blocks)
            for one in (
                blocks.judge_labels(by_label, ()),
                answers.RULES["accuracy"]([one for one in related if one.target == "accuracy"], answers.CLAIMED),
                answers.RULES["loss"]([one for one in related if one.target == "loss"], answers.LOSS),
            )
        ]
    )
    sections.slices_alone(page, found, related, relations_held(found), by_label)
    page.close()
