"""Arrays of nodes, and what NumPy does with them: ufuncs element by element, sums in NumPy's order, products.

`Array` is also what a captured array of plain numbers becomes, so that it can be asked for the place of a node.
Functions of NumPy that are no ufuncs are in `odelab.graph.numpy_functions`.
"""

import functools
import math

import numpy as np

from odelab.graph import nodes
from odelab.graph.graphs import Node, refuse_single
from odelab.graph.nodes import choose, logical, two
from odelab.graph.operations import integer, raises_where, set_bits
from odelab.graph.trails import Untraceable

WRITTEN = "changes an array that outlives the call"
COPY = "write to a copy, or to np.zeros(n)"


def numpys_method(name: str):
    """A method of arrays that is the function of NumPy of the same name."""

    def method(self, *arguments, **options):
        return apply_function(getattr(np, name), (self, *arguments), options)

    return method


class Array(np.ndarray):
    """An array of nodes and numbers, or a captured array of plain numbers that may be asked for the place of a node."""

    @classmethod
    def of(cls, items) -> "Array":
        """A one-dimensional array of nodes and numbers."""
        out = np.empty(len(items), dtype=object)
        for place, item in enumerate(items):
            out[place] = item
        return out.view(cls)

    @property
    def dtype(self):
        """What NumPy would call the entries if they had values."""
        return own_dtype(self) if not holds_objects(self) else dtype_of_entries(self)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function, types, arguments, options):
        return apply_function(function, arguments, options)

    def __getitem__(self, place):
        places = place if isinstance(place, tuple) else (place,)
        if any(isinstance(p, Node) for p in places):
            return look_up(self, places)
        if any(isinstance(p, np.ndarray) and holds_objects(p) for p in places):
            place = tuple(map(numbers_of_place, places))
        return as_numpys(super().__getitem__(place))

    def __iter__(self):
        return map(as_numpys, super().__iter__())

    def __setitem__(self, place, value):
        if not holds_objects(self):
            write_numbers(self, place, value)
        elif isinstance(place, np.ndarray) and holds_objects(place) and place.shape == self.shape:
            super().__setitem__(..., elementwise(choose, place, value, self))
        elif isinstance(place, Node) and self.ndim == 1:
            write_at(self, place, value)
        else:
            numbers_of_place(place)
            super().__setitem__(place, without_box(value))

    def astype(self, kind, **options):  # type: ignore[override]
        if not holds_objects(self):
            return super().astype(kind, **options)
        return elementwise(functools.partial(converted, kind=dtype_named(kind)), self)

    def copy(self, order="C"):
        return entries(self).copy().view(Array)

    def fill(self, value):
        self[...] = value

    sum, mean, std, var, prod, max, min = map(numpys_method, ("sum", "mean", "std", "var", "prod", "max", "min"))
    all, any, dot, cumsum, cumprod = map(numpys_method, ("all", "any", "dot", "cumsum", "cumprod"))
    clip, round, trace, argmax, argmin = map(numpys_method, ("clip", "round", "trace", "argmax", "argmin"))
    argsort, nonzero, searchsorted = map(numpys_method, ("argsort", "nonzero", "searchsorted"))

    def sort(self, *_, **__):
        raise Untraceable("sorts or reads an array as bytes", "write sorted(u), or np.minimum and np.maximum")

    def view(self, *arguments, **options):
        kind = arguments[0] if arguments else type(self)
        if holds_objects(self) and not (isinstance(kind, type) and issubclass(kind, np.ndarray)):
            raise Untraceable("reads the bits of numbers", "leave it out")
        return super().view(*arguments, **options)

    def setflags(self, write=None, align=None, uic=None):
        if write:
            raise Untraceable(WRITTEN, COPY)
        super().setflags(write=write, align=align, uic=uic)

    tobytes = dump = dumps = tofile = partition = argpartition = put = resize = byteswap = sort

    def __bool__(self):
        return bool(super().item()) if self.size == 1 else super().__bool__()

    def __float__(self):
        raise Untraceable("asks for the value of a number (float of an array, or a function that is not followed)")

    __int__ = __index__ = __complex__ = __float__


own_dtype = np.ndarray.dtype.__get__


def holds_objects(array) -> bool:
    """Does an array hold nodes, or numbers as objects, rather than plain numbers?"""
    return own_dtype(array).hasobject


def as_numpys(entry):
    """An entry of an array; a float of Python's is one of NumPy's, which can be divided by zero."""
    return np.float64(entry) if type(entry) in (float, int) else entry


def dtype_of_entries(array):
    first = array.reshape(-1)[:1].tolist()
    kind = first[0].kind if first and isinstance(first[0], Node) else "d"
    return np.dtype(bool if kind == "b" else float)


def without_box(x):
    """An array as NumPy's own; one of no dimension as its entry."""
    return plain(x)[()] if isinstance(x, np.ndarray) else x


def plain(x):
    """An Array as NumPy's own array; everything else as it is."""
    return x.view(np.ndarray) if isinstance(x, Array) else x


def entries(x) -> np.ndarray:
    """Anything as a plain array of objects, nodes and numbers."""
    if isinstance(x, Node):
        box = np.empty((), dtype=object)
        box[()] = x
        return box
    if isinstance(x, np.ndarray):
        refuse_single(plain(x))
        return plain(x) if holds_objects(x) else plain(x).astype(object)
    if isinstance(x, list | tuple):
        return nested_entries(x)
    return np.asarray(x, dtype=object)


