"""Stabilised explicit methods, whose number of stages is adapted to the spectral radius in every step."""

import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np

from odelab import core
from odelab.arrays import is_real_number
from odelab.control.controllers import Controller, Start
from odelab.methods import chebyshev
from odelab.methods import spectral_radius as radius
from odelab.methods.interface import StepMethod

UNLIMITED = 1e9
SMALLEST = 1e-9  # the smallest rtol: the tolerance of a step is then 1e-11, near the rounding error of many stages


@dataclasses.dataclass(frozen=True, eq=False)
class StabilisedMethod(StepMethod):
    """The Runge-Kutta-Chebyshev method of order two, as `odelab.rkc2` makes it.

    For spectra near the negative real axis: s stages reach to 0.65 s^2 along it, but the region is narrow. Tolerances
    are calibrated: `rtol` is about the relative error at the end of a parabolic problem, not that of a step.

    name             what messages and figures call it
    spectral_radius  a number, a function of (t, u, params), or None to have it estimated by a power method
    order            the order of the step
    order_low        the order of the error estimate
    about            where the method was published
    """

    name: str
    spectral_radius: float | Callable | None = None
    order: int = 2
    order_low: int = 2
    about: str = "Sommeijer, Shampine and Verwer, J. Comput. Appl. Math. 88 (1998) 315-326"

    stages = 2  # at least
    fsal = adapts_stages = True
    repeats_steps = False
    error_order = 3
    smallest_rtol = SMALLEST
    step = staticmethod(chebyshev.chebyshev_step(chebyshev.chebyshev, chebyshev.first_states, chebyshev.next_state))

    def __reduce__(self):
        return rkc2, (self.spectral_radius,)

    @functools.cached_property
    def estimate(self) -> Callable:
        """(rhs, params, t, u, slope, direction, fewest) -> (radius, direction for the next time, evaluations)."""
        if self.spectral_radius is None:
            return radius.power_method(radius.norm)
        if callable(self.spectral_radius):
            return radius.given_radius(self.spectral_radius)
        return radius.carried_radius

    @functools.cached_property
    def steer(self) -> Callable:
        """(propose, judge, rhs) -> the two halves of a controller that keeps the stage number up to date."""
        life = radius.LIFE if self.spectral_radius is None else 1.0
        return radius.steering(self.estimate, chebyshev.stage_number, chebyshev.most_stable, life)

    @functools.cached_property
    def compiles_as(self) -> "StabilisedMethod":
        """A method with the same compiled code; all methods with a number as spectral radius share one."""
        if self.spectral_radius is None:
            return RKC2
        return with_radius_function(self.spectral_radius) if callable(self.spectral_radius) else TOLD

    law = "pi42"  # the law of step size where the user names none

    def step_of(self, factor=None, substitute=None, where=core.where):
        return self.step

    def extend_controller(self, controller: Controller, rhs: Callable) -> Controller:
        """`controller`, extended so that it chooses the number of stages along with the step size."""
        if controller.needs_error and controller.rtol < SMALLEST:
            raise ValueError(
                f"`rtol` = {controller.rtol:g} is out of reach of {self.name}, of order two, in double precision; "
                f"the smallest is {SMALLEST:g}: use odelab.DOP853, or odelab.RODAS5P where the problem is stiff."
            )
        propose, judge = self.steer(controller.propose, controller.judge, rhs)

        def start(run: Start):
            memory, evaluations = controller.start(run)
            most = UNLIMITED
            if controller.needs_error:
                rtol, atol = memory.settings.rtol, memory.settings.atol
                factor = calibration(rtol)
                memory = memory._replace(settings=memory.settings._replace(rtol=factor * rtol, atol=factor * atol))
                most = float(round(math.sqrt(factor * rtol / (10.0 * np.finfo(float).eps))))
            steering = radius.Steering(run.params, 0.0, self.direction(run.slope0), -1.0, most, 0.0, 0.0)
            return radius.Steered(memory, steering), evaluations

        return dataclasses.replace(
            controller,
            propose=propose,
            judge=judge,
            start=start,
            unseen=unseen,
            error=lambda memory: controller.error(memory.control),
        )

    def one_step(self, rhs, params, t, u, h):
        """The state after a step of size h from u."""
        slope = rhs(t, u, params)
        rho = self.estimate(rhs, params, t, u, slope, self.direction(slope), radius.FEWEST_ANEW)[0]
        stages = chebyshev.stage_number(min(abs(h) * rho, 1e9))
        return self.step(rhs, params, t, u, slope, h, chebyshev.Gain(h, stages))[0]

    def given_radius(self, problem, t, u) -> float | None:
        """The spectral radius its user gave, at a state; None where it is estimated."""
        if self.spectral_radius is None:
            return None
        return self.estimate(None, problem.params, t, u, None, self.direction(None), 0)[0]

    def direction(self, slope):
        """The direction with which `estimate` begins.

        A spectral radius given as a number is passed in its place, so that one compiled kernel serves all numbers.
        """
        if self.spectral_radius is None:
            return radius.first_direction(slope)
        return np.array([0.0 if callable(self.spectral_radius) else self.spectral_radius])

    def stability(self, z, stages=None):
        """R_s(z): what one step multiplies the solution of u' = lambda u by, z = h lambda; s as |z| asks for."""
        stages = chebyshev.stage_number(float(np.max(np.abs(z)))) if stages is None else stages
        w0, w1 = scaling(stages)
        value, first, second = chebyshev.chebyshev(w0, stages)
        b = second / (first * first)
        return 1.0 - b * value + b * chebyshev.chebyshev(w0 + w1 * z, stages)[0]

    def boundary(self, stages: int) -> float:
        """How far s stages reach along the negative real axis."""
        w0, w1 = scaling(stages)
        return (w0 + 1.0) / w1

    def region(self, stages: int):
        return f"{self.name}, {stages} stages", functools.partial(self.stability, stages=stages), self.boundary(stages)

    def __repr__(self):
        return f"{self.name}, order {self.order}({self.order_low}), stabilised"


