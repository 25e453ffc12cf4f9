"""What Block-level Stiffness Analysis of Residual Networks prints: its tables, and what follows from them."""

import math
from typing import NamedTuple

from scipy import special

# Tables 2, 5 and 8: stiffness index and percentage of eigenvalues with negative real part, by block.
INDEX = {
    18: (-2.28, -5.12, -1.28, -4.04, -1.30, -4.94, -1.28, -12.99),
    34: (-3.34, -5.24, -5.91, -1.10, -6.00, -5.69, -5.29, -1.73, -14.56, -9.47, -10.46, -13.05, -11.26, -1.85, -13.59,
         -16.82),
}  # fmt: skip
PERCENT = {
    18: (2.82, 2.54, 1.96, 4.33, 4.35, 19.73, 22.65, 21.92),
    34: (3.10, 2.81, 2.78, 2.50, 4.78, 4.10, 5.15, 7.83, 11.91, 25.78, 30.69, 33.58, 34.13, 25.56, 25.39, 22.34),
}
OVERALL = {18: (-4.15, 10.04), 34: (-7.84, 15.15), 50: (-35.32, 31.96)}

# Tables 3, 6 and 9: the same by label.
INDEX_BY_LABEL = {
    18: (-4.31, -4.42, -4.02, -4.00, -4.02, -4.10, -4.07, -4.13, -4.15, -4.31),
    34: (-7.82, -7.77, -7.79, -7.88, -7.51, -7.98, -7.79, -8.00, -7.96, -7.84),
    50: (-31.28, -39.61, -32.26, -28.45, -33.27, -34.33, -39.56, -41.05, -37.34, -36.30),
}
PERCENT_BY_LABEL = {
    18: (10.46, 9.71, 10.31, 11.57, 9.80, 10.14, 9.53, 9.20, 9.67, 9.99),
    34: (15.94, 14.12, 15.69, 17.14, 15.31, 15.44, 14.58, 14.36, 14.49, 14.42),
    50: (31.91, 28.23, 32.79, 35.92, 34.14, 36.37, 27.23, 32.17, 27.77, 33.14),
}

# Tables 1, 4 and 7: correlation and p-value of (accuracy, index), (accuracy, percent), (loss, index), (loss, percent).
CORRELATIONS = {
    18: (
        (0.00, 0.83, -0.01, 0.67, 0.01, 0.76, 0.00, 0.87), (0.03, 0.06, -0.01, 0.45, -0.02, 0.19, 0.01, 0.45),
        (-0.01, 0.74, -0.06, 0.00, 0.02, 0.17, 0.06, 0.00), (-0.04, 0.01, -0.10, 0.00, 0.04, 0.03, 0.10, 0.00),
        (0.00, 0.97, -0.14, 0.00, 0.01, 0.68, 0.13, 0.00), (-0.09, 0.00, -0.38, 0.00, 0.08, 0.00, 0.36, 0.00),
        (-0.03, 0.08, -0.18, 0.00, 0.02, 0.34, 0.18, 0.00), (-0.23, 0.00, -0.36, 0.00, 0.21, 0.00, 0.34, 0.00),
    ),
    34: (
        (-0.07, 0.02, -0.01, 0.74, 0.05, 0.09, 0.00, 0.94), (0.02, 0.44, 0.01, 0.79, -0.03, 0.37, -0.01, 0.80),
        (-0.02, 0.42, 0.02, 0.56, 0.02, 0.53, -0.02, 0.54), (-0.01, 0.73, 0.03, 0.39, 0.00, 0.95, -0.02, 0.52),
        (-0.01, 0.82, -0.02, 0.48, -0.01, 0.82, 0.02, 0.59), (0.06, 0.03, 0.00, 0.94, -0.07, 0.03, 0.00, 0.89),
        (0.05, 0.09, -0.12, 0.00, -0.04, 0.17, 0.12, 0.00), (-0.07, 0.02, -0.22, 0.00, 0.04, 0.19, 0.23, 0.00),
        (-0.07, 0.03, -0.26, 0.00, 0.06, 0.05, 0.26, 0.00), (-0.17, 0.00, -0.32, 0.00, 0.17, 0.00, 0.31, 0.00),
        (-0.22, 0.00, -0.31, 0.00, 0.21, 0.00, 0.30, 0.00), (-0.11, 0.00, -0.23, 0.00, 0.10, 0.00, 0.22, 0.00),
        (0.05, 0.08, -0.21, 0.00, -0.05, 0.12, 0.21, 0.00), (0.04, 0.18, -0.05, 0.08, -0.02, 0.41, 0.08, 0.01),
        (-0.23, 0.00, -0.34, 0.00, 0.21, 0.00, 0.33, 0.00), (-0.20, 0.00, -0.38, 0.00, 0.18, 0.00, 0.35, 0.00),
    ),
    50: ((-0.27, 0.00, 0.20, 0.00, 0.25, 0.00, -0.15, 0.00),),
}  # fmt: skip
CORRELATIONS_OVERALL = {  # of Tables 1 and 4, over images and blocks
    18: (-0.01, 0.15, -0.07, 0.00, 0.01, 0.19, 0.07, 0.00),
    34: (-0.01, 0.11, -0.05, 0.00, 0.01, 0.13, 0.05, 0.00),
}

