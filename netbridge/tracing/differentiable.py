"""Stiffness with gradients: the indices of a forward pass as tensors, and TNS as a term of a loss.

`nb.trace` measures and keeps no gradients; here the same observation of the same steps keeps them, so that the index of
every block, and with `ol.tns` the total neural stiffness, can be part of what is minimised. A network of netbridge
reports its steps by itself. Anybody else's is first run without gradients, in the mode it is in, so that its residual
steps are known; then the pass that is asked for is watched, and every norm is taken as its map goes by.
"""

import contextlib
import itertools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

import odelab as ol
from netbridge.common.batches import Samples
from netbridge.common.nested_tensors import map_tensors, tensors
from netbridge.common.preservation import Saved, preserve, run_uncompiled, save_generators, unwrap
from netbridge.foreign.tracers import ATTEMPTS, OTHER_WAY
from netbridge.recording.record import INCREMENT, SLOPE
from netbridge.recording.recorder import Recorder
from netbridge.tracing.ours import SolverTracer
from netbridge.tracing.trace import tracer_of
from odelab.arrays import norm


def nsi_with_gradients(
    net: nn.Module,
    images: torch.Tensor,
    of: str = "slope",
    blocks=None,
    call: Callable | None = None,
    batch_axis: int | None = None,
) -> tuple[Any, torch.Tensor, torch.Tensor]:
    """A forward pass with the neural stiffness index of every counted block, all with gradients.

    net         a network, of netbridge or anybody's, in training or in evaluation mode; it is used as it stands.
                Anybody else's is looked at first, in two passes without gradients, of which nothing stays: its buffers
                and the random generators are put back. In a training loop `nb.stiffness_term` looks only once
    images      a batch (N, ...), prepared as the network expects it
    of          "slope": ||f(x_t)|| / ||x_t||, the branch before its step size; "increment": ||x_{t+1} - x_t|| / ||x_t||
    blocks      names of blocks, modules, or a class of modules, as in `nb.trace`
    call        call(net, images), where net(images) is not enough
    batch_axis  along which axis of `images` the samples stand, as in `nb.trace`

    Returns (outputs, nsi, stage): what the network answers; a tensor (N, T) in at least single precision, for the T
    blocks that `nb.trace` counts (none that opens a stage); the stage of each of them, as `ol.tns` takes it. Raises
    ValueError where there is no residual step, where steps lie inside torch.utils.checkpoint, and where an index is
    not defined.

    >>> import torch, netbridge as nb, odelab as ol
    >>> net, images = nb.resnet(20), torch.randn(4, 3, 32, 32)
    >>> outputs, nsi, stage = nb.nsi_with_gradients(net, images)
    >>> ol.tns(nsi, stage).mean().backward()
    >>> nsi.shape, stage.tolist(), net.stages[0].blocks[1].branch.conv1.weight.grad is not None
    (torch.Size([4, 6]), [0, 0, 1, 1, 2, 2], True)
    """
    net = unwrap(net)
    with run_uncompiled():
        return Observer(net, Samples(call, batch_axis), of, blocks)(images)


