"""Arrays of dual numbers in compiled code, for right-hand sides that fill an array by loops.

An array of the numba type `DualArray` holds numbers and, beside them, their derivatives along one direction. Its
entries are dual numbers of `odelab.engines.rosenbrock.duals`, which depend on one variable: how far one has gone along
that direction. It can be asked for its entries, one by one or in a loop over all of them, for a part of itself and for
its size, and a part of it can be filled with one number; any other use is refused by numba, as arithmetic of whole
arrays. The state cannot be written to.
"""

import functools
import operator
from typing import Any

INLINED: Any = {"forceinline": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


def kinds_of_arguments(parameters: int) -> tuple:
    """The types of (t, u, params, out) in a kernel that differentiates a right-hand side in in-place form."""
    from numba import types

    from odelab.engines.rosenbrock import duals

    register()
    params = types.UniTuple(types.float64, parameters)
    return duals.dual_type()((0,)), array_type()(False), params, array_type()(True)


@functools.cache
def array_type():
    """The class of numba types of arrays of dual numbers, which may be written to or not."""
    from numba import types
    from numba.extending import make_attribute_wrapper, models, register_model

    from odelab.engines.rosenbrock import duals

    number, array = duals.dual_type()((0,)), types.float64[::1]

    class DualArray(types.IterableType):
        def __init__(self, writable: bool):
            self.writable = writable
            super().__init__(name=f"odelab.DualArray({'slopes' if writable else 'state'})")

        @property
        def iterator_type(self):
            return Entries(self)

    class Entries(types.SimpleIteratorType):
        def __init__(self, kind):
            self.kind = kind
            super().__init__(f"odelab.Entries({kind})", number)

    @register_model(DualArray)
    class DualArrayModel(models.StructModel):
        def __init__(self, manager, kind):
            super().__init__(manager, kind, [("numbers", array), ("derivatives", array)])

    @register_model(Entries)
    class EntriesModel(models.StructModel):
        def __init__(self, manager, kind):
            super().__init__(manager, kind, [("place", types.EphemeralPointer(types.intp)), ("array", kind.kind)])

    for name in ("numbers", "derivatives"):
        make_attribute_wrapper(DualArray, name, name)
    iterate(DualArray, Entries)
    return DualArray


@functools.cache
def register() -> tuple:
    """Teach numba arrays of dual numbers, and their elementary functions.

    Returns functions for compiled code: state(numbers, direction) and slopes(numbers, derivatives), which make arrays,
    and moving(number, derivative), which makes a dual number.
    """
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic, overload, overload_attribute

    from odelab.engines.rosenbrock import dual_functions, duals

    dual_functions.register()
    number = duals.dual_type()((0,))
    array = types.float64[::1]
    value, derivative = duals.value(), duals.derivative()
    DualArray = array_type()

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

            def write(x, i, new):
                if i >= x.numbers.size or i < -x.numbers.size:
                    raise IndexError("index is out of bounds")
                x.numbers[i] = value(new)
                x.derivatives[i] = derivative(new, 0)

            return write
        if isinstance(x, DualArray) and x.writable and isinstance(i, types.SliceType) and filling(new):

            def fill(x, i, new):
                numbers, derivatives = x.numbers[i], x.derivatives[i]
                for place in range(numbers.size):
                    numbers[place], derivatives[place] = value(new), derivative(new, 0)

            return fill
        return None

    def filling(kind):
        return duals.is_real(kind) or kind == number

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


def iterate(DualArray, Entries):
    """Teach numba to go through the entries of an array of dual numbers, as `enumerate` and `zip` do."""
    from numba import types
    from numba.core import cgutils
    from numba.core.imputils import RefType, iternext_impl, lower_builtin

    from odelab.engines.rosenbrock import duals

    @lower_builtin("getiter", DualArray)
    def begin(context, builder, signature, values):
        (kind,) = signature.args
        context.nrt.incref(builder, kind, values[0])
        made = cgutils.create_struct_proxy(signature.return_type)(context, builder)
        made.array = values[0]
        made.place = cgutils.alloca_once_value(builder, context.get_constant(types.intp, 0))
        return made._getvalue()

    @lower_builtin("iternext", Entries)
    @iternext_impl(RefType.UNTRACKED)
    def following(context, builder, signature, values, result):
        (kind,) = signature.args
        entries = cgutils.create_struct_proxy(kind)(context, builder, value=values[0])
        pair = cgutils.create_struct_proxy(kind.kind)(context, builder, value=entries.array)
        columns = [
            cgutils.create_struct_proxy(types.float64[::1])(context, builder, value=one)
            for one in (pair.numbers, pair.derivatives)
        ]
        place = builder.load(entries.place)
        there = builder.icmp_signed("<", place, columns[0].nitems)
        result.set_valid(there)
        with builder.if_then(there):
            number, derivative = (builder.load(builder.gep(column.data, [place])) for column in columns)
            found = duals.put_together(context, builder, kind.yield_type, number, {0: derivative})
            result.yield_(found)
            builder.store(builder.add(place, context.get_constant(types.intp, 1)), entries.place)
