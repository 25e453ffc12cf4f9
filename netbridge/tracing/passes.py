"""What every measuring pass needs: the bare network in evaluation mode, and images where and how it wants them."""

import contextlib

import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

SAMPLE = 5  # images to find blocks with: a number no other axis is likely to begin with


def unwrapped(net: nn.Module) -> nn.Module:
    """The network inside a compiled or a parallel one."""
    while True:
        if isinstance(net, DataParallel | DistributedDataParallel):
            net = net.module
        elif isinstance(getattr(net, "_orig_mod", None), nn.Module):
            net = net._orig_mod
        else:
            return net


@contextlib.contextmanager
def evaluation(net: nn.Module):
    """Every module in evaluation mode, and each back as it was."""
    learning = [module for module in net.modules() if module.training]
    if learning:
        net.eval()
    try:
        yield
    finally:
        for module in learning:
            module.training = True


def sample_of(batch: torch.Tensor) -> torch.Tensor:
    """A few images to find the blocks with."""
    repeats = -(-SAMPLE // len(batch))
    return batch[:SAMPLE] if repeats == 1 else torch.cat([batch] * repeats)[:SAMPLE]


def placed(net: nn.Module, batch: torch.Tensor, memory_format=None) -> torch.Tensor:
    """The batch on the network's device, in its precision unless autocast is on, in the memory format asked for."""
    like = next((p for p in net.parameters() if p.is_floating_point()), None)
    if like is None:
        return batch
    if batch.dtype == torch.uint8 and not any(isinstance(module, nn.Embedding) for module in net.modules()):
        raise ValueError("`images` holds bytes, got dtype uint8; divide by 255 and normalise as in training first.")
    dtype = batch.dtype
    if batch.is_floating_point() and not torch.is_autocast_enabled(like.device.type):
        dtype = like.dtype
    batch = batch.to(like.device, dtype, non_blocking=True)
    if memory_format is not None and batch.ndim == 4:
        batch = batch.contiguous(memory_format=memory_format)
    return batch
