"""Every shipped network of a data set at the same few images: ends of the spectra of its steps, and the steps' errors.

One network has seven blocks or so, too few for a correlation of blocks. All shipped networks together show whether what
one of them says holds for other seeds and other step-size controllers. What is kept of each block is a summary over
images, a line of JSON; `shipped/every_network.jsonl` is what the last large run found, marked by date and commit.
"""

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import netbridge as nb
from netbridge.pretrained_networks import Pretrained
from netbridge.spectrum.survey import ROW
from odelab.files import replacing
from studies.block_stiffness.measures import ROOMS, inner_blocks, nested_images
from studies.lab.networks import shipped_resnets
from studies.lab.results import source
from studies.lab.stiffness import prepare

SHIPPED = Path(__file__).parent / "shipped" / "every_network.jsonl"
STATISTICS = ("median", "mean", "smallest", "largest")  # over images, in this order in the file
FROZEN = ("max_re", "min_re", "stiffness_index", "spectral_radius", "stable_step")
LIVE = ("max_re", "min_re")
NORMS = ("log_norm", "soderlind", "largest_singular")
ERROR = ("step_error", "nsi", "alive")
SHARES = ("negative", "zero", "positive", "non_normality", "stiff")  # means over the images with all eigenvalues
BY_LABEL = ("max_re", "min_re", "spectral_radius")  # means by label are kept of these, for the labels' order
LIVE_IMAGES = 2  # gates are differentiated too, at five times the cost, at this many images or a fifth of all
FULL_IMAGES = 2  # at which all eigenvalues are found where that takes seconds, which also checks the ends
NORM_IMAGES = 4  # at which norms of the whole Jacobian are taken
WHOLE = 2048  # units of a block up to which all eigenvalues are cheaper than both ends
REDUCED = 8192  # units of a block up to which all eigenvalues take seconds
OF_NETWORK = ("network", "controller", "seed", "accuracy", "images")  # the same in every row of a network


class Everything(NamedTuple):
    """What was found: about the run (date, source, data set, images a network), and a row per network and block."""

    about: dict
    rows: list[dict]


def networks_of(dataset: str) -> list[Pretrained]:
    """The shipped ResNets trained on a data set but for the deep ones, those with constant step sizes first."""
    return sorted(shipped_resnets(dataset), key=lambda one: (one.controller != "constant", one.seed, one.name))


def look_at_all(data, images: int, work: dict, on_network=None, names=None) -> Everything:
    """Every shipped network of the data set, or those with these `names`, at the same `images` test images."""
    rows = []
    for one in networks_of(data.name):
        if names is not None and one.name not in names:
            continue
        rows += look_at(one, data, images, work)
        if on_network:
            on_network(one.name)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Everything({"date": date, **source(measured=ROOMS), "dataset": data.name, "images": images}, rows)


class Tables(NamedTuple):
    """What one network showed: tables of `nb.block_survey`."""

    held: np.ndarray  # ends of h f' with gates held
    whole: np.ndarray  # all eigenvalues of it, at fewer images and of the smaller blocks
    norms: np.ndarray
    errors: np.ndarray
    live: np.ndarray  # ends with gates differentiated, at fewer images still


