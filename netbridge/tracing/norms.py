"""Norms of feature maps, taken in one pass over the memory of a map; in a plain step they are taken while it is added.

A recorder (`netbridge.tracing.recorder`) takes them in the forward pass, so that no map has to be kept.
"""

import functools
import logging
import math
from typing import Any

import numpy as np
import torch

from odelab.arrays import norm

log = logging.getLogger("netbridge")

LARGE = 1 << 20  # numbers in a map from which the compiled loop is worth its compiler
THREADS = 2  # of torch; more of them are faster than one loop
PIECE, SHORTEST = 1024, 32  # longest and shortest piece: each piece is summed alone, which keeps rounding small
PORTION = 1 << 18  # numbers converted at a time from half precision; they fit into the cache of a core


def plain_norms(x: torch.Tensor) -> torch.Tensor:
    """The norms of short pieces of every sample, (N, pieces), whose norm is ||x||: in at least single precision.

    As fast as in one go, and the rounding error stays near one unit.
    """
    if x.is_complex():
        x = as_real(x)
    if x.dtype not in (torch.float32, torch.float64):
        if x.device.type != "cpu":
            return torch.linalg.vector_norm(x.flatten(1), dim=1, keepdim=True, dtype=torch.float32)
        return torch.cat([plain_norms(part.float()) for part in x.split(max(1, PORTION // numbers(x)))])
    dense = x.is_contiguous()
    if not dense and x.ndim == 4:
        dense = x.is_contiguous(memory_format=torch.channels_last)
        x = x.permute(0, 2, 3, 1)
    length = math.gcd(numbers(x), PIECE)
    if length < SHORTEST or not dense:
        return torch.linalg.vector_norm(x.flatten(1), dim=1, keepdim=True)
    return torch.linalg.vector_norm(x.view(x.shape[0], -1, length), dim=2)


def as_real(x: torch.Tensor) -> torch.Tensor:
    """Real and imaginary parts as one more axis: their norm is that of the complex numbers."""
    return torch.view_as_real(x.resolve_conj())


def numbers(x: torch.Tensor) -> int:
    """How many numbers one sample of the batch holds."""
    return x.numel() // x.shape[0]


def careful_norms(x: torch.Tensor) -> torch.Tensor:
    """The same by odelab's norm, which is slower but rescales numbers whose squares would over- or underflow."""
    x = as_real(x) if x.is_complex() else x
    return norm(x.double() if x.device.type != "mps" else x.float(), tuple(range(1, x.ndim)))[:, None]


def differences(before: torch.Tensor, after: torch.Tensor, norms) -> torch.Tensor:
    """||after - before|| per sample, a few samples at a time, so that no third feature map is needed."""
    size = max(1, PORTION * 4 // numbers(before))
    pairs = zip(before.split(size), after.split(size), strict=True)
    return torch.cat([norms(b.to(torch.promote_types(b.dtype, torch.float32)) - a) for a, b in pairs])


# A plain Euler step of a post-activation block, measured, in one loop: u and f are read once and the sum written once.
# torch takes four operations and seven passes over a map for that, this loop three passes: on one or two threads a
# traced ResNet-164 takes no longer than a plain one. numba compiles it when first needed (a second, then kept on disk);
# for small maps, more threads, other precisions and other devices torch does the work.


def measure_and_add(u, f, state_norms, slope_norms):
    """f = relu(u + f) row by row, with ||u|| and ||f|| as they were."""
    samples, numbers = u.shape
    for i in range(samples):
        state = slope = 0.0
        for start in range(0, numbers, PIECE):
            before, after = u[i, start : start + PIECE], f[i, start : start + PIECE]
            a = b = np.float32(0.0)
            for j in range(len(before)):
                x, y = before[j], after[j]
                a += x * x
                b += y * y
                z = x + y
                after[j] = np.float32(0.0) if z <= np.float32(0.0) else z  # NaN stays NaN
            state += a  # type: ignore[assignment]  # a sum of single precision joins one of double
            slope += b  # type: ignore[assignment]
        state_norms[i, 0] = math.sqrt(state)
        slope_norms[i, 0] = math.sqrt(slope)


@functools.cache
def compile_loop():
    """The loop compiled, or None. Sums may be reordered, which is all that vector instructions need."""
    try:
        from numba import njit

        options: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "contract"}, "error_model": "numpy"}
        try:
            return njit(cache=True, **options)(measure_and_add)
        except RuntimeError:  # no place to keep it
            return njit(**options)(measure_and_add)
    except ImportError as error:
        log.info("no compiled kernel for traces: %s", error)
        return None


def advance_compiled(state: torch.Tensor, slope: torch.Tensor):
    """(||u||, ||f||), each (N, 1), the slope's memory then holding relu(u + f); None where torch should do it."""
    if state.numel() < LARGE or torch.get_num_threads() > THREADS or state.stride() != slope.stride():
        return None
    u, f = rows_of(state), rows_of(slope)
    if u is None or f is None or compile_loop() is None:
        return None
    norms = np.empty((len(u), 1), np.float32), np.empty((len(u), 1), np.float32)
    compile_loop()(u, f, *norms)
    return tuple(map(torch.from_numpy, norms))


def rows_of(x: torch.Tensor) -> np.ndarray | None:
    """A map as the array (N, numbers) that lies in memory."""
    if x.dtype is not torch.float32 or x.device.type != "cpu" or x.requires_grad:
        return None
    if x.ndim == 4 and not x.is_contiguous():
        x = x.permute(0, 2, 3, 1)
    return x.flatten(1).numpy() if x.is_contiguous() else None
