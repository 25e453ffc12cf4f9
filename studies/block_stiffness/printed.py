"""What the tables of Block-level Stiffness Analysis of Residual Networks print, and what follows from them.

Its numbers are eigenvalues of slices, as their counts say, and as untrained networks of its geometry say, ResNet-18 and
-34 of three seeds, a quarter as wide so that all eigenvalues can be found: looked at as slices, as whole blocks and as
branches, because slices explain the tables only where the other readings do not.
"""

import dataclasses
import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from scipy import special, stats

import netbridge as nb
from odelab.plot import style
from studies.block_stiffness.evidence import Evidence, correlation_interval
from studies.block_stiffness.measures import READINGS
from studies.lab.exhibits import Exhibit
from studies.lab.page import Page
from studies.lab.statistics import Estimate, interval_text, mean_over_networks
from studies.lab.stiffness import prepare
from studies.lab.verdicts import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    Finding,
    Verdict,
    Worlds,
    corrected,
    of_interval,
    of_parts,
    rule,
)

# Tables 2, 5 and 8: stiffness index and percentage of eigenvalues with negative real part, by block.
INDEX = {
    18: (-2.28, -5.12, -1.28, -4.04, -1.30, -4.94, -1.28, -12.99),
    34: (-3.34, -5.24, -5.91, -1.10, -6.00, -5.69, -5.29, -1.73, -14.56, -9.47, -10.46, -13.05, -11.26, -1.85, -13.59,
         -16.82),
}  # fmt: skip
PERCENT = {
    18: (2.82, 2.54, 1.96, 4.33, 4.35, 19.73, 22.65, 21.92),
    34: (3.10, 2.81, 2.78, 2.50, 4.78, 4.10, 5.15, 7.83, 11.91, 25.78, 30.69, 33.58, 34.13, 25.56, 25.39, 22.34),
}
OVERALL = {18: (-4.15, 10.04), 34: (-7.84, 15.15), 50: (-35.32, 31.96)}

# Tables 3, 6 and 9: the same by label.
INDEX_BY_LABEL = {
    18: (-4.31, -4.42, -4.02, -4.00, -4.02, -4.10, -4.07, -4.13, -4.15, -4.31),
    34: (-7.82, -7.77, -7.79, -7.88, -7.51, -7.98, -7.79, -8.00, -7.96, -7.84),
    50: (-31.28, -39.61, -32.26, -28.45, -33.27, -34.33, -39.56, -41.05, -37.34, -36.30),
}
PERCENT_BY_LABEL = {
    18: (10.46, 9.71, 10.31, 11.57, 9.80, 10.14, 9.53, 9.20, 9.67, 9.99),
    34: (15.94, 14.12, 15.69, 17.14, 15.31, 15.44, 14.58, 14.36, 14.49, 14.42),
    50: (31.91, 28.23, 32.79, 35.92, 34.14, 36.37, 27.23, 32.17, 27.77, 33.14),
}

