"""Arrays of dual numbers in compiled code, for right-hand sides that fill an array by loops.

An array of the numba type `DualArray` holds numbers and, beside them, their derivatives along one direction. Its
entries are dual numbers of `odelab.engines.rosenbrock.duals`, which depend on one variable: how far one has gone along
that direction. It can be asked for its entries, for a part of itself and for its size; any other use is refused by
numba. The state cannot be written to.
"""

import functools
import operator
from typing import Any

INLINED: Any = {"forceinline": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


@functools.cache
def register() -> tuple:
    """Teach numba arrays of dual numbers, and their elementary functions.

    Returns functions for compiled code: state(numbers, direction) and slopes(numbers, derivatives), which make arrays,
    and moving(number, derivative), which makes a dual number.
    """
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic, make_attribute_wrapper, models, overload, overload_attribute, register_model

    from odelab.engines.rosenbrock import dual_functions, duals

    dual_functions.register()
    number = duals.dual_type()((0,))
    array = types.float64[::1]
    value, derivative = duals.value(), duals.derivative()

    class DualArray(types.Type):
        def __init__(self, writable: bool):
            self.writable = writable
            super().__init__(name=f"odelab.DualArray({'slopes' if writable else 'state'})")

    @register_model(DualArray)
    class DualArrayModel(models.StructModel):
        def __init__(self, manager, kind):
            super().__init__(manager, kind, [("numbers", array), ("derivatives", array)])

    for name in ("numbers", "derivatives"):
        make_attribute_wrapper(DualArray, name, name)

    def maker(kind):
        @intrinsic
        def make(context, numbers, derivatives):
            def build(context, builder, signature, values):
                made = cgutils.create_struct_proxy(kind)(context, builder)
                made.numbers, made.derivatives = values
                for one in values:
                    context.nrt.incref(builder, array, one)
                return made._getvalue()

            return kind(array, array), build

        return make

    make_state, make_slopes = maker(DualArray(False)), maker(DualArray(True))

    @intrinsic
    def moving(context, x, change):
        def build(context, builder, signature, values):
            return duals.put_together(context, builder, number, values[0], {0: values[1]})

        return number(types.float64, types.float64), build

    @overload(operator.getitem, jit_options=INLINED)
    def entry(x, i):
        if isinstance(x, DualArray) and isinstance(i, types.Integer):

            def found(x, i):
                if i >= x.numbers.size or i < -x.numbers.size:
                    raise IndexError("index is out of bounds")
                return moving(x.numbers[i], x.derivatives[i])  # type: ignore[call-arg]

            return found
        if isinstance(x, DualArray) and isinstance(i, types.SliceType) and not i.has_step:  # its arrays are contiguous
            make = make_slopes if x.writable else make_state
            return lambda x, i: make(x.numbers[i], x.derivatives[i])
        return None

    @overload(operator.setitem, jit_options=INLINED)
    def store(x, i, new):
        if isinstance(x, DualArray) and x.writable and isinstance(i, types.Integer):

            def stored(x, i, new):
                if i >= x.numbers.size or i < -x.numbers.size:
                    raise IndexError("index is out of bounds")
                x.numbers[i] = value(new)
                x.derivatives[i] = derivative(new, 0)

            return stored
        return None

    @overload(len, jit_options=INLINED)
    def length(x):
        return (lambda x: len(x.numbers)) if isinstance(x, DualArray) else None

    @overload_attribute(DualArray, "size")
    def size(x):
        return lambda x: x.numbers.size

    @overload_attribute(DualArray, "shape")
    def shape(x):
        return lambda x: x.numbers.shape

    return make_state, make_slopes, moving
