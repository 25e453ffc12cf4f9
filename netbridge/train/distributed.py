"""What differs between one process and many: `torchrun` starts them and sets the environment, `join` reads it.

Without `torchrun` every function here does nothing, or returns the result of this one process.
"""

import contextlib
import datetime
import inspect
import os
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import distributed as dist
from torch import nn

from netbridge.common.devices import local_rank

PATIENCE = datetime.timedelta(minutes=30)  # how long a process waits for the others before it gives up
SHARED_STORE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"


def active() -> bool:
    """Is this process one of a group that `join` made?"""
    return dist.is_available() and dist.is_initialized()


def rank() -> int:
    return dist.get_rank() if active() else 0


def world() -> int:
    return dist.get_world_size() if active() else 1


@contextlib.contextmanager
def join():
    """Within the block, the processes that torchrun started are one group."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(local_rank())
    warn_of_the_shared_store()
    dist.init_process_group("nccl" if cuda else "gloo", timeout=PATIENCE)
    try:
        yield
    finally:
        dist.destroy_process_group()


def warn_of_the_shared_store() -> None:
    """Logs a warning where restarted workers would try to reach processes that have died.

    The agent of torchrun shares its store with the workers and keeps it over restarts (pytorch issue 135712, seen with
    torch 2.13), so a restarted worker reads the addresses of dead processes there. An environment variable prevents
    this, and only who starts torchrun can set it.
    """
    restarts = int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0"))
    if restarts and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" and local_rank() == 0:
        warnings.warn(
            f"torchrun was started with --max-restarts {restarts}, but its workers will not find each other after a "
            f"restart: set {SHARED_STORE}=1 in the environment of torchrun.",
            stacklevel=4,
        )


def wrap(net: nn.Module, all_used: bool) -> nn.Module:
    """The network with gradients averaged over the processes; `average_buffers` averages its buffers.

    all_used  every parameter has a part in every pass; where that is not known, each pass is searched for those that do
    """
    if not active():
        return net
    make: Any = nn.parallel.DistributedDataParallel
    known = inspect.signature(make.__init__).parameters
    sync = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"  # renamed in torch 2.13
    return make(net, find_unused_parameters=not all_used, **{sync: False})


def alone(module: nn.Module):
    """A context manager: within it gradients stay in this process; the next backward pass after it sums them up."""
    return module.no_sync() if isinstance(module, nn.parallel.DistributedDataParallel) else contextlib.nullcontext()


def mean(value: torch.Tensor) -> torch.Tensor:
    """The mean over the processes; the argument stays as it is."""
    return total(value) / world()


def total(value: torch.Tensor) -> torch.Tensor:
    """The sum over the processes; the argument stays as it is."""
    if not active():
        return value
    found = value.clone()
    dist.all_reduce(found)
    return found


def largest(value: float) -> float:
    """The largest of what the processes hold."""
    if not active():
        return value
    found = torch.tensor(value, device="cuda" if dist.get_backend() == "nccl" else "cpu")
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return float(found)


def from_first(make: Callable[[], Any]):
    """What `make()` returns in process 0, in all of them; what it raises there is raised in all."""
    if not active():
        return make()
    box: list[Any] = [None, None]
    if rank() == 0:
        try:
            box[0] = make()
        except Exception as error:
            box[1] = error
    dist.broadcast_object_list(box)
    if box[1] is not None:
        raise box[1]
    return box[0]


def gather(value) -> list:
    """What every process holds, in the order of their ranks."""
    if not active():
        return [value]
    found: list = [None] * world()
    dist.all_gather_object(found, value)
    return found


@torch.no_grad()
def average_buffers(net: nn.Module, share: float) -> None:
    """Running statistics become their mean over the processes, each with its `share` of the batch as weight.

    After every step, so that all processes always hold one network.
    """
    if not active():
        return
    buffers = [x for x in net.buffers() if x.is_floating_point()]
    for kind in {x.dtype for x in buffers}:
        some = [x for x in buffers if x.dtype == kind]
        together = torch.cat([x.flatten() for x in some]) * share  # one message instead of many
        dist.all_reduce(together)
        for x, new in zip(some, together.split([x.numel() for x in some]), strict=True):
            x.copy_(new.view_as(x))


def wait() -> None:
    """Waits until every process of the group has called this function."""
    if active():
        dist.barrier()
