"""Two time scales of a problem, and their ratio, which compares the costs of explicit and implicit methods.

The size of an explicit step is limited by accuracy, to h_acc, and by stability, to h_stab; that of an L-stable method
by accuracy alone. The explicit method becomes the more expensive one where chi = h_acc / h_stab is larger than 1. If
the solution has a single time scale T, then h_acc is T times a power of the tolerance, and chi = (tolerance)^(1/k) T
rho / beta. This is a ratio of the spectral radius rho of the Jacobian to 1 / T, which is SAI.
"""

import math
import warnings

import numpy as np

from odelab.arrays import checked_square, norm, plain, reject_lost_gradients, to_numpy
from odelab.methods.interface import answers
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

    J     the Jacobian (n, n): an array, a tensor, a scipy.sparse matrix or an operator that multiplies a vector by `@`
    f     the slope (n,), an array or a tensor
    f_t   the derivative of the right-hand side with respect to time, (n,); zero by default

    Returns the rate, a plain number in units of 1 / time: 0 where the solution stands still, infinite where it only
    turns (f = 0 but f' is not). Raises ValueError for shapes that do not agree and for values that are not finite,
    TypeError for a tensor that requires gradients.

    >>> import numpy as np, odelab as ol
    >>> ol.motion_rate(np.array([[-1.0, 0.0], [0.0, -1000.0]]), np.array([2.0, 0.0]))
    1.0
    """
    f = plain("f", f)
    if f.ndim != 1 or not len(f):
        raise ValueError(f"`f` must be a slope (n,), got shape {f.shape}.")
    if not hasattr(J, "matvec") and not hasattr(J, "tocsc"):
        J = plain("J", J)
    if tuple(J.shape) != (len(f), len(f)):
        raise ValueError(f"`J` must be ({len(f)}, {len(f)}), as `f` has {len(f)} components, got {tuple(J.shape)}.")
    later = np.zeros(len(f)) if f_t is None else plain("f_t", f_t)
    if later.shape != f.shape:
        raise ValueError(f"`f_t` must have the shape of `f`, {f.shape}, got {later.shape}.")
    size = float(np.abs(f).max())  # products of slopes of size 1 neither overflow nor underflow
    if size == 0.0:
        return math.inf if later.any() else 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        turning = np.asarray(J @ (f / size), dtype=float) + later / size
    if not np.isfinite(turning).all():
        raise ValueError("`J` times `f` is not finite: `J` holds NaN or infinities, or measure time in another unit.")
    return float(norm(turning) / norm(f / size))


def window_derivative(t, u, order: int, scale) -> float:
    """The size of a derivative of a solution over a window: the mean over it of its scaled root mean square.

    A polynomial through all states is differentiated, so that the states should lie at Chebyshev points of the window,
    as many as make the polynomial exact, and no jump should lie within.

    t       the times, (m,), strictly increasing
    u       the states, (m, n), an array or a tensor
    order   which derivative, a whole number from 1 to m - 1
    scale   what a component is measured by, (n,) or one number, positive

    Returns the size, a plain number in units of 1 / time^order. Raises ValueError where the times do not determine a
    polynomial, and where the derivative is too large for a number; TypeError for a tensor that requires gradients.

    >>> import numpy as np, odelab as ol
    >>> t = np.linspace(0.0, 1.0, 9)
    >>> round(ol.window_derivative(t, np.sin(t)[:, None], 2, 1.0), 2)
    0.46
    """
    t, u = plain("t", t), plain("u", u)
    check_order(order)
    if t.ndim != 1 or u.ndim != 2 or len(t) != len(u) or not order < len(t) or not (np.diff(t) > 0.0).all():
        raise ValueError(
            f"`t` must be increasing and `u` hold one state per time, more of them than `order` = {order}, got shapes "
            f"{t.shape} and {u.shape}."
        )
    scale = checked_scale(scale, u.shape[1])
    middle, half = 0.5 * (t[0] + t[-1]), 0.5 * (t[-1] - t[0])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error", np.exceptions.RankWarning)
        try:
            weights = np.polynomial.chebyshev.chebfit((t - middle) / half, u / scale, len(t) - 1)
        except (np.exceptions.RankWarning, np.linalg.LinAlgError):
            raise ValueError(
                f"`t` holds {len(t)} times that determine no polynomial in double precision: take fewer, or Chebyshev "
                "points of the window."
            ) from None
        places = np.linspace(-0.7, 0.7, 5)  # a high derivative of a polynomial is least exact near the ends
        bent = np.polynomial.chebyshev.chebval(places, np.polynomial.chebyshev.chebder(weights, order)).T
        # in logarithms, since half^order may not be a number although the derivative is
        sizes = norm(bent) / math.sqrt(bent.shape[1])
        size = float(np.exp(np.log(sizes.mean()) - order * np.log(half)))
    if not math.isfinite(size):
        raise ValueError(f"`u` has a derivative of order {order} too large for a number: measure time in another unit.")
    return size


def checked_scale(scale, size: int) -> np.ndarray:
    """What components are measured by, (n,)."""
    known = plain("scale", scale)
    if known.shape not in ((), (size,)) or not (known > 0.0).all():
        raise ValueError(f"`scale` must be one positive number or {size} of them, got {scale!r}.")
    return np.broadcast_to(known, (size,))


def check_order(order) -> None:
    if isinstance(order, bool) or not isinstance(order, int | np.integer) or order < 1:
        raise ValueError(f"`order` must be a whole number of at least 1, got {order!r}.")


def accuracy_step(derivative: float, tolerance: float, order: int) -> float:
    """The step at which a method of this error order would just meet a tolerance, (tolerance / |u^(k)|)^(1/k).

    The method's own error constant is left out, which changes the step by a factor that is the same everywhere.

    derivative   the scaled size of the k-th derivative of the solution, see `window_derivative`; infinity is allowed
    tolerance    the relative tolerance, positive and finite
    order        k, the power of h in the error of a step, a whole number

    Returns the step, a plain number; infinity where the derivative is 0, and 0 where it is infinite.

    >>> import odelab as ol
    >>> ol.accuracy_step(derivative=1.0, tolerance=1e-6, order=2)
    0.001
    """
    check_order(order)
    for name, value in (("derivative", derivative), ("tolerance", tolerance)):
        reject_lost_gradients(name, value)
        if np.ndim(value) != 0 or isinstance(value, str | bytes | bool | complex):
            raise ValueError(f"`{name}` must be one real number, got {value!r}.")
    derivative, tolerance = float(derivative), float(tolerance)
    if not (derivative >= 0.0 and 0.0 < tolerance < math.inf):
        raise ValueError(
            f"`derivative` must be at least 0 and `tolerance` positive and finite, got {derivative!r} and "
            f"{tolerance!r}."
        )
    if derivative == 0.0:
        return math.inf
    ratio = tolerance / derivative
    if 0.0 < ratio < math.inf:
        return ratio ** (1.0 / order)
    return tolerance ** (1.0 / order) / derivative ** (1.0 / order)  # whose quotient alone would not be a number


def chi(values, derivative: float, tolerance: float, method: Method) -> float:
    """h_acc / h_stab: how many stable steps fit into the step that accuracy would allow. Above 1, stability binds.

    values       the eigenvalues of the Jacobian, in a row; modes that grow by themselves do not count
    derivative   the scaled size of the derivative of the solution of the method's error order
    tolerance    the relative tolerance
    method       an explicit Method with an error estimate, such as odelab.DOPRI5

    Returns the ratio: a plain number without a unit, 0 where nothing binds, infinite where the solution does not move.
    Raises ValueError for a matrix in place of its eigenvalues and for values that are not finite, TypeError for a
    method without an error estimate and for a tensor that requires gradients.

    >>> import odelab as ol
    >>> ol.chi([-1000.0, -1.0], derivative=1.0, tolerance=1e-5, method=ol.DOPRI5) > 25.0
    True
    """
    reject_lost_gradients("values", values)
    if np.ndim(to_numpy(values)) > 1:
        raise ValueError(
            f"`values` must be a row of eigenvalues, got shape {np.shape(to_numpy(values))}; of a matrix J they are "
            "numpy.linalg.eigvals(J)."
        )
    stable = largest_stable_step(values, method, modes="nongrowing", gain=OSCILLATES)
    if not method.embedded:
        raise TypeError(f"`method` must estimate its error, like odelab.DOPRI5, got {method!r}.")
    accurate = accuracy_step(derivative, tolerance, method.error_order)
    return 0.0 if stable == math.inf else accurate / stable


def power_bounded_step(J, method: Method, scale=1.0) -> float:
    """The smallest step at which eight steps of a method on u' = J u make some state ten times as large.

    The idea is that of pseudospectra (Higham and Trefethen, Stiffness of ODEs, BIT 33 (1993)): if J is not normal,
    errors may grow at steps that are stable for each eigenvalue. Growth at the rate of the fastest growing mode does
    not count. Growth for a while that the exact solution of a non-normal system shows as well does count, and there
    this step may be far too small: see the study `switching`.

    J        the Jacobian (n, n), a dense array or tensor, or a scipy.sparse matrix, which is filled in
    method   an explicit Method
    scale    what each component is measured by, (n,) or one number, positive

    Returns the step, a plain number; infinity where J is zero, and the largest step tried, 8 over the fastest rate,
    where none grows. Raises ValueError for a matrix that is not square or not finite and for a scale that is not
    positive, TypeError for another kind of method and for a tensor that requires gradients.

    >>> import numpy as np, odelab as ol
    >>> normal = ol.power_bounded_step(np.diag([-100.0, -1.0]), ol.DOPRI5)
    >>> sheared = ol.power_bounded_step(np.array([[-100.0, 1e5], [0.0, -1.0]]), ol.DOPRI5)
    >>> bool(sheared < normal)
    True
    """
    if not answers(method, "is_explicit"):
        raise TypeError(f"`method` must be an explicit Method, such as odelab.DOPRI5, got {method!r}.")
    reject_lost_gradients("J", J)
    J = checked_square("J", plain("J", J.toarray() if hasattr(J, "tocsc") else J))
    if J.ndim != 2:
        raise ValueError(f"`J` must be one matrix (n, n), got shape {J.shape}.")
    scale = checked_scale(scale, len(J))
    scaled = J * scale[None, :] / scale[:, None]
    size = float(np.linalg.norm(scaled, 2))
    if size == 0.0:
        return math.inf
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
