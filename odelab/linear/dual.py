"""Dual numbers: numbers and arrays together with their derivatives, which every operation updates.

A right-hand side called with them returns its exact derivatives, also through branches, loops and tables. A `Dual`
stands for a number or an array; NumPy passes calls of its functions to it, so that code written for arrays runs
unchanged. A complex one holds derivatives by real numbers, so that functions that are not analytic, such as abs, have
them too. A function that is not known here raises `NotDifferentiable`, so that no derivative is silently wrong.
"""

import math
import operator
import sys
from collections.abc import Callable

import numpy as np

from odelab.linear.rules import (
    ANALYTIC,
    AXES_ADDED,
    CHOICES,
    FIRST_ALONE,
    FLAT,
    LINEAR,
    PARTIALS,
    PRODUCTS,
    UNEVEN_PADS,
)


class NotDifferentiable(TypeError):
    """Code that no dual number can follow."""


class Dual:
    """A number or an array with its derivatives in m directions.

    value   a number, or an array of some shape
    part    (m, *shape): what the value changes by in each of the directions
    """

    __slots__ = ("part", "value")
    __array_priority__ = 1000.0
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value, part):
        self.value, self.part = value, part

    # The methods by which NumPy passes calls of its functions to a Dual

    def __array__(self, *_, **__):
        caller = sys._getframe(1)
        if caller.f_code.co_name == "_matmul_dispatch" and caller.f_globals["__name__"].startswith("scipy.sparse"):
            unknown = np.empty((), dtype=object)  # on such an array scipy lets the other side multiply: `__rmatmul__`
            unknown[()] = self
            return unknown
        raise NotDifferentiable("an array of plain numbers is made of a value whose derivative is needed")

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        inputs = tuple(as_dual(x) for x in inputs)
        values = tuple(value_of(x) for x in inputs)
        if method == "reduce" and ufunc.__name__ in ("add", "maximum", "minimum"):
            return reduce_entries(ufunc, inputs[0], **options)
        if method != "__call__" or options or (out is not None and not isinstance(out[0], Dual)):
            raise NotDifferentiable(f"numpy.{ufunc.__name__} is called in a way that is not followed")
        if out is not None:
            out[0][...] = ufunc(*inputs)
            return out[0]
        name = ufunc.__name__
        if any(hasattr(x, "tocsr") for x in values):
            return sparse_product(name, *inputs)
        if name in NOT_ANALYTIC and np.iscomplexobj(values[0]):
            return NOT_ANALYTIC[name](*inputs)
        if name in PRODUCTS:
            return product(ufunc, inputs, {})
        if name not in PARTIALS and name not in FLAT:
            raise NotDifferentiable(f"the derivative of {name} is not known")
        value = ufunc(*values)
        if value.dtype.kind == "c" and name not in ANALYTIC:
            raise NotDifferentiable(f"the derivative of {name} of complex numbers is not known")
        return value if name in FLAT else chain_rule(value, inputs, PARTIALS[name](*values, value), name in CHOICES)

    def __array_function__(self, function, types, arguments, options):
        name = function.__name__
        if name in SPECIAL:
            return SPECIAL[name](*arguments, **options)
        if name in FLAT:
            return function(*plain(arguments), **plain(options))
        if name in LINEAR:
            return linear(function, arguments, options)
        if name in PRODUCTS:
            return product(function, arguments, options)
        raise NotDifferentiable(f"the derivative of numpy.{name} is not known")

    # The methods that an array or a number has

    @property
    def shape(self):
        return np.shape(self.value)

    @property
    def ndim(self):
        return np.ndim(self.value)

    @property
    def size(self):
        return np.size(self.value)

    @property
    def dtype(self):
        return np.asarray(self.value).dtype

    @property
    def T(self):
        return np.transpose(self)

    @property
    def real(self):
        return Dual(np.real(self.value), np.real(self.part))

    @property
    def imag(self):
        return Dual(np.imag(self.value), np.imag(self.part))

    def conj(self):
        return Dual(np.conj(self.value), np.conj(self.part))

    conjugate = conj

    def __len__(self):
        return len(self.value)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index):
        if self.ndim == 0:
            return self
        return Dual(self.value[index], self.part[behind_directions(index)])

    def __setitem__(self, index, new):
        new = as_dual(new)
        self.value[index] = value_of(new)
        target = self.part[behind_directions(index)]
        change = align(new.part, np.ndim(new.value), target.ndim - 1) if isinstance(new, Dual) else 0.0
        self.part[behind_directions(index)] = change

    def __bool__(self):
        return bool(self.value)

    def __int__(self):
        return int(self.value)

    __index__ = __int__

    def __float__(self):
        raise NotDifferentiable("a plain number is made of a value whose derivative is needed")

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __round__(self, digits=None):
        return round(float(self.value), digits)

    def __floor__(self):
        return math.floor(self.value)

    def __ceil__(self):
        return math.ceil(self.value)

    def __trunc__(self):
        return math.trunc(self.value)

    def copy(self):
        return np.copy(self)

    def flatten(self):
        return np.ravel(self).copy()

    def astype(self, dtype, **_):
        kind = np.dtype(dtype).kind
        if kind == "c":
            return Dual(self.value.astype(complex), self.part.astype(complex))
        if kind != "f" or self.dtype.kind == "c":
            raise NotDifferentiable(f"an array of {np.dtype(dtype)} is made of values whose derivatives are needed")
        return self

    def reshape(self, *shape, **options):
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, **options)

    def item(self):
        return self

    def __getattr__(self, name):
        """Methods of arrays that are functions of NumPy, too; and the elementary functions, as object arrays ask."""
        if name in {"sum", "mean", "dot", "ravel", "transpose", "max", "min", "clip", "cumsum", "squeeze", "repeat"} | {
            *PARTIALS
        } - {"erf", "expit"}:
            function = getattr(np, name)
            return lambda *arguments, **options: function(self, *arguments, **options)
        raise AttributeError(f"a number with derivatives has no {name!r}")


