"""The parts of an attempt that are timed compute what those of a step compute."""

import numpy as np
import pytest

import odelab as ol
from odelab.graph.evaluation import evaluate
from odelab.graph.llvm import Module
from odelab.kernels import store
from odelab.kernels.machine import Machine, address
from odelab.kernels.parts import add_repeated, parts_of

HG = 0.03


def driven(t, u, params):
    x, y, z = u
    return -params[0] * x * y + t * t, x * y - y * z, y * z - 0.5 * z


PROBLEM = ol.Problem(driven, [1.0, 1.5, 2.0], (0.5, 2.0), (4.0,))


def values(part, known):
    """The results of a part by NumPy, and their sum by its machine code, repeated twice."""
    inputs = {name: known[name] for name in part.inputs}
    module, found = Module(), np.zeros(1)
    add_repeated(module, "part", part)
    machine = Machine(module.text())
    machine.function("part", 3)(address(np.array(list(inputs.values()))), address(found), 2)
    return np.array(evaluate(part.graph, part.outputs, inputs), dtype=float), found[0]


def test_parts_give_slopes_and_solutions():
    t, u, (p,) = 0.5, np.array(PROBLEM.u0), PROBLEM.params
    J, f, f_t = ol.experiments.at_a_state.linear_parts(PROBLEM, t, u)
    parts = parts_of(store.slopes_of(PROBLEM), 3)
    known = {"t": t, "p0": p, "hg": HG, **{f"u{i}": x for i, x in enumerate(u)}, **{f"b{i}": 1.0 for i in range(3)}}
    known |= {f"j{i}_{j}": J[i, j] for i in range(3) for j in range(3)}
    x = np.linalg.solve(np.eye(3) - HG * J, np.ones(3))
    slopes, total = values(parts["evaluation"], known)
    np.testing.assert_allclose(slopes, f, rtol=1e-15)
    assert total == pytest.approx(f.sum(), rel=1e-14)
    entries, total = values(parts["jacobian"], known)
    np.testing.assert_allclose(np.sort(entries), np.sort([*J[J != 0.0], *f_t[f_t != 0.0]]), rtol=1e-15)
    assert total == pytest.approx(J.sum() + f_t.sum(), rel=1e-13)
    solution, total = values(parts["factorisation"], known)
    np.testing.assert_allclose(solution, x, rtol=1e-13)
    assert total == pytest.approx(x.sum(), rel=1e-13)


def test_a_solution_alone_uses_the_factors_it_is_handed():
    parts = parts_of(store.slopes_of(PROBLEM), 3)
    diagonal = {name: 2.0 if name[0] == "P" else 1.0 if name[0] == "b" else 0.0 for name in parts["solve"].inputs}
    solution, total = values(parts["solve"], diagonal)
    np.testing.assert_array_equal(solution, [2.0, 2.0, 2.0])
    assert total == 6.0
