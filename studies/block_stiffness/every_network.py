"""Every shipped network of a data set at the same few images: ends of the spectra of its steps, and the steps' errors.

One network has seven blocks or so, too few for a correlation of blocks. All shipped networks together show whether what
one of them says holds for other seeds and other step-size controllers. What is kept of each block is a summary over
images, a line of JSON; `shipped/every_network.jsonl` is what the last large run found, marked by date and commit.
"""

import datetime
import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

import netbridge as nb
from netbridge.files import replacing
from netbridge.shipped import Pretrained
from netbridge.spectrum.survey import ROW
from studies.block_stiffness.analysis import holm
from studies.block_stiffness.measures import inner_blocks, nested_images
from studies.lab.measure import prepare
from studies.lab.results import commit
from studies.lab.statistics import Estimate, shown_interval

SHIPPED = Path(__file__).parent / "shipped" / "every_network.jsonl"
STATISTICS = ("median", "mean", "smallest", "largest")  # over images, in this order in the file
FROZEN = ("max_re", "min_re", "stiffness_index", "spectral_radius", "stable_step")
LIVE = ("max_re", "min_re")
NORMS = ("log_norm", "soderlind", "largest_singular")
ERROR = ("step_error", "nsi", "alive")
PREDICTORS = (
    "nsi", "alive", "max_re", "min_re", "stiffness_index", "spectral_radius", "stable_step", "log_norm", "soderlind",
    "largest_singular", "negative", "zero", "positive", "non_normality",
)  # fmt: skip
SHARES = ("negative", "zero", "positive", "non_normality", "stiff")  # means over the images with all eigenvalues
BY_LABEL = ("max_re", "min_re", "spectral_radius")  # means by label are kept of these
LIVE_IMAGES = 2  # gates are differentiated too, at five times the cost, at this many images or a fifth of all
FULL_IMAGES = 2  # at which all eigenvalues are found where that takes seconds, which also checks the ends
NORM_IMAGES = 4  # at which norms of the whole Jacobian are taken
WHOLE = 2048  # units of a block up to which all eigenvalues are cheaper than both ends
REDUCED = 8192  # units of a block up to which all eigenvalues take seconds
LIMIT = -2.0  # below it a decaying mode grows under Euler's step of size 1


class Everything(NamedTuple):
    """What was found: about the run (date, commit, data set, images a network), and a row per network and block."""

    about: dict
    rows: list[dict]


def networks_of(dataset: str) -> list[Pretrained]:
    """The shipped ResNets trained on a data set, those with constant step sizes first."""
    return sorted(
        (one for one in nb.pretrained() if one.dataset == dataset and "/resnet" in one.name),
        key=lambda one: (one.controller != "constant", one.seed, one.name),
    )


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
    return Everything({"date": date, "commit": commit(), "dataset": data.name, "images": images}, rows)


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
                line[f"{measure}_by_label"] = [round_cells(values.mean()) for values in by_label]
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


def round_cells(value) -> float:
    return float(f"{float(value):.5g}")


