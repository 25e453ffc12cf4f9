"""What every method answers, so that nobody has to ask of what kind it is; and its step, bound to a problem."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from odelab import core
from odelab.control.controllers import SMALLEST_RTOL


class Stepper(NamedTuple):
    """The step of a method for one problem, as `odelab.core.integrate` takes it.

    step            one attempt
    prepare         computes what a step needs to know of a new state, such as its Jacobian
    linearisation   the `odelab.linear` Linearisation behind both, which counts its work; None for explicit methods
    """

    step: Callable
    prepare: Callable
    linearisation: Any = None

    @property
    def work(self) -> tuple[int, int, int]:
        """Jacobians, factorisations and evaluations for derivatives, made so far."""
        if self.linearisation is None:
            return 0, 0, 0
        return self.linearisation.jacobians, self.linearisation.factorisations, self.linearisation.evaluations

    @property
    def how(self) -> str:
        """In words, how the derivatives are found; empty where there are none."""
        return "" if self.linearisation is None else self.linearisation.how


BY_NAME: dict[str, "StepMethod"] = {}  # the methods of odelab whose coefficients are fixed, which enter themselves


def method_named(name: str) -> "StepMethod":
    """The method of odelab with this name."""
    return BY_NAME[name]


class StepMethod:
    """A method: how it takes a step, what a step needs, and what is known of it.

    Each answer stands here once, as it is for most methods; a kind of method that differs gives its own.
    """

    name: str
    order: int
    tableau: Any  # its numbers, as its step takes them; not of every method

    def __reduce__(self):
        """Pickle a method of odelab by its name, so that it stays the same object and its kernels are found again."""
        if BY_NAME.get(self.name) is self:
            return method_named, (self.name,)
        return type(self), tuple(getattr(self, field.name) for field in dataclasses.fields(self))  # type: ignore

    @property
    def stages(self) -> int:
        """How many stages a step has, at least."""
        raise NotImplementedError

    @property
    def members(self) -> tuple["StepMethod", ...]:
        """The methods that take its steps: itself, or those which take turns."""
        return (self,)

    @property
    def switches(self) -> bool:
        """Do several methods take turns?"""
        return len(self.members) > 1

    # What decides about its steps.

    @property
    def embedded(self) -> bool:
        """Does a step estimate its error?"""
        return True

    @property
    def error_order(self) -> int:
        """The power k of the step size h to which the error estimate is proportional."""
        raise NotImplementedError

    @property
    def law(self) -> str | None:
        """The law of step size where the user names none; None where nothing is asked of a law."""
        return None

    @property
    def smallest_rtol(self) -> float:
        """The smallest relative tolerance with which it runs."""
        return SMALLEST_RTOL

    @property
    def takes_fixed_steps(self) -> bool:
        """Can a run have steps of one size?"""
        return True

    # How it steps.

    @property
    def needs_jacobian(self) -> bool:
        """Does a step factor I - h gamma J, so that the Jacobian is needed at each new state?"""
        return False

    @property
    def takes_mass(self) -> bool:
        """Can it step systems M u' = f with a mass matrix M?"""
        return False

    @property
    def dae_order(self) -> int:
        """Its order on systems M u' = f of index 1, where M is singular; 0 for a method that does not solve them."""
        return 0

    @property
    def is_explicit(self) -> bool:
        """Has it the tableau of an explicit method? Its stability region is then bounded, R(z) being a polynomial."""
        return False

    @property
    def adapts_stages(self) -> bool:
        """Does the number of stages follow the spectral radius from step to step?"""
        return False

    @property
    def has_graph(self) -> bool:
        """Can a step be made as a graph, and hence as a kernel?"""
        return False

    @property
    def run_by_scipy(self) -> bool:
        """Does SciPy run it, with its own control of step sizes?"""
        return False

    @property
    def fsal(self) -> bool:
        """First same as last: is the last stage evaluated at the new state?"""
        return False

    @property
    def evaluations(self) -> int:
        """How often an attempt evaluates the right-hand side, beside the slope at its start."""
        return self.stages - 1

    def step_of(self, factor: Callable | None = None, substitute: Callable | None = None, where=core.where) -> Callable:
        """One attempt, as `odelab.core.integrate` takes it.

        factor       factor(J, hg): the factors of I - hg J
        substitute   substitute(factors, right): the solution of a system with them
        where        where(condition, x, y): x where the condition holds, else y, with which a step rejects itself; None
                     where it must not, as one of many states that are stepped at once would reject the others

        A method that does not need the Jacobian uses none of them.
        """
        raise NotImplementedError

    def stepper(self, problem, rhs, atol=None) -> Stepper:
        """The step of this method for a problem, and its linear algebra where it has any."""
        return Stepper(self.step_of(), core.slope_alone)

    def extend_controller(self, controller, rhs):
        """The controller of a run, extended where the method has something of its own to decide."""
        return controller

    def one_step(self, rhs, params, t, u, h):
        """The state after a step of size h from u, (n,) or columns (n, m)."""
        raise NotImplementedError

    # What is known inside a step, and of its stiffness.

    @property
    def final(self) -> slice:
        """Which of the rows that a step returns are its stages; the others are on the way to them."""
        return slice(None)

    @property
    def repeats_steps(self) -> bool:
        """Does its continuous extension follow from the stages? Else it is the cubic through both ends of a step."""
        return True

    @property
    def repeats_at_once(self) -> bool:
        """Can many steps be repeated at once, as the columns of an array?"""
        return False

    def coefficients_inside(self, combine, rhs, params, t, u, h, u_new, stages) -> list[Any]:
        """The coefficients of theta, theta^2, ... of u(theta) - u inside a step, from its stages."""
        raise NotImplementedError

    @property
    def twin_stages(self) -> tuple[int, int] | None:
        """Two stages at the new time, from which h rho follows without further evaluations; None without such."""
        return None

    @property
    def real_boundary(self) -> float:
        """The largest x with |R| <= 1 on all of [-x, 0]; infinity without a bound."""
        return math.inf

    def region(self, stages: int) -> tuple[str, Callable, float] | None:
        """(name, R(z), real boundary) of its stability region; None where there is no R.

        stages    with how many it is drawn, where it may take any number of them
        """
        return self.name, self.stability, self.real_boundary  # type: ignore[attr-defined]


def answers(method: Any, question: str) -> bool:
    """Is it a method whose answer to this question is yes? For arguments, which may be anything.

    question    the name of a property of `StepMethod`
    """
    return isinstance(method, StepMethod) and bool(getattr(method, question))
