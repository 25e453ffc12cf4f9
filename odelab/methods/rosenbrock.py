"""A linearly implicit method is data, too: the transformed coefficients of a Rosenbrock method, which check themselves.

With J the Jacobian of the right-hand side f at (t, u) and f_t its derivative with respect to time, the increments of a
step are
    (I - h gamma J) k_i = h gamma f(t + c_i h, u + sum_j a_ij k_j) + gamma sum_j C_ij k_j + gamma d_i h^2 f_t,
and u_new = u + sum_i m_i k_i: one matrix, factored once, and no iteration. Of a system M u' = f with a constant mass
matrix, singular or not, I is M and the sum of C_ij k_j is multiplied by M (Hairer and Wanner, VI.4).

Textbooks state the order conditions for the form from which this one comes by k = Gamma l (Hairer and Wanner, Solving
ODEs II, IV.7),
    l_i = h f(t + c_i h, u + sum_j alpha_ij l_j) + h J sum_j Gamma_ij l_j + h^2 d_i f_t,    u_new = u + sum_i b_i l_i;
its coefficients are derived here, and the conditions are checked on them.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np

from odelab import core
from odelab.methods import order_conditions as trees
from odelab.methods.order_conditions import ROUNDING
from odelab.methods.with_jacobian import DAMPED, MethodWithJacobian

DENSE_ROUNDING = 1e-11  # the same for an extension, relative to its terms, which are large and cancel


@dataclasses.dataclass(frozen=True, eq=False)
class RosenbrockMethod(MethodWithJacobian):
    """A linearly implicit (Rosenbrock) method in transformed form, which checks itself.

    It needs the Jacobian J of the right-hand side at each new state. Where the right-hand side depends on time, it
    needs the derivative with respect to time as well. Every order condition up to the stated orders is checked when
    the method is made, and so is what is claimed of stability; a ValueError names what is missed.

    name              what messages and figures call it
    order             the order of the step
    gamma             the diagonal of the method, M = I - h gamma J; positive
    a                 one row per stage, row i with i entries: the weights of the increments in a stage's state
    C                 rows like those of `a`: the weights of the increments in a stage's right side, as published, where
                      the matrix is I / (h gamma) - J
    m                 the weights of the increments in the new state, one per stage
    e                 their weights in the estimate of the error, m - m_low; None for a method of fixed steps
    order_low         the order of the embedded method
    dense             rows H1, H2, ... of weights over the increments, one entry per stage, for the continuous extension
                      u(theta) = (1 - theta) u + theta u_new + theta (1 - theta) sum_i (H1 + theta H2 + ...)_i k_i,
                      of order one more than there are rows. Without them it is a parabola of order 2 that follows from
                      the increments, or a straight line where these do not tell more. (A cubic through the slopes at
                      both ends would multiply the error of a stiff component by its rate.)
    l_stable          whether R(infinity) = 0 is claimed; True by default
    stiffly_accurate  whether the last stage is claimed to be the new state of the implicit method with this tableau,
                      and the estimate to vanish on infinitely stiff components, as its errors do; False by default
    about             where the coefficients were published

    `RosenbrockMethod.from_textbook(name, order, alpha, Gamma, b, b_low)` takes the coefficients that textbooks print.

    Derived from them: `stages`, `alpha`, `Gamma` (with gamma on its diagonal), `b`, `b_low`, `c` and `d` (sums of the
    rows of alpha and Gamma), `embedded`, `error_order`, `dae_order`, `dense_order`, `stability(z)`, `at_infinity` and
    `embedded_at_infinity` (R at minus infinity), `real_boundary`, `imaginary_boundary`.

    >>> import odelab as ol
    >>> euler = ol.RosenbrockMethod("EULER1", order=1, gamma=1.0, a=[[]], C=[[]], m=[1.0])
    >>> round(euler.stability(-9.0), 12), euler.real_boundary
    (0.1, inf)
    >>> ol.RosenbrockMethod("WRONG", order=2, gamma=1.0, a=[[]], C=[[]], m=[1.0])
    Traceback (most recent call last):
    ValueError: `m` of WRONG misses the order-2 condition of tree ((),) by 0.5; it is not of order 2.
    """

    name: str
    order: int
    gamma: float
    a: Sequence
    C: Sequence
    m: Sequence
    e: Sequence | None = None
    order_low: int = 0
    dense: Sequence | None = None
    l_stable: bool = True
    stiffly_accurate: bool = False
    about: str = ""

    def __post_init__(self):
        keep = functools.partial(object.__setattr__, self)
        keep("gamma", float(self.gamma))
        if not 0.0 < self.gamma < np.inf:
            raise ValueError(f"`gamma` of {self.name} must be positive and finite, got {self.gamma!r}.")
        keep("m", tuple(map(float, self.m)))
        for name in ("a", "C"):
            rows = tuple(tuple(map(float, row)) for row in getattr(self, name))
            if len(rows) != self.stages or any(len(row) != i for i, row in enumerate(rows)):
                raise ValueError(
                    f"`{name}` of {self.name} must have {self.stages} rows, row i with i entries, got rows of "
                    f"{[len(row) for row in rows]}."
                )
            keep(name, rows)
        if self.e is not None:
            keep("e", self._row("e", self.e))
        if self.dense is not None:
            keep("dense", tuple(self._row("dense", row) for row in self.dense) or None)
        trees.check_orders(self, "order", *(["order_low"] if self.embedded else []))
        self._check("m", self.b, self.order)
        if self.embedded:
            self._check("e", self.b_low, self.order_low)
            trees.check_estimate(self, "e", self.e)
        self._check_extension()
        self._check_claims()

    def _row(self, name, row) -> tuple:
        if len(row) != self.stages:
            raise ValueError(f"`{name}` of {self.name} needs one weight per stage, {self.stages}, got {len(row)}.")
        return tuple(map(float, row))

    def _check(self, row, weights, order):
        trees.check(self, row, trees.defects(self.alpha, weights, order, self.alpha + self.Gamma), order)

    def _check_extension(self):
        if self.dense is None:
            return
        phi = trees.ElementaryWeights(self.alpha, self.alpha + self.Gamma)
        rows = self.extension_weights @ self.Gamma
        found = trees.defects_inside(phi, rows, range(1, len(rows) + 1), self.dense_order)
        trees.check(self, "dense", found, self.dense_order, "the extension", DENSE_ROUNDING)

    def _check_claims(self):
        implicit = self.alpha + self.Gamma
        self.check_stability(self.at_infinity)
        estimate = self.at_infinity - self.embedded_at_infinity
        if self.stiffly_accurate and self.embedded and not abs(estimate) <= DAMPED:
            raise ValueError(
                f"`stiffly_accurate` is claimed of {self.name}, but `e` does not vanish on infinitely stiff "
                f"components, it is {estimate:.3g} of them; check the coefficients."
            )
        if self.stiffly_accurate:
            missed = max(np.abs(implicit[-1] - self.b).max(), abs(self.alpha[-1].sum() - 1.0))
            if not missed <= ROUNDING:
                raise ValueError(
                    f"`stiffly_accurate` is claimed of {self.name}, but the last row of alpha + Gamma misses b, or the "
                    f"last stage the time t + h, by {missed:.3g}."
                )

    @classmethod
    def from_textbook(cls, name, order, alpha, Gamma, b, b_low=None, **options) -> "RosenbrockMethod":
        """The method with these coefficients in the form of textbooks, see the top of this module.

        name     what messages and figures call it
        order    the order of the step
        alpha    (s, s), strictly lower triangular: the weights of the increments in a stage's state
        Gamma    (s, s), lower triangular with gamma on its diagonal: the weights of J times the increments
        b        the weights of the step, one per stage
        b_low    the weights of the embedded method; None for a method of fixed steps
        options  the other fields: order_low, l_stable, stiffly_accurate, about
        """
        stages = len(b)
        alpha, Gamma = (np.asarray(rows, dtype=float) for rows in (alpha, Gamma))
        for key, rows, diagonal in (("alpha", alpha, 0.0), ("Gamma", Gamma, Gamma.flat[0] if Gamma.size else 0.0)):
            if rows.shape != (stages, stages) or np.triu(rows, 1).any() or (np.diag(rows) != diagonal).any():
                wanted = "one positive number on its diagonal" if key == "Gamma" else "zeros on its diagonal"
                raise ValueError(f"`{key}` of {name} must be lower triangular, {stages} x {stages}, with {wanted}.")
        gamma = float(Gamma[0, 0])
        if not gamma > 0.0:
            raise ValueError(f"`Gamma` of {name} must have a positive diagonal, got {gamma!r}.")
        inverse = np.linalg.inv(Gamma)
        a, C = (
            [row[:i].tolist() for i, row in enumerate(rows)]
            for rows in (alpha @ inverse, np.eye(stages) / gamma - inverse)
        )
        e = None if b_low is None else ((np.asarray(b, dtype=float) - b_low) @ inverse).tolist()
        return cls(name, order, gamma, a, C, (np.asarray(b, dtype=float) @ inverse).tolist(), e, **options)

    @property
    def stages(self) -> int:
        return len(self.m)

    @property
    def embedded(self) -> bool:
        return self.e is not None

    @property
    def error_order(self) -> int:
        """The power k of the step size h to which the error estimate is proportional."""
        return min(self.order, self.order_low) + 1

    @functools.cached_property
    def Gamma(self) -> np.ndarray:
        """The weights of J times the increments, gamma on the diagonal, in the form of the textbooks."""
        rows = self.gamma * np.eye(self.stages)  # the inverse of I / gamma - C, row by row
        for i in range(1, self.stages):
            rows[i] += self.gamma * (np.array(self.C[i]) @ rows[:i])
        return rows

    @functools.cached_property
    def alpha(self) -> np.ndarray:
        """The weights of the increments in a stage's state, in the form of the textbooks."""
        return square(self.a) @ self.Gamma

    @functools.cached_property
    def b(self) -> np.ndarray:
        """The weights of the step in the form of the textbooks."""
        return np.array(self.m) @ self.Gamma

    @functools.cached_property
    def b_low(self) -> np.ndarray:
        """The weights of the embedded method in the form of the textbooks."""
        return (np.array(self.m) - np.array(self.e)) @ self.Gamma

    @functools.cached_property
    def c(self) -> tuple:
        """The times of the stages as parts of the step."""
        return tuple(snap(x) for x in self.alpha.sum(axis=1))

    @functools.cached_property
    def d(self) -> tuple:
        """The weights of the derivative with respect to time."""
        return tuple(snap(x) for x in self.Gamma.sum(axis=1))

    @functools.cached_property
    def tableau(self) -> core.Rosenbrock:
        """The coefficients as `odelab.core.rosenbrock_step_of` takes them: square rows of Python floats."""
        a, C = (tuple(map(tuple, square(rows).tolist())) for rows in (self.a, self.C))
        C = tuple(tuple(self.gamma * x for x in row) for row in C)
        return core.Rosenbrock(a, C, self.m, self.e or self.m, self.c, self.d, self.gamma)

    @property
    def takes_mass(self) -> bool:
        return True

    @functools.cached_property
    def fast_increments(self) -> np.ndarray:
        """The increments of u' = lambda u from u = 1 for h lambda to minus infinity."""
        return self.Gamma @ np.linalg.solve(self.alpha + self.Gamma, -np.ones(self.stages))

    @property
    def at_infinity(self) -> float:
        """R(infinity): what a step leaves of an infinitely stiff component, and of the residual of an equation."""
        return float(1.0 + np.array(self.m) @ self.fast_increments)

    @property
    def embedded_at_infinity(self) -> float:
        """The same of the embedded method; infinite without one."""
        if self.e is None:
            return math.inf
        return self.at_infinity - float(np.array(self.e) @ self.fast_increments)

    @functools.cached_property
    def dae_order(self) -> int:
        """The order on systems M u' = f of index 1; 0 where steps do not damp the residual of an algebraic equation.

        With |R(infinity)| < 1 errors of algebraic components do not add up, so that they need one order less.
        """
        if not abs(self.at_infinity) < 1.0:
            return 0
        for order in range(1, self.order + 1):
            if not trees.is_of_dae_order(self.alpha, self.alpha + self.Gamma, self.b, order):
                return order - 1
        return self.order

    @functools.cached_property
    def extension_weights(self) -> np.ndarray:
        """(degree, stages): row p holds the weights of theta^(p+1) k_i in u(theta) - u."""
        dense = self._parabola() if self.dense is None else self.dense
        rows = np.zeros((len(dense) + 1, self.stages))
        rows[0] = self.m
        rows[:-1] += dense
        rows[1:] -= dense
        return rows

    def _parabola(self) -> np.ndarray:
        """(1, stages): H1 of order 2, the smallest there is; (0, stages) where the conditions leave none."""
        conditions = np.stack([np.ones(self.stages), (self.alpha + self.Gamma).sum(axis=1)])
        if self.order < 2 or np.linalg.matrix_rank(conditions, tol=ROUNDING) < 2:
            return np.zeros((0, self.stages))
        return (np.linalg.pinv(conditions) @ [0.0, -0.5] @ np.linalg.inv(self.Gamma))[None]

    def step_of(self, factor=None, substitute=None, where=core.where, weigh=None):
        return core.rosenbrock_step_of(core.combine, factor, substitute, self.tableau, weigh)

    def __repr__(self):
        pair = f"{self.order}({self.order_low})" if self.embedded else f"{self.order}"
        return f"{self.name}, order {pair}, {self.stages} stages, linearly implicit"


def square(rows) -> np.ndarray:
    """Rows of a lower triangle padded with zeros."""
    full = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        full[i, : len(row)] = row
    return full


def snap(value) -> float:
    """`value`, or the whole number that it equals but for rounding, as for a stage at t + h or a weight of zero."""
    whole = float(np.round(value)) + 0.0  # never -0.0
    return whole if abs(value - whole) <= ROUNDING else float(value)
