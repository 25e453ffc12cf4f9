"""Constants put in the place of learnt step sizes: does a block's spectrum move as the size of the step says?

The eigenvalues of h f' are h times those of f' where h is one number. A learnt gate is no number but one a channel and
image; in its place every block gets the mean of what the gate was, and the network its own states under it.
"""

import numpy as np

import netbridge as nb
from studies.block_stiffness.every_network import networks_of
from studies.block_stiffness.measures import answers, inner_blocks, nested_images
from studies.lab.stiffness import prepare, step_sizes_of

ENDS = ("max_re", "min_re", "spectral_radius")


def with_mean_gates(net, images):
    """The network with every controller in the place of which a constant can stand: its mean step size at the images.

    Returns the new network and the mean step size of every block, by its name.
    """
    steps = nb.trace(net, images)
    means = dict(zip(steps.names, step_sizes_of(steps).mean(0), strict=True))
    new = net
    for place, (name, block) in enumerate(zip(net.block_names, net.blocks, strict=True)):
        if block.controller.name != "constant":
            new = nb.swap(new, nb.controller("constant", value=float(means[name])), on=[place])
    return new.eval(), means


def swapped_rows(data, images: int, answered: int, work: dict) -> list[dict]:
    """A row per block of every shipped network of seed 0 whose gates multiply its branches.

    images    test images at which the spectra are taken
    answered  test images on which both networks' accuracy is taken
    """
    chosen = nested_images(data.test_labels.numpy(), -(-images // len(data.names)))[:images]
    rows = []
    for about in networks_of(data.name):
        net = nb.pretrained(about.name).eval()
        if about.seed or about.controller == "constant" or any(b.controller.modifies_branch for b in net.blocks):
            continue
        seen = prepare(net, data, data.test_images[chosen])
        other, means = with_mean_gates(net, seen)
        inner = [name for stage in range(len(net.stages)) for name in inner_blocks(net, stage)]
        values = "extremes" if seen.shape[-1] > 16 else "full"
        gated, plain = (
            nb.block_survey(one, seen, ("increment", "error"), inner, values, "frozen", **work) for one in (net, other)
        )
        scores = [100 * float(answers(one, data, np.arange(answered))[1].mean()) for one in (net, other)]
        branch = nb.block_survey(net, seen, "residual", inner, values, **work)
        for name in inner:
            row = {"controller": about.controller, "block": net.block_names.index(name) + 1}
            row |= {"h, mean": float(means[name]), "accuracy, %": scores[0], "accuracy, h constant, %": scores[1]}
            for end in ENDS:
                row[end] = mean_of(gated, name, "increment", end)
                row[f"{end}, h constant"] = mean_of(plain, name, "increment", end)
                row[f"{end}, h times branch"] = float(means[name]) * mean_of(branch, name, "residual", end)
            for which, table in (("error", gated), ("error, h constant", plain)):
                row[which] = mean_of(table, name, "error", "step_error")
            rows.append(row)
    return rows


def mean_of(table, block: str, kind: str, measure: str) -> float:
    return float(table[(table["block"] == block) & (table["kind"] == kind)][measure].mean())


def summary_rows(rows: list[dict]) -> list[dict]:
    """A row per controller: how well h times the branch's spectrum foretells that of gated and of constant steps."""
    result = []
    for controller in dict.fromkeys(row["controller"] for row in rows):
        blocks = [row for row in rows if row["controller"] == controller]
        line = {"controller": controller, "blocks": len(blocks)}
        line |= {"accuracy, %": blocks[0]["accuracy, %"], "h constant, %": blocks[0]["accuracy, h constant, %"]}
        for end, name in (("min_re", "min Re"), ("spectral_radius", "h rho")):
            line[f"{name}, gated / foretold"] = ratio(blocks, end, f"{end}, h times branch")
            line[f"{name}, constant / foretold"] = ratio(blocks, f"{end}, h constant", f"{end}, h times branch")
        line["error, constant / gated"] = ratio(blocks, "error, h constant", "error")
        result.append(line)
    return result


def ratio(rows: list[dict], above: str, below: str) -> float:
    """The median over blocks."""
    return float(np.median([row[above] / row[below] for row in rows]))
