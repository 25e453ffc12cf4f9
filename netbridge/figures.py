"""The figures of netbridge's results, each into axes that are given: indices along depth, gates, bounds, attention."""

import numpy as np

from odelab.arrays import to_numpy
from odelab.plot import style

DEPTH = "block (lines: where a stage begins)"
DEGREES = np.linspace(0.0, 1.0, 41)  # of stiffness, M1 and M2


def draw_depth(record, axes):
    """Draw the index of a record along depth into axes: the median over the images, and the middle half of them."""
    draw_indices([record], axes)


def draw_indices(records, axes):
    """Draw the indices of several records of one network along depth into axes."""
    for colour, record in zip(style.COLOURS, records, strict=False):
        draw_band(record.nsi, axes, color=colour, label=f"by the {record.of}")
    mark_stages(records[0], axes)
    axes.set(xlabel=DEPTH, ylabel="NSI")
    axes.legend()


def draw_step_sizes(record, axes):
    """Draw the step sizes of a record along depth into axes."""
    if record.step_sizes is None:
        raise ValueError("nothing is known of the step sizes of this network.")
    draw_band(record.step_sizes, axes, color=style.COLOURS[0])
    axes.axhline(1.0, color=style.GREY, linewidth=0.8)
    mark_stages(record, axes)
    axes.set(xlabel=DEPTH, ylabel="step size")


def draw_band(values, axes, **look):
    """Draw the median over the images of each block's values, and the middle half."""
    known = np.isfinite(values).all(axis=0)
    low, middle, high = np.full((3, values.shape[1]), np.nan)
    if known.any():
        low[known], middle[known], high[known] = np.quantile(values[:, known], (0.25, 0.5, 0.75), axis=0)
    places = np.arange(1, values.shape[1] + 1)
    axes.fill_between(places, low, high, color=look["color"], alpha=0.15, linewidth=0)
    axes.plot(places, middle, "o-", markersize=3, **look)


def mark_stages(record, axes):
    """Draw a line where each stage begins."""
    for start in np.flatnonzero(record.first):
        axes.axvline(start + 0.5, color=style.GREY, linewidth=0.5)


def draw_images(record, axes):
    """Draw the index of every image at every block into axes, as a map."""
    shown = axes.imshow(record.nsi, aspect="auto", interpolation="nearest", origin="lower")
    axes.figure.colorbar(shown, ax=axes, label="NSI")
    axes.set(xlabel="block, from 0", ylabel="image")
    axes.grid(False)


def draw_degrees(record, axes):
    """Draw into axes how many of the images are stiff to the degree (M1, M2), Eq. 5 of the paper."""
    share = record.delta(DEGREES[:, None], DEGREES[None, :])
    shown = axes.pcolormesh(DEGREES, DEGREES, 100.0 * np.asarray(share), vmin=0.0, vmax=100.0, rasterized=True)
    axes.figure.colorbar(shown, ax=axes, label="images, %")
    axes.set(xlabel="$M_2$", ylabel="$M_1$")
    axes.grid(False)


def draw_norms(runs, axes):
    """Draw the size of the states of a traced network along depth into axes: the median over the images."""
    start = 0
    for stage in runs:
        sizes = np.linalg.norm(stage.u.reshape(*stage.u.shape[:2], -1), axis=2)
        axes.plot(start + np.arange(len(sizes)), np.median(sizes, axis=1), "o-", markersize=3, color=style.COLOURS[0])
        start += len(sizes) - 1
    axes.set(xlabel="blocks behind the state", ylabel="norm of the state", yscale="log")


def draw_reading(reading, axes):
    """Draw the index and the step size of every block at one moment into axes."""
    for colour, values, words in zip(style.COLOURS, (reading.nsi, reading.gates), ("NSI", "step size"), strict=False):
        axes.plot(np.arange(1, len(values) + 1), list(values.values()), "o-", markersize=3, color=colour, label=words)
    axes.set(xlabel="block")
    axes.legend()


def draw_gates(gates, axes):
    """Draw the step sizes of a residual step into axes: channels by their mean, and the middle half of the images."""
    values = to_numpy(gates.h)
    values = values.reshape(len(values), -1)
    order = np.argsort(values.mean(axis=0), kind="stable")
    draw_band(values[:, order], axes, color=style.COLOURS[0])
    axes.set(xlabel="channel, by its mean", ylabel="step size")
    axes.set_title(gates.name, loc="left")


def draw_attention(found, axes):
    """Draw the mean attention over images and heads into axes: a row for each query."""
    shown = axes.imshow(found.mean.mean(axis=0), interpolation="nearest")
    axes.figure.colorbar(shown, ax=axes, label="attention")
    axes.set(xlabel="token attended to", ylabel="token")
    axes.set_title(found.name, loc="left")
    axes.grid(False)


def draw_growth(found, axes):
    """Draw the growth of perturbations along depth into axes: the bound, and what was measured."""
    places = np.arange(1, len(found.names) + 1)
    for values, colour, words in ((found.bound, 1, "bound"), (found.measured, 0, "measured")):
        axes.semilogy(places, values, "o-", markersize=3, color=style.COLOURS[colour], label=words)
    axes.set(xlabel="block", ylabel="growth of a perturbation")
    axes.set_title("proved" if found.proved else "not proved: step sizes depend on the image", loc="left")
    axes.legend()


def draw_slices(found, axes):
    """Draw the eigenvalues of the slices of an unflattened Jacobian into axes."""
    values = found.values.ravel()
    axes.axvline(0.0, color=style.GREY, linewidth=0.6)
    axes.plot(values.real, values.imag, ".", markersize=2, rasterized=True)
    axes.set(xlabel=r"Re $\lambda$ of slices", ylabel=r"Im $\lambda$")


def draw_accuracies(listed, axes):
    """Draw the accuracies of shipped networks into axes, by data set and controller."""
    names = sorted({(one.dataset, one.controller) for one in listed})
    for one in listed:
        axes.plot([100 * one.test_accuracy], [names.index((one.dataset, one.controller))], ".", color=style.COLOURS[0])
    axes.set_yticks(range(len(names)), [f"{dataset}, {controller}" for dataset, controller in names], fontsize=5)
    axes.set(xlabel="test accuracy, %")
