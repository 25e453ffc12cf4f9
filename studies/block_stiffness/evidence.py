"""The evidence that the rules judge and the page shows: of a run, of the record that comes with the study, the best.

A quick run looks at 20 images, the record at 100 to 400, slices alone at 3,400. A page has one verdict on a claim, that
of the best evidence there is; beside it stands what the run alone would have said. Correlations are within blocks:
nothing is pooled over them, because their means lie several standard deviations apart, so that a pooled correlation is
one of blocks and not of images.
"""

import dataclasses
import datetime
import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import studies
from odelab.files import replacing
from studies.block_stiffness.measures import (
    KIND_OF,
    NOTHING,
    READINGS,
    ROOMS,
    Measured,
    last_stage,
    rows_of,
    shared_columns,
    values_of_images,
)
from studies.lab.results import as_json, source
from studies.lab.statistics import LEVEL, Estimate, fisher_interval, interval_text
from studies.lab.verdicts import Finding

STUDY = "block_stiffness"
SHIPPED = Path(studies.__file__).parent / "shipped" / STUDY
REMEDY = f"`python -m studies.{STUDY} --preset full --ship` measures them again."
CALLED = {"stiffness_index": "S", "negative": "the percentage"}  # the paper's two measures, in sentences
ENDS = ("max_re", "min_re", "spectral_radius")
LABELS = {
    "stiffness_index": "index S", "negative": "negative share", "max_re": "max Re", "min_re": "min Re",
    "spectral_radius": "spectral radius", "zero": "zero share", "positive": "positive share", "si": "SI",
    "non_normality": "non-normality", "amplified": "amplified share", "stiff": "stiff share",
    "stable_step": "largest stable step", "log_norm": "log norm", "soderlind": "Söderlind's s[J]",
    "largest_singular": "largest singular value", "nsi": "NSI", "alive": "live outputs", "step_error": "Euler's error",
}  # fmt: skip
READING_WORDS = {"residual": "branch", "block": "whole block"}
ALSO_PROSE = ("negative", "zero", "positive", "amplified", "stiff")  # names of measures that sentences use as well
IN_WORDS = {name: words for name, words in LABELS.items() if name not in ALSO_PROSE} | {"residual": "branch"}


# ---- Rank correlations within blocks ----


@dataclasses.dataclass(frozen=True)
class Relation:
    """A rank correlation over the images of one block.

    n     images
    held  numbers that were held beside a mean, such as labels, and cost a degree of freedom each
    holm  p as one of many tests
    """

    block: str
    reading: str
    measure: str
    target: str
    r: float
    n: int
    held: int = 0
    holm: float = float("nan")

    @property
    def p(self) -> float:
        """By Student's distribution, of no relation."""
        freedom = self.n - 2 - self.held
        return float(2.0 * stats.t.sf(abs(self.r) * np.sqrt(freedom / max(1e-300, 1.0 - self.r**2)), freedom))

    def estimate(self, level: float = LEVEL) -> Estimate:
        return correlation_interval(self.r, self.n, level, self.held)


def correlation_interval(r, n: int, level: float = LEVEL, held: int = 0) -> Estimate:
    """The mean of rank correlations over the same n units, with its interval.

    r     one correlation or several, whose mean is taken on Fisher's scale; the interval is as wide as that of one of
          them, as if all said the same
    held  numbers that were held beside a mean

    By Fisher's z with the variance of Bonett and Wright (Psychometrika 65, 2000), (1 + r^2/2) / (n - 3); no interval
    for fewer than five units.
    """
    value = float(np.tanh(np.mean(np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12)))))
    freedom = n - 3 - held
    if freedom < 2 or not np.isfinite(value):
        return Estimate(value, np.nan, np.nan, n=n)
    return fisher_interval(value, (1.0 + 0.5 * value**2) / freedom, level, n)


def relation(block, reading, measure, target, x, y) -> Relation | None:
    """None where fewer than eight images have both, or nothing varies."""
    usable = np.isfinite(x) & np.isfinite(y)
    if usable.sum() < 8 or np.ptp(x[usable]) == 0.0 or np.ptp(y[usable]) == 0.0:
        return None
    ranks = [stats.rankdata(values[usable]) for values in (x, y)]
    return Relation(block, reading, measure, target, float(np.corrcoef(*ranks)[0, 1]), int(usable.sum()))


def relate(measured: Measured, block: str, measure: str, target: str, reading: str = "residual") -> Relation | None:
    """The correlation of two measures of a block, at the images that have both."""
    return relation(block, reading, measure, target, *shared_columns(measured, block, measure, target, reading))


