"""Measuring never changes what is measured: after a trace a network is put back bit for bit, whatever it did."""

import contextlib
import copy
import functools
import operator
import random
import sys
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

NESTED = 3  # attributes of objects in a module are put back too, down to this depth of objects within objects
PARAMETER_BYTES = 1 << 30  # larger networks' weights are not copied; a forward that writes into them is not undone
PLAIN: tuple[type, ...] = (
    *(str, bytes, int, float, complex, type(None), type, types.FunctionType, types.BuiltinFunctionType),
    *(types.ModuleType, types.MethodType, torch.dtype, torch.device, torch.Size),
)
MAPPINGS = dict | MutableMapping  # the former is told faster
CONTAINERS = MAPPINGS | list | set | deque
TRUSTED = {"torch", "netbridge"}  # packages whose layers never write into their own parameters


def unwrap(net: nn.Module) -> nn.Module:
    """The network inside a compiled or a parallel one."""
    while True:
        if isinstance(net, DataParallel | DistributedDataParallel):
            net = net.module
        elif isinstance(getattr(net, "_orig_mod", None), nn.Module):
            net = net._orig_mod  # type: ignore[assignment]
        else:
            return net


@contextlib.contextmanager
def preserve(net: nn.Module, evaluation: bool = True):
    """A context manager: within it a network is in evaluation mode and uncompiled; afterwards it is as it was before.

    net         the network
    evaluation  False: it stays in the modes it is in

    Put back are attributes of modules, lists, dictionaries and sets in them, the contents of buffers and other tensors,
    modes, hooks, and the states of the random generators of Python, NumPy and torch. A cache that a forward pass fills
    is filled within and empty again afterwards. What modules keep outside of themselves is not known and not put back.
    """
    refuse_unmeasurable(net)
    saved = Saved(net, evaluation)
    with keep_generators():
        try:
            try:
                if evaluation:
                    net.eval()
            except NotImplementedError:
                raise ValueError("`net` is an exported program; trace the module it was exported from.") from None
            with run_uncompiled():
                yield
        finally:
            saved.restore()


@contextlib.contextmanager
def keep_generators():
    """A context manager: afterwards the random generators of Python, NumPy and torch are as they were before."""
    restore = save_generators()
    try:
        yield
    finally:
        restore()


def save_generators() -> Callable[[], None]:
    """A function that puts the random generators of Python, NumPy and torch back to where they are now."""
    cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None

    def restore():
        random.setstate(cpu[0])
        np.random.set_state(cpu[1])  # noqa: NPY002
        torch.set_rng_state(cpu[2])
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)

    return restore


def independent_copy(net: nn.Module) -> nn.Module:
    """A deep copy that shares nothing with `net`; what a module has computed and kept is copied by its numbers.

    torch copies no tensor that has a history of gradients, such as a cache filled by a pass with gradients.
    """
    refuse_lazy(net)
    memo: dict[int, Any] = {}
    waiting: list = [vars(module) for module in net.modules()]
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            if value.grad_fn is not None:
                memo[id(value)] = value.detach().clone()
        elif type(value) in (OrderedDict, set) and not value:  # as hooks are: `deepcopy` would spend its time on them
            memo[id(value)] = type(value)()
        elif isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple | set | deque):
            waiting.extend(value)
    return copy.deepcopy(net, memo)


def refuse_unmeasurable(net: nn.Module):
    if isinstance(net, torch.jit.ScriptModule):
        raise ValueError("`net` is compiled by TorchScript, which hides what it does; trace the original module.")
    refuse_lazy(net)
    for parameter in net.parameters():
        if parameter.is_meta:
            raise ValueError("`net` has no numbers: its parameters are on the meta device. Load its weights first.")


def refuse_lazy(net: nn.Module):
    if any(isinstance(tensor, UninitializedTensorMixin) for tensor in (*net.parameters(), *net.buffers())):
        raise ValueError("`net` has lazy layers, which have no shape yet. Run the network once, and try again.")


