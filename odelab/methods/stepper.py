"""The step of a method bound to a problem, as engines use it."""

from collections.abc import Callable
from typing import Any, NamedTuple


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