# Tables 1, 4 and 7: correlation and p-value of (accuracy, index), (accuracy, percent), (loss, index), (loss, percent).
CORRELATIONS = {
    18: (
        (0.00, 0.83, -0.01, 0.67, 0.01, 0.76, 0.00, 0.87), (0.03, 0.06, -0.01, 0.45, -0.02, 0.19, 0.01, 0.45),
        (-0.01, 0.74, -0.06, 0.00, 0.02, 0.17, 0.06, 0.00), (-0.04, 0.01, -0.10, 0.00, 0.04, 0.03, 0.10, 0.00),
        (0.00, 0.97, -0.14, 0.00, 0.01, 0.68, 0.13, 0.00), (-0.09, 0.00, -0.38, 0.00, 0.08, 0.00, 0.36, 0.00),
        (-0.03, 0.08, -0.18, 0.00, 0.02, 0.34, 0.18, 0.00), (-0.23, 0.00, -0.36, 0.00, 0.21, 0.00, 0.34, 0.00),
    ),
    34: (
        (-0.07, 0.02, -0.01, 0.74, 0.05, 0.09, 0.00, 0.94), (0.02, 0.44, 0.01, 0.79, -0.03, 0.37, -0.01, 0.80),
        (-0.02, 0.42, 0.02, 0.56, 0.02, 0.53, -0.02, 0.54), (-0.01, 0.73, 0.03, 0.39, 0.00, 0.95, -0.02, 0.52),
        (-0.01, 0.82, -0.02, 0.48, -0.01, 0.82, 0.02, 0.59), (0.06, 0.03, 0.00, 0.94, -0.07, 0.03, 0.00, 0.89),
        (0.05, 0.09, -0.12, 0.00, -0.04, 0.17, 0.12, 0.00), (-0.07, 0.02, -0.22, 0.00, 0.04, 0.19, 0.23, 0.00),
        (-0.07, 0.03, -0.26, 0.00, 0.06, 0.05, 0.26, 0.00), (-0.17, 0.00, -0.32, 0.00, 0.17, 0.00, 0.31, 0.00),
        (-0.22, 0.00, -0.31, 0.00, 0.21, 0.00, 0.30, 0.00), (-0.11, 0.00, -0.23, 0.00, 0.10, 0.00, 0.22, 0.00),
        (0.05, 0.08, -0.21, 0.00, -0.05, 0.12, 0.21, 0.00), (0.04, 0.18, -0.05, 0.08, -0.02, 0.41, 0.08, 0.01),
        (-0.23, 0.00, -0.34, 0.00, 0.21, 0.00, 0.33, 0.00), (-0.20, 0.00, -0.38, 0.00, 0.18, 0.00, 0.35, 0.00),
    ),
    50: ((-0.27, 0.00, 0.20, 0.00, 0.25, 0.00, -0.15, 0.00),),
}  # fmt: skip
CORRELATIONS_OVERALL = {  # of Tables 1 and 4, over images and blocks
    18: (-0.01, 0.15, -0.07, 0.00, 0.01, 0.19, 0.07, 0.00),
    34: (-0.01, 0.11, -0.05, 0.00, 0.01, 0.13, 0.05, 0.00),
}

# Tables 10 and 11: elements of the Jacobian and what the paper calls its eigenvalues, by block.
MILLION = 1 << 20
ELEMENTS = {
    18: tuple(n * MILLION for n in (256, 256, 128, 64, 32, 16, 8, 4)),
    34: tuple(n * MILLION for n in (256, 256, 256, 128, 64, 64, 64, 32, 16, 16, 16, 16, 16, 8, 4, 4)),
}
EIGENVALUES = {
    18: tuple(n * MILLION for n in (16, 16, 8, 8, 4, 4, 2, 2)),
    34: tuple(n * MILLION for n in (16, 16, 16, 8, 8, 8, 8, 4, 4, 4, 4, 4, 4, 2, 2, 2)),
}


BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}  # a stage
BOTTLENECKS = {50: (3, 4, 6, 3)}  # a stage; of ResNet-50 the paper looks at the last block alone
CHANNELS, HEIGHT = 64, 16  # of the first stage: a 3x3 stem, then a max-pool


class Shape(NamedTuple):
    """A block of the paper's networks: channels and height of the maps that enter, of those that leave."""

    channels_in: int
    height_in: int
    channels_out: int
    height_out: int

    @property
    def elements(self) -> int:
        return self.channels_out * self.height_out**2 * self.channels_in * self.height_in**2

    @property
    def square(self) -> bool:
        return (self.channels_in, self.height_in) == (self.channels_out, self.height_out)

    @property
    def eigenvalues(self) -> int | None:
        """Of the Jacobian; None where it is not square."""
        return self.channels_in * self.height_in**2 if self.square else None


