"""The linearisation of a right-hand side along a run: its derivatives, and the solver of the systems made of them.

The derivatives are the Jacobian and the derivative with respect to time; the systems are those of linearly implicit
steps.
"""

import contextlib
import dis
import functools
import math
import types
import warnings
import weakref
from typing import Any

import numpy as np

from odelab.arrays import to_numpy
from odelab.linear import solvers
from odelab.linear.by_differences import ByDifferences
from odelab.linear.by_duals import ByDuals
from odelab.linear.by_torch import ByTorch
from odelab.linear.colouring import Colouring, colour_columns
from odelab.linear.dual import NotDifferentiable
from odelab.linear.pattern_search import pattern_of_products
from odelab.problem import Problem
from odelab.right_hand_side import matrix_of, unwrap

FULL = 32  # components up to which a Jacobian is found column by column, and no pattern is looked for
AT_ONCE = 64  # directions at once, as all of them take as many times the memory of the state
DOUBTS = 3  # states in a row at which a given Jacobian disagrees before that is said; at a kink, both sides are right
AGREE = {"dual numbers": 1e-9, "differences": 1e-3}  # relative: by how much two ways to a product J v may differ


class Linearisation:
    """The derivatives of a problem's right-hand side at the states of a run, and the solver of its linear systems.

    `prepare`, `factor` and `backsub` are the functions that `odelab.core.rosenbrock_step_of` and `integrate` call.

    problem    the Problem; its own Jacobian is used where it has one
    rhs        its right-hand side in array form
    atol       the absolute tolerance of the run, which measures differences; None where there is none

    jacobians, factorisations, evaluations   how many of each were made, the last for derivatives alone
    how        in words how the derivatives are found
    """

    def __init__(self, problem: Problem, rhs, atol=None):
        self.problem, self.own = problem, problem.jacobian
        self.given, self.doubts = 0, 0  # own Jacobians so far; how many of those compared last were wrong, in a row
        self.compare_next: float = 1  # of them, which one is compared next; infinity where none is
        self.in_time = reads_time(problem.rhs)
        self.by_duals = ByDuals(problem)
        span = abs(problem.t_span[1] - problem.t_span[0])
        self.by_differences = ByDifferences(rhs, problem.params, atol, span, problem.seen)
        of_tensors = getattr(problem.rhs, "of_tensors", None)
        self.by_torch = None if of_tensors is None else ByTorch(of_tensors, problem.params)
        self.reason = ""  # why dual numbers could not be used
        self.full = problem.size <= FULL  # whether every column is found alone
        self.colouring: Colouring | None = None
        self.solver: Any = None
        self.jacobians = self.factorisations = 0
        self.at: tuple = (None, None, None)  # (t, u, known): where derivatives were found last
        self.direction = np.random.default_rng(0).uniform(0.5, 1.5, problem.size)

    @property
    def evaluations(self) -> int:
        return self.by_differences.evaluations

    @property
    def how(self) -> str:
        if self.own is not None:
            found = "the problem's own Jacobian"
        elif self.reason:
            found = f"Jacobian by differences, as nothing else can follow the right-hand side ({self.reason})"
        else:
            found = "Jacobian by dual numbers" if self.by_torch is None else "Jacobian by torch"
        colours = f" in {len(self.colouring.seeds)} colours" if self.colouring is not None else ""
        solver = f", {self.solver.name}" if self.solver is not None else ""
        return f"{found}{colours}{solver}"

    def prepare(self, t, u, slope, params):
        """(slope, J, df/dt) at (t, u)."""
        last_t, last_u, known = self.at
        if last_u is not u or last_t != t:
            J, slope_t = self.derivatives(t, u, slope)
            self.jacobians += 1
            known = (slope, J, slope_t)
            self.at = (t, u, known)
        return known

    def factor(self, J, hg):
        if self.solver is None or not self.solver.suits(J):
            self.solver = solvers.solver_for(J, self.problem.mass_matrix)
        self.factorisations += 1
        return self.solver.factor(J, hg)

    def backsub(self, lu, right):
        return self.solver.backsub(lu, right)

    def derivatives(self, t, u, slope):
        """(J, df/dt) at a state, exact where that is possible; beside a stop, those of the piece.

        Differences need the `slope` there, None if unknown.
        """
        t = self.problem.seen(t)
        with np.errstate(all="ignore"):
            if not self.reason:
                try:
                    J, slope_t = self.exact(t, u)
                    if self.own is not None and self.is_refuted(J, t, u):
                        self.own = self.solver = None
                        return self.exact(t, u)
                    return J, slope_t
                except NotDifferentiable as reason:
                    self.reason, self.colouring, self.solver = short(reason), None, None
            if slope is None:
                slope = self.by_differences.slope(t, u)
            J = self.own_jacobian(t, u) if self.own is not None else self.matrix(t, u, slope)
            return J, self.by_differences.in_time(t, u, slope) if self.in_time else 0.0

    def exact(self, t, u):
        if self.by_torch is not None:
            J, late = self.by_torch(t, u)
            return J if self.own is None else self.own_jacobian(t, u), late
        if self.own is not None:
            slope_t = self.by_duals(t, u, None, np.ones(1))[0] if self.in_time else 0.0
            return self.own_jacobian(t, u), slope_t
        if not self.in_time:
            return self.matrix(t, u, None), 0.0
        J, slope_t = self.matrix(t, u, None, with_time=True)
        return J, slope_t

    def own_jacobian(self, t, u):
        """The problem's own Jacobian as an array of floats, or in compressed columns."""
        assert self.own is not None
        J = matrix_of(self.own, t, u, self.problem.params)
        if hasattr(J, "tocsc"):
            return columns_of(J) if len(u) > solvers.SMALL else np.asarray(J.toarray(), dtype=float)
        return np.asarray(to_numpy(J), dtype=float)

    def is_refuted(self, J, t, u) -> bool:
        """Is the problem's own Jacobian, by now, known not to be the derivative of its right-hand side? Says so once.

        It is compared at the first state and, as an entry may be wrong only elsewhere, at more and more distant ones.
        """
        self.given += 1
        if self.given < self.compare_next:
            return False
        try:
            seen = self.by_duals(t, u, self.direction[None, :])[0]
        except NotDifferentiable:
            self.compare_next = math.inf
            return False
        found, size = J @ self.direction, abs(J) @ np.abs(self.direction) + np.abs(seen)
        wrong = np.flatnonzero((np.abs(found - seen) > AGREE["differences"] * size) & np.isfinite(size))
        self.doubts = self.doubts + 1 if wrong.size else 0
        self.compare_next = self.given + 1 if wrong.size else 2 * self.given
        if self.doubts < DOUBTS:
            return False
        i = int(wrong[0])
        warnings.warn(
            f"the `jacobian` of {self.problem.name} is not the derivative of its right-hand side: in row {i} at "
            f"t = {t:g} its product with a vector is {found[i]:.4g}, and {seen[i]:.4g} by dual numbers. The run goes "
            "on with one by dual numbers, as compiled code does from the start; correct `jacobian`, or leave it out "
            "with problem.replace(jacobian=None).",
            RuntimeWarning,
            stacklevel=2,
        )
        return True

    def matrix(self, t, u, slope, with_time=False):
        """J found here, and df/dt beside it where that is asked for."""
        if not self.full and self.colouring is None:
            self.colour(known_patterns(self.problem.rhs).get(len(u)) or self.pattern(t, u, slope, None))
        colouring = self.colouring
        seeds = np.eye(len(u)) if colouring is None else np.vstack([colouring.seeds, self.direction])
        found, slope_t = self.along(t, u, seeds, slope, with_time)
        scale = self.scale(u)
        if colouring is None:
            J = found.T / scale
        else:
            J = colouring.matrix(found, scale)
            if not self.agrees(J, found[-1], scale):
                self.solver = None
                anew = self.pattern(t, u, slope, colouring)
                # If the pattern found anew is no larger, it is not the cause: then every column is found by itself.
                self.colour(None if anew is None or anew.pattern.nnz == colouring.pattern.nnz else anew)
                return self.matrix(t, u, slope, with_time)
        return (J, slope_t) if with_time else J

    def colour(self, colouring: Colouring | None):
        """Find columns together from here on, and remember which for later runs; each by itself without a colouring."""
        self.colouring, self.full = colouring, colouring is None
        if colouring is not None:
            known_patterns(self.problem.rhs)[len(colouring.colour)] = colouring

    def along(self, t, u, seeds, slope, with_time):
        """Products of J with the seeds, and df/dt."""
        if len(seeds) > AT_ONCE:
            parts = [seeds[first : first + AT_ONCE] for first in range(0, len(seeds), AT_ONCE)]
            each = [self.along(t, u, part, slope, with_time) for part in parts]
            return np.concatenate([products for products, _ in each]), each[0][1]
        if self.reason:
            return self.by_differences(t, u, seeds, slope), 0.0
        if not with_time:
            return self.by_duals(t, u, seeds), 0.0
        m = len(seeds)
        along_t = np.append(np.zeros(m), 1.0)
        found = self.by_duals(t, u, np.vstack([seeds, np.zeros(len(u))]), along_t)
        return found[:m], found[m]

    def scale(self, u):
        return self.by_differences.size(u) if self.reason else np.ones(len(u))

    def agrees(self, J, product, scale) -> bool:
        """Does J, put together from few products, give the right product with a random vector?

        That product was computed together with the others. If it differs, the pattern lacks an entry.
        """
        weights = scale * self.direction
        size = abs(J) @ np.abs(weights) + np.abs(product)
        wrong = np.abs(J @ weights - product) > AGREE["differences" if self.reason else "dual numbers"] * size
        return not (wrong & np.isfinite(size)).any()

    def beside(self, t, u):
        """A state near `u` at which the right-hand side is defined, and where it is, one with no component at zero.

        Components near zero get either sign, or the one for which the right-hand side has finite values.
        """
        rough = np.random.default_rng(1).uniform(0.5, 1.5, len(u))
        far = 1e-3 * np.abs(u).max(initial=0.0)
        for moved in (rough - 1.0, rough, -rough, 0.0):
            state = rough * u + far * moved
            with contextlib.suppress(Exception):  # whatever the user's function raises where it is not defined
                if np.isfinite(self.by_differences.rhs(t, state, self.problem.params)).all():
                    return state
        return u

    def pattern(self, t, u, slope, known) -> Colouring | None:
        """Which entries of J are not zero, at `u` and beside it; with those known before. None where most are not."""
        patterns = [] if known is None else [known.pattern]
        for state in (u, self.beside(t, u)):
            slope_here = self.by_differences.rhs(t, state, self.problem.params) if self.reason else None
            found = pattern_of_products(
                lambda seeds, state=state, slope=slope_here: self.along(t, state, seeds, slope, False)[0], len(u)
            )
            if found is None:
                return None
            patterns.append(found)
        total = sum(abs(one) for one in patterns)
        total.data[:] = 1.0
        return colour_columns(total)


