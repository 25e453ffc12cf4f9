"""NumPy's ufuncs on nodes and arrays of them: element by element, as reductions in NumPy's order, as outer products."""

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from odelab.graph import nodes
from odelab.graph.arrays import (
    COPY,
    WRITTEN,
    Array,
    dtype_named,
    elementwise,
    entries,
    has_nodes,
    holds_objects,
    packed,
    plain,
)
from odelab.graph.graphs import Node
from odelab.graph.nodes import call_two, choose, logical, one, two
from odelab.graph.operations import OF_ONE, OF_TWO, whole
from odelab.graph.trails import Untraceable


def named(function: Callable, names: dict) -> dict:
    """{ufunc of NumPy: the function with the operation as its first argument}"""
    return {getattr(np, name): functools.partial(function, op) for name, op in names.items()}


def square(x):
    return two("mul", x, x)


def same(x):
    return x


def reciprocal(x):
    return two("div", 1.0, x)


def expit(x):
    return two("div", 1.0, two("add", 1.0, one("exp", one("neg", x))))


def float_power(a, b):
    return nodes.power(two("mul", 1.0, a), b)


def logaddexp(a, b):
    """log(exp(a) + exp(b)) without overflow; equal infinities have no difference."""
    apart = one("abs", two("sub", a, b))
    return choose(
        two("eq", a, b),
        two("add", a, math.log(2.0)),
        two("add", nodes.larger(a, b), one("log1p", one("exp", one("neg", apart)))),
    )


