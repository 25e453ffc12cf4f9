"""The figures of `switching` that show windows, indices and switches; what is told apart is in `scenes.py`."""

import numpy as np

from odelab.plot import style
from studies.switching.observations import REFERENCE, YOURS, Lab

RANGE = 3.0  # decades of R on either side of 1 that the colours span
SHOWN = ("SAI", "SI", "SI/SAI", "rho_ng/SAI", "h_acc/h_stab", "Hairer-Wanner: h rho > boundary")
DECADES = (-8.0, 8.0)  # of an index that are drawn; what lies beyond is drawn at the end
GROUPS = ("solution", "problem", "ratio", "with tolerance", "of the run", YOURS, REFERENCE)
HEADS = {  # what the groups of the forest are called
    "solution": "of the solution",
    "problem": "of the problem",
    "ratio": "ratios of the two",
    "with tolerance": "with the tolerance",
    "of the run": "of an explicit run",
    YOURS: "yours",
    REFERENCE: "reference",
}
SYMBOLS = {
    "rho": r"$\rho$",
    "rho_ng": r"$\rho_{ng}$",
    "|J|_2": r"$\|J\|_2$",
    "mu_1": r"$\mu_1$",
    "mu_2": r"$\mu_2$",
    "mu_inf": r"$\mu_\infty$",
    "-m_2": r"$-m_2$",
    "-s[J]": r"$-s[J]$",
    "-T s[J]": r"$-T\,s[J]$",
    "-min Re": r"$-\min\,\mathrm{Re}\,\lambda$",
    "SI x span": r"SI $\times$ span",
    "max/min |Re|": r"$\max|\mathrm{Re}|/\min|\mathrm{Re}|$",
    "rho_ng/SAI": r"$\rho_{ng}$/SAI",
    "|J|_2/SAI": r"$\|J\|_2$/SAI",
    "-s[J]/SAI": r"$-s[J]$/SAI",
    "rho_ng |f|/|f'|": r"$\rho_{ng}\,|f|/|f'|$",
    "tol^(1/5) rho_ng/SAI": r"$tol^{1/5}\,\rho_{ng}$/SAI",
    "h_acc rho_ng": r"$h_{acc}\,\rho_{ng}$",
    "h_acc/h_stab": r"$\chi = h_{acc}/h_{stab}$",
    "h_acc(u3)/h_stab": r"$h_{acc}(u''')/h_{stab}$",
    "h_acc/h_power": r"$h_{acc}/h_{power}$",
    "h_R rho_ng": r"$h_R\,\rho_{ng}$",
    "h_R/h_stab": r"$h_R/h_{stab}$",
    "LSODA: h_R/min(h_acc, h_stab)": r"LSODA: $h_R/\min(h_{acc}, h_{stab})$",
    "h_E rho_ng": r"$h_E\,\rho_{ng}$",
    "Hairer-Wanner: h rho > boundary": r"Hairer-Wanner: share $h\rho > 3.3$",
    "Julia: h rho > 0.9 boundary": r"Julia: share $h\rho > 3.0$",
    "trial: h_R/h_E": r"trial step: $h_R/h_E$",
}


def symbol(name: str) -> str:
    return SYMBOLS.get(name, name)


def power_of_ten(eps: float) -> str:
    return f"$10^{{{round(np.log10(eps))}}}$"


