"""Which runs numba can compile, and with which kernel; of others, what stands in the way."""

import functools
import importlib.util
import types
import weakref
from collections.abc import Callable

import numpy as np

from odelab import core
from odelab.arrays import read_only
from odelab.control.controllers import Controller, is_known
from odelab.engines.numba.request import request_of_run
from odelab.problem import Problem
from odelab.right_hand_side import COMPONENT, name_of

CONCATENATES = (
    "kernels hand `u` to {} as a tuple, with which it computes something else than with an array, as `u + u` does; "
    "write it component by component, `x, v = u`, or let it return an array"
)
as_tuple: weakref.WeakKeyDictionary[Callable, bool | None] = weakref.WeakKeyDictionary()


def obstacle_to_kernel(problem: Problem, method, controller: Controller, project=None) -> str | None:
    """Why a run cannot be compiled at all; None where it can."""
    if not (method.is_explicit or method.adapts_stages):
        return f"numba compiles explicit methods, not {method.name}"
    if not is_installed():
        return "numba is not installed (pip install numba)"
    radius = getattr(method, "spectral_radius", None)
    for name, function in (("rhs", problem.rhs), ("project", project), ("spectral_radius", radius)):
        if (name == "rhs" or callable(function)) and not is_plain(function):
            return f"kernels need a plain function as `{name}`"
    if takes_tuples(problem.rhs, problem) is False:
        return CONCATENATES.format(name_of(problem.rhs))
    if not is_known(controller):
        return "kernels know the controllers of odelab.fixed and odelab.adaptive only"
    return None


def parts_of_run(problem: Problem, method, controller: Controller, untraceable: str) -> tuple[list[Callable], str]:
    """The functions that numba compiles together for a run, the user's first, and what else the kernel does."""
    reason = obstacle_to_kernel(problem, method, controller)
    if reason is not None:
        raise ValueError(f"there is no such kernel: {reason}; {untraceable}.")
    request = request_of_run(problem, method, controller)
    steered = method.extend_controller(controller, problem.rhs)
    functions = [*request.functions.values(), method.step_of(), steered.propose, steered.judge, core.integrate]
    return functions, f"# numba compiles these together for {request.about}: {untraceable}."


@functools.cache
def is_installed() -> bool:
    """Is numba there? What is made as a graph does without it."""
    return importlib.util.find_spec("numba") is not None


def is_plain(function) -> bool:
    """Is it defined by def or lambda (and perhaps compiled by numba), not a method that is bound to an object?"""
    return hasattr(function, "__code__") and not isinstance(function, types.MethodType)


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
