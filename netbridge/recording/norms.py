"""Norms of feature maps, taken in one pass over the memory of a map; in a plain step they are taken while it is added.

A recorder (`netbridge.recording.recorder`) takes them in the forward pass, so that no map has to be kept.

On a CPU a norm has the same bits on every processor, with any number of threads and in a batch of any size, because the
order of its additions is written out. Eight squares at a time are added in the precision of the map, as a tree of three
levels; their sums are added in double precision, in LANES sums side by side, which a processor with wide vectors adds
at once and another one by one. In single precision the norm is then within 1.8e-7 of the exact one, relative to it,
whatever the numbers: four roundings of 2^-24 in a square, half of that in its root, and the rounding of the norm.
"""

import collections
import concurrent.futures
import functools
import itertools
import logging
import math
import os

import numpy as np
import torch

from odelab.arrays import norm

log = logging.getLogger("netbridge")

LARGE = 1 << 20  # numbers in a map from which the compiled loop is worth its compiler
MANY = 1 << 26  # numbers in all small maps of a process from which it is worth it too: NumPy has lost 20 ms by then
measured: collections.Counter = collections.Counter()  # numbers so far, by how many maps at a time and of which type
THREADS = 2  # of torch; with more of them the samples are shared among as many threads
LANES, BLOCK = 16, 128  # sums side by side, and the numbers that eight squares for each of them take
PIECE, SHORTEST = 1024, 32  # longest and shortest piece of a map that another device sums alone
PORTION = 1 << 18  # numbers converted at a time from half precision; they fit into the cache of a core


