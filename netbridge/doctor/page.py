"""What the page of a network's diagnosis shows: indices, limits and step sizes along depth, and the worst spectrum."""

import numpy as np

from netbridge import figures
from odelab.doctor.sheet import image, table
from odelab.plot import style

STABLE, BEYOND = style.COLOURS[:2]


def sections(found):
    """(title, caption, what is shown as HTML) of each part of the page of a diagnosis."""
    over_images = "Median over the images, and the middle half of them."
    yield "Stiffness along depth", over_images, image(found.plot("depth"), "NSI of every block")
    if found.limits:
        limit = (
            "The largest step of Euler's method at which no mode grows that decays faster than it turns. A block is "
            "one step of size 1: below the line it is a step beyond the limit."
        )
        yield "Euler's limit", limit, image(found.plot("stable_steps"), "stable steps")
        edge = (
            "The edge of the spectrum of the block that is nearest to its limit or farthest beyond it. A step of 1 "
            "shrinks the modes within the circle; those outside of it on the left grow where the equation would damp "
            "them."
        )
        yield "The spectrum that decides", edge, image(found.plot("spectrum"), "eigenvalues and Euler's circle")
    sizes = found.records.step_sizes
    if sizes is not None and not np.allclose(sizes, 1.0):
        yield "Step sizes along depth", over_images, image(found.plot("step_sizes"), "step sizes of every block")
    columns = found.table()
    rows = [[str(row[0]), *(f"{value:.3g}" for value in row[1:])] for row in zip(*columns.values(), strict=True)]
    yield "Every block", "", table(list(columns), rows)


def draw_depth(found, axes):
    """Draw both indices along the depth of a network into axes."""
    figures.draw_indices(found.records, axes)


def draw_step_sizes(found, axes):
    """Draw the step sizes along the depth of a network into axes."""
    figures.draw_step_sizes(found.records, axes)


def draw_stable_steps(found, axes):
    """Draw the largest stable step of every block into axes."""
    if not found.limits:
        raise ValueError("no stable step was computed; `not_measured` says why.")
    steps = np.array([found.stable_step.get(name, np.nan) for name in found.records.names])
    places, stiff = np.arange(1, len(steps) + 1), steps < 1.0
    if found.with_ones:
        alone = [
            found.with_ones[name].stable_step if name in found.with_ones else np.nan for name in found.records.names
        ]
        axes.plot(places, alone, "_", markersize=9, color=style.GREY, label="with a step size of 1")
    for chosen, colour, words in ((~stiff, STABLE, "within the limit"), (stiff, BEYOND, "beyond the limit")):
        if np.isfinite(steps[chosen]).any():
            axes.plot(places[chosen], steps[chosen], "o", markersize=4, color=colour, label=words)
    axes.axhline(1.0, color=style.GREY, linewidth=0.8)
    figures.mark_stages(found.records, axes)
    axes.set(yscale="log", xlabel=figures.DEPTH, ylabel="largest stable step")
    if axes.get_legend_handles_labels()[0]:
        axes.legend()


def draw_spectrum(found, axes):
    """Draw the edge of the spectrum of the block with the smallest limit, and Euler's circle, into axes."""
    if not found.limits:
        raise ValueError("no spectrum was computed; `not_measured` says why.")
    block = min(found.stable_step, key=found.stable_step.__getitem__)
    values = np.asarray(found.limits[block].values, complex)
    grows = (values.real < 0.0) & (np.abs(1.0 + values) > 1.0)
    angle = np.linspace(0.0, 2.0 * np.pi, 200)
    axes.fill(np.cos(angle) - 1.0, np.sin(angle), color="#EBEBEB", zorder=0)
    axes.axvline(0.0, color=style.GREY, linewidth=0.6)
    axes.plot(values[~grows].real, values[~grows].imag, ".", markersize=5, color=STABLE)
    axes.plot(
        values[grows].real, values[grows].imag, ".", markersize=5, color=BEYOND, label="damped, and grows in the step"
    )
    axes.set(xlabel=r"Re $h\lambda$", ylabel=r"Im $h\lambda$", aspect="equal")
    axes.set_title(block, loc="left")
    if grows.any():
        axes.legend()