def relations(measured: Measured, targets: dict[str, np.ndarray], measures, readings, blocks) -> list[Relation]:
    """Spearman's correlation of every measure with every target, image by image within each block; Holm over all."""

    def each():
        for block, reading, measure in itertools.product(blocks, readings, measures):
            rows = rows_of(measured, block, KIND_OF.get(measure, reading))
            for target, values in targets.items():
                wanted = values_of_images(measured, values, rows)
                yield relation(block, reading, measure, target, rows[measure], wanted)

    return with_holm(each())


def partial_correlation(block, reading, measure, target, x, y, held: np.ndarray) -> Relation | None:
    """The correlation of what is left of two ranks after a linear fit to the columns of `held`."""
    n, lost = held.shape
    if not (np.isfinite(x).all() and np.isfinite(y).all()) or n - lost < 8:
        return None
    ranks = np.column_stack([stats.rankdata(x), stats.rankdata(y)])
    left = ranks - held @ np.linalg.lstsq(held, ranks, rcond=None)[0]
    sizes = np.linalg.norm(left, axis=0)
    if (sizes <= 1e-9 * np.linalg.norm(ranks, axis=0)).any():
        return None
    return Relation(block, reading, measure, target, float(left[:, 0] @ left[:, 1] / sizes.prod()), n, lost - 1)


def holm(chances) -> list[float]:
    """p-values corrected for being many (Holm 1979): the k-th smallest of n times n - k + 1, never decreasing."""
    chances = np.asarray(chances, dtype=float)
    order = np.argsort(chances)
    corrected = np.empty(len(chances))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(chances[order] * np.arange(len(chances), 0, -1)))
    return corrected.tolist()


def with_holm(rows: Iterable) -> list:
    """Components or relations with their p-values corrected for being so many; what is None is left out."""
    rows = [row for row in rows if row is not None]
    return [dataclasses.replace(row, holm=p) for row, p in zip(rows, holm([row.p for row in rows]), strict=True)]


# ---- What was measured, and what of it is in the record ----


@dataclasses.dataclass(frozen=True)
class Component:
    """How much of a measure's variance over the images of one block is between labels, by an analysis of variance.

    f       mean square between labels over that within them
    labels  how many there are, each with as many images
    n       images in all
    holm    p as one of many tests
    """

    block: str
    reading: str
    measure: str
    f: float
    labels: int
    n: int
    holm: float = float("nan")

    @property
    def freedom(self) -> tuple[int, int]:
        return self.labels - 1, self.n - self.labels

    @property
    def p(self) -> float:
        return float(stats.f.sf(self.f, *self.freedom))

    def share(self, level: float = LEVEL) -> Estimate:
        """The variance component of labels over its sum with that of images, with its exact interval.

        Groups are taken for drawn at random (Searle, Casella and McCulloch, Variance Components, 1992, 3.6). Below 0
        where labels differ less than chance has it.
        """
        tails = 0.5 + level / 2, 0.5 - level / 2
        ratios = self.f / np.array([1.0, *stats.f.ppf(tails, *self.freedom)])
        value, low, high = ((ratios - 1.0) / (ratios + self.n / self.labels - 1.0)).tolist()
        return Estimate(value, low, high, n=self.n)


@dataclasses.dataclass(frozen=True)
class Order:
    """The rank correlation of the blocks' means of a measure at some inputs with those at test images.

    n  blocks
    """

    input: str
    measure: str
    r: float
    n: int


@dataclasses.dataclass(frozen=True)
class Fit:
    """A ResNet and an ODE-net after so many rounds: mean squared errors, and distances (rms) of predictions."""

    rounds: int
    seed: int
    loss_resnet: float
    loss_ode: float
    between_fits: float
    residual_to_flow: float  # the ResNet to the exact flow of its own field
    flow_to_residual: float  # the ODE-net to the ResNet of its own field
    evaluations: float  # of the field, by the ODE-net, at the end
    scales: tuple[tuple[float, float], ...]  # (h rho, distance of residual steps and flow) of the scaled field
    curves: tuple[tuple[float, ...], ...] = ()  # seed 0: (x, outputs of the ResNet, of the ODE-net) at points (x, 0)


class Everything(NamedTuple):
    """All shipped networks: about the run (date, source, data set, images), and a row per network and block."""

    about: dict
    rows: list[dict]


