"""numbalsoda: Fortran's dop853 and C++'s lsoda called from compiled code; ensembles by a loop inside it."""

import numpy as np

from benchmarks.ode.peers.callbacks import slope_address

NAME = "numbalsoda dop853"
MOST = 10**8  # steps


def single(problem, rtol, atol, method="dop853"):
    run = ensemble(problem, problem.u0[None], np.array([problem.params]), rtol, atol, None, method)
    return lambda: run()[0]


def ensemble(problem, u0, params, rtol, atol, first_step, method="dop853"):
    """`first_step` is the library's own choice: it takes none."""
    import numba
    import numbalsoda

    sizes = u0.shape[1], params.shape[1]
    address = slope_address(problem.rhs, *sizes, "t, u, du, p", numbalsoda.lsoda_sig)
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
