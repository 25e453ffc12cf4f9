"""Batches of images from whatever holds them, placed where the network is; and how the size of a pass is tuned."""

import inspect
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset

from netbridge.allocator import tune_allocator
from netbridge.common.nested_tensors import first_tensor, map_tensors, tensors

Module = TypeVar("Module", bound=nn.Module)

BATCH = 128
TRIED = (16, 32, 64, 128, 256)  # batch sizes tried on the way when tuning
SAMPLE = 5  # images of the first pass, which finds the blocks, or more: as many as no axis of an image is long
LABELS = {"label", "labels", "target", "targets", "y"}  # entries of a batch's dictionary that are not inputs


def batches_of(images, net: nn.Module, call) -> tuple[Iterator, int | None]:
    """Batches as they come, and the number of images where it is known."""
    if isinstance(images, np.ndarray):
        images = torch.from_numpy(images)
    if isinstance(images, torch.Tensor):
        if images.ndim < 2 or 0 in images.shape:
            raise ValueError(f"`images` must be a batch (N, ...) that is not empty, got shape {tuple(images.shape)}.")
        return iter([images]), len(images)
    if isinstance(images, Dataset):
        raise TypeError(
            f"`images` is a data set ({type(images).__name__}), which yields one image at a time; give "
            "torch.utils.data.DataLoader(images, batch_size=128)."
        )
    if isinstance(images, Mapping):
        images = [images]
    try:
        iterator = iter(images)
    except TypeError:
        raise TypeError(
            f"`images` must be a tensor, a DataLoader or an iterable of batches, got {type(images).__name__}."
        ) from None
    total = None
    if hasattr(images, "dataset") and hasattr(images, "sampler"):  # a DataLoader
        total = len(images.sampler) if hasattr(images.sampler, "__len__") else None
    return (batch_in(item, net, call) for item in iterator), total


def images_of(images) -> torch.Tensor:
    """One batch (N, ...) as a tensor, from a tensor or an array; TypeError for anything else."""
    if isinstance(images, np.ndarray):
        images = torch.from_numpy(images)
    if not isinstance(images, torch.Tensor) or images.ndim < 2 or 0 in images.shape:
        given = f"shape {tuple(images.shape)}" if isinstance(images, torch.Tensor) else type(images).__name__
        raise TypeError(
            f"`images` must be one batch (N, ...), a tensor or an array, got {given}. A network that takes more goes "
            "into a module whose forward takes the images and adds the rest."
        )
    return images


def batch_in(item, net: nn.Module, call) -> Any:
    """What the network is called with: the images of (images, labels), or a dictionary of keyword arguments.

    Where the caller says how the network is called, everything that came."""
    if isinstance(item, np.ndarray):
        item = torch.from_numpy(item)
    found = tensors(item)
    if not found:
        raise TypeError(f"`images` yields {type(item).__name__} without a tensor; it must yield batches of images.")
    if found[0].ndim == 0:
        raise ValueError("`images` must yield batches (N, ...), got a single number.")
    if call is not None or isinstance(item, torch.Tensor):
        return item
    if isinstance(item, Mapping):
        item = {key: value for key, value in item.items() if key not in LABELS and tensors(value)}
        if len(item) == 1:
            return found[0] if len(found) == 1 else first_tensor(item)
        if set(item) <= set(inspect.signature(net.forward).parameters):
            return item
        raise TypeError(
            f"`images` yields dictionaries with {sorted(map(str, item))}, which are not all arguments of the network's "
            'forward; say how it is called: call=lambda net, batch: net(batch["..."], ...).'
        )
    if isinstance(item, tuple | list) and item and isinstance(item[0], Mapping):
        return batch_in(item[0], net, call)
    if len(found) > 2:
        raise TypeError(
            f"`images` yields {len(found)} tensors at a time, of which the first two would be images and labels; say "
            "how the network is called: call=lambda net, batch: net(batch[0], batch[1])."
        )
    return found[0]


def run(net: nn.Module, batch):
    """The network's outputs for a batch, where the caller does not say how it is called."""
    return net(**batch) if isinstance(batch, Mapping) else net(batch)


def length(batch) -> int:
    """The number of images in a batch: the first axis of its first tensor."""
    return len(first_tensor(batch))


def part_of(batch, indices):
    """Some images of a batch: of every tensor with as many entries as there are images."""
    images = length(batch)
    return map_tensors(batch, lambda tensor: tensor[indices] if tensor.ndim and len(tensor) == images else tensor)


class Samples:
    """Along which axis a network has the samples; what watches it has them along the first.

    call    call(net, batch) as the user says it; None: the network is given the batch
    axis    `batch_axis` of the user; None where it is not known
    """

    def __init__(self, call: Callable | None = None, axis: int | None = None):
        if axis is not None and not (type(axis) is int and axis >= 0):
            raise ValueError(f"`batch_axis` must be a whole number from 0 on, got {axis!r}.")
        self.plain, self.axis = call or run, axis

    def in_front(self, batch):
        """A batch with the samples along the first axis."""
        axis = self.axis
        if axis and all(one.ndim <= axis for one in tensors(batch)):
            raise ValueError(f"`batch_axis` = {axis}: no tensor of a batch has so many axes; they count from 0.")
        return map_tensors(batch, lambda one: one.movedim(axis, 0) if one.ndim > axis else one) if axis else batch

    def in_place(self, batch):
        """A batch with the samples where the network has them."""
        axis = self.axis
        return map_tensors(batch, lambda one: one.movedim(0, axis) if one.ndim > axis else one) if axis else batch

    def first(self, batch, count: int):
        """The first samples of a batch, in front."""
        return part_of(self.in_front(batch), slice(0, count))

    def call(self, net, batch):
        """Runs the network on a batch with the samples along the first axis."""
        return self.plain(net, self.in_place(batch))

    def around(self, block: nn.Module) -> nn.Module:
        """The same function as a block of the network, of states with the samples along the first axis."""
        return AxisInFront(block, self.axis) if self.axis else block


