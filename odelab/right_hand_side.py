"""A user's right-hand side: which of three forms it has, how it is called, and what it must return."""

import functools
import inspect
import warnings
from collections.abc import Callable, Hashable

import numpy as np

from odelab.arrays import library_of, read_only, reject_masked, to_numpy

TIMES = ("t", "time")  # what right-hand sides call the time
COMPONENT, ARRAY, IN_PLACE = "component", "array", "in-place"
DOMAIN_ERRORS = ("math domain error", "expected a positive input", "expected a nonnegative input")  # Python's `math`


def form_of(rhs, t0, u0, params) -> tuple[str, Callable]:
    """Which of the three forms `rhs` has, found by calling it once; and `rhs` as a function that returns rows.

    It may return a tensor or, of one component, a number.
    """
    if takes_out(rhs):
        return IN_PLACE, rhs
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # torch, of the state that is kept
        answer = rhs(t0, u0, params)
    if answer is None:
        raise TypeError("`rhs` returned None; it must return one slope per component of `u0`: is its `return` missing?")
    if isinstance(answer, tuple | list):
        slopes = as_array("rhs", answer)
        check_shape(slopes.shape, u0)
        check_dtype(slopes.dtype)
        return COMPONENT, rhs
    tensors = library_of(answer) is not np
    reject_masked("rhs", answer)
    if tensors and answer.requires_grad:
        warnings.warn(
            f"`rhs` {name_of(rhs)} returns a tensor that carries gradients, and a run drops them; compute it in "
            "torch.no_grad(), or detach what it is made of.",
            RuntimeWarning,
            stacklevel=4,
        )
    answer = to_numpy(answer)
    check_dtype(answer.dtype)
    if answer.shape == () and u0.shape == (1,) and not tensors:
        return COMPONENT, returning_row(rhs)
    check_shape(answer.shape, u0)
    return ARRAY, returning_arrays(rhs) if tensors else rhs


def name_of(function) -> str:
    """What messages call a user's function, which may be an object that can be called."""
    return getattr(function, "__name__", type(function).__name__)


def takes_out(rhs) -> bool:
    """Does `rhs` take a fourth positional argument, `out`, that it fills?"""
    counts = accepted_counts(rhs)
    return counts is not None and counts.start == 4


def checked_rhs(rhs) -> Callable:
    """`rhs` as a function of (t, u, params) or (t, u, params, out)."""
    if not callable(rhs):
        raise TypeError(f"`rhs` must be a function rhs(t, u, params), got {rhs!r}.")
    counts = accepted_counts(rhs)
    check_order("rhs", rhs)
    if counts is None or 3 in counts or 4 in counts:
        return rhs
    if 2 in counts:
        return ignoring_params(rhs)
    raise TypeError(
        f"`rhs` must take (t, u, params), or (t, u, params, out) to fill `out`, got {signature_of(rhs)}; parameters "
        "reach it as its third argument."
    )


def checked_jacobian(jacobian) -> Callable | None:
    """A problem's own `jacobian` as a function of (t, u, params); None where there is none."""
    if jacobian is None:
        return None
    if not callable(jacobian):
        raise TypeError(f"`jacobian` must be a function jacobian(t, u, params), got {jacobian!r}.")
    counts = accepted_counts(jacobian)
    check_order("jacobian", jacobian)
    if counts is None or 3 in counts:
        return jacobian
    if 2 in counts:
        return ignoring_params(jacobian)
    raise TypeError(f"`jacobian` must take (t, u, params), got {signature_of(jacobian)}.")


def matrix_of(jacobian: Callable, t, u, params):
    """What a problem's own Jacobian is at a state: (n, n), an array, a tensor or a scipy.sparse matrix."""
    J = jacobian(t, read_only(u), params)
    if isinstance(J, tuple | list):
        J = as_array("jacobian", J)
    n = len(u)
    if tuple(getattr(J, "shape", ())) != (n, n):
        raise ValueError(
            f"`jacobian` returned shape {np.shape(J)} for {n} components at t = {float(t):g}; it must be ({n}, {n}), "
            "an array or a scipy.sparse matrix."
        )
    if library_of(J) is np and J.dtype.kind not in "fiubO":
        raise TypeError(f"`jacobian` must return real numbers, got dtype {J.dtype}.")
    return J