NO_NETWORKS = Everything({}, [])


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What the rules judge and the page shows; empty where nothing was measured."""

    measured: Measured = NOTHING  # the spectra of the network looked at
    others: tuple[Measured, ...] = ()  # those of further networks of the user's
    inner: tuple[str, ...] = ()  # the blocks that keep the shape
    label_names: tuple[str, ...] = ()  # of the data set
    untrained: tuple[dict, ...] = ()  # rows of untrained networks of the paper's geometry
    everything: Everything = NO_NETWORKS  # the run over all shipped networks
    networks: tuple[dict, ...] = ()  # rows that are judged: those of all shipped networks, or of the user's own
    components: tuple[Component, ...] = ()
    resamples: int = 200  # draws that intervals of shares of variance come from
    relations: tuple[Relation, ...] = ()  # correlations with accuracy and loss
    targets: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)  # flips, margin, growth of every image
    turned: tuple[Relation, ...] = ()  # correlations with these targets
    errors: tuple[Relation, ...] = ()  # correlations with Euler's error, image by image within each block
    inputs: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)  # tables of branches at other inputs
    orders: tuple[Order, ...] = ()  # whether blocks keep their order at these
    accuracies: dict[str, float] = dataclasses.field(default_factory=dict)  # with a block's exact flow in its place
    precision: tuple[dict, ...] = ()  # how far single precision can be trusted
    clouds: dict[str, dict] = dataclasses.field(default_factory=dict)  # by reading: eigenvalues at the first test image
    trained: tuple[dict, ...] = ()  # a small network through its training
    looks: int = 0  # images of each look at it
    geometry: tuple[dict, ...] = ()  # a network of the paper's geometry through its training
    depths: tuple[dict, ...] = ()  # networks of several depths
    swapped: tuple[dict, ...] = ()  # learnt step sizes and constants in their place
    fits: tuple[Fit, ...] = ()  # ResNets and ODE-nets on random points
    earlier: tuple[Fit, ...] = ()  # those of the record
    solved: tuple[dict, ...] = ()  # networks on the digits under two schemes
    about: dict = dataclasses.field(default_factory=dict)  # of the record that `best_of` has added
    tables: dict[str, list[dict]] = dataclasses.field(default_factory=dict)  # of that record, by name

    @property
    def blocks(self) -> tuple[str, ...]:
        """The names of all blocks of the network looked at."""
        return self.measured.blocks

    @property
    def last(self) -> list[str]:
        """The blocks of the last stage that keep the shape."""
        return last_stage(self.inner)


RECORDED = {
    "components": Component, "relations": Relation, "turned": Relation, "errors": Relation, "orders": Order,
    "fits": Fit,
}  # fmt: skip
TABLES = (  # of a run with --ship: those that are shown again, and the evidence that rules judge
    "by_block", "readings", "activity", "variance", "precision", "inputs", "flows", "depths", "tolerances", "swapped",
    *(f"evidence: {name}" for name in RECORDED),
)  # fmt: skip


def best_of(run: Evidence, record: Evidence) -> Evidence:
    """Of each kind what is of the more images, reading by reading; what only one of them has is taken from it."""
    better: dict[str, Any] = {
        name: most_images(getattr(run, name), getattr(record, name))
        for name in ("components", "relations", "turned", "errors")
    }
    orders = {(order.input, order.measure): order for order in (*run.orders, *record.orders)}
    either: dict[str, Any] = {
        name: getattr(run, name) or getattr(record, name) for name in ("depths", "swapped", "solved", "about", "tables")
    }
    return dataclasses.replace(
        run, **better, **either, earlier=(*run.earlier, *record.fits), orders=tuple(orders.values())
    )


def most_images(rows: tuple, others: tuple) -> tuple:
    """Of each reading the rows of the tuple in which its blocks have more images."""
    chosen: list = []
    for reading in dict.fromkeys(row.reading for row in (*rows, *others)):
        pair = [[row for row in some if row.reading == reading] for some in (rows, others)]
        chosen += max(pair, key=lambda some: min((row.n for row in some), default=0))
    return tuple(chosen)


def of_most_images(rows: Sequence) -> tuple[str, list]:
    """The reading whose blocks have the most images at least, slices first, and its rows."""
    readings = sorted({row.reading for row in rows}, key=("slices", "residual", "block").index)
    least = {reading: min(row.n for row in rows if row.reading == reading) for reading in readings}
    reading = max(readings, key=least.__getitem__, default="")
    return reading, [row for row in rows if row.reading == reading]


def record_of(dataset: str) -> Path:
    """Where the last large run of the study is; it takes hours, and a quick one shows its own tables beside it."""
    return SHIPPED / f"full-{dataset}.jsonl"


def write_record(about: dict, tables: dict[str, list[dict]], evidence: Evidence, path: Path) -> None:
    """One line about the run, then one for each row: the name of its table and its cells.

    about     network, digest of its weights and so on; date and source are added
    tables    rows by table, of which TABLES are kept
    evidence  what the rules judge, which is kept, too
    """
    rows = {f"evidence: {name}": list(map(dataclasses.asdict, getattr(evidence, name))) for name in RECORDED}
    about = {"date": today(), **source(measured=ROOMS)} | about
    write_lines(path, [about, *([name, shorten(row)] for name in TABLES for row in (tables | rows).get(name, ()))])


def write_lines(path: Path, lines: Iterable) -> None:
    """A file with a line of JSON each."""
    with replacing(path) as unfinished, unfinished.open("w") as file:
        for line in lines:
            file.write(json.dumps(as_json(line), allow_nan=False, separators=(",", ":")) + "\n")


def shorten(row: dict) -> dict:
    """The row with numbers of five significant digits."""
    return {
        name: rounded(value) if isinstance(value, float) and math.isfinite(value) else value
        for name, value in row.items()
    }


def rounded(value, digits: int = 5) -> float:
    return float(f"{float(value):.{digits}g}")


def read_record(path: Path) -> Evidence | None:
    """What `write_record` has written; None where there is no such file."""
    if not path.is_file():
        return None
    about, *lines = (json.loads(line) for line in path.read_text().splitlines())
    tables: dict[str, list[dict]] = {}
    for name, row in lines:
        tables.setdefault(name, []).append(with_nan(row))
    recorded: dict[str, Any] = {
        name: tuple(kind(**row) for row in tables.get(f"evidence: {name}", ())) for name, kind in RECORDED.items()
    }
    depths, swapped, solved = (tuple(tables.get(name, ())) for name in ("depths", "swapped", "tolerances"))
    return Evidence(**recorded, depths=depths, swapped=swapped, solved=solved, about=about, tables=tables)


def with_nan(row: dict) -> dict:
    """A row as JSON has it with NaN where it has nothing."""
    return {name: math.nan if cell is None else cell for name, cell in row.items()}


def keep_rows(path: Path | None, make) -> list[dict]:
    """The rows that an earlier run has left in a file; else those that `make` returns, which are then left there."""
    if path is None:
        return make()
    if not path.is_file():
        rows = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        write_rows(path, rows)
    return [with_nan(row) for row in json.loads(path.read_text())]


def write_rows(path: Path, rows: list[dict]) -> None:
    with replacing(path) as unfinished:
        unfinished.write_text(json.dumps(as_json(rows)))


def today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def digest_of(net) -> str:
    """Twelve hexadecimal digits that name the network's weights."""
    total = hashlib.sha256()
    for name, tensor in sorted(net.state_dict().items()):
        total.update(name.encode() + tensor.cpu().numpy().tobytes())
    return total.hexdigest()[:12]


