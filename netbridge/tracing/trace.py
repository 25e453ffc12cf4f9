"""`nb.trace`: the stiffness of every block of a residual network, for every image, in one forward pass.

The story in order: batches come from whatever holds them (`batches`), a way to observe the network is chosen (`ours`,
or `netbridge.foreign` for other people's), norms are taken while each batch passes (`passes`, `recorder`), the `record`
holds what came out, and the network is put back as it was (`preserve`).
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack, overload

import torch
from torch import nn

from netbridge.common.batches import (
    BATCH,
    Feeder,
    Samples,
    Tuned,
    batches_of,
    check_dimensions,
    length,
    run,
    to_network,
)
from netbridge.common.preservation import preserve, unwrap
from netbridge.foreign.blocks import OtherAxis, foreign_tracer_of
from netbridge.foreign.choices import Choices, Factors
from netbridge.model.plain import Plain
from netbridge.progress import report_to
from netbridge.recording.record import INCREMENT, SLOPE, Record, Records
from netbridge.tracing.ours import SolverTracer, network_inside
from netbridge.tracing.passes import Passes
from netbridge.tracing.trajectories import Trajectories, trajectories_of

Kind = Literal["slope", "increment"]
Progress = bool | Callable[[int, int | None], object] | None


class Options(TypedDict, total=False):
    """The arguments of `trace` that do not decide what it returns."""

    tune: bool
    batch_size: int | None
    progress: Progress
    outputs: bool
    on_bad: Literal["raise", "nan"]
    call: Callable | None
    factors: Factors | None
    stage: Sequence[int] | Mapping[str, int] | None
    first: Sequence[bool] | Mapping[str, bool] | None
    batch_axis: int | None
    steps: Sequence[str] | None


@overload
def trace(
    net: nn.Module,
    images,
    of: Kind | None = None,
    blocks=None,
    keep: Literal[False] = False,
    **options: Unpack[Options],
) -> Record: ...


@overload
def trace(
    net: nn.Module, images, of: Sequence[Kind], blocks=None, keep: Literal[False] = False, **options: Unpack[Options]
) -> Records: ...


@overload
def trace(
    net: nn.Module,
    images,
    of: Kind | Sequence[Kind] | None = None,
    blocks=None,
    *,
    keep: Literal[True],
    **options: Unpack[Options],
) -> Trajectories: ...


def trace(
    net,
    images,
    of=None,
    blocks=None,
    keep=False,
    tune=False,
    batch_size=None,
    progress=None,
    outputs=False,
    on_bad="raise",
    call=None,
    factors=None,
    stage=None,
    first=None,
    batch_axis=None,
    steps=None,
):
    """Measure the stiffness index (NSI) of every image at every residual block of a network, in one forward pass.

    The network may be one of this library or anybody's; it is run in evaluation mode, without gradients, and is
    afterwards what it was before, with every buffer, cache, mode and hook, and so are the random generators. No feature
    map is kept unless `keep` asks for it. In somebody else's network whatever multiplies a branch is its step size.

    net         the network, a torch module
    images      a tensor or array (N, ...), a DataLoader, or an iterable of batches, of (images, labels) or of
                dictionaries; of the latter what the network's forward has arguments for is given to it by name
    of          which index: "slope", ||f|| / ||x|| with the branch f before step size and projection; "increment",
                ||x' - x|| / ||x||; a tuple of both for both from one pass; None (the default) takes the slope where
                the branches can be seen, else the increment
    blocks      names of blocks, modules, or a class of modules, where the blocks are not found by themselves
    keep        whether to keep the feature maps, default False
    tune        whether to set the allocator (`nb.tune_allocator`), memory format and batch size, default False
    batch_size  images per pass; by default 128 of a tensor, and the batches of a loader as they come
    progress    True for a bar on a terminal, or a function of (images done, images in all or None)
    outputs     whether to keep what the network returns (its first tensor), default False
    on_bad      "raise" (the default) ends with an error where an index is not defined, because a state is zero or a
                number is not finite; "nan" puts NaN there, and TNS is then NaN for that image
    call        how to call the network on a batch, call(net, batch), where net(batch) is not enough; the batch is what
                `images` yields, with its tensors where the network is
    factors     {where: what}, of the products formed in a module or on a line of code: "slope" makes them a part of the
                slope, "left" or "right" makes that argument the step size; or factors(module, line), which returns one
                of these, or None for the rule. None: the rule of docs/tracing.md
    stage       the stage of every step, or {name: stage} for some; None: as found
    first       whether each step opens a stage (the first is not counted), or {name: bool} for some; None: as found
    batch_axis  along which axis of its inputs the network has the samples; None: the first, or the second where torch's
                own layers say so (batch_first=False) and rows of the first depend on each other
    steps       names of steps or lines of sums ("model.py:41") that are taken, and no others; None: all that are found

    Returns a `Record`; for a tuple of kinds, `Records` with one record of each kind; with keep=True, `Trajectories`
    with the record as `.record`. A record's `step_sizes` are the mean step sizes, its `outputs` the network's. Raises
    ValueError where no residual block can be seen, where an index is not defined, or where a batch cannot be used.

    >>> import torch, netbridge as nb
    >>> _ = torch.manual_seed(0)
    >>> net, images = nb.resnet(14, controller="se"), torch.randn(4, 3, 16, 16)
    >>> record = nb.trace(net, images)
    >>> record
    Record(4 images, 6 blocks in 3 stages, of='slope')
    >>> slope, increment = both = nb.trace(net, images, of=("slope", "increment"), outputs=True)
    >>> both.step_sizes.shape, both.outputs.shape
    ((4, 6), (4, 10))
    """
    kinds: Any = kinds_of(of)
    check(net, on_bad)
    net = unwrap(net)
    feeder = Feeder(net, batch_size, tune)
    choices, samples = Choices(factors, stage, first, steps), Samples(call, batch_axis)
    passes: Any = None
    with contextlib.ExitStack() as stack:
        stack.enter_context(preserve(net))
        batches, total = batches_of(images, net, call)  # a loader draws a number when it is asked for its batches
        report = stack.enter_context(report_to(progress, "trace", total))
        # Not inference mode: layers and controllers may cache a tensor, which it would spoil for training.
        stack.enter_context(torch.no_grad())
        if tune:
            stack.enter_context(Tuned(net))
        for whole in batches:
            if passes is None:
                tracer: Any = tracer_of(net, samples, whole, kinds, blocks, choices)
                kinds = kinds or ((SLOPE if SLOPE in tracer.sees else INCREMENT),)
                passes = Passes(tracer, kinds, keep, outputs, on_bad)
            one_tensor = total is not None and length(whole) == total
            total = length(samples.in_front(whole)) if one_tensor else total
            for batch in feeder.cut(samples.in_front(whole), whole=not one_tensor):
                passes.add(batch)
                report(passes.done, total)
    if passes is None:
        raise ValueError("`images` has no batch to trace.")
    records = passes.records()
    record = Records(records) if of is not None and not isinstance(of, str) else records[0]
    return trajectories_of(passes.kept, record) if keep else record


def tracer_of(net: nn.Module, samples: Samples, batch, kinds, blocks, choices: Choices | None = None):
    """The way to observe a network that sees most: ours by its solver, others by watching what they do.

    samples  along which axis they stand; where the network's own layers say that it is another one, it is that
    batch    of which the first images are looked at
    """

    def look():
        return observer_of(net, samples, to_network(net, samples.first(batch, BATCH)), kinds, blocks, wanted)

    wanted = (choices or Choices())._replace(batch_axis=samples.axis)
    try:
        return look()
    except OtherAxis as error:
        says_so = any(getattr(module, "batch_first", None) is False for module in net.modules())
        if samples.axis is not None or not says_so:
            raise
        samples.axis = error.axis
        tracer = look()
        tracer.notes.append(
            f"the samples stand along axis {samples.axis}, as layers with batch_first=False say (batch_axis=0: not)."
        )
        return tracer


def observer_of(net: nn.Module, samples: Samples, batch, kinds, blocks, choices: Choices):
    own = network_inside(net) if blocks is None else None
    if own is not None:
        prefix, network = own
        return SolverTracer(net, samples.call, network, prefix)
    if blocks is None and isinstance(net, Plain) and net.no_step:
        raise ValueError(f"`net` has no residual step, so stiffness index and TNS are not defined: {net.no_step}.")
    try:
        return foreign_tracer_of(net, samples.call, batch, kinds, blocks, choices)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        check_dimensions(net, batch)
        if isinstance(error, TypeError) and "forward()" in str(error) and samples.plain is run:
            raise TypeError(
                f"`net` cannot be called with the images alone: {error}. Say how it is called: "
                "nb.trace(net, [(x, y)], call=lambda net, batch: net(batch[0], batch[1]))."
            ) from error
        raise


def kinds_of(of) -> tuple[str, ...] | None:
    """The kinds of index asked for, None where the choice is left to what can be seen."""
    if of is None:
        return None
    kinds = (of,) if isinstance(of, str) else tuple(of)
    if not kinds or len(set(kinds)) < len(kinds) or not set(kinds) <= {SLOPE, INCREMENT}:
        raise ValueError(f"`of` must be {SLOPE!r}, {INCREMENT!r}, a tuple of both or None, got {of!r}.")
    return kinds


def check(net, on_bad):
    if not isinstance(net, nn.Module):
        raise TypeError(f"`net` must be a torch module, got {type(net).__name__}.")
    if on_bad not in ("raise", "nan"):
        raise ValueError(f'`on_bad` must be "raise" or "nan", got {on_bad!r}.')
