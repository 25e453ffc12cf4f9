"""Linearly implicit steps on nodes: exact derivatives of the right-hand side, and elimination without pivoting."""

from collections.abc import Callable
from typing import Any

from odelab.graph.arrays import Array
from odelab.graph.derivatives import derivatives
from odelab.graph.forks import joined
from odelab.graph.nodes import Graph, Node, choose
from odelab.graph.ufuncs import total
from odelab.kernels.elimination import LARGEST_RESIDUAL, UNDERFLOW, elimination, places_of
from odelab.methods.interface import StepMethod


def step_and_preparation(
    graph: Graph, method: StepMethod, seen: Callable, mass=None
) -> tuple[Callable, Callable, Callable]:
    """`step` and `prepare` as `odelab.core.integrate` takes them, and a function that tells whether all was solved.

    The third returns the condition that the last factors have solved the first stage, as a node.

    seen    seen(t): the time that the right-hand side is shown at time t, of which it is a function
    mass    an `odelab.mass.Entries`; None where M = I
    """
    made: list[Factors] = []

    def factor(J, hg):
        made.append(Factors(J, hg, rows_of(mass, len(J))))
        return made[-1]

    def substitute(factors, right):
        return factors.solve(right)

    def prepare(t, u, slope, params):
        return slope, *linearised(graph, slope, u, seen(t))

    step = method.step_of(factor, substitute, choose, **({} if mass is None else {"weigh": weigh_of(mass)}))
    return joined(graph, step), joined(graph, prepare), lambda: made[-1].sound


def linearised(graph: Graph, slope, u, t) -> tuple[list[dict[int, Any]], Any]:
    """The rows of J at a state and df/dt, where `t` is the time that the right-hand side is shown."""
    rows = derivatives(graph, list(slope), [*u, t])
    by_time = [row.pop(len(u), 0.0) for row in rows]
    return rows, Array.of(by_time) if any(isinstance(x, Node) for x in by_time) else Nothing()


def weigh_of(mass) -> Callable | None:
    """weigh(x): M x on nodes; None where there is no mass matrix."""

    def weigh(x):
        return Array.of([total([times(m, x[j]) for j, m in row.items()]) for row in rows_of(mass, len(x))])

    return None if mass is None else weigh


def rows_of(mass, n: int) -> list[dict[int, float]]:
    """The rows {column: number} of the mass matrix of an `odelab.mass.Entries`; those of I without one."""
    rows: list[dict[int, float]] = [{} for _ in range(n)]
    for i, j, number in ((k, k, 1.0) for k in range(n)) if mass is None else mass.mass:
        rows[i][j] = number
    return rows


def times(number: float, x):
    """number x, where nothing is multiplied by one."""
    return x if number == 1.0 else number * x


class Nothing:
    """A derivative that is zero at every state: adding a multiple of it changes nothing."""

    __array_ufunc__ = None

    def __mul__(self, other):
        return self

    def __add__(self, other):
        return other

    __rmul__, __radd__ = __mul__, __add__


class Factors:
    """M = I - hg J, eliminated without pivoting in an order of little fill.

    J       the rows of J, each {column: entry}; what is not there is zero at every state
    hg      the step size times gamma
    mass    the rows of a mass matrix in the place of I. A row without an entry on the diagonal changes places with
            others, so that no pivot is zero at every state

    `P` holds reciprocal pivots, `L` multipliers, `W` what lies right of a pivot, divided by it. Both factors then have
    ones on their diagonals, so that solving with them has one operation for each unknown that the next one has to wait
    for, and not two. `sound` is known after the first solution: whether it satisfies every row as nearly as rounding
    allows.
    """

    def __init__(self, J: list[dict[int, Any]], hg, mass: list[dict[int, float]] | None = None):
        units = rows_of(None, len(J)) if mass is None else mass
        both = [sorted({*row, *unit}) for row, unit in zip(J, units, strict=True)]
        self.places = places_of(both)
        self.rows = [both[place] for place in self.places]
        self.order, self.entries, self.blocks = found = elimination([tuple(row) for row in self.rows])
        self.M = {
            (i, j): entry_of_matrix(J[place], units[place], j, hg)
            for i, place in enumerate(self.places)
            for j in self.rows[i]
        }
        now: dict[tuple[int, int], Any] = dict(self.M)
        self.P: dict[int, Any] = {}
        self.L: dict[tuple[int, int], Any] = {}
        self.W: dict[tuple[int, int], Any] = {}
        self.sound: Any = None
        for place, k in enumerate(self.order):
            self.P[k] = 1.0 / now[k, k]
            right = [self.order[j] for j in self.entries[place] if j > place]
            for j in right:
                self.W[k, j] = now[k, j] * self.P[k]
            for i in found.below(place):
                self.L[i, k] = now[i, k] * self.P[k]
                for j in right:
                    term = self.L[i, k] * now[k, j]
                    now[i, j] = now[i, j] - term if (i, j) in now else -term

    def solve(self, right):
        """The solution of M x = right, block after block; the unknown that is computed last is subtracted last."""
        x: dict[int, Any] = {}
        right = [right[place] for place in self.places]
        first = 0
        for count in self.blocks:
            block = range(first, first + count)
            self.solve_block(block, self.without(right, x, block), x)
            first += count
        if self.sound is None:
            self.sound = self.is_solved(right, x)
        return Array.of([x[i] for i in range(len(self.order))])

    def without(self, right, x, block) -> dict[int, Any]:
        """The right side of a block, from which what is known of x is subtracted."""
        left = {}
        for i in (self.order[place] for place in block):
            left[i] = right[i]
            for j in x:  # in the order in which they are computed
                if (i, j) in self.M:
                    left[i] = left[i] - self.M[i, j] * x[j]
        return left

    def solve_block(self, block, right, x):
        """Add the components of a block, whose right side is given, to x."""
        y, order = {}, self.order
        for place in block:
            i = order[place]
            y[i] = right[i]
            for k in self.entries[place]:
                if k < place:
                    y[i] = y[i] - self.L[i, order[k]] * y[order[k]]
        for place in reversed(block):
            i = order[place]
            x[i] = y[i] * self.P[i]
            for j in reversed(self.entries[place]):
                if j > place:
                    x[i] = x[i] - self.W[i, order[j]] * x[order[j]]

    def is_solved(self, right, x):
        """Does x satisfy every row of M x = right as nearly as rounding allows?

        |M x - right| is compared with the sum of the terms that cancel in it (Oettli and Prager's backward error), row
        by row, so that the units of the components do not matter. A residual that is NaN makes it false.
        """
        sound: Any = True
        for i, row in enumerate(self.rows):
            left, sizes = right[i], [abs(right[i])]
            for j in row:
                term = self.M[i, j] * x[j]
                left, sizes = left - term, [*sizes, abs(term)]
            small = abs(left) <= LARGEST_RESIDUAL * total(sizes) + UNDERFLOW
            sound = small if sound is True else sound & small
        return sound


def entry_of_matrix(row: dict[int, Any], unit: dict[int, float], j: int, hg):
    """The entry in column j of a row of I - hg J, or of M - hg J."""
    if j not in row:
        return unit[j]
    of_J = hg * row[j]
    return unit[j] - of_J if j in unit else -of_J


def rejected_unless(sound, errors):
    """The estimates of an attempt, NaN in the first component where its factors have not solved the first stage."""
    error = errors[0].copy()
    error[0] = choose(sound, error[0], float("nan"))
    return [error]