def plain_norms(x: torch.Tensor) -> torch.Tensor:
    """The norms of short pieces of every sample, (N, pieces), whose norm is ||x||: in at least single precision.

    On a CPU a sample is one piece. Another device leaves the additions inside a piece to torch.
    """
    if x.is_complex():
        x = as_real(x)
    if x.device.type != "cpu":
        return norms_of_pieces(x)
    if x.dtype not in (torch.float32, torch.float64):
        return torch.cat([plain_norms(part.float()) for part in x.split(max(1, PORTION // numbers(x)))])
    rows = rows_of(x.detach())
    return torch.from_numpy(measure_rows(x.detach().flatten(1).numpy() if rows is None else rows))


def norms_of_pieces(x: torch.Tensor) -> torch.Tensor:
    """The same where the map is not in the memory of the CPU: as fast as in one go, with less rounding."""
    if x.dtype not in (torch.float32, torch.float64):
        return torch.linalg.vector_norm(x.flatten(1), dim=1, keepdim=True, dtype=torch.float32)
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


# The compiled loop. It also adds a plain Euler step of a post-activation block: u and f are read once and the sum is
# written once. torch takes four operations and seven passes over a map for that, this loop three passes: on one or two
# threads a traced ResNet-164 takes no longer than a plain one. numba compiles it for the first large map, or for the
# first of very many small ones (a second, then kept on disk); until then NumPy measures and torch adds, with the same
# result.


def measure(maps, norms):
    """norms[k][i] = ||row i of maps[k]||. Of two maps, the second then becomes relu(first + second)."""
    samples, numbers = maps[0].shape
    whole = numbers // BLOCK * BLOCK
    sums = np.empty((len(maps), LANES))
    for i in range(samples):
        sums[:] = 0.0
        for start in range(0, whole, PIECE):
            end = min(start + PIECE, whole)
            for k in range(len(maps)):
                row, lanes = maps[k][i, start:end], sums[k]
                for block in range(0, end - start, BLOCK):
                    x = row[block : block + BLOCK]
                    for j in range(LANES):
                        # the tree that NumPy builds below: j and j + 64, then j and j + 32, then j and j + 16
                        a = (x[j] * x[j] + x[64 + j] * x[64 + j]) + (x[32 + j] * x[32 + j] + x[96 + j] * x[96 + j])
                        b = (x[16 + j] * x[16 + j] + x[80 + j] * x[80 + j]) + (
                            x[48 + j] * x[48 + j] + x[112 + j] * x[112 + j]
                        )
                        lanes[j] += a + b
            if len(maps) > 1:
                before, after = maps[0][i, start:end], maps[-1][i, start:end]
                for j in range(end - start):
                    z = before[j] + after[j]
                    after[j] = np.float32(0.0) if z <= np.float32(0.0) else z  # NaN stays NaN
        for j in range(whole, numbers):
            for k in range(len(maps)):
                x = maps[k][i, j]
                sums[k, (j - whole) % LANES] += x * x
            if len(maps) > 1:
                z = maps[0][i, j] + maps[-1][i, j]
                maps[-1][i, j] = np.float32(0.0) if z <= np.float32(0.0) else z
        for k in range(len(maps)):
            half = LANES
            while half > 1:
                half //= 2
                for j in range(half):
                    sums[k, j] += sums[k, half + j]
            norms[k][i, 0] = math.sqrt(sums[k, 0])


def measure_by_numpy(u: np.ndarray) -> np.ndarray:
    """The same norms of one map, (N, 1), bit by bit, without a compiler and slower."""
    whole = u.shape[1] // BLOCK * BLOCK
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        squares = u * u
        blocks = squares[:, :whole].reshape(len(u), whole // BLOCK, BLOCK)
        for half in (BLOCK // 2, BLOCK // 4, LANES):
            blocks = blocks[..., :half] + blocks[..., half:]
        sums = np.add.reduce(blocks, axis=1, dtype=np.float64)  # along no contiguous axis: one block after another
        for start in range(whole, u.shape[1], LANES):
            rest = squares[:, start : start + LANES]
            sums[:, : rest.shape[1]] += rest
        for half in (LANES // 2, LANES // 4, LANES // 8, LANES // 16):
            sums = sums[:, :half] + sums[:, half:]
        return np.sqrt(sums).astype(u.dtype)


@functools.cache
def compile_loop():
    """The loop compiled, or None. No sum may be reordered and no product fused with a sum: the bits stay as written."""
    try:
        from numba import njit

        try:
            return njit(cache=True, nogil=True, error_model="numpy")(measure)
        except RuntimeError:  # no place to keep it
            return njit(nogil=True, error_model="numpy")(measure)
    except ImportError as error:
        log.info("no compiled kernel for traces: %s", error)
        return None


def is_worth_compiling(count: int, dtype, numbers: int) -> bool:
    """Should the compiled loop measure `count` maps of so many numbers? Once compiled, it measures small ones too."""
    measured[count, dtype] += numbers if numbers < LARGE else MANY
    return measured[count, dtype] >= MANY and compile_loop() is not None


def run_loop(*maps: np.ndarray) -> tuple[np.ndarray, ...]:
    """Run the compiled loop over all samples, which more than THREADS threads share; the norms of each map, (N, 1)."""
    norms = tuple(np.empty((len(rows), 1), rows.dtype) for rows in maps)
    parts = min(torch.get_num_threads(), len(maps[0]))
    if parts <= THREADS or maps[0].size < LARGE:
        compile_loop()(maps, norms)
        return norms
    ends = [len(maps[0]) * part // parts for part in range(parts + 1)]
    shares = [[tuple(rows[a:b] for rows in arrays) for a, b in itertools.pairwise(ends)] for arrays in (maps, norms)]
    list(workers(parts, os.getpid()).map(compile_loop(), *shares))
    return norms


@functools.cache
def workers(threads: int, process: int) -> concurrent.futures.Executor:
    """So many threads of this process; one that is forked has none of its parent's."""
    return concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix=f"norms-{process}")


def measure_rows(u: np.ndarray) -> np.ndarray:
    """The norms of the rows of one map, (N, 1)."""
    if is_worth_compiling(1, u.dtype, u.size):
        return run_loop(u)[0]
    size = max(1, PORTION // max(1, u.shape[1]))
    return np.concatenate([measure_by_numpy(u[start : start + size]) for start in range(0, len(u), size)])


def advance_compiled(state: torch.Tensor, slope: torch.Tensor):
    """(||u||, ||f||), each (N, 1), the slope's memory then holding relu(u + f); None where torch should do it."""
    if not (state.dtype is slope.dtype is torch.float32 and state.stride() == slope.stride()):
        return None
    u, f = rows_of(state), rows_of(slope)
    if u is None or f is None or not is_worth_compiling(2, u.dtype, u.size):
        return None
    return tuple(map(torch.from_numpy, run_loop(u, f)))


def rows_of(x: torch.Tensor) -> np.ndarray | None:
    """A map as the array (N, numbers) that lies in the memory of the CPU."""
    if x.device.type != "cpu" or x.requires_grad:
        return None
    if x.ndim == 4 and not x.is_contiguous():
        x = x.permute(0, 2, 3, 1)
    return x.flatten(1).numpy() if x.is_contiguous() else None
