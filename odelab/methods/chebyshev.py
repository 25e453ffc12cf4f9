"""The Runge-Kutta-Chebyshev step of order two, RKC: stable along the negative real axis to 0.65 (s^2 - 1) in s stages.

B. P. Sommeijer, L. F. Shampine and J. G. Verwer, RKC: an explicit solver for parabolic PDEs, J. Comput. Appl. Math. 88
(1998) 315-326. Like those of `odelab.core`, these functions get every helper as an
argument, so that NumPy, torch and numba run them as they are.
"""

from typing import Any, NamedTuple

DAMPING = 2.0 / 13.0


def stage_number(h_rho):
    """The fewest stages stable for |h| rho: s = 1 + floor(sqrt(1.54 |h| rho + 1)), at least 2."""
    return 1 + int((1.54 * h_rho + 1.0) ** 0.5)


def most_stable(stages):
    """The largest |h| rho that `stage_number` gives that many stages."""
    return (stages * stages - 1.0) / 1.54


def chebyshev(w0, stages):
    """T_s, T_s', T_s'' at w0 by their three-term recurrences."""
    last, value = 1.0, w0
    last_first, first = 0.0, 1.0
    last_second, second = 0.0, 0.0
    for _ in range(2, stages + 1):
        last, value, last_first, first, last_second, second = (
            value,
            2.0 * w0 * value - last,
            first,
            2.0 * w0 * first - last_first + 2.0 * value,
            second,
            2.0 * w0 * second - last_second + 4.0 * first,
        )
    return value, first, second


def first_states(u, weight, slope):
    """(Y_0, Y_1, an array for Y_2), into the last of which `next_state` may write; all three new in compiled code."""
    return u, u + weight * slope, None


def next_state(rhs, params, time, a, u, b, inner, c, older, d, e, slope, spare):
    """a u + b inner + c older + d f(inner) + e slope; compiled code writes it into `spare`, in one pass if it can."""
    return weighted_sum(a, u, b, inner, c, older, d, rhs(time, inner, params), e, slope)


def weighted_sum(a, u, b, inner, c, older, d, inner_slope, e, slope):
    """The next state of a stage, from arrays or from one number of each."""
    return a * u + b * inner + c * older + d * inner_slope + e * slope


class Gain(NamedTuple):
    """What multiplies the slopes of a stabilised step: its size, and how many stages it takes."""

    size: Any
    stages: Any


def chebyshev_step(chebyshev, first_states, next_state):
    """A step for `odelab.core.integrate`, which calls the helper functions it is made from."""

    def rkc_step(rhs, params, t, u, slope, dt, h):
        """One step from `u`, whose slope is known: the new state, S, the error, and the slopes at both ends.

        `h` is a `Gain`. Each inner state follows from the two before it,
        Y_j = (1 - mu - nu) u + mu Y_{j-1} + nu Y_{j-2} + h mu~ F_{j-1} + h gamma~ F_0, and their times with them;
        b_0 = b_1 = b_2 as in the authors' code.
        """
        size, stages = h
        w0 = 1.0 + DAMPING / (stages * stages)
        _, first, second = chebyshev(w0, stages)
        w1 = first / second
        b_older = 1.0 / (4.0 * w0 * w0)
        b = b_older
        older, inner, spare = first_states(u, size * w1 * b, slope)
        time_older, time = 0.0, w1 * b
        t_older, t_value, d_older, d_value, e_older, e_value = 1.0, w0, 0.0, 1.0, 0.0, 0.0
        for _ in range(2, stages + 1):
            a = 1.0 - t_value * b
            e_older, e_value = e_value, 2.0 * w0 * e_value - e_older + 4.0 * d_value
            d_older, d_value = d_value, 2.0 * w0 * d_value - d_older + 2.0 * t_value
            t_older, t_value = t_value, 2.0 * w0 * t_value - t_older
            b_new = e_value / (d_value * d_value)
            mu = 2.0 * w0 * b_new / b
            nu = -b_new / b_older
            mu_slope = mu * w1 / w0
            gamma = -a * mu_slope
            at, old = t + time * dt, 1.0 - mu - nu
            newer = next_state(
                rhs, params, at, old, u, mu, inner, nu, older, size * mu_slope, size * gamma, slope, spare
            )
            older, inner, spare = inner, newer, older
            time_older, time = time, mu * time + nu * time_older + mu_slope + gamma
            b_older, b = b, b_new
        change = inner + (-1.0) * u
        end = rhs(t + dt, inner, params)
        error = (-0.8) * change + (0.4 * size) * (slope + end)
        return inner, (1.0 / size) * change, [error], [slope, end], True

    return rkc_step
