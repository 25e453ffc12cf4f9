"""What differs between one process and many: `torchrun` starts them and sets the environment, `join` reads it.

Started alone, every function here does nothing, or answers for one process.
"""

import contextlib
import os

import torch
from torch import distributed as dist
from torch import nn


def active() -> bool:
    """Is this process one of a group that `join` made?"""
    return dist.is_available() and dist.is_initialized()


def rank() -> int:
    return dist.get_rank() if active() else 0


def world() -> int:
    return dist.get_world_size() if active() else 1


def local_rank() -> int:
    return int(os.environ.get("LOCAL_RANK", "0"))


@contextlib.contextmanager
def join():
    """Within the block, the processes that torchrun started are one group."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(local_rank())
    dist.init_process_group("nccl" if cuda else "gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


def wrap(net: nn.Module) -> nn.Module:
    """The network with gradients averaged over the processes; running statistics differ until `average_buffers`."""
    if not active():
        return net
    return nn.parallel.DistributedDataParallel(net, broadcast_buffers=False)


def mean(value: torch.Tensor) -> torch.Tensor:
    """The mean over the processes; the argument stays as it is."""
    if not active():
        return value
    total = value.clone()
    dist.all_reduce(total)
    return total / world()


def total(value: torch.Tensor) -> torch.Tensor:
    """The sum over the processes; the argument stays as it is."""
    return mean(value) * world()


@torch.no_grad()
def average_buffers(net: nn.Module) -> None:
    """Running statistics become their mean over the processes.

    They are linear in what each process has seen, so averaging them now or after every step gives the same.
    """
    if not active():
        return
    for buffer in net.buffers():
        if buffer.is_floating_point():
            dist.all_reduce(buffer)
            buffer /= world()


def wait() -> None:
    """Until every process of the group is here."""
    if active():
        dist.barrier()
