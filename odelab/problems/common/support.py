"""What every problem of the catalogue needs at its door: checked numbers, and solutions stacked into states."""

import operator

import numpy as np


def number(name: str, value) -> float:
    """`value` as a finite float."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"`{name}` must be a number, got {value!r}.") from None
    if not np.isfinite(result):
        raise ValueError(f"`{name}` must be finite, got {value!r}.")
    return result


def whole_number(name: str, value, least: int) -> int:
    """`value` as a whole number of at least `least`."""
    try:
        result = operator.index(value)
    except TypeError:
        raise TypeError(f"`{name}` must be a whole number, got {value!r}.") from None
    if result < least:
        raise ValueError(f"`{name}` must be at least {least}, got {result}.")
    return result


def states(*components) -> np.ndarray:
    """Components of a solution as states: (n,) for numbers, (m, n) for m times each."""
    return np.stack(np.broadcast_arrays(*components), axis=-1)


def also_in_array_form(rhs, array_form):
    """Lets an in-place right-hand side of loops carry the same formula spelled for NumPy, as `rhs.array_form`."""
    rhs.array_form = array_form
