"""Two time scales of a problem, and their ratio, which compares the costs of explicit and implicit methods.

The size of an explicit step is limited by accuracy, to h_acc, and by stability, to h_stab; that of an L-stable method
by accuracy alone. The explicit method becomes the more expensive one where chi = h_acc / h_stab is larger than 1. If
the solution has a single time scale T, then h_acc is T times a power of the tolerance, and chi = (tolerance)^(1/k) T
rho / beta. This is a ratio of the spectral radius rho of the Jacobian to 1 / T, which is SAI.
"""

import numpy as np

from odelab.arrays import reject_nonfinite
from odelab.methods.tableau import Method
from odelab.stiffness.stable_step import largest_stable_step, nongrowing_radius

OSCILLATES = 0.02  # how much a mode that only oscillates may grow in a step, see `largest_stable_step`
BOUNDED = 10.0  # how large the eighth power of a step may become before it counts as unbounded
SQUARINGS = 3
STEPS = 60  # step sizes that are tried, spread evenly on a logarithmic axis

__all__ = ["accuracy_step", "chi", "motion_rate", "power_bounded_step", "window_derivative"]


def motion_rate(J, f, f_t=None) -> float:
    """How fast the solution moves, |f'| / |f|: the rate of change of the slope along the solution.

    f' = J f + f_t is the second derivative of the solution. Unlike SAI = |f| / |u| it does not depend on where the
    origin lies: a solution and the same one moved by a constant have one rate.

    J     the Jacobian (n, n), an array or anything that multiplies a vector by `@`
    f     the slope (n,)
    f_t   the derivative of the right-hand side with respect to time, (n,); zero by default

    Returns the rate, in units of 1 / time; 0 where the solution stands still.

    >>> import numpy as np, odelab as ol
    >>> ol.motion_rate(np.array([[-1.0, 0.0], [0.0, -1000.0]]), np.array([2.0, 0.0]))
    1.0
    """
    f = np.asarray(f, dtype=float)
    turning = J @ f + (0.0 if f_t is None else np.asarray(f_t, dtype=float))
    speed = float(np.linalg.norm(f))
    return float(np.linalg.norm(turning)) / speed if speed > 0.0 else 0.0


def window_derivative(t, u, order: int, scale) -> float:
    """The size of a derivative of a solution over a window: the mean over it of its scaled root mean square.

    A polynomial through all states is differentiated, so that the states should lie at Chebyshev points of the window,
    as many as make the polynomial exact, and no jump should lie within.

    t       the times, (m,), strictly increasing
    u       the states, (m, n)
    order   which derivative, below m
    scale   what a component is measured by, (n,) or one number, positive

    Returns the size, in units of 1 / time^order.

    >>> import numpy as np, odelab as ol
    >>> t = np.linspace(0.0, 1.0, 9)
    >>> round(ol.window_derivative(t, np.sin(t)[:, None], 2, 1.0), 2)
    0.46
    """
    t, u = np.asarray(t, dtype=float), np.asarray(u, dtype=float)
    if u.ndim != 2 or len(t) != len(u) or not 0 < order < len(t) or not (np.diff(t) > 0.0).all():
        raise ValueError(
            f"`t` must be increasing and `u` hold one state per time, more of them than `order` = {order}, got shapes "
            f"{t.shape} and {u.shape}."
        )
    reject_nonfinite("u", u)
    middle, half = 0.5 * (t[0] + t[-1]), 0.5 * (t[-1] - t[0])
    weights = np.polynomial.chebyshev.chebfit((t - middle) / half, u, len(t) - 1)
    places = np.linspace(-0.7, 0.7, 5)  # a high derivative of a polynomial is least exact near the ends
    bent = np.polynomial.chebyshev.chebval(places, np.polynomial.chebyshev.chebder(weights, order)).T / half**order
    return float(np.sqrt(np.mean((bent / scale) ** 2, axis=1)).mean())


