"""A method of odelab as a solver class for SciPy, for `scipy.integrate.solve_ivp(method=...)`."""

import functools

import numpy as np

from odelab import core
from odelab.control.controllers import Start, adaptive, fixed
from odelab.core import State
from odelab.methods import extension
from odelab.methods.interface import answers
from odelab.methods.tableau import Method
from odelab.status import Status


@functools.cache
def scipy_method(method: Method) -> type:
    """An explicit method of odelab as a solver class for `scipy.integrate.solve_ivp`.

    method  an explicit Method, such as odelab.RKF45

    Returns a class for `solve_ivp(..., method=...)`. Its options are rtol, atol, law, first_step and max_step as in
    `odelab.adaptive`, or `step` for fixed steps, which a method without an embedded one needs. Dense output and events
    work as with SciPy's own methods. Raises TypeError for any other kind of method.

    >>> import odelab as ol
    >>> from scipy.integrate import solve_ivp
    >>> found = solve_ivp(lambda t, u: -u, (0.0, 1.0), [1.0], method=ol.scipy_method(ol.RKF45), rtol=1e-8, atol=1e-10)
    >>> found.y[0, -1].round(6)
    np.float64(0.367879)
    """
    if not answers(method, "is_explicit"):
        raise TypeError(f"`method` must be an explicit Method like odelab.RKF45, got {method!r}.")
    from scipy.integrate import DenseOutput, OdeSolver

    class Interpolant(DenseOutput):
        def __init__(self, t_old, t, u, polynomial):
            super().__init__(t_old, t)
            self.u, self.polynomial = u, polynomial

        def _call_impl(self, t):
            theta = (np.asarray(t) - self.t_old) / (self.t - self.t_old)
            powers = np.stack([theta ** (p + 1) for p in range(len(self.polynomial))])
            change = np.tensordot(self.polynomial, powers, axes=(0, 0))
            return self.u + change if change.ndim == 1 else self.u[:, None] + change

    class Solver(OdeSolver):
        t: float
        y: np.ndarray

        def __init__(
            self,
            fun,
            t0,
            y0,
            t_bound,
            vectorized=False,
            rtol=1e-3,
            atol=1e-6,
            law="pi",
            first_step=None,
            max_step=np.inf,
            step=None,
            **extraneous,
        ):
            if extraneous:
                raise TypeError(f"{method.name} does not know the option {sorted(extraneous)[0]!r} of `solve_ivp`.")
            super().__init__(fun, t0, y0, t_bound, vectorized)
            if step is None and not method.embedded:
                raise ValueError(
                    f"{method.name} has no embedded method to choose steps by; give a fixed size: `step=0.01`."
                )
            self.controller = (
                fixed(step) if step is not None else adaptive(rtol, atol, law, first_step=first_step, max_step=max_step)
            )
            slope = self.rhs(self.t, self.y, ())
            memory, _ = self.controller.start(Start(method, self.rhs, (), t0, t_bound, self.y, slope))
            self.state = State(self.t, self.y, slope, True, memory)

        def rhs(self, t, u, params):
            slope = np.array(self.fun(t, u), dtype=float)  # a copy: `fun` may reuse its answer
            if slope.shape != u.shape:
                raise ValueError(f"`fun` returned shape {slope.shape} for a state of shape {u.shape} at t = {t:g}.")
            return slope

        def _step_impl(self):
            accepted: list = []
            status = None
            while not accepted and status not in (Status.STEP_LOST, Status.NOT_FINITE):
                status, self.state, *_ = core.integrate(
                    method.step,
                    core.slope_alone,
                    self.rhs,
                    (),
                    self.controller.propose,
                    self.controller.judge,
                    core.no_projection,
                    keep_stages,
                    accepted,
                    self.state,
                    self.t_bound,
                    1,
                )
            if not accepted:
                return False, self.TOO_SMALL_STEP
            self.last = accepted[0]
            self.t, self.y = self.state.t, self.state.u
            return True, None

        def _dense_output_impl(self):
            t_old, dt, u_old, slopes = self.last
            slopes = extension.finish_stages(core.combine, self.rhs, (), method, t_old, u_old, dt, self.y, slopes)
            return Interpolant(t_old, self.t, u_old, dt * extension.weights(method).T @ np.array(slopes))

    Solver.__name__ = Solver.__qualname__ = method.name
    Solver.order = method.order
    return Solver


def keep_stages(accepted, memory, t, dt, h, u, slopes, mean_slope, u_new):
    accepted.append((t, dt, u, slopes))
    return accepted
