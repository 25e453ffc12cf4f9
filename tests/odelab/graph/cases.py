"""Right-hand sides as people write them, as text: every one is to be traced, and to equal the plain function.

Each case is the body of `def rhs(t, u, params)`, or of `def rhs(t, u, params, out)` where it is filled in place; the
names that it uses are defined in DEFINITIONS.
"""

import textwrap
from typing import NamedTuple

from odelab.right_hand_side import ARRAY, COMPONENT, IN_PLACE

PARAMS = (0.7, 1.3)
DEFINITIONS = """
import functools, itertools, math, operator
from collections import namedtuple
from dataclasses import dataclass
from math import cos, exp, pi, sin, sqrt
from typing import NamedTuple
import numpy as np
import numpy.linalg
from numpy import array, tanh
from scipy.interpolate import CubicSpline, interp1d
from scipy.special import expit
from odelab import maths
try:
    from numba import njit
except ModuleNotFoundError:  # then it is a plain function
    def njit(function): return function

MATRIX = np.array([[-0.5, 1.0], [-1.0, -0.3]])
LARGE = np.array([[-1.0, 0.2, 0.1], [0.3, -2.0, 0.1], [0.0, 0.5, -1.0]])
GRID, TABLE = np.linspace(-3.0, 3.0, 40), np.sin(np.linspace(0.0, 6.0, 40))
WEIGHTS, ORDERS = np.array([0.2, -0.4, 1.1]), np.array([2, 1, 0, -1])
LIST, NESTED, RATES = [0.1, 0.5, 0.9, 0.2], [[1.0, 2.0], [3.0, 4.0]], {"a": 0.3, "b": np.array([1.2, 0.4])}
SPLINE, LINE = CubicSpline(GRID, TABLE), interp1d(GRID, TABLE, fill_value="extrapolate")
Pair = namedtuple("Pair", "a b")
PAIR = Pair(0.4, np.array([1.1]))
class Typed(NamedTuple):
    rate: float = 0.3
    def slope(self, x): return math.tanh(self.rate * x)
TYPED = Typed()
@dataclass
class Spring:
    k: float = 2.0
    c: float = 0.1
    def force(self, x, v): return -self.k * x - self.c * math.sin(v)
    @property
    def sum(self): return self.k + self.c
SPRING = Spring()
class Gain:
    scale = 0.5
    def __init__(self, k): self.k, self.matrix = k, MATRIX
    def __call__(self, x): return self.k * self.bent(x)
    def __getitem__(self, i): return self.matrix[0, i]
    @staticmethod
    def bent(x): return math.tanh(x)
GAIN = Gain(0.3)
def helper(x, k=0.5): return k * x / (1 + abs(x))
def saturated(x, *, level=1.0): return level if x > level else x
def around(level):
    def inside(x): return level * x
    return inside
scaled, squared, half = around(0.6), lambda x: x**2, functools.partial(helper, k=2.0)
def factorial(x, k): return x if k == 0 else x * factorial(x, k - 1) / k
@functools.lru_cache
def cached(x): return 2.0 * x
@njit
def quick(x): return 0.4 * x
"""

