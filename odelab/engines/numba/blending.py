"""A stage of a stabilised method, where the compiled right-hand side's own loop computes the next state.

A stage of RKC2 evaluates the right-hand side and then forms a weighted sum of five arrays. Two loops for this go
through seven arrays and write two of them, and a large system spends its time waiting for memory. Here the right-hand
side gets a `Sink` as its argument `out`: an object that takes each stored slope and writes the weighted sum instead.
One loop then goes through six arrays and writes one. A right-hand side that also reads `out`, or fills it by a NumPy
function, cannot use a `Sink`; its slope is stored in an array first. A component may be stored twice, because the next
state has an array of its own, which the sum does not read.
"""

import functools
import operator
from typing import Any

import numpy as np

from odelab.engines.numba import OPTIONS
from odelab.methods import chebyshev

ARRAYS, WEIGHTS = ("newer", "u", "inner", "older", "slope"), ("a", "b", "c", "d", "e")
LINE = 8  # numbers in a cache line of 64 bytes
INLINED: Any = {"forceinline": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


@functools.cache
def compiled_sum():
    """`chebyshev.weighted_sum` for the loops of a stage."""
    from numba import njit

    return njit(**INLINED)(chebyshev.weighted_sum)


@functools.cache
def register() -> tuple:
    """Teach numba the helpers of `chebyshev.chebyshev_step`, for any right-hand side that returns an array."""
    from numba import types
    from numba.extending import intrinsic, overload

    weighted_sum = compiled_sum()

    @intrinsic
    def address(context, array):  # numba does not cache code that uses `array.ctypes.data`
        def found(context, builder, signature, values):
            data = context.make_array(array)(context, builder, values[0]).data
            return builder.ptrtoint(data, context.get_value_type(types.intp))

        return types.intp(array), found

    @overload(chebyshev.first_states)
    def first_states(u, weight, slope):
        def made(u, weight, slope):
            older, inner, spare = beside_lines(u.size), beside_lines(u.size), beside_lines(u.size)
            for i in range(u.size):
                # 0.0 * slope is NaN where the right-hand side has not set a component. Every array in use then holds
                # this NaN, so that the last stage shows it, however many stages there are.
                older[i] = spare[i] = u[i] + 0.0 * slope[i]
                inner[i] = u[i] + weight * slope[i]
            return older, inner, spare

        return made

    @overload(chebyshev.next_state)
    def next_state(rhs, params, time, a, u, b, inner, c, older, d, e, slope, spare):
        def two_passes(rhs, params, time, a, u, b, inner, c, older, d, e, slope, spare):
            inner_slope = rhs(time, inner, params)
            for i in range(u.size):
                spare[i] = weighted_sum(a, u[i], b, inner[i], c, older[i], d, inner_slope[i], e, slope[i])
            return spare

        return two_passes

    @overload(beside_lines)
    def place_array(n):
        def empty(n):
            block = np.empty(n + 2 * LINE)
            first = (-(address(block) // 8) - 1) % LINE  # type: ignore[call-arg]
            return block[first : first + n]

        return empty

    return chebyshev.first_states, chebyshev.next_state, beside_lines


def beside_lines(n):
    """An empty array whose second number begins a cache line, because loops over the inside of a grid begin there."""
    raise NotImplementedError("compiled code only")


@functools.cache
def sink():
    """(numba type, function that makes one) of an `out` that writes a weighted sum in place of each stored slope."""
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic, make_attribute_wrapper, models, overload, overload_attribute, register_model

    array, number = types.float64[::1], types.float64
    weighted_sum = compiled_sum()
    fields = [*((name, array) for name in ARRAYS), *((name, number) for name in WEIGHTS)]

    class Sink(types.Type):
        def __init__(self):
            super().__init__(name="odelab.Sink")

    kind = Sink()

    @register_model(Sink)
    class SinkModel(models.StructModel):
        def __init__(self, manager, described):
            super().__init__(manager, described, fields)

    for name, _ in fields:
        make_attribute_wrapper(Sink, name, name)

    @intrinsic
    def make(context, newer, u, inner, older, slope, a, b, c, d, e):
        def build(context, builder, signature, values):
            made = cgutils.create_struct_proxy(kind)(context, builder)
            for (name, field), value in zip(fields, values, strict=True):
                setattr(made, name, value)
                if field is array:
                    context.nrt.incref(builder, array, value)
            return made._getvalue()

        return kind(*(field for _, field in fields)), build

    @overload(operator.setitem, jit_options=INLINED)
    def store(out, i, value):
        if isinstance(out, Sink) and isinstance(i, types.Integer):

            def blend(out, i, value):
                if i >= out.newer.size or i < -out.newer.size:
                    raise IndexError("index is out of bounds")
                out.newer[i] = weighted_sum(
                    out.a, out.u[i], out.b, out.inner[i], out.c, out.older[i], out.d, value, out.e, out.slope[i]
                )

            return blend

    @overload(operator.getitem, jit_options=INLINED)
    def part(out, i):
        if isinstance(out, Sink) and isinstance(i, types.SliceType) and not i.has_step:  # its arrays are contiguous

            def slice_all(out, i):
                return make(  # type: ignore[call-arg]
                    out.newer[i], out.u[i], out.inner[i], out.older[i], out.slope[i], out.a, out.b, out.c, out.d, out.e
                )

            return slice_all

    @overload(len, jit_options=INLINED)
    def length(out):
        if isinstance(out, Sink):
            return lambda out: len(out.newer)

    @overload_attribute(Sink, "size")
    def size(out):
        return lambda out: out.newer.size

    @overload_attribute(Sink, "shape")
    def shape(out):
        return lambda out: out.newer.shape

    return kind, make


def blend_into(rhs, params, time, a, u, b, inner, c, older, d, e, slope, spare):
    """`chebyshev.next_state` for a right-hand side in in-place form."""
    raise NotImplementedError("compiled code only")


@functools.cache
def register_fused():
    """Teach numba `blend_into`."""
    from numba import types
    from numba.extending import overload

    weighted_sum = compiled_sum()
    kind, make = sink()

    @overload(blend_into, jit_options=INLINED)
    def blend(rhs, params, time, a, u, b, inner, c, older, d, e, slope, spare):
        def one_pass(rhs, params, time, a, u, b, inner, c, older, d, e, slope, spare):
            rhs(time, inner, params, make(spare, u, inner, older, slope, a, b, c, d, e))
            return spare

        def two_passes(rhs, params, time, a, u, b, inner, c, older, d, e, slope, spare):
            inner_slope = beside_lines(u.size)
            rhs(time, inner, params, inner_slope)
            for i in range(u.size):
                spare[i] = weighted_sum(a, u[i], b, inner[i], c, older[i], d, inner_slope[i], e, slope[i])
            return spare

        try:
            rhs.dispatcher.compile((types.float64, inner, params, kind))
        except Exception:  # it does not only store into `out`; numba raises several types of errors for that
            return two_passes
        return one_pass


def build_in(rhs):
    """`chebyshev.next_state` with a compiled right-hand side in in-place form built in."""
    from numba import njit

    register_fused()

    @njit(**{**OPTIONS, "forceinline": True, "fastmath": {"contract"}})
    def next_state(slope_of, params, time, a, u, b, inner, c, older, d, e, slope, spare):
        return blend_into(rhs, params, time, a, u, b, inner, c, older, d, e, slope, spare)

    return next_state