def _operator(ufunc):
    return (lambda x, y: ufunc(x, y)), (lambda x, y: ufunc(y, x))


def _in_place(operation):
    def assign(x, y):
        new = operation(x, y)
        if x.ndim == 0:
            return new
        x[...] = new
        return x

    return assign


for _name, _ufunc in {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "pow": np.power,
    "mod": np.remainder,
    "floordiv": np.floor_divide,
    "matmul": np.matmul,
}.items():
    _straight, _reflected = _operator(_ufunc)
    setattr(Dual, f"__{_name}__", _straight)
    setattr(Dual, f"__r{_name}__", _reflected)
    setattr(Dual, f"__i{_name}__", _in_place(_straight))
for _name, _ufunc in {"neg": np.negative, "pos": np.positive, "abs": np.absolute}.items():
    setattr(Dual, f"__{_name}__", lambda x, ufunc=_ufunc: ufunc(x))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _compare = getattr(operator, _name)
    setattr(Dual, f"__{_name}__", lambda x, y, compare=_compare: compare(x.value, value_of(y)))


def value_of(x):
    return x.value if isinstance(x, Dual) else x


def plain(arguments):
    """The same arguments, their values in place of duals."""
    return replace_duals(arguments, value_of)


def replace_duals(arguments, change: Callable):
    """The same arguments, with `change` applied to every dual in them."""
    if isinstance(arguments, Dual):
        return change(arguments)
    if isinstance(arguments, tuple | list):
        return type(arguments)(replace_duals(one, change) for one in arguments)
    if isinstance(arguments, dict):
        return {name: replace_duals(one, change) for name, one in arguments.items()}
    return arguments


def duals_in(arguments) -> list[Dual]:
    if isinstance(arguments, Dual):
        return [arguments]
    if isinstance(arguments, dict):
        arguments = tuple(arguments.values())
    if isinstance(arguments, tuple | list):
        return [one for part in arguments for one in duals_in(part)]
    return []


def behind_directions(index):
    return (slice(None), *index) if isinstance(index, tuple) else (slice(None), index)


