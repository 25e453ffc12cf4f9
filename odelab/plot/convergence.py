"""Error against step size, the figure that shows the order of a method."""

import numpy as np

from odelab.experiments.observed_order import ObservedOrder
from odelab.plot import style
from odelab.plot.cost import MARKERS


def orders(found, *, ax=None):
    """Draw error against step size, both axes logarithmic, and for each method a line of its observed order.

    found   what `odelab.observed_order` returned, or a dictionary of several by the names that the legend shows
    ax      axes of matplotlib to draw into; by default those of a new figure

    Returns a matplotlib Figure. Raises TypeError for anything else.

    >>> import odelab as ol
    >>> problem = ol.problems.rigid_body().replace(t_span=(0.0, 4.0))
    >>> found = {method.name: ol.observed_order(method, problem, engine="python") for method in (ol.HEUN, ol.RK4)}
    >>> figure = ol.plot.orders(found)
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['HEUN, order 2.0', 'RK4, order 4.0']
    """
    named = {"": found} if isinstance(found, ObservedOrder) else found
    if not (isinstance(named, dict) and named and all(isinstance(one, ObservedOrder) for one in named.values())):
        raise TypeError(
            f"`found` must be what `odelab.observed_order` returns, or a dictionary of such by names, got {found!r}."
        )
    with style.panel(ax) as (drawing, axis):
        for number, (name, one) in enumerate(named.items()):
            colour = style.COLOURS[number % len(style.COLOURS)]
            label = f"{name}, order {one.order:.1f}" if name else f"order {one.order:.1f}"
            axis.plot(one.h, one.error, MARKERS[number % len(MARKERS)], markersize=4, color=colour, label=label)
            finite = np.flatnonzero(np.isfinite(one.error))  # those of runs that blew up are not
            middle = finite[len(finite) // 2]
            line = one.error[middle] * (one.h / one.h[middle]) ** one.order
            axis.plot(one.h, line, "--", linewidth=0.8, color=colour)
        lowest = min(float(one.error[one.error > 0.0].min()) for one in named.values())
        highest = max(float(one.error[np.isfinite(one.error)].max()) for one in named.values())
        axis.set(xscale="log", yscale="log", xlabel="step size h", ylabel="error at the end")
        axis.set_ylim(0.3 * lowest, 3.0 * highest)
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return drawing
