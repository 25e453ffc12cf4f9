"""Parabolic partial differential equations by lines, on (0, 1).

`n` counts the grid points between the two boundaries, x_i = i / (n + 1), i = 1..n; the boundaries are not part of the
state. A right-hand side is written as a loop, the form that compiled code runs at full speed. Plain Python is slow at
loops, so each carries the same formula spelled for NumPy as its attribute `array_form`.
"""

import functools

import numpy as np

from odelab import maths
from odelab.problem import Problem
from odelab.problems.common.support import also_in_array_form, number, whole_number


def brusselator_1d_rhs(t, u, params, out):
    alpha, a, b = params
    n = u.size // 2
    x, y, out_x, out_y = u[:n], u[n:], out[:n], out[n:]
    spread = alpha * (n + 1.0) * (n + 1.0)
    for i in range(1, n - 1):
        made = x[i] * x[i] * y[i]
        out_x[i] = a + made - (b + 1.0) * x[i] + spread * (x[i - 1] - 2.0 * x[i] + x[i + 1])
        out_y[i] = b * x[i] - made + spread * (y[i - 1] - 2.0 * y[i] + y[i + 1])
    made = x[0] * x[0] * y[0]
    out_x[0] = a + made - (b + 1.0) * x[0] + spread * (1.0 - 2.0 * x[0] + x[1])
    out_y[0] = b * x[0] - made + spread * (3.0 - 2.0 * y[0] + y[1])
    made = x[n - 1] * x[n - 1] * y[n - 1]
    out_x[n - 1] = a + made - (b + 1.0) * x[n - 1] + spread * (x[n - 2] - 2.0 * x[n - 1] + 1.0)
    out_y[n - 1] = b * x[n - 1] - made + spread * (y[n - 2] - 2.0 * y[n - 1] + 3.0)


def brusselator_1d_array(t, u, params):
    alpha, a, b = params
    n = u.shape[0] // 2
    grid = np.empty((2, n + 2, *u.shape[1:]))
    grid[0, [0, -1]], grid[1, [0, -1]] = 1.0, 3.0
    grid[:, 1:-1] = u.reshape(2, n, *u.shape[1:])
    x, y = grid[:, 1:-1]
    spread = alpha * (n + 1.0) * (n + 1.0)
    diffusion = spread * (grid[:, :-2] - 2.0 * grid[:, 1:-1] + grid[:, 2:])
    made = x * x * y
    return np.concatenate((a + made - (b + 1.0) * x + diffusion[0], b * x - made + diffusion[1]))


def brusselator_1d_jacobian(t, u, params):
    from scipy import sparse

    alpha, _, b = params
    n = u.size // 2
    x, y = u[:n], u[n:]
    spread = alpha * (n + 1.0) * (n + 1.0)
    beside = np.full(2 * n - 1, spread)
    beside[n - 1] = 0.0  # the last x and the first y are no neighbours
    diagonal = np.concatenate((2.0 * x * y - (b + 1.0), -x * x)) - 2.0 * spread
    matrix = sparse.diags_array((diagonal, beside, beside, x * x, b - 2.0 * x * y), offsets=(0, 1, -1, n, -n))
    return matrix.tocsc()


def brusselator_1d(n: int = 40, alpha: float = 0.02, a: float = 1.0, b: float = 3.0) -> Problem:
    """The Brusselator with diffusion at n grid points: 2n components, all concentrations x first, then all y.

    x' = a + x^2 y - (b + 1) x + alpha x_ss, y' = b x - x^2 y + alpha y_ss; x = 1 and y = 3 at both boundaries,
    x(s, 0) = 1 + sin(2 pi s), y(s, 0) = 3.

    n        how many grid points, 40 by default
    alpha    the diffusivity, 0.02 by default
    a        the supply, 1.0 by default
    b        the rate that drives the oscillation, 3.0 by default

    Returns a `Problem` on (0, 10) in in-place form.

    >>> import odelab as ol
    >>> ol.problems.brusselator_1d(n=20).size
    40
    """
    n = whole_number("n", n, 2)
    place = np.arange(1, n + 1) / (n + 1)
    return Problem(
        brusselator_1d_rhs,
        np.concatenate((1.0 + np.sin(2.0 * np.pi * place), np.full(n, 3.0))),
        (0.0, 10.0),
        (number("alpha", alpha), number("a", a), number("b", b)),
        jacobian=brusselator_1d_jacobian,
        name="brusselator_1d",
        about="E. Hairer and G. Wanner, Solving ODEs II, section IV.1. The stiffest rate grows as 4 alpha (n + 1)^2.",
    )