patterns: weakref.WeakKeyDictionary[Any, dict[int, Colouring]] = weakref.WeakKeyDictionary()


def known_patterns(rhs) -> dict[int, Colouring]:
    """The patterns of earlier runs of a right-hand side, by the number of components; each Jacobian confirms them."""
    try:
        return patterns.setdefault(rhs, {})
    except TypeError:  # an object that no dictionary can hold
        return {}


def columns_of(J):
    """A sparse matrix in compressed columns, with one number for each entry: two in the same place are added."""
    J = J.tocsc()
    if not J.has_canonical_format:
        J = J.copy()  # the matrix is the user's
        J.sum_duplicates()
    return J


def short(reason) -> str:
    text = str(reason)
    return text if len(text) <= 120 else f"{text[:117]}..."


def reads_time(rhs) -> bool:
    """May the right-hand side depend on time? It does not if its code never loads its first argument."""
    rhs = unwrap(rhs)
    rhs = getattr(rhs, "py_func", rhs)
    if not isinstance(rhs, types.FunctionType) or rhs.__code__.co_argcount < 2:
        return True
    return loads_first_argument(rhs.__code__)


@functools.lru_cache(maxsize=256)
def loads_first_argument(code) -> bool:
    name = code.co_varnames[0]
    for instruction in dis.get_instructions(code):
        loaded = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        if name in loaded and "LOAD" in instruction.opname:  # STORE_FAST_LOAD_FAST does both, from Python 3.13 on
            return True
    return False