# ---- Words and cells that the exhibits share ----


def in_words(finding: Finding, blocks: Sequence[str] = ()) -> Finding:
    """The finding with measures and readings called as in the figures, and the named blocks by their number."""
    words = IN_WORDS | {name: f"block {number}" for number, name in enumerate(blocks, 1)}
    names = "|".join(map(re.escape, words))
    return dataclasses.replace(finding, words=re.sub(rf"\b({names})\b", lambda name: words[name[1]], finding.words))


def readable(rows: Iterable[dict], blocks: Sequence[str] = ()) -> list[dict]:
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


def relation_rows(related: Iterable[Relation], blocks: Sequence[str]) -> list[dict]:
    """Correlations with their intervals, p-values alone and corrected."""
    cells = (({"target": row.target, "Spearman": interval_text(row.estimate(), "+.2f")}, row) for row in related)
    return readable([case_row(row, numbers) for numbers, row in cells], blocks)


def case_row(row, numbers: dict) -> dict:
    """What was computed of one measure of one block: its numbers between what it is of and how certain it is."""
    about = {"block": row.block, "reading": row.reading, "measure": row.measure}
    return about | numbers | {"p": row.p, "p, Holm": row.holm, "n": row.n}


def name_reading(words: str) -> str:
    """The reading that a table calls so."""
    return next((name for name in READINGS if READING_WORDS.get(name, name) == words), "")
