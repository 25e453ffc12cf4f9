"""Problems M u' = f(t, u) with a singular M: states that satisfy their algebraic equations, and slopes there.

With N' M = 0 and M Z = 0, the algebraic equations are N' f(t, u) = 0. They determine the components of u in the
directions Z, and the index is 1, where N' J Z is regular (Hairer and Wanner, Solving ODEs II, VI.1).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from odelab.linear.linearisation import Linearisation
from odelab.mass import SINGULAR, Inverse
from odelab.problem import Problem, array_form

DOUBTFUL = 1e6  # the same as SINGULAR where J is found by differences, whose errors hide a singular matrix
ITERATIONS, HALVINGS = 200, 12
SOLVED = 1e-13  # the last change of Newton's method, over the state
STAGNANT = 1e-8  # the same where it shrinks no more
SMALL = 1e-3  # of the largest component: a change in smaller ones is compared with this
FEW = 3  # components that a message names


class ConsistentStart(NamedTuple):
    """A state that satisfies the algebraic equations of a problem, as `odelab.consistent` returns it.

    u            the state (n,)
    condition    of the derivative of the algebraic equations with respect to the unknowns that have no derivative, with
                 rows and columns scaled by powers of two; 1 where there are no algebraic equations
    """

    u: np.ndarray
    condition: float


def start_in_words(problem: Problem, found: ConsistentStart) -> str:
    """How many algebraic equations there are, of what condition, and what of `u0` was moved to satisfy them."""
    equations = problem.mass_matrix.equations
    if not equations:
        return "M is regular: no algebraic equations"
    said = f"{equations} algebraic equation{'s' * (equations > 1)} (index 1, condition {found.condition:.2g})"
    sizes = np.abs(found.u - problem.u0)
    moved = int((sizes > 0.0).sum())
    if not moved:
        return said
    names = [f"u0[{i}] moved by {sizes[i]:.3g}" for i in np.argsort(-sizes)[: min(moved, FEW)]]
    names += [f"{moved - FEW} others by no more"] if moved > FEW else []
    return f"{said}; {', '.join(names)} to satisfy the algebraic equations"


class Pencil:
    """A problem M u' = f(t, u) linearised: its algebraic equations and its slopes, at any state.

    problem    a Problem with a mass matrix
    """

    def __init__(self, problem: Problem):
        self.problem, self.rhs = problem, array_form(problem)
        self.linear = Linearisation(problem, self.rhs)
        self.left, self.right, self.particular = problem.mass_matrix.parts

    def derivatives(self, t, u):
        """(f, J, df/dt) at a state."""
        slope = np.array(self.rhs(t, u, self.problem.params), dtype=float)
        return slope, *self.linear.derivatives(t, u, slope)

    def algebraic(self, J) -> Inverse:
        """The inverse of N' J Z."""
        return Inverse(self.left.T @ J @ self.right, abs(self.left).T @ abs(J) @ abs(self.right))

    def has_index_one(self, inverse: Inverse) -> bool:
        return inverse.condition <= (DOUBTFUL if self.linear.reason else SINGULAR)

    def slope(self, t, u, params=None):
        """u' at a state: M u' = f as far as it goes, and N' (J u' + df/dt) = 0; NaN where that is singular."""
        with np.errstate(all="ignore"):
            if not self.left.shape[1]:
                return self.particular(self.rhs(t, u, self.problem.params))
            f, J, f_t = self.derivatives(t, u)
            p = self.particular(f)
            return p - self.right @ self.algebraic(J).solve(self.left.T @ (J @ p + np.broadcast_to(f_t, u.shape)))

    def reduced(self, J) -> np.ndarray:
        """The matrix (r, r) of u' as a function of u on the states that satisfy N' J u = 0, in orthonormal coordinates.

        Its eigenvalues are the finite ones of the pencil (J, M).
        """
        filled = J.toarray() if hasattr(J, "toarray") else J
        p = self.particular(np.array(filled, dtype=float))
        if not self.left.shape[1]:
            return p
        inverse = self.algebraic(J)
        if not self.has_index_one(inverse):
            raise ValueError(index_above_one(self.problem, inverse))
        rows = self.left.T @ filled
        tangent = np.linalg.svd(rows)[2][len(rows) :].T
        return tangent.T @ (p - self.right @ inverse.solve(rows @ p)) @ tangent


