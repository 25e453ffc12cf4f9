"""Directional derivatives of maps of maps."""

import functools
import warnings
from collections.abc import Callable

import torch


def tangent(function: Callable, x: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
    """The derivative of `function` at x in a direction, by forward differentiation."""
    prepare()
    return torch.func.jvp(function, (x,), (direction,))[1]


@functools.cache
def prepare():
    """torch sets forward differentiation up on first use, with a tool that it has itself deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.func.jvp(torch.sin, (torch.zeros(1),), (torch.ones(1),))
