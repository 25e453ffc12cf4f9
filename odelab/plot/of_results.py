"""Small figures of single results: eigenvalues, participation, premises, errors by components, ends of ensembles."""

import numpy as np

from odelab.arrays import to_numpy
from odelab.plot import style

SHOWN = 24  # components drawn as bars
HOLDS, FAILS = style.COLOURS[0], style.COLOURS[1]


def draw_eigenvalues(found, axes):
    """Draw eigenvalues, or the singular values of a map that is not square, into axes."""
    if found.singular_values is not None:
        axes.semilogy(np.arange(1, found.n + 1), found.singular_values, ".-", markersize=4)
        axes.set(xlabel="number", ylabel="singular value")
        return
    values, words = (found.extremes, "the ends of the spectrum") if found.values is None else (found.values, "")
    axes.axvline(0.0, color=style.GREY, linewidth=0.6)
    axes.plot(values.real, values.imag, ".", markersize=5)
    axes.set(xlabel=r"Re $\lambda$", ylabel=r"Im $\lambda$")
    axes.set_title(f"SI = {found.si:.4g}, spectral radius {found.spectral_radius:.4g}  {words}".rstrip(), loc="left")


def draw_participation(found, axes):
    """Draw how much of each component takes part in the fast modes into axes."""
    draw_shares(found.groups[0], axes)
    axes.set_title(str(found), loc="left")


def draw_shares(group, axes):
    """Draw how much of each component takes part in a group of modes into axes."""
    order = np.argsort(-group.share, kind="stable")[:SHOWN]
    names = [f"u[{i}]" if group.names is None else group.names[i] for i in order]
    axes.bar(names, 100 * group.share[order])
    axes.set(ylabel="share in the modes, %")
    axes.set_title(str(group), loc="left")


def draw_premises(found, axes):
    """Draw every premise of a theorem into axes: its value over its threshold; of a batch, how often it holds."""
    premises = list(found.premises.values())
    rows = np.arange(len(premises))[::-1]
    if np.ndim(found.holds) > 0:
        axes.barh(rows, [100 * to_numpy(one.holds).mean() for one in premises], color=HOLDS)
        axes.set_xlabel("systems for which it holds, %")
    else:
        for row, one in zip(rows, premises, strict=True):
            ratio = abs(one.value) / one.threshold if one.threshold else np.nan
            axes.plot([max(ratio, 1e-16)], [row], "o", color=HOLDS if one.holds else FAILS)
        axes.axvline(1.0, color=style.GREY, linewidth=0.6)
        axes.set(xscale="log", xlabel="value over threshold; blue where it holds")
    axes.set_yticks(rows, [f"{one.name} ({one.relation})" for one in premises])


def draw_errors(found, axes):
    """Draw the relative error of each component at the end of a run into axes."""
    sizes = np.maximum(found.per_component, 1e-18)
    axes.semilogy(np.arange(len(sizes)), sizes, "o", markersize=4)
    axes.set(xlabel="component", ylabel="relative error at the end")
    axes.set_title("known" if found.known else "not known", loc="left")


def draw_exponents(found, axes):
    """Draw Lyapunov exponents with their intervals into axes."""
    numbers = np.arange(1, len(found.exponents) + 1)
    axes.axhline(0.0, color=style.GREY, linewidth=0.6)
    axes.errorbar(numbers, found.exponents, found.half_widths, fmt="o", capsize=3)
    axes.set(xlabel="number", ylabel="exponent", xticks=numbers)


def draw_ends(runs, axes, *, components=(0, 1)):
    """Draw where the runs of an ensemble ended into axes: one component over another, or a histogram."""
    u = runs.end_u
    good = np.ones(len(runs), bool)
    good[runs.failed] = False
    if u.shape[1] == 1:
        axes.hist(u[good, 0], bins="auto")
        axes.set(xlabel="$u_0$ at the end", ylabel="runs")
    else:
        first, second = components
        axes.plot(u[good, first], u[good, second], ".", markersize=3)
        axes.set(xlabel=f"$u_{{{first}}}$ at the end", ylabel=f"$u_{{{second}}}$ at the end")
    axes.set_title(f"{len(runs)} runs of {runs.problem.name}, {len(runs.failed)} failed", loc="left")


def draw_numbers_of_steps(runs, axes):
    """Draw how many steps the runs of an ensemble took into axes, as a histogram."""
    axes.hist(runs.steps, bins="auto")
    axes.set(xlabel="accepted steps", ylabel="runs")
    axes.set_title(f"{len(runs)} runs of {runs.problem.name}", loc="left")


def draw_fan(runs, axes, *, component=0, levels=(0.05, 0.25, 0.5, 0.75, 0.95)):
    """Draw quantiles of one component over the wanted times of an ensemble into axes."""
    if runs.t_eval is None or np.ndim(runs.t_eval) != 1:
        raise ValueError("quantiles over time need one `t_eval` for all runs; solve the ensemble with one.")
    states = runs.u[:, :, component]
    reached = ~np.isnan(states).all(axis=0)  # by a run at least
    t, quantiles = np.asarray(runs.t_eval)[reached], np.nanquantile(states[:, reached], levels, axis=0)
    for k in range(len(levels) // 2):
        axes.fill_between(t, quantiles[k], quantiles[-1 - k], color=HOLDS, alpha=0.18, linewidth=0)
    axes.plot(t, quantiles[len(levels) // 2], color=HOLDS)
    axes.set(xlabel="t", ylabel=f"$u_{{{component}}}$, quantiles {levels[0]:g} to {levels[-1]:g}")