def heat_1d_rhs(t, u, params, out):
    (diffusivity,) = params
    n = u.size
    spread = diffusivity * (n + 1.0) * (n + 1.0)
    for i in range(1, n - 1):
        out[i] = spread * (u[i - 1] - 2.0 * u[i] + u[i + 1])
    out[0] = spread * (u[1] - 2.0 * u[0])
    out[n - 1] = spread * (u[n - 2] - 2.0 * u[n - 1])


def heat_1d_array(t, u, params):
    (diffusivity,) = params
    n = u.shape[0]
    grid = np.zeros((n + 2, *u.shape[1:]))
    grid[1:-1] = u
    return diffusivity * (n + 1.0) * (n + 1.0) * (grid[:-2] - 2.0 * grid[1:-1] + grid[2:])


def heat_1d_jacobian(t, u, params):
    from scipy import sparse

    n = u.size
    spread = params[0] * (n + 1.0) * (n + 1.0)
    beside = np.full(n - 1, spread)
    return sparse.diags_array((np.full(n, -2.0 * spread), beside, beside), offsets=(0, 1, -1)).tocsc()


def heat_1d_exact(start, t, params):
    from scipy.fft import dst

    n = len(start)
    mode = np.arange(1, n + 1)
    rates = -4.0 * params[0] * (n + 1) ** 2 * np.sin(mode * np.pi / (2 * n + 2)) ** 2
    decay = np.exp(np.asarray(t, dtype=float)[..., None] * rates)
    return dst(dst(start, type=1) * decay, type=1) / (2 * n + 2)


def heat_1d(n: int = 100, diffusivity: float = 1.0, u0=None) -> Problem:
    """The heat equation u_t = diffusivity * u_ss at n grid points, u = 0 at both boundaries.

    `exact` solves the semi-discrete system, not the partial differential equation: sine mode k decays at the rate
    4 diffusivity (n + 1)^2 sin^2(k pi / (2 n + 2)).

    n              how many grid points, 100 by default
    diffusivity    1.0 by default
    u0             the n values at the start; the parabola 4 s (1 - s) by default

    Returns a `Problem` on (0, 0.1) in in-place form.

    >>> import odelab as ol
    >>> ol.solve(ol.problems.heat_1d(n=20), ol.RKC2).ok
    True
    """
    n = whole_number("n", n, 2)
    place = np.arange(1, n + 1) / (n + 1)
    start = 4.0 * place * (1.0 - place) if u0 is None else np.array(u0, dtype=float)
    if start.shape != (n,):
        raise ValueError(f"`u0` must have {n} components, one per grid point, got shape {start.shape}.")
    return Problem(
        heat_1d_rhs,
        start,
        (0.0, 0.1),
        (number("diffusivity", diffusivity),),
        jacobian=heat_1d_jacobian,
        exact=functools.partial(heat_1d_exact, start),
        name="heat_1d",
        about="The model problem of the method of lines: W. Hundsdorfer and J. G. Verwer, Numerical Solution of "
        "Time-Dependent Advection-Diffusion-Reaction Equations (2003), chapter I.",
    )


def wave(s, t, params):
    _, steepness, speed = params
    return maths.tanh(steepness * (s - speed * t))


def heat_1d_wave_rhs(t, u, params, out):
    diffusivity, steepness, speed = params
    n = u.size
    spread = diffusivity * (n + 1.0) * (n + 1.0)
    here, ahead = wave(0.0, t, params), wave(1.0 / (n + 1.0), t, params)
    left, middle = 0.0, u[0] - ahead  # the distance from the wave, zero at both boundaries
    for i in range(n):
        here, ahead = ahead, wave((i + 2.0) / (n + 1.0), t, params)
        right = 0.0
        if i < n - 1:
            right = u[i + 1] - ahead
        out[i] = spread * (left - 2.0 * middle + right) - steepness * speed * (1.0 - here * here)
        left, middle = middle, right


def heat_1d_wave_array(t, u, params):
    diffusivity, steepness, speed = params
    n = u.shape[0]
    front = wave(np.arange(1, n + 1) / (n + 1.0), t, params).reshape(n, *(1,) * (u.ndim - 1))
    return heat_1d_array(t, u - front, (diffusivity,)) - steepness * speed * (1.0 - front * front)