def look_at(about: Pretrained, data, count: int, work: dict) -> list[dict]:
    """A summary of every block that keeps the shape, over `count` test images.

    The gates of step sizes computed from the state are held, so that eigenvalues are those of h f'; at a few images
    they are differentiated too, and the difference is what the controller itself adds. A controller that changes the
    branch (IEBN) leaves no chain of convolutions and is differentiated automatically, at LIVE_IMAGES images.
    """
    net = nb.pretrained(about.name).eval()
    dear = any(block.controller.modifies_branch for block in net.blocks)
    labels = data.test_labels.numpy()
    chosen = nested_images(labels, -(-count // len(data.names)))[: min(count, LIVE_IMAGES) if dear else count]
    images = prepare(net, data, data.test_images[chosen])
    inner = [name for stage in range(len(net.stages)) for name in inner_blocks(net, stage)]
    units = {name: state[0].numel() for name, state in nb.block_states(net, images[:1], inner).items()}
    small = [] if dear else [name for name in inner if units[name] <= WHOLE]
    reduced = [] if dear else [name for name in inner if WHOLE < units[name] <= REDUCED]

    def survey(kind, blocks, images, values="extremes", gate="frozen"):
        return nb.block_survey(net, images, kind, blocks, values, gate, **work) if blocks else np.empty(0, ROW)

    few = 0 if dear or about.controller == "constant" else min(LIVE_IMAGES, -(-count // 5))
    large = [name for name in inner if name not in small]
    ends = survey("increment", large, images)
    all_of_small = survey("increment", small, images, "full")
    some = survey("increment", reduced, images[:FULL_IMAGES], "full")
    found = Tables(
        held=np.concatenate([ends, all_of_small]),
        whole=np.concatenate([some, all_of_small]),
        norms=survey("norms", inner, images[:NORM_IMAGES]),
        errors=survey("error", inner, images),
        live=np.concatenate(
            [
                survey("increment", large if few else [], images[:few], gate="live"),
                survey("increment", small if few else [], images[:few], "full", "live"),
            ]
        ),
    )
    return summaries(about, net, found, nb.trace(net, images), labels[chosen], len(data.names))


def summaries(about: Pretrained, net, found: Tables, steps, labels: np.ndarray, classes: int) -> list[dict]:
    """A row per block: medians and so on of each measure, and both ends with gates held and gates differentiated.

    labels   of the images, each as often as the others where there are enough images
    classes  how many labels there are
    """
    result = []
    for number, name in enumerate(net.block_names, 1):
        rows, whole, norms, wrong, live = (table[table["block"] == name] for table in found)
        if not len(rows):
            continue
        line = {
            "network": about.name, "controller": about.controller, "seed": about.seed,
            "accuracy": about.test_accuracy, "block": number, "stage": int(name.split(".")[1]), "images": len(rows),
            "step_size": round_cells(steps.step_sizes[:, steps.names.index(name)].mean()),
        }  # fmt: skip
        line |= {measure: summarise(rows[measure]) for measure in FROZEN}
        line |= {measure: summarise(norms[measure]) for measure in NORMS}
        line |= {measure: summarise(wrong[measure]) for measure in ERROR}
        line["converged"] = round_cells(rows["converged"].mean())
        if len(set(labels)) == classes:
            for measure in BY_LABEL:
                by_label = [rows[measure][labels[rows["image"]] == label] for label in range(classes)]
                line[f"{measure}_by_label"] = [round_cells(values.mean(), 4) for values in by_label]
        if len(whole):
            line |= {measure: round_cells(whole[measure].mean()) for measure in SHARES}
            line["ends_missed"] = error_of_ends(rows[np.isin(rows["image"], whole["image"])], whole)
        if len(live):
            both = rows[np.isin(rows["image"], live["image"])], live
            line |= {f"{measure}_held_and_live": [round_cells(t[measure].mean()) for t in both] for measure in LIVE}
        result.append(line)
    return result


def error_of_ends(ends: np.ndarray, whole: np.ndarray) -> float:
    """By how much ends from products with vectors differ from those of all eigenvalues, relative to the radius."""
    apart = [np.abs(ends[name] - whole[name]) / whole["spectral_radius"] for name in ("max_re", "min_re")]
    return round_cells(np.max(apart))


def summarise(values: np.ndarray) -> list[float]:
    """The STATISTICS of the values that are numbers; nothing where none is."""
    known = values[np.isfinite(values)]
    return [round_cells(one(known)) for one in (np.median, np.mean, np.min, np.max)] if len(known) else []


def round_cells(value, digits: int = 5) -> float:
    return float(f"{float(value):.{digits}g}")


def write(found: Everything, path: Path = SHIPPED) -> None:
    """A line about the run; one about each network, then one a block. Other data sets that the file holds stay."""
    others = [one for one in read_all(path) if one.about["dataset"] != found.about["dataset"]]
    with replacing(path) as unfinished, unfinished.open("w") as file:
        for one in sorted([*others, found], key=lambda one: one.about["dataset"]):
            for line in lines_of(one):
                file.write(json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n")


def lines_of(found: Everything) -> Iterator[dict]:
    """The lines of a run: what the rows of a network share stands ahead of them, once."""
    yield found.about
    shared: dict = {}
    for row in found.rows:
        own = {name: row[name] for name in OF_NETWORK if name in row}
        if own != shared:
            shared = own
            yield shared
        yield {name: cell for name, cell in row.items() if name not in OF_NETWORK}


def read_all(path: Path = SHIPPED) -> list[Everything]:
    """Every run that the file holds, one a data set."""
    found: list[Everything] = []
    shared: dict = {}
    for line in path.read_text().splitlines() if path.is_file() else ():
        row = json.loads(line)
        if "commit" in row:
            found.append(Everything(row, []))
        elif "block" in row:
            found[-1].rows.append(shared | row)
        else:
            shared = row
    return found


def shipped_run(dataset: str, path: Path = SHIPPED) -> Everything | None:
    """The last large run for a data set; None where there was none."""
    return next((one for one in read_all(path) if one.about["dataset"] == dataset), None)