def truth_map(lab: Lab, eps: float, loose: float, sharp: float):
    """Every window of every problem, coloured by R; hatched where the class changes between two errors."""
    ratio = np.log10(lab.truth(eps))
    changed = (lab.truth(loose) > 1.0) != (lab.truth(sharp) > 1.0)
    names = list(dict.fromkeys(lab.name.tolist()))
    family = dict(zip(lab.name.tolist(), lab.family.tolist(), strict=True))
    row, place = 0.0, {}
    for k, name in enumerate(names):  # a gap between families
        row += 1.0 + (0.35 if k and family[name] != family[names[k - 1]] else 0.0)
        place[name] = row
    with style.figure(height=0.108 * row + 1.0) as (drawing, axes):
        plane = axes[0, 0]
        for name, y in place.items():
            mask = lab.name == name
            edges = np.linspace(0.0, 1.0, mask.sum() + 1)
            cells = np.clip(ratio[mask], -RANGE, RANGE)[None, :]
            image = plane.pcolormesh(edges, [y - 0.45, y + 0.45], cells, cmap="RdBu_r", vmin=-RANGE, vmax=RANGE)
            for left, right, flag in zip(edges[:-1], edges[1:], changed[mask], strict=True):
                if flag:
                    plane.fill_between(
                        [left, right], y - 0.45, y + 0.45, facecolor="none", edgecolor="#333333", hatch="//////", lw=0
                    )
        plane.set_yticks(list(place.values()), names, fontsize=5.5)
        plane.set_ylim(row + 0.8, 0.2)
        plane.set_xlim(0.0, 1.0)
        plane.set_xlabel("windows in order of time")
        plane.set_xticks([])
        plane.tick_params(length=0)
        plane.grid(False)
        plane.spines[:].set_visible(False)
        bar = drawing.colorbar(image, ax=plane, shrink=0.5, aspect=30, extend="both")
        bar.set_label(f"$\\log_{{10}} R$ at an error of {power_of_ten(eps)}")
    return drawing


