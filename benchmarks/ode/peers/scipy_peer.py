"""SciPy's solve_ivp: RK45 for single runs and, one after another, for ensembles; implicit methods for stiff and large
systems."""

import numpy as np

NAME = "scipy RK45"


def single(problem, rtol, atol, method="RK45"):
    """Implicit methods are told the problem's own Jacobian."""
    known = {} if method == "RK45" else {"jac": problem.jacobian}
    return solver(problem.rhs, problem, rtol, atol, method=method, **known)


def sparse_bdf(problem, rtol, atol, told):
    """BDF with the problem's sparse Jacobian or its pattern alone, the right-hand side in whole-array NumPy."""
    known = {"jac": problem.jacobian}
    if told == "jac_sparsity":
        known = {"jac_sparsity": problem.jacobian(problem.t_span[0], problem.u0, problem.params) != 0}
    return solver(problem.rhs.array_form, problem, rtol, atol, method="BDF", **known)


def ensemble(problem, u0, params, rtol, atol, first_step):
    """A loop: SciPy has no other way."""
    single = [
        solver(problem.rhs, problem.replace(u0=u, params=tuple(p)), rtol, atol, method="RK45", first_step=first_step)
        for u, p in zip(u0, params, strict=True)
    ]
    return lambda: np.array([run() for run in single])


def sensitivities(problem, rtol, atol, method="RK45"):
    """Differences of runs, whose increments are the root of the tolerance: half of a run's digits are left."""
    params = np.array(problem.params, dtype=float)
    increments = np.sqrt(rtol) * np.abs(params)
    moved = [problem.replace(params=tuple(row)) for row in params + np.vstack([0.0 * params, np.diag(increments)])]
    runs = [single(one, rtol, atol, method) for one in moved]

    def call():
        end, *ends = (run() for run in runs)
        return np.transpose(ends - end) / increments

    return call


def solver(slope, problem, rtol, atol, **options):
    from scipy.integrate import solve_ivp

    def call():
        solution = solve_ivp(slope, problem.t_span, problem.u0, rtol=rtol, atol=atol, args=(problem.params,), **options)
        if solution.status != 0:
            raise RuntimeError(solution.message)
        return solution.y[:, -1]

    return call
