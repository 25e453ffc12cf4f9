"""Slopes and derivatives in loops: those of NumPy but for rounding, and one kernel for every size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odelab.graph.classes import classes_of
from odelab.graph.evaluation import value_of
from odelab.graph.graphs import arguments_of, used
from odelab.graph.llvm import Module
from odelab.kernels.large import row_loops
from odelab.kernels.machine import Machine, address
from odelab.problem import Problem
from tests.odelab.graph.test_classes import PARAMETERS, each_function, recorded
from tests.rounding import ROUNDINGS, spread

T = 0.3
kernels = {}


class Loops:
    """The machine code of the rows of a function."""

    def __init__(self, classes, alone):
        module = Module("contract")
        functions = {
            "slopes": row_loops.add_slopes(module, "rows", classes),
            "jacobian": row_loops.add_jacobian(module, alone),
            "by_time": row_loops.add_slopes_by_time(module, alone),
        }
        for name, inner in functions.items():
            given_names = [one for one in inner.parameters if one != "t"]
            outer = module.function(f"{name}_at", dict.fromkeys(["time", *given_names], "p"))
            t = outer.load("d", "%time", 0)
            outer.call(inner, *(t if one == "t" else f"%{one}" for one in inner.parameters))
        self.code = Machine(module.text())
        self.counts = {name: len(inner.parameters) for name, inner in functions.items()}

    def __call__(self, name, *arrays):
        self.code.function(f"{name}_at", self.counts[name])(*map(address, arrays))


def loops_of(function, form, n):
    case = recorded(function, form, n)
    classes, alone = classes_of(case), classes_of(case, shares=False)
    key = classes.key, alone.key
    if key not in kernels:
        kernels[key] = Loops(classes, alone)
    return kernels[key], classes, alone


def slopes(function, form, n, u):
    loops, classes, _ = loops_of(function, form, n)
    out, raised = np.full(n, np.nan), np.zeros(1, np.int64)
    tables = classes.constants, row_loops.table_of_runs(classes, False), np.zeros(classes.entries)
    loops("slopes", np.array([T]), u, PARAMETERS, *tables, out, raised)
    return out


def rounded(case, u, move):
    """The slopes of a graph, `move` being applied to the result of every operation."""
    inputs = {"t": T} | {f"u{i}": x for i, x in enumerate(u)} | {f"p{i}": x for i, x in enumerate(PARAMETERS)}
    values: dict = {}
    for i in used(case.graph, case.outputs):
        operation = case.graph.ops[i]
        value = value_of(case.graph, operation, [values[j] for j in arguments_of(operation)], inputs)
        values[i] = move(value) if operation[1] == "d" and operation[0] not in ("in", "const") else value
    return np.array([float(values[node.i]) for node in case.outputs])


@pytest.mark.slow
@each_function
@given(n=st.integers(3, 20), seed=st.integers(0, 10**6))
def test_slopes_are_those_of_the_rows(function, form, n, seed):
    u = np.random.default_rng(seed).normal(size=n)
    classes = loops_of(function, form, n)[1]
    wanted = classes(T, u, PARAMETERS)[0]
    bound = ROUNDINGS * spread(lambda move: rounded(recorded(function, form, n), u, move))
    assert (np.abs(slopes(function, form, n, u) - wanted) <= bound).all()


@each_function
@pytest.mark.parametrize("n", [3, 7, 24])
def test_derivatives_are_those_of_plain_python(function, form, n):
    loops, _, alone = loops_of(function, form, n)
    u = np.random.default_rng(n).normal(size=n)
    rows, columns = row_loops.pattern_of(alone)
    J, by_time = np.full(len(rows), np.nan), np.full(n, np.nan)
    tables = alone.constants, row_loops.table_of_runs(alone, True)
    loops("jacobian", np.array([T]), u, PARAMETERS, *tables, np.arange(len(rows)), J)
    loops("by_time", np.array([T]), u, PARAMETERS, *tables, by_time)
    found = np.zeros((n, n))
    found[rows, columns] = J
    assert len(set(zip(rows.tolist(), columns.tolist(), strict=True))) == len(rows)
    step = 1e-6
    for k in range(n):
        beside = step * np.eye(n)[k]
        ahead, behind = (alone(T, u + sign * beside, PARAMETERS)[0] for sign in (1, -1))
        np.testing.assert_allclose(found[:, k], (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-5 * n * n)
    ahead, behind = (alone(T + sign * step, u, PARAMETERS)[0] for sign in (1, -1))
    np.testing.assert_allclose(by_time, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-6 * n * n)


def test_one_kernel_serves_every_size():
    from tests.odelab.graph.test_classes import diffusion

    first = loops_of(diffusion, "in-place", 12)[0]
    assert all(loops_of(diffusion, "in-place", n)[0] is first for n in (13, 20, 100))
    for n in (12, 100):
        u = np.linspace(-1.0, 1.0, n)
        problem = Problem(diffusion, u, (0.0, 1.0), tuple(PARAMETERS))
        np.testing.assert_allclose(slopes(diffusion, "in-place", n, u), problem.slope(T, u), rtol=1e-12, atol=1e-13)
