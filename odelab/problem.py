"""An initial value problem u' = rhs(t, u, params), u(t0) = u0, and what is known about it."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

COMPONENT, ARRAY, IN_PLACE = "component", "array", "in-place"
DOMAIN_ERRORS = ("math domain error", "expected a positive input", "expected a nonnegative input")  # Python's `math`


class Invariant(NamedTuple):
    """A quantity `function(t, u, params)` that stays what it was at t0; `u` is (n,) or a batch (n, N)."""

    name: str
    function: Callable


class Reference(NamedTuple):
    """The state at time `t`, known to about `digits` significant digits, and who computed it."""

    t: float
    u: np.ndarray
    digits: float
    source: str


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """u' = rhs(t, u, params) on t_span from u0.

    The right-hand side takes one of three forms, told apart by its signature and by what it returns:

    - component form, `rhs(t, u, params) -> tuple`, unpacking `u`: one source for floats, batches, tensors and
      compiled lanes. Use `+ - * /`, products for powers and `odelab.maths`; at most 32 components;
    - array form, `rhs(t, u, params) -> array`;
    - in-place form, `rhs(t, u, params, out)`, filling `out`.

    `jacobian(t, u, params)` returns an (n, n) array or a scipy.sparse matrix; `exact(t, params)` the solution, (n,)
    for a number and (m, n) for m times.
    """

    rhs: Callable
    u0: Any
    t_span: tuple[float, float]
    params: Any = ()
    jacobian: Callable | None = None
    exact: Callable | None = None
    invariants: tuple[Invariant, ...] = ()
    references: tuple[Reference, ...] = ()
    name: str = ""
    about: str = ""
    form: str = dataclasses.field(default="", repr=False)

    def __post_init__(self):
        check_rhs(self.rhs)
        object.__setattr__(self, "u0", checked_state(self.u0))
        object.__setattr__(self, "t_span", checked_span(self.t_span))
        if isinstance(self.params, list | np.ndarray):
            object.__setattr__(self, "params", tuple(self.params))
        elif isinstance(self.params, int | float):
            object.__setattr__(self, "params", (self.params,))
        object.__setattr__(self, "invariants", tuple(self.invariants))
        object.__setattr__(self, "references", tuple(self.references))
        object.__setattr__(self, "name", self.name or getattr(self.rhs, "__name__", "problem"))
        object.__setattr__(self, "form", form_of(self.rhs, self.t_span[0], self.u0, self.params))

    @property
    def size(self) -> int:
        """The number of components, n."""
        return self.u0.size

    def replace(self, **changes) -> "Problem":
        """A copy with some fields changed: `problem.replace(t_span=(0.0, 20.0))`.

        Exact solution, references, Jacobian and invariants stay only where the change leaves them true.
        """
        known = {field.name for field in dataclasses.fields(self)} - {"form"}
        unknown = sorted(set(changes) - known)
        if unknown:
            raise TypeError(
                f"`replace` got {unknown[0]!r}, which is not a field of Problem; the fields are {sorted(known)}."
            )
        return dataclasses.replace(self, form="", **{**self._outdated(changes), **changes})

    def _outdated(self, changes) -> dict:
        """What is known of the old problem and does not hold for the changed one: reset, not carried over."""
        start = "u0" in changes or ("t_span" in changes and checked_span(changes["t_span"])[0] != self.t_span[0])
        rhs = "rhs" in changes
        return {
            **({"exact": None} if start or rhs else {}),
            **({"references": ()} if start or rhs or "params" in changes else {}),
            **({"jacobian": None, "invariants": ()} if rhs else {}),
        }

    def slope(self, t: float, u: np.ndarray) -> np.ndarray:
        """The right-hand side at one state as an array, whatever its form."""
        return array_form(self)(t, u, self.params)

    def __repr__(self):
        t0, t1 = self.t_span
        return f"Problem({self.name}, n = {self.size}, t in [{t0:g}, {t1:g}], params = {self.params})"


def array_form(problem: Problem) -> Callable:
    """`rhs(t, u, params) -> array`, from any of the three forms.

    NumPy gives 1/0 and sqrt(-1) a value, plain numbers raise; here both say NaN: the step left the domain.
    """
    plain = spelled_for_arrays(problem)

    def slopes(t, u, params):
        try:
            return plain(t, u, params)
        except ArithmeticError:
            return np.full_like(u, np.nan)
        except ValueError as error:
            if not str(error).startswith(DOMAIN_ERRORS):
                raise
            return np.full_like(u, np.nan)

    return slopes


def spelled_for_arrays(problem: Problem) -> Callable:
    rhs = problem.rhs
    if problem.form == COMPONENT:
        return lambda t, u, params: np.array(rhs(t, u, params))
    if problem.form == IN_PLACE:
        twin = getattr(rhs, "array_form", None)  # the same with array operations, where loops are slow in plain Python
        if twin is not None:
            return twin

        def filled(t, u, params):
            out = np.full_like(u, np.nan)  # what is not filled is seen
            rhs(t, u, params, out)
            return out

        return filled
    return rhs


def check_rhs(rhs):
    if not callable(rhs):
        raise TypeError(f"`rhs` must be a function rhs(t, u, params), got {rhs!r}.")


def as_array(name: str, values) -> np.ndarray:
    try:
        return np.array(values)
    except ValueError:
        raise ValueError(f"`{name}` must be a row of numbers, got {values!r}; its entries differ in length.") from None


def checked_state(u0) -> np.ndarray:
    state = as_array("u0", u0)
    if state.dtype.kind not in "fiub":
        raise TypeError(f"`u0` must hold real numbers, got {u0!r}; split complex states into real and imaginary parts.")
    state = np.atleast_1d(state.astype(np.float64))
    if state.ndim != 1 or state.size == 0:
        raise ValueError(
            f"`u0` must be one-dimensional and not empty, got shape {state.shape}; flatten it, or use "
            "`odelab.ensemble` for many states."
        )
    if not np.isfinite(state).all():
        where = int(np.flatnonzero(~np.isfinite(state))[0])
        raise ValueError(f"`u0` must be finite, got {state[where]} in component {where}.")
    state.setflags(write=False)
    return state


def checked_span(t_span) -> tuple[float, float]:
    try:
        t0, t1 = (float(t) for t in t_span)
    except (TypeError, ValueError):
        raise ValueError(f"`t_span` must be two numbers (t0, t1), got {t_span!r}.") from None
    if not (np.isfinite(t0) and np.isfinite(t1)):
        raise ValueError(f"`t_span` must be finite, got ({t0}, {t1}).")
    if t0 == t1:
        raise ValueError(
            f"`t_span` has no length, got ({t0}, {t1}); give two different times (t1 < t0 runs backwards)."
        )
    return t0, t1


def form_of(rhs, t0, u0, params) -> str:
    """Which of the three forms `rhs` has, found by calling it once; its answer must fit `u0`."""
    if takes_out(rhs):
        return IN_PLACE
    with np.errstate(all="ignore"):
        answer = rhs(t0, u0, params)
    if answer is None:
        raise TypeError("`rhs` returned None; it must return one slope per component of `u0`: is its `return` missing?")
    if isinstance(answer, tuple | list):
        slopes = as_array("rhs", answer)
        check_shape(slopes.shape, u0)
        check_dtype(slopes.dtype)
        return COMPONENT
    answer = np.asarray(answer)
    check_dtype(answer.dtype)
    check_shape(answer.shape, u0)
    return ARRAY


def takes_out(rhs) -> bool:
    """Has `rhs` a fourth positional argument to fill?"""
    try:
        parameters = inspect.signature(rhs).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [
        p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ]
    return len(positional) == 4


def check_dtype(dtype):
    if dtype.kind not in "fiub":
        raise TypeError(
            f"`rhs` must return real numbers, got dtype {dtype}; split complex slopes into real and imaginary parts."
        )


def check_shape(shape, u0):
    if tuple(shape) != u0.shape:
        raise ValueError(
            f"`rhs` returned shape {tuple(shape)} for a state of shape {u0.shape}; it must return one slope per "
            "component of `u0`."
        )
