"""h * rho: how near a step is to the stability boundary of its method.

Two stages at the same time tell rho (`odelab.core.twin_rate_of`). Where a method has no such pair, the power method of
`odelab.methods.spectral_radius` finds it.
"""

import numpy as np

from odelab import core
from odelab.methods.interface import StepMethod
from odelab.methods.spectral_radius import spectral_radius
from odelab.runs.dense import stage_slopes

AT_ONCE = 1 << 18  # steps times components that are repeated together; bounds the memory
NEAR = 0.8  # of the boundary: with the I law, h rho of a stiff linear problem varies between 0.8 and 1.1 of it


def h_rho(problem, method: StepMethod, t, u, h) -> np.ndarray:
    """|h| times the spectral radius along the solution, for steps of size h (k,) from states u (k, n).

    NaN where the states of the method's twin stages are too near to each other.
    """
    if len(t) == 0:
        return np.zeros(0)
    with np.errstate(all="ignore"):
        if method.twin_stages is None:
            return np.array([abs(h[i]) * spectral_radius(problem, t[i], u[i]) for i in range(len(t))])
        rows = max(1, AT_ONCE // u.shape[1])
        pieces = [slice(start, start + rows) for start in range(0, len(t), rows)]
        return np.concatenate([_of_steps_again(problem, method, t[some], u[some], h[some]) for some in pieces])


def _of_steps_again(problem, method, t, u, h):
    return from_stages(method, u, h, np.moveaxis(stage_slopes(problem, method, t, u, h, end=False), -1, 0))


def from_stages(method: StepMethod, u, h, slopes):
    """The same from the slopes (stages, ..., n) of the steps, for a method with twin stages."""
    h = np.asarray(h)
    rate = core.twin_rate_of(core.combine, np.where, lambda x: (x * x).sum(-1), method.tableau, method.twin_stages)
    return abs(h) * np.sqrt(rate(u, h[..., None], slopes))


def samples(trajectory, count=24):
    """(number, t, u, h) of up to `count` steps spread over the run; the last, cut to land on t1, is left out."""
    steps = max(trajectory.steps - 1, 0)
    chosen = np.unique(np.linspace(0, steps - 1, min(count, steps)).astype(int)) if steps else np.zeros(0, int)
    t, h = np.asarray(trajectory.step_t)[chosen], np.asarray(trajectory.h)[chosen]
    if trajectory.step_u is None:
        return chosen, t, np.broadcast_to(trajectory.end_u, (len(chosen), len(trajectory.end_u))), h
    return chosen, t, np.asarray(trajectory.step_u)[chosen], h
