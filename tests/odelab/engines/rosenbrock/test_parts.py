"""The kernels that repeat parts of an attempt give what those parts are said to compute."""

import numpy as np
import pytest

import odelab as ol
from odelab.engines.numba.load import kernel
from odelab.engines.numba.request import request_for
from odelab.engines.rosenbrock import parts
from odelab.experiments.timing import arrays_for

HG = 0.03


def found_by(problem, part, repeats=2) -> float:
    request = request_for("parts", problem, ol.RODAS4, ol.fixed(1.0))
    numbers, params = np.array([problem.t_span[0], HG]), np.array(problem.params, dtype=float)
    advance = kernel(request).functions["advance"]
    return advance(part, repeats, numbers, params, np.array(problem.u0), *arrays_for(request, problem))


def driven(t, u, params):
    x, y, z = u
    return -params[0] * x * y + t * t, x * y - y * z, y * z - 0.5 * z


def driven_line(t, u, params, out):
    for i in range(1, u.size - 1):
        out[i] = params[0] * (u[i - 1] - 2.0 * u[i] + u[i + 1])
    out[0] = params[0] * (u[1] - 2.0 * u[0]) + t * t
    out[u.size - 1] = -params[0] * u[u.size - 1] * u[u.size - 2]


@pytest.mark.parametrize("rhs", [driven, driven_line])
def test_parts_give_slopes_and_solutions(rhs):
    """The sum over all components where there are few; of large systems the first component alone."""
    small = rhs is driven
    problem = ol.Problem(rhs, np.linspace(1.0, 2.0, 3 if small else 7), (0.5, 2.0), (4.0,))
    t, u = 0.5, np.array(problem.u0)
    J, f, f_t = ol.experiments.at_a_state.linear_parts(problem, t, u)
    x = np.linalg.solve(np.eye(len(u)) - HG * J, np.ones(len(u)))
    total = np.sum if small else (lambda row: row[0])
    assert found_by(problem, parts.NOTHING) == pytest.approx(total(u))
    assert found_by(problem, parts.EVALUATION) == pytest.approx(total(f))
    for part in (parts.SOLVE, parts.FACTOR, parts.JACOBIAN):
        assert found_by(problem, part) == pytest.approx(total(x) + total(f_t), rel=1e-12)
    assert f_t[0] == pytest.approx(1.0)
