"""Batches of images from whatever holds them, placed where the network is; and how a pass is tuned."""

import time
from collections.abc import Iterator

import numpy as np
import torch
from torch import nn

from netbridge.allocator import tune_allocator
from netbridge.tracing.capture import first_tensor
from netbridge.tracing.passes import placed

BATCH = 128
TRIED = (16, 32, 64, 128, 256)  # batch sizes tried on the way when tuning


def batches_of(images) -> tuple[Iterator[torch.Tensor], int | None]:
    """Batches as they come, and the number of images where it is known."""
    if isinstance(images, np.ndarray):
        images = torch.from_numpy(images)
    if isinstance(images, torch.Tensor):
        if images.ndim < 2 or 0 in images.shape:
            raise ValueError(f"`images` must be a batch (N, ...) that is not empty, got shape {tuple(images.shape)}.")
        return iter([images]), len(images)
    try:
        iterator = iter(images)
    except TypeError:
        raise TypeError(
            f"`images` must be a tensor, a DataLoader or an iterable of batches, got {type(images).__name__}."
        ) from None
    total = None
    if hasattr(images, "dataset") and hasattr(images, "sampler"):  # a DataLoader
        total = len(images.sampler) if hasattr(images.sampler, "__len__") else None
    return map(batch_in, iterator), total


def batch_in(item) -> torch.Tensor:
    """The images of (images, labels), or of a dictionary."""
    batch = first_tensor(item)
    if batch is None:
        raise TypeError(f"`images` yields {type(item).__name__} without a tensor; it must yield batches of images.")
    return batch


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
        """How many images next; None for a batch as it comes."""
        if self.fixed is not None or not (self.trials or self.seconds):
            return self.fixed
        if self.trials:
            return self.trials[0]
        return min(self.seconds, key=self.seconds.__getitem__)

    def cut(self, images: torch.Tensor, whole: bool) -> Iterator[torch.Tensor]:
        """Portions of `images`; a batch of a loader stays `whole` unless a size was asked for."""
        start = 0
        while start < len(images):
            size = self.size() or (len(images) if whole else BATCH)
            began = time.perf_counter()
            portion = images[start : start + size]
            yield placed(self.net, portion, self.format)
            self.learn(size, len(portion), time.perf_counter() - began)
            start += size

    def learn(self, size: int, images: int, seconds: float):
        """What a batch of this size took, from its delivery to the request for the next one."""
        if not self.warm:
            self.warm = True  # the first pass of a process builds its kernels
        elif self.trials and size == self.trials[0] and images == size:
            self.seconds[size] = seconds / images
            del self.trials[0]
        elif images < size:
            self.trials.clear()  # no more images than that


def convolutional(net: nn.Module) -> bool:
    return any(isinstance(module, nn.Conv2d) for module in net.modules())


class Tuned:
    """Within, glibc's allocator keeps its memory and convolution weights lie channels-last; the latter is undone."""

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
