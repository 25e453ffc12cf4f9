"""Problems and indices of a user's own file, given with `--define`.

The file may hold, each a dictionary of functions by their names:

    PROBLEMS = {"mine": make}        make() returns an `odelab.Problem`; it is a family of its own
    INDICES = {"my index": index}    index(J, f, f_t, u, scale, tol) returns a number, larger where it says stiff

An index gets the Jacobian (n, n), the slope, its derivative with respect to time, the state and the scale of each
component, (n,), and the error asked for. It is judged beside the study's own.
"""

import functools
import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np


@functools.cache
def adopt(path: str | None) -> SimpleNamespace:
    """What a file defines: `problems` and `indices`, dictionaries that are empty without a file."""
    if path is None:
        return SimpleNamespace(problems={}, indices={})
    if not Path(path).is_file() or Path(path).suffix != ".py":
        raise ValueError(f"`--define` = {path!r} is not a Python file.")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    told = {}
    for name in ("PROBLEMS", "INDICES"):
        found = getattr(module, name, {})
        if not (isinstance(found, dict) and all(callable(one) for one in found.values())):
            raise ValueError(f"`{name}` in {path} must be a dictionary of functions by their names.")
        told[name.lower()] = found
    if not any(told.values()):
        raise ValueError(f"{path} defines neither `PROBLEMS` nor `INDICES`, dictionaries of functions by their names.")
    return SimpleNamespace(**told)


def index_of(name: str, eps: float) -> str:
    """The key of a user's index at an error, in what is measured."""
    return f"{name} at {eps:g}"


def checked_number(name: str, value) -> float:
    """What a user's index returned; NaN, which ranks lowest, is allowed."""
    if np.shape(value) != () or not np.isrealobj(value):
        raise ValueError(f"the index {name!r} of `--define` must return one real number, got {value!r}.")
    return float(value)
