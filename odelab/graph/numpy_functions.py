"""Functions of NumPy, other than ufuncs, on arrays of nodes.

What moves entries about, or only adds and multiplies, runs in NumPy itself on arrays of objects (`MOVING`); what looks
at numbers is written here (`FUNCTIONS`). Everything else is refused by its name.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from odelab.graph import nodes
from odelab.graph.arrays import Array, clip, dtype_named, elementwise, entries, gather, has_nodes, plain
from odelab.graph.graphs import Node
from odelab.graph.nodes import choose, logical, one, two
from odelab.graph.operations import WHOLE_BITS, set_bits
from odelab.graph.trails import Untraceable
from odelab.graph.ufuncs import accumulate_method, as_captured, matmul, reduce, refuse_options, total

MOVING = {
    *(np.concatenate, np.stack, np.vstack, np.hstack, np.column_stack, np.dstack, np.block, np.append, np.insert),
    *(np.roll, np.flip, np.flipud, np.fliplr, np.rot90, np.delete, np.tile, np.repeat, np.take),
    *(np.reshape, np.ravel, np.transpose, np.moveaxis, np.swapaxes, np.squeeze, np.expand_dims, np.broadcast_to),
    *(np.atleast_1d, np.atleast_2d, np.diag, np.diagonal, np.diagflat, np.tril, np.triu, np.split, np.array_split),
    *(np.broadcast_arrays, np.meshgrid, np.shape, np.size, np.ndim, np.diff, np.outer, np.kron, np.cross, np.polyval),
    *(np.einsum, np.tensordot, np.trapezoid, np.real),
}
MODES_OF_PADDING = ("constant", "edge", "wrap", "reflect", "symmetric")


def call(function, arguments, options: dict):
    """What a function of NumPy does with arrays of nodes, or with captured arrays of plain numbers."""
    if not has_nodes((*arguments, options)):
        return as_captured(function(*map(bare, arguments), **{name: bare(x) for name, x in options.items()}))
    out = options.pop("out", None)
    if out is not None and out is not np._NoValue:
        out[...] = call(function, arguments, options)
        return out
    if function in FUNCTIONS:
        return FUNCTIONS[function](*arguments, **options)
    if function not in MOVING:
        name = f"{function.__module__}.{function.__name__}".replace("numpy", "np")
        raise Untraceable(f"calls {name}, which is not followed", "write it with + and *, loops, np.where and np.sum")
    return as_nodes(function(*map(bare, arguments), **{name: bare(x) for name, x in options.items()}))


def bare(x):
    """An argument without Arrays, for NumPy's own code; a node is an array of no dimension there."""
    if isinstance(x, np.ndarray):
        return plain(x)
    if isinstance(x, list | tuple):
        return [entries(y) if has_nodes((y,)) else bare(y) for y in x] if has_nodes(x) else x
    return entries(x) if isinstance(x, Node) else x


def as_nodes(result):
    """What NumPy made of arrays of objects, as Arrays and nodes."""
    if isinstance(result, tuple | list):
        return type(result)(map(as_nodes, result))
    if not isinstance(result, np.ndarray):
        return result
    return result[()] if result.ndim == 0 else result.view(Array)


def reduction(ufunc, array, axis=None, dtype=None, out=None, **options):
    double_precision(dtype)
    return reduce(ufunc, array, axis, **options)


def mean(x, axis=None, dtype=None, out=None, **options):
    """The mean, as NumPy adds it."""
    double_precision(dtype)
    items = entries(x)
    return two_arrays("div", reduce(np.add, items, axis, **options), count_along(items, axis))


def average(x, axis=None, weights=None, **options):
    refuse_options(np.average, {"weights": weights})
    return mean(x, axis, **options)


def two_arrays(op: str, a, b):
    return elementwise(functools.partial(two, op), a, b)


