"""CyRK: its C++ solvers called from compiled code, on a right-hand side that numba compiles; ensembles by a loop."""

import numpy as np

from benchmarks.ode.peers.callbacks import slope_address

NAME = "CyRK RK45"


def single(problem, rtol, atol, method="RK45"):
    """Implicit methods find their Jacobian by differences: the library takes none."""
    run = ensemble(problem, problem.u0[None], np.array([problem.params], dtype=float), rtol, atol, None, method)
    return lambda: run()[0]


def ensemble(problem, u0, params, rtol, atol, first_step, method="RK45"):
    import numba
    from CyRK import nbsolve2_ivp
    from CyRK.nb.numba_solver import cyjit_sig

    address = slope_address(problem.rhs, u0.shape[1], params.shape[1], "du, t, u, p", cyjit_sig)
    first = first_step or 0.0

    @numba.njit
    def loop(u0, params, span):
        ends = np.empty_like(u0)
        fine = True
        for i in range(len(u0)):
            found = nbsolve2_ivp(
                address, span, u0[i], method=method, args=params[i], rtol=rtol, atol=atol, first_step=first
            )
            ends[i] = found.y[:, -1]
            fine = fine and found.success
            found.free()
        return ends, fine

    start, p = np.ascontiguousarray(u0, dtype=float), np.ascontiguousarray(params, dtype=float)
    span = (float(problem.t_span[0]), float(problem.t_span[1]))
    loop(start[:1], p[:1], span)

    def call():
        ends, fine = loop(start, p, span)
        if not fine:
            raise RuntimeError(f"CyRK's {method} reports failure")
        return ends

    return call
