"""Numbers of the two pages that move, computed by odelab; `_static/live.js` only draws them.

The drawings and sliders are those of the studies' pages, whose files the site borrows."""

import base64
import functools
import json

import contourpy
import numpy as np

import odelab as ol

BORROWED = ("drawing.js", "drawing.css")  # of studies/lab/report
METHODS = (ol.EULER, ol.HEUN, ol.RK4, ol.BS32, ol.DOPRI5, ol.DOP853)
MU, SAMPLES = 20.0, 240
ANGLES = np.arange(0, 91, 10)
DECADES = np.linspace(0.0, 4.0, 41)  # of the fast rate, and of the departure from normality
COLOURS = 2.0  # decades of SAI / SI to each side of 1


@functools.cache
def script() -> str:
    """The numbers of both pages as a script, which a page opened from a file may load."""
    return f"const LIVE = {json.dumps({'region': region(), 'theorem2': theorem2()}, separators=(',', ':'))};\n"


def region() -> dict:
    """A run's eigenvalues over time, the regions of six methods, and for each eigenvalue the largest stable step."""
    problem = ol.problems.van_der_pol(mu=MU).replace(t_span=(0.0, 60.0))
    sol = ol.solve(problem, ol.RODAS4, ol.adaptive(1e-6, 1e-9))
    t = np.linspace(20.0, 55.0, SAMPLES)  # beyond the start, about one period
    values = np.array([np.linalg.eigvals(ol.jacobian(problem, time, sol(time))) for time in t])
    return {
        "problem": f"van der Pol, mu = {MU:g}",
        "t": rounded(t),
        "u": rounded(sol(t)[:, 0]),
        "eigenvalues": [[rounded([one.real, one.imag]) for one in pair] for pair in values],
        "methods": [
            {
                "name": f"{method.name}, order {method.order}",
                "outline": outline(method),
                "largest": [[finite(ol.largest_stable_step([one], method)) for one in pair] for pair in values],
            }
            for method in METHODS
        ],
    }


def outline(method) -> list[list[list[float]]]:
    """Where |R(z)| = 1, as polygons."""
    x, y = np.linspace(-7.5, 2.5, 201), np.linspace(-5.5, 5.5, 221)
    growth = np.abs(method.stability(x + 1j * y[:, None]))
    lines = contourpy.contour_generator(x, y, growth).lines(1.0)
    return [[rounded(point) for point in line] for line in lines if len(line) > 8]


def theorem2() -> dict:
    """SAI / SI of J = [[-s, c], [0, -1]] over s and c, for states of ten directions, and the pictures' ends."""
    fast, coupling = np.meshgrid(10.0**DECADES, 10.0**DECADES)
    J = np.zeros((fast.size, 2, 2))
    J[:, 0, 0], J[:, 0, 1], J[:, 1, 1] = -fast.ravel(), coupling.ravel(), -1.0
    maps = []
    for angle in np.radians(ANGLES):
        u = np.array([np.cos(angle), np.sin(angle)])
        found = ol.theorem2(J, np.broadcast_to(u, (len(J), 2)), J @ u)
        maps.append(packed(np.log10(found.sai / found.si)))
    ends = {"decades": [float(DECADES[0]), float(DECADES[-1])], "count": len(DECADES), "colours": COLOURS}
    return {"angles": ANGLES.tolist(), "maps": maps, **ends}


def packed(decades: np.ndarray) -> str:
    """Decades as 16-bit hundredths, row after row in base 64."""
    hundredths = np.clip(np.round(100.0 * decades), -32768, 32767).astype("<i2")
    return base64.b64encode(hundredths.tobytes()).decode()


def finite(step: float) -> float | None:
    return float(f"{step:.4g}") if np.isfinite(step) else None


def rounded(values) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