COMPONENTS = r"""
x, v = u; return v, params[0] * (1 - x * x) * v - x
x, v = u; return v, params[0] * (1 - x**2) * v - x**3
a, b = params; x, y = u; return [a * x - b * x * y, b * x * y - a * y]
return u[1], -math.sin(u[0]) - params[0] * u[1]
return u[1], -np.sin(u[0]) + np.cos(1.2 * t)
return u[1], -sin(u[0]) + cos(t) * pi
return tanh(u[0]), maths.tanh(u[1]) - maths.sign(u[0])
return maths.where(u[0] > 0, -u[0], 0.1), maths.maximum(u[1], 0.5)
return (-0.3 if u[1] > 0 else 0.3 + 0.1 * u[1] if u[1] < -1 else 0.3) - u[0], u[0]
return (5.0 if t % 1.0 < 0.2 else 0.0) - u[0], u[0] - u[1]
return max(u[0], 0.0) - u[1], min(u[1], u[0], 1.0)
return -abs(u[0]) * u[0], math.fabs(u[1]) - np.abs(u[0])
return np.interp(t, GRID, TABLE) - u[0], np.interp(u[0], GRID, TABLE, left=0.0) - u[1]
k = min(int(abs(u[0]) * 10), 39); return TABLE[k] - u[0], TABLE[int(t * 30) % 40]
return LIST[int(t * 4) % 4] - u[0], NESTED[int(t * 3) % 2][1] * u[1]
return TABLE[int(u[0] * 10)] - u[0], -u[1]
return MATRIX[int(t * 2) % 2, 0] * u[0], MATRIX[int(t * 2) % 2] @ u
return 0.01 * np.searchsorted(GRID, u[0]), 0.01 * np.searchsorted(GRID, u[1], side="right")
return float(SPLINE(t)) - u[0], SPLINE(u[0]) - u[1]
return float(LINE(t)) - u[0], -u[1]
return helper(u[0]) - u[1], helper(u[1], k=params[0])
return saturated(u[0]) - u[1], saturated(u[1], level=0.3)
return scaled(u[0]) - squared(u[1]), half(u[0])
f = lambda z: z + u[0]; return f(u[1]), quick(u[0])
return SPRING.force(u[0], u[1]), SPRING.sum * u[0]
return GAIN(u[0]), GAIN[1] * u[1] + GAIN.scale
s = Spring(k=u[0], c=2.0); return s.force(u[1], u[0]), s.sum
p = Pair(u[0], u[1]); return p.b * PAIR.a, -p.a * PAIR.b[0]
return TYPED.slope(u[0]), TYPED.rate * u[1]
return RATES["a"] * u[1], -RATES["b"][0] * u[0]
s = dict(x=u[0], y=u[1]); return s["y"], -s["x"]
return sum(w * x for w, x in zip(WEIGHTS, u)), -sum([x * i for i, x in enumerate(u)])
return functools.reduce(operator.mul, u), list(itertools.accumulate(u))[-1]
return np.prod(u), -u.sum() + u.mean()
s = 0.0\nfor i in range(4):\n    s += u[0] / (i + 1)\nreturn s, -u[1]
y, k = u[0], 0\nwhile abs(y) > 1 and k < 20:\n    y *= 0.5\n    k += 1\nreturn y, k * u[1]
y = u[0]\nfor _ in range(5):\n    y = y - (y**3 + y - u[1]) / (3 * y * y + 1)\nreturn y, -u[1]
return factorial(u[0], 3), -u[1]
try:\n    y = math.sqrt(u[0])\nexcept ValueError:\n    y = 0.0\nreturn y, -u[1]
try:\n    y = math.log(u[0]) + math.exp(900 * u[1])\nexcept (ValueError, OverflowError):\n    y = -2.0\nreturn y, -u[1]
return t // 0.7 - u[0], u[0] // -0.3 - u[1]
return u[0] % 1.5 - u[1], u[1] % -0.7
k = int(u[0] * 5); return k // 2 + k % 3 - k // -4, k % -3 + divmod(k, 4)[1]
return round(u[0]) - u[0], round(u[1], 1) + round(t, 2)
return math.floor(u[0]) - u[0], np.floor(u[1]) + math.ceil(t) + math.trunc(u[0])
k = 2e3 * math.exp(-5.0 / max(u[1], 0.1)); return -k * u[0], k * u[0] - 0.1 * u[1]
return abs(u[0]) ** 2.5 / (1 + abs(u[0]) ** params[1]), 2.0 ** u[1]
return (1 + u[0] ** 2) ** -0.5, (1 + u[1] ** 2) ** -2
return pow(u[0], 2) - u[1], math.pow(abs(u[1]), 1.5)
return expit(u[0]), math.erf(u[1]) + math.erfc(u[0])
return math.atan2(u[0], u[1]), np.arctan2(u[1], u[0]) + math.atan(u[0])
return math.log(1 + abs(u[0])) - u[1], np.log1p(abs(u[1])) + math.log(3 + u[0] ** 2, 2)
return math.cosh(u[1]) - np.sinh(u[0]), math.asinh(u[0]) + np.arctan(u[1])
return np.cbrt(u[0]), np.exp2(-u[1] ** 2) + math.expm1(u[0])
return math.hypot(u[0], u[1], 1.0), math.copysign(1.0, u[0]) * math.fmod(u[1], 0.3)
return math.degrees(u[0]), np.deg2rad(u[1]) + math.dist((u[0], 1.0), (0.0, u[1]))
return (u[0] if math.isfinite(u[0]) else 0.0), (1.0 if np.isnan(u[1]) else -u[1])
return (0.0 if math.isclose(u[0], 0.0, abs_tol=1e-9) else u[0]), np.isclose(u[0], u[1]) * 1.0
return (-u[0] if (u > 0).all() else u[0]), (1.0 if np.any(u > 1) else -u[1])
return (u[0] > 0) * u[0] - u[1], (t < 0.5) * 1.0 - u[1]
a, b = sorted(u); return a, -b
mode = "on" if t > 0.5 else "off"; return {"on": 1.0, "off": 0.0}[mode] - u[0], -u[1]
match int(t * 2) % 3:\n    case 0: f = 1.0\n    case 1: f = -1.0\n    case _: f = 0.0\nreturn f - u[0], -u[1]
return (r := u[0] * u[0] + u[1] * u[1]) - u[0], -r * u[1]
return (1.0 if any(x > 1 for x in u) else 0.0) - u[0], (2.0 if all(x > 0 for x in u) else 1.0)
a, b = divmod(u[0], 0.7); return a - u[0], b - u[1]
a, b = u.tolist(); return b, -a
return float(u[1]), -np.float64(u[0])
return (u[0] if isinstance(u[0], float) else 0.0), (u[1] if not isinstance(u, list) else 0.0)
assert t >= -1; return u[1], -u[0]
if u[0] < 0:\n    raise RuntimeError("no")\nreturn u[1], -u[0]
import math as m; from math import cosh\nreturn m.cos(u[0]), cosh(u[1])
import numpy\nreturn numpy.exp(-u[0] ** 2), numpy.linalg.norm(u)
return u[0] * 10**3 / 10**3, u[1] * 1e-300 * 1e300
x = u[0]\nif x > 0:\n    if u[1] > 0:\n        return x, 1.0\n    return x, 2.0\nreturn -x, u[1]
return (u[0] or 1.0), (u[0] > 0 and u[1] or 2.0)
return -1 < u[0] < 1, not u[1] > 0
held = [u[0], 1.0]; held.append(u[1]); held[0] += 1.0; return held[-1], held[0]
return np.where(u[0] > 0, u[0], -1.0), np.sign(u[1]) + np.heaviside(u[0], 0.5)
return cached(2.0) * u[0], len(u) * u[1] + u.size
return np.select([u[0] > 1, u[0] > 0], [1.0, u[1]], 3.0), np.clip(u[1], -0.5, 0.5)
held = np.zeros(4); held[int(t * 3) % 4] = u[0]; return held.sum() + held[1], -u[1]
return [u[0], u[1]][int(t * 4) % 2], (u[0], u[1])[int(u[0] > 0) % 2]
return u[0] * True + math.inf * 0 * (u[0] != u[0]), u[1]
with np.errstate(all="ignore"):\n    return 1.0 / u[0], np.log(u[1])
return np.max([u[0], 0.3, u[1]]), np.sqrt([u[0] ** 2, 1.0])[0]
"""

