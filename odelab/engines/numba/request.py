"""The request for a kernel: everything its text depends on, and which runs can be compiled at all."""

import operator
import types
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab.arrays import read_only
from odelab.control.controllers import Controller
from odelab.control.laws import Law
from odelab.methods.rosenbrock import RosenbrockMethod
from odelab.methods.stabilised import StabilisedMethod
from odelab.methods.tableau import Method
from odelab.problem import Problem
from odelab.right_hand_side import ARRAY, COMPONENT, IN_PLACE

UNROLLED = 32  # at most so many components: with more, the text and the time to compile it become too long
AS_GIVEN = -1  # the number of parameters where `params` are handed over as they are
ENTRIES = 300  # at most so many entries in the factors of I - h gamma J, for the same reason


class Request(NamedTuple):
    """Everything the text of a kernel depends on; two runs with equal requests share one kernel."""

    layout: str  # "single", "lanes", "large", "stabilised", "generic" or "events"
    rhs: Callable
    form: str
    n: int  # 0 where neither the text nor what is handed to the kernel depends on it
    parameters: int  # how many, or AS_GIVEN
    method: Any  # a Method or a RosenbrockMethod; a StabilisedMethod in the layout of that name
    law: Law | None  # None: fixed steps
    vector_tolerance: bool = False
    limited: bool = False  # lanes: is there a largest step?
    points: bool = False  # lanes: are states at the times `t_eval` asked for?
    maxima: bool = False  # lanes: are the largest SAI and h rho of each run asked for?
    project: Callable | None = None  # the user's projection of states
    own: tuple[Callable, Callable] | None = None  # propose and judge of a controller that the user has written
    judged: bool = False  # does the controller estimate errors?
    event: Callable | None = None  # the function whose zeros are searched for

    @property
    def functions(self) -> dict[str, Callable]:
        """The user's functions by the names that the text of a kernel has for them."""
        radius = getattr(self.method, "spectral_radius", None)
        named = {"rhs": self.rhs, "spectral_radius_of": radius, "project": self.project}
        named["event"] = self.event
        if self.implicit:
            named["dual_rhs"] = self.rhs  # once more, for dual numbers
        if self.own is not None:
            named |= {"own_propose": self.own[0], "own_judge": self.own[1]}
        return {name: function for name, function in named.items() if callable(function)}

    @property
    def implicit(self) -> bool:
        """Is the method linearly implicit?"""
        return isinstance(self.method, RosenbrockMethod)

    @property
    def about(self) -> str:
        steps = f"law {self.law.name}" if self.law else "fixed steps"
        size = f"n = {self.n}, " if self.form == COMPONENT else ""
        count = "any" if self.parameters == AS_GIVEN else self.parameters
        what = f"{self.rhs.__name__}, {size}{count} parameter{'s' if count != 1 else ''}"
        return f"{what}, {self.method.name}, {steps}, layout {self.layout}"


class Plan(NamedTuple):
    """How a single run can be compiled.

    made_for    the method, the controller and the projection
    obstacle    why it should not be compiled; None where it should
    request     the kernel it needs
    """

    made_for: tuple
    obstacle: str | None
    request: Request


def plan_for(problem: Problem, method, controller: Controller, project=None) -> Plan:
    """The plan of a run. A problem remembers the last one, for short runs of one problem again and again.

    It depends on nothing that could change: what a function does, and what it has captured, is left to its kernel. A
    table of all problems would keep a problem alive whose own functions refer to it.
    """
    made_for = (method, controller, project)
    known = vars(problem).get("plan")
    if known is None or not all(map(operator.is_, known.made_for, made_for)):
        run = (problem, *made_for)
        known = Plan(made_for, obstacle_to_kernel(*run), request_for(layout_for(*run), *run))
        vars(problem)["plan"] = known
    return known


def is_plain(function) -> bool:
    """Is it defined by def or lambda (and perhaps compiled by numba), not a method that is bound to an object?"""
    return hasattr(function, "__code__") and not isinstance(function, types.MethodType)


def obstacle_to_kernel(problem: Problem, method, controller: Controller, project=None) -> str | None:
    """Why a run cannot be compiled at all; None where it can."""
    if not isinstance(method, Method | StabilisedMethod | RosenbrockMethod):
        return f"kernels are for explicit and linearly implicit methods, not {method.name}"
    radius = getattr(method, "spectral_radius", None)
    for name, function in (("rhs", problem.rhs), ("project", project), ("spectral_radius", radius)):
        if (name == "rhs" or callable(function)) and not is_plain(function):
            return f"kernels need a plain function as `{name}`"
    if takes_tuples(problem.rhs, problem) is False:
        return CONCATENATES.format(problem.rhs.__name__)
    if controller.law is None and controller.h is None:
        return "kernels know the controllers of odelab.fixed and odelab.adaptive only"
    return obstacle_to_implicit_kernel(problem, method)


def obstacle_to_implicit_kernel(problem: Problem, method) -> str | None:
    """Why a kernel of a linearly implicit method cannot be written for a system; None where it can.

    Such a kernel solves the linear systems of a small problem by text without loops, a line for each entry.
    """
    if not isinstance(method, RosenbrockMethod):
        return None
    if problem.form not in (COMPONENT, IN_PLACE):
        return f"kernels of {method.name} need component form or in-place form, not {problem.form} form"
    if numbers(problem.params) is None:
        return f"kernels of {method.name} need numbers as `params`"
    if problem.form == IN_PLACE:
        return None  # `obstacle_to_band` has the rest, which takes a moment
    if problem.size > UNROLLED:
        return f"kernels of {method.name} unroll at most {UNROLLED} components, got {problem.size}"
    if problem.size**2 > ENTRIES and entries(problem.rhs, problem.size, len(problem.params)) > ENTRIES:
        return f"the factors have more than {ENTRIES} entries, too many for a kernel of {method.name}"
    return None


