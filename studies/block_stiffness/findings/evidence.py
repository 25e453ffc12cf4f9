"""The evidence that the rules judge: of a run, of the record that comes with the study, and the best of both.

A quick run looks at 20 images, the record at 100 to 400, `slices_alone` at 3,400. A page has one verdict on a
claim, that of the best evidence there is; beside it stands what the run alone would have said.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from studies.block_stiffness import analysis, measures
from studies.block_stiffness.ode_nets import Fit
from studies.block_stiffness.report import tables
from studies.block_stiffness.untrained import Printed, beside_the_tables

CALLED = {"stiffness_index": "S", "negative": "the percentage"}  # the paper's two measures, in sentences


class Order(NamedTuple):
    """The rank correlation of the blocks' means of a measure at some inputs with those at test images.

    n  blocks
    """

    input: str
    measure: str
    r: float
    n: int


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What the rules are given.

    printed     untrained networks beside the tables of the paper
    networks    rows of every network looked at, as `every_network` has them
    slices      Spearman's correlation, and its p, of depth and the percentage of slices; None where slices are left out
    components  variance components of labels
    label_orders  rows that say whether networks order the labels alike
    relations   correlations with accuracy and loss
    turned      correlations with flipped answers, margins and the growth of a perturbation
    errors      correlations with Euler's error, image by image within each block
    orders      whether blocks keep their order at other inputs
    fits        ResNets and ODE-nets on random points
    solved      rows of networks on the digits under two schemes
    """

    printed: Printed | None = None
    networks: tuple[dict, ...] = ()
    slices: tuple[float, float] | None = None
    components: tuple[analysis.Component, ...] = ()
    label_orders: tuple[dict, ...] = ()
    relations: tuple[analysis.Relation, ...] = ()
    turned: tuple[analysis.Relation, ...] = ()
    errors: tuple[analysis.Relation, ...] = ()
    orders: tuple[Order, ...] = ()
    fits: tuple[Fit, ...] = ()
    solved: tuple[dict, ...] = ()


KINDS = {
    "components": analysis.Component, "relations": analysis.Relation, "turned": analysis.Relation,
    "errors": analysis.Relation, "orders": Order, "fits": Fit,
}  # fmt: skip


def of_run(found: measures.Measured, told: dict, inner: list[str], own: bool) -> Evidence:
    """The evidence of a run.

    found  the spectra of the network looked at
    told   what `gathering` and the trainings have computed, by its names
    inner  the blocks that keep the shape
    own    whether the network is somebody's own; then shipped networks are no evidence about it
    """
    everything = told["everything"]
    rows = rows_of_network(found, inner) if own or everything is None else everything.rows
    return Evidence(
        printed=beside_the_tables(told["untrained"], tables.agreeing_counts()),
        networks=tuple(rows),
        slices=analysis.slice_relation(found) if len(measures.rows_of(found, found.blocks[0], "slices")) else None,
        components=tuple(told["components"]),
        label_orders=tuple(told["label_orders"]),
        relations=tuple(told["related"]),
        turned=tuple(told["turned"]),
        errors=tuple(told["errors"]),
        orders=tuple(orders_of(found, told["inputs"], len(inner))),
        fits=tuple(told["fits"]),
        solved=tuple(told["tolerances"]),
    )


def rows_of_network(found: measures.Measured, inner: list[str]) -> list[dict]:
    """One network as rows of `every_network`: numbers of each block over the images looked at."""
    return [
        {"network": found.name, "controller": "", "block": found.blocks.index(block) + 1, "stage": stage_of(block)}
        | {
            measure: float(np.median(known))
            for measure in ("stiffness_index", "negative", "min_re", "step_error")
            if len(known := known_values(found, block, measure))
        }
        for block in inner
    ]


def known_values(found: measures.Measured, block: str, measure: str):
    values = measures.rows_of(found, block, measures.KIND_OF.get(measure, "residual"))[measure]
    return values[values == values]  # without NaN


def stage_of(block: str) -> int:
    return int(block.split(".")[1])


def orders_of(found: measures.Measured, inputs: dict, blocks: int) -> Iterable[Order]:
    """Between halves of the test images, and between test images and other inputs."""
    for name in ("residual", "block"):
        for measure in tables.ENDS:
            r = analysis.correlate_halves(found, name, measure)
            yield Order(f"halves of the test images, {tables.READING_WORDS[name]}", measure, r, blocks)
    for row in tables.input_rows(inputs)[1:]:
        for measure in tables.ENDS:
            yield Order(row["input"], measure, row[f"order of {measure}"], blocks)


def of_record(kept: tuple[dict, dict[str, list[dict]]] | None) -> Evidence:
    """The evidence in the record that comes with the study, None where there is none of the network."""
    if kept is None:
        return Evidence()
    rows = kept[1]
    found: dict[str, Any] = {
        name: tuple(kind(**row) for row in rows.get(f"evidence: {name}", ())) for name, kind in KINDS.items()
    }
    return Evidence(**found, solved=tuple(rows.get("tolerances", ())))


def to_record(found: Evidence) -> dict[str, list[dict]]:
    """The evidence as tables of the record."""
    return {f"evidence: {name}": [as_row(one) for one in getattr(found, name)] for name in KINDS}


def as_row(one) -> dict:
    return dataclasses.asdict(one) if dataclasses.is_dataclass(one) and not isinstance(one, type) else one._asdict()


def best_of(run: Evidence, kept: Evidence) -> Evidence:
    """Of each kind what is of the more images, reading by reading; what only one of them has is taken from it."""
    better: dict[str, Any] = {
        name: most_images(getattr(run, name), getattr(kept, name))
        for name in ("components", "relations", "turned", "errors")
    }
    fits = {(fit.rounds, fit.seed): fit for fit in (*kept.fits, *run.fits)}
    orders = {(one.input, one.measure): one for one in (*run.orders, *kept.orders)}
    return dataclasses.replace(
        run, **better, fits=tuple(fits.values()), orders=tuple(orders.values()), solved=run.solved or kept.solved
    )


def most_images(one: tuple, other: tuple) -> tuple:
    """Of each reading the rows of the tuple in which its blocks have more images."""
    chosen: list = []
    for reading in dict.fromkeys(row.reading for row in (*one, *other)):
        pair = [[row for row in rows if row.reading == reading] for rows in (one, other)]
        chosen += max(pair, key=lambda rows: min((row.n for row in rows), default=0))
    return tuple(chosen)
