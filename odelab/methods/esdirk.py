"""A diagonally implicit method is data, too: a Butcher tableau with one number on its diagonal, which checks itself.

The first stage is explicit, all others have the same gamma on the diagonal, and the last one is the new state (ESDIRK,
stiffly accurate; Kennedy and Carpenter, NASA/TM-2016-219173). All but the coefficients is derived here.
"""

import dataclasses
import functools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from odelab import core
from odelab.methods import order_conditions as trees
from odelab.methods.order_conditions import ROUNDING
from odelab.methods.with_jacobian import DAMPED, MethodWithJacobian

# Newton's method starts on a polynomial of this degree through the states of earlier stages. Measured on van der Pol
# with mu = 1000, HIRES, Robertson, Oregonator and POLLU, rtol 1e-6 and 1e-8: two iterations take 14 to 43 % more steps
# than three, four at most 2 % fewer; degree one takes 2 to 16 % more than two, the highest there is up to 3 % more.
ITERATIONS, DEGREE = 3, 2


@dataclasses.dataclass(frozen=True, eq=False)
class EsdirkMethod(MethodWithJacobian):
    """A diagonally implicit Runge-Kutta method with an explicit first stage (ESDIRK), which checks itself.

    It needs the Jacobian J of the right-hand side at each new state. Every stage is solved by three iterations of
    Newton's method with one matrix, I - h gamma J. Coefficients are Fractions, or what a Fraction is made from. Every
    order condition up to the stated orders is checked when the method is made, and so are stage order two and what is
    claimed of stability; a ValueError names what is missed.

    name        what messages and figures call it
    order       the order of the step
    gamma       the diagonal of the method from its second stage on; positive
    a           one row per stage, row i with i entries: what is left of the diagonal. The last row, and gamma, are the
                weights of the step, so that the last stage is the new state
    b_low       the weights of an embedded method, which estimates the error; None for a method of fixed steps. Its R(z)
                must be bounded on very stiff components, as the estimate otherwise is not
    order_low   the order of the embedded method
    l_stable    whether L-stability is claimed; True by default
    about       where the coefficients were published

    Derived from them: `stages`, `b`, `c`, `square` (a with its diagonal), `embedded`, `error_order`, `start`,
    `extension_weights`, `dense_order`, `stability(z)`, `real_boundary`, `imaginary_boundary`.

    >>> import odelab as ol
    >>> trapezoid = ol.EsdirkMethod("TRAPEZOID", 2, "1/2", a=[[], ["1/2"]], l_stable=False)
    >>> round(trapezoid.stability(-9.0), 12), trapezoid.c
    (-0.636363636364, (0.0, 1.0))
    >>> ol.EsdirkMethod("WRONG", 3, "1/2", a=[[], ["1/2"]], l_stable=False)
    Traceback (most recent call last):
    ValueError: `a` of WRONG misses the order-3 condition of tree ((), ()) by 0.167; it is not of order 3.
    """

    name: str
    order: int
    gamma: Any
    a: Sequence
    b_low: Sequence | None = None
    order_low: int = 0
    l_stable: bool = True
    about: str = ""

    def __post_init__(self):
        keep = functools.partial(object.__setattr__, self)
        keep("gamma", Fraction(self.gamma))
        if not self.gamma > 0:
            raise ValueError(f"`gamma` of {self.name} must be positive, got {float(self.gamma)!r}.")
        keep("a", tuple(tuple(map(Fraction, row)) for row in self.a))
        if len(self.a) < 2 or any(len(row) != i for i, row in enumerate(self.a)):
            raise ValueError(
                f"`a` of {self.name} must have two rows at least, row i with i entries (left of the diagonal), got "
                f"rows of {[len(row) for row in self.a]}."
            )
        trees.check_orders(self, "order", *(["order_low"] if self.embedded else []))
        self._check("a", self.b, self.order)
        if self.b_low is not None:
            keep("b_low", tuple(map(Fraction, self.b_low)))
            self._check_embedded(self.b_low)
        self._check_stages()
        self.check_stability(float(self.fast_stages[-1]))

    def _check_embedded(self, b_low):
        if len(b_low) != self.stages:
            raise ValueError(
                f"`b_low` of {self.name} must have {self.stages} entries, one per stage, got {len(b_low)}."
            )
        self._check("b_low", np.array(b_low, dtype=float), self.order_low)
        trees.check_estimate(self, "b_low", self.e)
        if not abs(self.e @ self.fast_stages) <= DAMPED:
            raise ValueError(
                f"`b_low` of {self.name} gives an estimate of the error that grows without bound on stiff components."
            )

    def _check(self, row, weights, order):
        trees.check(self, row, trees.defects(self.square, weights, order), order)

    def _check_stages(self):
        missed = np.abs(self.square @ self.c - 0.5 * np.square(self.c))
        if not missed.max() <= ROUNDING:
            raise ValueError(
                f"`a` of {self.name} misses stage order two, sum_j a_ij c_j = c_i^2 / 2, by {missed.max():.3g} in "
                f"stage {missed.argmax()}; check that row, and `gamma`."
            )

    @property
    def stages(self) -> int:
        return len(self.a)

    @property
    def embedded(self) -> bool:
        return self.b_low is not None

    @property
    def error_order(self) -> int:
        return min(self.order, self.order_low) + 1

    @property
    def evaluations(self) -> int:
        return ITERATIONS * (self.stages - 1)

    @property
    def final(self) -> slice:
        return slice(None, None, ITERATIONS)

    @functools.cached_property
    def c(self) -> tuple:
        """The times of the stages as parts of the step."""
        return tuple(float(sum(row) + self.gamma * (i > 0)) for i, row in enumerate(self.a))

    @functools.cached_property
    def square(self) -> np.ndarray:
        """(stages, stages): the coefficients with their diagonal."""
        rows = np.diag([0.0, *[float(self.gamma)] * (self.stages - 1)])
        for i, row in enumerate(self.a):
            rows[i, :i] = row
        return rows

    @property
    def b(self) -> np.ndarray:
        """The weights of the step."""
        return self.square[-1]

    @functools.cached_property
    def e(self) -> np.ndarray:
        """The weights b - b_low of the estimate; those of the step where the method does not estimate its error."""
        return self.b if self.b_low is None else self.b - np.array(self.b_low, dtype=float)

    @functools.cached_property
    def fast_stages(self) -> np.ndarray:
        """The states of the stages for u' = lambda u from u = 1, for h lambda to minus infinity.

        The increments h lambda Y_i then are bounded in sum where the weights of this sum cancel these states.
        """
        return np.append(1.0, np.linalg.solve(self.square[1:, 1:], -self.square[1:, 0]))

    @functools.cached_property
    def start(self) -> tuple:
        """Square rows: the smallest weights of a polynomial of low degree through the states of earlier stages."""
        rows = np.zeros_like(self.square)
        for i in range(1, self.stages):
            powers = np.arange(min(i, DEGREE + 1))[:, None]
            rows[i, :i] = np.linalg.pinv(np.array(self.c[:i]) ** powers) @ self.c[i] ** powers[:, 0]
        return tuple(map(tuple, rows.tolist()))

    @functools.cached_property
    def tableau(self) -> core.Esdirk:
        """The coefficients as `odelab.core.esdirk_step_of` takes them: square rows of Python floats."""
        a = tuple(map(tuple, np.tril(self.square, -1).tolist()))
        return core.Esdirk(a, tuple(self.b.tolist()), tuple(self.e.tolist()), self.c, self.start, float(self.gamma))

    @functools.cached_property
    def extension_weights(self) -> np.ndarray:
        """(degree, stages): row p holds the weights of theta^(p+1) k_i in u(theta) - u; the smallest there are.

        As all stages have order two, quadrature conditions give the order. One more condition bounds the extension on
        infinitely stiff components. (A cubic through the slopes at both ends would multiply their error by their rate.)
        """
        for degree in range(min(self.order, 3), 1, -1):
            powers = np.arange(degree)[:, None]
            conditions = np.vstack([np.array(self.c) ** powers, self.fast_stages])
            wanted = np.eye(degree + 1, degree - 1) / (np.arange(degree - 1) + 1.0)
            rows = np.linalg.pinv(conditions) @ wanted
            if np.abs(conditions @ rows - wanted).max() <= ROUNDING:
                return np.vstack([rows.T, self.b - rows.sum(axis=1)])
        return self.b[None]

    def step_of(self, factor=None, substitute=None, where=core.where):
        return core.esdirk_step_of(core.combine, factor, substitute, where, ITERATIONS, self.tableau)

    def __repr__(self):
        pair = f"{self.order}({self.order_low})" if self.embedded else f"{self.order}"
        return f"{self.name}, order {pair}, {self.stages} stages, diagonally implicit"
