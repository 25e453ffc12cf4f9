"""Work against precision, the figure by which methods are compared."""

import numpy as np

from odelab.plot import style

MARKERS = "osD^v<>pXP"
COSTS = ("evaluations", "seconds", "steps")


def work_precision(data, *, against=("evaluations", "seconds")):
    """Draw error against cost for each method and law, both axes logarithmic.

    data     what `odelab.work_precision` returned
    against  the costs to draw, one panel each: one or several of "evaluations", "seconds", "steps"

    Returns a matplotlib Figure. Raises ValueError for another cost.

    >>> import odelab as ol
    >>> problem = ol.problems.rigid_body().replace(t_span=(0.0, 5.0))
    >>> table = ol.work_precision(problem, ol.DOPRI5, rtol=(1e-3, 1e-5), engine="python")
    >>> figure = ol.plot.work_precision(table, against=("evaluations",))
    >>> figure.axes[0].get_xlabel()
    'evaluations'
    """
    against = (against,) if isinstance(against, str) else tuple(against)
    unknown = [cost for cost in against if cost not in COSTS]
    if unknown or not against:
        raise ValueError(f"`against` must name costs among {list(COSTS)}, got {unknown[0] if unknown else against!r}.")
    with style.figure(1, len(against), height=3.6, sharey=True) as (drawing, axes):
        for axis, cost in zip(axes[0], against, strict=True):
            draw_curves(data, axis, cost)
        axes[0, 0].set_ylabel("relative error at the end")
        axes[0, 0].set_title(f"{data.problem} (truth: {data.truth})", loc="left")
        drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return drawing


def draw_cost(data, axes, *, of="evaluations"):
    """Draw error against one cost into axes."""
    if of not in COSTS:
        raise ValueError(f"`of` must be one of {list(COSTS)}, got {of!r}.")
    draw_curves(data, axes, of)
    axes.set_ylabel("relative error at the end")
    axes.set_title(f"{data.problem} (truth: {data.truth})", loc="left")
    axes.legend()


def draw_curves(data, axes, cost):
    """A curve of each method and law."""
    for number, ((method, law), rows) in enumerate(data.curves().items()):
        good = [row for row in rows if np.isfinite(row.error)]
        axes.plot(
            [getattr(row, cost) for row in good],
            [max(row.error, 1e-16) for row in good],
            marker=MARKERS[number % len(MARKERS)],
            markersize=3.5,
            label=f"{method}, {law}" if law else method,
        )
    axes.set(xscale="log", yscale="log", xlabel=cost)
