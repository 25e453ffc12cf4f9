"""Problems M u' = f(t, u) with a singular M: states that satisfy their algebraic equations, and slopes there.

With N' M = 0 and M Z = 0, the algebraic equations are N' f(t, u) = 0. They determine the components of u in the
directions Z, and the index is 1, where N' J Z is regular (Hairer and Wanner, Solving ODEs II, VI.1).
"""

import operator
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from odelab.core import ARRIVED, ON_THE_WAY, PASSES, Approach, approach_of, consistent_slope_of, where
from odelab.linear.linearisation import Linearisation
from odelab.mass import SINGULAR, Inverse
from odelab.problem import Problem, array_form

DOUBTFUL = 1e6  # the same as SINGULAR where J is found by differences, whose errors hide a singular matrix
FEW = 3  # components that a message names


class NoConsistentStart(ValueError):
    """No state near the first one of a run satisfies the algebraic equations; the text says why."""


class ConsistentStart(NamedTuple):
    """A state that satisfies the algebraic equations of a problem, as `odelab.consistent` returns it.

    u            the state (n,)
    condition    of the derivative of the algebraic equations with respect to the unknowns that have no derivative, with
                 rows and columns scaled by powers of two; 1 where there are no algebraic equations
    """

    u: np.ndarray
    condition: float


def equations_in_words(problem: Problem, found: ConsistentStart) -> str:
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

    def reduce(self, f):
        return self.left.T @ f

    def spread(self, y):
        return self.right @ y

    def slope(self, t, u, params=None):
        """u' at a state, as `odelab.core.consistent_slope_of` has it; NaN where N' J Z is singular."""
        with np.errstate(all="ignore"):
            if not self.left.shape[1]:
                return self.particular(self.rhs(t, u, self.problem.params))
            of_algebra = (self.algebraic, Inverse.solve, self.reduce, self.spread)
            return consistent_slope_of(*of_algebra, self.particular, operator.matmul)(*self.derivatives(t, u))

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


def start_at(problem: Problem, u) -> ConsistentStart:
    """The state from which a run began, with its condition."""
    if not problem.mass_matrix.equations:
        return ConsistentStart(u, 1.0)
    pencil, t = Pencil(problem), problem.t_span[0]
    with np.errstate(all="ignore"):
        return ConsistentStart(u, pencil.algebraic(pencil.derivatives(t, u)[1]).condition)


def solved(pencil: Pencil, t, u) -> tuple[np.ndarray, Inverse]:
    """The state u + Z y with N' f(t, u + Z y) = 0, by passes of `odelab.core.approach_of`, and the inverse there."""
    problem, rhs = pencil.problem, pencil.rhs
    inverses: list[Inverse] = []

    def factor(J) -> Inverse:
        inverses[:] = [pencil.algebraic(J)]
        return inverses[0]

    given = (factor, Inverse.solve, pencil.has_index_one, pencil.reduce, pencil.spread, where, np.maximum)
    approach, now, status, passes = approach_of(*given), Approach(u, 1.0, 0.0), ON_THE_WAY, 0
    while status == ON_THE_WAY and passes < PASSES:
        known = pencil.linear.prepare(t, now.u, np.array(rhs(t, now.u, problem.params), dtype=float), problem.params)
        status, now = approach(rhs, problem.params, t, known, now)
        passes += 1
    if status == ARRIVED:
        return now.u, inverses[0]
    f = rhs(t, now.u, problem.params)
    if not np.isfinite(f).all():
        raise NoConsistentStart(
            f"the algebraic equations of {problem.name} cannot be solved from `u0`: its right-hand side returns "
            f"{f} at t = {t:g}, u = {now.u}."
        )
    off = np.abs(pencil.reduce(f)).max()
    if not (now.moved and off) and not pencil.has_index_one(inverses[0]):
        raise NoConsistentStart(index_above_one(problem, inverses[0]))
    raise NoConsistentStart(
        f"no state near `u0` was found that satisfies the algebraic equations of {problem.name} at t = {t:g}: Newton's "
        f"method ended at u = {now.u}, where they are off by {off:.3g}; give a `u0` nearer to it."
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
