"""The figures of many networks: all shipped ones, networks of several depths, trainings, ODE-nets."""

import itertools

import numpy as np

from odelab.plot import style
from studies.block_stiffness.report.figures import LABELS
from studies.lab.figures import plain_ticks


def labels_by_network(rows: list[dict], names, measures=("max_re", "min_re")):
    """Means by label of the last block, less the network's mean; a line is a network, black the mean over networks."""
    last = max(row["block"] for row in rows)
    rows = [row for row in rows if row["block"] == last]
    with style.figure(len(measures), 1, height=1.5 * len(measures) + 0.7, sharex=True) as (drawing, axes):
        for axis, measure in zip(axes[:, 0], measures, strict=True):
            values = np.array([row[f"{measure}_by_label"] for row in rows if f"{measure}_by_label" in row])
            values = values - values.mean(1, keepdims=True)
            axis.plot(values.T, color="#9A9A9A", linewidth=0.6, alpha=0.8)
            axis.plot(values.mean(0), "o-", color="black", markersize=4)
            axis.axhline(0.0, color="black", linewidth=0.5)
            axis.set_ylabel(f"{LABELS[measure]}, less mean")
        axes[-1, 0].set_xticks(range(len(names)), names, rotation=30, ha="right")
    return drawing


def most_negative(rows: list[dict]):
    """The most negative real part of h lambda of every block of every network, against Euler's limit."""
    with style.figure(height=2.9) as (drawing, axes):
        axis = axes[0, 0]
        blocks = sorted({row["block"] for row in rows})
        places = {block: place for place, block in enumerate(blocks)}
        named = [name for name in networks(rows) if "/resnet20-constant" in name or "medium" in name]
        named = named or [name for name in networks(rows) if "constant" in name]
        others = {"color": "#9A9A9A", "linewidth": 0.7, "markersize": 2.5, "alpha": 0.8}
        first = True
        for name in networks(rows):
            some = [row for row in rows if row["network"] == name]
            x, y = [places[row["block"]] for row in some], [row["min_re"][2] for row in some]
            if name not in named:
                axis.plot(x, y, "o-", label="learnt step sizes" if first else None, **others)
                first = False
        for name, colour in zip(named, style.COLOURS, strict=False):
            some = [row for row in rows if row["network"] == name]
            x, y = [places[row["block"]] for row in some], [row["min_re"][2] for row in some]
            label = f"constant, {100 * some[0]['accuracy']:.1f} %, seed {some[0]['seed']}"
            axis.plot(x, y, "s-", color=colour, markersize=4, label=label, zorder=3)
        axis.axhline(-2.0, color="black", linewidth=0.9, linestyle=":")
        axis.text(places[blocks[-1]], -2.0, "Euler's limit on the real axis", ha="right", va="top", fontsize=8)
        for place, (one, next_one) in enumerate(itertools.pairwise(blocks)):
            if next_one - one > 1:
                axis.axvline(place + 0.5, color="#CCCCCC", linewidth=0.8)
        axis.set_xticks(range(len(blocks)), blocks)
        axis.set(xlabel="block (those that change the shape have no eigenvalues)", ylabel="most negative Re h lambda")
        drawing.legend(loc="outside right center")
    return drawing


def networks(rows: list[dict]) -> list[str]:
    return list(dict.fromkeys(row["network"] for row in rows))


def error_of_every_block(rows: list[dict], measures=("max_re", "min_re", "nsi")):
    """Euler's error against measures of the step, a point a block of a network, coloured by stage."""
    with style.figure(1, len(measures), height=2.5, sharey=True) as (drawing, axes):
        for axis, measure in zip(axes[0], measures, strict=True):
            for stage in sorted({row["stage"] for row in rows}):
                some = [row for row in rows if row["stage"] == stage and row[measure] and row["step_error"]]
                x, y = ([abs(row[name][0]) for row in some] for name in (measure, "step_error"))
                look = {"color": style.COLOURS[stage], "markersize": 3, "alpha": 0.7, "label": f"stage {stage + 1}"}
                axis.plot(x, y, "o", **look)
            axis.set(xscale="log", yscale="log", xlabel=f"{'-' if measure == 'min_re' else ''}{LABELS[measure]}")
            plain_ticks(axis.xaxis, axis.yaxis)
        axes[0, 0].set_ylabel("Euler's error of the step")
        handles, names = axes[0, 0].get_legend_handles_labels()
        drawing.legend(handles, names, loc="outside right center")
    return drawing


