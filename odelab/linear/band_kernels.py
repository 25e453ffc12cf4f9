"""Gaussian elimination of narrow band matrices in compiled code, without pivoting.

LAPACK's banded solver takes several times as long on a narrow band, where elimination is most of the work of a step.
Without pivoting a solution may be wrong. The first solution with each matrix is therefore checked by its residual; if
that is too large, LAPACK solves the system with pivoting.

A matrix is handed over as the band of J: row i holds the entries of row i from `below` columns before the diagonal to
`above` columns behind it, in the order of the unknowns that makes the band narrow. Behind the last row there are as
many rows of zeros as there are diagonals below the main one, so that no loop has to ask where the matrix ends.
"""

import functools
from typing import Any, NamedTuple

import numpy as np

RESIDUAL = 1e-10  # the largest residual accepted of a solution without pivoting, relative to |M| |x| + |b|
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


class Factors(NamedTuple):
    """The result of `factor`, which `backsub` uses; `regular` is false if there is no solution."""

    lu: Any
    pivots: Any
    regular: bool


class CompiledBandSolver:
    """Solves the systems of a `BandedSolver` by kernels that are compiled for its number of diagonals."""

    def __init__(self, pivoted):
        self.pivoted, self.name = pivoted, pivoted.name
        self.order, self.below, self.above = np.array(pivoted.order, dtype=np.int64), pivoted.below, pivoted.above
        self.eliminate, self.substitute, self.residual = kernels(pivoted.below, pivoted.above)

    def suits(self, J) -> bool:
        return self.pivoted.suits(J)

    def factor(self, J, hg) -> "Band":
        place, width = self.pivoted.places(J), self.below + 1 + self.above
        entries = np.zeros((J.shape[0] + self.below, width))
        entries.ravel()[place.row * (width - 1) + self.below + place.column] = J.data
        factors = np.empty_like(entries)
        self.eliminate(entries, float(hg), factors)
        return Band(entries, factors, J, float(hg))

    def backsub(self, factors: "Band", right):
        if factors.pivoted is None:
            x, ordered = np.empty_like(right), np.zeros(len(right) + self.below + self.above)
            self.substitute(factors.factors, self.order, right, ordered, x)
            factors.sound = factors.sound or self.residual(factors.entries, factors.hg, self.order, right, ordered)
            if factors.sound:
                return x
            factors.pivoted = self.pivoted.factor(factors.J, factors.hg)
        return self.pivoted.backsub(factors.pivoted, right)


class Band:
    """A Jacobian as a band, the factors of I - hg J, and whether a solution with them was found to be right."""

    def __init__(self, entries, factors, J, hg):
        self.entries, self.factors, self.J, self.hg = entries, factors, J, hg
        self.sound = False
        self.pivoted: Factors | None = None


@functools.cache
def kernels(below: int, above: int):
    """(eliminate, substitute, residual) for a band of so many diagonals.

    eliminate(J, hg, band)
        fills `band` with the factors of I - hg J: multipliers, reciprocal pivots, and rows divided by their pivots
    substitute(band, order, right, ordered, x)
        fills `x` with the solution, and `ordered` with the same in the order of the band, between `below` and `above`
        zeros
    residual(J, hg, order, right, ordered) -> bool
        does the solution satisfy the system?
    """
    from numba import njit

    found = {}
    texts = {"eliminate": elimination_lines, "substitute": substitution_lines, "residual": check_lines}
    for name, text in texts.items():
        scope = {"RESIDUAL": RESIDUAL}
        exec("\n".join(text(below, above)), scope)
        found[name] = njit(**OPTIONS)(scope[name])
    return tuple(found.values())


def elimination_lines(below: int, above: int) -> list[str]:
    """The text of `eliminate`. Variables hold the rows that a pivot changes: r1_2 is column k + 2 of row k + 1."""

    def row_lines(r: int, row: str, indent: str) -> list[str]:
        entries = (f"{'1.0 ' if c == r else ''}- hg * J[{row}, {below - r + c}]" for c in range(r + above + 1))
        return [f"{indent}r{r}_{c} = {entry}" for c, entry in enumerate(entries)]

    lines = ["def eliminate(J, hg, band):"]
    for r in range(below):
        lines += row_lines(r, str(r), "    ")
    lines += [f"    for k in range(len(J) - {below}):", *row_lines(below, f"k + {below}", "        ")]
    lines += ["        inverse = 1.0 / r0_0", f"        band[k, {below}] = inverse"]
    lines += [f"        band[k, {below + c}] = r0_{c} * inverse" for c in range(1, above + 1)]
    for r in range(1, below + 1):
        lines += [f"        weight = r{r}_0 * inverse", f"        band[k + {r}, {below - r}] = weight"]
        lines += [f"        r{r}_{c} = r{r}_{c} - weight * r0_{c}" for c in range(1, above + 1)]
    for r in range(below):
        lines += [f"        r{r}_{c} = r{r + 1}_{c + 1}" for c in range(r + above + 1)]
    return lines


def substitution_lines(below: int, above: int) -> list[str]:
    """The text of `substitute`. The unknowns found last are held in variables, and subtracted last."""
    earlier = "".join(f" - band[i, {below - r}] * x{r}" for r in range(below, 0, -1))
    later = "".join(f" - band[i, {below + r}] * x{r}" for r in range(above, 0, -1))
    return [
        "def substitute(band, order, right, ordered, x):",
        "    n = len(right)",
        *(f"    x{r} = 0.0" for r in range(1, below + 1)),
        "    for i in range(n):",
        f"        found = right[order[i]]{earlier}",
        f"        ordered[{below} + i] = found * band[i, {below}]",
        *shift_lines(below),
        *(f"    x{r} = 0.0" for r in range(1, above + 1)),
        "    for i in range(n - 1, -1, -1):",
        f"        found = ordered[{below} + i]{later}",
        f"        ordered[{below} + i] = x[order[i]] = found",
        *shift_lines(above),
    ]


def shift_lines(count: int) -> list[str]:
    return [f"        x{r} = {f'x{r - 1}' if r > 1 else 'found'}" for r in range(count, 0, -1)]


def check_lines(below: int, above: int) -> list[str]:
    """The text of `residual`: is the largest component of M x - b small beside |M| |x| + |b|?  NaN makes it false."""
    terms = [f"J[i, {c}] * ordered[i + {c}]" for c in range(below + 1 + above)]
    sizes = [f"abs(J[i, {c}])" for c in range(below + 1 + above)]
    return [
        "def residual(J, hg, order, right, ordered):",
        "    missed, size, reach, wanted = 0.0, 0.0, 0.0, 0.0",
        "    for i in range(len(right)):",
        f"        here, b = ordered[i + {below}], right[order[i]]",
        f"        left = here - hg * ({' + '.join(terms)}) - b",
        "        missed = max(missed, abs(left)) if left == left else left",
        f"        size = max(size, 1.0 + abs(hg) * ({' + '.join(sizes)}))",
        "        reach, wanted = max(reach, abs(here)), max(wanted, abs(b))",
        "        if missed != missed:",
        "            break",
        "    return missed <= RESIDUAL * (size * reach + wanted)",
    ]
