"""Statistics of the block study: shares of variance, correlations within blocks, and what they allow to say.

Nothing is pooled over blocks: their means lie several standard deviations apart, so a pooled correlation is one of
blocks and not of images.
"""

import dataclasses
import itertools
from typing import NamedTuple

import numpy as np
from scipy import stats

from studies.block_stiffness.measures import KIND_OF, READINGS, Measured, rows_of, shared_columns, values_of_images
from studies.lab.statistics import LEVEL, Estimate, estimate, rank_correlation


class Share(NamedTuple):
    """Shares of a measure's variance over images: of the block, of the label, of both together, of the image."""

    measure: str
    reading: str
    block: Estimate
    label: Estimate
    both: Estimate
    image: Estimate


def variance_shares(found: Measured, reading: str, measure: str, blocks: list[str], resamples: int) -> Share | None:
    """Sums of squares of a balanced two-way layout, blocks by labels, with intervals over images within labels."""
    layers = []
    for block in blocks:
        rows = rows_of(found, block, reading)
        labels = values_of_images(found, found.labels, rows)
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
    return Share(measure, reading, *map(estimate, squares(values), np.transpose(draws)))


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
        each = self.n / self.labels
        tails = 0.5 + level / 2, 0.5 - level / 2
        ratios = self.f / np.array([1.0, *stats.f.ppf(tails, *self.freedom)])
        value, low, high = ((ratios - 1.0) / (ratios + each - 1.0)).tolist()
        return Estimate(value, low, high, n=self.n)


def label_components(found: Measured, readings, measures, blocks) -> list[Component]:
    """The share of variance between labels of every measure in every block, whatever the block's own mean; Holm."""
    made = []
    for reading, measure, block in itertools.product(readings, measures, blocks):
        rows = rows_of(found, block, reading)
        one = component(block, reading, measure, rows[measure], values_of_images(found, found.labels, rows))
        made += [] if one is None else [one]
    return with_holm(made)


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
    z = float(np.mean(np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12))))
    value, freedom = float(np.tanh(z)), n - 3 - held
    if freedom < 2 or not np.isfinite(z):
        return Estimate(value, np.nan, np.nan, n=n)
    half = stats.norm.ppf(0.5 + level / 2) * np.sqrt((1.0 + 0.5 * value**2) / freedom)
    return Estimate(value, float(np.tanh(z - half)), float(np.tanh(z + half)), n=n)


def relations(found: Measured, targets: dict[str, np.ndarray], measures, readings, blocks) -> list[Relation]:
    """Spearman's correlation of every measure with every target, image by image within each block; Holm over all."""
    made = []
    for block in blocks:
        for reading in readings:
            for measure in measures:
                rows = rows_of(found, block, KIND_OF.get(measure, reading))
                for target, values in targets.items():
                    wanted = values_of_images(found, values, rows)
                    one = relation(block, reading, measure, target, rows[measure], wanted)
                    if one is not None:
                        made.append(one)
    return with_holm(made)


def partial_relations(found: Measured, targets: dict[str, np.ndarray], measures, readings, blocks) -> list[Relation]:
    """The same correlations with something held: within labels, and beside the share of live outputs and NSI.

    Ranks less their label's mean, and what of the ranks is left of a linear fit to the ranks of `alive` and `nsi`; the
    target's name says which. Holm over all.
    """
    made = []
    for block in blocks:
        others = rows_of(found, block, "error")
        for reading in readings:
            rows = rows_of(found, block, reading)
            labels = values_of_images(found, found.labels, rows)
            place = np.searchsorted(others["image"], rows["image"]).clip(max=max(0, len(others) - 1))
            known = len(others) > 0 and bool((others["image"][place] == rows["image"]).all())
            held = {"within labels": (labels[:, None] == np.unique(labels)).astype(float)}
            if known:
                beside = np.stack([stats.rankdata(others[name][place]) for name in ("alive", "nsi")], 1)
                held["beside activity and NSI"] = np.column_stack([np.ones(len(rows)), beside])
            for (target, values), (how, known_part) in itertools.product(targets.items(), held.items()):
                wanted = values_of_images(found, values, rows)
                for measure in measures:
                    one = partial_correlation(
                        block, reading, measure, f"{target}, {how}", rows[measure], wanted, known_part
                    )
                    if one is not None:
                        made.append(one)
    return with_holm(made)


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
    r = float(left[:, 0] @ left[:, 1] / sizes.prod())
    return Relation(block, reading, measure, target, r, n, lost - 1)


def relation(block, reading, measure, target, x, y) -> Relation | None:
    """None where fewer than eight images have both, or nothing varies."""
    usable = np.isfinite(x) & np.isfinite(y)
    if usable.sum() < 8 or np.ptp(x[usable]) == 0.0 or np.ptp(y[usable]) == 0.0:
        return None
    ranks = [stats.rankdata(values[usable]) for values in (x, y)]
    r = float(np.corrcoef(*ranks)[0, 1])
    return Relation(block, reading, measure, target, r, int(usable.sum()))


def holm(chances) -> list[float]:
    """p-values corrected for being many (Holm 1979): the k-th smallest of n times n - k + 1, never decreasing."""
    chances = np.asarray(chances, dtype=float)
    order = np.argsort(chances)
    scaled = chances[order] * np.arange(len(chances), 0, -1)
    corrected = np.empty(len(chances))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return [float(p) for p in corrected]


def with_holm(made: list) -> list:
    """Components or relations with their p-values corrected for being so many."""
    return [dataclasses.replace(one, holm=p) for one, p in zip(made, holm([one.p for one in made]), strict=True)]


def error_relations(found: Measured, measures, blocks, target: str = "step_error") -> list[Relation]:
    """The measures of the branch against Euler's error (or "nsi") at the same images, within each block; Holm."""
    made = []
    for block in blocks:
        for measure in dict.fromkeys([*measures, "nsi", "alive"]):
            if measure != target:
                _, x, e = shared_columns(found, block, measure, target)
                one = relation(block, "residual", measure, target, x, e)
                made += [] if one is None else [one]
    return with_holm(made)


def activity_relations(found: Measured, blocks) -> list[Relation]:
    """The share of negative real parts against that of live outputs, in every reading, within each block; Holm."""
    made = []
    for block, reading in itertools.product(blocks, READINGS):
        _, x, live = shared_columns(found, block, "negative", "alive", reading)
        one = relation(block, reading, "negative", "alive", x, live)
        made += [] if one is None else [one]
    return with_holm(made)


def slice_relation(found: Measured) -> tuple[float, float]:
    """Spearman's correlation, and its p, of a block's number and the percentage of its slices' eigenvalues."""
    means = [float(rows_of(found, block, "slices")["negative"].mean()) for block in found.blocks]
    return rank_correlation(np.arange(len(means)), means, stats.spearmanr)


def correlate_halves(found: Measured, reading: str, measure: str) -> float:
    """Rank correlation of block means over the first and the second half of the images."""
    columns = [rows_of(found, block, reading)[measure] for block in found.blocks]
    halves = [np.split(values, [len(values) // 2]) for values in columns if len(values) > 1]
    means = np.array([[half.mean() for half in pair] for pair in halves]).reshape(-1, 2)
    return rank_correlation(means[:, 0], means[:, 1], stats.spearmanr)[0] if np.isfinite(means).all() else float("nan")