ARRAYS = r"""
return MATRIX @ u + np.array([0.0, params[0]])
return np.dot(MATRIX, u) * np.sin(t)
return np.array([u[1], -u[0]])
return -u * np.where(u > 0, u - np.roll(u, 1), np.roll(u, -1) - u)
return np.clip(u, -0.5, 0.5) - u * 0.1 + np.maximum(u, 0) - np.minimum(u, 1.0)
return u * (1 - u / params[0])
v = u.copy(); v[v < 0] = 0.0; return v - 0.5 * u
return u[[1, 0]] * np.array([1.0, -1.0]) + u[::-1]
return np.stack([u[1], -u[0]]) + np.hstack([u[1], 0.5])
return np.concatenate([u[1:], -u[:1] / np.linalg.norm(u) ** 3])
return np.outer(u, u).sum(axis=0) - np.einsum("ij,j->i", MATRIX, u)
return np.polyval([1.0, -0.5, 0.2], u) - np.square(u) - np.reciprocal(2 + u * u)
return u.mean() - u + 0.1 * (u - u.mean()) / (1.0 + np.std(u)) + u.var()
return -np.cumsum(u) * 0.1 + np.cumprod(u)
return np.sqrt(np.abs(u)) - np.sum(np.sin(u[None, :] - u[:, None]), axis=1)
d = np.zeros_like(u); d[0] = u[1]; d[1:] -= u[:1]; return d
d = np.empty_like(u)\nfor i in range(len(u)):\n    d[i] = u[i - 1] * (i + 1)\nreturn d
return np.gradient(u) + np.convolve(u, [1.0, -2.0, 1.0], mode="same")[:2]
m = np.outer(u, u); m[0] += m[1]; return (m @ m - m).ravel()[:2]
return np.full(2, u[0]) + np.ones(2) * u[1] - np.asarray(u)
return u.astype(float) * -1.0 + u.reshape(1, 2)[0] + u.dot(u)
return np.tile(u[:1], 2) + np.repeat(u[1:], 2) + np.linspace(0.0, 1.0, 2)
return np.pad(u, 1)[1:3] + np.diff(u, prepend=0.0) + np.interp(u, GRID, TABLE)
return np.nan_to_num(u) + np.round(u) + np.trunc(u) + np.mod(u, 0.9) + u // 0.4
return u @ MATRIX + MATRIX.T @ u + (MATRIX @ MATRIX) @ u + np.inner(u, u) + np.trace(np.outer(u, u))
return np.vstack([u, 2 * u])[1] + np.column_stack([u, u])[:, 0] + np.atleast_2d(u)[0]
return np.array([w @ u[:2] for w in MATRIX]) + np.ptp(u) + u.max() + np.min(u)
return SPLINE(u) + expit(u) + np.hypot(u, 1.0) + np.power(np.abs(u), 1.5) + u**2
out = np.zeros(2); np.multiply(u, 2.0, out=out); np.add(out, 1.0, out=out, where=u > 0); return out
return np.array([u[0], 1]) * np.isfinite(u) + np.logical_and(u > 0, u < 1) + (u > 0).sum()
rows = np.zeros((2, 2)); rows[:, 0] = u; rows[1, :] += 1.0; return rows.sum(axis=1) + np.sum(rows) + rows.max(axis=0)
return np.array([*u]) + np.fromiter((2.0 * x for x in u), float) + np.add.reduce(u) + np.multiply.outer(u, u)[0]
"""