def scaling(stages):
    """w0 and w1 of R_s(z) = a_s + b_s T_s(w0 + w1 z)."""
    w0 = 1.0 + chebyshev.DAMPING / (stages * stages)
    _, first, second = chebyshev.chebyshev(w0, stages)
    return w0, first / second


def calibration(rtol: float) -> float:
    """The factor by which the tolerance of a step is multiplied, so that the error at the end is about `rtol`.

    If every step of a method of order two meets the tolerance tol, the error at the end is proportional to tol^(2/3).
    On parabolic problems it was measured to be near 0.02 tol^(2/3); hence tol = (rtol / 0.02)^(3/2). In the manner of
    G. Söderlind and L. Wang, Evaluating numerical ODE/DAE methods, algorithms and software, J. Comput. Appl. Math. 185
    (2006) 244-260.
    """
    return min((1.0 / 0.02) ** 1.5 * math.sqrt(rtol), 20.0)


def unseen(memory) -> int:
    return int(memory.steering.spent)


def rkc2(spectral_radius: float | Callable | None = None) -> StabilisedMethod:
    """RKC2, the Runge-Kutta-Chebyshev method of order two, with the spectral radius of the Jacobian given.

    For mildly stiff problems whose eigenvalues lie near the negative real axis, such as diffusion. It needs no linear
    algebra: a step takes as many stages as stability asks for, which grows with the square root of h rho.

    spectral_radius  the spectral radius rho, as a number or as a function of (t, u, params). It may be too large, at
                     the price of a few more stages, but not too small. None, the default, has it estimated by a power
                     method, as `odelab.RKC2` does

    Returns a method for `odelab.solve`.

    >>> import odelab as ol
    >>> problem = ol.problems.heat_1d(n=20).replace(t_span=(0.0, 0.01))
    >>> sol = ol.solve(problem, ol.rkc2(4.0 * 21.0**2), ol.adaptive(1e-4, 1e-6), engine="python")
    >>> sol.ok, sol.evaluations < ol.solve(problem, ol.RKC2, ol.adaptive(1e-4, 1e-6), engine="python").evaluations
    (True, True)
    """
    if spectral_radius is None:
        return RKC2
    if not callable(spectral_radius):
        if not (is_real_number(spectral_radius) and 0 <= spectral_radius < math.inf):
            raise ValueError(
                f"`spectral_radius` must be a number from 0 up or a function of (t, u, params), got "
                f"{spectral_radius!r}; leave it out to have it estimated."
            )
        spectral_radius = float(spectral_radius)
    return StabilisedMethod("RKC2", spectral_radius)


@functools.lru_cache(maxsize=128)
def with_radius_function(spectral_radius: Callable) -> StabilisedMethod:
    return StabilisedMethod("RKC2", spectral_radius)


RKC2 = StabilisedMethod("RKC2")
TOLD = rkc2(0.0)
