"""An initial value problem u' = rhs(t, u, params), u(t0) = u0, and what is known about it."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab.arrays import read_only
from odelab.complex_states import joined, on_parts, parts_of
from odelab.mass import MassMatrix, checked_mass
from odelab.right_hand_side import (
    COMPONENT,
    DOMAIN_ERRORS,
    IN_PLACE,
    Pickled,
    as_array,
    checked_jacobian,
    checked_rhs,
    form_of,
    unwrap,
)


class Invariant(NamedTuple):
    """A quantity that stays what it was at the start of a run, such as an energy.

    name        what it is called in figures and tables
    function    function(t, u, params), its value; `u` is one state (n,) or a batch of states (n, N)

    >>> import odelab as ol
    >>> energy = ol.Invariant("energy", lambda t, u, params: 0.5 * (u[0] ** 2 + u[1] ** 2))
    >>> spring = ol.Problem(lambda t, u, params: (u[1], -u[0]), [1.0, 0.0], (0.0, 10.0), invariants=(energy,))
    >>> end = ol.solve(spring, ol.DOPRI5).end_u
    >>> round(float(energy.function(10.0, end, ())), 4)
    0.5
    """

    name: str
    function: Callable


class Reference(NamedTuple):
    """A state that is known from the literature or from a computation of higher precision.

    t         the time
    u         the state at that time, (n,)
    digits    how many significant digits of it are known to be right
    source    who computed it, and how

    >>> import odelab as ol
    >>> known = ol.problems.robertson().references[0]
    >>> known.u.shape
    (3,)
    """

    t: float
    u: np.ndarray
    digits: float
    source: str


REMEMBERED = 4  # of what a problem remembers for one purpose; a kernel holds about a megabyte


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """An initial value problem u' = rhs(t, u, params), u(t0) = u0, and what is known about it.

    A right-hand side takes one of three forms. Its signature and what it returns tell them apart:

    - component form, `rhs(t, u, params) -> tuple`, which unpacks `u` (`x, v = u`). The same source then serves single
      states, batches, tensors and the fast compiled kernels and ensembles. Use `+ - * /`, products for powers, and
      `odelab.maths` for everything else; for at most 32 components. Of one component it may be a number, `-u[0]`;
    - array form, `rhs(t, u, params) -> array`, as in `return -A @ u`;
    - in-place form, `rhs(t, u, params, out)`, which sets every `out[i]` and returns nothing: for large systems.

    With a complex `u0` the right-hand side takes and returns complex numbers in any of these forms. Inside, the problem
    is a real one of 2n components, first the real and then the imaginary parts. `u0`, `size`, tolerances, Jacobians and
    measures are those of the parts; `odelab.solve` hands complex states back, events and projections get them.

    A right-hand side must not change `u`, which is read-only. `rhs(t, u)`, without parameters, is accepted in
    the first two forms.

    rhs           the right-hand side
    u0            the initial state: one number or a row of n numbers, real or complex, of any precision. Runs are in
                  double precision, whatever it is
    t_span        (t0, t1): where the run starts and ends; t1 < t0 runs backwards in time
    params        what `rhs` gets as its third argument. A number, a row of numbers (list or one-dimensional array)
                  becomes a tuple of numbers, which kernels and ensembles need. Anything else, such as a matrix or a
                  dictionary, is handed over as it is; `()` by default
    jacobian      jacobian(t, u, params), the (n, n) array or scipy.sparse matrix of derivatives; None where unknown, or
                  where states are complex
    exact         exact(t, params), the solution: (n,) for one time and (m, n) for m times; None where unknown
    invariants    `Invariant`s, quantities that the solution keeps
    references    `Reference`s, states known to many digits
    name          the name for messages and figures; that of `rhs` by default
    about         where the problem comes from
    mass          M of a problem M u' = rhs(t, u, params), a constant matrix (n, n), dense or scipy.sparse, or (n,), its
                  diagonal. Where it is singular, some equations are algebraic (a DAE, of index 1), and `ol.solve`
                  begins with a state that satisfies them, see `ol.consistent`. None, the default, where M = I
    form          found by calling `rhs` once; not to be given

    Raises TypeError or ValueError, naming the argument, where one of them is not what it must be.

    >>> import odelab as ol
    >>> def spring(t, u, params):
    ...     x, v = u
    ...     (stiffness,) = params
    ...     return v, -stiffness * x
    >>> problem = ol.Problem(spring, u0=[1.0, 0.0], t_span=(0.0, 10.0), params=4.0)
    >>> problem
    Problem(spring, n = 2, t in [0, 10], params = (4.0,))
    >>> problem.replace(t_span=(0.0, 20.0)).t_span
    (0.0, 20.0)
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
    mass: Any = None
    form: str = dataclasses.field(default="", repr=False)

    def __post_init__(self):
        keep = functools.partial(object.__setattr__, self)
        keep("rhs", checked_rhs(self.rhs))
        state = checked_state(self.u0)
        if state.dtype.kind == "c":
            keep("rhs", on_parts(self.rhs))
            state = locked(parts_of(state))
            if self.mass is not None:
                raise ValueError(
                    "`mass` cannot be given where `u0` is complex; write the real and imaginary parts out."
                )
            if self.jacobian is not None:
                raise ValueError(
                    "`jacobian` cannot be given where `u0` is complex: derivatives by real and by imaginary parts are "
                    "needed, and they are found; leave it out."
                )
        keep("u0", state)
        keep("t_span", checked_span(self.t_span))
        keep("jacobian", checked_jacobian(self.jacobian))
        keep("mass", checked_mass(self.mass, self.u0.size))
        keep("params", checked_params(self.params))
        keep("invariants", tuple(self.invariants))
        keep("references", tuple(self.references))
        keep("name", self.name or getattr(self.rhs, "__name__", "problem"))
        form, rhs = form_of(self.rhs, self.t_span[0], self.u0, self.params)
        keep("form", form)
        keep("rhs", rhs)

    window = None  # of a piece between two stops: (earliest, latest), the times that the right-hand side is shown

    @property
    def size(self) -> int:
        """The number of components, n; of a complex problem that of all parts."""
        return self.u0.size

    def seen(self, t):
        """The time that the right-hand side is shown at a time, or at an array of times."""
        if self.window is None:
            return t
        return np.clip(t, *self.window) if np.ndim(t) else min(max(t, self.window[0]), self.window[1])

    @functools.cached_property
    def mass_matrix(self) -> Any:
        """The mass matrix with its products and what of it is singular; None without one."""
        return None if self.mass is None else MassMatrix(self.mass)

    @property
    def weigh(self) -> Callable | None:
        """weigh(x): M x; None without a mass matrix."""
        return None if self.mass is None else self.mass_matrix.times

    @property
    def is_complex(self) -> bool:
        """Are its components the real and imaginary parts of complex ones?"""
        return hasattr(self.rhs, "of_complex")

    def state_of(self, u) -> np.ndarray:
        """A state as everything inside takes it: of a complex problem the parts of complex numbers."""
        return parts_of(u) if self.is_complex and np.iscomplexobj(u) else np.asarray(u, dtype=float)

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
        if self.is_complex:
            own = {"rhs": unwrap(self.rhs), "u0": joined(self.u0)} | changes
            changes = own | {"u0": np.asarray(own["u0"], dtype=complex)}
        return dataclasses.replace(self, form="", **{**self._outdated_fields(changes), **changes})

    def piece(self, t0: float, t1: float, u0, window=None, **params) -> "Problem":
        """The same problem from another state over another span, without calling the right-hand side to check it.

        params    params=... for others than the problem's own
        """
        part = object.__new__(Problem)
        changes = {"t_span": checked_span((t0, t1)), "u0": checked_state(u0), "window": window, **params}
        part.__dict__.update(self.__dict__, exact=None, references=(), invariants=(), **changes)
        outdated = ("plans_of_graph", "for_kernels")  # which are for this span and window
        for name in (*outdated, "slopes_of_graph") if params else outdated:
            part.__dict__.pop(name, None)
        return part

    def _outdated_fields(self, changes) -> dict:
        """The fields that hold for the old problem but not for the changed one, with the values that reset them."""
        start = "u0" in changes or ("t_span" in changes and checked_span(changes["t_span"])[0] != self.t_span[0])
        rhs, mass = "rhs" in changes, "mass" in changes
        return {
            **({"exact": None} if start or rhs or mass else {}),
            **({"references": ()} if start or rhs or mass or "params" in changes else {}),
            **({"jacobian": None} if rhs else {}),
            **({"invariants": ()} if rhs or mass else {}),
        }

    def slope(self, t: float, u: np.ndarray) -> np.ndarray:
        """The right-hand side at one state as an array, whatever its form."""
        return array_form(self)(t, u, self.params)

    def __reduce__(self):
        """Pickle right-hand side and Jacobian as their user wrote them; unpickling makes the wrappers again."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "form"}
        fields |= {"rhs": Pickled(unwrap(self.rhs)), "jacobian": unwrap(self.jacobian)}
        fields |= {"u0": joined(self.u0)} if self.is_complex else {}
        return Problem, tuple(fields.values())

    def __repr__(self):
        t0, t1 = self.t_span
        mass = "" if self.mass is None else ", with a mass matrix"
        return f"Problem({self.name}, n = {self.size}, t in [{t0:g}, {t1:g}], params = {self.params}{mass})"


def remembered(problem: Problem, purpose: str, *made_for) -> tuple[dict, tuple]:
    """(what a problem remembers for a purpose, the place there of what is made for these objects).

    What is remembered keeps these objects alive, so that no other has the identity of one. Runs of one problem again
    and again, by a few methods in turns, are short then.
    """
    known = vars(problem).setdefault(purpose, {})
    if len(known) > REMEMBERED:
        known.clear()
    return known, tuple(map(id, made_for))


def without_jacobian(problem: Problem) -> Problem:
    """The same problem as kernels solve it, which derive a Jacobian of their own; nothing is checked again.

    Dense output repeats their steps, and must not take another matrix. The problem remembers it, for short runs again
    and again.
    """
    if problem.jacobian is None:
        return problem
    known = vars(problem).get("for_kernels")
    if known is None:
        known = object.__new__(Problem)
        known.__dict__.update(problem.__dict__, jacobian=None)
        vars(problem)["for_kernels"] = known
    return known


def array_form(problem: Problem) -> Callable:
    """`rhs(t, u, params) -> array`, from any of the three forms.

    For 1/0 or sqrt(-1) NumPy returns infinity or NaN, whereas plain numbers raise an error. Here such an error becomes
    NaN, too: it means that the step has left the domain of the right-hand side.
    """
    plain, seen = in_array_form(problem), problem.seen

    def slopes(t, u, params):
        try:
            return plain(seen(t), u, params)
        except ArithmeticError:
            return np.full_like(u, np.nan)
        except ValueError as error:
            if not str(error).startswith(DOMAIN_ERRORS):
                raise
            return np.full_like(u, np.nan)

    return slopes


def in_array_form(problem: Problem) -> Callable:
    rhs = problem.rhs
    if problem.form == COMPONENT:
        return lambda t, u, params: np.array(rhs(t, read_only(u), params))
    if problem.form == IN_PLACE:
        twin = getattr(rhs, "array_form", None)  # a faster version without Python loops, if there is one
        if twin is not None:
            return twin

        def filling_rhs(t, u, params):
            out = np.full_like(u, np.nan)  # a component that is never set then ends the run as "not_finite"
            rhs(t, read_only(u), params, out)
            return out

        return filling_rhs
    return lambda t, u, params: rhs(t, read_only(u), params)


def checked_params(params):
    """The parameters as a right-hand side gets them: numbers as a tuple of Python's numbers, anything else as it is."""
    entries = params if isinstance(params, tuple | list) else (params,)
    for entry in params.values() if isinstance(params, dict) else entries:
        reject_gradients("params", entry)
    if isinstance(params, np.ndarray) and params.ndim < 2:
        entries = list(np.atleast_1d(params))
    elif not isinstance(params, tuple | list | int | float | np.number):
        return params
    if isinstance(params, tuple) and not any(isinstance(entry, np.number) for entry in params):
        return params
    return tuple(entry.item() if isinstance(entry, np.number) else entry for entry in entries)


