"""A method is data: a Butcher tableau that checks itself; everything else is derived from it."""

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from odelab import core
from odelab.methods import extension
from odelab.methods import order_conditions as trees
from odelab.methods.interface import StepMethod
from odelab.methods.order_conditions import ROUNDING


@dataclasses.dataclass(frozen=True, eq=False)
class Method(StepMethod):
    """An explicit Runge-Kutta method as its Butcher tableau, which checks itself.

    Coefficients are Fractions, or what a Fraction is made from ("3/40"). Row sums and every order condition up to the
    stated orders are checked when the method is made, and a ValueError names the condition that is missed.

    name          what messages and figures call it
    order         the order of the step
    a             one row per stage, row i with i entries: the lower triangle; or a square filled up with zeros
    b             the weights of the step, one per stage
    b_low         the weights of an embedded method, which estimates the error; None for a method of fixed steps
    order_low     the order of the embedded method
    dense         the weights of the continuous extension: one row, or several, over the stages, the slope at the new
                  state and the slopes of the extension's own stages (see `odelab.methods.extension`). Without them
                  the extension is the cubic Hermite interpolant
    extra         the rows of `a` of the extension's own stages
    b_lowest      the weights of a second embedded method, which corrects the estimate of the first
    order_lowest  the order of the second embedded method
    about         where the coefficients were published
    c             the times of the stages; they follow from `a`, and are checked where they are given

    Derived from them: `stages`, `fsal` (is the last stage evaluated at the new state?), `embedded`, `stability(z)`,
    `real_boundary`, `imaginary_boundary`, `error_order`.

    >>> import odelab as ol
    >>> ralston = ol.Method("RALSTON", order=2, a=[[], ["2/3"]], b=["1/4", "3/4"])
    >>> ralston.c, round(ralston.real_boundary, 6)
    ((Fraction(0, 1), Fraction(2, 3)), 2.0)
    >>> ol.Method("WRONG", order=2, a=[[], ["2/3"]], b=["1/2", "1/2"])
    Traceback (most recent call last):
    ValueError: ...
    """

    name: str
    order: int
    a: Sequence
    b: Sequence
    b_low: Sequence | None = None
    order_low: int = 0
    dense: Sequence | None = None
    extra: Sequence = ()
    b_lowest: Sequence | None = None
    order_lowest: int = 0
    about: str = ""
    c: Sequence = dataclasses.field(default=(), repr=False)

    def __post_init__(self):
        stages = len(self.b)
        exact = tuple(lower_part(i, stages, tuple(map(Fraction, row))) for i, row in enumerate(self.a))
        if len(exact) != stages or any(len(row) != i for i, row in enumerate(exact)):
            raise ValueError(
                f"`a` of {self.name} must have {stages} rows, row i with i entries (an explicit method's lower "
                f"triangle), got rows of {[len(row) for row in exact]}."
            )
        keep = functools.partial(object.__setattr__, self)
        keep("a", exact)
        keep("b", tuple(map(Fraction, self.b)))
        sums = tuple(sum(row, Fraction(0)) for row in exact)
        for i, (given, total) in enumerate(zip(map(Fraction, self.c), sums, strict=False)):
            if abs(given - total) > ROUNDING:
                raise ValueError(f"`c` of {self.name} disagrees with row {i} of `a`: {given} against the sum {total}.")
        keep("c", sums)
        trees.check_orders(self, "order")
        self._check("b", self.b, self.order)
        for row, order in (("b_low", "order_low"), ("b_lowest", "order_lowest")):
            if getattr(self, row) is not None:
                keep(row, tuple(map(Fraction, getattr(self, row))))
                if len(getattr(self, row)) != stages:
                    raise ValueError(
                        f"`{row}` of {self.name} must have {stages} entries like `b`, got {len(getattr(self, row))}."
                    )
                trees.check_orders(self, order)
                self._check(row, getattr(self, row), getattr(self, order))
                trees.check_estimate(self, row, [x - y for x, y in zip(self.b, getattr(self, row), strict=True)])
        self._keep_extension(keep)

    law = "pi42"  # the law of step size where the user names none
    is_explicit = has_graph = repeats_at_once = True

    @functools.cached_property
    def step(self):
        """One attempt, as `odelab.core.integrate` takes it."""
        return self.step_of()

    def step_of(self, factor=None, substitute=None, where=core.where):
        return core.rk_step_of(core.combine, self.tableau)

    def coefficients_inside(self, combine, rhs, params, t, u, h, u_new, stages):
        stages = extension.finish_stages(combine, rhs, params, self, t, u, h, u_new, stages)
        return [h * combine(row.tolist(), stages, len(row)) for row in extension.weights(self).T]

    @functools.cached_property
    def twin_stages(self):
        last, times = self.stages - 1, self.tableau.c
        twins = [i for i in range(1, last) if times[i] == times[last]]
        return (twins[-1], last) if twins and self.fsal else None

    def one_step(self, rhs, params, t, u, h):
        """The state after a step of size h from u."""
        return self.step(rhs, params, t, u, rhs(t, u, params), h, h)[0]

    def _keep_extension(self, keep):
        ends = self.stages + (0 if self.fsal else 1)  # the stages and the slope at the new state
        keep("extra", tuple(tuple(map(Fraction, row)) for row in self.extra))
        if any(len(row) != ends + i for i, row in enumerate(self.extra)):
            raise ValueError(
                f"`extra` of {self.name} needs rows of {ends}, {ends + 1}, ... entries, got "
                f"{[len(row) for row in self.extra]}."
            )
        if self.dense is None:
            return
        rows = self.dense if isinstance(self.dense[0], tuple | list) else (self.dense,)
        keep("dense", tuple(tuple(map(Fraction, row)) for row in rows))
        if any(len(row) != ends + len(self.extra) for row in self.dense):
            raise ValueError(
                f"`dense` of {self.name} needs one weight per stage, one for the slope at the new state, and one per "
                f"row of `extra`: {ends + len(self.extra)}, got {[len(row) for row in self.dense]}."
            )
        found, allowed = extension.defects(self), 10 * ROUNDING  # the float sums here are long
        trees.check(self, "dense", found, extension.order(self), "the extension", allowed)

    def _check(self, row, weights, order):
        # In floats, because exact fractions would take a tenth of the time of `import odelab` and are not needed.
        a, weights = np.array(self.square, dtype=float), np.array(weights, dtype=float)
        trees.check(self, row, trees.defects(a, weights, order), order)

    @property
    def stages(self) -> int:
        return len(self.b)

    @property
    def embedded(self) -> bool:
        return self.b_low is not None

    @functools.cached_property
    def square(self) -> tuple:
        """`a` padded with zeros to stages x stages."""
        return tuple((*row, *(Fraction(0),) * (self.stages - len(row))) for row in self.a)

    @functools.cached_property
    def fsal(self) -> bool:
        """First same as last: is the last stage evaluated at the new state?"""
        return self.stages > 1 and self.a[-1] == self.b[:-1] and self.b[-1] == 0

    @functools.cached_property
    def e(self) -> tuple:
        """The weights b - b_low, a row for each error estimate; a row of zeros without an embedded method."""
        lower = [row for row in (self.b_low, self.b_lowest) if row is not None]
        return tuple(tuple(x - y for x, y in zip(self.b, low, strict=True)) for low in lower or [self.b])

    @property
    def error_order(self) -> int:
        """k: the error estimate is proportional to h^k; a pair of estimates counts as first^2 / second."""
        if self.b_lowest is not None:
            return 2 * (self.order_low + 1) - (self.order_lowest + 1)
        return min(self.order, self.order_low) + 1

    @functools.cached_property
    def tableau(self) -> core.Tableau:
        """The coefficients as `odelab.core.rk_step` takes them: square rows of Python floats."""
        rows = tuple(tuple(map(float, row)) for row in self.square)
        e = tuple(tuple(map(float, row)) for row in self.e)
        return core.Tableau(rows, tuple(map(float, self.b)), e, tuple(map(float, self.c)), self.embedded, self.fsal)

    @functools.cached_property
    def extra_floats(self) -> tuple:
        """(row of `a`, time) of each stage the continuous extension adds to those of the step."""
        return tuple((tuple(map(float, row)), float(sum(row))) for row in self.extra)

    @functools.cached_property
    def stability_polynomial(self) -> tuple:
        """R(z) = 1 + sum_j z^(j+1) b A^j 1, lowest power first."""
        coefficients = [Fraction(1)]
        powers = [Fraction(1)] * self.stages
        for _ in range(self.stages):
            coefficients.append(sum((x * y for x, y in zip(self.b, powers, strict=True)), Fraction(0)))
            powers = [sum((x * y for x, y in zip(row, powers, strict=True) if x), Fraction(0)) for row in self.square]
        while coefficients[-1] == 0:
            coefficients.pop()
        return tuple(coefficients)

    def stability(self, z):
        """R(z), the factor by which one step multiplies the solution of u' = lambda u, where z = h lambda."""
        return np.polynomial.polynomial.polyval(z, [float(x) for x in self.stability_polynomial])

    @functools.cached_property
    def real_boundary(self) -> float:
        """The largest x with |R| <= 1 on all of [-x, 0]."""
        return self._boundary(lambda i, j: (-1) ** (i + j))

    @functools.cached_property
    def imaginary_boundary(self) -> float:
        """The largest y with |R(i y')| <= 1 up to y; 0 when the axis is left at once."""
        return self._boundary(lambda i, j: (1, 0, -1, 0)[(i - j) % 4])

    def _boundary(self, turn) -> float:
        """Where |R|^2 - 1 along a ray first turns positive; turn(i, j) is the ray's z^i conj(z)^j."""
        excess = [Fraction(-1)] + [Fraction(0)] * (2 * len(self.stability_polynomial) - 2)
        size = [abs(x) for x in excess]
        for i, x in enumerate(self.stability_polynomial):
            for j, y in enumerate(self.stability_polynomial):
                excess[i + j] += turn(i, j) * x * y
                size[i + j] += abs(x * y)
        # Terms that the order conditions make zero may be left with the rounding error of decimal coefficients.
        terms = [float(x) if abs(x) > ROUNDING * whole else 0.0 for x, whole in zip(excess, size, strict=True)]
        roots = np.polynomial.polynomial.polyroots(np.trim_zeros(terms))
        crossings = np.sort(roots[(np.abs(roots.imag) < 1e-9) & (roots.real > 1e-9)].real)
        edges = np.concatenate([[0.0], crossings, [2.0 * crossings[-1] + 1.0 if crossings.size else 1.0]])
        for left, right in itertools.pairwise(edges):
            if np.polynomial.polynomial.polyval(0.5 * (left + right), terms) > 0:
                return float(left)
        return float("inf")

    def __repr__(self):
        lower = [str(order) for order in (self.order_low, self.order_lowest) if order]
        pair = f"{self.order}({','.join(lower)})" if lower else f"{self.order}"
        return f"{self.name}, order {pair}, {self.stages} stages"


def lower_part(i: int, stages: int, row: tuple) -> tuple:
    """Row i of a tableau; of a square one without the zeros on and above the diagonal."""
    return row[:i] if len(row) == stages and not any(row[i:]) else row
