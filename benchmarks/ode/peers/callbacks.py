"""Right-hand sides in component form as C functions, for libraries that call those."""

import functools
from typing import Any

keep: list = []


@functools.cache
def slope_address(rhs, size: int, count: int, arguments: str, signature) -> int:
    """The address of `void slope(arguments)`, which numba compiles; never freed.

    rhs          in component form, of `size` components and `count` parameters
    arguments    the order in which the library hands t, u, du and p
    signature    numba's type of the function
    """
    import numba

    state, params = (f"({''.join(f'{name}[{i}], ' for i in range(n))})" for name, n in (("u", size), ("p", count)))
    targets = "".join(f"du[{i}], " for i in range(size))
    names = {"rhs": numba.njit(rhs)}
    exec(f"def slope({arguments}):\n    {targets}= rhs(t, {state}, {params})\n", names)
    function: Any = numba.cfunc(signature)(names["slope"])
    keep.append(function)
    return function.address
