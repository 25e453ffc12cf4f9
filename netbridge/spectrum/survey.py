"""Spectra of many blocks at many images: a table, made in parallel, that goes on where it stopped.

Every row is the work of one block at one state, and depends on nothing else: not on the other rows, on the number of
processes, or on how often the survey was interrupted. So a row found in the cache is the row that would be computed.
"""

import concurrent.futures
import contextlib
import hashlib
import itertools
import json
import multiprocessing
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import filelock
import numpy as np
import torch
from torch import nn

from netbridge.common.batches import Samples, images_of, to_network
from netbridge.common.preservation import keep_generators, preserve
from netbridge.model.block import Block
from netbridge.spectrum.digests import digest_of_block, digest_of_tensor
from netbridge.spectrum.survey_rows import COLUMNS, KEPT, KINDS, has_meaning, measure_states
from netbridge.tracing.states import block_states, blocks_of
from odelab.files import replacing

SCHEMA = 5  # raised when the meaning of a column changes: rows of an older one are computed anew
SCHEMA_OF_OTHERS = 6  # the same, for blocks that are not ours
PORTION = 4  # images that one task of an executor looks at
ROW = np.dtype([("image", "i8"), ("block", "U80"), ("kind", "U10"), *((name, "f8") for name in COLUMNS)])


@keep_generators()
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
    batch_axis: int | None = None,
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
    executor     any concurrent.futures executor, or a Dask client, instead of `workers` processes; of threads one with
                 one thread, as torch.fx changes how all modules of a process are called while it reads one
    cache        a folder that keeps every row under the digests of block and state; None keeps nothing. Several
                 surveys may share it at the same time
    on_progress  called with (rows done, rows in all) as the rows come in
    batch_axis   along which axis of `images`, and of the blocks' states, the samples stand, as in `nb.trace`

    Returns a structured array sorted by image, block and kind, with the columns "image", "block", "kind" and: n,
    max_re, min_re, si, spectral_radius, stiffness_index, negative, zero, positive, zero_tolerance, non_normality,
    residual and converged as `nb.block_spectrum` has them; amplified, the share of eigenvalues whose mode decays in the
    differential equation and grows under a step of size 1; stiff, the share of eigenvalues that are amplified and have
    |Re| > |Im|, of which "extremes" counts those that it has found; stable_step, the largest step of Euler's method at
    which no mode grows that decays, however slowly, which takes all eigenvalues and is NaN for their ends; log_norm,
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
    kinds, samples = checked_kinds(kinds), Samples(axis=batch_axis)
    images = samples.in_front(images_of(images))
    options = {
        "values": values, "gate": gate, "dtype": str(dtype).removeprefix("torch."), "k": k, "rows": rows,
        "schema": SCHEMA,
    }  # fmt: skip
    of_others = {**options, "schema": SCHEMA_OF_OTHERS}
    with preserve(net), torch.no_grad():
        modules = blocks_of(net, to_network(net, samples.in_place(images[:1])), blocks, batch_axis)
    states = [
        {name: samples.in_front(state) for name, state in block_states(net, image, list(modules), batch_axis).items()}
        for image in map(samples.in_place, images.split(1))
    ]
    modules = {name: samples.around(block) for name, block in modules.items()}
    digests = [{name: digest_of_tensor(state) for name, state in one.items()} for one in states]
    shelves = {
        (name, kind): Shelf(cache, block, kind, options if isinstance(block, Block) else of_others)
        for name, block in modules.items()
        for kind in kinds
        if has_meaning(block, states[0][name], kind)
    }
    missing = [
        (name, kind, left)
        for (name, kind), shelf in shelves.items()
        for part in batches(len(images), PORTION)
        if (left := [image for image in part if digests[image][name] not in shelf.rows])
    ]
    work = [
        (modules[name], torch.cat([states[image][name] for image in left]), kind, options)
        for name, kind, left in missing
    ]
    total = len(images) * len(shelves)
    done = total - sum(len(left) for *_, left in missing)
    if on_progress:
        on_progress(done, total)
    try:
        for place, measured in results_of(work, workers, executor):
            name, kind, left = missing[place]
            shelves[name, kind].add([digests[image][name] for image in left], measured)
            done += len(left)
            if on_progress:
                on_progress(done, total)
    finally:  # an interrupt keeps what is done
        for shelf in shelves.values():
            shelf.write()
    table = np.empty(total, ROW)
    for row, (image, (name, kind)) in zip(table, itertools.product(range(len(images)), shelves), strict=True):
        one = shelves[name, kind].rows[digests[image][name]]
        row["image"], row["block"], row["kind"] = image, name, kind
        for column in COLUMNS:
            row[column] = one[column]
    return table


def checked_kinds(kinds) -> tuple[str, ...]:
    """The kinds in the order of the table."""
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"`kinds` may hold {', '.join(map(repr, KINDS))}, got {kind!r}.")
    return tuple(sorted(set(kinds), key=KINDS.index))


def batches(count: int, size: int) -> Iterator[range]:
    """The numbers from 0 to count - 1, at most `size` at a time."""
    for start in range(0, count, size):
        yield range(start, min(start + size, count))


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
