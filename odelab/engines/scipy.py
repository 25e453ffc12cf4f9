"""A method of odelab as a solver class for SciPy, for `scipy.integrate.solve_ivp(method=...)`."""

import functools

import numpy as np

from odelab import core
from odelab.control.controllers import Start, adaptive, fixed
from odelab.core import State
from odelab.methods.interface import StepMethod, answers
from odelab.problem import Problem
from odelab.right_hand_side import ignoring_params
from odelab.status import Status


@functools.cache
def scipy_method(method: StepMethod) -> type:
    """A method of odelab as a solver class for `scipy.integrate.solve_ivp`.

    method  an explicit Method such as odelab.RKF45, or an implicit one: odelab.RODAS4, RODAS5P, ROS2, ESDIRK43

    Returns a class for `solve_ivp(..., method=...)`. Its options are rtol, atol, law, first_step and max_step as in
    `odelab.adaptive`, or `step` for fixed steps, which a method without an embedded one needs; an implicit method takes
    `jac`, a matrix or a function (t, y), and derives the Jacobian of `fun` where there is none. Dense output and events
    work as with SciPy's own methods; `njev` and `nlu` count Jacobians and factorisations. Raises TypeError for any
    other kind of method.

    >>> import odelab as ol
    >>> from scipy.integrate import solve_ivp
    >>> found = solve_ivp(lambda t, u: -u, (0.0, 1.0), [1.0], method=ol.scipy_method(ol.RKF45), rtol=1e-8, atol=1e-10)
    >>> found.y[0, -1].round(6)
    np.float64(0.367879)
    >>> stiff = solve_ivp(lambda t, u: -1e4 * (u - t), (0.0, 1.0), [1.0], method=ol.scipy_method(ol.RODAS4))
    >>> stiff.y[0, -1].round(4), stiff.nfev < 400
    (np.float64(0.9999), True)
    """
    if not (answers(method, "is_explicit") or answers(method, "needs_jacobian")) or method.switches:
        raise TypeError(
            f"`method` must be an explicit Method like odelab.RKF45, or an implicit one like odelab.RODAS4, got "
            f"{method!r}."
        )
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
            law=None,
            first_step=None,
            max_step=np.inf,
            step=None,
            jac=None,
            **extraneous,
        ):
            if jac is not None and not method.needs_jacobian:
                extraneous["jac"] = jac
            if extraneous:
                raise TypeError(f"{method.name} does not know the option {sorted(extraneous)[0]!r} of `solve_ivp`.")
            super().__init__(fun, t0, y0, t_bound, vectorized)
            if step is None and not method.embedded:
                raise ValueError(
                    f"{method.name} has no embedded method to choose steps by; give a fixed size: `step=0.01`."
                )
            controller = (
                fixed(step) if step is not None else adaptive(rtol, atol, law, first_step=first_step, max_step=max_step)
            )
            self.controller = controller.suited_to(method)
            slope = self.rhs(self.t, self.y, ())
            problem = None
            if method.needs_jacobian:
                alone = (lambda t, u: fun(t, u[:, None])[:, 0]) if vectorized else fun
                given = None if jac is None else ignoring_params(jac if callable(jac) else lambda t, u: jac)
                problem = Problem(ignoring_params(alone), self.y, (t0, t_bound), jacobian=given)
            self.stepper = method.stepper(problem, self.rhs, self.controller.atol)
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
                    self.stepper.step,
                    self.stepper.prepare,
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
            self.njev, self.nlu, _ = self.stepper.work
            if not accepted:
                return False, self.TOO_SMALL_STEP
            self.last = accepted[0]
            self.t, self.y = self.state.t, self.state.u
            return True, None

        def _dense_output_impl(self):
            t_old, dt, u_old, stages = self.last
            inside = method.coefficients_inside(
                core.combine, self.rhs, (), t_old, u_old, dt, self.y, stages[method.final]
            )
            return Interpolant(t_old, self.t, u_old, np.array(inside))

    Solver.__name__ = Solver.__qualname__ = method.name
    Solver.order = method.order
    return Solver


def keep_stages(accepted, memory, t, dt, h, u, slopes, mean_slope, u_new):
    accepted.append((t, dt, u, slopes))
    return accepted
