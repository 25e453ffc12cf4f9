"""The methods of odelab whose coefficients are fixed, by name: what a pickled method is found by."""

from odelab.methods.explicit import METHODS
from odelab.methods.implicit import ESDIRK, ROSENBROCK
from odelab.methods.interface import StepMethod

BY_NAME: dict[str, StepMethod] = {**METHODS, **ROSENBROCK, **ESDIRK}


def method_named(name: str) -> StepMethod:
    """The method of odelab with this name."""
    return BY_NAME[name]