def count_along(items, axis) -> float:
    axes = range(items.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return float(math.prod(items.shape[k] for k in axes))


def variance(x, axis=None, dtype=None, out=None, ddof=0, **options):
    """The variance, as NumPy computes it."""
    double_precision(dtype)
    items = entries(x)
    apart = two_arrays("sub", items, mean(items, axis, keepdims=True))
    squares = two_arrays("mul", apart, apart)
    return two_arrays("div", reduce(np.add, squares, axis, **options), count_along(items, axis) - ddof)


def deviation(x, *arguments, **options):
    return elementwise(functools.partial(one, "sqrt"), variance(x, *arguments, **options))


def where(condition, *both):
    if len(both) != 2:
        raise Untraceable("asks where a condition holds", "write np.where(condition, x, y)")
    return elementwise(choose, condition, *both)


def select(conditions, choices, default=0):
    result = default
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        result = where(condition, choice, result)
    return result


def searchsorted(a, v, side="left", sorter=None):
    refuse_options(np.searchsorted, {"sorter": sorter})
    if has_nodes((a,)):
        raise Untraceable("searches in an array that depends on the state", "search in a captured array of numbers")
    return elementwise(functools.partial(search, np.array(plain(a), dtype=float), side), v)


def search(knots, side, x):
    """How many of the knots are at most x, or less than x from the left; NaN comes after all, as NumPy has it."""
    if not isinstance(x, Node):
        return int(np.searchsorted(knots, x, side))
    count = len(knots)
    at_most = at_most_x(knots, x) if side == "right" else two("sub", count, at_most_x(-knots[::-1], one("neg", x)))
    return choose(two("ne", x, x), count, at_most)


def at_most_x(knots, x: Node) -> Node:
    """How many of the knots are at most x, which is a number."""
    return set_bits(x.graph.add("search", "l", x.graph.table(knots), x.real().i), WHOLE_BITS)


def interp(x, xp, fp, left=None, right=None, period=None):
    """np.interp of captured knots."""
    refuse_options(np.interp, {"period": period})
    if has_nodes((xp, fp)):
        raise Untraceable("interpolates values that depend on the state", "interpolate captured arrays of numbers")
    knots, values = (np.array(plain(z), dtype=float) for z in (xp, fp))
    return elementwise(functools.partial(interp_at, knots, values, left, right), x)


def interp_at(knots, values, left, right, x):
    if not isinstance(x, Node):
        return float(np.interp(x, knots, values, left, right))
    last = len(knots) - 1
    left, right = values[0] if left is None else left, values[-1] if right is None else right
    if last == 0:
        return choose(
            two("lt", x, knots[0]),
            left,
            choose(two("gt", x, knots[0]), right, choose(two("eq", x, knots[0]), values[0], x)),
        )
    with np.errstate(all="ignore"):
        slopes = np.diff(values) / np.diff(knots)
    k = piece_of(knots, x)
    inside = two("add", two("mul", gather(k, slopes), two("sub", x, gather(k, knots[:-1]))), gather(k, values[:-1]))
    inside = choose(two("eq", x, knots[-1]), values[-1], inside)
    outside = choose(two("lt", x, knots[0]), left, choose(two("gt", x, knots[-1]), right, inside))
    return choose(two("ne", x, x), x, outside)


def piece_of(knots, x: Node):
    """The piece between two knots in which x lies; the first or the last one beyond them."""
    last = len(knots) - 2
    k = two("sub", at_most_x(knots, x), 1)
    return choose(two("lt", k, 0), 0, choose(two("gt", k, last), last, k))


def norm(x, ord=None, axis=None, keepdims=False):
    """np.linalg.norm of a vector, or along an axis."""
    items = entries(x)
    if ord not in (None, 1, 2, np.inf, "fro") or (ord is not None and axis is None and items.ndim > 1 and ord != "fro"):
        raise Untraceable(f"calls np.linalg.norm with ord = {ord}, which is not followed", "write the norm out")
    if ord in (1, np.inf):
        return reduce(np.add if ord == 1 else np.maximum, elementwise(abs, items), axis, keepdims)
    squares = two_arrays("mul", items, items)
    return elementwise(functools.partial(one, "sqrt"), reduce(np.add, squares, axis, keepdims))


def gradient(x, *spacing, axis=None, edge_order=1):
    """np.gradient of one dimension with equal spacing."""
    items = entries(x)
    if items.ndim != 1 or edge_order != 1 or any(isinstance(dx, np.ndarray | list) for dx in spacing) or len(items) < 2:
        raise Untraceable("calls np.gradient in a way that is not followed", "write the differences as slices")
    dx = spacing[0] if spacing else 1.0
    inner = [((b, a), two("mul", 2.0, dx)) for a, b in zip(items, items[2:], strict=False)]
    pairs = [((items[1], items[0]), dx), *inner, ((items[-1], items[-2]), dx)]
    return Array.of([two("div", two("sub", *ends), width) for ends, width in pairs])


def convolve(a, v, mode="full"):
    """np.convolve; the sums are in the order of the first array."""
    a, v = entries(a).tolist(), entries(v).tolist()
    if len(v) > len(a):
        a, v = v, a
    full = [convolved(a, v, k) for k in range(len(a) + len(v) - 1)]
    if mode == "full":
        return Array.of(full)
    cut = (len(v) - 1) // 2 if mode == "same" else len(v) - 1
    return Array.of(full[cut : cut + (len(a) if mode == "same" else len(a) - len(v) + 1)])


def convolved(a: list, v: list, k: int):
    first, last = max(0, k - len(v) + 1), min(k, len(a) - 1)
    return functools.reduce(functools.partial(two, "add"), [two("mul", a[i], v[k - i]) for i in range(first, last + 1)])


def pad(array, width, mode="constant", **options):
    if mode not in MODES_OF_PADDING:
        raise Untraceable(f"pads with mode {mode!r}, which is not followed", f"use one of {MODES_OF_PADDING}")
    return as_nodes(np.pad(entries(array), width, mode, **{name: bare(x) for name, x in options.items()}))


def filled(shape, value) -> Array:
    """A new array that may be filled with nodes."""
    out = np.empty(shape, dtype=object)
    out[...] = value
    return out.view(Array)


def filled_like(value: float, x, dtype=None, shape=None, **_):
    return filled(shape_of_copy(x, dtype, shape), value)


def shape_of_copy(x, dtype, shape):
    """The shape of np.zeros_like(x) and the like, whose entries must be doubles."""
    double_precision(getattr(x, "dtype", None) if dtype is None else dtype)
    return np.shape(x) if shape is None else shape


def double_precision(dtype):
    """Refuse to calculate in anything else than double precision."""
    if dtype is not None and dtype_named(dtype) != np.float64:
        raise Untraceable(f"makes an array of {dtype_named(dtype)}", "leave `dtype` out")


def full_like(x, value, dtype=None, shape=None, **_):
    return filled_by(shape_of_copy(x, dtype, shape), value)


def filled_by(shape, value) -> Array:
    out = filled(shape, 0.0)
    out[...] = value
    return out


def rounded(x, decimals=0, out=None):
    return elementwise(functools.partial(rounded_number, decimals), x)


def rounded_number(decimals: int, x):
    return (
        round(x, decimals)
        if not isinstance(x, Node)
        else one("rint", x)
        if decimals == 0
        else nodes.round_to_digits(x, decimals)
    )


def fix(x, out=None):
    return elementwise(functools.partial(one, "trunc"), x)


def sinc(x):
    return elementwise(sinc_of_number, x)


def sinc_of_number(x):
    y = two("mul", math.pi, choose(two("eq", x, 0.0), 1e-20, x))
    return two("div", one("sin", y), y)


def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    refuse_options(np.isclose, {"equal_nan": equal_nan or None})
    return elementwise(functools.partial(close_numbers, rtol, atol), a, b)


def close_numbers(rtol, atol, a, b):
    near = two("le", one("abs", two("sub", a, b)), two("add", atol, two("mul", rtol, one("abs", b))))
    return logical("or", logical("and", near, nodes.is_finite(b)), two("eq", a, b))


def allclose(a, b, **options):
    return reduce(np.logical_and, isclose(a, b, **options))


def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    high, low = (np.finfo(float).max if posinf is None else posinf), (np.finfo(float).min if neginf is None else neginf)
    return elementwise(functools.partial(finite_number, nan, high, low), x)


def finite_number(nan, high, low, x):
    return choose(two("ne", x, x), nan, choose(two("eq", x, math.inf), high, choose(two("eq", x, -math.inf), low, x)))


def accumulated(ufunc, x, axis=None, dtype=None, out=None):
    double_precision(dtype)
    items = entries(x)
    return accumulate_method(ufunc, (items.reshape(-1) if axis is None else items,), {"axis": axis or 0})


def trace(x, *arguments, **options):
    refuse_options(np.trace, {"offset": arguments or options or None})
    return total(np.diagonal(entries(x)).tolist())


def product_of_vectors(a, b):
    return matmul(entries(a).reshape(-1), entries(b).reshape(-1))


def product_of_arrays(a, b):
    """np.dot and np.inner of vectors and matrices, or of a number and an array."""
    if entries(a).ndim == 0 or entries(b).ndim == 0:
        return two_arrays("mul", a, b)
    return matmul(a, b)


def inner(a, b):
    return product_of_arrays(a, entries(b).T)


def array_equal(a, b, **_):
    a, b = entries(a), entries(b)
    return a.shape == b.shape and reduce(np.logical_and, two_arrays("eq", a, b))


def copied(x, **_):
    return entries(x).copy().view(Array)


def extent(x, axis=None, **options):
    return two_arrays("sub", reduce(np.maximum, x, axis, **options), reduce(np.minimum, x, axis, **options))


def of_reduction(ufunc):
    return functools.partial(reduction, ufunc)


def constant_answer(answer, x):
    return answer


FUNCTIONS: dict[Any, Callable] = {
    **{np.where: where, np.select: select, np.clip: clip},
    **{np.sum: of_reduction(np.add), np.prod: of_reduction(np.multiply), np.max: of_reduction(np.maximum)},
    **{np.min: of_reduction(np.minimum), np.any: of_reduction(np.logical_or), np.all: of_reduction(np.logical_and)},
    **{np.amax: of_reduction(np.maximum), np.amin: of_reduction(np.minimum), np.ptp: extent},
    **{np.mean: mean, np.average: average, np.var: variance, np.std: deviation, np.linalg.norm: norm},
    **{np.dot: product_of_arrays, np.inner: inner, np.vdot: product_of_vectors, np.trace: trace},
    **{np.searchsorted: searchsorted, np.interp: interp, np.gradient: gradient, np.convolve: convolve},
    **{np.pad: pad, np.copy: copied, np.full_like: full_like, np.zeros_like: functools.partial(filled_like, 0.0)},
    **{np.ones_like: functools.partial(filled_like, 1.0), np.empty_like: functools.partial(filled_like, math.nan)},
    **{np.round: rounded, np.around: rounded, np.fix: fix, np.sinc: sinc, np.nan_to_num: nan_to_num},
    **{np.isclose: isclose, np.allclose: allclose, np.array_equal: array_equal},
    **{np.cumsum: functools.partial(accumulated, np.add), np.cumprod: functools.partial(accumulated, np.multiply)},
    **{
        np.iscomplexobj: functools.partial(constant_answer, False),
        np.isrealobj: functools.partial(constant_answer, True),
    },
}


def of_node(self, function, types, arguments, options):
    """What a function of NumPy does with a node: NumPy asks for this method."""
    return call(function, arguments, options)


setattr(Node, "__array_function__", of_node)  # noqa: B010 because a node knows nothing of arrays
