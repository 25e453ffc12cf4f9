"""heyoka: Taylor series of high order, compiled; ensembles in SIMD batches on one thread, a batch after the other.

It has one tolerance, rtol, and goes on to far smaller errors than asked for at little cost. Right-hand sides with
functions other than arithmetic are not its numbers' and not taken here.
"""

import numpy as np

NAME = "heyoka Taylor"


def system(problem):
    """The right-hand side on heyoka's expressions."""
    import heyoka

    names = heyoka.make_vars(*(f"u{i}" for i in range(problem.size)))
    params = tuple(heyoka.par[i] for i in range(len(problem.params)))
    return list(zip(names, problem.rhs(heyoka.time, tuple(names), params), strict=True))


def single(problem, rtol, atol):
    import heyoka

    (begin, end), start = problem.t_span, np.array(problem.u0, dtype=float)
    solver = heyoka.taylor_adaptive(system(problem), start, time=begin, tol=rtol, pars=list(problem.params))

    def call():
        solver.time, solver.state[:] = begin, start
        succeed(solver.propagate_until(end)[0])
        return solver.state.copy()

    return call


def ensemble(problem, u0, params, rtol, atol, first_step):
    """`first_step` is the library's own choice: it follows from the series."""
    import heyoka

    (begin, end), width = problem.t_span, heyoka.recommended_simd_size()
    u, p = batches(u0, width), batches(params, width)
    solver = heyoka.taylor_adaptive_batch(
        system(problem), u[0].copy(), time=np.full(width, begin), tol=rtol, pars=p[0].copy()
    )

    def call():
        ends = np.empty_like(u)
        for i in range(len(u)):
            solver.set_time(begin)
            solver.state[:], solver.pars[:] = u[i], p[i]
            solver.propagate_until(end)
            for outcome, *_ in solver.propagate_res:
                succeed(outcome)
            ends[i] = solver.state
        return ends.transpose(0, 2, 1).reshape(-1, u0.shape[1])[: len(u0)]

    return call


def batches(rows, width):
    """(N, n) as (batches, n, width), the last run repeated where the last batch is not full."""
    missing = -len(rows) % width
    whole = np.concatenate([rows, np.repeat(rows[-1:], missing, axis=0)]).astype(float)
    return np.ascontiguousarray(whole.reshape(-1, width, rows.shape[1]).transpose(0, 2, 1))


def succeed(outcome):
    import heyoka

    if outcome != heyoka.taylor_outcome.time_limit:
        raise RuntimeError(f"heyoka: {outcome}")