# Tables 10 and 11: elements of the Jacobian and what the paper calls its eigenvalues, by block.
MILLION = 1 << 20
ELEMENTS = {
    18: tuple(n * MILLION for n in (256, 256, 128, 64, 32, 16, 8, 4)),
    34: tuple(n * MILLION for n in (256, 256, 256, 128, 64, 64, 64, 32, 16, 16, 16, 16, 16, 8, 4, 4)),
}
EIGENVALUES = {
    18: tuple(n * MILLION for n in (16, 16, 8, 8, 4, 4, 2, 2)),
    34: tuple(n * MILLION for n in (16, 16, 16, 8, 8, 8, 8, 4, 4, 4, 4, 4, 4, 2, 2, 2)),
}
BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}  # a stage
BOTTLENECKS = {50: (3, 4, 6, 3)}  # a stage; of ResNet-50 the paper looks at the last block alone
CHANNELS, HEIGHT = 64, 16  # of the first stage: a 3x3 stem, then a max-pool


class Shape(NamedTuple):
    """A block of the paper's networks: channels and height of the maps that enter, of those that leave."""

    channels_in: int
    height_in: int
    channels_out: int
    height_out: int

    @property
    def elements(self) -> int:
        return self.channels_out * self.height_out**2 * self.channels_in * self.height_in**2

    @property
    def square(self) -> bool:
        return (self.channels_in, self.height_in) == (self.channels_out, self.height_out)

    @property
    def eigenvalues(self) -> int | None:
        """Of the Jacobian; None where it is not square."""
        return self.channels_in * self.height_in**2 if self.square else None


def shapes(depth: int) -> list[Shape]:
    """The blocks of the ResNet of this depth, in order."""
    found, channels, height = [], CHANNELS, HEIGHT
    for stage, count in enumerate(BLOCKS[depth]):
        for place in range(count):
            opens = stage > 0 and place == 0
            wider, lower = (2 * channels, height // 2) if opens else (channels, height)
            found.append(Shape(channels, height, wider, lower))
            channels, height = wider, lower
    return found


def depth_of(net) -> int | None:
    """18, 34 or 50 where a network has the blocks and channels of the paper's; None otherwise."""
    widths = tuple(CHANNELS * 2**stage for stage in range(4))
    known = BOTTLENECKS if net.config["bottleneck"] else BLOCKS
    for depth, blocks in known.items():
        if tuple(net.config["blocks"]) == blocks and tuple(net.config["widths"]) == widths:
            return depth
    return None


def printed_block(depth: int | None, number: int) -> tuple[float, float] | None:
    """Index and percentage that Tables 2, 5 and 8 print of a block, counted from 1; None where they print none."""
    if depth in INDEX:
        return INDEX[depth][number - 1], PERCENT[depth][number - 1]
    return OVERALL[depth] if depth in BOTTLENECKS and number == sum(BOTTLENECKS[depth]) else None


def sample_sizes(pairs, decimals: int = 2, largest: int = 20_000) -> tuple[int, int] | None:
    """The smallest and the largest number of images that rounded pairs (r, p) of a correlation allow, taken together.

    A correlation r over n images has p through Student's t; r and p are printed to `decimals`, so each pair allows a
    range of n. None where no n fits all pairs.
    """
    half = 0.5 * 10.0**-decimals
    low, high = 3, largest
    for r, p in pairs:
        fits = [n for n in candidates(low, high) if is_reachable(abs(r), half, p, n)]
        if not fits:
            return None
        low, high = refine_ends(low, high, lambda n, r=r, p=p: is_reachable(abs(r), half, p, n), fits)
    return low, high


def candidates(low: int, high: int) -> list[int]:
    """Numbers from `low` to `high`, closer together where they are small."""
    step = max(1, (high - low) // 400)
    return [*range(low, high, step), high]


def refine_ends(low, high, fits, found) -> tuple[int, int]:
    """The ends of the range in which `fits` holds, to the unit."""
    first, last = found[0], found[-1]
    while first > low and fits(first - 1):
        first -= 1
    while last < high and fits(last + 1):
        last += 1
    return first, last


def is_reachable(r: float, half: float, p: float, n: int) -> bool:
    """Can a correlation that rounds to r have, over n images, a p-value that rounds to p?"""
    strongest, weakest = p_value(r + half, n), p_value(max(0.0, r - half), n)
    return strongest <= p + half and weakest >= p - half


def p_value(r: float, n: int) -> float:
    """The p-value of a correlation r over n pairs."""
    t = r * math.sqrt((n - 2) / max(1e-12, 1.0 - r * r))
    return float(2.0 * special.stdtr(n - 2, -t))  # Student's distribution; scipy.stats takes a hundred times as long
