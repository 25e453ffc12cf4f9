"""delta(M1, M2) and the stiffness proportion as surfaces, and the exact TNS of every network with its interval."""

import numpy as np

from odelab.plot import style
from studies.cifar_tns.depth_figures import bottom, filled, looks, panels
from studies.lab.measure import READINGS
from studies.lab.networks import groups

POINTS = 61
LEVELS = (0.01, 0.1, 0.5, 0.9)


def wording(of, mu) -> str:
    return f"{of} NSI, {'sample' if mu == 'sample' else 'data-set'} mean"


def degrees(results, of, mu) -> tuple[np.ndarray, np.ndarray]:
    """M1 and M2 up to where fewer than one image in a hundred is stiff, the same for all networks."""
    ends = []
    for most, shares in (
        (max(len(found.records[of].names) for found in results), lambda record, m: record.delta(m, 0.0, mu)),
        (max(found.records[of].counted().nsi.max() for found in results), lambda record, m: record.delta(0.0, m, mu)),
    ):
        grid = np.linspace(0.0, float(most), 150)
        stiff = max(int(np.count_nonzero(shares(found.records[of], grid) >= LEVELS[0])) for found in results)
        ends.append(np.linspace(0.0, grid[min(stiff + 1, len(grid) - 1)], POINTS))
    return ends[0], ends[1]


def surfaces(results, of, mu, which) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """`which` ("delta" or "proportion") over M1 (columns) and M2 (rows), per name, the mean over its seeds."""
    m1, m2 = degrees(results, of, mu)
    found = {}
    for name, places in groups([r.subject for r in results]).items():
        members = [getattr(results[place].records[of], which)(m1, m2[:, None], mu) for place in places]
        found[name] = np.mean(members, axis=0)
    return m1, m2, found


def surface_figure(results, of, mu, which):
    """Figure 2 (`which` = "delta") or Figure 6 ("proportion"), one panel per controller."""
    m1, m2, found = surfaces(results, of, mu, which)
    levels = LEVELS if which == "delta" else LEVELS[:2]
    top = 1.0 if which == "delta" else max(0.2, max(float(s.max()) for s in found.values()))
    with panels(len(found), sharex=True, sharey=True) as (drawing, axes):
        shown = filled(axes, len(found))
        for axis, (name, surface) in zip(shown, found.items(), strict=True):
            image = axis.pcolormesh(
                m1, m2, surface, cmap="viridis", vmin=0.0, vmax=top, shading="gouraud", rasterized=True
            )
            crossed = [level for level in levels if surface.min() < level < surface.max()]
            if crossed:
                axis.contour(m1, m2, surface, levels=crossed, colors="white", linewidths=0.7)
            axis.grid(False)
            axis.set_title(title(results, name, of, mu, which), loc="left")
        for axis in bottom(axes, len(found), axes.shape[1]):
            axis.set_xlabel("$M_1$")
            axis.xaxis.set_tick_params(labelbottom=True)
        for row in axes:
            row[0].set_ylabel("$M_2$")
        label = r"$\delta(M_1, M_2)$, share of images" if which == "delta" else r"$\hat p(M_1, M_2)$, share of blocks"
        drawing.colorbar(image, ax=axes, label=label, shrink=0.8, aspect=30, pad=0.02)
        lines = ", ".join(f"{100 * level:g}" for level in levels)
        drawing.suptitle(f"{wording(of, mu)}; lines, from outside in, at {lines} %", x=0.01, ha="left", fontsize=9)
    return drawing


def title(results, name, of, mu, which):
    if which != "delta":
        return name
    places = groups([r.subject for r in results])[name]
    return f"{name}, TNS {np.mean([results[place].tns[of, mu].value for place in places]):.3f}"


def tns_figure(results):
    """The exact TNS of every network under every reading, with its interval over images."""
    subjects = [r.subject for r in results]
    names, colours = groups(subjects), looks(subjects)
    height = 0.17 * sum(map(len, names.values())) + 0.1 * len(names) + 0.5
    with style.figure(2, 2, height=2 * height + 0.4, sharey=True) as (drawing, axes):
        for axis, reading in zip(axes.flat, READINGS, strict=True):
            y, ticks = 0.0, []
            for name, places in names.items():
                ticks.append(y + 0.5 * (len(places) - 1))
                for place in places:
                    e = results[place].tns[reading]
                    axis.plot([e.low, e.high], [y, y], color=colours[name][0], linewidth=1.6, solid_capstyle="butt")
                    axis.plot(e.value, y, "o", color=colours[name][0], markersize=4)
                    y += 1.0
                y += 0.6
            baseline(axis, results, names, reading)
            axis.set_yticks(ticks, list(names))
            axis.grid(axis="y", visible=False)
            axis.set_title(wording(*reading), loc="left")
            axis.set_xlabel("TNS")
            axis.locator_params(axis="x", nbins=5)
        axes[0, 0].invert_yaxis()
    return drawing


def baseline(axis, results, names, reading):
    """A line at the mean TNS of constant step sizes."""
    if "constant" in names:
        mean = np.mean([results[place].tns[reading].value for place in names["constant"]])
        axis.axvline(mean, color=style.GREY, linewidth=0.8, linestyle="--")
