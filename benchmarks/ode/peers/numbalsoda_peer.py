"""numbalsoda: Fortran's dop853 and C++'s lsoda called from compiled code; ensembles by a loop inside it."""

import functools
from typing import Any

import numpy as np

NAME = "numbalsoda dop853"
MOST = 10**8  # steps


def single(problem, rtol, atol, method="dop853"):
    run = ensemble(problem, problem.u0[None], np.array([problem.params]), rtol, atol, None, method)
    return lambda: run()[0]


def ensemble(problem, u0, params, rtol, atol, first_step, method="dop853"):
    """`first_step` is the library's own choice: it takes none."""
    import numba
    import numbalsoda

    address = slope_address(problem.rhs, u0.shape[1], params.shape[1])
    solve = getattr(numbalsoda, method)

    @numba.njit
    def loop(u0, params, times):
        ends = np.empty_like(u0)
        fine = True
        for i in range(len(u0)):
            states, success = solve(address, u0[i], times, params[i], rtol=rtol, atol=atol, mxstep=MOST)
            ends[i] = states[-1]
            fine = fine and success
        return ends, fine

    start, p = np.ascontiguousarray(u0, dtype=float), np.ascontiguousarray(params, dtype=float)
    times = np.array(problem.t_span)
    loop(start[:1], p[:1], times)

    def call():
        ends, fine = loop(start, p, times)
        if not fine:
            raise RuntimeError(f"numbalsoda's {method} reports failure")
        return ends

    return call


@functools.cache
def slope_address(rhs, size: int, count: int) -> int:
    """rhs in component form as the C function void(t, u*, du*, p*) that the library calls; never freed."""
    import numba
    import numbalsoda

    inner = numba.njit(rhs)
    state, params = (f"({''.join(f'{name}[{i}], ' for i in range(n))})" for name, n in (("u", size), ("p", count)))
    targets = "".join(f"du[{i}], " for i in range(size))
    names = {"rhs": inner}
    exec(f"def slope(t, u, du, p):\n    {targets}= rhs(t, {state}, {params})\n", names)
    function: Any = numba.cfunc(numbalsoda.lsoda_sig)(names["slope"])
    keep.append(function)
    return function.address


keep: list = []
