"""Which library a measure computes in: torch as soon as one value is a tensor, NumPy otherwise.

The measures write `library.sqrt`, `library.linalg.eigh`, ...: names that both libraries share. What they spell
differently is here, and nothing here imports torch: a tensor can exist only where it has been imported already.
"""

import sys
from typing import Any

import numpy as np


def library_of(*values) -> Any:
    """The module whose functions fit `values`."""
    torch = sys.modules.get("torch")
    if torch is not None and any(isinstance(value, torch.Tensor) for value in values):
        return torch
    return np


def floating(name: str, value, like=None):
    """`value` as an array, or a tensor beside the tensor `like`, of real single or double precision."""
    library = library_of(value, like)
    if library is np:
        return _floating_array(name, value)
    if not isinstance(value, library.Tensor):
        array = np.array(_floating_array(name, value))  # a copy: torch warns of arrays that are locked
        return library.as_tensor(array, dtype=like.dtype, device=like.device)
    if value.is_complex():
        raise TypeError(f"`{name}` must hold real numbers, got {value.dtype}.")
    if value.dtype in (library.float32, library.float64):
        return value
    return value.to(library.float32 if value.is_floating_point() else library.float64)


def _floating_array(name: str, value) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError as error:  # a ragged list
        raise ValueError(f"`{name}` is no array: {error}") from None
    if array.dtype.kind not in "fiub":
        raise TypeError(f"`{name}` must hold real numbers, got dtype {array.dtype}.")
    if array.dtype in (np.float32, np.float64):
        return array
    return array.astype(np.float32 if array.dtype == np.float16 else np.float64)


def to_numpy(value) -> np.ndarray:
    """A NumPy copy or view of an array or tensor, wherever it lives."""
    return np.asarray(value) if library_of(value) is np else value.detach().cpu().numpy()


def number(value):
    """A zero-dimensional NumPy array as a NumPy scalar; everything else as it is."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def epsilon(value) -> float:
    """The spacing of `value`'s numbers at one."""
    return float(library_of(value).finfo(value.dtype).eps)


def norm(value, axes=-1):
    """The 2-norm over `axes`: the one norm of every measure in this laboratory, without over- or underflow."""
    library = library_of(value)
    with np.errstate(over="ignore", under="ignore"):
        plain = _plain_norm(library, value, axes)
    limits = library.finfo(plain.dtype)
    if bool(((plain > (limits.tiny / limits.eps) ** 0.5) & (plain < np.inf)).all()):
        return plain
    axes = tuple(axis % value.ndim for axis in ((axes,) if isinstance(axes, int) else axes))
    peak = library.amax(library.abs(value), axes)
    scale = library.where((peak > 0) & (peak < np.inf), peak, library.ones_like(peak))
    shape = [1 if axis in axes else length for axis, length in enumerate(value.shape)]
    return scale * _plain_norm(library, value / scale.reshape(shape), axes)


def _plain_norm(library, value, axes):
    if library is np:
        return np.linalg.vector_norm(value, axis=axes)
    return library.linalg.vector_norm(value, dim=axes)
