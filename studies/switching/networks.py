"""Residual networks by the same ratio: how fast the modes of a block are beside how fast its state moves.

A block is one Euler step of size 1 on u' = h f(u). `nb.block_time_scales` gives its ratio, and
`nb.steps_at_equal_error` the operational truth: steps of Euler's method over those of the linearly implicit one at
equal error, with linear algebra free of charge, so that a block with a ratio of steps below 1 is not stiff whatever the
solver.
"""

import json
from pathlib import Path

import numpy as np

from netbridge.files import replacing
from studies.lab.report.terminal import show_progress

ERROR = 0.1  # of a block's own step, at which the two methods are compared
LADDER = (1, 2, 4, 8, 16, 32, 64)
FIRST_TRUTHS = 1  # images at which the truth is measured, of networks that get one


def measure_networks(wanted: list[str], truths: int, count: int, folder: Path, fresh: bool = False) -> list[dict]:
    """Time scales of every block of shipped networks, one row per block and image; kept in `folder` network by network.

    wanted  names of shipped networks of one data set
    truths  of so many of them the truth is measured, too
    count   test images
    """
    folder.mkdir(parents=True, exist_ok=True)
    told = []
    for i, name in enumerate(wanted):
        path = folder / f"network {name.replace('/', ' ')}.json"
        options = {"images": count, "truth": i < truths, "error": ERROR, "ladder": list(LADDER)}
        kept = json.loads(path.read_text()) if path.is_file() and not fresh else {}
        if kept.get("options") != options:
            kept = {"options": options, "rows": look_at(name, count, i < truths)}
            with replacing(path) as unfinished:
                unfinished.write_text(json.dumps(kept))
            show_progress(f"{name}: {len(kept['rows'])} rows")
        told += kept["rows"]
    return told


def look_at(name: str, count: int, truth: bool) -> list[dict]:
    """The rows of one network."""
    import netbridge as nb
    from netbridge import data
    from studies.lab.stiffness import prepare

    about = next(one for one in nb.pretrained() if one.name == name)
    net = nb.pretrained(name).eval()
    images = data.load(about.dataset, None)
    states = nb.block_states(net, prepare(net, images, images.test_images[:count]))
    rows = []
    for number, (block, state) in enumerate(states.items()):
        module = net.get_submodule(block)
        try:
            scales = nb.block_time_scales(module, state)
        except ValueError:  # it changes the shape: no eigenvalues, and no step of a differential equation
            continue
        steps = np.full((len(state), 2), np.nan)
        if truth:
            some = state[:FIRST_TRUTHS]
            steps[: len(some)] = nb.steps_at_equal_error(module, some, ERROR, LADDER)
        for i, row in enumerate(scales):
            rows.append(
                {"network": name, "controller": about.controller, "block": number, "image": i}
                | {key: float(row[key]) for key in scales.dtype.fields or ()}
                | {"explicit steps": float(steps[i, 0]), "implicit steps": float(steps[i, 1])}
            )
    return rows


def shipped_names(dataset: str) -> list[str]:
    """Shipped residual networks of a data set but for the deep ones; one of each controller first."""
    from studies.lab.networks import shipped_resnets

    found = sorted(shipped_resnets(dataset), key=lambda one: (one.seed, one.controller != "constant", one.name))
    return [one.name for one in found]
