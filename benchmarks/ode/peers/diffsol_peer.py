"""pydiffsol: diffsol of Rust, on the right-hand side written in its own language and compiled by LLVM.

It differentiates that text itself, so that its implicit methods have an exact Jacobian; mass matrices are taken where
they are given by their diagonal.
"""

import numpy as np

NAME = "pydiffsol BDF"


def operation(operator, swapped=False):
    def written(self, other):
        left, right = (other, self) if swapped else (self, other)
        return Text(f"({left} {operator} {right})")

    return written


class Text(str):
    """A number that is written down: what arithmetic makes of names, in DiffSL."""

    __add__, __sub__, __mul__, __truediv__ = (operation(operator) for operator in "+-*/")
    __radd__, __rsub__, __rmul__, __rtruediv__ = (operation(operator, swapped=True) for operator in "+-*/")

    def __neg__(self):
        return Text(f"(-{self})")


def text_of(problem) -> str:
    """The problem in DiffSL: parameters are inputs, initial values are numbers."""
    names = tuple(Text(f"x{i}") for i in range(problem.size))
    params = tuple(Text(f"p{i}") for i in range(len(problem.params)))
    slope = ", ".join(map(str, problem.rhs(Text("t"), names, params)))
    start = ", ".join(f"{name} = {value!r}" for name, value in zip(names, np.asarray(problem.u0).tolist(), strict=True))
    inputs = ", ".join(f"{name} = {float(value)!r}" for name, value in zip(params, problem.params, strict=True))
    parts = [f"in_i {{ {inputs} }}" if inputs else "", f"u_i {{ {start} }}"]
    if problem.mass is not None:
        rates = ", ".join(f"d{name} = 0" for name in names)
        weighed = ", ".join(f"{m!r} * d{name}" for m, name in zip(problem.mass.tolist(), names, strict=True))
        parts += [f"dudt_i {{ {rates} }}", f"M_i {{ {weighed} }}"]
    return "\n".join([*parts, f"F_i {{ {slope} }}"])


def single(problem, rtol, atol, method="bdf"):
    solver, *arguments = made(problem, rtol, atol, method)
    return lambda: solver.solve_dense(*arguments).ys[:, -1]


def sensitivities(problem, rtol, atol, method="bdf"):
    """Forward, by columns whose errors are controlled, too."""
    solver, *arguments = made(problem, rtol, atol, method)
    solver.sens_rtol, solver.sens_atol = rtol, atol
    return lambda: np.stack([column[:, -1] for column in solver.solve_fwd_sens(*arguments).sens], axis=1)


def made(problem, rtol, atol, method):
    """(A solver, the parameters, the time to solve to.)"""
    import pydiffsol

    solver = pydiffsol.Ode(
        text_of(problem), matrix_type=pydiffsol.nalgebra_dense, ode_solver=getattr(pydiffsol, method)
    )
    solver.rtol, solver.atol = rtol, atol
    return solver, np.array(problem.params, dtype=float), np.array(problem.t_span[1:], dtype=float)
