"""POLLU: 20 species and 25 reactions of an air pollution model."""

import functools

import numpy as np

from odelab.problem import Invariant, Problem
from odelab.problems.common.reference_values import references
from odelab.problems.common.support import number

# reactants -> products, by the species' numbers; each reaction runs at its rate times the product of its reactants
REACTIONS = """
1 -> 2 3,  2 4 -> 1,   5 2 -> 1 6,  7 -> 5 5 8,  7 -> 8,     6 7 -> 5 8,   9 -> 5 8 10,  6 9 -> 11,    2 11 -> 1 10 12,
1 11 -> 13,  13 -> 1 11,  2 10 -> 1 14,  14 -> 5 7,  1 6 -> 15,  3 -> 4,  4 -> 16,  4 -> 3,  16 -> 6 6,
16 -> 3,   6 17 -> 5 18,  19 -> 2,   19 -> 1 3,  1 4 -> 19,  1 19 -> 20,   20 -> 1 19
"""
RATES = (
    *(0.35, 26.6, 1.23e4, 8.6e-4, 8.2e-4, 1.5e4, 1.3e-4, 2.4e4, 1.65e4, 9e3),
    *(0.022, 1.2e4, 1.88, 1.63e4, 4.8e6, 3.5e-4, 0.0175, 1e8, 4.44e11, 1240.0),
    *(2.1, 5.78, 0.0474, 1780.0, 3.12),
)
START = {2: 0.2, 4: 0.04, 7: 0.1, 8: 0.3, 9: 0.01, 17: 0.007}  # the other species start at 0
CARBON = {7: 1, 8: 1, 9: 2, 10: 1, 11: 2, 12: 1, 13: 2, 14: 1}
NITROGEN = {1: 1, 2: 1, 13: 1, 15: 1, 19: 1, 20: 2}
SULPHUR = {17: 1, 18: 1}


def pollu_rhs(t, u, params):
    y1, y2, y3, y4, y5, y6, y7, _, y9, y10, y11, _, y13, y14, _, y16, y17, _, y19, y20 = u
    k1, k2, k3, k4, k5, k6, k7, k8, k9, k10, k11, k12, k13 = params[:13]
    k14, k15, k16, k17, k18, k19, k20, k21, k22, k23, k24, k25 = params[13:]
    r1 = k1 * y1
    r2 = k2 * y2 * y4
    r3 = k3 * y5 * y2
    r4 = k4 * y7
    r5 = k5 * y7
    r6 = k6 * y7 * y6
    r7 = k7 * y9
    r8 = k8 * y9 * y6
    r9 = k9 * y11 * y2
    r10 = k10 * y11 * y1
    r11 = k11 * y13
    r12 = k12 * y10 * y2
    r13 = k13 * y14
    r14 = k14 * y1 * y6
    r15 = k15 * y3
    r16 = k16 * y4
    r17 = k17 * y4
    r18 = k18 * y16
    r19 = k19 * y16
    r20 = k20 * y17 * y6
    r21 = k21 * y19
    r22 = k22 * y19
    r23 = k23 * y1 * y4
    r24 = k24 * y19 * y1
    r25 = k25 * y20
    return (
        r2 + r3 + r9 + r11 + r12 + r22 + r25 - r1 - r10 - r14 - r23 - r24,
        r1 + r21 - r2 - r3 - r9 - r12,
        r1 + r17 + r19 + r22 - r15,
        r15 - r2 - r16 - r17 - r23,
        2.0 * r4 + r6 + r7 + r13 + r20 - r3,
        r3 + 2.0 * r18 - r6 - r8 - r14 - r20,
        r13 - r4 - r5 - r6,
        r4 + r5 + r6 + r7,
        -r7 - r8,
        r7 + r9 - r12,
        r8 + r11 - r9 - r10,
        r9,
        r10 - r11,
        r12 - r13,
        r14,
        r16 - r18 - r19,
        -r20,
        r20,
        r23 + r25 - r21 - r22 - r24,
        r24 - r25,
    )


def species(side: str) -> list[int]:
    """Indices, counted from 0, of the species named on one side of a reaction."""
    return [int(word) - 1 for word in side.split()]


def pollu_jacobian(t, u, params):
    matrix = np.zeros((20, 20))
    for reaction, rate in zip(REACTIONS.split(","), params, strict=True):
        reactants, products = (species(side) for side in reaction.split("->"))
        for place, column in enumerate(reactants):
            others = reactants[:place] + reactants[place + 1 :]
            derivative = rate * np.prod(u[others])
            for row in reactants:
                matrix[row, column] -= derivative
            for row in products:
                matrix[row, column] += derivative
    return matrix


def atoms(weights: dict[int, int], t, u, params):
    """The number of atoms where species i, counted from 1, holds `weights[i]` of them."""
    return sum(weight * u[i - 1] for i, weight in weights.items())


def pollu(rates=RATES) -> Problem:
    """POLLU, air pollution: 25 reactions of 20 species.

    rates    the 25 reaction rates, which are the parameters; those of the literature by default

    Returns a `Problem` on (0, 60) minutes, with the numbers of carbon, nitrogen and sulphur atoms as invariants.

    >>> import odelab as ol
    >>> ol.problems.pollu().size
    20
    """
    params = tuple(number("rates", rate) for rate in rates)
    if len(params) != len(RATES):
        raise ValueError(f"`rates` must hold {len(RATES)} numbers, one per reaction, got {len(params)}.")
    return Problem(
        pollu_rhs,
        [START.get(i, 0.0) for i in range(1, 21)],
        (0.0, 60.0),
        params,
        jacobian=pollu_jacobian,
        invariants=(
            Invariant("carbon: y7 + y8 + 2 y9 + y10 + 2 y11 + y12 + 2 y13 + y14", functools.partial(atoms, CARBON)),
            Invariant("nitrogen: y1 + y2 + y13 + y15 + y19 + 2 y20", functools.partial(atoms, NITROGEN)),
            Invariant("sulphur: y17 + y18", functools.partial(atoms, SULPHUR)),
        ),
        references=references("pollu", params == RATES),
        name="pollu",
        about="J. G. Verwer, Gauss-Seidel iteration for stiff ODEs from chemical kinetics, SIAM J. Sci. Comput. 15 "
        "(1994) 1243-1250; POLLU of the IVP test set. Minutes and ppm. Its linear invariants follow from the "
        "reactions; the names carbon, nitrogen and sulphur are our reading of them.",
    )
