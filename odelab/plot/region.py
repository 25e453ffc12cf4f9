"""Regions of the complex plane: where a method is stable, and where a Jacobian's eigenvalues can be moved."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from odelab.methods.interface import answers
from odelab.plot import style
from odelab.runs.trajectory import require_states
from odelab.stiffness.jacobian import jacobian

INSIDE = 5  # methods whose names fit into the frame
DASHES = ("-", "--", ":")  # for methods beyond the number of colours


def stability_region(method, sol=None, *, samples=200, size=600, stages=10, ax=None):
    """Draw where |R(z)| <= 1, the region in which h lambda must lie for a step to be stable.

    The region of an explicit method is bounded. That of an implicit one is all but a bounded part of the right half
    plane, where the equation itself is unstable.

    method   an explicit method, RKC2, a linearly implicit method, RADAU, a method that switches between two, which
             are both drawn, or several of them in a list or a dictionary
    sol      a Trajectory whose cloud is added: h times the eigenvalues of the problem's Jacobian,
             coloured by time. A cloud leaning on the boundary is a run held back by stability
    samples  steps of `sol` whose eigenvalues are taken, at most; 200
    size     points of the grid along each axis; 600
    stages   the number of stages that RKC2 is drawn with; 10
    ax       axes of matplotlib to draw into; by default those of a new figure

    Returns a matplotlib Figure. Raises TypeError for BDF and LSODA, multistep methods, which have no R(z).

    >>> import odelab as ol
    >>> figure = ol.plot.stability_region([ol.EULER, ol.RK4], size=60)
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['EULER', 'RK4']
    """
    methods = [_Region.of(one, stages) for one in _alone(method)]
    cloud, times = step_eigenvalues(sol, samples) if sol is not None else (np.zeros(0, complex), np.zeros(0))
    left, right, height = frame(methods, cloud)
    wide, tall = _size_of_plane((right - left) / (2 * height))
    with style.panel(ax, tall + 0.5, wide + (1.6 if cloud.size else 0.8)) as (drawing, plane):
        x, y = np.meshgrid(np.linspace(left, right, size), np.linspace(-height, height, size))
        handles = []
        for number, one in enumerate(methods):
            colour = style.COLOURS[number % len(style.COLOURS)]
            dashes = DASHES[number // len(style.COLOURS) % len(DASHES)]
            growth = np.abs(one.stability(x + 1j * y))
            plane.contourf(x, y, growth, levels=[0.0, 1.0], colors=[colour], alpha=0.12)
            plane.contour(x, y, growth, levels=[1.0], colors=[colour], linewidths=1.3, linestyles=dashes)
            handles.append(plane.plot([], [], color=colour, linestyle=dashes, label=one.name)[0])
        plane.axhline(0.0, color=style.GREY, linewidth=0.6)
        plane.axvline(0.0, color=style.GREY, linewidth=0.6)
        if cloud.size:
            points = plane.scatter(cloud.real, cloud.imag, c=times, s=9, cmap="viridis", linewidths=0, zorder=3)
            drawing.colorbar(points, ax=plane, label="t", shrink=0.8)
            inside = (cloud.real >= left) & (cloud.real <= right) & (np.abs(cloud.imag) <= height)
            if not inside.all():
                plane.set_title(f"{(~inside).sum()} of {cloud.size} eigenvalues lie outside the frame", loc="left")
        plane.set(xlabel=r"Re $h\lambda$", ylabel=r"Im $h\lambda$", xlim=(left, right), ylim=(-height, height))
        plane.set_aspect("equal")
        if len(handles) <= INSIDE or ax is not None:
            plane.legend(handles=handles, loc="upper left")
        else:
            drawing.legend(handles=handles, loc="outside lower center", ncols=4)
    return drawing


def region_of_run(sol, *, ax=None, **options):
    """The stability region of a run's method, with the steps of the run times its eigenvalues."""
    return stability_region(sol.method, sol, ax=ax, **options)


def _alone(method) -> list:
    """The methods of a list or a dictionary, and both of each pair that takes turns."""
    method = list(method.values()) if isinstance(method, dict) else method
    if isinstance(method, list | tuple):
        return [one for part in method for one in _alone(part)]
    return list(method.members) if answers(method, "members") else [method]


class _Region(NamedTuple):
    """What is drawn of a method."""

    name: str
    stability: Callable
    real_boundary: float

    @classmethod
    def of(cls, method, stages):
        region = method.region(stages) if answers(method, "members") else None
        if region is not None:
            return cls(*region)
        raise TypeError(
            f"`method` must be a method with a stability function, odelab's own or odelab.RADAU, got "
            f"{getattr(method, 'name', method)!r}; BDF and LSODA, multistep methods, have none."
        )


def step_eigenvalues(sol, samples):
    """h * lambda and t at up to `samples` steps spread over a run, flattened."""
    require_states(sol, "the eigenvalues along a run")
    chosen = np.unique(np.linspace(0, sol.steps - 1, min(samples, sol.steps)).astype(int))
    values, times = [], []
    for i in chosen:
        matrix = jacobian(sol.problem, sol.step_t[i], sol.step_u[i])
        matrix = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
        values.append(sol.h[i] * np.linalg.eigvals(matrix))
        times.append(np.full(len(matrix), sol.step_t[i]))
    return np.concatenate(values), np.concatenate(times)


