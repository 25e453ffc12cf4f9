"""The sparsity pattern of a Jacobian from few directional derivatives: blocks of columns, divided where they are seen.

Whether a block of columns has an entry in a row is seen from one product with a vector that is zero outside the block.
Blocks that share no row are tried together, as columns are in `odelab.linear.colouring`; then each is divided by four.
A band of a few diagonals takes some sixty products, whatever the number of unknowns.
"""

from collections.abc import Callable

import numpy as np

from odelab.linear.colouring import colour_columns

PARTS = 4  # into which a block is divided
BLOCKS = 32  # at most so many at first


def pattern_of_products(products: Callable, n: int):
    """The pattern of an (n, n) matrix J in compressed columns; None where more than half of its blocks have entries.

    products    (m, n) directions -> (m, n) products of J with each of them; what is not zero, NaN too, is an entry

    The columns of a block have weights at random, so that their entries do not cancel in the sum.
    """
    from scipy.sparse import csc_array

    weights, column = np.random.default_rng(2).uniform(0.5, 1.5, n), np.arange(n)
    width = 1
    while n > BLOCKS * width:
        width *= PARTS
    seen = products(seeds_of(column // width, weights, -(-n // width))) != 0.0
    block, row = np.nonzero(seen)
    while True:
        count = -(-n // width)
        if width <= PARTS and len(row) > n * count / 2:
            return None
        pattern = csc_array((np.ones(len(row)), (row, block)), shape=(n, count))
        if width == 1:
            return pattern
        colour = colour_columns(pattern).colour
        direction = PARTS * colour[column // width] + column // (width // PARTS) % PARTS
        seen = products(seeds_of(direction, weights, PARTS * (colour.max(initial=0) + 1))) != 0.0
        width //= PARTS
        parts = PARTS * block[:, None] + np.arange(PARTS)
        there = seen[PARTS * colour[block][:, None] + np.arange(PARTS), row[:, None]] & (parts * width < n)
        row, block = np.broadcast_to(row[:, None], parts.shape)[there], parts[there]


def seeds_of(direction, weights, m):
    """The directions (m, n): each column's weight in the direction it belongs to."""
    seeds = np.zeros((m, len(weights)))
    seeds[direction, np.arange(len(weights))] = weights
    return seeds
