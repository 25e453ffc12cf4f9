"""`trace`: the stiffness of every block of a residual network, for every image, in one forward pass."""

import contextlib
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from netbridge.progress import Progress
from netbridge.tracing.batches import Feeder, Tuned, batches_of
from netbridge.tracing.detect import tracer_of
from netbridge.tracing.keeping import Keeper, Trajectories, trajectories
from netbridge.tracing.norms import Recorder
from netbridge.tracing.passes import evaluation, sample_of, unwrapped
from netbridge.tracing.record import INCREMENT, SLOPE, Record


def trace(
    net: nn.Module,
    images,
    of: str | None = None,
    blocks=None,
    keep: bool = False,
    tune: bool = False,
    batch_size: int | None = None,
    progress: bool | Callable | None = None,
) -> Record | Trajectories:
    """NSI of every image at every residual block of `net`, ours or anybody's, as a `Record`; in evaluation mode.

    images      a tensor (N, ...), a DataLoader, or an iterable of batches or of (images, labels)
    of          "slope": ||f|| / ||x||, f the branch before gate and projection; "increment": ||x' - x|| / ||x||; None
                takes the slope where the branches can be seen, else the increment; the record's `of` says which
    blocks      names, modules or a class of modules, where the blocks are not found by themselves
    keep        keep the feature maps: an `odelab.Trajectory` per stage, with the record as `.record`
    tune        set the allocator (`nb.tune_allocator`), choose memory format and batch size
    batch_size  of the passes; 128 for a tensor, the loader's own otherwise
    progress    True for a line on stderr, or a function of (images done, images in all or None)
    """
    check(net, of)
    net = unwrapped(net)
    report = reporter(progress)
    feeder = Feeder(net, batch_size, tune)
    batches, total = batches_of(images)
    rows, kept, tracer, recorder = [], [], None, None
    # Not inference mode: layers and controllers may cache a tensor, which it would spoil for training.
    with evaluation(net), torch.no_grad(), Tuned(net) if tune else contextlib.nullcontext():
        for whole in batches:
            for batch in feeder.cut(whole, whole=total is None or len(whole) != total):
                if tracer is None:
                    tracer = tracer_of(net, sample_of(batch), of, blocks)
                    of = of or (SLOPE if SLOPE in tracer.sees else INCREMENT)
                    recorder = (Keeper if keep else Recorder)(of == INCREMENT)
                rows.append(one_pass(tracer, recorder, batch, sum(map(len, rows))))
                if keep:
                    kept.append(recorder.pass_kept())
                report(sum(map(len, rows)), total)
    if tracer is None:
        raise ValueError("`images` has no batch to trace.")
    places = tracer.places
    record = Record(np.concatenate(rows), places.stage, places.first, places.names, of)
    return trajectories(kept, record) if keep else record


def one_pass(tracer, recorder, batch, done: int) -> np.ndarray:
    """The indices of one batch; taken again with care where norms came near the limits of their precision."""
    recorder.begin()
    tracer(batch, recorder)
    if not recorder.collect() and not recorder.careful:
        recorder.be_careful()
        recorder.begin()
        tracer(batch, recorder)
        recorder.collect()
    nsi = recorder.indices()
    wrong = ~np.isfinite(nsi)
    if wrong.any():
        wrong[:, [k not in recorder.above for k in sorted(recorder.below)]] = False  # no increment across shapes
    if wrong.any():
        image, block = (int(i) for i in np.argwhere(wrong)[0])
        state = float(recorder.state_norms[image, block])
        cause = "its state is zero, so that an index relative to it is not defined" if state == 0 else "not finite"
        raise ValueError(f"`net` at image {done + image}, block {tracer.places.names[block]!r}: {cause}.")
    return nsi


def check(net, of):
    if not isinstance(net, nn.Module):
        raise TypeError(f"`net` must be a torch module, got {type(net).__name__}.")
    if of not in (None, SLOPE, INCREMENT):
        raise ValueError(f"`of` must be {SLOPE!r}, {INCREMENT!r} or None, got {of!r}.")


def reporter(progress) -> Callable:
    """A function of (images done, images in all or None), and nothing to tear down."""
    if progress is None or progress is False:
        return lambda done, total: None
    if callable(progress):
        return progress
    if progress is not True:
        raise TypeError(f"`progress` must be True, or a function of (done, total), got {progress!r}.")
    bars: list[Progress] = []

    def show(done, total):
        if not bars:
            bars.append(Progress("trace", total or 0, "images").__enter__())
        bars[0].advance(done - bars[0].done)
        if done == total:
            bars[0].__exit__()

    return show
