"""The Jacobian of a right-hand side, and the maps v -> J v and w -> J' w, each by one of four ways.

"analytic" is the problem's own; "torch" differentiates automatically; "complex" steps into the imaginary direction
(exact to rounding, analytic functions only); "central" differences need nothing but values. "auto" takes the first of
analytic, torch (for a tensor state) and central that applies. Of a problem with a mass matrix it is that of the
right-hand side; `reduced_jacobian` divides by the mass.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab.arrays import library_of, read_only, to_numpy
from odelab.linear.algebraic import Pencil, consistent
from odelab.problem import Problem
from odelab.right_hand_side import matrix_of, takes_out
from odelab.stiffness import differences

__all__ = ["WAYS", "jacobian", "jvp", "reduced_jacobian", "vjp"]

WAYS = ("auto", "analytic", "central", "complex", "torch")


class Point(NamedTuple):
    """A right-hand side at one time and state, and the way to differentiate it."""

    rhs: Callable
    given: Callable | None  # the problem's own Jacobian
    t: Any
    u: Any
    params: Any
    how: str

    def slope(self, u):
        """The right-hand side as an array of the state's own kind: real, complex, or a tensor."""
        if takes_out(self.rhs):
            out = library_of(u).zeros_like(u)
            self.rhs(self.t, read_only(u), self.params, out)
            return out
        answer = self.rhs(self.t, read_only(u), self.params)
        library = library_of(u)
        if library is np:
            return np.asarray(answer)
        if isinstance(answer, tuple | list):
            return library.stack([library.as_tensor(c, dtype=u.dtype, device=u.device) for c in answer])
        return answer


def jacobian(problem, t=None, u=None, params=None, how: str = "auto"):
    """The Jacobian df/du of a right-hand side at one time and state.

    problem  a Problem, or a function rhs(t, u, params) in any of the forms that a Problem takes
    t        the time; by default the start of the problem's span
    u        the state, (n,), an array or a tensor; by default the problem's initial state
    params   the parameters; by default those of the problem
    how      "analytic", the problem's own `jacobian`; "central", differences of values, right to about ten digits;
             "complex", steps in the imaginary direction, exact to rounding but for analytic functions only; "torch",
             automatic differentiation; or "auto", the first of analytic, torch (for a tensor) and central that applies

    Returns (n, n): an array, a tensor for a tensor state, or what the problem's own Jacobian returns, which may be
    sparse. Raises ValueError where a derivative is not finite.

    >>> import odelab as ol
    >>> problem = ol.problems.van_der_pol(mu=5.0)
    >>> ol.jacobian(problem, u=[2.0, 0.0])
    array([[  0.,   1.],
           [ -1., -15.]])
    """
    point = _point(problem, t, u, params, how)
    if point.how == "analytic":
        return _own(point)
    if point.how == "torch":
        import torch

        state = _tensor(torch, point.u)
        J = _finite(_differentiate(lambda: torch.func.jacrev(point.slope)(state)), point)
        return J if library_of(point.u) is torch else to_numpy(J)
    way = {"central": differences.central, "complex": differences.complex_step}[point.how]
    with np.errstate(all="ignore"):  # a result that is not finite raises below, with its place
        return _finite(way(point.slope, point.u), point)


def reduced_jacobian(problem: Problem, t: float | None = None, u: Any = None) -> Any:
    """The Jacobian of the ODE that a problem M u' = f(t, u) is, on the states that satisfy its algebraic equations.

    Its eigenvalues are the finite eigenvalues of the pencil (J, M): det(J - lambda M) = 0. With a regular M it is
    M^-1 J, (n, n). With r derivatives left it is (r, r), in orthonormal coordinates of the directions in which the
    state may move, N' J du = 0: `odelab.si`, `odelab.spectrum`, `odelab.log_norm` (the 2-norm) and `odelab.soderlind`
    do not depend on the choice of these, the other logarithmic norms do.

    problem    a Problem; without a mass matrix it is `odelab.jacobian`
    t, u       the time and the state (n,); by default the start of the problem, made consistent

    Returns the matrix, dense with a mass matrix. Raises ValueError where the index is above 1.

    >>> import odelab as ol
    >>> ol.reduced_jacobian(ol.problems.robertson_dae()).shape
    (2, 2)
    """
    t = problem.t_span[0] if t is None else t
    u = consistent(problem).u if u is None else np.asarray(u, dtype=float)
    if problem.mass is None:
        return jacobian(problem, t, u)
    with np.errstate(all="ignore"):
        pencil = Pencil(problem)
        return pencil.reduced(pencil.derivatives(t, u)[1])


