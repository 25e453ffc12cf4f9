"""Explicit and linearly implicit steps in one run: `odelab.auto` and the method that it makes."""

import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np

from odelab.arrays import is_real_number
from odelab.methods.explicit import DOPRI5
from odelab.methods.implicit import RODAS4
from odelab.methods.interface import StepMethod, answers


@dataclasses.dataclass(frozen=True, eq=False)
class SwitchingMethod(StepMethod):
    """Two methods that take turns, as `odelab.auto` makes it.

    explicit   the explicit Method
    implicit   one that needs the Jacobian, such as a RosenbrockMethod
    index      the user's index of stiffness, or None
    ratio      the cost of an implicit attempt over that of an explicit one, None where it is counted
    """

    explicit: StepMethod
    implicit: StepMethod
    index: Callable | None = None
    ratio: float | None = None

    takes_fixed_steps = False

    def __post_init__(self):
        object.__setattr__(self, "name", f"AUTO({self.explicit.name}, {self.implicit.name})")
        object.__setattr__(self, "order", min(self.explicit.order, self.implicit.order))

    @functools.cached_property
    def names(self) -> np.ndarray:
        """The names of both methods."""
        return np.array([one.name for one in self.members])

    @property
    def members(self):
        return self.explicit, self.implicit

    @property
    def stages(self) -> int:
        return max(self.explicit.stages, self.implicit.stages)

    # The following is used when the cause of a failure is looked for: there the explicit method stands for both.

    def stepper(self, problem, rhs, atol=None):
        return self.explicit.stepper(problem, rhs, atol)

    def one_step(self, rhs, params, t, u, h):
        return self.explicit.one_step(rhs, params, t, u, h)

    def __reduce__(self):
        return auto, (self.explicit, self.implicit, self.index, self.ratio)

    def __repr__(self):
        return f"{self.name}, order {self.explicit.order} or {self.implicit.order}, switching by itself"


def auto(
    explicit: StepMethod = DOPRI5,
    implicit: StepMethod = RODAS4,
    index: Callable | None = None,
    ratio: float | None = None,
) -> SwitchingMethod:
    """A method that takes explicit steps where they are cheap and linearly implicit ones where the problem is stiff.

    A run begins with explicit steps. When the stages of many steps show that h times the spectral radius is near the
    stability boundary, one implicit step is tried. Its error tells what a run with implicit steps would cost, and the
    cheaper method goes on. The same is tried before the first step where that would not be stable. The run returns to
    explicit steps where these could stably be as long as the implicit ones, or where those turn out to be dearer.

    explicit   an explicit Method whose stages tell h rho: `ol.DOPRI5`, the default, or `ol.DOP853`; any that estimates
               its error where `index` is given
    implicit   a method that needs the Jacobian: `ol.RODAS4`, the default, another RosenbrockMethod, or `ol.ESDIRK43`
    index      your own index of stiffness, index(problem, t, u, h) with the step size h at hand: above 1 the run goes
               on implicitly, below 1/2 explicitly, and in between as it was. None, the default, is the rule above
    ratio      what an implicit attempt costs over an explicit one. None, the default, counts the operations of both

    Returns a method for `odelab.solve` and `odelab.ensemble` with an adaptive controller. The field `took` of a
    trajectory names the method of each step, and `print(sol)` counts them. `ol.AUTO` is `ol.auto()`.

    >>> import odelab as ol
    >>> problem = ol.problems.van_der_pol(mu=100.0).replace(t_span=(0.0, 150.0))
    >>> sol = ol.solve(problem, ol.AUTO, engine="python")
    >>> sol.ok, sorted(set(sol.took.tolist())), sol.steps < 2000
    (True, ['DOPRI5', 'RODAS4'], True)
    >>> always = ol.auto(index=lambda problem, t, u, h: 2.0)
    >>> set(ol.solve(problem, always, engine="python").took[20:].tolist())
    {'RODAS4'}
    """
    if not (answers(explicit, "is_explicit") and explicit.embedded):
        raise TypeError(
            f"`explicit` must be an explicit Method that estimates its error, like odelab.DOPRI5, got {explicit!r}."
        )
    if not (answers(implicit, "needs_jacobian") and implicit.embedded):
        raise TypeError(
            f"`implicit` must be a RosenbrockMethod that estimates its error, like odelab.RODAS4, got {implicit!r}."
        )
    if index is None and explicit.twin_stages is None:
        raise ValueError(
            f"`explicit` = {explicit.name} has no two stages that tell h rho; take odelab.DOPRI5 or DOP853, or give an "
            "`index`."
        )
    if index is not None and not callable(index):
        raise TypeError(f"`index` must be a function index(problem, t, u, h) that returns a number, got {index!r}.")
    if ratio is not None and not (is_real_number(ratio) and 0.0 < ratio < math.inf):
        raise ValueError(f"`ratio` must be a positive number, the cost of an implicit attempt, got {ratio!r}.")
    return SwitchingMethod(explicit, implicit, index, ratio)


AUTO = SwitchingMethod(DOPRI5, RODAS4)
