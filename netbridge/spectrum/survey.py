"""Spectra of many blocks at many images: a table, made in parallel, that goes on where it stopped.

Every row is the work of one block at one state, and depends on nothing else: not on the other rows, on the number of
processes, or on how often the survey was interrupted. So a row found in the cache is the row that would be computed.
"""

import concurrent.futures
import contextlib
import hashlib
import json
import multiprocessing
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import filelock
import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import nn

import odelab
from netbridge.files import replacing
from netbridge.spectrum.anatomy import anatomy
from netbridge.spectrum.block_spectrum import block_operator, block_spectrum
from netbridge.spectrum.digests import digest_of_block, digest_of_tensor
from netbridge.spectrum.slices import slice_spectrum
from netbridge.spectrum.step_error import step_error
from netbridge.tracing.states import block_states, blocks_of
from odelab.stiffness.log_norm import log_norm_and_soderlind

SCHEMA = 4  # raised when the meaning of a column changes: rows of an older one are computed anew
PORTION = 4  # images that one task of an executor looks at
SAME = 1e-4  # two eigenvalues of an iteration this close, relative to the spectral radius, are one
KINDS = ("residual", "increment", "block", "slices", "norms", "error")
COLUMNS = (
    "n", "max_re", "min_re", "si", "spectral_radius", "stiffness_index", "negative", "zero", "positive",
    "zero_tolerance", "non_normality", "residual", "converged", "amplified", "stiff", "stable_step", "log_norm",
    "soderlind", "largest_singular", "alive", "nsi", "step_error",
)  # fmt: skip
ROW = np.dtype([("image", "i8"), ("block", "U80"), ("kind", "U10"), *((name, "f8") for name in COLUMNS)])
KEPT = np.dtype([("state", "S64"), *((name, "f8") for name in COLUMNS)])


