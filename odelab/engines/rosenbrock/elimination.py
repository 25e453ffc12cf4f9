"""Text that solves linear systems of a known pattern, with a line for each entry and no loops.

M = I - h gamma J is factored without pivoting. The order of elimination is found once; it is chosen so that few entries
beyond those of M become other than zero (little fill). Reciprocals of the pivots are stored, so that solving needs no
division. Pivoting by columns would make an attempt on eight components 2.6 to 2.9 times as long. Instead, the first
solution of every attempt is checked (`residual_lines`): its backward error, row by row, must be near rounding, else
the attempt is rejected. This helps because another step size has other pivots.
"""

from collections.abc import Sequence
from typing import NamedTuple

from odelab.engines.numba.stages import total

LARGEST_RESIDUAL = 1e-10  # relative to the terms of its row; a few times 1e-16 where the factors have not grown


class Elimination(NamedTuple):
    """An order of elimination, and the entries that the factors then have.

    order       the components in the order in which they are eliminated
    entries     for each row in that order, the columns (in the same order) in which the factors have an entry; the
                diagonal is left out
    """

    order: tuple[int, ...]
    entries: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """How many entries the two factors have together."""
        return sum(map(len, self.entries)) + len(self.order)

    @property
    def products(self) -> int:
        """The multiplications and subtractions of a factorisation."""
        right = [sum(j > k for j in row) for k, row in enumerate(self.entries)]
        return sum(len(self.below(k)) * (1 + count) for k, count in enumerate(right))

    def below(self, place: int) -> list[int]:
        """The components whose rows change when the one at `place` is eliminated."""
        return [self.order[i] for i in range(place + 1, len(self.order)) if place in self.entries[i]]


def elimination(rows: Sequence[Sequence[int]]) -> Elimination:
    """An order of little fill for a pattern, found greedily.

    The next component is the one that adds the fewest entries; among those, the one with the fewest multiplications.
    """
    n = len(rows)
    filled = [{*row, i} for i, row in enumerate(rows)]
    left, order = set(range(n)), []
    while left:
        k = min(left, key=lambda k: cost(filled, left, k))
        left.remove(k)
        order.append(k)
        for i in left:
            if k in filled[i]:
                filled[i] |= filled[k] & left
    place = {component: i for i, component in enumerate(order)}
    entries = tuple(tuple(sorted(place[j] for j in filled[i] if j != i)) for i in order)
    return Elimination(tuple(order), entries)


def cost(filled, left, k: int) -> tuple[int, int, int]:
    """(entries that eliminating k next would add, multiplications, k)"""
    below = [i for i in left if i != k and k in filled[i]]
    right = (filled[k] & left) - {k}
    return sum(len(right - filled[i]) for i in below), len(below) * len(right), k


def entry_name(letter: str, i: int, j: int, tag: str) -> str:
    """The name of an entry of J ("j"), of M ("m") or of its factors; i and j are components."""
    return f"{letter}{i}_{j}{tag}"


def matrix_lines(rows, tag: str = "") -> list[str]:
    """M = I - h gamma J, entry by entry, from the entries `j...` of J and `hg`."""
    lines = []
    for i, row in enumerate(rows):
        for j in sorted({*row, i}):
            of_j = f"hg{tag} * {entry_name('j', i, j, tag)}" if j in row else ""
            value = "1.0" if not of_j else f"1.0 - {of_j}" if i == j else f"-({of_j})"
            lines.append(f"{entry_name('m', i, j, tag)} = {value}")
    return lines


def factor_lines(rows, found: Elimination, tag: str = "") -> list[str]:
    """The factors of M: `p...` reciprocal pivots, `l...` multipliers, `w...` what lies right of a pivot, divided by it.

    All of them are named by components. Both factors then have ones on their diagonals, so that solving with them has
    one operation for each unknown that the next one has to wait for, and not two; in a single run of three components
    an attempt takes a fifth less time.
    """
    order = found.order
    now = {(i, j): entry_name("m", i, j, tag) for i, row in enumerate(rows) for j in {*row, i}}
    lines: list[str] = []
    for place, k in enumerate(order):
        lines.append(f"p{k}{tag} = 1.0 / {now[k, k]}")
        right = [order[j] for j in found.entries[place] if j > place]
        lines += [f"{entry_name('w', k, j, tag)} = {now[k, j]} * p{k}{tag}" for j in right]
        for i in found.below(place):
            multiplier = entry_name("l", i, k, tag)
            lines.append(f"{multiplier} = {now[i, k]} * p{k}{tag}")
            for j in right:
                name, before = entry_name("r", i, j, tag), now.get((i, j), "")
                lines.append(f"{name} = {before}{' - ' if before else '-'}{multiplier} * {now[k, j]}")
                now[i, j] = name
    return lines


def solve_lines(found: Elimination, right: str, target: str, tag: str = "") -> list[str]:
    """Lines that solve M target = right; both are names, to which the number of a component is added.

    The unknown that is computed last is subtracted last, because in a single run every operation waits for the one
    before.
    """
    order = found.order
    lines = []
    for place, i in enumerate(order):
        before = "".join(
            f" - {entry_name('l', i, order[k], tag)} * y{order[k]}{tag}" for k in found.entries[place] if k < place
        )
        lines.append(f"y{i}{tag} = {right}{i}{tag}{before}")
    for place in reversed(range(len(order))):
        i = order[place]
        after = "".join(
            f" - {entry_name('w', i, order[j], tag)} * {target}{order[j]}{tag}"
            for j in reversed(found.entries[place])
            if j > place
        )
        lines.append(f"{target}{i}{tag} = y{i}{tag} * p{i}{tag}{after}")
    return lines


def residual_lines(rows, right: str, solution: str, tag: str = "") -> list[str]:
    """Lines for `sound`: does the solution satisfy every row of M x = right as nearly as rounding allows?

    |M x - right| is compared with the sum of the terms that cancel in it (Oettli and Prager's backward error), row by
    row, so that the units of the components do not matter. A residual that is NaN makes `sound` false.
    """
    lines, checks = [], []
    for i, row in enumerate(rows):
        terms = [f"{entry_name('m', i, j, tag)} * {solution}{j}{tag}" for j in sorted({*row, i})]
        left = f"{right}{i}{tag}{''.join(f' - {term}' for term in terms)}"
        sizes = total([f"abs({right}{i}{tag})", *(f"abs({term})" for term in terms)])
        lines += [f"left{i}{tag} = {left}", f"size{i}{tag} = {sizes}"]
        checks.append(f"(abs(left{i}{tag}) <= {LARGEST_RESIDUAL} * size{i}{tag})")
    return [*lines, f"sound{tag} = {' & '.join(checks)}"]