def consistent(problem: Problem) -> ConsistentStart:
    """A state that satisfies the algebraic equations of a problem M u' = f(t, u), near its initial state.

    The initial state is changed only in directions whose derivative appears in no equation, so that all else starts as
    its user said. `odelab.solve` does this by itself; a state that satisfies the equations but for rounding is kept.

    problem    a Problem with a `mass`

    Returns (u, condition): the state, and the condition of the derivative of the algebraic equations with respect to
    the unknowns that have no derivative. Raises ValueError where there is no such state near, and where these equations
    do not determine these unknowns (index above 1).

    >>> import odelab as ol
    >>> problem = ol.problems.robertson_dae().replace(u0=[1.0, 0.0, 0.1])
    >>> u, condition = ol.consistent(problem)
    >>> bool(abs(u.sum() - 1.0) < 1e-15), condition
    (True, 1.0)
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"`problem` must be a Problem, got {problem!r}; build one with odelab.Problem.")
    u = np.array(problem.u0)
    if problem.mass is None or not problem.mass_matrix.equations:
        return ConsistentStart(u, 1.0)
    t, pencil = problem.t_span[0], Pencil(problem)
    with np.errstate(all="ignore"):
        u, inverse = solved(pencil, t, u)
    return ConsistentStart(u, inverse.condition)


def solved(pencil: Pencil, t, u) -> tuple[np.ndarray, Inverse]:
    """The state u + Z y with N' f(t, u + Z y) = 0 by Newton's method with shortened steps, and the inverse there."""
    problem = pencil.problem

    def residual(state):
        return pencil.left.T @ pencil.rhs(t, state, problem.params)

    def size(change):
        return np.abs(pencil.right @ change / np.maximum(np.abs(u), SMALL * np.abs(u).max() or 1.0)).max()

    for attempt in range(ITERATIONS):
        f, J, _ = pencil.derivatives(t, u)
        inverse = pencil.algebraic(J)
        if not np.isfinite(f).all():
            raise ValueError(
                f"the algebraic equations of {problem.name} cannot be solved from `u0`: its right-hand side returns "
                f"{f} at t = {t:g}, u = {u}."
            )
        if not pencil.has_index_one(inverse):
            if attempt:
                break
            raise ValueError(index_above_one(problem, inverse))
        change = -inverse.solve(pencil.left.T @ f)
        if size(change) <= SOLVED:
            return (u, inverse) if attempt == 0 else (u + pencil.right @ change, inverse)
        for halvings in range(HALVINGS):
            part = 0.5**halvings
            ahead = u + part * (pencil.right @ change)
            if size(inverse.solve(residual(ahead))) <= (1.0 - 0.25 * part) * size(change):  # false for NaN
                break
        else:
            if size(change) <= STAGNANT:
                return u, inverse
            break
        u = ahead
    raise ValueError(
        f"no state near `u0` was found that satisfies the algebraic equations of {problem.name} at t = {t:g}: Newton's "
        f"method ended at u = {u}, where they are off by {np.abs(residual(u)).max():.3g}; give a `u0` nearer to it."
    )


def index_above_one(problem: Problem, inverse: Inverse) -> str:
    return (
        f"{problem.name} is of index above 1: its algebraic equations, {inverse.size} of them, do not determine the "
        f"unknowns without a derivative, as N' J Z is singular (condition {inverse.condition:.1e}; N' M = 0, M Z = 0). "
        "Differentiate constraints until they hold these unknowns, as odelab.problems.pendulum_dae does, or give a "
        "`u0` at which they do."
    )


def slopes_of(problem: Problem, rhs: Callable) -> Callable:
    """u' as a function of (t, u, params), where `rhs` is the right-hand side: the same without a mass matrix."""
    return rhs if problem.mass is None else Pencil(problem).slope
