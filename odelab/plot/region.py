"""Stability regions, derived from the tableau, with the h * lambda of a run laid over them."""

import numpy as np

from odelab.plot import style
from odelab.runs.trajectory import require_states


def stability_region(method, sol=None, *, samples=200, size=600):
    """Where |R(z)| <= 1 for one method or several, as a matplotlib Figure.

    `sol`, a run of an explicit method, adds its cloud: h times the eigenvalues of the problem's Jacobian at up to
    `samples` of its steps, coloured by time. A cloud leaning on the boundary is a run held back by stability.
    """
    methods = list(method) if isinstance(method, list | tuple) else [method]
    cloud, times = step_eigenvalues(sol, samples) if sol is not None else (np.zeros(0, complex), np.zeros(0))
    left, right, height = frame(methods, cloud)
    tall = 4.2  # inches; the width follows, since both axes have one scale
    with style.figure(height=tall, width=tall * (right - left) / (2 * height) + (1.6 if cloud.size else 0.8)) as (
        drawing,
        axes,
    ):
        plane = axes[0, 0]
        x, y = np.meshgrid(np.linspace(left, right, size), np.linspace(-height, height, size))
        handles = []
        for one, colour in zip(methods, style.COLOURS, strict=False):
            growth = np.abs(one.stability(x + 1j * y))
            plane.contourf(x, y, growth, levels=[0.0, 1.0], colors=[colour], alpha=0.12)
            plane.contour(x, y, growth, levels=[1.0], colors=[colour], linewidths=1.3)
            handles.append(plane.plot([], [], color=colour, label=one.name)[0])
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
        plane.legend(handles=handles, loc="upper left")
    return drawing


def step_eigenvalues(sol, samples):
    """h * lambda and t at up to `samples` steps spread over a run, flattened."""
    from odelab.stiffness.jacobian import jacobian

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
    """Limits that hold every region and, within reason, the cloud."""
    left = 1.25 * max(one.real_boundary for one in methods)
    x, y = np.meshgrid(np.linspace(-left, 2.0, 200), np.linspace(0.0, 1.5 * left, 300))
    height = 1.08 * max(y[np.abs(one.stability(x + 1j * y)) <= 1.0].max() for one in methods)
    right = 1.0
    if cloud.size:
        left = max(left, min(1.05 * float(-cloud.real.min()), 2.0 * left))
        right = max(right, min(1.1 * float(cloud.real.max()), 0.5 * left))
    return -left, right, height
