"""Stiff systems of two and three components that several tests run, short enough for plain Python."""

import numpy as np

import odelab as ol
from odelab import maths


def forced(t, u, params):
    """A stiff component that follows a driven one: it depends on time, in a branch too."""
    x, y = u
    (stiffness,) = params
    push = maths.cos(t)
    if t > 1.0:
        push = push + 0.5
    return -stiffness * (x - maths.sin(t) * y) + push, -0.3 * y + x * x


def turning(t, u, params):
    """A rotation; for h gamma = 1/8 the first pivot of I - h gamma J is zero, and the matrix harmless."""
    x, y = u
    a, b = params
    return a * x - b * y, b * x - a * y


VAN_DER_POL = ol.problems.van_der_pol(20.0).replace(t_span=(0.0, 30.0))
FORCED = ol.Problem(forced, [1.0, 0.5], (0.0, 3.0), (200.0,))
TURNING = ol.Problem(turning, [1.0, 0.0], (0.0, 8.0), (8.0, 9.0))
ROBERTSON = ol.problems.robertson().replace(t_span=(0.0, 1e4))


def both(problem, method, controller, **options):
    """The run by a kernel and the run in plain Python."""
    return (
        ol.solve(problem, method, controller, engine="compiled", throw=False, **options),
        ol.solve(problem, method, controller, engine="python", throw=False, **options),
    )


def assert_same_work(kernel, plain):
    assert (kernel.engine, plain.engine) == ("compiled", "python")
    for name in ("status", "steps", "rejected", "evaluations", "jacobians", "factorisations"):
        assert getattr(kernel, name) == getattr(plain, name), name


def assert_same_grid(kernel, plain, rtol=1e-12):
    """Equal counts, times to the bit, states and what is told of each step but for rounding."""
    assert_same_work(kernel, plain)
    np.testing.assert_array_equal(kernel.step_t, plain.step_t)
    np.testing.assert_allclose(kernel.step_u, plain.step_u, rtol=rtol, atol=rtol * np.abs(plain.step_u).max())
    np.testing.assert_allclose(kernel.sai, plain.sai, rtol=1e3 * rtol)
