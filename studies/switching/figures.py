"""The figures of `switching`."""

import numpy as np

from odelab.plot import style
from studies.switching.analysis import INDICES, Lab

RANGE = 3.0  # decades of R on either side of 1 that the colours span
SHOWN = ("SAI", "SI", "SI/SAI", "rho_ng/SAI", "rho_ng |f|/|f'|", "h_acc/h_stab")
LEAST = 1e-8  # smaller values of an index are drawn here
GROUPS = {"problem": 0, "solution": 1, "ratio": 2, "with tolerance": 3, "of the run": 4}


def marked(eps: float) -> str:
    return f"$10^{{{round(np.log10(eps))}}}$"


def truth_map(lab: Lab, eps: float, loose: float, sharp: float):
    """Every window of every problem, coloured by R; a dot where the class changes between two errors."""
    ratio = np.log10(lab.truth(eps))
    changed = (lab.truth(loose) > 1.0) != (lab.truth(sharp) > 1.0)
    rows = len(lab.problems)
    with style.figure(height=0.155 * rows + 1.0) as (drawing, axes):
        plane = axes[0, 0]
        row_of = {problem["name"]: i for i, problem in enumerate(lab.problems)}
        for name, i in row_of.items():
            mask = lab.name == name
            edges = np.linspace(0.0, 1.0, mask.sum() + 1)
            cells = np.clip(ratio[mask], -RANGE, RANGE)[None, :]
            image = plane.pcolormesh(edges, [i - 0.45, i + 0.45], cells, cmap="RdBu_r", vmin=-RANGE, vmax=RANGE)
            middle = 0.5 * (edges[1:] + edges[:-1])[changed[mask]]
            plane.plot(middle, np.full(len(middle), i), "k.", markersize=2.0)
        plane.set_yticks(range(rows), list(row_of), fontsize=6)
        plane.set_ylim(rows - 0.4, -0.6)
        plane.set_xlabel("windows in order of time")
        plane.set_xticks([])
        plane.grid(False)
        bar = drawing.colorbar(image, ax=plane, shrink=0.6, aspect=30)
        bar.set_label(f"$\\log_{{10}} R$ at an error of {marked(eps)}")
    return drawing


def ratio_against_indices(lab: Lab, eps: float, rankings):
    """R against six indices, a point per window, a colour per kind of family."""
    ratio, values = lab.truth(eps), lab.values(eps)
    families = list(dict.fromkeys(lab.family.tolist()))
    with style.figure(2, 3, height=4.2, sharey=True) as (drawing, axes):
        for axis, name in zip(axes.flat, SHOWN, strict=True):
            for i, family in enumerate(families):
                mask = (lab.family == family) & (values[name] >= 0.0)
                colour = style.COLOURS[i % len(style.COLOURS)]
                axis.loglog(
                    np.maximum(values[name][mask], LEAST), ratio[mask], ".", color=colour, markersize=3, alpha=0.7
                )
            axis.axhline(1.0, color="black", linewidth=0.8)
            if name == "h_acc/h_stab":
                x = np.logspace(0.0, max(0.5, np.log10(np.nanmax(values[name]))), 20)
                axis.loglog(x, x, "--", color=style.GREY, linewidth=1.0)
            axis.set_xlabel(name)
            axis.set_title(f"AUC {rankings[name].auc.value:.2f}", fontsize=8)
        for axis in axes[:, 0]:
            axis.set_ylabel("R")
    return drawing


def forest(rankings: dict):
    """The area under the curve of every index with its interval, a shade per error."""
    names = sorted(INDICES, key=lambda name: (GROUPS[INDICES[name]], name))
    shades = np.linspace(0.35, 1.0, len(rankings))
    with style.figure(height=0.24 * len(names) + 0.9) as (drawing, axes):
        plane = axes[0, 0]
        for k, (eps, table) in enumerate(rankings.items()):
            shift = 0.16 * (k - 0.5 * (len(rankings) - 1))
            for i, name in enumerate(names):
                e = table[name].auc
                colour = style.COLOURS[GROUPS[INDICES[name]] % len(style.COLOURS)]
                label = f"error {marked(eps)}" if i == 0 else None
                plane.plot([e.low, e.high], [i + shift] * 2, color=colour, alpha=shades[k], linewidth=1.2)
                plane.plot(e.value, i + shift, "o", color=colour, alpha=shades[k], markersize=3, label=label)
        plane.axvline(0.5, color="black", linewidth=0.8)
        plane.set_yticks(range(len(names)), [f"{name}  ({INDICES[name]})" for name in names], fontsize=7)
        plane.set_ylim(len(names) - 0.4, -0.6)
        plane.set_xlim(0.0, 1.0)
        plane.set_xlabel("area under the curve; 0.5 is a coin")
        plane.legend(loc="upper left")
    return drawing


