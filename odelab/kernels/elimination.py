"""An order of elimination with little fill, for linear systems of a known pattern.

M = I - h gamma J is factored without pivoting, straight through, with an operation for each entry and no loops. The
order is found once; it is chosen so that few entries beyond those of M become other than zero (little fill). Pivoting
by columns would make an attempt on eight components 2.6 to 2.9 times as long. Instead, the first solution of every
attempt is checked: its backward error, row by row, must be near rounding, else the attempt is rejected. This helps
because another step size has other pivots.

Where some components do not depend on the others, not even by way of others, M falls into blocks, and only those on its
diagonal are factored: what stands beside them is multiplied with components that are solved already.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

LARGEST_RESIDUAL = 1e-10  # relative to the terms of its row; a few times 1e-16 where the factors have not grown
UNDERFLOW = 1e-290  # a residual below which nothing is said: products of such numbers have lost their digits


class Elimination(NamedTuple):
    """An order of elimination, and the entries that the factors then have.

    order       the components in the order in which they are eliminated
    entries     for each row in that order, the columns (in the same order) in which the factors have an entry; the
                diagonal is left out
    blocks      how many components each block has, in that order; a block needs only those before it
    """

    order: tuple[int, ...]
    entries: tuple[tuple[int, ...], ...]
    blocks: tuple[int, ...]

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
    """An order of little fill for a pattern, found greedily within each block.

    The next component is the one that adds the fewest entries; among those, the one with the fewest multiplications.
    """
    n = len(rows)
    blocks = blocks_of(rows)
    filled: list[set[int]] = [set() for _ in range(n)]
    order = []
    for block in blocks:
        left = set(block)
        for i in block:
            filled[i] = {*rows[i], i} & left
        while left:
            k = min(left, key=lambda k: cost(filled, left, k))
            left.remove(k)
            order.append(k)
            for i in left:
                if k in filled[i]:
                    filled[i] |= filled[k] & left
    place = {component: i for i, component in enumerate(order)}
    entries = tuple(tuple(sorted(place[j] for j in filled[i] if j != i)) for i in order)
    return Elimination(tuple(order), entries, tuple(map(len, blocks)))


def blocks_of(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """The components that depend on each other, together; a block comes behind those that it depends on.

    Of each component the others that it depends on are known as the bits of one whole number.
    """
    n = len(rows)
    needs = [sum(1 << j for j in {*row, i}) for i, row in enumerate(rows)]
    for k in range(n):
        for i in range(n):
            if needs[i] >> k & 1:
                needs[i] |= needs[k]
    blocks: dict[int, list[int]] = {}  # components that depend on each other need the same ones
    for i in sorted(range(n), key=lambda i: needs[i].bit_count()):
        blocks.setdefault(needs[i], []).append(i)
    return list(blocks.values())


def have_places(rows: Sequence[Sequence[int]]) -> bool:
    """Is there a row for each unknown, as `places_of` finds it?"""
    if all(i in row for i, row in enumerate(rows)):
        return True
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import structural_rank

    return structural_rank(csr_array([[float(j in row) for j in range(len(rows))] for row in rows])) == len(rows)


def places_of(rows: Sequence[Sequence[int]]) -> list[int]:
    """For each unknown a row that has an entry in its column; its own wherever that is possible for all."""
    n = len(rows)
    if all(i in row for i, row in enumerate(rows)):
        return list(range(n))
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    places = [(i, j) for i, row in enumerate(rows) for j in row]
    row, column = np.array(places).T
    weights = csr_array((np.where(row == column, 1.0, 2.0), (row, column)), shape=(n, n))
    row, column = min_weight_full_bipartite_matching(weights)
    return row[np.argsort(column)].tolist()


def cost(filled, left, k: int) -> tuple[int, int, int]:
    """(entries that eliminating k next would add, multiplications, k)"""
    below = [i for i in left if i != k and k in filled[i]]
    right = (filled[k] & left) - {k}
    return sum(len(right - filled[i]) for i in below), len(below) * len(right), k
