"""SciPy's implicit solvers behind the same door, for reference and comparison on what explicit methods cannot reach."""

import dataclasses

import numpy as np

from odelab import dense, events
from odelab.controllers import Controller
from odelab.engine import RightHandSideError, checked_rhs
from odelab.problem import Problem
from odelab.trajectory import Trajectory


@dataclasses.dataclass(frozen=True)
class ImplicitMethod:
    """One of SciPy's solvers; the problem's Jacobian is handed over where it has one."""

    name: str
    order: int
    about: str

    def __repr__(self):
        return f"{self.name}, order {self.order}, implicit (SciPy)"


RADAU = ImplicitMethod("RADAU", 5, "Radau IIA, Hairer and Wanner, Solving ODEs II, IV.8")
BDF = ImplicitMethod("BDF", 5, "variable-order BDF/NDF of orders 1 to 5, Shampine and Reichelt 1997")
LSODA = ImplicitMethod("LSODA", 12, "Adams or BDF, switching by itself; Petzold 1983, from ODEPACK")

SOLVERS = {"RADAU": "Radau", "BDF": "BDF", "LSODA": "LSODA"}


class Interpolants:
    """SciPy's dense output of the steps, with our manners: knots met exactly, an error outside the span."""

    def __init__(self, t, u, pieces):
        self.t, self.u, self.pieces = t, u, pieces

    def __call__(self, t):
        times = np.asarray(t, dtype=float)
        wanted = times.ravel()
        dense.check_inside(wanted, self.t[0], self.t[-1])
        sign = 1.0 if self.t[-1] >= self.t[0] else -1.0
        index = np.searchsorted(sign * self.t, sign * wanted, side="right") - 1
        states = np.empty((wanted.size, self.u.shape[1]))
        met = self.t[index] == wanted
        states[met] = self.u[index[met]]
        for i in np.unique(index[~met]):
            here = (index == i) & ~met
            states[here] = self.pieces[i](wanted[here]).T
        return states.reshape(*times.shape, self.u.shape[1])


def solve_implicit(problem: Problem, method: ImplicitMethod, controller: Controller, t_eval, watched, max_steps):
    """Step SciPy's solver through the span and describe the run as a Trajectory."""
    if not controller.needs_error:
        raise ValueError(
            f"`controller` must be adaptive for {method.name}: SciPy's implicit solvers choose their own steps."
        )
    solver = made_solver(problem, method, controller)
    t, u = [solver.t], [np.array(solver.y)]
    pieces: list = []
    status, message = "ok", None
    watch = events.Watch(None, watched, problem) if watched else None
    with np.errstate(all="ignore"):
        while solver.status == "running":
            if len(pieces) >= max_steps:
                status, message = (
                    "max_steps",
                    f"max_steps = {max_steps} spent at t = {solver.t:g}; raise max_steps or loosen the tolerance",
                )
                break
            try:
                word = solver.step()
            except KeyboardInterrupt:
                status, message = "interrupted", f"interrupted at t = {t[-1]:g}; what was computed until then is kept"
                break
            except RightHandSideError as wrong:
                status, message = (
                    "wrong_shape",
                    f"{wrong}; it must return one real slope per component of `u0`, at every t",
                )
                break
            except NotFinite as wrong:
                status, message = "not_finite", str(wrong)
                break
            if solver.status == "failed":
                status = "solver_failed"
                message = (
                    f"{method.name} gave up at t = {solver.t:.9g}: {word}; loosen the tolerance, check the Jacobian, "
                    "or end `t_span` before"
                )
                break
            t.append(solver.t)
            u.append(np.array(solver.y))
            pieces.append(solver.dense_output())
            if watch is not None and watch.search(np.array(t[-2:]), np.array(u[-2:]), within(pieces[-1])):
                knots, states = watch.cut(np.array(t[-1:]), np.array(u[-1:]))
                t[-1:], u[-1:] = list(knots), list(states)
                status, message = "event", watch.message()
                break
    knots, states = np.array(t), np.array(u)
    h = np.diff(knots)
    interpolant = Interpolants(knots, states, pieces)
    points = (knots, states)
    if t_eval is not None:
        reached = t_eval[(t_eval - knots[-1]) * np.sign(problem.t_span[1] - problem.t_span[0]) <= 0]
        points = (reached, interpolant(reached))
    return Trajectory(
        *points,
        h=h,
        step_t=knots,
        step_u=states,
        evaluations=solver.nfev,
        status=status,
        error=np.full(len(h), np.nan),
        problem=problem,
        method=method,
        controller=controller,
        engine="scipy",
        events=watch.records() if watch is not None else (),
        interpolant=interpolant,
        given_slope=np.diff(states, axis=0) / h[:, None],
        given_message=message or f"reached t = {knots[-1]:g} in {len(h)} steps",
    )


def within(piece):
    """inside(i, theta) of a step, from SciPy's dense output of it."""
    return lambda i, theta: piece(piece.t_old + theta * (piece.t - piece.t_old))


class NotFinite(ArithmeticError):
    pass


def made_solver(problem, method, controller):
    from scipy import integrate

    rhs = checked_rhs(problem)
    t0, t1 = problem.t_span

    def slope(t, u):
        value = rhs(t, u, problem.params)
        bad = np.flatnonzero(~np.isfinite(value))
        if bad.size and np.isfinite(u).all():
            raise NotFinite(
                f"the right-hand side returned {value[bad[0]]} in component {bad[0]} at t = {t:.9g}; keep the state "
                "in its domain, or end `t_span` before"
            )
        return value

    options = {"rtol": controller.rtol, "atol": controller.atol}
    if controller.first_step is not None:
        options["first_step"] = controller.first_step
    if np.isfinite(controller.max_step):
        options["max_step"] = controller.max_step
    if problem.jacobian is not None:
        jacobian = problem.jacobian
        if method.name == "LSODA":
            options["jac"] = lambda t, u: as_array(jacobian(t, u, problem.params))
        else:
            options["jac"] = lambda t, u: jacobian(t, u, problem.params)
    return getattr(integrate, SOLVERS[method.name])(slope, t0, np.array(problem.u0), t1, **options)


def as_array(matrix):
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
