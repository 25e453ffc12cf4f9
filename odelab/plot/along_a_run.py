"""Stiffness along a run in one figure: the solution, the steps and what limited them, the measures."""

import numpy as np

from odelab.experiments import along_a_run
from odelab.plot import style
from odelab.plot.solution import NAMED, fine

REASONS = {"accuracy": style.COLOURS[0], "stability": style.COLOURS[1], "fixed": style.GREY}


def indicators(ind, sol, *, components=None, log_time=False):
    """Draw a run and its stiffness: the solution, step sizes coloured by what limited them, and the measures.

    ind         what `odelab.indicators` returned
    sol         the Trajectory it was made from
    components  the numbers of the components to draw; by default the first eight
    log_time    whether time has a logarithmic axis; False

    Returns a matplotlib Figure.

    >>> import odelab as ol
    >>> problem = ol.problems.van_der_pol(mu=5.0)
    >>> sol = ol.solve(problem, ol.DOPRI5, engine="python")
    >>> figure = ol.plot.indicators(ol.indicators(problem, sol, every=50), sol)
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['u', 'step size h', 'stiffness']
    """
    with style.figure(3, sharex=True, height=6.6, gridspec_kw={"height_ratios": (3, 2.5, 3.5)}) as (drawing, axes):
        solution, steps, measures = axes[:, 0]
        t, u = fine(sol, log_time)
        chosen = range(min(u.shape[1], NAMED)) if components is None else components
        for i in chosen:
            solution.plot(t, u[:, i], label=f"$u_{{{i}}}$")
        solution.set_ylabel("u")
        solution.legend(ncols=len(chosen), loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2)
        solution.set_title(f"{sol.problem.name} with {sol.method.name}", loc="left")
        draw_reasons(ind, steps)
        draw_measures(ind, measures)
        steps.set_xlabel("")
        if log_time:
            measures.set_xscale("log")
    return drawing


def draw_limited_by(sol, axes, **options):
    """Draw the steps of a run into axes, coloured by what limited them; options are those of `odelab.indicators`."""
    draw_reasons(along_a_run.indicators(sol.problem, sol, **options), axes)


def draw_reasons(ind, axes):
    """Draw step sizes into axes, coloured by what limited them."""
    for reason, colour in REASONS.items():
        chosen = ind.limited_by == reason
        if chosen.any():
            share = f"{reason}, {100 * chosen.mean():.0f} %"
            axes.plot(ind.t[chosen], np.abs(ind.h[chosen]), ".", markersize=3, color=colour, label=share)
    axes.set(yscale="log", xlabel="t", ylabel="step size h")
    axes.legend(title="limited by", loc="center left", bbox_to_anchor=(1.0, 0.5))


def draw_measures(ind, axes):
    """Draw the measures of stiffness along a run into axes."""
    at = ind.sampled
    lines = [
        (ind.t[at], ind.si[at], "SI", "-", 0),
        (ind.t, ind.sai, "SAI", "-", 1),
        (ind.t[at], ind.spectral_radius[at], r"$\rho(J)$", ":", 2),
        (ind.t[at], -ind.soderlind[at], r"$-s[J]$", "--", 3),
        (ind.t, ind.h_rho, r"$h\rho$", "-", 5),
    ]
    for t, values, label, dashes, colour in lines:
        positive = np.where(values > 0, values, np.nan)  # a gap where a sign change leaves nothing to draw
        if np.isfinite(positive).any():
            axes.plot(t, positive, dashes, color=style.COLOURS[colour], label=label)
    if np.isfinite(ind.boundary):
        axes.axhline(ind.boundary, color=style.COLOURS[5], linewidth=0.7, linestyle=(0, (1, 3)))
        axes.annotate(
            "boundary", (1.0, ind.boundary), xycoords=("axes fraction", "data"), fontsize=7, ha="right", va="bottom"
        )
    axes.set(yscale="log", xlabel="t", ylabel="stiffness")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