def accuracy_step(derivative: float, tolerance: float, order: int) -> float:
    """The step at which a method of this error order would just meet a tolerance, (tolerance / |u^(k)|)^(1/k).

    The method's own error constant is left out, which changes the step by a factor that is the same everywhere.

    derivative   the scaled size of the k-th derivative of the solution, see `window_derivative`
    tolerance    the relative tolerance
    order        k, the power of h in the error of a step

    Returns the step; infinity where the derivative is 0.

    >>> import odelab as ol
    >>> ol.accuracy_step(derivative=1.0, tolerance=1e-6, order=2)
    0.001
    """
    if not (derivative >= 0.0 and tolerance > 0.0 and order >= 1):
        raise ValueError(
            "`derivative` must be at least 0, `tolerance` positive and `order` at least 1, got "
            f"{derivative!r}, {tolerance!r} and {order!r}."
        )
    return float("inf") if derivative == 0.0 else (tolerance / derivative) ** (1.0 / order)


def chi(values, derivative: float, tolerance: float, method: Method) -> float:
    """h_acc / h_stab: how many stable steps fit into the step that accuracy would allow. Above 1, stability binds.

    values       eigenvalues of the Jacobian; modes that grow by themselves do not count
    derivative   the scaled size of the derivative of the solution of the method's error order
    tolerance    the relative tolerance
    method       an explicit Method with an error estimate, such as odelab.DOPRI5

    Returns the ratio: dimensionless, 0 where nothing binds, infinite where the solution does not move.

    >>> import odelab as ol
    >>> ol.chi([-1000.0, -1.0], derivative=1.0, tolerance=1e-5, method=ol.DOPRI5) > 25.0
    True
    """
    stable = largest_stable_step(values, method, modes="nongrowing", gain=OSCILLATES)
    if stable == float("inf"):
        return 0.0
    return accuracy_step(derivative, tolerance, method.error_order) / stable


def power_bounded_step(J, method: Method, scale=1.0) -> float:
    """The smallest step at which eight steps of a method on u' = J u make some state ten times as large.

    The idea is that of pseudospectra (Higham and Trefethen, Stiffness of ODEs, BIT 33 (1993)): if J is not normal,
    errors may grow at steps that are stable for each eigenvalue. Growth of the solution itself does not count.

    J        the Jacobian (n, n), dense
    method   an explicit Method
    scale    what each component is measured by, (n,) or one number

    Returns the step; infinity where J is zero, and the largest step tried, 8 over the fastest rate, where none grows.

    >>> import numpy as np, odelab as ol
    >>> normal = ol.power_bounded_step(np.diag([-100.0, -1.0]), ol.DOPRI5)
    >>> sheared = ol.power_bounded_step(np.array([[-100.0, 1e5], [0.0, -1.0]]), ol.DOPRI5)
    >>> bool(sheared < normal)
    True
    """
    J = np.asarray(J, dtype=float)
    scaled = J * np.broadcast_to(scale, (len(J),))[None, :] / np.broadcast_to(scale, (len(J),))[:, None]
    size = float(np.linalg.norm(scaled, 2))
    if size == 0.0:
        return float("inf")
    values = np.linalg.eigvals(scaled)
    growth = max(0.0, float(values.real.max()))
    radius = nongrowing_radius(values) or size
    largest = 8.0 / max(radius, growth)  # beyond, the solution itself changes too much in a step
    sizes = np.geomspace(min(0.02 / size, largest), largest, STEPS)
    polynomial = [float(weight) for weight in method.stability_polynomial]
    for h in sizes:
        z = h * scaled
        step = np.zeros_like(z)
        for weight in reversed(polynomial):
            step = step @ z + weight * np.eye(len(z))
        for _ in range(SQUARINGS):
            step = step @ step
        if np.linalg.norm(step, 2) > BOUNDED * np.exp(2**SQUARINGS * h * growth):
            return float(h)
    return float(sizes[-1])
