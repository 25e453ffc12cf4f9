"""diffrax: Dopri5, or another of its methods, with its default controller, jitted; ensembles by vmap."""

import numpy as np

NAME = "diffrax Dopri5"
MOST = 2**22  # attempts


def single(problem, rtol, atol, method="Dopri5"):
    jax, solve = solver(problem, rtol, atol, None, method)
    return compiled(jax, jax.jit(solve), problem.u0, np.asarray(problem.params))


def ensemble(problem, u0, params, rtol, atol, first_step):
    jax, solve = solver(problem, rtol, atol, first_step)
    return compiled(jax, jax.jit(jax.vmap(solve)), u0, params)


def sensitivities(problem, rtol, atol, method="Dopri5"):
    """Its steps, differentiated forward; their errors are not controlled."""
    jax, solve = solver(problem, rtol, atol, None, method, adjoint="ForwardMode")
    return compiled(jax, jax.jit(jax.jacfwd(solve, argnums=1)), problem.u0, np.asarray(problem.params))


def solver(problem, rtol, atol, first_step, method="Dopri5", adjoint="RecursiveCheckpointAdjoint"):
    import jax

    jax.config.update("jax_enable_x64", True)
    import diffrax
    import jax.numpy as jnp

    term = diffrax.ODETerm(lambda t, u, p: jnp.stack(problem.rhs(t, u, p)))
    controller = diffrax.PIDController(rtol=rtol, atol=atol)

    def solve(u0, params):
        solution = diffrax.diffeqsolve(
            term, getattr(diffrax, method)(), *problem.t_span, first_step, u0, params,
            saveat=diffrax.SaveAt(t1=True), stepsize_controller=controller, max_steps=MOST,
            adjoint=getattr(diffrax, adjoint)(),
        )  # fmt: skip
        return solution.ys[0]

    return jax, solve


def compiled(jax, function, *arguments):
    arrays = [jax.numpy.asarray(a, dtype=float) for a in arguments]
    ready = function.lower(*arrays).compile()
    return lambda: np.asarray(ready(*arrays))
