"""Bands eliminated in loops: every solution satisfies its system, and factors that fail are seen."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from odelab.graph.llvm import Module
from odelab.kernels.large.band_loops import add_band
from odelab.kernels.machine import Machine, address
from tests.rounding import EPS

known = {}


def machine(below: int, above: int):
    """`solve(J, number, order, right, factors, ordered, x, sound, n)`, `number` being hg and a factor of its pivots."""
    if (below, above) not in known:
        module = Module("contract")
        band = add_band(module, below, above)
        pointers = ("J", "number", "order", "right", "factors", "ordered", "x", "sound")
        function = module.function("solve", {**dict.fromkeys(pointers, "p"), "n": "l"})
        hg, row = function.load("d", "%number", 0), function.load("l", "%number", 1)
        function.call(band.eliminate, "%J", hg, "%factors", "%n")
        damaged = function.load("d", "%number", 2)
        place = function.whole("add", function.whole("mul", row, below + 1 + above), below)
        with function.when(function.compare("sge", row, 0)):
            function.store("d", damaged, "%factors", place)
        function.call(band.substitute, "%factors", "%order", "%right", "%ordered", "%x", "%n")
        function.call(band.check, "%J", hg, "%order", "%right", "%ordered", "%sound", "%n")
        code = Machine(module.text())
        known[below, above] = code, code.function("solve", 9)
    return known[below, above][1]


def solve(J, hg, order, right, below, above, damage=(-1, 0.0)):
    """(solution, whether it was found sound); `damage` is a place of the band and a pivot to be put there."""
    n, width = len(right), below + 1 + above
    band = np.zeros((n + below, width))
    ordered = J[np.ix_(order, order)]
    for i in range(n):
        for c in range(width):
            if 0 <= i - below + c < n:
                band[i, c] = ordered[i, i - below + c]
    number = np.array([hg, 0.0, damage[1]])
    number.view(np.int64)[1] = damage[0]
    x, sound = np.empty(n), np.zeros(1, np.int64)
    arrays = (band, number, np.asarray(order, dtype=np.int64), right, np.zeros_like(band))
    machine(below, above)(*map(address, (*arrays, np.zeros(n + below + above), x, sound)), n)
    return x, bool(sound[0])


@st.composite
def systems(draw):
    """A band whose diagonal dominates, in some order of its unknowns, and a right side."""
    below, above = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    n = draw(st.integers(1, 30))
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    order = random.permutation(n)
    apart = np.subtract.outer(np.arange(n), np.arange(n))
    ordered = np.where((apart <= below) & (-apart <= above), random.standard_normal((n, n)), 0.0)
    J = np.zeros((n, n))
    J[np.ix_(order, order)] = ordered
    return below, above, order, J, random.standard_normal(n)


@given(systems())
def test_it_solves(system):
    """The diagonal of M dominates: its factors do not grow, and the residual is rounding of the terms of a row."""
    below, above, order, J, right = system
    hg = 0.5 / max(1.0, np.abs(J).sum(axis=1).max())
    x, sound = solve(J, hg, order, right, below, above)
    M = np.eye(len(right)) - hg * J
    terms = np.abs(M).sum() * np.abs(x).max() + np.abs(right).max()
    assert sound
    assert np.abs(M @ x - right).max() <= 8 * (below + above + 2) * EPS * terms


@given(systems(), st.floats(1e-6, 1e3), st.data())
def test_a_false_pivot_is_seen(system, error, data):
    """Where the right side is not zero, a pivot that is wrong by more than the limit of the check falsifies a row."""
    below, above, order, J, right = system
    place = data.draw(st.integers(0, len(right) - 1))
    right = np.sign(right) + right
    hg = 1e-3 / max(1.0, np.abs(J).sum(axis=1).max())
    pivot = (1.0 + error) / (1.0 - hg * J[order[place], order[place]])
    assert not solve(J, hg, order, right, below, above, (place, pivot))[1]


@given(systems())
def test_a_matrix_that_is_not_finite_is_seen(system):
    below, above, order, J, right = system
    J[order[0], order[0]] = np.nan
    assert not solve(J, 0.1, order, right, below, above)[1]


def test_a_pivot_of_zero_is_seen():
    J = np.array([[2.0, -1.0], [1.0, 2.0]])
    assert not solve(J, 0.5, np.array([0, 1]), np.array([1.0, 1.0]), 1, 1)[1]
