"""What limits a residual block as a step of Euler's method of size 1: the modes that it damps, and those that turn.

Of a mode lambda of u' = h f(u) the step makes 1 + lambda. A mode that decays faster than it turns, |Im| <= -Re, is
what stiffness is about: it shrinks in steps up to -2 Re / |lambda|^2, which lies between 1.4 and 2 over |lambda|. A
mode that rather turns grows in Euler's method at steps far below that, or at any, stiff or not; by how much is said
beside it. Both take the edge of a spectrum on all sides, to two digits.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import nn

import odelab
from netbridge.spectrum.block_spectrum import block_operator
from odelab.stiffness.arnoldi import measure_edge


class EulerLimit(NamedTuple):
    """What limits a block as a step of Euler's method at one state.

    stable_step  the largest step at which no mode grows that decays faster than it turns; a block takes a step of 1
    growth       the factor by which a step of 1 multiplies the mode that it enlarges most, of those that do not grow by
                 themselves; 1 where it enlarges none
    values       eigenvalues at the edge of the spectrum
    settled      whether eigenvalues that were not found cannot change the two numbers by more than two in a hundred
    """

    stable_step: float
    growth: float
    values: np.ndarray
    settled: bool


def euler_limit(block: nn.Module, state: torch.Tensor, part: str = "increment") -> EulerLimit:
    """Measure what limits a block as a step of Euler's method.

    block  a residual block that keeps the shape of its input, ours or anybody's; it is left as it was
    state  one state of it, (1, ...), such as `nb.block_states` gives
    part   "increment": the step as it is, its step size held at its value here; "residual": with a step size of 1

    Raises ValueError for a block that changes the shape.
    """
    operator = block_operator(block, state, part, gate="frozen", dtype=torch.float32)
    if operator.shape[0] != operator.shape[1]:
        raise ValueError("it changes the shape, so that its Jacobian has no eigenvalues")
    edge = measure_edge(operator, limits)
    stable, growth = edge.numbers.tolist()
    return EulerLimit(stable, growth, edge.values, bool(edge.settled.all()))


def limits(values: np.ndarray) -> tuple[float, float]:
    """The largest stable step of these modes, and the growth of the one that grows most in a step of 1."""
    damped = values[np.abs(values.imag) <= -values.real]
    kept = odelab.nongrowing(values)
    return odelab.largest_stable_step(damped, odelab.EULER), float(np.abs(1.0 + kept).max(initial=1.0))
