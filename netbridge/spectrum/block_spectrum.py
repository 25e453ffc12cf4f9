"""`block_spectrum`: the eigenvalues of a residual block's Jacobian, exact where the block is made of ReLUs.

Block-level Stiffness Analysis of Residual Networks (2023) takes the Jacobian of "the block" without saying whether the
branch or the whole is meant, so both are here. A block that changes the shape has no eigenvalues, though that paper's
tables list them: its singular values are given instead.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

import odelab
from netbridge.common.preservation import keep_generators
from netbridge.spectrum.anatomy import Anatomy, anatomy
from netbridge.spectrum.autodiff import differentiated_spectrum, exact_attention, jacobian_operator, tangent
from netbridge.spectrum.chain import Convolution, is_reducible
from netbridge.spectrum.reduction import (
    Gate,
    LinearMap,
    frobenius_norm,
    linearise,
    multiply,
    reduce_chain,
    reduced_matrix,
    reduced_operator,
    whole_operator,
)

PARTS = ("residual", "increment", "block")
VALUES = ("auto", "full", "extremes")
LIVE, FROZEN = "live", "frozen"
FULL_REDUCED = 8192  # "auto" finds all eigenvalues of a reduced matrix up to here: a minute or two


@keep_generators()
def block_spectrum(
    block: nn.Module,
    x,
    part: str = "residual",
    values: str = "auto",
    gate="live",
    dtype: torch.dtype | None = None,
    k: int = 6,
    zero_tolerance: float | None = None,
    conditions: bool = True,
):
    """Find the eigenvalues of a residual block's Jacobian at one state.

    Branches of convolutions, normalisations and ReLUs are reduced to their active units, exactly; with live gates that
    look at the slope only (all of netbridge's but StepNet's) too. Other blocks are differentiated automatically. A
    block that changes the shape of its input has no eigenvalues; its singular values are given instead.

    block           a residual block, ours or anybody's; it is left as it was
    x               one state of the block, (C, h, w) or (1, C, h, w), such as `nb.block_states` gives
    part            "residual" (default): the branch f, before any step size; "increment": h(x) f(x), whose
                    eigenvalues are the h lambda of a step of Euler's method; "block": the whole map,
                    project(shortcut(x) + h(x) f(x)). In somebody else's block f and h are those of `nb.trace`:
                    constant factors are step sizes. Where such a block makes several steps, as a transformer's
                    does, "residual" and "increment" are both block(x) - x
    values          "full": all eigenvalues; "extremes": `k` at each end, from products with vectors; "auto" (default):
                    all of them where that takes a minute or two
    gate            the step size h of part="increment" and "block": "live" (default) differentiates an attention module
                    too; "frozen" holds h at its value here; or h itself, a number or a tensor that broadcasts over the
                    slope. A controller with a memory (DIA) starts with none
    dtype           torch.float64 (default) or torch.float32, which is two to four times faster
    k               eigenvalues at each end for values="extremes"; 6
    zero_tolerance  |Re| up to this counts as zero; by default what rounding may have made of a zero, and nothing for a
                    reduced matrix in single precision, whose zeros are known exactly
    conditions      whether condition numbers are computed, as in `odelab.spectrum`

    Returns an `odelab` Spectrum: `values`, `max_re`, `min_re`, `si`, `stiffness_index`, the fractions `negative`,
    `zero` and `positive`, `non_normality`, `message`. Raises ValueError for more than one state, for a state that is
    not finite, and where a full Jacobian would not fit into memory.

    >>> import netbridge as nb, torch
    >>> _ = torch.manual_seed(0)
    >>> net = nb.resnet(depth=14).eval()
    >>> states = nb.block_states(net, torch.rand(1, 3, 16, 16))
    >>> name = "stages.1.blocks.1"
    >>> spectrum = nb.block_spectrum(net.get_submodule(name), states[name])
    >>> spectrum.n, spectrum.how
    (2048, 'dense')
    >>> round(spectrum.negative + spectrum.zero + spectrum.positive, 12)
    1.0
    """
    check(block, part, values)
    x = checked_state(block, x, dtype)
    parts = anatomy(block, x)
    with torch.no_grad(), exact_attention():
        J = relu_jacobian(parts, x, part, gate)
    if J is None:
        projected = part == "block" and parts.final_relu
        with exact_attention():
            function = mapping(parts, x, part, gate)
        return differentiated_spectrum(function, x, projected, values, zero_tolerance, k, conditions)
    cycle = reduce_chain(J)
    if zero_tolerance is None and x.dtype == torch.float32:
        zero_tolerance = 0.0  # its zeros are known; a tolerance would count small values as zeros
    if (values == "extremes" and cycle.size) or (values == "auto" and cycle.size > FULL_REDUCED):
        return odelab.spectrum(
            reduced_operator(cycle), "extremes", zero_tolerance, k, cycle.known, cycle.shift, conditions=conditions
        )
    matrix = torch.from_numpy(reduced_matrix(cycle)).to(x.device)
    frobenius = frobenius_norm(J)
    return odelab.spectrum(
        matrix, "full", zero_tolerance, k, cycle.known, cycle.shift, frobenius=frobenius, conditions=conditions
    )


@keep_generators()
def block_operator(block: nn.Module, x, part: str = "residual", gate="live", dtype: torch.dtype | None = None):
    """The whole Jacobian of a residual block at one state, as products with vectors: for norms and other spectra.

    Eigenvalues of a block come cheaper from `block_spectrum`, which reduces the Jacobian to its active units. The
    reduction keeps eigenvalues and nothing else, so what depends on more is taken from this operator.

    block       a residual block, ours or anybody's; it is left as it was
    x           one state, (C, h, w) or (1, C, h, w)
    part, gate  as in `block_spectrum`
    dtype       float64 by default, or float32 for speed

    Returns an `odelab.JacobianOperator` with `matvec` and `rmatvec`; `odelab.log_norm`, `odelab.soderlind` and
    `odelab.spectrum` take it, and so does scipy.sparse.linalg.

    >>> import netbridge as nb, odelab as ol, torch
    >>> _ = torch.manual_seed(0)
    >>> block = nb.resnet(depth=14).eval().blocks[1]
    >>> J = nb.block_operator(block, torch.rand(16, 8, 8))
    >>> J.shape
    (1024, 1024)
    >>> bool(ol.log_norm(J) >= nb.block_spectrum(block, torch.rand(16, 8, 8)).min_re)
    True
    """
    check(block, part, "auto")
    x = checked_state(block, x, dtype)
    parts = anatomy(block, x)
    with torch.no_grad(), exact_attention():
        J = relu_jacobian(parts, x, part, gate)
    if J is not None and not any(isinstance(factor, Gate) for factor in J.factors):
        return whole_operator(J)
    with exact_attention():
        function = mapping(parts, x, part, gate)
    return jacobian_operator(function, x)


def relu_jacobian(parts: Anatomy, x: torch.Tensor, part: str, gate) -> LinearMap | None:
    """The Jacobian as a product of convolutions and diagonals, or None where the block is not made of ReLUs."""
    if parts.layers is None or not parts.identity or not is_reducible(parts.layers):
        return None
    if not any(isinstance(layer, Convolution) for layer in parts.layers):
        return None
    factors, slope = linearise(parts.layers, x)
    if slope.shape != x.shape:
        return None
    if part == "residual":
        return LinearMap(factors, tuple(x.shape[1:]))
    h = step_size(parts, x, slope, gate)
    if parts.live and isinstance(gate, str) and gate == LIVE:
        if parts.size_of is None or sees_state(parts, x, slope):
            return None
        factors.append(gate_factor(parts, x, slope))
    elif bool((h != 1).any()):
        multiply(factors, h[0])
    whole = part == "block"
    alive = ((x + h * slope) > 0).to(x.dtype)[0] if whole and parts.final_relu else None
    return LinearMap(factors, tuple(x.shape[1:]), whole, alive)


def step_size(parts: Anatomy, x, slope, gate) -> torch.Tensor:
    """h at this state, or the one that was given, as large as the slope."""
    h = gate
    if isinstance(gate, str):
        h = 1.0 if parts.size_at is None else parts.size_at(x)
    try:
        h = torch.as_tensor(h, dtype=slope.dtype, device=slope.device).expand(slope.shape)
        if not bool(h.isfinite().all()):
            raise TypeError("it holds NaN or infinity")
        return h
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"`gate` must be {LIVE!r}, {FROZEN!r}, or a step size that broadcasts over {tuple(slope.shape)}: {error}."
        ) from None


def sees_state(parts: Anatomy, x, slope) -> bool:
    """Does the step size depend on the state itself, and not only on the slope?"""
    direction = torch.randn(x.shape, generator=torch.Generator().manual_seed(0), dtype=x.dtype).to(x.device)
    change = tangent(lambda u: parts.size_of(u, slope), x, direction)
    return bool(change.count_nonzero())


def gate_factor(parts: Anatomy, x, slope) -> Gate:
    def increment(f):
        return parts.size_of(x, f) * f

    return Gate(lambda v: tangent(increment, slope, v[None])[0], tuple(slope.shape[1:]), slope.device)


def mapping(parts: Anatomy, x, part: str, gate) -> Callable:
    """The map whose Jacobian is asked for, from (1, ...) to (1, ...)."""
    if part == "residual":
        return parts.slope()
    if isinstance(gate, str) and (gate == LIVE or not parts.live):
        if part == "block":
            return parts.whole
        if parts.increment is not None:
            return parts.increment
        if parts.size_at is None:
            return parts.branch
        if parts.live:
            return lambda u: parts.size_at(u) * parts.branch(u)
        with torch.no_grad():
            held = parts.size_at(x)  # the same at every state
        return lambda u: held * parts.branch(u)
    if parts.increment is not None or (part == "block" and parts.shortcut is None):
        raise ValueError(
            f"`gate` must be {LIVE!r} for this block, whose step size cannot be told apart: {parts.reason}."
        )
    with torch.no_grad():
        h = step_size(parts, x, parts.branch(x.clone()), gate)
    if part == "increment":
        return lambda u: h * parts.branch(u)
    project = torch.relu if parts.final_relu else lambda u: u
    return lambda u: project(parts.shortcut(u) + h * parts.branch(u))


def check(block, part, values):
    if not isinstance(block, nn.Module):
        raise TypeError(f"`block` must be a torch module, a residual block, got {type(block).__name__}.")
    if part not in PARTS:
        raise ValueError(f"`part` must be one of {PARTS}, got {part!r}.")
    if values not in VALUES:
        raise ValueError(f"`values` must be one of {VALUES}, got {values!r}.")


def checked_state(block: nn.Module, x, dtype) -> torch.Tensor:
    """One state (1, ...) in the precision asked for, on the block's device."""
    if isinstance(x, np.ndarray):
        x = torch.from_numpy(x)
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"`x` must be a tensor or an array, one state of the block, got {type(x).__name__}.")
    channels = [module.in_channels for module in block.modules() if isinstance(module, nn.Conv2d)]
    if x.ndim == 3 and channels and (len(x) != 1 or 1 in channels):  # else tokens (1, T, C), which may be convolved too
        x = x[None]
    if x.ndim < 2 or len(x) != 1:
        raise ValueError(f"`x` must be one state, (1, ...), got shape {tuple(x.shape)}; take a batch one by one.")
    like = next(block.parameters(), x)
    if dtype is None:
        dtype = torch.float32 if like.device.type == "mps" else torch.float64
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"`dtype` must be torch.float32 or torch.float64, got {dtype}.")
    x = x.detach().to(like.device, dtype)
    if not bool(x.isfinite().all()):
        raise ValueError("`x` must be finite, it holds NaN or infinity.")
    return x