def align(part, ndim, wanted):
    """Derivatives of a value with `ndim` axes, shaped so that they broadcast over `wanted` of them."""
    return part if ndim >= wanted else part.reshape(len(part), *(1,) * (wanted - ndim), *part.shape[1:])


def chain_rule(value, inputs, partials, choice=False) -> Dual:
    """The chain rule: the sum of partial derivatives times derivatives, over the inputs that have some.

    choice    is one of the inputs chosen? Then an infinite derivative of another does not matter.
    """
    wanted, total = np.ndim(value), np.zeros(())
    for x, partial in zip(inputs, partials, strict=True):
        if isinstance(x, Dual):
            part = align(x.part, np.ndim(x.value), wanted)
            term = partial * part
            finite = math.isfinite(partial) if isinstance(partial, float) else np.isfinite(partial).all()
            if not finite:  # a part of zero gives zero, even if the partial derivative is infinite
                term = np.where(part == 0.0, 0.0, term)
            if choice:
                term = np.where(partial == 0.0, 0.0, term)
            total = total + term if total.ndim else term
    if total.shape[1:] != np.shape(value):
        total = np.array(np.broadcast_to(total, (len(total), *np.shape(value))))
    return Dual(value, total)


def linear(function, arguments, options) -> Dual:
    """A function that is linear in its arrays, up to a constant, which is subtracted from its values for the parts."""
    arguments, options = as_dual(arguments), as_dual(options)
    reject_nonlinear(function.__name__, arguments, options)
    value = function(*plain(arguments), **plain(options))
    if function.__name__ in AXES_ADDED and isinstance(arguments[0], Dual) and "order" not in options:
        return view_in_shape(arguments[0], value)
    constant = function(
        *replace_duals(arguments, lambda x: np.zeros_like(x.value)),
        **replace_duals(options, lambda x: np.zeros_like(x.value)),
    )
    constant_of_plain = constant  # what plain arrays beside the duals contribute is constant, too
    parts = [
        function(
            *replace_duals(arguments, lambda x, k=k: x.part[k]), **replace_duals(options, lambda x, k=k: x.part[k])
        )
        - constant_of_plain
        for k in range(directions(arguments, options))
    ]
    made = Dual(value, np.stack(parts))
    for one in duals_in(arguments):
        if np.may_share_memory(value, one.value):  # what is written into one of them would not reach the other's part
            value.flags.writeable = one.value.flags.writeable = False
    return made


def reject_nonlinear(name, arguments, options):
    """Refuse what makes one of the `LINEAR` functions another one."""
    if name in FIRST_ALONE and duals_in((*arguments[1:], options)):
        raise NotDifferentiable(f"the derivative of numpy.{name} by its places or steps is not followed")
    if name == "pad":
        mode = options.get("mode", arguments[2] if len(arguments) > 2 else "constant")
        if callable(mode) or mode in UNEVEN_PADS:
            raise NotDifferentiable(f"the derivative of numpy.pad with mode={mode!r} is not known")


def view_in_shape(x, value) -> Dual:
    """`x` in another shape, the entries in their order: where `value` is a view, so are its derivatives.

    A right-hand side may fill one array through another shape of it.
    """
    part = np.reshape(x.part, (len(x.part), *np.shape(value)))
    if np.may_share_memory(value, x.value) != np.may_share_memory(part, x.part):
        value.flags.writeable = False
    return Dual(value, part)


def reject_options(name, options):
    """Refuse what would be left out of account."""
    if options:
        raise NotDifferentiable(f"numpy.{name} with {', '.join(f'`{option}`' for option in options)} is not followed")


def product(function, arguments, options) -> Dual:
    """A function that is linear in each of its arrays: the product rule."""
    arguments = [as_dual(one) for one in arguments]
    values = [value_of(one) for one in arguments]
    value = function(*values, **options)
    if function in (np.matmul, np.dot) and not options and [np.ndim(one) for one in values] == [2, 1]:
        A, x = arguments
        if isinstance(x, Dual) and not isinstance(A, Dual):  # all directions at once
            return Dual(value, np.ascontiguousarray((A @ x.part.T).T))
    part = np.zeros((directions(arguments, {}), *np.shape(value)), np.result_type(value, float))
    for i, one in enumerate(arguments):
        if isinstance(one, Dual):
            for k, change in enumerate(one.part):
                part[k] += function(*values[:i], change, *values[i + 1 :], **options)
    return Dual(value, part)


