"""The tensors in nested tuples, lists and dictionaries: what networks take and return."""

from collections.abc import Mapping
from typing import Any

import torch


def tensors(value) -> list[torch.Tensor]:
    """The tensors in nested tuples, lists and mappings."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [tensor for part in value for tensor in tensors(part)]
    return []


def first_tensor(value) -> Any:
    """The first tensor in a nested structure, or None."""
    return next(iter(tensors(value)), None)


def map_tensors(batch, function):
    """The same nested structure with a function applied to every tensor."""
    if isinstance(batch, torch.Tensor):
        return function(batch)
    if isinstance(batch, Mapping):
        return {key: map_tensors(value, function) for key, value in batch.items()}
    if isinstance(batch, tuple | list):
        return tuple(map_tensors(part, function) for part in batch)
    return batch
