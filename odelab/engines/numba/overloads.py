"""Teaches numba the functions of `odelab.maths`, which a right-hand side may call."""

import functools

import numpy as np

from odelab import maths
from odelab.arrays import read_only
from odelab.engines.numba import blending

ELEMENTARY = {
    maths.exp: np.exp,
    maths.log: np.log,
    maths.sin: np.sin,
    maths.cos: np.cos,
    maths.tan: np.tan,
    maths.arctan: np.arctan,
    maths.sinh: np.sinh,
    maths.cosh: np.cosh,
    maths.tanh: np.tanh,
    maths.sqrt: np.sqrt,
    maths.abs: np.abs,
    maths.sign: np.sign,
}


@functools.cache
def register() -> frozenset:
    """Register the overloads once; returns the functions numba now knows."""
    from numba.core import types
    from numba.extending import intrinsic, overload

    def teach(function, numpy_function):
        @overload(function)
        def elementary(x):
            return lambda x: numpy_function(x)

    for function, numpy_function in ELEMENTARY.items():
        teach(function, numpy_function)

    def scalars(*kinds):
        return all(isinstance(kind, types.Number | types.Boolean) for kind in kinds)

    @overload(maths.maximum)
    def maximum(x, y):
        if scalars(x, y):  # a comparison turns into one vector instruction; NaN in either is passed on by the sum
            return lambda x, y: x if x > y else (y if y >= x else x + y)
        return lambda x, y: np.maximum(x, y)

    @overload(maths.minimum)
    def minimum(x, y):
        if scalars(x, y):
            return lambda x, y: x if x < y else (y if y <= x else x + y)
        return lambda x, y: np.minimum(x, y)

    @overload(maths.where)
    def where(condition, x, y):
        if scalars(condition, x, y):
            return lambda condition, x, y: x if condition else y
        return lambda condition, x, y: np.where(condition, x, y)

    @overload(np.clip)  # numba's own takes arrays alone
    def clip(a, a_min, a_max):
        if scalars(a, a_min, a_max):
            return lambda a, a_min, a_max: np.minimum(np.maximum(a, a_min), a_max)
        return None

    @intrinsic
    def lock(context, array):
        def same(context, builder, signature, values):
            context.nrt.incref(builder, signature.args[0], values[0])
            return values[0]

        return array.copy(readonly=True)(array), same

    @overload(read_only)
    def unwritable(u):
        return lambda u: lock(u)  # type: ignore[call-arg]

    stages = blending.register()
    return frozenset([*ELEMENTARY, maths.maximum, maths.minimum, maths.where, read_only, *stages])
