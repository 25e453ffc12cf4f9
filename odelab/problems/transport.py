"""Transport by lines: advection round a circle, and Burgers' equation with its steep front.

A right-hand side is written as a loop, the form that compiled code runs at full speed, and carries the same formula
spelled for NumPy as its attribute `array_form`.
"""

import functools

import numpy as np

from odelab.problem import Problem
from odelab.problems.common.support import also_in_array_form, number, whole_number


def advection_1d_rhs(t, u, params, out):
    (speed,) = params
    n = u.size
    scale = 0.5 * speed * n
    for i in range(1, n - 1):
        out[i] = scale * (u[i - 1] - u[i + 1])
    out[0] = scale * (u[n - 1] - u[1])
    out[n - 1] = scale * (u[n - 2] - u[0])


def advection_1d_array(t, u, params):
    return 0.5 * params[0] * u.shape[0] * (np.roll(u, 1, axis=0) - np.roll(u, -1, axis=0))


def advection_1d_jacobian(t, u, params):
    from scipy import sparse

    n = u.size
    scale = 0.5 * params[0] * n
    places = np.arange(n)
    entries = np.concatenate((np.full(n, scale), np.full(n, -scale)))
    columns = np.concatenate(((places - 1) % n, (places + 1) % n))
    return sparse.csc_matrix((entries, (np.concatenate((places, places)), columns)), shape=(n, n))


def advection_1d_exact(start, t, params):
    n = len(start)
    frequency = params[0] * n * np.sin(2.0 * np.pi * np.arange(n // 2 + 1) / n)
    turned = np.exp(-1j * np.asarray(t, dtype=float)[..., None] * frequency)
    return np.fft.irfft(np.fft.rfft(start) * turned, n)


def advection_1d(n: int = 40, speed: float = 1.0, u0=None) -> Problem:
    """u_t = -speed u_s on a circle of length 1, by central differences at n points: every eigenvalue is imaginary.

    `exact` solves the semi-discrete system, whose waves travel at speeds that depend on their length.

    n        how many grid points, 40 by default; at least 3
    speed    1.0 by default
    u0       the n values at the start; the bump exp(-50 (s - 1/2)^2) by default

    Returns a `Problem` on (0, 2) in in-place form.

    >>> import odelab as ol
    >>> problem = ol.problems.advection_1d(n=50)
    >>> round(float(ol.spectrum(problem.jacobian(0.0, problem.u0, problem.params)).spectral_radius), 1)
    49.9
    """
    n = whole_number("n", n, 3)
    start = np.exp(-50.0 * (np.arange(n) / n - 0.5) ** 2) if u0 is None else np.array(u0, dtype=float)
    if start.shape != (n,):
        raise ValueError(f"`u0` must have {n} components, one per grid point, got shape {start.shape}.")
    return Problem(
        advection_1d_rhs,
        start,
        (0.0, 2.0),
        (number("speed", speed),),
        jacobian=advection_1d_jacobian,
        exact=functools.partial(advection_1d_exact, start),
        name="advection_1d",
        about="W. Hundsdorfer and J. G. Verwer, Numerical Solution of Time-Dependent Advection-Diffusion-Reaction "
        "Equations (2003), chapter I: second-order central advection.",
    )


def burgers_1d_rhs(t, u, params, out):
    (viscosity,) = params
    n = u.size
    spread, carry = viscosity * (n + 1.0) * (n + 1.0), 0.25 * (n + 1.0)
    for i in range(1, n - 1):
        flow = carry * (u[i + 1] * u[i + 1] - u[i - 1] * u[i - 1])
        out[i] = spread * (u[i - 1] - 2.0 * u[i] + u[i + 1]) - flow
    out[0] = spread * (u[1] - 2.0 * u[0]) - carry * (u[1] * u[1])
    out[n - 1] = spread * (u[n - 2] - 2.0 * u[n - 1]) + carry * (u[n - 2] * u[n - 2])


def burgers_1d_array(t, u, params):
    (viscosity,) = params
    n = u.shape[0]
    grid = np.zeros((n + 2, *u.shape[1:]))
    grid[1:-1] = u
    before, here, behind = grid[:-2], grid[1:-1], grid[2:]
    diffusion = viscosity * (n + 1.0) * (n + 1.0) * (before - 2.0 * here + behind)
    return diffusion - 0.25 * (n + 1.0) * (behind * behind - before * before)


def burgers_1d_jacobian(t, u, params):
    from scipy import sparse

    (viscosity,) = params
    n = u.size
    spread, carry = viscosity * (n + 1.0) * (n + 1.0), 0.5 * (n + 1.0)
    bands = (np.full(n, -2.0 * spread), spread - carry * u[1:], spread + carry * u[:-1])
    return sparse.diags_array(bands, offsets=(0, 1, -1)).tocsc()


def burgers_1d(n: int = 50, viscosity: float = 0.02) -> Problem:
    """u_t + (u^2 / 2)_s = viscosity u_ss at n grid points between boundaries of 0, from sin(2 pi s)/2 + sin(pi s)/2.

    n            how many grid points, 50 by default
    viscosity    0.02 by default; the smaller, the steeper the front that forms

    Returns a `Problem` on (0, 1) in in-place form.

    >>> import odelab as ol
    >>> ol.problems.burgers_1d(n=20).size
    20
    """
    n = whole_number("n", n, 2)
    place = np.arange(1, n + 1) / (n + 1)
    return Problem(
        burgers_1d_rhs,
        0.5 * np.sin(2.0 * np.pi * place) + 0.5 * np.sin(np.pi * place),
        (0.0, 1.0),
        (number("viscosity", viscosity),),
        jacobian=burgers_1d_jacobian,
        name="burgers_1d",
        about="J. M. Burgers, A mathematical model illustrating the theory of turbulence, Adv. Appl. Mech. 1 (1948) "
        "171-199, in conservative central differences.",
    )


also_in_array_form(advection_1d_rhs, advection_1d_array)
also_in_array_form(burgers_1d_rhs, burgers_1d_array)
