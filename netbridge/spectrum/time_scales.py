"""Time scales of residual blocks: how fast a block's modes are beside how fast its state moves, and Euler's limit.

Of a differential equation neither the spectral radius nor SAI tells what an explicit method costs, and their ratio
does: see `odelab.chi` and the study `switching`. A block is one step of Euler's method of size 1 on u' = h f(u), so it
has the same ratio.
"""

import math

import numpy as np
import torch
from torch import nn

import odelab
from netbridge.common.preservation import keep_generators
from netbridge.spectrum.block_spectrum import block_operator, block_spectrum
from netbridge.spectrum.step_error import field_of
from odelab.stiffness.arnoldi import measure_edge

COLUMNS = ("sai", "rate", "rho", "rho_ng", "growth", "ratio", "moving_ratio", "stable_step")
ROW = np.dtype([(name, "f8") for name in COLUMNS])
GAIN = 0.02  # by how much a mode that only oscillates may grow in a step: Euler's method lets every such mode grow


@keep_generators()
def block_time_scales(
    block: nn.Module, states: torch.Tensor, dtype: torch.dtype = torch.float32, values: str = "auto"
) -> np.ndarray:
    """Measure how fast a block's modes are, how fast its state moves, and their ratio.

    All of it belongs to u' = h f(u), whose Euler step of size 1 is the block; step sizes h that depend on the state
    are held at their values there.

    block   a residual block that keeps the shape of its input, ours or anybody's; it is left as it was
    states  states of the block, (N, ...), such as `nb.block_states` gives
    dtype   the precision of the spectra, torch.float32 (default) or torch.float64
    values  "extremes": the edge of each spectrum, which gives two digits, and NaN for a number that modes which were
            not found might change; "full": all eigenvalues; "auto", the default: all where that takes a minute or two

    Returns a structured array, one row per state, with the columns sai (|h f| / |u|: NSI of the step), rate (|J h f| /
    |h f|, which does not depend on where the origin lies), rho (the spectral radius of J), rho_ng (of the modes that do
    not grow), growth (the largest real part), ratio (rho_ng / sai), moving_ratio (rho_ng / rate), and stable_step (the
    largest step of Euler's method at which no mode grows that should not; a block takes steps of size 1). Raises
    ValueError for a block that changes the shape.

    >>> import netbridge as nb, torch
    >>> _ = torch.manual_seed(0)
    >>> block = nb.resnet(depth=8, widths=(4, 4, 4)).eval().blocks[0]
    >>> scales = nb.block_time_scales(block, torch.rand(2, 4, 8, 8))
    >>> scales.shape, bool((scales["ratio"] == scales["rho_ng"] / scales["sai"]).all())
    ((2,), True)
    """
    if not isinstance(states, torch.Tensor):
        raise TypeError(f"`states` must be a tensor (N, ...), got {type(states).__name__}.")
    rows = np.empty(len(states), dtype=ROW)
    for row, state in zip(rows, states.split(1), strict=True):
        operator = block_operator(block, state, part="increment", gate="frozen")
        if operator.shape[0] != operator.shape[1]:
            raise ValueError(
                f"`block` maps {operator.shape[1]} numbers to {operator.shape[0]}: a block that changes the shape has "
                "no eigenvalues."
            )
        known = None
        if values != "extremes":
            known = block_spectrum(block, state, "increment", values, "frozen", dtype, conditions=False).values
        if known is None:  # a few ends would not hold the modes above and below
            edge = measure_edge(operator, limits)
            scales = np.where(edge.settled, edge.numbers, math.nan)
        else:
            scales = np.array(limits(known))
        slope = increment(block, state)
        size, speed = (float(np.linalg.norm(x)) for x in (state.double().cpu().numpy(), slope))
        row["sai"] = speed / size if size > 0.0 else math.inf if speed > 0.0 else 0.0
        row["rate"] = odelab.motion_rate(operator, slope)
        row["rho"], row["growth"], row["rho_ng"], row["stable_step"] = scales
        for name, pace in (("ratio", "sai"), ("moving_ratio", "rate")):
            row[name] = row["rho_ng"] / row[pace] if row[pace] > 0.0 else math.inf
    return rows


def limits(values: np.ndarray) -> tuple[float, float, float, float]:
    """The columns rho, growth, rho_ng and stable_step of these eigenvalues."""
    stable = odelab.largest_stable_step(values, odelab.EULER, modes="nongrowing", gain=GAIN)
    radius, growth = np.abs(values).max(initial=0.0), values.real.max(initial=-math.inf)
    return float(radius), float(growth), odelab.nongrowing_radius(values), stable


def increment(block: nn.Module, state: torch.Tensor) -> np.ndarray:
    """h f at one state, flat, in double precision."""
    with torch.no_grad():
        return field_of(block, state.double(), "frozen")[1].cpu().numpy().ravel()