def check_order(name: str, function):
    """Refuse a function whose second argument is called t and the first is not, as `scipy.integrate.odeint` has it."""
    try:
        first, second = list(inspect.signature(function).parameters)[:2]
    except (TypeError, ValueError):  # no signature, or fewer arguments
        return
    if second in TIMES and first not in TIMES:
        raise TypeError(
            f"`{name}` must take its arguments in the order (t, u, params), got {signature_of(function)}, the order of "
            f"scipy.integrate.odeint; exchange `{first}` and `{second}`."
        )


def accepted_counts(function) -> range | None:
    """How many positional arguments a function may be called with; None where that cannot be told."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters):
        return range(0)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    most = 1 << 30 if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(positional)
    return range(sum(p.default is p.empty for p in positional), most + 1)


def signature_of(function) -> str:
    """How a function is called, for a message: its name and its arguments."""
    return f"{getattr(function, '__name__', type(function).__name__)}{inspect.signature(function)}"


def kept_for_each(make: Callable) -> Callable:
    """`make(function)`, of which each function gets one answer; an object that cannot be hashed gets a new one."""
    kept = functools.lru_cache(maxsize=256)(make)

    @functools.wraps(make)
    def find(function):
        return kept(function) if isinstance(function, Hashable) else make(function)

    return find


@kept_for_each
def ignoring_params(function) -> Callable:
    """function(t, u) as function(t, u, params); one wrapper for each function, so that compiled code is found again."""

    @functools.wraps(function)
    def with_params(t, u, params):
        return function(t, u)

    del with_params.__wrapped__  # because `inspect.signature` would report the two arguments of `function`
    vars(with_params)["original"] = function
    return with_params


@kept_for_each
def returning_row(function) -> Callable:
    """Wrap a right-hand side of one component that returns a number, so that it returns a tuple."""

    @functools.wraps(function)
    def as_row(t, u, params):
        return (function(t, u, params),)

    vars(as_row)["original"] = function
    return as_row


@kept_for_each
def returning_arrays(function) -> Callable:
    """Wrap a right-hand side that returns tensors, so that it returns arrays."""

    @functools.wraps(function)
    def as_arrays(t, u, params):
        return to_numpy(function(t, np.array(u), params))  # a copy, as torch warns of arrays that are read-only

    vars(as_arrays)["original"] = vars(as_arrays)["of_tensors"] = function
    return as_arrays


def unwrap(function) -> Callable:
    """The function of the user's inside the wrappers of this module."""
    while hasattr(function, "original"):
        function = function.original
    return function


class Pickled:
    """A function to be pickled: by its name or, if it has an attribute `pickled_as`, as the call that makes it."""

    def __new__(cls, function):
        return super().__new__(cls) if hasattr(function, "pickled_as") else function

    def __init__(self, function):
        self.function = function

    def __reduce__(self):
        return self.function.pickled_as


def check_dtype(dtype):
    """Refuse slopes that are no real numbers."""
    if dtype.kind not in "fiub":
        raise TypeError(
            f"`rhs` must return real numbers, a tuple of them or an array, got dtype {dtype}{where_complex(dtype)}."
        )


def check_shape(shape, u0):
    """Refuse slopes of another shape than the state's."""
    if tuple(shape) != u0.shape:
        raise ValueError(
            f"`rhs` returned shape {tuple(shape)} for a state of shape {u0.shape}; it must return one slope per "
            "component of `u0`."
        )


def as_array(name: str, values) -> np.ndarray:
    """The values as an array; what is masked or ragged is refused, `name` being the argument that is to blame."""
    reject_masked(name, values)
    try:
        return np.array(values)
    except ValueError:
        raise ValueError(f"`{name}` must be a row of numbers, got {values!r}; its entries differ in length.") from None


def where_complex(dtype) -> str:
    """What helps where slopes are complex, as an addition to a message; empty where they are not."""
    return "; for complex states give a complex `u0`" if dtype.kind == "c" else ""
