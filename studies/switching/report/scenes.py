"""The figures of `switching` that tell one thing each: a run, the plane of forced systems, non-normality, networks."""

import numpy as np

from odelab.plot import style
from studies.switching.factorial import Plane, Shear
from studies.switching.measures import Told

KINDS = {"normal": "decaying modes", "oscillating": "oscillating modes"}
PLACES = {"explicit": style.COLOURS[0], "implicit": style.COLOURS[1]}


def run_figure(told: Told, explicit: str, implicit: str):
    """One run: the solution, the indices, the steps of both methods, and what switching chose."""
    run = told.runs[implicit]
    number = np.arange(len(run.step_t))

    def place(t):
        """Where a time stands on an axis on which every step of the implicit method is as wide."""
        return np.interp(t, run.step_t, number)

    middle = place(0.5 * (told.start + told.end))
    with style.figure(4, 1, height=6.0, sharex=True, height_ratios=(1.0, 1.3, 1.3, 0.28)) as (drawing, axes):
        solution, indices, steps, strip = axes[:, 0]
        solution.plot(number, run.step_u[:, 0], color="black", linewidth=1.0)
        solution.set_ylabel("$u_1$")
        marks = {"SI": "-", "SAI": "-", "h_acc/h_stab": "-", "h_R/h_stab": "--"}
        words = {"h_acc/h_stab": r"$\chi = h_{acc}/h_{stab}$", "h_R/h_stab": "$h_R/h_{stab}$"}
        for k, (name, line) in enumerate(marks.items()):
            colour = style.COLOURS[k]
            indices.semilogy(middle, told.indices[name], line, color=colour, label=words.get(name, name), linewidth=1.3)
        indices.axhline(1.0, color="black", linewidth=0.8)
        indices.set_ylabel("index")
        indices.legend(loc="upper right", ncols=4, fontsize=7)
        indices.set_ylim(top=indices.get_ylim()[1] * 30.0)
        for name, colour in ((explicit, PLACES["explicit"]), (implicit, PLACES["implicit"])):
            one = told.runs[name]
            steps.semilogy(place(one.step_t[:-1]), np.abs(one.h), color=colour, linewidth=0.9, label=name)
        steps.set_ylabel("step size")
        steps.legend(loc="lower right", ncols=2, fontsize=7)
        for axis in (solution, indices, steps):
            for start, end, ratio in zip(told.start, told.end, told.ratio, strict=True):
                if ratio > 1.0:
                    axis.axvspan(place(start), place(end), color="#F4D9C6", linewidth=0.0, zorder=0)
        auto = told.runs["AUTO"]
        for start, end, name in zip(auto.step_t[:-1], auto.step_t[1:], auto.took, strict=True):
            role = "explicit" if name == explicit else "implicit"
            strip.axvspan(place(start), place(end), color=PLACES[role], linewidth=0.0)
        strip.set_yticks([])
        strip.set_ylabel("AUTO", rotation=0, ha="right", va="center")
        strip.grid(False)
        ticks = np.linspace(place(told.start[0]), place(told.end[-1]), 9)
        strip.set_xticks(ticks, [f"{np.interp(x, number, run.step_t):.6g}" for x in ticks])
        strip.set_xlabel(f"t, stretched so that every step of {implicit} is as wide; shaded: R > 1")
        strip.set_xlim(ticks[0], ticks[-1])
    return drawing


def forced_plane(planes: list[Plane]):
    """R over rho / w and the error, measured; the line R = 1 of theory."""
    levels = np.arange(-1.5, 3.51, 0.5)
    with style.figure(1, len(planes), height=3.2, sharey=True) as (drawing, axes):
        for axis, one in zip(axes[0], planes, strict=True):
            shown = np.ma.masked_invalid(np.log10(one.measured))
            image = axis.contourf(
                one.ratio, one.eps, shown, levels=levels, cmap="RdBu_r", vmin=-3.5, vmax=3.5, extend="both"
            )
            axis.contour(one.ratio, one.eps, shown, levels=[0.0], colors="black", linewidths=1.4)
            axis.contour(
                one.ratio, one.eps, np.log10(one.theory), levels=[0.0], colors="black", linestyles="--", linewidths=1.2
            )
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.invert_yaxis()
            axis.set_title(KINDS.get(one.kind, one.kind), fontsize=9)
            axis.set_xlabel(r"$\rho / w$")
            axis.grid(False)
        axes[0, 0].set_ylabel("error asked for")
        axes[0, 0].plot([], [], color="black", linewidth=1.4, label="R = 1, measured")
        axes[0, 0].plot([], [], "--", color="black", linewidth=1.2, label="R = 1, theory")
        drawing.legend(loc="outside lower center", ncols=2, fontsize=7)
        drawing.colorbar(image, ax=axes[0].tolist(), label=r"$\log_{10} R$", aspect=25)
    return drawing


