"""NumPy on nodes: every function that is followed gives NumPy's numbers, and sums have NumPy's bits."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from odelab.graph.arrays import Array
from odelab.graph.evaluation import evaluate
from odelab.graph.graphs import Graph, Node
from odelab.graph.nodes import Untraceable
from odelab.graph.numpy_functions import FUNCTIONS, MOVING
from odelab.graph.ufuncs import SCALARS
from tests.rounding import EPS

KNOTS, VALUES = np.linspace(-2.0, 2.0, 9), np.cos(np.arange(9.0))
MATRIX = np.arange(15.0).reshape(5, 3) / 7.0
SAMPLE = np.array([0.3, -1.2, 0.0, 2.5, 0.7])
ULPS = 4.0  # by which functions of the C library and NumPy's own differ


def on_nodes(function, *values):
    """The numbers of a function of arrays that are made of nodes."""
    graph, named, symbols = Graph(), {}, []
    for k, value in enumerate(values):
        value = np.asarray(value, dtype=float)
        nodes = graph.inputs(f"x{k}_", value.size)
        named |= {f"x{k}_{i}": x for i, x in enumerate(value.reshape(-1))}
        symbols.append(nodes.reshape(value.shape) if value.ndim else nodes[0])
    with np.errstate(all="ignore"):
        return numbers(graph, function(*symbols), named)


def numbers(graph: Graph, result, named: dict):
    """A result with the values of its nodes."""
    if isinstance(result, list | tuple):
        return [numbers(graph, part, named) for part in result]
    items = np.asarray(result, dtype=object) if not isinstance(result, Node) else np.array([result, 0], object)[:1]
    flat = items.view(np.ndarray).reshape(-1).tolist()
    values = [float(evaluate(graph, [x], named)[0]) if isinstance(x, Node) else float(x) for x in flat]
    return np.array(values).reshape(() if isinstance(result, Node) else items.shape)


def assert_close(found, wanted, roundings: float):
    """Relative to the size of the largest number, as sums may be added in another order."""
    wanted = [np.asarray(part, dtype=float) for part in wanted] if isinstance(wanted, list | tuple) else wanted
    if isinstance(wanted, list):
        for one, other in zip(found, wanted, strict=True):
            assert_close(one, other, roundings)
        return
    wanted = np.asarray(wanted, dtype=float)
    assert np.shape(found) == wanted.shape
    size = np.nanmax(np.where(np.isfinite(wanted), np.abs(wanted), 0.0), initial=1e-300)
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=roundings * EPS * size)


@pytest.mark.parametrize("ufunc", SCALARS, ids=lambda ufunc: ufunc.__name__)
def test_a_ufunc_of_nodes_is_numpys(ufunc):
    if ufunc in (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logical_xor, np.invert):
        function = lambda *xs: ufunc(*(x > 0.5 for x in xs))  # noqa: E731
    else:
        function = ufunc
    columns = [np.linspace(-2.3, 2.1, 12), np.linspace(1.9, -1.7, 12)][: ufunc.nin]
    with np.errstate(all="ignore"):
        wanted = np.asarray(function(*columns), dtype=float)
    found = on_nodes(function, *columns)
    np.testing.assert_allclose(found, wanted, rtol=ULPS * EPS, atol=0.0)


CALLS = {
    np.where: [lambda x: np.where(x > 0, x, -1.0)],
    np.select: [lambda x: np.select([x > 1, x > 0], [x, 2 * x], 5.0)],
    np.searchsorted: [
        functools.partial(np.searchsorted, KNOTS),
        functools.partial(np.searchsorted, KNOTS, side="right"),
    ],
    np.interp: [lambda x: np.interp(x, KNOTS, VALUES), lambda x: np.interp(x, KNOTS, VALUES, left=-7.0, right=8.0)],
    np.clip: [lambda x: np.clip(x, -0.5, 0.5), lambda x: np.clip(x, None, 0.5), lambda x: x.clip(-0.5)],
    np.gradient: [np.gradient, lambda x: np.gradient(x, 0.3)],
    np.convolve: [functools.partial(np.convolve, [1.0, -2.0, 0.5], mode=mode) for mode in ("full", "same", "valid")],
    np.pad: [lambda x: np.pad(x, 2), lambda x: np.pad(x, (1, 2), mode="wrap"), lambda x: np.pad(x, 1, "reflect")],
    np.full_like: [lambda x: np.full_like(x, 3.0)],
    np.dot: [lambda x: np.dot(x, x), lambda x: np.dot(x, MATRIX), lambda x: x.dot(MATRIX), lambda x: MATRIX.T @ x],
    np.inner: [lambda x: np.inner(x, x), lambda x: np.inner(MATRIX.T, x)],
    np.vdot: [lambda x: np.vdot(x, x)],
    np.trace: [lambda x: np.trace(np.outer(x, x))],
    np.empty_like: [lambda x: np.isnan(np.empty_like(x)) | True],
    np.linalg.norm: [np.linalg.norm, lambda x: np.linalg.norm(x, 1), lambda x: np.linalg.norm(x, np.inf)],
    np.var: [np.var, lambda x: np.var(x, ddof=1), lambda x: np.var(np.outer(x, x), axis=0)],
    np.isclose: [lambda x: np.isclose(x, 0.3), lambda x: np.isclose(x, x[0])],
    np.allclose: [lambda x: np.allclose(x, x)],
    np.array_equal: [lambda x: np.array_equal(x, x)],
    np.mean: [np.mean, lambda x: np.mean(np.outer(x, x), axis=1), lambda x: x.mean(keepdims=True)],
    np.sum: [
        np.sum,
        lambda x: np.outer(x, x).sum(axis=(0, 1)),
        lambda x: np.sum(np.outer(x, x), axis=0, keepdims=True),
    ],
    np.round: [np.round, lambda x: np.round(x, 1), lambda x: x.round()],
    np.nan_to_num: [np.nan_to_num, lambda x: np.nan_to_num(x / x[2], nan=9.0, posinf=1.0)],
}
ARRANGED = [
    *(lambda x: np.roll(x, 2), lambda x: np.flip(x), lambda x: np.stack([x, x], axis=1), lambda x: np.tile(x, 2)),
    *(lambda x: np.repeat(x, 2), lambda x: np.outer(x, x).T, lambda x: np.diag(x), lambda x: np.tril(np.outer(x, x))),
    *(lambda x: np.concatenate([x, [1.0], x[:2]]), lambda x: np.append(x, 3.0), lambda x: np.insert(x, 1, 4.0)),
    *(lambda x: np.delete(x, 1), lambda x: np.split(x, [2]), lambda x: np.diff(x, 2), lambda x: np.kron(x, x[:2])),
    *(lambda x: np.einsum("i,ij->j", x, MATRIX), lambda x: np.cross(x[:3], x[2:]), lambda x: np.trapezoid(x, dx=0.5)),
    *(lambda x: np.tensordot(x, MATRIX, 1), lambda x: np.polyval([1.0, 2.0, 3.0], x), lambda x: np.take(x, [3, 1])),
    *(lambda x: np.meshgrid(x, x)[1], lambda x: x[[4, 0]], lambda x: x[::-2], lambda x: x[None, :] - x[:, None]),
    *(lambda x: np.add.accumulate(x), lambda x: np.multiply.outer(x, x), lambda x: np.maximum.reduce(x)),
    *(lambda x: np.broadcast_to(x, (2, 5)), lambda x: x.reshape(5, 1).ravel(), lambda x: np.squeeze(x[None])),
    *(lambda x: np.any(x > 2), lambda x: (x > -5).all(), lambda x: (x > 0).sum(), lambda x: np.cumsum(x > 0)),
    *(lambda x: x.max(), lambda x: np.outer(x, x).min(axis=1), lambda x: np.prod(x + 1), lambda x: np.ptp(x)),
]


def calls():
    simple = {function: [function] for function in FUNCTIONS if function not in CALLS}
    return [call for functions in (simple | CALLS).values() for call in functions] + ARRANGED


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")  # since NumPy 2.5
@pytest.mark.parametrize("function", calls(), ids=range(len(calls())))
def test_a_function_of_nodes_is_numpys(function):
    with np.errstate(all="ignore"):
        wanted = function(SAMPLE)
        assert_close(on_nodes(function, SAMPLE), wanted, roundings=16)


@given(arrays(float, st.integers(1, 300), elements=st.floats(-1e3, 1e3)))
def test_sums_have_numpys_bits(x):
    assert float(on_nodes(np.sum, x)) == np.sum(x)
    assert float(on_nodes(np.mean, x)) == np.mean(x)


@given(arrays(float, st.tuples(st.integers(1, 5), st.integers(1, 20)), elements=st.floats(-1e3, 1e3)))
def test_sums_over_an_axis_have_numpys_bits(x):
    for axis in (0, 1, -1):
        np.testing.assert_array_equal(on_nodes(functools.partial(np.sum, axis=axis), x), np.sum(x, axis=axis))


@given(st.floats(-1e6, 1e6), st.floats(-1e3, 1e3).filter(lambda x: abs(x) > 1e-3))
def test_remainders_and_quotients_have_numpys_bits(a, b):
    for function in (np.mod, np.floor_divide, np.fmod, np.copysign, np.maximum, np.fmin):
        assert float(on_nodes(function, a, b)) == function(a, b)


@given(st.integers(-(2**20), 2**20), st.integers(-50, 50).filter(bool))
def test_whole_numbers_divide_as_pythons_do(a, b):
    from odelab.graph.nodes import floor_divide, modulo, whole

    for function, wanted in ((floor_divide, a // b), (modulo, a % b)):
        assert float(on_nodes(lambda x, y, f=function: f(whole(x), whole(y)), a, b)) == wanted


def test_what_is_not_followed_is_refused_by_name():
    u = Graph().inputs("u", 4)
    for call in (np.sort, np.linalg.inv, np.argmax, np.unique, np.median, np.fft.fft, np.frexp, np.angle):
        with pytest.raises(Untraceable, match=call.__name__):
            call(u)


def test_options_that_are_not_followed_are_refused():
    u = Graph().inputs("u", 4)
    for call in (
        lambda: np.sum(u, where=u > 0),
        lambda: np.add(u, u, dtype=np.float32),
        lambda: np.zeros_like(u, dtype=int),
        lambda: np.sum(u, dtype=np.float32),
        lambda: np.average(u, weights=[1, 2, 3, 4]),
        lambda: np.pad(u, 1, mode="mean"),
    ):
        with pytest.raises(Untraceable):
            call()


def test_an_array_of_constants_stays_one_and_looks_up_places():
    table = np.arange(5.0).view(Array)
    assert (table * 2.0).dtype == float
    graph = Graph()
    place = graph.input("k", "l")
    entry = table[place]
    found = evaluate(graph, [entry, *graph.raised], {"k": np.array([0, 4, -1, 5, -6])})
    np.testing.assert_array_equal(found[0], [0.0, 4.0, 4.0, np.nan, np.nan])
    assert found[1].tolist() == [False, False, False, True, True]


def test_every_function_that_moves_entries_is_a_function_of_numpy():
    assert all(callable(function) for function in MOVING)
