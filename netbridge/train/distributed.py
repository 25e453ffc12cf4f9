"""The little that differs between one process and many: `torchrun` sets the environment, `join` reads it."""

import contextlib
import os

import torch
from torch import distributed as dist
from torch import nn


def active() -> bool:
    return dist.is_available() and dist.is_initialized()


def rank() -> int:
    return dist.get_rank() if active() else 0


def world() -> int:
    return dist.get_world_size() if active() else 1


def local_rank() -> int:
    return int(os.environ.get("LOCAL_RANK", "0"))


@contextlib.contextmanager
def join():
    """Within, the processes that torchrun started are one group; started alone, nothing happens."""
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
    """Gradients averaged over the processes. Running statistics stay apart until `average_buffers`."""
    if not active():
        return net
    return nn.parallel.DistributedDataParallel(net, broadcast_buffers=False)


def mean(value: torch.Tensor) -> torch.Tensor:
    if active():
        dist.all_reduce(value)
        value = value / world()
    return value


@torch.no_grad()
def average_buffers(net: nn.Module) -> None:
    """Running statistics are linear in what was seen: averaged now or at every step, they are the same."""
    if not active():
        return
    for buffer in net.buffers():
        if buffer.is_floating_point():
            dist.all_reduce(buffer)
            buffer /= world()


def wait() -> None:
    if active():
        dist.barrier()