IN_PLACES = r"""
out[0] = u[1]; out[1] = -params[0] * u[0]
out[:] = -u; out[1:] += u[:-1]
n = len(u)\nfor i in range(n):\n    out[i] = u[(i + 1) % n] - 2 * u[i] + u[i - 1]
np.dot(MATRIX, u, out=out)
np.multiply(u, -1.0, out=out); out += 0.1
out[0] = u[0]
out.fill(u[0]); out[1] *= 0.5
if u[0] > 0:\n    out[:] = u\nelse:\n    out[0] = 1.0\n    out[1] = 2.0
"""


class Case(NamedTuple):
    """A right-hand side of two components as text, and its form."""

    body: str
    form: str

    def build(self):
        """The function."""
        names: dict = {"__name__": "written"}
        head = f"def rhs(t, u, params{', out' if self.form == IN_PLACE else ''}):\n"
        exec(DEFINITIONS + head + textwrap.indent(self.body, "    "), names)
        return names["rhs"]


def cases_of(text: str, form: str) -> list[Case]:
    return [Case(line.replace("\\n", "\n"), form) for line in text.strip().splitlines()]


CASES = cases_of(COMPONENTS, COMPONENT) + cases_of(ARRAYS, ARRAY) + cases_of(IN_PLACES, IN_PLACE)