def depths(rows: list[dict], measures=("sigma, median", "rho, median")):
    """Medians of two measures against the number of blocks, with the law 1 / blocks through the first point."""
    from matplotlib.ticker import NullLocator

    with style.figure(height=2.6) as (drawing, axes):
        axis = axes[0, 0]
        blocks = np.array([row["blocks"] for row in rows])
        for measure, mark, name in zip(measures, "os", ("largest singular value", "spectral radius"), strict=True):
            values = np.array([row[measure] for row in rows])
            (line,) = axis.plot(blocks, values, f"{mark}-", markersize=4, label=name)
            axis.plot(blocks, values[0] * blocks[0] / blocks, "--", color=line.get_color(), linewidth=0.9)
        axis.plot([], [], "--", color="#666666", linewidth=0.9, label="1 / blocks, through the first")
        axis.set(xscale="log", yscale="log", xlabel="blocks that keep the shape", ylabel="median over branches")
        plain_ticks(axis.yaxis)
        axis.set_xticks(blocks, [str(block) for block in blocks])
        axis.xaxis.set_minor_locator(NullLocator())
        axis.legend()
    return drawing


def through_training(rows: list[dict], measures=("max_re", "min_re", "step_error")):
    """Each branch's measures against the epochs of its network's training; the first point is before training."""
    with style.figure(1, len(measures), height=2.5) as (drawing, axes):
        for axis, measure in zip(axes[0], measures, strict=True):
            for number, block in enumerate(dict.fromkeys(row["block"] for row in rows)):
                some = [row for row in rows if row["block"] == block]
                x, y = [row["epoch"] for row in some], [row[measure] for row in some]
                look = {"color": style.COLOURS[number], "markersize": 3, "label": f"{block}"}
                axis.plot(x, y, "o-", **look)
            axis.set_xscale("symlog", base=2, linthresh=1.0)
            ticks = sorted({row["epoch"] for row in rows})
            axis.set_xticks(ticks, [str(tick) for tick in ticks])
            axis.set(xlabel="epoch", title=LABELS[measure])
        axes[0, 1].axhline(-2.0, color="black", linewidth=0.8, linestyle=":")
        axes[0, -1].set_yscale("log")
        plain_ticks(axes[0, -1].yaxis)
        handles, names = axes[0, 0].get_legend_handles_labels()
        drawing.legend(handles, names, title="block", loc="outside right center")
    return drawing


def tolerances(rows: list[dict]):
    """Accuracy and evaluations a block against the tolerance of dopri5, for networks trained in two ways."""
    from matplotlib.lines import Line2D

    solvers = ["Euler", *sorted({row["tolerance"] for row in rows if row["run by"] != "Euler"}, reverse=True)]
    ticks = ["Euler", *(f"{tolerance:.0e}".replace("e-0", "e-") for tolerance in solvers[1:])]
    looks = dict(zip(sorted({row["seed"] for row in rows}), ("o-", "s--", "D:", "^-."), strict=False))
    with style.figure(1, 2, height=2.8) as (drawing, axes):
        for measure, axis in zip(("accuracy, %", "evaluations a block"), axes[0], strict=True):
            for trained, colour in zip(dict.fromkeys(row["trained by"] for row in rows), style.COLOURS, strict=False):
                for seed, look in looks.items():
                    some = [row for row in rows if row["trained by"] == trained and row["seed"] == seed]
                    solved = [row for row in some if row["run by"] != "Euler"]
                    x, y = [solvers.index(row["tolerance"]) for row in solved], [row[measure] for row in solved]
                    label = f"trained by {trained}" if seed == min(looks) else None
                    axis.plot(x, y, look, color=colour, markersize=3.5, label=label)
                    y = [row[measure] for row in some if row["run by"] == "Euler"]
                    axis.plot([0] * len(y), y, look[0], color=colour, markersize=4.5)
            axis.axvline(0.5, color="#CCCCCC", linewidth=0.8)
            axis.set_xticks(range(len(solvers)), ticks)
            axis.set(xlabel="run by Euler, or by dopri5 of this tolerance", ylabel=measure)
        axes[0, 1].set_yscale("log")
        plain_ticks(axes[0, 1].yaxis)
        handles, names = axes[0, 0].get_legend_handles_labels()
        handles += [Line2D([], [], color="#666666", linestyle=look[1:], marker=look[0]) for look in looks.values()]
        names += [f"seed {seed}" for seed in looks]
        drawing.legend(handles, names, loc="outside lower center", ncols=len(names))
    return drawing


def ode_net(fits):
    """How far residual steps and the exact flow of one field are apart, against h rho."""
    with style.figure(height=2.6) as (drawing, axes):
        for fit in fits:
            x, y = np.transpose(fit.scales)
            axes[0, 0].plot(x, y, "o-", markersize=3, label=f"seed {fit.seed}")
        axes[0, 0].axvline(2.0, color="black", linewidth=0.8, linestyle=":")
        axes[0, 0].set(xscale="log", yscale="log", xlabel="h rho", ylabel="ResNet to the flow of its own field")
        plain_ticks(axes[0, 0].xaxis, axes[0, 0].yaxis)
        axes[0, 0].legend()
    return drawing