@contextlib.contextmanager
def stiffness_term(
    net: nn.Module,
    weight: float,
    of: str = "slope",
    mu: str = "sample",
    blocks=None,
    batch_axis: int | None = None,
) -> Iterator[nn.Module]:
    """A context manager: within it, training also minimises `weight` times the mean TNS of each batch.

    The outputs of the network do not change by a bit; their backward pass adds the gradient of the term. So any
    training loop whose loss depends on the outputs minimises loss + weight * TNS, while the loss that it logs is
    without the term.

    net         a network, of netbridge or anybody's; in evaluation mode, or without gradients, nothing is added
    weight      of the mean TNS of the images of a batch: positive to make the network less stiff, negative to make it
                more so, 0 for no term. Where the gradients of P parts of a batch are added up, give weight / P
    of          "slope" or "increment", the index
    mu          "sample" or "dataset", what it is compared with, as `ol.tns` takes it; the data set is here the batch
    blocks      names of blocks, modules, or a class of modules, as in `nb.trace`
    batch_axis  along which axis of its inputs the network has the samples, as in `nb.trace`

    Raises ValueError as `nb.nsi_with_gradients` does, and for a compiled or parallel network, of which the module
    inside is to be given: a term is added where that module runs as it was written.

    >>> import torch, netbridge as nb
    >>> net, images = nb.resnet(20), torch.randn(4, 3, 32, 32)
    >>> with nb.stiffness_term(net, 0.1):
    ...     net(images).square().mean().backward()
    """
    inside, plain, own = unwrap(net), net.forward, vars(net).get("forward")
    if inside is not net or net._compiled_call_impl is not None:
        raise ValueError(
            f"`net` is compiled or parallel ({type(net).__name__}): give the module inside (net.module of a parallel "
            "one), and train it uncompiled."
        )
    samples = Samples(lambda _, batch: plain(*batch[0], **batch[1]), batch_axis)
    observe = Observer(net, samples, of, blocks)

    def forward(module, *args, **kwargs):
        if module is not net:  # a copy made within the context, such as a running average
            return type(module).forward(module, *args, **kwargs)
        if not (net.training and torch.is_grad_enabled()):
            return plain(*args, **kwargs)
        outputs, nsi, stage = observe((args, kwargs))
        return carry(outputs, weight * ol.tns(nsi, stage, mu).mean())

    if not weight:
        yield net
        return
    net.forward = types.MethodType(forward, net)
    try:
        yield net
    finally:
        del net.forward
        if own is not None:
            net.forward = own


def carry(outputs, term: torch.Tensor):
    """The outputs of a network, whose backward pass also differentiates a term."""
    carriers = {id(tensor): tensor for tensor in tensors(outputs) if tensor.requires_grad}
    if not carriers or not term.requires_grad:
        return outputs
    new = dict(zip(carriers, CarryTerm.apply(term, *carriers.values()), strict=True))
    return map_tensors(outputs, lambda tensor: new.get(id(tensor), tensor))


class CarryTerm(torch.autograd.Function):
    """Returns outputs unchanged; their backward pass also differentiates a term, as if it were added to the loss."""

    @staticmethod
    def forward(ctx, term, *outputs):
        ctx.like = term
        ctx.set_materialize_grads(False)
        return tuple(output.clone() for output in outputs)

    @staticmethod
    def backward(ctx, *gradients):
        return torch.ones_like(ctx.like), *gradients


