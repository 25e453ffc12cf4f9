"""The parameters of a problem as inputs of a graph: the numbers in them, wherever they stand."""

from typing import Any

import numpy as np

from odelab.graph.arrays import Array
from odelab.graph.nodes import Graph

MOST = 4096  # numbers of an array that become inputs; larger arrays are constants of the kernel
LARGEST_WHOLE = 1 << 53  # whole numbers beyond have no float


class Parameters:
    """What of some parameters a kernel is handed at each call, and what it is made for.

    `values` are the numbers that are handed over; `made_for` is hashable and equal for parameters that one kernel can
    serve. They are lasting where nobody can change them later. Whole numbers may count a loop or name a place:
    `whole_numbers` says whether they are a part of the kernel.

    params           the parameters as the user gave them
    whole_numbers    "handed over" or "built in"
    """

    def __init__(self, params: Any, whole_numbers: str = "handed over"):
        self.params, self.builds_in = params, whole_numbers == "built in"
        self.values: list[float] = []
        self.has_whole_numbers, self.are_lasting = False, True
        self.made_for = self.visit(params)

    def visit(self, x) -> tuple:
        """What a kernel is made for at this part; the numbers in it are appended to `values`."""
        self.are_lasting &= not isinstance(x, np.ndarray | list | dict)
        if isinstance(x, tuple | list):
            return (type(x), *map(self.visit, x))
        if isinstance(x, dict):
            return (dict, *((key, self.visit(value)) for key, value in x.items()))
        self.has_whole_numbers |= is_whole(x)
        if self.is_handed_over(x):
            self.values.append(float(x))
            return (int if is_whole(x) else float,)
        if type(x) is np.ndarray and x.dtype == np.float64 and x.size <= MOST:
            self.values += x.ravel().tolist()
            return (np.ndarray, x.shape)
        if type(x) is np.ndarray and x.dtype.kind in "fiub":
            return (np.ndarray, x.dtype.str, x.shape, x.tobytes())
        if isinstance(x, str | bytes | bool | int | type(None)):
            return (type(x), x)
        self.are_lasting = False
        return (type(x), object())  # whose attributes may change: equal to nothing, so that it is read again

    @property
    def names(self) -> list[str]:
        """The names of the inputs, in the order of `values`."""
        return [f"p{k}" for k in range(len(self.values))]

    def nodes(self, graph: Graph):
        """The parameters with inputs of a graph in the place of numbers."""
        inputs = iter([graph.input(name) for name in self.names])
        return self.rebuilt(self.params, inputs)

    def rebuilt(self, x, inputs):
        if isinstance(x, tuple | list):
            parts = [self.rebuilt(part, inputs) for part in x]
            return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
        if isinstance(x, dict):
            return {key: self.rebuilt(value, inputs) for key, value in x.items()}
        if type(x) is np.ndarray and x.dtype == np.float64 and x.size <= MOST:
            return Array.of([next(inputs) for _ in range(x.size)]).reshape(x.shape)
        return next(inputs) if self.is_handed_over(x) else x

    def is_handed_over(self, x) -> bool:
        """Is it one number that is an input?"""
        if isinstance(x, float | np.floating):
            return not isinstance(x, np.float32 | np.float16)
        return is_whole(x) and not self.builds_in


def is_whole(x) -> bool:
    """Is it a whole number that a float can hold?"""
    return isinstance(x, int | np.integer) and not isinstance(x, bool) and abs(int(x)) <= LARGEST_WHOLE
