"""A run as a picture: the solution above, the step sizes below."""

import numpy as np

from odelab.plot import style
from odelab.runs.trajectory import require_states

FEW = 4  # components whose legend fits beside the title
NAMED = 8  # components drawn as lines; more are shown as an image
POINTS = 2000


def trajectory(sol, *, components=None, log_time=False):
    """Draw a run: the solution over time above, the step sizes below.

    sol         the Trajectory, which must hold its states
    components  the numbers of the components to draw; by default all of up to 8, and an image of all of more
    log_time    whether time has a logarithmic axis, for kinetics whose fast phase would otherwise be a line; False

    Returns a matplotlib Figure; `.savefig(path)` writes it.

    >>> import odelab as ol
    >>> sol = ol.solve(ol.problems.van_der_pol(mu=5.0), ol.DOPRI5, engine="python")
    >>> figure = ol.plot.trajectory(sol, components=[0])
    >>> figure.axes[1].get_ylabel()
    'step size h'
    """
    with style.figure(2, sharex=True, height=4.6, gridspec_kw={"height_ratios": (3, 2)}) as (drawing, axes):
        above, below = axes[:, 0]
        draw_solution(sol, above, components=components, log_time=log_time)
        draw_steps(sol, below)
        above.set_xlabel("")
    return drawing


def draw_solution(sol, axes, *, components=None, log_time=False):
    """Draw the components of a run over time into axes; an image of more than eight."""
    t, u = fine(sol, log_time)
    chosen = range(u.shape[1]) if components is None else components
    if components is None and u.shape[1] > NAMED:
        image = axes.pcolormesh(t, np.arange(u.shape[1]), u.T, shading="nearest", rasterized=True)
        axes.figure.colorbar(image, ax=axes, label="u")
        axes.set_ylabel("component")
        axes.grid(False)
    else:
        for i in chosen:
            axes.plot(t, u[:, i], label=f"$u_{{{i}}}$")
        axes.set_ylabel("u")
        if len(chosen) > FEW:
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        elif len(chosen) > 1:
            axes.legend(ncols=len(chosen), loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2)
    axes.set_xlabel("t")
    if log_time:
        axes.set_xscale("log")
    pair = sol.method.name if sol.method is not None else ""
    name = sol.problem.name if sol.problem is not None else ""
    axes.set_title(f"{name} with {pair}: {sol.steps} steps, {sol.rejected} rejected", loc="left")


def draw_phase(sol, axes, *, components=(0, 1)):
    """Draw one component of a run over another into axes."""
    if np.shape(sol.end_u)[0] < 2:
        raise ValueError(f"a phase plane needs two components, and {sol.problem.name} has one.")
    first, second = components
    _, u = fine(sol)
    axes.plot(u[:, first], u[:, second])
    axes.plot(*u[0, [first, second]], "o", color=style.GREY, markersize=4)
    axes.set(xlabel=f"$u_{{{first}}}$", ylabel=f"$u_{{{second}}}$")
    axes.set_title(f"{sol.problem.name}: it begins at the dot", loc="left")


def fine(sol, log_time=False):
    """Enough points for a smooth line: the dense output where there is one."""
    require_states(sol, "figures")
    knots = np.asarray(sol.step_t)
    if sol.interpolant is None or len(knots) > POINTS:
        keep = np.unique(np.linspace(0, len(knots) - 1, 4 * POINTS).astype(int))
        return knots[keep], np.asarray(sol.step_u)[keep]
    if log_time:
        first = abs(knots[1] - knots[0]) * 1e-2
        extra = knots[0] + np.geomspace(first, abs(knots[-1] - knots[0]), POINTS) * np.sign(knots[-1] - knots[0])
        extra[-1] = knots[-1]
    else:
        extra = np.linspace(knots[0], knots[-1], POINTS)
    t = np.unique(np.concatenate([knots, extra]))
    return t, sol(t)


def draw_steps(sol, axes, *, colour=style.COLOURS[0]):
    """Draw every accepted step of a run into axes, as a horizontal piece at its size."""
    sizes = np.abs(np.asarray(sol.h))
    knots = np.asarray(sol.step_t)
    order = slice(None) if len(knots) < 2 or knots[-1] > knots[0] else slice(None, None, -1)
    axes.stairs(sizes[order], knots[order], baseline=None, color=colour)
    axes.set_yscale("log")
    axes.set(xlabel="t", ylabel="step size h")
    if len(sizes) and sizes.max() < 1.5 * sizes.min():  # fixed steps: room around the line, or the axis has no ticks
        axes.set_ylim(sizes.min() / 3, sizes.max() * 3)