class AxisInFront(nn.Module):
    """A block that takes and returns a state with the samples along the first axis, where its own has another."""

    def __init__(self, block: nn.Module, axis: int):
        super().__init__()
        self.block, self.axis = block, axis

    def forward(self, state):
        new = self.block(state.movedim(0, self.axis))
        return (new[0] if isinstance(new, tuple) else new).movedim(self.axis, 0)


def sample_of(batch, avoided: Set[int] = frozenset()):
    """The first images of a batch, for the pass that finds the blocks: as many as no other axis of it is long.

    avoided  other numbers of images that will not do
    """
    others = {size for tensor in tensors(batch) for size in tensor.shape[1:]} | avoided
    count = next(count for count in itertools.count(SAMPLE) if count not in others)
    return part_of(batch, torch.arange(count) % length(batch))


def to_network(net: nn.Module, batch, memory_format=None):
    """The batch on the network's device, in its precision unless autocast is on, in the memory format asked for."""
    like = next((p for p in net.parameters() if p.is_floating_point()), None)
    if like is None:
        return batch
    bytes_only = first_tensor(batch).dtype == torch.uint8
    if bytes_only and not any(isinstance(module, nn.Embedding) for module in net.modules()):
        raise ValueError("`images` holds bytes, got dtype uint8; divide by 255 and normalise as in training first.")
    cast = not torch.is_autocast_enabled(like.device.type)

    def place(tensor):
        dtype = like.dtype if cast and tensor.is_floating_point() else tensor.dtype
        tensor = tensor.to(like.device, dtype, non_blocking=True)
        return tensor if memory_format is None or tensor.ndim != 4 else tensor.contiguous(memory_format=memory_format)

    return map_tensors(batch, place)


def check_dimensions(net: nn.Module, batch):
    """Raises where a batch that the network refused looks like one image, or like images with their channels last."""
    ranks = {nn.Conv1d: 3, nn.Conv2d: 4, nn.Conv3d: 5}
    wanted = [rank for kind, rank in ranks.items() if any(isinstance(module, kind) for module in net.modules())]
    shape = tuple(first_tensor(batch).shape)
    if len(wanted) == 1 and len(shape) == wanted[0] - 1:
        raise ValueError(f"`images` must be a batch (N, ...), got shape {shape}; of one image it is images[None].")
    channels = next((module.in_channels for module in net.modules() if isinstance(module, nn.Conv2d)), None)
    if len(shape) == 4 and shape[1] != channels == shape[3]:
        raise ValueError(
            f"`images` must be (N, {channels}, height, width), got shape {shape}, whose channels come last; "
            "images.permute(0, 3, 1, 2) has them in front."
        )


class Feeder:
    """Cuts batches to size, and moves them to the network's device, precision and memory format."""

    def __init__(self, net: nn.Module, batch_size: int | None, tune: bool):
        if batch_size is not None and not (isinstance(batch_size, int) and batch_size >= 1):
            raise ValueError(f"`batch_size` must be a positive whole number, got {batch_size!r}.")
        self.net = net
        self.format = torch.channels_last if tune and convolutional(net) else None
        self.trials = list(TRIED) if tune and batch_size is None else []
        self.fixed = batch_size
        self.seconds: dict[int, float] = {}
        self.warm = False

    def size(self) -> int | None:
        """How many images the next pass takes; None: the whole batch."""
        if self.fixed is not None or not (self.trials or self.seconds):
            return self.fixed
        if self.trials:
            return self.trials[0]
        return min(self.seconds, key=self.seconds.__getitem__)

    def cut(self, batch, whole: bool) -> Iterator:
        """Portions of a batch; one of a loader stays `whole` unless a size was asked for."""
        start, images = 0, length(batch)
        while start < images:
            size = self.size() or (images if whole else BATCH)
            began = time.perf_counter()
            portion = batch if start == 0 and size >= images else part_of(batch, slice(start, start + size))
            yield to_network(self.net, portion, self.format)
            self.learn(size, min(size, images - start), time.perf_counter() - began)
            start += size

    def learn(self, size: int, images: int, seconds: float):
        """Notes the time from the delivery of a batch of this size to the request for the next batch."""
        if not self.warm:
            self.warm = True  # the first pass of a process builds its kernels
        elif self.trials and size == self.trials[0] and images == size:
            self.seconds[size] = seconds / images
            del self.trials[0]
        elif images < size:
            self.trials.clear()  # no more images than that


def convolutional(net: nn.Module) -> bool:
    return any(isinstance(module, nn.Conv2d) for module in net.modules())


def channels_last(net: Module) -> Module:
    """The same network, its weights laid out in memory as convolutions on the processor like them."""
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch declares it for tensors only


class Tuned:
    """A context manager that tunes glibc's allocator (for good) and the layout of weights (channels-last, undone)."""

    def __init__(self, net: nn.Module):
        self.net = net

    def __enter__(self):
        tune_allocator()
        self.changed = []
        for parameter in self.net.parameters():
            if parameter.ndim == 4 and not parameter.is_contiguous(memory_format=torch.channels_last):
                self.changed.append((parameter, parameter.data))
                parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)

    def __exit__(self, *_):
        for parameter, data in self.changed:
            parameter.data = data
