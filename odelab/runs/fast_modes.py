"""Which components of a run are stiff: the modes at the step that was largest beside the rate of the fastest mode."""

from typing import NamedTuple

import numpy as np

from odelab.complex_states import names_of_parts
from odelab.linear.dual import NotDifferentiable
from odelab.linear.linearisation import Linearisation
from odelab.methods.explicit import DOPRI5
from odelab.problem import array_form, without_jacobian
from odelab.runs import h_rho as stability
from odelab.stiffness.modes.at_a_state import Modes, modes_of

LARGEST = 32  # components
SAMPLED = 12  # steps


class FastModes(NamedTuple):
    """The modes at one state of a run, as `odelab.modes` finds them, and the time."""

    t: float
    modes: Modes

    def __str__(self):
        return f"fast {self.modes.groups[0]} at t = {self.t:.4g}"


def fast_modes_of(trajectory) -> FastModes | None:
    """The modes at the sampled step whose size times the spectral radius is largest; None where that says nothing.

    That is so of a run that failed or kept no states, of one component and of more than 32, and where no gap sets the
    fast modes off. Explicit methods must have been held back by stability; for others an explicit method would have to
    be. Jacobians are taken at states of the run by dual numbers alone, as differences might leave the domain of the
    right-hand side. How many modes are exhausted is not said: the errors of a run keep fast modes awake.
    """
    problem, held_back = trajectory.problem, trajectory.held_back
    if problem is None or trajectory.method is None:  # of a run from a file
        return None
    if not trajectory.ok or trajectory.step_u is None or not 1 < problem.size <= LARGEST or problem.mass is not None:
        return None
    if trajectory.method.is_explicit and not held_back:
        return None
    rhs, (_, t, u, h) = array_form(problem), stability.samples(trajectory, SAMPLED)
    linear = Linearisation(without_jacobian(problem), rhs)
    try:
        with np.errstate(all="ignore"):
            jacobians = [linear.exact(*place)[0] for place in zip(t, u, strict=True)]
    except NotDifferentiable:
        return None
    if not jacobians or not np.isfinite(jacobians).all():
        return None
    reach = np.abs(h) * np.abs(np.linalg.eigvals(jacobians)).max(axis=1)
    i = int(reach.argmax())
    if not (held_back or reach[i] > DOPRI5.real_boundary):
        return None
    names = names_of_parts(problem.size) if problem.is_complex else None
    found = modes_of(jacobians[i], rhs(t[i], u[i], problem.params), u[i], names=names)
    return FastModes(float(t[i]), found) if found.few_are_fast else None