def ratio_against_indices(lab: Lab, eps: float, rankings):
    """R against six indices, a point per window, a colour and a mark per family."""
    ratio, values = lab.truth(eps), lab.values(eps)
    families = list(dict.fromkeys(lab.family.tolist()))
    marks = ("o", "^", "s", "D", "v")
    shown = [name for name in SHOWN if np.isfinite(values[name]).any()]
    highest = 3.0 * np.max(ratio[np.isfinite(ratio)], initial=1e8)
    height = 4.6 + 0.125 * -(-len(families) // 5)
    with style.figure(2, 3, height=height, sharey=True) as (drawing, axes):
        for axis, name in zip(axes.flat, shown, strict=False):
            share = name.startswith("Hairer")
            bottom, top = (0.0, 1.0) if share else (10.0 ** DECADES[0], 10.0 ** DECADES[1])
            for i, family in enumerate(families):
                mask = (lab.family == family) & (values[name] >= 0.0) & (ratio > 0.0)
                axis.plot(
                    np.clip(values[name][mask], bottom, top),
                    ratio[mask],
                    marks[i // len(style.COLOURS) % len(marks)],
                    color=style.COLOURS[i % len(style.COLOURS)],
                    markersize=2.6,
                    markeredgewidth=0.0,
                    alpha=0.65,
                    label=family if axis is axes[0, 0] else None,
                )
            axis.set_yscale("log")
            axis.set_xscale("linear" if share else "log")
            axis.axhline(1.0, color="black", linewidth=0.8)
            if name == "h_acc/h_stab":
                offset = float(np.median(lab.attempt("explicit") / lab.attempt("implicit")))
                x = np.logspace(0.0, DECADES[1], 20)
                axis.plot(x, offset * x, "--", color="black", linewidth=1.0, zorder=5)
                axis.plot([10.0 ** DECADES[0], 1.0], [offset] * 2, "--", color="black", linewidth=1.0, zorder=5)
            axis.set_xlabel(symbol(name))
            words = f"AUC {rankings[name].auc.value:.2f}"
            axis.text(0.97, 0.03, words, transform=axis.transAxes, ha="right", fontsize=8)
            if not share:
                axis.set_xticks(10.0 ** np.arange(DECADES[0], DECADES[1] + 1.0, 4.0))
                axis.xaxis.set_minor_locator(_no_ticks())
        for axis in axes[:, 0]:
            axis.set_ylabel("R")
            axis.set_ylim(10.0**-2.6, highest)
        drawing.legend(loc="outside lower center", ncols=5, fontsize=5.8, markerscale=1.4, columnspacing=0.9)
    return drawing


def _no_ticks():
    from matplotlib.ticker import NullLocator

    return NullLocator()


def forest(lab: Lab, rankings: dict):
    """The area under the curve of every index with its interval, a shade per error, in groups."""
    table = next(iter(rankings.values()))
    worth = {name: np.mean([found[name].auc.value for found in rankings.values()]) for name in table}
    rows: list[tuple[str, str | None]] = []
    for group in GROUPS:
        names = sorted((name for name in table if lab.groups[name] == group), key=lambda name: -worth[name])
        rows += [(HEADS[group], None), *((name, group) for name in names)] if names else []
    shades = np.linspace(0.3, 1.0, len(rankings))
    with style.figure(height=0.185 * len(rows) + 0.8) as (drawing, axes):
        plane = axes[0, 0]
        plane.axvline(0.5, color="black", linewidth=0.8)
        for i, (name, of) in enumerate(rows):
            if of is None:
                plane.text(0.003, i + 0.1, name, fontsize=7.5, fontweight="bold", va="center")
                continue
            colour = style.COLOURS[GROUPS.index(of) % len(style.COLOURS)]
            for k, (eps, found) in enumerate(rankings.items()):
                e, shift = found[name].auc, 0.19 * (k - 0.5 * (len(rankings) - 1))
                plane.plot([e.low, e.high], [i + shift] * 2, color=colour, alpha=shades[k], linewidth=1.1)
                label = f"error {power_of_ten(eps)}" if name == "SAI" else None
                plane.plot(e.value, i + shift, "o", color=colour, alpha=shades[k], markersize=2.6, label=label)
        plane.set_yticks(
            [i for i, (_, group) in enumerate(rows) if group],
            [symbol(name) for name, group in rows if group],
            fontsize=7.5,
        )
        plane.set_ylim(len(rows) - 0.3, -0.7)
        plane.set_xlim(0.0, 1.0)
        plane.grid(axis="y", visible=False)
        plane.set_xlabel("area under the curve, with 95 % intervals over families; 0.5 is chance")
        drawing.legend(loc="outside upper right", ncols=4, fontsize=7)
    return drawing


def arrows(sai: dict[str, float], ratio: dict[str, float], family: dict[str, str]):
    """Within each problem: the rank correlation of SAI with R, and that of rho_ng/SAI."""
    shared = [name for name in sai if name in ratio]
    quarters = {
        (-1.0, 1.36, "left", "top"): "the ratio tells,\nSAI points the other way",
        (1.0, 1.36, "right", "top"): "both tell",
        (-1.0, -1.36, "left", "bottom"): "both point the other way",
        (1.0, -1.36, "right", "bottom"): "SAI tells,\nthe ratio does not",
    }
    with style.figure(height=3.9, width=4.4) as (drawing, axes):
        plane = axes[0, 0]
        plane.axhline(0.0, color="black", linewidth=0.8)
        plane.axvline(0.0, color="black", linewidth=0.8)
        for i, name in enumerate(shared):
            colour = style.COLOURS[sorted(set(family.values())).index(family[name]) % len(style.COLOURS)]
            plane.plot(
                sai[name], ratio[name], "o", color=colour, markersize=4.5, alpha=0.75, markeredgewidth=0, zorder=3 + i
            )
        for (x, y, left, top), words in quarters.items():
            plane.text(x, y, words, fontsize=7, ha=left, va=top, color="#444444", zorder=1)
        plane.set_xlim(-1.05, 1.05)
        plane.set_ylim(-1.42, 1.42)
        plane.set_yticks(np.linspace(-1.0, 1.0, 5))
        plane.set_xlabel("rank correlation of SAI with R")
        plane.set_ylabel(r"rank correlation of $\rho_{ng}$/SAI with R")
    return drawing


def tolerances(lab: Lab, eps_values, count: int = 12):
    """R against the error, on windows spread over the range of R; beside it one Jacobian under several amplitudes."""
    table = np.array([lab.truth(eps, "attempts") for eps in eps_values])
    known = np.flatnonzero(np.isfinite(table).all(axis=0))
    place = np.log(table[len(eps_values) // 2][known])
    chosen = np.unique([known[np.argmin(np.abs(place - x))] for x in np.log(np.geomspace(0.1, 1e3, count))])
    bound = lab.values(eps_values[-1])["h_R/h_stab"] > 2.0
    with style.figure(1, 2, height=3.0, width_ratios=(1.35, 1.0)) as (drawing, axes):
        plane, beside = axes[0]
        for i in chosen:
            colour = style.COLOURS[1] if bound[i] else style.COLOURS[0]
            plane.loglog(eps_values, table[:, i], "o-", color=colour, markersize=3, linewidth=0.9)
        x = np.array([min(eps_values), max(eps_values)])
        for power, height, words in ((0.25, 1e4, "slope 1/4"), (0.05, 0.05, "slope 1/4 - 1/5")):
            plane.loglog(x, height * (x / x[1]) ** power, "--", color="black", linewidth=1.0)
            plane.annotate(words, (x[1], 1.25 * height), fontsize=7, va="bottom")
        plane.plot([], [], "o-", color=style.COLOURS[1], markersize=3, label="stability binds at the smallest error")
        plane.plot([], [], "o-", color=style.COLOURS[0], markersize=3, label="it does not")
        plane.legend(loc="upper right", fontsize=6.5)
        plane.axhline(1.0, color=style.GREY, linewidth=0.8)
        plane.set_ylim(0.02, 1e6)
        plane.invert_xaxis()
        plane.set_xlabel("error asked for")
        plane.set_ylabel("R, in attempts")
        family = [p["name"] for p in lab.problems if p["family"] == "oscillators" and p["name"][-1].isdigit()]
        shares = np.full((len(family), len(eps_values)), np.nan)
        for i, name in enumerate(family):
            for k, eps in enumerate(eps_values):
                ratio = lab.truth(eps)[lab.name == name]
                some = ratio[np.isfinite(ratio)]
                shares[i, k] = np.mean(some > 1.0) if len(some) else np.nan
        if family:
            beside.imshow(shares, cmap="Oranges", vmin=0.0, vmax=1.0, aspect="auto")
            for (i, k), share in np.ndenumerate(shares):
                word = "?" if np.isnan(share) else f"{100 * share:.0f} %"
                beside.text(
                    k, i, word, ha="center", va="center", fontsize=7, color="white" if share > 0.65 else "black"
                )
            beside.set_yticks(range(len(family)), [name.split()[-1] for name in family], fontsize=7)
            beside.set_xticks(range(len(eps_values)), [power_of_ten(eps) for eps in eps_values], fontsize=7)
            beside.set_xlabel("error asked for")
            beside.set_ylabel("amplitude of the fast oscillation")
            beside.set_title("one Jacobian: share of stiff windows", fontsize=8)
        beside.grid(False)
        beside.spines[:].set_visible(False)
        beside.tick_params(length=0)
    return drawing


def policies(table: dict):
    """Cost over the oracle's, problem by problem in order, a line per policy."""
    rules = ("h_R/h_stab > 1", "h_acc/h_stab > 1", "rho_ng/SAI", "SAI", "SI")
    drawn = ("best of both", *rules, "always implicit", "always explicit")
    with style.figure(height=3.2) as (drawing, axes):
        plane = axes[0, 0]
        for k, name in enumerate(name for name in drawn if name in table):
            cost = np.sort(table[name].cost)
            colour = style.GREY if name == "best of both" else style.COLOURS[(k - 1) % len(style.COLOURS)]
            dashes = "--" if name == "SAI" else "-"  # its curve often hides that of one method
            share = np.linspace(0.0, 1.0, len(cost))
            plane.semilogy(
                share,
                np.minimum(cost, 100.0),
                dashes,
                color=colour,
                label=f"{symbol(name.split(' > ')[0])}{' > 1' if '>' in name else ''}: {table[name].mean:.2f}",
                linewidth=2.4 if name == "best of both" else 1.2,
                zorder=2 if name == "best of both" else 3 + (dashes == "--"),
            )
        plane.set_xlabel("share of problems")
        plane.set_ylabel("cost over the oracle's")
        plane.set_xlim(0.0, 1.0)
        plane.set_ylim(0.95, 100.0)
        plane.set_yticks([1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0], ["1", "2", "5", "10", "20", "50", "100"])
        plane.yaxis.set_minor_locator(_no_ticks())
        plane.legend(title="geometric mean", fontsize=7, title_fontsize=7)
    return drawing
