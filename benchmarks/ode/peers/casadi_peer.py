"""CasADi: CVODES, on expressions that it differentiates itself, run by its virtual machine.

Sensitivities are those that CVODES computes along with a run."""

import numpy as np

NAME = "casadi CVODES"
MOST = 10**8  # steps


def integrator(problem, rtol, atol, method):
    import casadi

    t, u = casadi.SX.sym("t"), casadi.SX.sym("u", problem.size)
    p = casadi.SX.sym("p", len(problem.params))
    slope = casadi.vertcat(*problem.rhs(t, tuple(casadi.vertsplit(u)), tuple(casadi.vertsplit(p))))
    options = {"reltol": rtol, "abstol": atol, "max_num_steps": MOST, "linear_multistep_method": method}
    begin, end = problem.t_span
    return casadi.integrator("run", "cvodes", {"t": t, "x": u, "p": p, "ode": slope}, begin, [end], options)


def single(problem, rtol, atol, method="bdf"):
    run = integrator(problem, rtol, atol, method)
    return lambda: np.array(run(x0=problem.u0, p=problem.params)["xf"]).ravel()


def sensitivities(problem, rtol, atol, method="bdf"):
    run = integrator(problem, rtol, atol, method).factory("columns", ["x0", "p"], ["jac:xf:p"])
    return lambda: np.array(run(problem.u0, problem.params))
