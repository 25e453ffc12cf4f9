"""`wrt`: with respect to which parameters and initial values a solution is differentiated."""

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from odelab.kernels.parameters import Parameters
from odelab.problem import Problem


@dataclasses.dataclass(frozen=True)
class Wrt:
    """What `odelab.wrt` returns: the choices it was given."""

    params: Any = False
    u0: Any = False


def wrt(params: Any = False, u0: Any = False) -> Wrt:
    """With respect to what a solution is differentiated: some of the numbers in `params` and in `u0`.

    params    True for every number in the problem's parameters; or the places of some, in a list: an index, a key or
              the name of a field, for parameters inside of others a tuple of these such as ("rates", 0). A place that
              holds several numbers stands for all of them. False, the default, for none
    u0        True for every component of the initial state, a list of indices, or False, the default, for none

    Returns a Wrt, for the argument `sensitivities` of `odelab.solve` and `odelab.ensemble`. The columns of what they
    return are in this order: the parameters in the order of their places, then the initial values.

    >>> import odelab as ol
    >>> decay = ol.Problem(lambda t, u, params: (-params["rate"] * u[0],), [2.0], (0.0, 1.0), {"rate": 3.0})
    >>> sol = ol.solve(decay, ol.DOPRI5, sensitivities=ol.wrt(params=["rate"], u0=True))
    >>> sol.columns, sol.end_sensitivities.round(4)
    (("params['rate']", 'u0[0]'), array([[-0.0996,  0.0498]]))
    """
    return Wrt(params, u0)


class Column(NamedTuple):
    """One number with respect to which a solution is differentiated.

    label     what users call it
    path      its place among the parameters, or of u0 a single index
    of_u0     whether it is an initial value
    value     what it is
    """

    label: str
    path: tuple
    of_u0: bool
    value: float

    @property
    def size(self) -> float:
        """What the errors of its derivatives are measured by: its own size, or 1 where that is zero."""
        return abs(self.value) or 1.0


class Place(NamedTuple):
    """Stands for a number among parameters: its position in the order in which kernels get them."""

    number: int


def columns_of(chosen: Wrt, problem: Problem, parameters: Parameters) -> tuple[Column, ...]:
    """The columns of a choice."""
    if not isinstance(chosen, Wrt):
        raise TypeError(f"`sensitivities` must come from odelab.wrt(params=..., u0=...), got {chosen!r}.")
    known = places(parameters)
    numbers = [Column(label, path, False, parameters.values[k]) for path, (label, k) in known.items()]
    states = [Column(f"u0[{i}]", (i,), True, float(x)) for i, x in enumerate(problem.u0)]
    columns = [*picked("params", chosen.params, numbers), *picked("u0", chosen.u0, states)]
    if not columns:
        raise ValueError("`sensitivities` names no number; write odelab.wrt(params=True), u0=True, or places of some.")
    return tuple(columns)


def picked(name: str, choice, columns: list[Column]) -> list[Column]:
    """Those of the columns that a choice names, in their own order."""
    if choice is True or choice is False or choice is None:
        return columns if choice else []
    wanted = set()
    for one in choice if isinstance(choice, list | tuple | range | np.ndarray) else [choice]:
        place = one if isinstance(one, tuple) else (one,)
        found = [k for k, column in enumerate(columns) if column.path[: len(place)] == place]
        if not found:
            there = ", ".join(column.label for column in columns[:8]) + (", ..." if len(columns) > 8 else "")
            raise ValueError(
                f"`{name}` of odelab.wrt has {one!r}, where no number stands; there are {there or 'none'}."
            )
        wanted.update(found)
    return [columns[k] for k in sorted(wanted)]


def places(parameters: Parameters) -> dict[tuple, tuple[str, int]]:
    """The numbers among parameters: {path: (label, position in the order in which kernels get them)}."""
    markers = iter([Place(k) for k in range(len(parameters.values))])
    found = walk(parameters.rebuilt(parameters.params, markers), (), "params")
    return {path: (label, place.number) for path, label, place in found}


def walk(x, path: tuple, label: str) -> Iterator[tuple[tuple, str, Place]]:
    """Every marker in rebuilt parameters, with its path and label."""
    if isinstance(x, Place):
        yield path, label, x
    elif isinstance(x, np.ndarray):
        for index in np.ndindex(x.shape):
            yield from walk(x.item(index), (*path, *index), f"{label}[{', '.join(map(str, index))}]")
    elif isinstance(x, dict):
        for key, part in x.items():
            yield from walk(part, (*path, key), f"{label}[{key!r}]")
    elif hasattr(x, "_fields"):
        for name, part in zip(x._fields, x, strict=True):
            yield from walk(part, (*path, name), f"{label}.{name}")
    elif isinstance(x, tuple | list):
        for i, part in enumerate(x):
            yield from walk(part, (*path, i), f"{label}[{i}]")
