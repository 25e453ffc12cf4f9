"""Every figure of `cifar_tns`: along depth, surfaces and TNS, gates against NSI, accuracy against TNS."""

import numpy as np

from odelab.plot import style
from studies.lab.figures import heat_map, in_a_row, label_panels, looks, panels, use_axes
from studies.lab.networks import groups
from studies.lab.stiffness import QUANTITIES, READINGS, SHAPE, TNS, wording

DASHES = ("-", "--", ":", "-.")
SYMBOL = {"slope": r"$\|f(x_t)\|\,/\,\|x_t\|$", "increment": r"$\|x_{t+1}-x_t\|\,/\,\|x_t\|$"}
GRID = 31  # degrees along each side of a surface
LEVELS = (0.01, 0.1, 0.5, 0.9)
CLOUD = 1500  # points in a cloud: with more of them they cover one another


def row_name(found) -> str:
    """A network's name with its seed, as far as that is known."""
    return found.name if found.subject.seed is None else f"{found.name}, seed {found.subject.seed}"


def stages_of(axis, record):
    """Lines between stages; hollow where a block opens its stage and is not counted."""
    for k in np.flatnonzero(record.first):
        if k:
            axis.axvline(k + 0.5, color=style.GREY, linewidth=0.6, linestyle=(0, (1, 2)))
    axis.set_xlim(0.5, len(record.names) + 0.5)
    axis.set_xticks(range(1, len(record.names) + 1, max(1, len(record.names) // 9)))


def trajectory(axis, record, values, **options):
    """One line per stage, broken where the state changes its shape; the opening blocks hollow."""
    blocks = np.arange(1, len(values) + 1)
    colour = options.pop("color")
    mark, label = options.pop("marker", None), options.pop("label", None)
    for stage in np.unique(record.stage):
        at = record.stage == stage
        axis.plot(blocks[at], values[at], color=colour, label=label, **options)
        label = None
        if mark is not None:
            inner, outer = at & ~record.first, at & record.first
            axis.plot(blocks[inner], values[inner], mark, color=colour, markersize=3.2)
            axis.plot(blocks[outer], values[outer], mark, color=colour, markersize=3.2, markerfacecolor="white")


def places_shown_first(subjects, count=4) -> list[int]:
    """The places of up to `count` networks of different names, those that the paper shows first."""
    places = [members[0] for members in groups(subjects).values()]
    wanted = ("constant", "SE", "StepNet")
    return sorted(places, key=lambda p: (subjects[p].controller not in wanted, p))[:count]


def single_figure(results, of, images=6):
    """Figures 1 and 3: a few images through the constant network and through networks with attention."""
    firsts = places_shown_first([r.subject for r in results])
    with panels(len(firsts), columns=2, height=2.1, sharex=False, sharey=True) as (drawing, axes):
        shown = use_axes(axes, len(firsts))
        for axis, place in zip(shown, firsts, strict=True):
            found = results[place]
            record = found.records[of]
            for i in range(min(images, len(record))):
                trajectory(
                    axis, record, record.nsi[i], color=style.COLOURS[i % 6], marker="o", linewidth=0.9, label=str(i)
                )
            stages_of(axis, record)
            axis.set_title(row_name(found), loc="left")
        finish(drawing, axes, len(firsts), of)
        drawing.legend(*shown[0].get_legend_handles_labels(), title="test image", loc="outside right upper")
    return drawing


def averaged_figure(results, of):
    """Figures 3 and 10: the mean over images, a line per seed; the band holds nine images of ten of the first seed."""
    names = groups([r.subject for r in results])
    colours = looks([r.subject for r in results])
    with panels(len(names), columns=in_a_row(len(names)), sharex=False, sharey=True) as (drawing, axes):
        shown = use_axes(axes, len(names))
        for axis, (name, places) in zip(shown, names.items(), strict=True):
            record = results[places[0]].records[of]
            band(axis, record, colours[name][0])
            for line, place in enumerate(places):
                found = results[place]
                trajectory(
                    axis,
                    found.records[of],
                    found.records[of].nsi.mean(axis=0),
                    color=colours[name][0],
                    marker="o" if line == 0 else None,
                    linestyle=DASHES[line % len(DASHES)],
                    label=None if found.subject.seed is None else f"seed {found.subject.seed}",
                )
            stages_of(axis, record)
            axis.set_title(name, loc="left")
        finish(drawing, axes, len(names), of)
        handles, labels = max((axis.get_legend_handles_labels() for axis in shown), key=lambda pair: len(pair[1]))
        if len(labels) > 1:
            for handle in handles:
                handle.set_markersize(0)
            drawing.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return drawing


def band(axis, record, colour):
    blocks = np.arange(1, len(record.names) + 1)
    low, high = np.percentile(record.nsi, [5, 95], axis=0)
    for stage in np.unique(record.stage):
        at = record.stage == stage
        axis.fill_between(blocks[at], low[at], high[at], color=colour, alpha=0.15, linewidth=0)


def finish(drawing, axes, count, of):
    label_panels(axes, count, "block", "NSI")
    axes[0, 0].set_ylim(bottom=0)  # all panels share the axis; set last, because it ends the automatic scaling
    drawing.suptitle(f"NSI = {SYMBOL[of]}", x=0.01, ha="left", fontsize=9)


def degrees(results, of, mu) -> tuple[np.ndarray, np.ndarray]:
    """M1 and M2 up to where fewer than one image in a hundred is stiff, the same for all networks."""
    ends = []
    for most, shares in (
        (max(len(found.records[of].names) for found in results), lambda record, m: record.delta(m, 0.0, mu)),
        (max(found.records[of].counted().nsi.max() for found in results), lambda record, m: record.delta(0.0, m, mu)),
    ):
        grid = np.linspace(0.0, float(most), 150)
        stiff = max(int(np.count_nonzero(shares(found.records[of], grid) >= LEVELS[0])) for found in results)
        ends.append(np.linspace(0.0, grid[min(stiff + 1, len(grid) - 1)], GRID))
    return ends[0], ends[1]


def surfaces(results, of, mu, which) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """`which` ("delta" or "proportion") over M1 (columns) and M2 (rows), per name, the mean over its seeds."""
    m1, m2 = degrees(results, of, mu)
    found = {}
    for name, places in groups([r.subject for r in results]).items():
        members = [getattr(results[place].records[of], which)(m1, m2[:, None], mu) for place in places]
        found[name] = np.mean(members, axis=0)
    return m1, m2, found


def surface_figure(results, of, mu, which, surface):
    """Figure 2 (`which` = "delta") or Figure 6 ("proportion"), one panel per controller; `surface` as of `surfaces`."""
    m1, m2, found = surface
    levels = LEVELS if which == "delta" else LEVELS[:2]
    top = 1.0 if which == "delta" else max(0.2, max(float(s.max()) for s in found.values()))
    with panels(len(found), columns=in_a_row(len(found)), sharex=True, sharey=True) as (drawing, axes):
        shown = use_axes(axes, len(found))
        for axis, (name, shares) in zip(shown, found.items(), strict=True):
            image = axis.imshow(
                shares, cmap="viridis", vmin=0.0, vmax=top, interpolation="bilinear", aspect="auto", origin="lower",
                extent=frame_of(m1, m2),
            )  # fmt: skip
            axis.set(xlim=(m1[0], m1[-1]), ylim=(m2[0], m2[-1]))
            crossed = [level for level in levels if shares.min() < level < shares.max()]
            if crossed:
                axis.contour(m1, m2, shares, levels=crossed, colors="white", linewidths=0.7)
            axis.grid(False)
            axis.set_title(title(results, name, of, mu, which), loc="left")
        label_panels(axes, len(found), "$M_1$", "$M_2$")
        label = r"$\delta(M_1, M_2)$, share of images" if which == "delta" else r"$\hat p(M_1, M_2)$, share of blocks"
        drawing.colorbar(image, ax=axes, label=label, shrink=0.8, aspect=30, pad=0.02)
        lines = ", ".join(f"{100 * level:g}" for level in levels)
        drawing.suptitle(f"{wording(of, mu)}; lines, from outside in, at {lines} %", x=0.01, ha="left", fontsize=9)
    return drawing


def frame_of(m1, m2) -> tuple[float, float, float, float]:
    """The edges of a picture whose points stand in the middle of its cells."""
    across, up = (m1[1] - m1[0]) / 2, (m2[1] - m2[0]) / 2
    return m1[0] - across, m1[-1] + across, m2[0] - up, m2[-1] + up


def title(results, name, of, mu, which):
    if which != "delta":
        return name
    places = groups([r.subject for r in results])[name]
    return f"{name}, TNS {np.mean([results[place].tns[of, mu].value for place in places]):.3f}"


def parts_figure(results):
    """TNS, its scale and its shape of every network with intervals over images; one colour a controller."""
    subjects = [r.subject for r in results]
    names, colours = groups(subjects), looks(subjects)
    columns = [(what, reading) for what, readings in QUANTITIES.items() for reading in readings]
    height = 0.15 * sum(map(len, names.values())) + 0.1 * len(names) + 0.5
    with style.figure(2, 5, height=2 * height + 0.6, sharey=True) as (drawing, axes):
        for axis, (what, reading) in zip(axes.flat, columns, strict=True):
            y, ticks = 0.0, []
            for name, places in names.items():
                ticks.append(y + 0.5 * (len(places) - 1))
                for place in places:
                    e = results[place].stiffness[what][reading]
                    axis.plot([e.low, e.high], [y, y], color=colours[name][0], linewidth=1.6, solid_capstyle="butt")
                    axis.plot(e.value, y, "o", color=colours[name][0], markersize=3.5)
                    y += 1.0
                y += 0.6
            baseline(axis, results, names, what, reading)
            axis.set_yticks(ticks, list(names))
            axis.grid(axis="y", visible=False)
            axis.set_title(f"{what}\n" + wording(*reading).replace(", ", ",\n"), loc="left")
            axis.locator_params(axis="x", nbins=4)
        axes[0, 0].invert_yaxis()
    return drawing


def baseline(axis, results, names, what, reading):
    """A line at the mean of constant step sizes."""
    if "constant" in names:
        mean = np.mean([results[place].stiffness[what][reading].value for place in names["constant"]])
        axis.axvline(mean, color=style.GREY, linewidth=0.8, linestyle="--")


def cloud_figure(found, of, blocks, coefficients, called="block"):
    """Figure 9a: the mean gate of an image against its NSI, at three blocks of one network; `called` names a block."""
    with style.figure(1, len(blocks), height=2.5) as (drawing, axes):
        record = found.records[of]
        for axis, k in zip(axes[0], blocks, strict=True):
            axis.plot(record.nsi[:CLOUD, k], found.gates[:CLOUD, k], ".", markersize=2.5, alpha=0.5, rasterized=True)
            axis.set_title(rf"{called} {k + 1}, $\rho$ = {coefficients[k]:+.2f}", loc="left")
            axis.set_xlabel("NSI")
            axis.ticklabel_format(useOffset=False)
            axis.locator_params(nbins=4)
        axes[0, 0].set_ylabel("mean step size h")
        drawing.suptitle(f"{row_name(found)}; NSI = {SYMBOL[of]}", x=0.01, ha="left", fontsize=9)
    return drawing


def gate_figure(rows: list[str], table: np.ndarray, of: str):
    """Figure 9b, for every network and block: Spearman's correlation of gate and NSI over images."""
    blocks = [str(k + 1) for k in range(table.shape[1])]
    drawing = heat_map(table, rows, blocks, "rank correlation of h and NSI", numbers=len(blocks) <= 18)
    drawing.axes[0].set_xlabel("block")
    drawing.suptitle(f"NSI = {SYMBOL[of]}", x=0.01, ha="left", fontsize=9)
    return drawing


def relation_figure(results, relations, errors):
    """Figure 7: accuracy against TNS and against its shape, under every reading; bars are intervals of both."""
    subjects = [r.subject for r in results]
    names, colours = groups(subjects), looks(subjects)
    with style.figure(2, 4, height=6.0, sharey=True) as (drawing, axes):
        for row, what in zip(axes, (TNS, SHAPE), strict=True):
            for axis, reading in zip(row, READINGS, strict=True):
                for name, places in names.items():
                    colour, mark = colours[name]
                    estimates = [results[place].stiffness[what][reading] for place in places]
                    x = np.array([e.value for e in estimates])
                    bars = [x - [e.low for e in estimates], [e.high for e in estimates] - x]
                    axis.errorbar(
                        x,
                        [results[place].accuracy for place in places],
                        xerr=np.maximum(bars, 0.0),
                        yerr=np.transpose([errors[place] for place in places]),
                        fmt=mark,
                        color=colour,
                        markersize=4.0,
                        elinewidth=0.6,
                        alpha=0.9,
                        label=name,
                    )
                found = relations[what][reading].whole
                axis.set_title(
                    wording(*reading).replace(", ", ",\n") + f"\n$\\tau$ = {found.kendall.value:+.2f}", loc="left"
                )
                axis.set_xlabel(what)
                axis.locator_params(axis="x", nbins=4)
        for row in axes:
            row[0].set_ylabel("test accuracy (%)")
        drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return drawing