def frame(methods, cloud):
    """Limits that hold every bounded region, what unbounded ones leave out, and, within reason, the cloud."""
    bounded = [one for one in methods if one.real_boundary < math.inf]
    left, right, height = 1.0, 1.0, 1.0
    if bounded:
        left = 1.25 * max(one.real_boundary for one in bounded)
        x, y = np.meshgrid(np.linspace(-left, 2.0, 200), np.linspace(0.0, 1.5 * left, 300))
        stable = np.any([np.abs(one.stability(x + 1j * y)) <= 1.0 for one in bounded], axis=0)
        height, right = 1.08 * y[stable].max(), max(right, 1.08 * x[stable].max())
    for one in methods:
        if one not in bounded:
            size, angle = np.meshgrid(np.logspace(-1.0, 3.0, 400), np.linspace(0.0, 0.5 * np.pi, 91))
            z = size * np.exp(1j * angle)
            unstable = z[np.abs(one.stability(z)) > 1.0]
            right, height = max(right, 1.15 * unstable.real.max()), max(height, 1.25 * unstable.imag.max())
            left = max(left, 0.4 * right)
    if cloud.size:
        left = max(left, min(1.05 * float(-cloud.real.min()), 2.0 * left))
        right = max(right, min(1.1 * float(cloud.real.max()), 0.5 * left))
    return -left, right, height


def pseudospectrum(found, *, levels=None, ax=None):
    """Draw how far changes of each size can move the eigenvalues of a Jacobian.

    found   what `odelab.pseudospectrum` returned
    levels  exponents of ten at which boundaries of pseudospectra are drawn; by default up to nine whole numbers
    ax      axes of matplotlib to draw into; by default those of a new figure

    Every contour is labelled by the size epsilon of the change of J that puts an eigenvalue there; dots are the
    eigenvalues that LAPACK finds, the dashed curve is the boundary of the field of values.

    Returns a matplotlib Figure.

    >>> import odelab as ol
    >>> figure = ol.plot.pseudospectrum(ol.pseudospectrum([[-1.0, 10.0], [0.0, -2.0]], points=20))
    >>> figure.axes[0].get_xlabel()
    'Re z'
    """
    with np.errstate(divide="ignore"):
        sizes = np.log10(found.smallest)
    rounding = np.log10(np.finfo(float).eps * np.linalg.norm(found.triangle) or 1.0)
    levels = _exponents(sizes[np.isfinite(sizes)], rounding) if levels is None else sorted(levels)
    left, right, bottom, top = found.real[0], found.real[-1], found.imaginary[0], found.imaginary[-1]
    wide, tall = _size_of_plane((right - left) / (top - bottom))
    with style.panel(ax, tall + 0.9, wide + 1.6) as (drawing, plane):
        sizes = np.clip(sizes, levels[0] - 1.0, None)
        shades = plane.contourf(
            found.real, found.imaginary, sizes, levels=[levels[0] - 1.0, *levels], cmap="Blues_r", alpha=0.85
        )
        plane.contour(
            found.real, found.imaginary, sizes, levels=levels, colors=style.COLOURS[0], linewidths=0.7, linestyles="-"
        )
        bar = drawing.colorbar(shades, ax=plane, shrink=0.85, ticks=levels)
        bar.ax.set_yticklabels([f"$10^{{{level:g}}}$" for level in levels])
        bar.set_label(r"change $\varepsilon$ that puts an eigenvalue here")
        plane.axvline(0.0, color=style.GREY, linewidth=0.6)
        boundary, values = found.field_of_values, found.eigenvalues
        plane.plot(boundary.real, boundary.imag, "--", color=style.COLOURS[1], linewidth=1.0, label="field of values")
        plane.plot(values.real, values.imag, ".", color="black", markersize=3.5, label="eigenvalues (LAPACK)")
        plane.set(xlabel="Re z", ylabel="Im z", xlim=(left, right), ylim=(bottom, top))
        plane.set_aspect("equal")
        plane.grid(False)
        if ax is None:
            drawing.legend(*plane.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        else:
            plane.legend(loc="lower right")
    return drawing


def _size_of_plane(ratio) -> tuple[float, float]:
    """(width, height) in inches of axes with one scale, from the ratio of their spans."""
    tall = min(3.7, 9.0 / ratio)
    return max(2.6, tall * ratio), tall


def _exponents(sizes, rounding):
    """Up to nine exponents of ten within what a grid shows and rounding leaves, evenly spaced from the largest down."""
    highest, lowest = sizes.max(), max(sizes.min(), rounding)
    stride = max(1, -(-int(highest - lowest) // 8)) if highest - lowest > 3.0 else 0.5
    chosen = np.arange(np.floor(highest / stride) * stride, lowest, -stride)[::-1]
    return list(chosen) or [float(np.median(sizes))]
