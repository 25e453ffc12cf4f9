"""scikit-sundae: SUNDIALS called from Python, BDF: CVODE with the problem's own Jacobian, IDA where there is a mass
matrix, given by its diagonal."""

import numpy as np

NAME = "scikit-sundae BDF"
MOST = 10**8  # steps


def single(problem, rtol, atol, method="BDF"):
    if problem.mass is not None:
        return algebraic(problem, rtol, atol)
    from sksundae.cvode import CVODE

    rhs, known, params = problem.rhs, problem.jacobian, problem.params

    def slope(t, u, out):
        out[:] = rhs(t, u, params)

    def jacobian(t, u, slope, out):
        out[:, :] = known(t, u, params)

    solver = CVODE(slope, method=method, rtol=rtol, atol=atol, linsolver="dense", jacfn=jacobian, max_num_steps=MOST)
    return calling(solver, problem)


def algebraic(problem, rtol, atol):
    """IDA, from the problem's start, which is to satisfy its algebraic equations."""
    from sksundae.ida import IDA

    rhs, known, params, mass = problem.rhs, problem.jacobian, problem.params, problem.mass

    def residual(t, u, rate, out):
        out[:] = mass * rate - np.array(rhs(t, u, params))

    def jacobian(t, u, rate, residual, factor, out):
        out[:, :] = factor * np.diag(mass) - known(t, u, params)

    solver = IDA(
        residual, rtol=rtol, atol=atol, linsolver="dense", jacfn=jacobian, max_num_steps=MOST,
        algebraic_idx=np.flatnonzero(mass == 0.0).tolist(),
    )  # fmt: skip
    rate = np.where(mass == 0.0, 0.0, problem.slope(problem.t_span[0], problem.u0)) / np.where(mass == 0.0, 1.0, mass)
    return calling(solver, problem, rate)


def calling(solver, problem, *more):
    span = np.array(problem.t_span)

    def call():
        found = solver.solve(span, problem.u0.copy(), *(row.copy() for row in more))
        if not found.success:
            raise RuntimeError(f"scikit-sundae: {found.message}")
        return found.y[-1]

    return call