def sparse_product(name, x, y):
    """The product of a scipy.sparse matrix and a vector."""
    from scipy.sparse import isspmatrix

    if name != "matmul" and not (name == "multiply" and (isspmatrix(x) or isspmatrix(y))):
        raise NotDifferentiable(f"numpy.{name} of a sparse matrix is not followed")
    if isinstance(y, Dual) and y.ndim == 1:
        return Dual(x @ y.value, np.ascontiguousarray((x @ y.part.T).T))
    if isinstance(x, Dual) and x.ndim == 1:
        return Dual(x.value @ y, x.part @ y)
    raise NotDifferentiable("the product of a sparse matrix with more than a vector is not followed")


def split(x, sections, axis=0):
    """Parts of an array; where they are views of it, so are their derivatives."""
    values, parts = np.split(x.value, sections, axis), np.split(x.part, sections, axis + 1 if axis >= 0 else axis)
    return [Dual(*both) for both in zip(values, parts, strict=True)]


def directions(arguments, options) -> int:
    return len((duals_in(arguments) + duals_in(options))[0].part)


def reduce_entries(ufunc, x, axis=0, **options):
    if ufunc is np.add:
        return linear(np.sum, (x,), {"axis": axis, **options})
    return extreme(np.argmax if ufunc is np.maximum else np.argmin, x, axis, **options)


def extreme(position, x, axis=None, **options):
    """The largest or smallest entry, and its derivatives."""
    reject_options("max" if position is np.argmax else "min", options)
    if axis is not None and x.ndim != 1:
        raise NotDifferentiable("the derivative of an extremum along one of several axes is not followed")
    return np.ravel(x)[int(position(x.value))]


def where(condition, *branches):
    condition = value_of(condition)
    if not branches:
        return np.where(condition)
    x, y = (as_dual(one) for one in branches)
    value = np.where(condition, value_of(x), value_of(y))
    value = value[()] if value.ndim == 0 else value
    if not duals_in((x, y)):
        return value
    # Parts are selected, not multiplied by 0 and 1, so that a value that is not finite has no effect on the other side.
    m, wanted = directions((x, y), {}), np.ndim(value)
    parts = [
        align(one.part, np.ndim(one.value), wanted) if isinstance(one, Dual) else np.zeros((m, *(1,) * wanted))
        for one in (x, y)
    ]
    part = np.where(condition, *parts)
    return Dual(value, np.array(np.broadcast_to(part, (m, *np.shape(value)))))


def interp(x, xp, fp, left=None, right=None, **options):
    """Straight lines through a table, whose places are plain numbers."""
    reject_options("interp", {name: value for name, value in options.items() if value is not None})
    if isinstance(xp, Dual):
        raise NotDifferentiable("the places of the table of numpy.interp have derivatives")
    fp = np.asarray(fp) if not isinstance(fp, Dual) else fp
    xp, place = np.asarray(xp), value_of(x)
    i = np.clip(np.searchsorted(xp, place, side="right") - 1, 0, len(xp) - 2)
    slope = (fp[i + 1] - fp[i]) / (xp[i + 1] - xp[i])
    inside = fp[i] + slope * (x - xp[i])
    first, last = fp[0] if left is None else left, fp[len(xp) - 1] if right is None else right
    return np.where(place < xp[0], first, np.where(place > xp[-1], last, inside))


def clip(x, lowest=None, highest=None, **options):
    lowest = options.get("a_min", options.get("min", lowest))
    highest = options.get("a_max", options.get("max", highest))
    x = x if lowest is None else np.maximum(x, lowest)
    return x if highest is None else np.minimum(x, highest)