def arrows(sai: dict[str, float], ratio: dict[str, float]):
    """Within each problem: the rank correlation of SAI with R, and that of rho_ng/SAI."""
    shared = [name for name in sai if name in ratio]
    with style.figure(height=3.4, width=4.2) as (drawing, axes):
        plane = axes[0, 0]
        plane.axhline(0.0, color="black", linewidth=0.8)
        plane.axvline(0.0, color="black", linewidth=0.8)
        plane.plot([sai[name] for name in shared], [ratio[name] for name in shared], "o", markersize=4, alpha=0.7)
        plane.set_xlim(-1.05, 1.05)
        plane.set_ylim(-1.05, 1.05)
        plane.set_xlabel("rank correlation of SAI with R")
        plane.set_ylabel("rank correlation of rho_ng/SAI with R")
        plane.text(-1.0, 0.03, "the ratio tells,\nSAI points the other way", fontsize=7, va="bottom")
        plane.text(1.0, -0.98, "SAI tells, the ratio does not", fontsize=7, ha="right", va="bottom")
    return drawing


def tolerances(lab: Lab, eps_values, count: int = 12):
    """R against the error, for windows spread over the range of R; theory's slopes beside them."""
    table = np.array([lab.truth(eps, "attempts") for eps in eps_values])
    known = np.flatnonzero(np.isfinite(table).all(axis=0))
    place = np.log(table[len(eps_values) // 2][known])
    chosen = np.unique([known[np.argmin(np.abs(place - x))] for x in np.log(np.geomspace(0.1, 1e3, count))])
    with style.figure(height=3.0, width=4.4) as (drawing, axes):
        plane = axes[0, 0]
        for k, i in enumerate(chosen):
            colour = style.COLOURS[k % len(style.COLOURS)]
            plane.loglog(eps_values, table[:, i], "o-", color=colour, markersize=3, linewidth=0.9)
        x = np.array([min(eps_values), max(eps_values)])
        for power, height in ((0.25, 3e4), (0.05, 0.03)):
            plane.loglog(x, height * (x / x[1]) ** power, "--", color="black", linewidth=1.0)
            plane.annotate(f"slope {power:g}", (x[1], 1.2 * height), fontsize=7, va="bottom")
        plane.axhline(1.0, color=style.GREY, linewidth=0.8)
        plane.invert_xaxis()
        plane.set_xlabel("error asked for")
        plane.set_ylabel("R, in attempts")
    return drawing


def policies(table: dict[str, dict]):
    """Cost over the oracle's, problem by problem in order, a line per policy."""
    drawn = ("best of both", "h_R/h_stab > 1", "rho_ng/SAI", "SAI", "SI", "always implicit", "always explicit")
    with style.figure(height=3.0) as (drawing, axes):
        plane = axes[0, 0]
        for k, name in enumerate(drawn):
            cost = np.sort(table[name]["cost"])
            colour = style.GREY if name == "best of both" else style.COLOURS[k % len(style.COLOURS)]
            label = f"{name}: {table[name]['mean']:.2f}"
            dashes = "--" if name == "SAI" else "-"  # its curve often hides that of one method
            share = np.linspace(0.0, 1.0, len(cost))
            plane.semilogy(
                share, np.minimum(cost, 100.0), dashes, color=colour, label=label, zorder=3 + (dashes == "--")
            )
        plane.set_xlabel("share of problems")
        plane.set_ylabel("cost over the oracle's")
        plane.set_ylim(0.95, 100.0)
        plane.legend(title="geometric mean", fontsize=7, title_fontsize=7)
    return drawing
