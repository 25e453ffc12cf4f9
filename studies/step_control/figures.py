"""Table 4 beside the paper's, accuracy by placement, and the stiffness of the blocks that were chosen."""

from typing import Any

import numpy as np

from odelab.plot import style
from studies.step_control import design
from studies.step_control.design import Row
from studies.step_control.tables import PAPER, paper, paper_dataset

MARKS = "osD^v<>*"  # one per seed
LOOKS = {design.STIFFEST: style.COLOURS[1], design.LEAST: style.COLOURS[0], design.RANDOM: style.COLOURS[2]}
HEIGHT = 0.27  # inches per row


def ablation_figure(rows: dict[str, Row], dataset: str):
    """Every seed of every row of Table 4, and what the paper has."""
    shown = {name: row for name, row in rows.items() if row.found}
    with style.figure(1, 2, height=HEIGHT * len(shown) + 1.0, sharey=True) as (drawing, axes):
        ours, theirs = axes[0]
        dots(ours, shown)
        for place, name in enumerate(shown):
            mean, deviation = paper(name, dataset)
            theirs.errorbar(mean, place, xerr=deviation, fmt="o", color="black", markersize=4, capsize=2, linewidth=1)
        theirs.axvline(paper(design.PLAIN, dataset)[0], color=style.GREY, linewidth=0.8, linestyle="--", zorder=1.5)
        plain = shown.get(design.PLAIN)
        if plain:
            ours.axvline(plain.mean, color=style.GREY, linewidth=0.8, linestyle="--", zorder=1.5)
        ours.set_yticks(range(len(shown)), [mathematical(name) for name in shown])
        ours.invert_yaxis()
        ours.set_title("here: every network, and the mean", loc="left")
        theirs.set_title(f"the paper, {paper_dataset(dataset)}, 5 seeds: mean and std", loc="left")
        for axis in (ours, theirs):
            axis.set_xlabel("test accuracy (%)")
        theirs.grid(axis="y", visible=False)
        legend(ours, shown)
    return drawing


def placement_figure(rows: dict[str, Row]):
    """Accuracy by where the controllers are, every network a mark."""
    shown = {name: row for name, row in rows.items() if row.found}
    with style.figure(1, 1, height=HEIGHT * len(shown) + 1.0) as (drawing, axes):
        axis = axes[0, 0]
        dots(axis, shown)
        if design.NONE in shown:
            axis.axvline(shown[design.NONE].mean, color=style.GREY, linewidth=0.8, linestyle="--", zorder=1.5)
        axis.set_yticks(range(len(shown)), [label_with_count(name, row) for name, row in shown.items()])
        axis.invert_yaxis()
        axis.set_xlabel("test accuracy (%)")
        axis.set_title("controllers on these blocks: every network and the mean", loc="left")
        legend(axis, shown)
    return drawing


def dots(axis, rows: dict[str, Row]):
    seeds = seeds_of(rows)
    for place, row in enumerate(rows.values()):
        for run, result in row.found:
            k = seeds.index(run.seed)
            axis.plot(
                result.accuracy,
                place + 0.09 * (2 * k - len(seeds) + 1) / max(len(seeds) - 1, 1),
                MARKS[k % len(MARKS)],
                color=style.COLOURS[k % len(style.COLOURS)],
                markersize=4.5,
            )
        axis.plot([row.mean, row.mean], [place - 0.3, place + 0.3], color="black", linewidth=1.4)
    axis.grid(axis="y", visible=False)
    axis.locator_params(axis="x", nbins=6)


def legend(axis, rows: dict[str, Row]):
    from matplotlib.lines import Line2D

    looks = [(MARKS[k % len(MARKS)], style.COLOURS[k % len(style.COLOURS)]) for k in range(len(seeds_of(rows)))]
    handles = [Line2D([], [], linestyle="", marker=mark, color=colour, markersize=4.5) for mark, colour in looks]
    names = [f"seed {seed}" for seed in seeds_of(rows)]
    axis.figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 5))


def nsi_figure(plain: Row, tickets: dict[str, Row], firsts: list[int]):
    """Stiffness of the plain network by block, one panel per seed, and which blocks the tickets hold."""
    found = sorted(plain.found, key=lambda pair: pair[0].seed)
    with style.figure(len(found), 1, height=1.75 * len(found) + 0.8, sharex=True, sharey=True) as (drawing, axes):
        for axis, (run, result) in zip(axes[:, 0], found, strict=True):
            nsi, numbers = np.array(result.nsi), np.arange(len(result.nsi))
            axis.plot(numbers, nsi, color=style.GREY, linewidth=0.8, zorder=1)
            opens = np.isin(numbers, firsts)
            size = 5 if len(nsi) < 20 else 3
            axis.plot(numbers[~opens], nsi[~opens], "o", color=style.GREY, markersize=size, zorder=2)
            axis.plot(numbers[opens], nsi[opens], "o", color=style.GREY, fillstyle="none", markersize=size, zorder=2)
            step = 0.1 * float(max(max(r.nsi) for _, r in found))
            for level, (name, colour) in enumerate(LOOKS.items()):
                for one in {one.stem: one for one, _ in tickets[name].found}.values() if name in tickets else ():
                    if one.seed == run.seed:
                        y = np.full(len(one.acting), -step * (level + 1))
                        axis.plot(one.acting, y, "s", color=colour, markersize=size)
            axis.axhline(0.0, color=style.GREY, linewidth=0.6)
            axis.set_ylabel("mean NSI")
            axis.set_yticks([tick for tick in axis.get_yticks() if 0.0 <= tick <= nsi.max() + step])
            axis.set_title(f"plain network, seed {run.seed}", loc="left")
            if len(nsi) < 20:
                axis.set_xticks(numbers)
        axes[-1, 0].set_xlabel("block")
        from matplotlib.lines import Line2D

        grey: dict[str, Any] = {"color": style.GREY, "linestyle": "", "marker": "o", "markersize": 5}
        handles = [Line2D([], [], **grey), Line2D([], [], fillstyle="none", **grey)]
        names = ["NSI", "opens a stage"]
        for name, colour in LOOKS.items():
            if name in tickets and tickets[name].found:
                handles.append(Line2D([], [], color=colour, linestyle="", marker="s", markersize=5))
                names.append(f"{name}: controller here")
        drawing.legend(handles, names, loc="outside lower center", ncols=3)
    return drawing


def seeds_of(rows: dict[str, Row]) -> list[int]:
    return sorted({run.seed for row in rows.values() for run, _ in row.found})


def label_with_count(name: str, row: Row) -> str:
    count = len(row.found[0][0].acting)
    return name if name in (design.NONE, design.ALL) else f"{count} {name}"


def mathematical(name: str) -> str:
    """F(x_{t+1}) in italics, Adaptor a as it is."""
    return f"${name}$" if name in PAPER and name.startswith("F(") else name
