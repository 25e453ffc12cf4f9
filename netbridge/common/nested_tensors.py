"""The tensors in nested tuples, lists and dictionaries: what networks take and return."""

import copy
import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn


def tensors(value) -> list[torch.Tensor]:
    """The tensors in nested tuples, lists, mappings and dataclasses."""
    found: list[torch.Tensor] = []
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, tuple | list):
            waiting.extend(reversed(value))
        elif value is None or isinstance(value, int | float | str):  # most arguments
            continue
        elif isinstance(value, dict | Mapping):
            waiting.extend(reversed(list(value.values())))
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            waiting.extend(getattr(value, field.name) for field in reversed(dataclasses.fields(value)))
    return found


def first_tensor(value) -> Any:
    """The first tensor in a nested structure, or None."""
    return next(iter(tensors(value)), None)


def state_given(module: nn.Module, args: tuple, kwargs: Mapping) -> Any:
    """The first floating tensor among a module's arguments, in the order of its `forward`; None where there is none.

    A caller who names the arguments may name a mask ahead of the state.
    """
    try:
        arguments: Any = inspect.signature(module.forward).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):  # no signature, or none that fits
        arguments = (args, kwargs)
    return next((tensor for tensor in tensors(arguments) if tensor.is_floating_point()), None)


def map_tensors(value, function):
    """The same nested structure with a function applied to every tensor; a mapping that is no dict becomes one."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value) if field.init]
        return dataclasses.replace(value, **{name: map_tensors(getattr(value, name), function) for name in fields})
    if isinstance(value, Mapping):
        parts = {key: map_tensors(part, function) for key, part in value.items()}
        if not isinstance(value, dict):
            return parts
        value = copy.copy(value)
        value.update(parts)
        return value
    if isinstance(value, tuple | list):
        items = (map_tensors(part, function) for part in value)
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value