INVERSE = {f"arc{name[1:]}": name for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")}
SAME_NAME = {name: name for name in (*OF_ONE, *OF_TWO) if hasattr(np, name) and isinstance(getattr(np, name), np.ufunc)}
SCALARS: dict[Callable, Callable] = {
    **named(two, {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "div"}),
    **named(two, {"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq"}),
    **named(two, {"not_equal": "ne"}),
    **named(one, {**{name: op for name, op in SAME_NAME.items() if op in OF_ONE}, **INVERSE}),
    **named(one, {"negative": "neg", "absolute": "abs", "fabs": "abs"}),
    **named(call_two, {"arctan2": "atan2", "hypot": "hypot", "fmod": "fmod", "copysign": "copysign"}),
    **named(logical, {"logical_and": "and", "logical_or": "or", "logical_not": "not"}),
    **{np.bitwise_and: nodes.both, np.bitwise_or: nodes.either, np.bitwise_xor: nodes.differ},
    **{np.logical_xor: nodes.unequal, np.invert: nodes.inverted},
    **{
        np.maximum: nodes.larger,
        np.minimum: nodes.smaller,
        np.fmax: nodes.larger_number,
        np.fmin: nodes.smaller_number,
    },
    **{np.power: nodes.power, np.float_power: float_power, np.remainder: nodes.modulo},
    **{np.floor_divide: nodes.floor_divide, np.square: square, np.positive: same, np.conjugate: same},
    **{np.reciprocal: reciprocal, np.sign: nodes.sign, np.heaviside: nodes.heaviside, np.logaddexp: logaddexp},
    **{np.isfinite: nodes.is_finite, np.isnan: nodes.is_nan, np.isinf: nodes.is_infinite},
    **dict.fromkeys((np.degrees, np.rad2deg), functools.partial(two, "mul", 180.0 / math.pi)),
    **dict.fromkeys((np.radians, np.deg2rad), functools.partial(two, "mul", math.pi / 180.0)),
}
SPECIAL: dict[str, Callable] = {
    "erf": functools.partial(one, "erf"),
    "erfc": functools.partial(one, "erfc"),
    "expit": expit,
}
SPECIAL |= {name: functools.partial(one, name) for name in ("cbrt", "exp2", "expm1", "log1p")}


def scalar_function(ufunc: Any) -> Callable:
    """The function of numbers that a ufunc of NumPy or scipy.special stands for."""
    name, found = ufunc.__name__, SCALARS.get(ufunc)
    special = sys.modules.get("scipy.special")
    if found is None and special is not None and getattr(special, name, None) is ufunc:
        found = SPECIAL.get(name)
    if found is None:
        raise Untraceable(f"calls {name}, which is not followed", "write it with +, *, math and np.where")
    return found


def apply(ufunc, method: str, inputs, options: dict):
    """What a ufunc does with nodes and arrays of them."""
    targets = [x for x in options.pop("out", None) or () if x is not None]
    if not has_nodes((*inputs, *targets, options.get("where"))):
        return of_constants(ufunc, method, inputs, targets, options)
    where = options.pop("where", True)
    dtype = options.pop("dtype", None)
    if dtype is not None and dtype_named(dtype) != np.float64:
        raise Untraceable("calculates in another precision", "calculate in double precision")
    options.pop("casting", None)
    result = METHODS.get(method, refuse_method)(ufunc, inputs, options)
    return result if not targets and where is True else write(result, targets, where)


def of_constants(ufunc, method: str, inputs, targets, options: dict):
    """A ufunc of captured arrays of numbers, among which there is no node."""
    if any(not x.flags.writeable for x in targets):
        raise Untraceable(WRITTEN, COPY)
    if targets:
        options["out"] = tuple(map(plain, targets))
    result = getattr(ufunc, method)(*map(plain, inputs), **options)
    return targets[0] if targets else as_captured(result)


def as_captured(result):
    """A result of NumPy that can be asked for the place of a node."""
    if isinstance(result, tuple | list):
        return type(result)(map(as_captured, result))
    return result.view(Array) if type(result) is np.ndarray and result.ndim else result


def write(result, targets: list, where):
    """Write a result to the argument `out`, where `where` holds."""
    if len(targets) != 1 or not isinstance(targets[0], Array) or not holds_objects(targets[0]):
        raise Untraceable(
            "writes numbers that depend on the state to an array of constants", "make `out` with np.zeros(n)"
        )
    target = targets[0]
    target[...] = result if where is True else elementwise(choose, where, result, target)
    return target


def call_method(ufunc, inputs, options: dict):
    refuse_options(ufunc, options)
    if ufunc is np.matmul:
        return matmul(*inputs)
    function = scalar_function(ufunc)
    if not any(isinstance(x, np.ndarray | list | tuple) for x in inputs):
        return function(*inputs)
    return elementwise(function, *inputs)


def reduce_method(ufunc, inputs, options: dict):
    return reduce(ufunc, *inputs, **{"axis": 0, **options})


def accumulate_method(ufunc, inputs, options: dict):
    (array,), axis = inputs, options.pop("axis", 0)
    refuse_options(ufunc, options)
    function, rows = scalar_function(ufunc), np.moveaxis(counted(ufunc, entries(array)), axis, 0)
    out = np.empty(rows.shape, dtype=object)
    for place, row in enumerate(rows):
        out[place] = row if place == 0 else entries(elementwise(function, out[place - 1], row))[()]
    return np.moveaxis(out, 0, axis).view(Array)


def outer_method(ufunc, inputs, options: dict):
    refuse_options(ufunc, options)
    a, b = map(entries, inputs)
    return elementwise(scalar_function(ufunc), a.reshape(a.shape + (1,) * b.ndim), b)


def refuse_method(ufunc, inputs, options: dict):
    raise Untraceable(f"calls a method of np.{ufunc.__name__} that is not followed", "write a loop")


METHODS = {"__call__": call_method, "reduce": reduce_method, "accumulate": accumulate_method, "outer": outer_method}


def refuse_options(function, options: dict):
    """Options that are set to something else than what NumPy takes by itself."""
    unknown = [name for name, value in options.items() if value is not None and value is not np._NoValue]
    if unknown:
        raise Untraceable(f"calls {function.__name__} with `{unknown[0]}`, which is not followed", "leave it out")


def counted(ufunc, array: np.ndarray) -> np.ndarray:
    """Truth values are added and multiplied as whole numbers."""
    if ufunc not in (np.add, np.multiply):
        return array
    return entries(elementwise(as_count, array)) if any(is_truth(x) for x in array.reshape(-1)[:1]) else array


def is_truth(x) -> bool:
    return x.kind == "b" if isinstance(x, Node) else isinstance(x, bool | np.bool_)


def as_count(x):
    return whole(x) if isinstance(x, Node) else int(x)


def reduce(ufunc, array, axis=None, keepdims=False, **options):
    """A reduction over one axis, some or all, in NumPy's order of summation."""
    options.pop("out", None)
    refuse_options(ufunc, options)
    items = counted(ufunc, entries(array))
    axes = tuple(range(items.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(k % items.ndim for k in axes)
    rest = [k for k in range(items.ndim) if k not in axes]
    table = items.transpose(*rest, *axes).reshape(*(items.shape[k] for k in rest), -1)
    last = items.ndim - 1 in axes  # NumPy adds along the last axis in pairs, along others row by row
    function = total if ufunc is np.add and last else functools.partial(fold, scalar_function(ufunc))
    rows = table.reshape(-1, table.shape[-1])
    result = packed([of_row(ufunc, function, row.tolist()) for row in rows], table.shape[:-1])
    return as_kept(result, items.ndim, axes) if keepdims is True else result


def of_row(ufunc, function, row: list):
    if not row and ufunc.identity is None:
        raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
    return function(row) if row else float(ufunc.identity)


def as_kept(result, ndim: int, axes: tuple):
    """A result whose reduced axes have the length one."""
    result = entries(result)
    for axis in sorted(axes):
        result = np.expand_dims(result, axis)
    return result.view(Array)


def fold(function, values):
    """function(function(a, b), c) and so on."""
    return functools.reduce(function, values)


def total(values: list):
    """A sum in NumPy's own order: eight partial sums from eight terms on, halves from 129 on."""
    n = len(values)
    if n < 8:
        return fold(functools.partial(two, "add"), values) if n else 0.0
    if n > 128:
        half = n // 2 - (n // 2) % 8
        return two("add", total(values[:half]), total(values[half:]))
    parts = values[:8]
    for start in range(8, n - n % 8, 8):
        parts = [two("add", a, b) for a, b in zip(parts, values[start : start + 8], strict=True)]
    while len(parts) > 1:
        parts = [two("add", a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return fold(functools.partial(two, "add"), [*parts, *values[n - n % 8 :]])


def product(row, column):
    """The sum of the products of two rows, term by term."""
    if len(row) != len(column):
        raise ValueError(f"matmul: mismatch in its core dimension (size {len(column)} is different from {len(row)})")
    terms = [two("mul", a, b) for a, b in zip(row, column, strict=True)]
    return fold(functools.partial(two, "add"), terms) if terms else 0.0


def matmul(a, b):
    """a @ b of vectors and matrices."""
    a, b = entries(a), entries(b)
    if not (1 <= a.ndim <= 2 and 1 <= b.ndim <= 2):
        raise Untraceable("multiplies stacks of matrices", "multiply them one at a time")
    rows = [a.tolist()] if a.ndim == 1 else a.tolist()
    columns = [b.tolist()] if b.ndim == 1 else b.T.tolist()
    shape = (a.shape[:1] if a.ndim == 2 else ()) + (b.shape[1:] if b.ndim == 2 else ())
    return packed([product(row, column) for row in rows for column in columns], shape)


def of_node(self, ufunc, method, *inputs, **options):
    """What a ufunc does with a node: NumPy asks for this method."""
    return apply(ufunc, method, inputs, options)


setattr(Node, "__array_ufunc__", of_node)  # noqa: B010 because a node knows nothing of arrays
