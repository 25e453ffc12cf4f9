"""Parameters of any shape: their numbers are handed over, anything else is a part of the kernel."""

from typing import NamedTuple

import numpy as np
import pytest

import odelab as ol
from odelab.kernels.parameters import Parameters


class Rates(NamedTuple):
    fast: float
    slow: float


def solved(rhs, params, engine="compiled"):
    return ol.solve(ol.Problem(rhs, [1.0, 0.5], (0.0, 1.0), params), ol.DOPRI5, engine=engine)


CASES = {
    "a named tuple": (lambda t, u, p: (-p.fast * u[0], -p.slow * u[1]), Rates(2.0, 0.5), Rates(1.0, 3.0)),
    "a dictionary": (lambda t, u, p: (-p["k"] * u[0], -u[1]), {"k": 2.0}, {"k": 0.1}),
    "nested": (lambda t, u, p: (-p[0][1] * u[0], -p[1] * u[1]), ((1.0, 2.0), 3.0), ((1.0, 0.2), 0.3)),
    "a matrix": (lambda t, u, p: p @ u, np.array([[-1.0, 0.5], [0.0, -2.0]]), np.array([[-2.0, 0.1], [0.3, -1.0]])),
    "a count": (lambda t, u, p: (-sum(u[0] for _ in range(p[0])), -p[1] * u[1]), (2, 1.0), (3, 1.0)),
    "a place": (lambda t, u, p: (-u[p[0]], -u[1]), (1,), (0,)),
    "a word": (lambda t, u, p: (-u[0] if p[0] == "on" else 0.0 * u[0], -u[1]), ("on",), ("off",)),
    "nothing": (lambda t, u, p: (-u[0], -u[1]), None, None),
}


@pytest.mark.parametrize("name", CASES)
def test_each_call_uses_its_own_values(name):
    rhs, *given = CASES[name]
    for params in given:
        compiled, plain = (solved(rhs, params, engine) for engine in ("compiled", "python"))
        assert compiled.engine == "compiled"
        np.testing.assert_allclose(compiled.end_u, plain.end_u, rtol=1e-9)


def test_an_array_that_is_changed_in_place_is_read_again():
    rates = np.array([1.0, 2.0])
    problem = ol.Problem(lambda t, u, p: (-p[0] * u[0], -p[1] * u[1]), [1.0, 1.0], (0.0, 1.0), rates)
    for factor in (1.0, 3.0):
        rates[:] = factor * np.array([1.0, 2.0])
        found = ol.solve(problem, ol.DOPRI5, engine="compiled").end_u
        np.testing.assert_allclose(found, np.exp(-np.array(problem.params)), rtol=1e-5)


def test_one_kernel_serves_all_numbers_but_not_all_counts():
    assert Parameters((1.0, 2)).made_for == Parameters((3.0, 4)).made_for != Parameters((3.0, 4.0)).made_for
    assert Parameters((1, 2.0), "built in").made_for != Parameters((3, 2.0), "built in").made_for
    assert Parameters(([1.0], 2.0)).made_for != Parameters(((1.0,), 2.0)).made_for
    assert not Parameters(([1.0],)).are_lasting
    assert Parameters((1.0, "on")).are_lasting