def nested_entries(x) -> np.ndarray:
    parts = [entries(part) for part in x]
    if not parts:
        return np.empty(0, dtype=object)
    if any(part.shape != parts[0].shape for part in parts):
        raise Untraceable("makes an array of rows of different lengths", "make the rows equally long")
    out = np.empty((len(parts), *parts[0].shape), dtype=object)
    for place, part in enumerate(parts):
        out[place] = part[()] if part.ndim == 0 else part
    return out


def packed(items: list, shape: tuple):
    """Items as an Array of a shape; the one item of no shape as itself."""
    return items[0] if shape == () else Array.of(items).reshape(shape)


def elementwise(function, *values):
    """A function of numbers for each entry of arrays, which are broadcast."""
    arrays = [entries(x) for x in values]
    shape = (
        arrays[0].shape
        if len({array.shape for array in arrays}) == 1
        else np.broadcast_shapes(*(a.shape for a in arrays))
    )
    columns = [
        (array if array.shape == shape else np.broadcast_to(array, shape)).reshape(-1).tolist() for array in arrays
    ]
    return packed([function(*row) for row in zip(*columns, strict=True)], shape)


def dtype_named(kind) -> np.dtype:
    """The dtype that a name, a class or its stand-in (`odelab.functions.stand_ins`) stands for."""
    return np.dtype(getattr(kind, "own", kind))


def has_nodes(values) -> bool:
    """Is there a node among values, or in a list, tuple, dict or array of them?"""
    return any(holds_nodes(x) for x in values)


def holds_nodes(x) -> bool:
    if isinstance(x, Node):
        return True
    if isinstance(x, np.ndarray):
        return holds_objects(x)
    if isinstance(x, dict):
        return has_nodes(x.values())
    return isinstance(x, list | tuple | set) and has_nodes(x)


def converted(x, kind):
    """A number or a node as `astype` converts it."""
    return x.astype(kind) if isinstance(x, Node) else np.asarray(x).astype(kind)[()]


def numbers_of_place(place):
    """A place whose parts are numbers; those that depend on the state are refused."""
    if isinstance(place, tuple):
        return tuple(map(numbers_of_place, place))
    if isinstance(place, Node) or (
        isinstance(place, np.ndarray) and any(isinstance(p, Node) for p in entries(place).flat)
    ):
        raise Untraceable("takes part of an array where a mask or a place depends on the state", "use np.where")
    if isinstance(place, np.ndarray) and holds_objects(place):
        return np.array(place.tolist())
    return place


def write_numbers(array, place, value):
    """array[place] = value for an array of plain numbers, which is captured if it cannot be written to."""
    if not array.flags.writeable:
        raise Untraceable(WRITTEN, COPY)
    if has_nodes((value, place)):
        raise Untraceable(
            "writes numbers that depend on the state to an array of constants", "make it with np.zeros(n)"
        )
    plain(array)[place] = value


def write_at(array, place: Node, value):
    """array[place] = value where the place depends on the state: each entry is chosen."""
    count = len(array)
    raises_where(place.graph, outside(place, count))
    for k in range(count):
        here = logical("or", two("eq", place, k), two("eq", place, k - count))
        array[k] = choose(here, value, array[k])


def outside(place: Node, count: int):
    return logical("or", two("lt", place, -count), two("ge", place, count))


def look_up(array, places):
    """An entry at a place that is a node: from a table of numbers, or by choosing among the entries."""
    axis = next(k for k, p in enumerate(places) if isinstance(p, Node))
    node, count = places[axis], array.shape[axis]
    if node.kind != "l":
        raise Untraceable("looks up a place that is no whole number", "write int(...) around it")
    if not all(isinstance(p, Node | int | np.integer) for p in places):
        raise Untraceable("takes a slice of an array at a place that depends on the state", "take one entry")
    raises_where(node.graph, outside(node, count))
    rows = [plain(array)[(*places[:axis], k)] for k in range(count)] if axis else list(plain(array))
    rest = places[axis + 1 :]
    if not holds_objects(array) and plain(array)[places[:axis]].ndim == 1:
        return gather(node, plain(array)[places[:axis]] if axis else plain(array))
    return chosen_row(node, [row.view(Array)[rest] if rest else row for row in rows])


def gather(place: Node, table) -> Node:
    """An entry of a table of numbers; NaN, or -1, outside of it."""
    kind = "d" if table.dtype.kind == "f" else "l"
    number = place.graph.table(table.astype(float if kind == "d" else np.int64))
    node = place.graph.add("gather", kind, number, integer(place).i)
    bits = (
        max((int(x).bit_length() for x in (table.min(), table.max())), default=0)
        if kind == "l" and len(table)
        else None
    )
    return set_bits(node, bits)


def chosen_row(place: Node, rows: list):
    """The row at a place; NaN where there is none."""
    count, found = len(rows), math.nan
    for k, row in enumerate(rows):
        here = logical("or", two("eq", place, k), two("eq", place, k - count))
        found = elementwise(choose, here, row, found) if isinstance(row, np.ndarray) else choose(here, row, found)
    return found


def clip(x, low=None, high=None):
    """np.clip: the lower bound first."""
    x = x if low is None else elementwise(nodes.larger, x, low)
    return x if high is None else elementwise(nodes.smaller, x, high)


def apply_function(function, arguments, options):
    """What a function of NumPy that is no ufunc does with arrays of nodes; see `odelab.graph.numpy_functions`."""
    from odelab.graph.numpy_functions import call

    return call(function, arguments, options)


def apply_ufunc(ufunc, method: str, inputs, options):
    from odelab.graph.ufuncs import apply

    return apply(ufunc, method, inputs, options)