def obstacle_to_band(problem: Problem, method) -> str | None:
    """Why a kernel of a linearly implicit method cannot eliminate a large system; None where it can.

    The pattern of its right-hand side is looked for at the first call, which takes a tenth of a second.
    """
    if not isinstance(method, RosenbrockMethod) or problem.form != IN_PLACE:
        return None
    from odelab.engines.rosenbrock.band import band_for

    found = band_for(problem.rhs, problem.size, len(problem.params))
    return found if isinstance(found, str) else None


def entries(rhs: Callable, n: int, parameters: int) -> int:
    """How many entries the factors of I - h gamma J have, for a right-hand side; the answer is remembered."""
    from odelab.engines.rosenbrock.elimination import elimination
    from odelab.engines.rosenbrock.pattern import pattern_of

    known = counted.setdefault(rhs, {})
    if (n, parameters) not in known:
        known[n, parameters] = elimination(pattern_of(rhs, n, parameters).rows).size
    return known[n, parameters]


CONCATENATES = (
    "kernels hand `u` to {} as a tuple, with which it computes something else than with an array, as `u + u` does; "
    "write it component by component, `x, v = u`, or let it return an array"
)


def takes_tuples(function: Callable, problem: Problem) -> bool | None:
    """Does a function of (t, u, params) give the same for `u` as a tuple? None where it cannot be said.

    It is found once for each function, at two states. What takes no tuple is refused by numba, too.
    """
    if problem.form != COMPONENT:
        return True
    if function not in as_tuple:
        beside = problem.u0 + 0.0123 * (1.0 + np.abs(problem.u0)) * np.cos(np.arange(problem.size))
        answers = [same_for_tuple(function, problem.t_span[0], u, problem.params) for u in (problem.u0, beside)]
        as_tuple[function] = False if False in answers else answers[0]
    return as_tuple[function]


def same_for_tuple(function, t, u, params) -> bool | None:
    try:
        with np.errstate(all="ignore"):
            one, other = (
                np.asarray(function(t, form, params), dtype=float) for form in (read_only(u), tuple(u.tolist()))
            )
    except Exception:  # it takes no tuple, or is not defined there: numba, or the run, will say so
        return None
    return one.shape == other.shape and bool(np.allclose(one, other, 1e-9, 1e-12, equal_nan=True))


as_tuple: weakref.WeakKeyDictionary[Callable, bool | None] = weakref.WeakKeyDictionary()
counted: weakref.WeakKeyDictionary[Callable, dict[tuple[int, int], int]] = weakref.WeakKeyDictionary()


def obstacle_to_lanes(problem: Problem, method, controller: Controller) -> str | None:
    """Why an ensemble cannot run in lanes."""
    if problem.form != COMPONENT:
        return f"lanes need component form, not {problem.form} form"
    if not isinstance(method, Method | RosenbrockMethod):
        return f"lanes are for Runge-Kutta and Rosenbrock methods, not {method.name}"
    reason = obstacle_to_kernel(problem, method, controller)
    if reason is not None:
        return reason
    if problem.size > UNROLLED:
        return f"lanes unroll at most {UNROLLED} components, got {problem.size}"
    if numbers(problem.params) is None:
        return "lanes need numbers as `params`"
    return None


def numbers(params) -> np.ndarray | None:
    """Parameters as floats, or None where they are not all numbers."""
    if not isinstance(params, tuple) or any(map(changed_as_float, params)):
        return None
    try:
        found = np.array(params, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return found if found.ndim == 1 else None


def changed_as_float(parameter) -> bool:
    """Would conversion to a float change its meaning: is it text, or a whole number that no float can hold?"""
    return isinstance(parameter, str | bytes) or (isinstance(parameter, int) and abs(parameter) > 1 << 53)


def layout_for(problem: Problem, method, controller: Controller, project=None) -> str:
    """The layout of a single run: one with a loop of its own where the run suits it, else "generic".

    "generic" and "stabilised" compile the loop of `odelab.core.integrate` itself.
    """
    if isinstance(method, StabilisedMethod):
        return "stabilised"
    if isinstance(method, RosenbrockMethod):
        return "large" if problem.form == IN_PLACE else "single"
    if project is not None or (controller.law is None and controller.h is None):
        return "generic"
    if problem.form in (ARRAY, IN_PLACE):
        return "large"
    return "single" if problem.size <= UNROLLED and numbers(problem.params) is not None else "generic"


def request_for(layout: str, problem: Problem, method, controller: Controller, project=None, **options) -> Request:
    own = controller.law is None and controller.h is None
    parameters = len(problem.params) if hasattr(problem.params, "__len__") else 1
    if layout == "large" and numbers(problem.params) is None:
        parameters = AS_GIVEN
    return Request(
        layout,
        problem.rhs,
        problem.form,
        problem.size if problem.form == COMPONENT or isinstance(method, RosenbrockMethod) else 0,
        parameters,
        method.compiles_as if isinstance(method, StabilisedMethod) else method,
        controller.law,
        bool(np.ndim(controller.atol)),
        limited=layout == "lanes" and bool(np.isfinite(controller.max_step)),
        project=project,
        own=(controller.propose, controller.judge) if own else None,
        judged=controller.needs_error,
        **options,
    )