def non_normal(found: Shear):
    """R against the departure from normality at one spectrum, with what eigenvalues and powers predict."""
    with style.figure(height=3.1, width=4.6) as (drawing, axes):
        plane = axes[0, 0]
        curves = {
            "measured": (found.measured, "black", "o-"),
            r"$h_R/h_{stab}$, by eigenvalues": (found.by_values, style.COLOURS[0], "-"),
            r"$h_R/h_{power}$, by powers": (found.by_powers, style.COLOURS[1], "--"),
        }
        for name, (values, colour, line) in curves.items():
            low, middle, high = np.nanquantile(values, (0.25, 0.5, 0.75), axis=1)
            plane.loglog(found.departures, middle, line, color=colour, markersize=3, label=name)
            plane.fill_between(found.departures, low, high, color=colour, alpha=0.15, linewidth=0.0)
        plane.axhline(1.0, color=style.GREY, linewidth=0.8)
        plane.set_xlabel(r"Henrici's departure from normality over $\rho$")
        plane.set_ylabel("R, in attempts")
        plane.legend(fontsize=7)
    return drawing


def _no_labels():
    from matplotlib.ticker import NullFormatter

    return NullFormatter()


def networks(rows: list[dict], band: tuple[float, float]):
    """NSI of blocks against the radius of their modes that do not grow, beside windows of differential equations.

    rows  of `networks.measure_networks`
    band  of rho_ng/SAI, between which windows of differential equations turn from not stiff to stiff
    """
    truth = [row for row in rows if np.isfinite(row["explicit steps"]) and np.isfinite(row["implicit steps"])]
    widths = (1.25, 1.0) if truth else (1.0,)
    with style.figure(1, len(widths), height=3.2, width_ratios=widths) as (drawing, axes):
        plane, *besides = axes[0]
        names = list(dict.fromkeys(row["controller"] for row in rows))
        pace = np.array([row["sai"] for row in rows])
        radius = np.array([row["rho_ng"] for row in rows])
        who = np.array([row["controller"] for row in rows])
        x = np.array([0.3 * pace.min(), 5.0 * pace.max()])
        plane.fill_between(x, band[0] * x, band[1] * x, color="#F4D9C6", linewidth=0.0, label="R = 1 of ODEs")
        for ratio in (1.0, 10.0, 100.0):
            plane.loglog(x, ratio * x, ":", color=style.GREY, linewidth=0.9)
            place = 1.3 * x[0] if ratio == 100.0 else x[1]  # its other end is above the panel
            side = "left" if ratio == 100.0 else "right"
            plane.annotate(f"{ratio:g}", (place, ratio * place), fontsize=7, color="#444444", ha=side, va="bottom")
        plane.axhline(2.0, color="black", linewidth=0.9)
        plane.annotate("Euler's limit, 2", (x[0] * 1.05, 2.1), fontsize=7, va="bottom")
        marks = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
        for k, name in enumerate(names):
            mask = who == name
            colour = style.COLOURS[k % len(style.COLOURS)]
            plane.loglog(
                pace[mask], radius[mask], marks[k % len(marks)], color=colour, markersize=3.4, alpha=0.75,
                markeredgewidth=0.0, label=name,
            )  # fmt: skip
        plane.set_xlim(*x)
        plane.xaxis.set_minor_formatter(_no_labels())
        plane.set_ylim(0.5 * radius.min(), 3.0 * max(band[1] * pace.max(), radius.max()))
        plane.set_xlabel("SAI of the step, |h f| / |x|")
        plane.set_ylabel(r"$\rho_{ng}(h J_f)$")
        plane.legend(fontsize=5.5, ncols=2, loc="upper left")
        for beside in besides:  # none where no block was run by both methods
            beside.axhline(1.0, color="black", linewidth=0.8)
            for row in truth:
                k = names.index(row["controller"])
                beside.plot(
                    row["rho_ng"],
                    row["explicit steps"] / row["implicit steps"],
                    marks[k % len(marks)],
                    color=style.COLOURS[k % len(style.COLOURS)],
                    markersize=4,
                )
            beside.set_xlabel(r"$\rho_{ng}(h J_f)$")
            beside.set_ylabel("explicit over implicit steps")
            beside.set_ylim(0.0, max(2.0, *(1.1 * row["explicit steps"] / row["implicit steps"] for row in truth)))
    return drawing