def jvp(problem, t=None, u=None, params=None, how: str = "auto") -> Callable:
    """The map v -> J v at (t, u), without forming J (except "analytic", which has it); one vector at a time."""
    point = _point(problem, t, u, params, how)
    if point.how == "analytic":
        J = _own(point)
        return lambda v: J @ v
    if point.how == "torch":
        return _torch_product(point, forward=True)
    product = {"central": differences.central_product, "complex": differences.complex_product}[point.how]
    return lambda v: product(point.slope, point.u, np.asarray(v, dtype=float))


def vjp(problem, t=None, u=None, params=None, how: str = "auto") -> Callable:
    """The map w -> J' w at (t, u); differences cannot give it without forming J."""
    point = _point(problem, t, u, params, how)
    if point.how == "torch":
        return _torch_product(point, forward=False)
    J = _own(point) if point.how == "analytic" else jacobian(problem, t, u, params, point.how)
    return lambda w: J.T @ w


def _point(problem, t, u, params, how) -> Point:
    if how not in WAYS:
        raise ValueError(f"`how` must be one of {WAYS}, got {how!r}.")
    given = None
    rhs = problem
    if isinstance(problem, Problem):
        rhs, given = problem.rhs, problem.jacobian
        t = problem.t_span[0] if t is None else t
        u = problem.u0 if u is None else problem.state_of(u) if library_of(u) is np else u
        params = problem.params if params is None else params
    elif not callable(problem):
        raise TypeError(f"`problem` must be a Problem or a function rhs(t, u, params), got {problem!r}.")
    if np.ndim(t if library_of(t) is np else to_numpy(t)) != 0 or isinstance(t, str):
        raise TypeError(f"`t` must be one time, got {t!r}; the order is jacobian(problem, t, u).")
    if u is None:
        raise TypeError("`u` is missing: a function, unlike a Problem, has no start to differentiate at.")
    tensor = library_of(u) is not np
    u = u if tensor else np.asarray(u, dtype=float)
    if u.ndim != 1 or len(u) == 0:
        raise ValueError(f"`u` must be one state, (n,), got shape {tuple(u.shape)}; differentiate a batch one by one.")
    if not bool(library_of(u).isfinite(u).all()):
        raise ValueError(f"`u` must be finite, got {u}.")
    if how == "auto":
        how = "torch" if tensor else "analytic" if given is not None else "central"
    if tensor and how != "torch":
        raise ValueError(f"`how={how!r}` works on NumPy states, but `u` is a tensor; use how='torch' or u.numpy().")
    if how == "analytic" and given is None:
        raise ValueError("`how='analytic'` needs the problem's own `jacobian`, and it has none; use how='central'.")
    return Point(rhs, given, 0.0 if t is None else t, u, () if params is None else params, how)


def _own(point: Point):
    assert point.given is not None  # `_point` has checked that the problem has a Jacobian
    return matrix_of(point.given, point.t, point.u, point.params)


def _finite(J, point: Point):
    finite = np.isfinite(to_numpy(J))
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise ValueError(
            f"`u` has no finite derivative of component {row} with respect to component {column} at t = {point.t}: "
            f"the right-hand side is not smooth, or not defined, at {point.u[column]}."
        )
    return J


def _torch_product(point: Point, forward: bool) -> Callable:
    """J v (or J' v) by automatic differentiation; the answer is of the kind that the vector was."""
    import torch

    state = _tensor(torch, point.u)

    def product(v):
        vector = _tensor(torch, v).to(state)
        if forward:
            answer = _differentiate(lambda: torch.func.jvp(point.slope, (state,), (vector,))[1])
        else:
            answer = _differentiate(lambda: torch.func.vjp(point.slope, state)[1](vector)[0])
        return answer if isinstance(v, torch.Tensor) else to_numpy(answer)

    return product


def _tensor(torch, value):
    return value if isinstance(value, torch.Tensor) else torch.from_numpy(np.array(value))  # a copy: it may be locked


def _differentiate(compute: Callable):
    try:
        with warnings.catch_warnings():  # torch's own forward mode still calls its deprecated torch.jit.script
            warnings.filterwarnings("ignore", category=DeprecationWarning, module="torch")
            return compute()
    except (TypeError, RuntimeError) as error:
        raise TypeError(
            f"`how='torch'` could not follow the right-hand side ({error}); write it with + - * / and `odelab.maths`, "
            f"or use how='central'."
        ) from error
