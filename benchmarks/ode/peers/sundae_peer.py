"""scikit-sundae: CVODE of SUNDIALS called from Python, BDF with the problem's own Jacobian."""

import numpy as np

NAME = "scikit-sundae BDF"
MOST = 10**8  # steps


def single(problem, rtol, atol, method="BDF"):
    from sksundae.cvode import CVODE

    rhs, known, params = problem.rhs, problem.jacobian, problem.params

    def slope(t, u, out):
        out[:] = rhs(t, u, params)

    def jacobian(t, u, slope, out):
        out[:, :] = known(t, u, params)

    solver = CVODE(slope, method=method, rtol=rtol, atol=atol, linsolver="dense", jacfn=jacobian, max_num_steps=MOST)
    span = np.array(problem.t_span)

    def call():
        found = solver.solve(span, problem.u0.copy())
        if not found.success:
            raise RuntimeError(f"scikit-sundae: {found.message}")
        return found.y[-1]

    return call