def heat_1d_wave_exact(n, t, params):
    return wave(np.arange(1, n + 1) / (n + 1.0), np.asarray(t, dtype=float)[..., None], params)


def heat_1d_wave(n: int = 100, diffusivity: float = 1.0, steepness: float = 5.0, speed: float = 1.0) -> Problem:
    """u_t = diffusivity * u_ss + f(s, t) at n grid points, with f and the boundaries such that u is a moving front.

    The front is w = tanh(steepness * (s - speed * t)). f contains the second difference of w and not its derivative, so
    that the front solves the semi-discrete system, too.

    n              how many grid points, 100 by default
    diffusivity    1.0 by default
    steepness      of the front, 5.0 by default
    speed          of the front, 1.0 by default

    Returns a `Problem` on (0, 0.7) in in-place form, with its exact solution.

    >>> import odelab as ol
    >>> ol.problems.heat_1d_wave(n=20).size
    20
    """
    n = whole_number("n", n, 2)
    params = (number("diffusivity", diffusivity), number("steepness", steepness), number("speed", speed))
    exact = functools.partial(heat_1d_wave_exact, n)
    return Problem(
        heat_1d_wave_rhs,
        exact(0.0, params),
        (0.0, 0.7),
        params,
        jacobian=heat_1d_jacobian,
        exact=exact,
        name="heat_1d_wave",
        about="The non-autonomous example of B. P. Sommeijer, L. F. Shampine and J. G. Verwer, RKC: an explicit solver "
        "for parabolic PDEs, J. Comput. Appl. Math. 88 (1998) 315-326, in one dimension.",
    )


def allen_cahn_1d_rhs(t, u, params, out):
    (diffusivity,) = params
    n = u.size
    spread = diffusivity * (n + 1.0) * (n + 1.0)
    for i in range(1, n - 1):
        out[i] = u[i] - u[i] * u[i] * u[i] + spread * (u[i - 1] - 2.0 * u[i] + u[i + 1])
    out[0] = u[0] - u[0] * u[0] * u[0] + spread * (-1.0 - 2.0 * u[0] + u[1])
    out[n - 1] = u[n - 1] - u[n - 1] * u[n - 1] * u[n - 1] + spread * (u[n - 2] - 2.0 * u[n - 1] + 1.0)


def allen_cahn_1d_array(t, u, params):
    (diffusivity,) = params
    n = u.shape[0]
    grid = np.empty((n + 2, *u.shape[1:]))
    grid[0], grid[1:-1], grid[-1] = -1.0, u, 1.0
    return u - u * u * u + diffusivity * (n + 1.0) * (n + 1.0) * (grid[:-2] - 2.0 * grid[1:-1] + grid[2:])


def allen_cahn_1d_jacobian(t, u, params):
    from scipy import sparse

    return (heat_1d_jacobian(t, u, params) + sparse.diags_array(1.0 - 3.0 * u * u)).tocsc()


def allen_cahn_1d(n: int = 200, diffusivity: float = 0.0025) -> Problem:
    """u_t = diffusivity * u_ss + u - u^3 at n grid points, u = -1 and 1 at the boundaries.

    It starts from 0.53 x - 0.47 sin(1.5 pi x), x = 2 s - 1: two fronts that stand still for long before they meet.

    n              how many grid points, 200 by default
    diffusivity    0.0025 by default

    Returns a `Problem` on (0, 20) in in-place form.

    >>> import odelab as ol
    >>> ol.problems.allen_cahn_1d(n=20).size
    20
    """
    n = whole_number("n", n, 2)
    place = 2.0 * np.arange(1, n + 1) / (n + 1) - 1.0
    return Problem(
        allen_cahn_1d_rhs,
        0.53 * place - 0.47 * np.sin(1.5 * np.pi * place),
        (0.0, 20.0),
        (number("diffusivity", diffusivity),),
        jacobian=allen_cahn_1d_jacobian,
        name="allen_cahn_1d",
        about="L. N. Trefethen, Spectral Methods in MATLAB (2000), program 34: metastable patterns.",
    )


also_in_array_form(brusselator_1d_rhs, brusselator_1d_array)
also_in_array_form(heat_1d_rhs, heat_1d_array)
also_in_array_form(heat_1d_wave_rhs, heat_1d_wave_array)
also_in_array_form(allen_cahn_1d_rhs, allen_cahn_1d_array)