def write(found: Everything, path: Path = SHIPPED) -> None:
    """One line about the run, then one a row; lines of other data sets that the file holds stay."""
    others = [one for one in read_all(path) if one.about["dataset"] != found.about["dataset"]]
    with replacing(path) as unfinished, unfinished.open("w") as file:
        for one in sorted([*others, found], key=lambda one: one.about["dataset"]):
            for line in (one.about, *one.rows):
                file.write(json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n")


def read_all(path: Path = SHIPPED) -> list[Everything]:
    """Every run that the file holds, one a data set."""
    found: list[Everything] = []
    for line in path.read_text().splitlines() if path.is_file() else ():
        row = json.loads(line)
        if "commit" in row:
            found.append(Everything(row, []))
        else:
            found[-1].rows.append(row)
    return found


def shipped(dataset: str, path: Path = SHIPPED) -> Everything | None:
    """The last large run for a data set; None where there was none."""
    return next((one for one in read_all(path) if one.about["dataset"] == dataset), None)


# what the rows say


def value(row: dict, measure: str, statistic: str = "median") -> float:
    """A statistic of a measure over images; NaN where the row has none. Of some measures the mean alone is kept."""
    kept = row.get(measure)
    if isinstance(kept, float):
        return kept
    return kept[STATISTICS.index(statistic)] if kept else float("nan")


def by_network(rows: Iterable[dict]) -> dict[str, list[dict]]:
    """The rows of each network in the order of its blocks."""
    found: dict[str, list[dict]] = {}
    for row in rows:
        found.setdefault(row["network"], []).append(row)
    return found


def lowest_real_part(row: dict) -> float:
    """The most negative real part of h lambda at any image, with gates held."""
    return value(row, "min_re", "smallest")


def late_minus_early(rows: list[dict]) -> Estimate:
    """Mean -min Re of the last stage less that of the first, over networks, with a 95 % interval of Student's t."""
    differences = []
    for blocks in by_network(rows).values():
        ends = [
            np.mean([-value(row, "min_re") for row in blocks if row["stage"] == stage])
            for stage in (blocks[-1]["stage"], blocks[0]["stage"])
        ]
        differences.append(ends[0] - ends[1])
    return mean_with_interval(differences)


def within_stages(rows: list[dict]) -> Estimate:
    """The same between the last and the first block of every stage, at one size of map and so without its influence."""
    differences = []
    for blocks in by_network(rows).values():
        for stage in sorted({row["stage"] for row in blocks}):
            same = [-value(row, "min_re") for row in blocks if row["stage"] == stage]
            if len(same) > 1:
                differences.append(same[-1] - same[0])
    return mean_with_interval(differences)


def label_orders(rows: list[dict]) -> list[dict]:
    """Do networks order the labels alike? A row per block and measure, with the networks of one shape as units.

    Friedman's test that the labels do not differ, Holm's correction over the rows, and the mean rank correlation of two
    networks' means by label; only networks of which every label is known.
    """
    made = []
    for block in sorted({row["block"] for row in rows}):
        for measure in BY_LABEL:
            column = f"{measure}_by_label"
            values = np.array([row[column] for row in rows if row["block"] == block and column in row])
            if values.ndim != 2 or len(values) < 3:
                continue
            pairs = [stats.spearmanr(one, other).statistic for one, other in itertools.combinations(values, 2)]
            p = float(stats.friedmanchisquare(*values.T).pvalue)
            made.append({"block": block, "measure": measure, "networks": len(values), "p": p, "p, Holm": p})
            made[-1]["Spearman of two networks, mean"] = float(np.mean(pairs))
    for row, p in zip(made, holm([row["p"] for row in made]), strict=True):
        row["p, Holm"] = p
    return made


def predictors(rows: list[dict], measures=PREDICTORS) -> list[dict]:
    """Which measure of a block tells Euler's error, over the blocks of all networks? The best one first.

    Spearman's correlation over the blocks of a network, averaged over networks with its interval; and how much of the
    variance of log(error) a line through log|measure| explains in networks that were left out of the fit, one network
    at a time (below 0 where the mean would have been the better guess).
    """
    relations = error_relations(rows, measures)
    made = []
    for measure in measures:
        groups = []
        for blocks in by_network(rows).values():
            x, y = ([value(row, name) for row in blocks] for name in (measure, "step_error"))
            with np.errstate(divide="ignore"):
                pairs = np.log(np.abs([x, y]))
            groups.append(pairs[:, np.isfinite(pairs).all(0)])
        if measure in relations and sum(group.shape[1] for group in groups) > 8:
            one = relations[measure]
            made.append(
                {
                    "measure": measure,
                    "networks": len(groups),
                    "Spearman within networks": shown_interval(one, "+.2f"),
                    "R2, left-out networks": r2_left_out(groups),
                }
            )
    return sorted(made, key=lambda row: -row["R2, left-out networks"])


def r2_left_out(groups: list[np.ndarray]) -> float:
    """R2 of a line fitted to all groups (2, n) but one, on that one, over all groups together."""
    missed = total = 0.0
    for place, (x, y) in enumerate(groups):
        others = np.concatenate([group for number, group in enumerate(groups) if number != place], axis=1)
        slope, start = np.polyfit(others[0], others[1], 1)
        missed += float(np.square(y - (start + slope * x)).sum())
        total += float(np.square(y - others[1].mean()).sum())
    return 1.0 - missed / total if total > 0.0 else float("nan")


def error_relations(rows: list[dict], measures=("max_re", "min_re", "stiffness_index", "spectral_radius", "nsi")):
    """{measure: Spearman's correlation with Euler's error over the blocks of a network, averaged over networks}."""
    result = {}
    for measure in measures:
        found = []
        for blocks in by_network(rows).values():
            x, y = ([value(row, name) for row in blocks] for name in (measure, "step_error"))
            if len(blocks) > 3 and np.isfinite([*x, *y]).all() and np.ptp(x) > 0.0:
                found.append(stats.spearmanr(x, y).statistic)
        if len(found) > 1:
            result[measure] = mean_with_interval(found)
    return result


def mean_with_interval(values) -> Estimate:
    """A mean over networks and its 95 % interval by Student's t; no interval for fewer than two."""
    values = np.asarray(values, dtype=float)
    mean = float(values.mean()) if len(values) else float("nan")
    if len(values) < 2:
        return Estimate(mean, float("nan"), float("nan"))
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return Estimate(mean, float(mean - half), float(mean + half))


def network_rows(rows: list[dict]) -> list[dict]:
    """A row per network: its accuracy, its stiffest block, and the block with the largest error of the step."""
    result = []
    for name, blocks in by_network(rows).items():
        stiffest = min(blocks, key=lowest_real_part)
        worst = max(blocks, key=lambda row: value(row, "step_error"))
        result.append(
            {
                "network": name,
                "accuracy, %": 100 * blocks[0]["accuracy"],
                "images": blocks[0]["images"],
                "min Re h lambda": lowest_real_part(stiffest),
                "in block": stiffest["block"],
                "blocks beyond -2": sum(lowest_real_part(row) < LIMIT for row in blocks),
                "max Re h lambda": max(value(row, "max_re", "largest") for row in blocks),
                "largest error": value(worst, "step_error"),
                "of block": worst["block"],
            }
        )
    return result


def controller_rows(rows: list[dict]) -> list[dict]:
    """A row per controller: its step sizes, and what is added where they are differentiated and not held."""
    result = []
    for controller in dict.fromkeys(row["controller"] for row in rows):
        blocks = [row for row in rows if row["controller"] == controller]
        ends = {}
        for measure, name in zip(LIVE, ("max Re", "min Re"), strict=True):
            if not any(f"{measure}_held_and_live" in row for row in rows):
                continue
            pairs = [row[f"{measure}_held_and_live"] for row in blocks if f"{measure}_held_and_live" in row]
            changes = [live - held for held, live in pairs]
            ends[f"{name}, live less held"] = float(np.mean(changes)) if changes else float("nan")
            ends[f"{name}, largest change"] = float(np.max(np.abs(changes))) if changes else float("nan")
        result.append(
            {
                "controller": controller,
                "networks": len({row["network"] for row in blocks}),
                "step size, mean": float(np.mean([row["step_size"] for row in blocks])),
                "smallest": min(row["step_size"] for row in blocks),
                "largest": max(row["step_size"] for row in blocks),
                "h rho, median": float(np.median([value(row, "spectral_radius") for row in blocks])),
                **ends,
                "error, median": float(np.median([value(row, "step_error") for row in blocks])),
            }
        )
    return result