def block_survey(
    net: nn.Module,
    images: torch.Tensor,
    kinds: Iterable[str] = ("residual", "block"),
    blocks=None,
    values: str = "auto",
    gate: str = "live",
    dtype: torch.dtype = torch.float32,
    k: int = 6,
    rows: int | None = None,
    workers: int = 1,
    executor=None,
    cache=None,
    on_progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Measure the Jacobians of a network's residual blocks at every image, in parallel and resumably.

    net          a network with residual blocks, ours or anybody's; it is left as it was
    images       a batch (N, ...) as the network takes it; each is looked at alone
    kinds        what to measure: "residual", "increment" and "block" are the parts of `nb.block_spectrum`, "slices" is
                 `nb.slice_spectrum`, "norms" the norms of the whole Jacobian of "increment", "error" is
                 `nb.step_error`. Blocks for which a kind has no meaning (a block that changes the shape has no
                 eigenvalues) have no row of it
    blocks       names of blocks; by default all that `nb.block_states` finds
    values, gate, k     as in `nb.block_spectrum`
    dtype        torch.float32 (default), which is two to four times faster and counts signs of reduced blocks exactly,
                 or torch.float64
    rows         how many output units "slices" looks at; all of them by default
    workers      processes, each with one thread; 1 works in this process
    executor     any concurrent.futures executor, or a Dask client, instead of `workers` processes
    cache        a folder that keeps every row under the digests of block and state; None keeps nothing. Several
                 surveys may share it at the same time
    on_progress  called with (rows done, rows in all) as the rows come in

    Returns a structured array sorted by image, block and kind, with the columns "image", "block", "kind" and: n,
    max_re, min_re, si, spectral_radius, stiffness_index, negative, zero, positive, zero_tolerance, non_normality,
    residual and converged as `nb.block_spectrum` has them; amplified, the share of eigenvalues whose mode decays in the
    differential equation and grows under a step of size 1; stiff, the share of eigenvalues that are amplified and have
    |Re| > |Im|, of which "extremes" counts those that it has found; stable_step, Euler's largest stable step; log_norm,
    soderlind and largest_singular of the whole Jacobian; alive, the share of outputs above zero; nsi of the branch;
    step_error. What a kind does not measure is NaN.

    >>> import netbridge as nb, torch
    >>> _ = torch.manual_seed(0)
    >>> net = nb.resnet(depth=8, widths=(2, 2, 2)).eval()
    >>> table = nb.block_survey(net, torch.rand(2, 3, 8, 8), kinds=("residual",))
    >>> [str(name) for name in table["block"]]  # the blocks that keep the shape, of either image
    ['stages.0.blocks.0', 'stages.0.blocks.0']
    >>> bool((table["max_re"] >= table["min_re"]).all())
    True
    """
    kinds = checked_kinds(kinds)
    options = {
        "values": values, "gate": gate, "dtype": str(dtype).removeprefix("torch."), "k": k, "rows": rows,
        "schema": SCHEMA,
    }  # fmt: skip
    modules = blocks_of(net, images[:1], blocks)
    states = [block_states(net, image, list(modules)) for image in images.split(1)]
    tasks = []
    for name, block in modules.items():
        for kind in kinds:
            if has_meaning(block, states[0][name], kind):
                tasks += [(name, kind, part) for part in batches(range(len(images)), PORTION)]
    total = sum(len(part) for _, _, part in tasks)
    shelves = {(name, kind): Shelf(cache, block, kind, options) for name, block in modules.items() for kind in kinds}
    found: dict[tuple, np.void] = {}
    missing = []
    for name, kind, part in tasks:
        shelf = shelves[name, kind]
        keys = {image: digest_of_tensor(states[image][name]) for image in part}
        known = {image: shelf.rows[key] for image, key in keys.items() if key in shelf.rows}
        found |= {(image, name, kind): row for image, row in known.items()}
        if left := [image for image in part if image not in known]:
            missing.append((name, kind, left, [keys[image] for image in left]))
    if on_progress:
        on_progress(len(found), total)
    work = [
        (modules[name], torch.cat([states[image][name] for image in left]), kind, options)
        for name, kind, left, _ in missing
    ]
    try:
        for place, measured in results_of(work, workers, executor):
            name, kind, left, digests = missing[place]
            shelves[name, kind].add(digests, measured)
            found |= {(image, name, kind): row for image, row in zip(left, measured, strict=True)}
            if on_progress:
                on_progress(len(found), total)
    finally:  # an interrupt keeps what is done
        for shelf in shelves.values():
            shelf.write()
    table = np.empty(len(found), ROW)
    places = {name: place for place, name in enumerate(modules)}
    for row, (image, name, kind) in enumerate(
        sorted(found, key=lambda key: (key[0], places[key[1]], KINDS.index(key[2])))
    ):
        one = found[image, name, kind]
        table[row] = (image, name, kind, *(one[column] for column in COLUMNS))
    return table


def checked_kinds(kinds) -> tuple[str, ...]:
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"`kinds` may hold {', '.join(map(repr, KINDS))}, got {kind!r}.")
    return kinds


def batches(numbers, size: int) -> Iterator[list[int]]:
    numbers = list(numbers)
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]


def has_meaning(block: nn.Module, state: torch.Tensor, kind: str) -> bool:
    """Slices ask for square maps only; everything else for a block that keeps the shape."""
    if kind == "slices":
        return state.ndim == 4 and state.shape[2] == state.shape[3]
    training = block.training
    with torch.no_grad():
        try:
            output = block.eval()(state.clone())
        finally:
            block.train(training)
    return isinstance(output, torch.Tensor) and output.shape == state.shape


def results_of(work: list, workers: int, executor) -> Iterator[tuple[int, np.ndarray]]:
    """(place of the task, its rows) as they are done."""
    if executor is None and workers <= 1:
        for place, arguments in enumerate(work):
            yield place, measure_states(*arguments)
        return
    with contextlib.ExitStack() as stack:
        if executor is None:
            context = multiprocessing.get_context("spawn")  # a fork would inherit torch's threads, and hang
            executor = stack.enter_context(concurrent.futures.ProcessPoolExecutor(workers, mp_context=context))
        elif hasattr(executor, "get_executor"):  # a Dask client
            executor = executor.get_executor()
        futures = {executor.submit(measure_states, *arguments): place for place, arguments in enumerate(work)}
        try:
            for future in concurrent.futures.as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def measure_states(block: nn.Module, states: torch.Tensor, kind: str, options: dict) -> np.ndarray:
    """One row per state. One thread throughout: the bits of a matrix product depend on their number."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            return np.concatenate([measure_state(block, state, kind, options) for state in states.split(1)])
    finally:
        torch.set_num_threads(threads)


def measure_state(block: nn.Module, state: torch.Tensor, kind: str, options: dict) -> np.ndarray:
    row = np.full(1, np.nan, KEPT)
    row["state"] = b""
    others = {"slices": measure_slices, "norms": measure_norms, "error": measure_error}
    measured = others.get(kind, measure_spectrum)
    for name, value in measured(block, state, kind, options).items():
        row[name] = value
    return row


def measure_spectrum(block, state, kind, options) -> dict[str, float]:
    spectrum = block_spectrum(
        block, state, kind, options["values"], options["gate"], getattr(torch, options["dtype"]), options["k"],
        conditions=False,
    )  # fmt: skip
    names: tuple[str, ...] = (
        "n",
        "max_re",
        "min_re",
        "si",
        "spectral_radius",
        "stiffness_index",
        "negative",
        "zero",
        "positive",
    )
    names += ("zero_tolerance", "non_normality", "residual", "converged")
    result = {name: float(getattr(spectrum, name)) for name in names}
    values = spectrum.extremes if spectrum.values is None else spectrum.values
    if kind != "block" and values is not None:  # eigenvalues of the whole block are growth factors of a step, not rates
        result["stable_step"] = odelab.largest_stable_step(values, odelab.EULER)
        if spectrum.values is None:
            values = unique_values(values, SAME * spectrum.spectral_radius)
        amplified = odelab.amplified(values, odelab.EULER)
        stiff = amplified & (np.abs(values.real) > np.abs(values.imag))
        result["stiff"] = float(stiff.sum() / spectrum.n)
        if spectrum.values is not None:
            result["amplified"] = float(amplified.mean())
    return result


def unique_values(values: np.ndarray, apart: float) -> np.ndarray:
    """The values that are further than `apart` from all before them: Arnoldi lists a value once per end it belongs to.

    >>> import numpy as np
    >>> unique_values(np.array([1.0, 1.0 + 1e-9, -2.0]), 1e-6)
    array([ 1., -2.])
    """
    kept: list = []
    for value in values:
        if all(abs(value - other) > apart for other in kept):
            kept.append(value)
    return np.array(kept)


def measure_norms(block, state, kind, options) -> dict[str, float]:
    J = block_operator(block, state, "increment", options["gate"], getattr(torch, options["dtype"]))
    log_norm, soderlind = log_norm_and_soderlind(J)
    return {
        "n": float(J.shape[0]),
        "log_norm": float(log_norm),
        "soderlind": float(soderlind),
        "largest_singular": largest_singular_value(J),
    }


def largest_singular_value(J: odelab.JacobianOperator) -> float:
    from scipy.sparse.linalg import LinearOperator, svds

    map_ = LinearOperator(J.shape, J.matvec, J.rmatvec, dtype=J.dtype)
    start = np.random.default_rng(0).standard_normal(min(J.shape)).astype(J.dtype)
    image = J.matvec(start)
    if len(start) == 1 or not image.any():  # a single unit or a branch of zeros, on which no iteration can start
        return float(np.linalg.norm(image) / np.linalg.norm(start))
    return float(svds(map_, 1, return_singular_vectors=False, v0=start, tol=1e-6)[0])


def measure_slices(block, state, kind, options) -> dict[str, float]:
    found = slice_spectrum(block, state, options["rows"], dtype=getattr(torch, options["dtype"]), gate=options["gate"])
    names = ("max_re", "min_re", "negative", "zero", "positive", "stiffness_index")
    return {"n": float(found.count)} | {name: float(getattr(found, name)) for name in names}


def measure_error(block, state, kind, options) -> dict[str, float]:
    state = state.to(getattr(torch, options["dtype"]))
    parts = anatomy(block, state)
    with torch.no_grad():
        output, slope = parts.whole(state), parts.slope()(state.clone())
    return {
        "step_error": float(step_error(block, state, gate=options["gate"])),
        "alive": float((output > 0).double().mean()),
        "nsi": float(odelab.nsi(state, slope)),
    }


class Shelf:
    """The rows of one block and kind on the disk: one file, read at once and written whole."""

    def __init__(self, cache, block: nn.Module, kind: str, options: dict):
        self.path: Path | None = None
        self.fresh = False
        self.rows: dict[bytes, np.void] = {}
        if cache is not None:
            asked = hashlib.sha256(json.dumps([kind, options], sort_keys=True).encode()).hexdigest()[:12]
            self.path = Path(cache) / f"{digest_of_block(block)[:16]}-{kind}-{asked}.npz"
            self.rows = self.read()

    def read(self) -> dict[bytes, np.void]:
        if self.path is None or not self.path.is_file():
            return {}
        try:
            with np.load(self.path, allow_pickle=False) as file:
                rows = file["rows"]
                if rows.dtype != KEPT or str(file["sum"]) != hashlib.sha256(rows.tobytes()).hexdigest():
                    raise ValueError("its contents do not match their sum")
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            aside = self.path.with_suffix(".damaged")
            self.path.replace(aside)
            print(f"{self.path} is damaged ({error}); it is now {aside.name}, and its rows are computed anew.")
            return {}
        return {row["state"]: row for row in rows}

    def add(self, keys: list[bytes], rows: np.ndarray) -> None:
        for key, row in zip(keys, rows, strict=True):
            row["state"] = key
            self.rows[key] = row
        self.fresh = True
        self.write()

    def write(self) -> None:
        """Writes the file anew, with the rows that another survey has added in the meantime."""
        if self.path is None or not self.fresh:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(self.path.with_suffix(".lock")):
            together = self.read() | self.rows
            rows = np.array([together[key] for key in sorted(together)], KEPT)
            with replacing(self.path) as unfinished, unfinished.open("wb") as file:
                np.savez(file, rows=rows, sum=hashlib.sha256(rows.tobytes()).hexdigest())
        self.fresh = False