def norm(x, ord=None, axis=None, **_):
    if ord not in (None, 2) or axis is not None or x.ndim > 1:
        raise NotDifferentiable("of numpy.linalg.norm only the Euclidean norm of a vector is followed")
    size = np.abs(x) if x.dtype.kind == "c" else x
    return np.sqrt(np.sum(size * size))


def solve(A, b):
    """The solution x of A x = b, for which A dx = db - dA x."""
    A, b = as_dual(A), as_dual(b)
    matrix = value_of(A)
    if np.ndim(matrix) != 2:
        raise NotDifferentiable("numpy.linalg.solve of many matrices is not followed")
    x = np.linalg.solve(matrix, value_of(b))
    part = np.zeros((directions((A, b), {}), *x.shape), x.dtype)
    if isinstance(b, Dual):
        part += b.part
    if isinstance(A, Dual):
        part -= A.part @ x
    return Dual(x, np.linalg.solve(matrix, part.reshape(len(part), len(x), -1)).reshape(part.shape))


SPECIAL: dict[str, Callable] = {
    "where": where,
    "interp": interp,
    "clip": clip,
    "norm": norm,
    "solve": solve,
    "inv": lambda A: solve(A, np.eye(len(A))),
    "split": split,
    "max": lambda x, axis=None, **options: extreme(np.argmax, x, axis, **options),
    "min": lambda x, axis=None, **options: extreme(np.argmin, x, axis, **options),
    "amax": lambda x, axis=None, **options: extreme(np.argmax, x, axis, **options),
    "amin": lambda x, axis=None, **options: extreme(np.argmin, x, axis, **options),
    "zeros_like": lambda x, dtype=None, **_: room(x, 0.0, dtype),
    "ones_like": lambda x, dtype=None, **_: room(x, 1.0, dtype),
    "empty_like": lambda x, dtype=None, **_: room(x, np.nan, dtype),
    "full_like": lambda x, value, dtype=None, **_: room(x, value, dtype),
    "iscomplexobj": lambda x: x.dtype.kind == "c",
    "isrealobj": lambda x: x.dtype.kind != "c",
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "angle": lambda x: np.arctan2(x.imag, x.real),
}


def room(x, value, dtype):
    """A new array like `x`: with room for derivatives, unless it is to hold something else than such numbers."""
    dtype = np.dtype((complex if x.dtype.kind == "c" else float) if dtype is None else dtype)
    if dtype.kind in "fc":
        return constant(np.full(x.shape, value, dtype), len(x.part))
    return np.full(x.shape, 0.0 if np.isnan(value) else value).astype(dtype)


def constant(value, m) -> Dual:
    """An array that duals may be written into."""
    return Dual(value, np.zeros((m, *np.shape(value)), np.result_type(value, float)))


def as_dual(x):
    """Lists and object arrays that hold duals as one dual; everything else as it is."""
    if isinstance(x, np.ndarray) and x.dtype == object:
        return gather(x.tolist())
    return x


def gather(answer):
    """Numbers and duals, in lists or tuples however deep, as one dual; plain numbers as an array."""
    if isinstance(answer, Dual):
        return answer
    if isinstance(answer, np.ndarray):
        return as_dual(answer)
    if isinstance(answer, tuple | list):
        entries = [gather(one) for one in answer]
        found = [one for one in entries if isinstance(one, Dual)]
        if not found:
            return np.array(entries, dtype=kind_of(entries))
        m, kind = len(found[0].part), kind_of(value_of(one) for one in entries)
        full = [one if isinstance(one, Dual) else constant(np.asarray(one, dtype=kind), m) for one in entries]
        return Dual(np.array([one.value for one in full]), np.stack([one.part for one in full], axis=1))
    return answer


def kind_of(values) -> type:
    """The kind of numbers that holds all values: complex where one of them is."""
    return complex if any(map(np.iscomplexobj, values)) else float


def absolute(x) -> Dual:
    """|z|, whose derivative is Re(conj(z) dz) / |z|, and 0 at zero, which is right for |z|^2."""
    return Dual(np.abs(x.value), (np.conj(np.sign(x.value)) * x.part).real)


NOT_ANALYTIC: dict[str, Callable] = {"absolute": absolute, "conjugate": Dual.conj}
