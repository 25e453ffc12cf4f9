"""One counter for several threads: the queue that lanes take their trajectories from."""

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def fetch_add(typing_context, counter, step):
    """counter[0] += step in one indivisible operation; returns what it was before."""
    if not (isinstance(counter, types.Array) and counter.dtype == types.int64):
        raise TypeError("`counter` must be an array of int64")

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = cgutils.gep_inbounds(builder, array.data, 0)
        step = context.cast(builder, arguments[1], signature.args[1], types.int64)
        return builder.atomic_rmw("add", pointer, step, "monotonic")

    return types.int64(counter, step), generate
