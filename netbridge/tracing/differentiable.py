"""Stiffness with gradients: the indices of a forward pass as tensors, and TNS as a term of a loss.

`nb.trace` measures and keeps no gradients; here the same observation of the same steps keeps them, so that the index of
every block, and with `ol.tns` the total neural stiffness, can be part of what is minimised.
"""

import contextlib
from collections.abc import Iterator

import torch

import odelab as ol
from netbridge.model.network import Network
from netbridge.tracing.record import INCREMENT, SLOPE


def nsi_with_gradients(
    net: Network, images: torch.Tensor, of: str = "slope"
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A forward pass with the neural stiffness index of every counted block, all with gradients.

    net     a network of netbridge, in training or in evaluation mode; it is used as it stands
    images  a batch of images (N, channels, height, width), prepared as the network expects them
    of      "slope": ||f(x_t)|| / ||x_t||, the branch before its step size; "increment": ||x_{t+1} - x_t|| / ||x_t||

    Returns (outputs, nsi, stage): what the network answers; a tensor (N, T) in at least single precision, for the T
    blocks that `nb.trace` counts (none that opens a stage); the stage of each of them, as `ol.tns` takes it.

    >>> import torch, netbridge as nb, odelab as ol
    >>> net, images = nb.resnet(20), torch.randn(4, 3, 32, 32)
    >>> outputs, nsi, stage = nb.nsi_with_gradients(net, images)
    >>> ol.tns(nsi, stage).mean().backward()
    >>> nsi.shape, stage.tolist(), net.stages[0].blocks[1].branch.conv1.weight.grad is not None
    (torch.Size([4, 6]), [0, 0, 1, 1, 2, 2], True)
    """
    with collect_indices(net, of) as seen:
        outputs = net(images)
    nsi, stage = stack_indices(seen)
    return outputs, nsi, stage


@contextlib.contextmanager
def stiffness_term(net: Network, weight: float, of: str = "slope", mu: str = "sample") -> Iterator[Network]:
    """A context manager: within it, training also minimises `weight` times the mean TNS of each batch.

    The outputs of the network do not change by a bit; their backward pass adds the gradient of the term. So any
    training loop whose loss depends on the outputs minimises loss + weight * TNS, while the loss that it logs is
    without the term.

    net     a network of netbridge; in evaluation mode, or without gradients, nothing is added
    weight  of the mean TNS of the images of a batch: positive to make the network less stiff, negative to make it more
            so, 0 for no term. Where the gradients of P parts of a batch are added up, give weight / P
    of      "slope" or "increment", the index
    mu      "sample" or "dataset", what it is compared with, as `ol.tns` takes it; the data set is here the batch

    >>> import torch, netbridge as nb
    >>> net, images = nb.resnet(20), torch.randn(4, 3, 32, 32)
    >>> with nb.stiffness_term(net, 0.1):
    ...     net(images).square().mean().backward()
    """
    with contextlib.ExitStack() as stack:
        if weight:
            seen = stack.enter_context(collect_indices(net, of))

            def attach(module, inputs, outputs):
                indices, seen[:] = list(seen), []
                if not (net.training and torch.is_grad_enabled() and outputs.requires_grad):
                    return None
                nsi, stage = stack_indices(indices)
                return CarryTerm.apply(outputs, weight * ol.tns(nsi, stage, mu).mean())

            stack.callback(net.register_forward_hook(attach).remove)
        yield net


class CarryTerm(torch.autograd.Function):
    """Returns outputs unchanged; their backward pass also differentiates a term, as if it were added to the loss."""

    @staticmethod
    def forward(ctx, outputs, term):
        ctx.like = term
        return outputs.view_as(outputs)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, torch.ones_like(ctx.like)


@contextlib.contextmanager
def collect_indices(net: Network, of: str):
    """A context manager that yields a list; each pass appends the stage and the index of every counted block."""
    if of not in (SLOPE, INCREMENT):
        raise ValueError(f"`of` must be {SLOPE!r} or {INCREMENT!r}, got {of!r}.")
    if not isinstance(net, Network):
        raise TypeError(f"`net` must be a network of netbridge with steps, got {type(net).__name__}.")
    seen: list[tuple[int, torch.Tensor]] = []

    def record(carry, memory, t, dt, h, u, slopes, mean_slope, u_new):
        if t >= 1:  # the paper leaves out the block that opens a stage
            u, moved = widen(u), widen(mean_slope) if of == SLOPE else widen(u_new) - widen(u)
            seen.append((memory.stage, ol.nsi(u, moved)))
        return carry

    with net.observed(record):
        yield seen


def widen(x: torch.Tensor) -> torch.Tensor:
    """The tensor in at least single precision: in half precision the norms of different blocks round to one number."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def stack_indices(seen) -> tuple[torch.Tensor, torch.Tensor]:
    """(nsi (N, T), stage (T,)) of the blocks of one pass."""
    if not seen:
        raise ValueError(
            "no counted block was seen: `net` has one block in every stage, and none that opens a stage is counted, or "
            "another observation has taken the place of this one."
        )
    stages, indices = zip(*seen, strict=True)
    return torch.stack(indices, 1), torch.tensor(stages)
