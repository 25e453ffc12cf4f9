"""Untrained networks of the paper's geometry in three readings, beside what its tables print.

Slices explain the tables only where the other readings do not. So the same networks, ResNet-18 and -34 of three seeds,
a quarter as wide so that all eigenvalues can be found, are looked at as slices, as whole blocks and as branches.
"""

import dataclasses

import numpy as np
import torch

import netbridge as nb
from studies.block_stiffness import paper
from studies.block_stiffness.measures import READINGS
from studies.lab.stiffness import prepare

SEEDS = (0, 1, 2)
WIDTHS = {"smoke": (4, 8, 16, 32)}
QUARTER = (16, 32, 64, 128)
SLICE_ROWS = 300  # output units that slices look at


def measure(data, preset: str, work: dict) -> list[dict]:
    """A row per depth, seed, reading and block: share of negative real parts and S, at the first test image."""
    images = data.test_images[:1]
    if images.shape[-1] != 32:
        images = torch.nn.functional.interpolate(images.float(), size=(32, 32)).to(torch.uint8)
    made = []
    for depth in paper.BLOCKS:
        for seed in SEEDS:
            torch.manual_seed(seed)
            widths = WIDTHS.get(preset, QUARTER)
            net = nb.resnet(depth, len(data.names), in_channels=images.shape[1], stem="cifar-pooled", widths=widths)
            seen = prepare(net.eval(), data, images)
            for reading in READINGS:
                table = nb.block_survey(net, seen, reading, values="full", rows=SLICE_ROWS, **work)
                about = {"depth": depth, "seed": seed, "reading": reading}
                made += [
                    about
                    | {"block": net.block_names.index(row["block"]) + 1}
                    | {"negative": 100 * float(row["negative"]), "S": float(row["stiffness_index"])}
                    for row in table
                ]
    return made


@dataclasses.dataclass(frozen=True, eq=False)
class Printed:
    """What the paper prints of its blocks and what untrained networks have there, (blocks of all depths,).

    depth, square   the network, and whether the block keeps the shape and so has eigenvalues
    percent, index  Tables 2 and 5
    ours            {reading: percentages}, means over seeds; NaN where the block has no eigenvalues
    slices          S of slices, means over seeds
    seeds           how many networks of each depth
    counts          how many printed counts of eigenvalues are those of slices, and how many there are
    """

    depth: np.ndarray
    square: np.ndarray
    percent: np.ndarray
    index: np.ndarray
    ours: dict[str, np.ndarray]
    slices: np.ndarray
    seeds: int
    counts: tuple[int, int]


def beside_the_tables(rows: list[dict], counts: tuple[int, int]) -> Printed:
    """The rows of `measure` as columns, with the paper's own."""
    blocks = [(depth, number) for depth in paper.BLOCKS for number in range(1, len(paper.PERCENT[depth]) + 1)]

    def mean(reading: str, measure: str) -> np.ndarray:
        cells: dict[tuple, list[float]] = {block: [] for block in blocks}
        for row in rows:
            if row["reading"] == reading:
                cells[row["depth"], row["block"]].append(row[measure])
        return np.array([np.mean(cells[block]) if cells[block] else np.nan for block in blocks])

    shapes = [shape for depth in paper.BLOCKS for shape in paper.shapes(depth)]
    return Printed(
        depth=np.array([depth for depth, _ in blocks]),
        square=np.array([shape.square for shape in shapes]),
        percent=np.concatenate([paper.PERCENT[depth] for depth in paper.BLOCKS]),
        index=np.concatenate([paper.INDEX[depth] for depth in paper.BLOCKS]),
        ours={reading: mean(reading, "negative") for reading in READINGS},
        slices=mean("slices", "S"),
        seeds=len({row["seed"] for row in rows}),
        counts=counts,
    )
