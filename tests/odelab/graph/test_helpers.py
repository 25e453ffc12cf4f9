"""Helpers with branches: those of one call do not multiply those of the next, and mean what Python means."""

import numpy as np
import pytest

import odelab as ol

MANY = 40  # calls with a branch each: 2^40 ways, if they multiplied


def limited(x):
    if x > 0.25:
        return 0.25
    return x if x > -0.5 else -0.5


def upwind(left, right):
    return left * left if left + right > 0.0 else right * right


def flow(t, u, params):
    n = len(u)
    return tuple(limited(u[i]) - upwind(u[i - 1], u[(i + 1) % n]) for i in range(n))


def flow_in_place(t, u, params, out):
    for i in range(u.size):
        out[i] = limited(u[i]) - upwind(u[i - 1], u[(i + 1) % u.size])


def parts(x):
    return (x, -x) if x > 0.0 else (0.0, x)


def with_tuples(t, u, params):
    pairs = [parts(x) for x in u]
    return tuple(first - 0.5 * second for first, second in pairs)


def filled(row, i, x):
    """Writes to what it is handed: its branches must not be tried one after the other on the same row."""
    if x > 0.0:
        row[i] = x
    else:
        row[i] = row[i] - 1.0
    return row


def with_rows(t, u, params):
    row = np.zeros(3)
    for i in range(3):
        row = filled(row, i, u[i])
    return -row


def refusing(x):
    if x > 10.0:
        raise ValueError("too large")
    return -x


def guarded(t, u, params):
    try:
        return tuple(refusing(x) for x in u)
    except ValueError:
        return tuple(0.0 * x for x in u)


def factorial_like(x, k):
    return 1.0 if k == 0 else limited(x) * factorial_like(x, k - 1)


def recursive(t, u, params):
    return tuple(factorial_like(x, 3) - x for x in u)


START = np.linspace(-1.0, 1.0, MANY)


@pytest.mark.parametrize(
    ("rhs", "u0"),
    [
        (flow, START),
        (flow_in_place, START),
        (with_tuples, START),
        (with_rows, [0.5, -0.9, 0.1]),
        (guarded, [1.0, 20.0]),
        (recursive, START[:10]),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_compiled_is_plain(rhs, u0):
    problem = ol.Problem(rhs, u0, (0.0, 0.5))
    compiled, plain = (ol.solve(problem, ol.DOPRI5, engine=engine) for engine in ("compiled", "python"))
    assert compiled.steps == plain.steps
    np.testing.assert_allclose(compiled.end_u, plain.end_u, rtol=1e-9, atol=1e-12)


def test_an_error_of_a_helper_is_the_users():
    problem = ol.Problem(lambda t, u, params: (refusing(-u[0] * 20.0),), [-0.4], (0.0, 5.0))
    for engine in ("compiled", "python"):
        with pytest.raises(ValueError, match="too large"):
            ol.solve(problem, ol.DOPRI5, engine=engine)