class Observer:
    """Runs a network and returns (outputs, nsi, stage) with gradients; what it has learned of the network it keeps.

    net      the network, not wrapped
    samples  how it is called, and along which axis it has the samples
    of       the index, "slope" or "increment"
    blocks   the blocks whose steps are observed; None: all steps
    """

    def __init__(self, net: nn.Module, samples: Samples, of: str, blocks):
        if of not in (SLOPE, INCREMENT):
            raise ValueError(f"`of` must be {SLOPE!r} or {INCREMENT!r}, got {of!r}.")
        if not isinstance(net, nn.Module):
            raise TypeError(f"`net` must be a torch module, got {type(net).__name__}.")
        self.net, self.samples, self.of, self.blocks = net, samples, of, blocks
        self.tracer: Any = None
        self.recorder = GradientRecorder(of)

    def __call__(self, batch):
        if self.tracer is None:
            self.look(batch)
        recorder, tracer = self.recorder, self.tracer
        outputs = self.run(self.samples.in_front(batch))
        late = recorder.overwritten()
        if late:
            raise ValueError(
                f"`net` overwrites the {late[0][0]} of block {tracer.places.names[late[0][1]]!r} in this pass, which "
                "it did not do in its first one: the gradient of its norm is lost."
            )
        return outputs, *self.indices()

    def look(self, batch):
        """Finds how the network is observed, and what of it is overwritten after its norm was taken."""
        with preserve(self.net, evaluation=False), torch.no_grad():
            batch = map_tensors(batch, torch.clone)
            self.tracer = tracer_of(self.net, self.samples, batch, (self.of,), self.blocks)
            if not isinstance(self.tracer, SolverTracer):
                self.tracer(self.samples.in_front(batch), self.recorder)
                self.recorder.copied = set(self.recorder.overwritten())

    def run(self, batch):
        """The pass, and where it goes another way than the one before, once more: all is put back in between."""
        self.recorder.begin()
        if isinstance(self.tracer, SolverTracer):
            return self.tracer(batch, self.recorder)
        saved, restore = Saved(self.net, evaluation=False), save_generators()
        for tensor in tensors(batch):
            saved.save_tensor(tensor)
        for _ in range(ATTEMPTS):
            self.tracer.call = self.once()
            try:
                return self.tracer(batch, self.recorder)
            except SecondRun:
                saved.restore()
                restore()
        raise ValueError(OTHER_WAY.format(f"{ATTEMPTS} passes of one batch went different ways"))

    def once(self) -> Callable:
        """The call for one pass: a tracer that wants to take it again is stopped, because the first one has effects."""
        runs = itertools.count()

        def run_once(net, batch):
            if next(runs):
                raise SecondRun
            return self.samples.call(net, batch)

        return run_once

    def indices(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(nsi (N, T), stage (T,)) of the blocks that the pass before has recorded and a trace counts."""
        places, below, above = self.tracer.places, self.recorder.below, self.recorder.above[self.of]
        found = {}
        for k, name in enumerate(places.names):
            if not places.first[k]:
                try:
                    found[k] = ol.nsi(below[k][:, None], above[k][:, None])  # the norm of a norm is itself
                except ValueError as error:
                    raise ValueError(f"the index of block {name!r} is not defined: {error}") from None
        self.recorder.begin()  # so that no graph outlives the pass
        if not found:
            raise ValueError(
                "no counted block was seen: `net` has one block in every stage, and none that opens a stage is "
                "counted, or another observation has taken the place of this one."
            )
        return torch.stack([*found.values()], 1), torch.tensor([places.stage[k] for k in found])


class SecondRun(Exception):
    """A pass went another way than it was expected to."""


class GradientRecorder(Recorder):
    """The norms of one pass with their gradients.

    Autograd remembers each map for the gradient of its norm. A map that the network overwrites later is copied.

    of  the index, "slope" or "increment"
    """

    keeps = True  # no step is added in the memory of its slope

    def __init__(self, of: str):
        super().__init__((of,))
        self.copied: set[tuple[str, int]] = set()

    @property
    def needs_states(self):
        return self.increments

    def begin(self):
        super().begin()
        self.maps: list[tuple[tuple[str, int], torch.Tensor, int]] = []  # what norms were taken of, in which version

    def overwritten(self) -> list[tuple[str, int]]:
        """Which maps the network has changed since their norm was taken."""
        return [key for key, x, version in self.maps if x._version != version]

    def norm_of(self, kind: str, k: int, x: torch.Tensor) -> torch.Tensor:
        """(N,) with gradients."""
        if is_checkpointed():
            raise ValueError(
                "`net` runs residual steps inside torch.utils.checkpoint, which forgets what is computed there and "
                "with it the gradient of their norms: switch checkpointing off for this pass."
            )
        x = x.clone() if (kind, k) in self.copied else x
        self.maps.append(((kind, k), x, x._version))
        return norm(widen(x), tuple(range(1, x.ndim)))

    def state(self, k, state):
        self.below[k] = self.norm_of("state", k, state)

    def slope(self, k, slope):
        if self.slopes:
            self.above[SLOPE][k] = self.norm_of(SLOPE, k, slope)

    def size(self, k, h, images, dimensions):
        pass

    def new_state(self, k, before, new):
        if self.increments and before is not None:
            self.above[INCREMENT][k] = self.norm_of(INCREMENT, k, widen(new) - widen(before))


def is_checkpointed() -> bool:
    """Is this called from within torch.utils.checkpoint?"""
    frame = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__") != "torch.utils.checkpoint":
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None


def widen(x: torch.Tensor) -> torch.Tensor:
    """The tensor in at least single precision: in half precision the norms of different blocks round to one number."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