def shapes(depth: int) -> list[Shape]:
    """The blocks of the ResNet of this depth, in order."""
    blocks, channels, height = [], CHANNELS, HEIGHT
    for stage, count in enumerate(BLOCKS[depth]):
        for number in range(count):
            opens = stage > 0 and number == 0
            wider, lower = (2 * channels, height // 2) if opens else (channels, height)
            blocks.append(Shape(channels, height, wider, lower))
            channels, height = wider, lower
    return blocks


def depth_of(config: dict | None) -> int | None:
    """18, 34 or 50 where a network's settings have the blocks and channels of the paper's; None otherwise."""
    if config is None or tuple(config["widths"]) != tuple(CHANNELS * 2**stage for stage in range(4)):
        return None
    depths = BOTTLENECKS if config["bottleneck"] else BLOCKS
    return next((depth for depth, blocks in depths.items() if tuple(config["blocks"]) == blocks), None)


def printed_block(depth: int | None, number: int) -> tuple[float, float] | None:
    """Index and percentage that Tables 2, 5 and 8 print of a block, counted from 1; None where they print none."""
    if depth in INDEX:
        return INDEX[depth][number - 1], PERCENT[depth][number - 1]
    return OVERALL[depth] if depth in BOTTLENECKS and number == sum(BOTTLENECKS[depth]) else None


# ---- How many images the printed correlations allow ----


def sample_sizes(pairs, decimals: int = 2, largest: int = 20_000) -> tuple[int, int] | None:
    """The smallest and the largest number of images that rounded pairs (r, p) of a correlation allow, taken together.

    A correlation r over n images has p through Student's t; r and p are printed to `decimals`, so each pair allows a
    range of n. None where no n fits all pairs.
    """
    half = 0.5 * 10.0**-decimals
    low, high = 3, largest
    for r, p in pairs:
        sizes = [*range(low, high, max(1, (high - low) // 400)), high]
        fits = [n for n in sizes if is_reachable(abs(r), half, p, n)]
        if not fits:
            return None
        first, last = fits[0], fits[-1]
        while first > low and is_reachable(abs(r), half, p, first - 1):
            first -= 1
        while last < high and is_reachable(abs(r), half, p, last + 1):
            last += 1
        low, high = first, last
    return low, high


def is_reachable(r: float, half: float, p: float, n: int) -> bool:
    """Can a correlation that rounds to r have, over n images, a p-value that rounds to p?"""
    strongest, weakest = p_value(r + half, n), p_value(max(0.0, r - half), n)
    return strongest <= p + half and weakest >= p - half


def p_value(r: float, n: int) -> float:
    """The p-value of a correlation r over n pairs."""
    t = r * math.sqrt((n - 2) / max(1e-12, 1.0 - r * r))
    return float(2.0 * special.stdtr(n - 2, -t))  # Student's distribution; scipy.stats takes a hundred times as long


def sample_size_rows() -> list[dict]:
    rows = []
    for depth, columns in CORRELATIONS.items():
        pairs = [(row[i], row[i + 1]) for row in columns for i in (0, 2, 4, 6)]
        least, most = sample_sizes(pairs) or ("none fits", "none fits")
        about = {"network": f"ResNet-{depth}", "tests": len(pairs)}
        rows.append(about | {"images, at least": least, "images, at most": most})
    return rows


# ---- Tables 10 and 11: how many eigenvalues there are ----


def count_rows() -> list[dict]:
    """Tables 10 and 11 beside what the counts are, for all 24 blocks."""
    return [
        {
            "network": f"ResNet-{depth}", "block": number,
            "maps in": f"{shape.channels_in} x {shape.height_in} x {shape.height_in}", "elements, printed": elements,
            "elements": shape.elements, '"eigenvalues", printed': eigenvalues,
            "of slices": shape.elements // shape.height_in, "of the Jacobian": shape.eigenvalues or "none, not square",
        }
        for depth in BLOCKS
        for number, (shape, elements, eigenvalues) in enumerate(
            zip(shapes(depth), ELEMENTS[depth], EIGENVALUES[depth], strict=True), 1
        )
    ]  # fmt: skip


def agreeing_counts() -> tuple[int, int]:
    rows = count_rows()
    return sum(row['"eigenvalues", printed'] == row["of slices"] for row in rows), len(rows)


def show_counts(page: Page, evidence: Evidence):
    page.table(
        "counts",
        count_rows(),
        "Elements and eigenvalues of Jacobians",
        'The column "eigenvalues" of the paper is the elements divided by the height of the input in every row: the '
        "eigenvalues of the H x W slices of the Jacobian before it is flattened. A block that halves the map has a "
        "Jacobian that is not square, and no eigenvalues.",
    )
    page.table(
        "sample_sizes",
        sample_size_rows(),
        "How many images the printed correlations allow",
        "Each correlation and p-value, printed to two decimals, bounds the number of images; these numbers "
        "agree with all pairs of a printed table.",
    )


# ---- Tables 2 and 5 beside untrained networks in three readings ----

BLOCKS_PRINTED = [(depth, number) for depth in BLOCKS for number in range(1, len(PERCENT[depth]) + 1)]
SEEDS = (0, 1, 2)
QUARTER, NARROW = (16, 32, 64, 128), (4, 8, 16, 32)  # channels of each stage; the second of smoke runs
SLICE_ROWS = 300  # output units that slices look at
RIVALS = {"block": "the whole block", "residual": "the branch"}
ASKED = 2 + len(RIVALS)  # order, level against each rival, S
OPENINGS = "blocks that open a stage"
NOISE = 0.4  # of logarithms, between the print and slices of an untrained network, as they were measured
SHARE_OF_WINDOW = {16: (0.085, 0.160), 8: (0.293, 0.500), 4: (0.781, 1.000), 2: (1.000, 1.000)}


def measure_untrained(data, widths: tuple[int, ...], work: dict) -> list[dict]:
    """A row per depth, seed, reading and block: share of negative real parts and S, at the first test image."""
    images = data.test_images[:1]
    if images.shape[-1] != 32:
        images = torch.nn.functional.interpolate(images.float(), size=(32, 32)).to(torch.uint8)
    rows = []
    for depth in BLOCKS:
        for seed in SEEDS:
            torch.manual_seed(seed)
            net = nb.resnet(depth, len(data.names), in_channels=images.shape[1], stem="cifar-pooled", widths=widths)
            seen = prepare(net.eval(), data, images)
            for reading in READINGS:
                rows += [
                    {"depth": depth, "seed": seed, "reading": reading, "block": net.block_names.index(row["block"]) + 1}
                    | {"negative": 100 * float(row["negative"]), "S": float(row["stiffness_index"])}
                    for row in nb.block_survey(net, seen, reading, values="full", rows=SLICE_ROWS, **work)
                ]
    return rows


@dataclasses.dataclass(frozen=True, eq=False)
class Printed:
    """What the paper prints of its blocks and what untrained networks have there, (blocks of all depths,)."""

    depth: np.ndarray  # of the network
    square: np.ndarray  # does the block keep the shape, so that it has eigenvalues?
    percent: np.ndarray  # Tables 2 and 5
    index: np.ndarray
    ours: dict[str, np.ndarray]  # by reading, percentages, means over seeds; NaN where there are no eigenvalues
    slices: np.ndarray  # S of slices, means over seeds
    seeds: int  # how many networks of each depth
    counts: tuple[int, int]  # how many printed counts of eigenvalues are those of slices, and how many there are


def columns_of_blocks() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of every printed block: depth of its network, does it keep the shape, percentage and index."""
    depth = np.array([depth for depth, _ in BLOCKS_PRINTED])
    square = np.array([shape.square for size in BLOCKS for shape in shapes(size)])
    percent, index = (np.concatenate([table[size] for size in BLOCKS]) for table in (PERCENT, INDEX))
    return depth, square, percent, index


def beside_the_tables(rows: Iterable[dict]) -> Printed:
    """The rows of `measure_untrained` as columns, with the paper's own."""
    rows = list(rows)

    def mean(reading: str, measure: str) -> np.ndarray:
        cells: dict[tuple, list[float]] = {block: [] for block in BLOCKS_PRINTED}
        for row in rows:
            if row["reading"] == reading:
                cells[row["depth"], row["block"]].append(row[measure])
        return np.array([np.mean(cells[block]) if cells[block] else np.nan for block in BLOCKS_PRINTED])

    ours = {reading: mean(reading, "negative") for reading in READINGS}
    seeds = len({row["seed"] for row in rows})
    return Printed(*columns_of_blocks(), ours, mean("slices", "S"), seeds, agreeing_counts())


def of_counts(agreeing: int, total: int) -> Verdict:
    """Whether the printed counts are those of slices; nothing is drawn at random here."""
    return SUPPORTED if agreeing == total else CONTRADICTED if agreeing < total / 2 else UNDECIDED


def order_of(printed: Printed, ours: np.ndarray, theirs: np.ndarray, level: float) -> Estimate:
    """The rank correlation of two columns over the blocks, each network's ranks for themselves."""
    usable, ranks = np.isfinite(ours), []
    for column in (ours, theirs):
        by_network = [stats.rankdata(column[usable & (printed.depth == depth)]) for depth in np.unique(printed.depth)]
        ranks.append(np.concatenate([(rank - rank.mean()) / rank.std() for rank in by_network]))
    return correlation_interval(float(np.mean(ranks[0] * ranks[1])), int(usable.sum()), level)


def nearer(printed: Printed, rival: str, level: float) -> Estimate:
    """How much nearer slices are to the print than the rival reading, over the blocks that keep the shape.

    The distance is that of logarithms of the percentages, with one point added because whole blocks have 0 %.
    """
    apart = {
        name: np.abs(np.log1p(column) - np.log1p(printed.percent))[printed.square]
        for name, column in printed.ours.items()
    }
    return mean_over_networks(apart[rival] - apart["slices"], level)


def worlds_of_the_print(chance, effect: float, n: int) -> tuple:
    """The paper's columns and made-up readings; without an effect the print belongs to other blocks than slices, with
    its opposite to the branch."""
    order = np.arange(n)
    depth, square, percent, index = columns_of_blocks()
    if not effect:
        order = np.concatenate([chance.permutation(np.flatnonzero(depth == size)) for size in BLOCKS])
    slices, s = (column * np.exp(NOISE * chance.standard_normal(n)) for column in (percent, index))
    ours = {
        "slices": slices,
        "block": np.where(square, chance.uniform(0.0, 1.2, n), np.nan),
        "residual": np.where(square, chance.normal(25.0, 1.0, n), np.nan),
    }
    if effect < 0:
        ours |= {"residual": np.where(square, slices, np.nan), "slices": chance.uniform(80.0, 90.0, n)}
    return (Printed(depth, square, percent[order], index[order], ours, s, 3, (n, n)),)


@rule(
    "the printed numbers are eigenvalues of slices, not of block Jacobians (our claim)",
    "Tables 1-11",
    fixed="after the data: with the counts and, of one untrained ResNet-18, the percentages and S known, because by "
    "the percentages alone (a Pearson correlation above 0.9 with Table 2) nothing was asked of rival readings; by the "
    "old rule the verdict was supported",
    worlds=Worlds(
        worlds_of_the_print,
        24,
        "printed blocks",
        "slices that are within a factor of 1.5 of the print (without an effect: the print of other blocks)",
    ),
)
def judge_print(printed: Printed) -> tuple[Verdict, str]:
    """Supported where all printed counts are those of slices, and the percentages and S of the same untrained networks
    (ResNet-18 and -34, three seeds, a quarter as wide) say so in level, order and S: slices are certainly nearer to the
    printed percentages than the whole block and than the branch, over the blocks that keep the shape; their percentages
    certainly rise and fall with the printed ones over all blocks; and so does the logarithm of S. Contradicted where
    one of these certainly is the other way round, or half of the counts are not those of slices. The four intervals,
    over printed blocks, hold together."""
    level, agreeing, total = corrected(ASKED), *printed.counts
    order = order_of(printed, printed.ours["slices"], printed.percent, level)
    levels = {name: nearer(printed, name, level) for name in RIVALS}
    s = order_of(printed, np.log(np.abs(printed.slices)), np.log(np.abs(printed.index)), level)
    parts = [order, *levels.values(), s]
    verdict = of_parts([of_counts(agreeing, total), *map(of_interval, parts)])
    beyond = " and ".join(f"than {RIVALS[name]} by a factor of {factor_text(e)}" for name, e in levels.items())
    others = ", ".join(
        f"{words} {order_of(printed, printed.ours[name], printed.percent, level).value:+.2f}"
        for name, words in RIVALS.items()
    )
    shares = printed.ours["slices"] / printed.percent
    return verdict, (
        f"{agreeing} of {total} printed counts of eigenvalues are the elements of the Jacobian divided by the height "
        "of its input, which is what torch.linalg.eigvals gives for an unflattened Jacobian; this includes the "
        f"{(~printed.square).sum()} {OPENINGS}, which have no eigenvalues. {printed.seeds} untrained networks of "
        f"each depth: over the {printed.square.sum()} blocks that keep the shape their slices are nearer to the "
        f"printed percentages {beyond} (one point added to each); over all blocks their order is that of the print, "
        f"Spearman {interval_text(order, '+.2f')} ({others}), and that of S, {interval_text(s, '+.2f')}. In the "
        f"{OPENINGS} S is near -1: {means_of(printed.slices, ~printed.square)} here and "
        f"{means_of(printed.index, ~printed.square)} in print, elsewhere {means_of(printed.slices, printed.square)} "
        f"and {means_of(printed.index, printed.square)}. Single percentages differ by a factor of up to "
        f"{max(shares.max(), 1 / shares.min()):.1f}. This is reproduction by computation; what the authors ran is not "
        "known."
    )


def factor_text(e: Estimate) -> str:
    """The exponential of an estimate with its interval."""
    return interval_text(Estimate(*np.exp([e.value, e.low, e.high])), ".1f")


def means_of(values: np.ndarray, chosen: np.ndarray) -> str:
    return f"{values[chosen].mean():.1f}"


def judge_slices(evidence: Evidence) -> list[Finding]:
    if not evidence.untrained:
        return []
    return [judge_print(beside_the_tables(evidence.untrained))]


def show_untrained(page: Page, evidence: Evidence):
    page.table(
        "untrained",
        untrained_rows(evidence.untrained),
        "Untrained networks in three readings beside Tables 2 and 5",
        "The paper's geometry, a quarter as wide: a 3x3 stem, a max-pool, widths 16 to 128; random weights of three "
        "seeds, one test image, output units of slices sampled. Blocks that open a stage have slices alone.",
    )
    page.figure(
        draw_percentages(evidence.untrained),
        "percentages",
        "The printed percentages jump with the size of the input map. A slice has at most as many eigenvalues that "
        "are not zero as its rows and columns share inside the window of two convolutions; half of them are of "
        "either sign, and dead outputs have none. Grey: the two other readings. Hollow: blocks that change the shape.",
    )


def untrained_rows(rows: Iterable[dict]) -> list[dict]:
    """Untrained networks of the paper's geometry in three readings beside Tables 2 and 5, means over seeds."""
    rows = list(rows)
    ours, table = beside_the_tables(rows), []
    for place, (depth, number) in enumerate(BLOCKS_PRINTED):
        about = depth, number, "slices"
        percents = [row["negative"] for row in rows if (row["depth"], row["block"], row["reading"]) == about]
        whole, branch = (
            float(ours.ours[reading][place]) if ours.square[place] else "no eigenvalues" for reading in RIVALS
        )
        table.append({
            "network": f"ResNet-{depth}", "block": number, "%, paper": PERCENT[depth][number - 1],
            "%, slices": float(ours.ours["slices"][place]),
            "over seeds": f"{min(percents):.2f} to {max(percents):.2f}", "%, whole block": whole, "%, branch": branch,
            "S, paper": INDEX[depth][number - 1], "S, slices": float(ours.slices[place]),
        })  # fmt: skip
    return table


def draw_percentages(untrained: Iterable[dict]):
    """Percentages of Tables 2 and 5 against the size of the input map, beside three readings of untrained networks."""
    ours = beside_the_tables(untrained)
    sizes = sorted(SHARE_OF_WINDOW, reverse=True)
    groups: list[tuple] = [  # name, depth, percentages, mark, colour, and how far aside they stand
        (f"paper, ResNet-{depth}", depth, PERCENT[depth], "os"[number], style.COLOURS[number], number)
        for number, depth in enumerate(BLOCKS)
    ]
    looks = (("slices", "slices", "D", "black"), ("block", "whole block", "v", "#888888"))
    for place, (reading, words, mark, colour) in enumerate((*looks, ("residual", "branch", "^", "#888888")), 2):
        for depth in BLOCKS:
            name = f"{words}, untrained" if depth == 18 else ""
            groups.append((name, depth, ours.ours[reading][ours.depth == depth], mark, colour, place))
    with style.figure(height=3.8) as (drawing, axes):
        axis = axes[0, 0]
        for name, depth, percents, mark, colour, place in groups:
            for square in (True, False):
                some = [(s, p) for s, p in zip(shapes(depth), percents, strict=True) if s.square == square]
                x = [sizes.index(shape.height_in) + 0.12 * (place - 2) for shape, _ in some]
                fill = {"color": colour, "markerfacecolor": colour if square else "white"}
                fill |= {"label": name} if square and name else {}
                axis.plot(x, [p for _, p in some], mark, markersize=4, linestyle="", **fill)
        for opens, line in ((0, "--"), (1, ":")):
            bound = [50.0 * SHARE_OF_WINDOW[size][opens] for size in sizes]
            label = f"half of what a window can fill{', blocks that open a stage (hollow)' if opens else ''}"
            axis.plot(range(len(sizes)), bound, line, color="#666666", linewidth=1, label=label)
        axis.set_xticks(range(len(sizes)), [f"{size} x {size}" for size in sizes])
        axis.set(
            xlabel="size of the block's input map", ylabel="eigenvalues with negative real part, %", ylim=(0, None)
        )
        drawing.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return drawing


EXHIBITS = (Exhibit("What the printed numbers are (Tables 10 and 11)", show_counts, judge_slices),)