def reject_gradients(name: str, value, function: str = "solve"):
    """Refuse a tensor that requires gradients, for a function of odelab that would lose them."""
    if getattr(value, "requires_grad", False):
        raise TypeError(
            f"`{name}` requires gradients, which `odelab.{function}` does not carry through a run; take "
            f"netbridge.{function}_with_gradients, or hand over `{name}.detach()`."
        )


def checked_state(u0) -> np.ndarray:
    reject_gradients("u0", u0)
    state = as_array("u0", u0)
    if state.dtype.kind not in "fiubc":
        raise TypeError(f"`u0` must hold numbers, got {u0!r}.")
    state = np.atleast_1d(state.astype(np.complex128 if state.dtype.kind == "c" else np.float64))
    if state.ndim != 1 or state.size == 0:
        raise ValueError(
            f"`u0` must be one-dimensional and not empty, got shape {state.shape}; flatten it, or use "
            "`odelab.ensemble` for many states."
        )
    if not np.isfinite(state).all():
        where = int(np.flatnonzero(~np.isfinite(state))[0])
        raise ValueError(f"`u0` must be finite, got {state[where]} in component {where}.")
    return locked(state)


def locked(state: np.ndarray) -> np.ndarray:
    state.setflags(write=False)
    return state


def checked_span(t_span) -> tuple[float, float]:
    try:
        t0, t1 = (float(t) for t in t_span)
        numeric = not isinstance(t_span, str | set | frozenset) and not any(isinstance(t, str | bool) for t in t_span)
    except (TypeError, ValueError):
        numeric = False
    if not numeric:
        raise ValueError(f"`t_span` must be two numbers (t0, t1), got {t_span!r}.")
    if not (np.isfinite(t0) and np.isfinite(t1)):
        raise ValueError(f"`t_span` must be finite, got ({t0}, {t1}).")
    if not np.isfinite(t1 - t0):
        raise ValueError(f"`t_span` is longer than floating-point numbers go, got ({t0}, {t1}).")
    if t0 == t1:
        raise ValueError(
            f"`t_span` has no length, got ({t0}, {t1}); give two different times (t1 < t0 runs backwards)."
        )
    return t0, t1