def run_uncompiled():
    """A context manager: within it, functions and modules compiled by torch.compile run as they were written."""
    if "torch._dynamo" not in sys.modules:  # importing it takes longer than many a trace
        return contextlib.nullcontext()
    return torch.compiler.set_stance("force_eager")


class Saved:
    """Everything a network holds, as it was: containers by their members, tensors by their numbers.

    Layers of torch and of this library, in evaluation mode and without hooks, write into no tensor and no container: of
    a network of nothing else the attributes alone are kept, which takes a hundredth of a pass and not a tenth. In
    training they write into their buffers.
    """

    def __init__(self, net: nn.Module, evaluation: bool = True):
        self.containers: list = []
        self.members: list[Sequence] = []  # of each of them
        self.tensors: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        self.with_parameters = sum(parameter.nbytes for parameter in net.parameters()) <= PARAMETER_BYTES
        modules = list(net.modules())
        packages = {kind.__module__.partition(".")[0] for kind in set(map(type, modules))}
        if packages <= TRUSTED and not any(module._forward_hooks or module._forward_pre_hooks for module in modules):
            for module in modules:
                self.save_container(vars(module))
            for buffer in () if evaluation else net.buffers():
                self.save_tensor(buffer)
        else:
            self.save(net)

    def save(self, net: nn.Module):
        seen: dict[int, object] = {}  # also keeps alive what is known by its id
        is_plain: Callable[[Any], bool] = functools.cache(lambda kind: issubclass(kind, PLAIN))
        waiting: list[tuple[Any, int]] = [(net, 0)]
        while waiting:
            value, depth = waiting.pop()
            if is_plain(type(value)) or id(value) in seen:
                continue
            seen[id(value)] = value
            if isinstance(value, torch.Tensor):
                self.save_tensor(value)
            elif isinstance(value, nn.Module):
                waiting.append((vars(value), 0))
            elif isinstance(value, CONTAINERS):
                self.save_container(value)
                if value:
                    parts = value.values() if isinstance(value, MAPPINGS) else value
                    waiting += [(part, depth) for part in parts if not is_plain(type(part))]
            elif isinstance(value, tuple | frozenset):
                waiting.extend((part, depth) for part in value)
            elif depth < NESTED and hasattr(value, "__dict__"):
                waiting.append((vars(value), depth + 1))

    def save_container(self, container):
        self.containers.append(container)
        self.members.append(members_of(container))

    def save_tensor(self, tensor: torch.Tensor):
        plain = type(tensor) in (torch.Tensor, nn.Parameter, nn.Buffer) or isinstance(tensor, nn.Parameter)
        if not plain or tensor.layout is not torch.strided or tensor.is_meta:
            return
        if self.with_parameters or not isinstance(tensor, nn.Parameter):
            self.tensors.append((tensor, tensor.data, tensor.data.clone()))

    def restore(self):
        for container, members in zip(self.containers, self.members, strict=True):
            now = members_of(container)
            if len(now) != len(members) or any(map(operator.is_not, now, members)):
                container.clear()
                if isinstance(container, MAPPINGS):
                    container.update(zip(members[: len(members) // 2], members[len(members) // 2 :], strict=True))
                else:
                    (container.extend if isinstance(container, list | deque) else container.update)(members)
        with torch.no_grad():
            for tensor, data, kept in self.tensors:
                if tensor.data_ptr() != data.data_ptr() or tensor.shape != data.shape or tensor.dtype != data.dtype:
                    tensor.data = data
                if not torch.equal(data, kept):
                    with torch.inference_mode(data.is_inference()):
                        data.copy_(kept)


def members_of(container) -> Sequence:
    """Which objects a container holds, and in which order; of a mapping first the keys and then the values."""
    if not container:
        return ()  # as most are: no list for each
    return [*container, *container.values()] if isinstance(container, MAPPINGS) else list(container)
