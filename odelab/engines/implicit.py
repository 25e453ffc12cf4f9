"""SciPy's implicit solvers as methods of `odelab.solve`, for comparison on stiff problems."""

import dataclasses
import warnings
from collections.abc import Callable

import numpy as np

from odelab.control.controllers import Controller
from odelab.engines.python import RightHandSideError, checked_rhs
from odelab.linear.linearisation import Linearisation
from odelab.methods.interface import StepMethod
from odelab.problem import Problem
from odelab.runs import dense, diagnosis, events, failures
from odelab.runs.trajectory import Trajectory


@dataclasses.dataclass(frozen=True)
class ImplicitMethod(StepMethod):
    """One of SciPy's solvers. BDF and RADAU get the problem's Jacobian or, where it has none, one derived here.

    `stability` is its stability function R(z), None for multistep methods, which have none.
    """

    name: str
    order: int
    about: str
    stability: Callable | None = None

    run_by_scipy = True
    takes_fixed_steps = False

    def region(self, stages: int):
        return None if self.stability is None else super().region(stages)

    def __repr__(self):
        return f"{self.name}, order {self.order}, implicit (SciPy)"


def radau_stability(z):
    """R(z) of Radau IIA with three stages, the (2, 3) Padé approximation of the exponential (IV.3)."""
    return (1.0 + z * (0.4 + 0.05 * z)) / (1.0 - z * (0.6 - z * (0.15 - z / 60.0)))


RADAU = ImplicitMethod("RADAU", 5, "Radau IIA, Hairer and Wanner, Solving ODEs II, IV.8", radau_stability)
BDF = ImplicitMethod("BDF", 5, "variable-order BDF/NDF of orders 1 to 5, Shampine and Reichelt 1997")
LSODA = ImplicitMethod("LSODA", 12, "Adams or BDF, switching by itself; Petzold 1983, from ODEPACK")

SOLVERS = {"RADAU": "Radau", "BDF": "BDF", "LSODA": "LSODA"}
# How many results in a row may be not finite before the run is ended: RADAU and BDF halve the step after each of them,
# whereas LSODA goes on with NaN as if it were a number.
PATIENCE = {"RADAU": 100, "BDF": 100, "LSODA": 1}


class Interpolants(dense.Interpolant):
    """SciPy's dense output, a piece for each step."""

    def __init__(self, t, u, pieces):
        self.t, self.u, self.pieces = t, u, pieces

    def between(self, index, times):
        states = np.empty((len(times), self.u.shape[1]))
        for i in np.unique(index):
            states[index == i] = self.pieces[i](times[index == i]).T
        return states


def solve_implicit(problem: Problem, method: StepMethod, controller: Controller, t_eval, watched, max_steps, pace=None):
    """Step SciPy's solver through the span and describe the run as a Trajectory."""
    if not controller.needs_error:
        raise ValueError(
            f"`controller` must be adaptive for {method.name}: SciPy's implicit solvers choose their own steps."
        )
    run = Run(problem, method, controller, watched)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a warning of LSODA, whose cause is in the message of the run
        try:
            run.drive(max_steps, pace)
        except KeyboardInterrupt:
            run.end("interrupted", diagnosis.interrupted(run.t[-1]))
        except RightHandSideError as wrong:
            run.end("wrong_shape", f"{wrong}; it must return one real slope per component of `u0`, at every t")
        except (NotFinite, ValueError, np.linalg.LinAlgError):
            if not run.slope.refused:  # the right-hand side was finite; SciPy has, for example, refused a Jacobian
                raise
            run.end("not_finite", run.slope.word)
    return run.trajectory(t_eval)


class NotFinite(ArithmeticError):
    """The right-hand side has returned NaN or infinity too often in a row."""


class Slope:
    """The right-hand side as SciPy calls it.

    A result that is not finite is passed on, so that SciPy may try a smaller step; after `patience` of them in a row
    the run is ended by `NotFinite`.
    """

    def __init__(self, problem: Problem, patience: int):
        self.problem, self.rhs, self.patience = problem, checked_rhs(problem), patience
        self.calls = self.refused = 0
        self.word = ""

    def __call__(self, t, u):
        self.calls += 1
        slope = self.rhs(t, u, self.problem.params)
        bad = np.flatnonzero(~np.isfinite(slope))
        if not bad.size:
            self.refused = 0
        elif np.isfinite(u).all():
            self.refused += 1
            self.word = diagnosis.not_finite_message(self.problem, t, u, bad[0], slope[bad[0]])
            if self.refused >= self.patience:
                raise NotFinite
        return slope


class Matrix:
    """The Jacobian as SciPy calls it: sparse in every call if it is in the first.

    Newton's method works with an approximation. So where a derivative found here is not finite, such as that of a
    square root at zero, the entry becomes zero: if Newton's method then fails, SciPy makes the step smaller.
    """

    def __init__(self, problem: Problem, rhs: Callable, atol):
        self.linear = Linearisation(problem, rhs, atol)
        self.is_sparse: bool | None = None

    def __call__(self, t, u):
        J = self.linear.prepare(t, np.array(u), None, self.linear.problem.params)[1]
        if self.is_sparse is None:
            self.is_sparse = hasattr(J, "toarray")
        if not self.is_sparse:
            return self.finite(as_array(J))
        from scipy.sparse import csc_array

        J = csc_array(J)
        return csc_array((self.finite(J.data), J.indices, J.indptr), shape=J.shape)

    def as_array(self, t, u):
        return as_array(self(t, u))

    def finite(self, entries) -> np.ndarray:
        return entries if self.linear.own is not None else np.where(np.isfinite(entries), entries, 0.0)


class Run:
    """A run of one of SciPy's solvers: its state while it goes on, and the Trajectory at its end."""

    def __init__(self, problem: Problem, method: StepMethod, controller: Controller, watched):
        self.problem, self.method, self.controller = problem, method, controller
        self.slope = Slope(problem, PATIENCE[method.name])
        takes_jacobian = method.name != "LSODA" or problem.jacobian is not None
        self.matrix = Matrix(problem, self.slope.rhs, controller.atol) if takes_jacobian else None
        self.watch = events.Watch(None, watched, problem) if watched else None
        self.t, self.u = [problem.t_span[0]], [np.array(problem.u0)]
        self.pieces: list = []
        self.status, self.message = "ok", ""

    def end(self, status, message):
        self.status, self.message = status, message

    def drive(self, max_steps, pace):
        solver = made_solver(self.problem, self.method, self.controller, self.slope, self.matrix)
        while solver.status == "running" and self.status == "ok":
            if len(self.pieces) >= max_steps:
                at = f"max_steps = {max_steps} spent at t = {solver.t:g}"
                return self.end("max_steps", f"{at}; raise max_steps or loosen the tolerance")
            word = solver.step()
            if solver.status == "failed" or solver.t == self.t[-1]:
                return self.end(*self.failure(word or "the step is lost in the rounding of t"))
            self.t.append(solver.t)
            self.u.append(np.array(solver.y))
            self.pieces.append(solver.dense_output())
            if self.watch is not None:
                self.look_for_events(self.watch)
            if pace is not None and pace.pass_time(self.t[-1]) and solver.status == "running" and self.status == "ok":
                spent = f"time_limit = {pace.time_limit:g} s spent at t = {solver.t:g}"
                self.end("time_limit", f"{spent}; raise time_limit or loosen the tolerance")

    def look_for_events(self, watch):
        piece = self.pieces[-1]
        if watch.search(
            np.array(self.t[-2:]),
            np.array(self.u[-2:]),
            lambda i, theta: piece(piece.t_old + theta * (piece.t - piece.t_old)),
        ):
            knots, states = watch.cut(np.array(self.t[-1:]), np.array(self.u[-1:]))
            self.t[-1:], self.u[-1:] = list(knots), list(states)
            self.end("event", watch.message())

    def failure(self, word) -> tuple[str, str]:
        t, u = self.t[-1], self.u[-1]
        if self.slope.refused:
            return "not_finite", self.slope.word
        if failures.has_blown_up(self.problem.u0, u):
            return "blow_up", diagnosis.blow_up_message(t, u)
        name = self.method.name
        return "solver_failed", (
            f"{name} gave up at t = {t:.9g}: {word.rstrip('.')}; loosen the tolerance, check the Jacobian, or end "
            "`t_span` before"
        )

    def trajectory(self, t_eval) -> Trajectory:
        t, u = np.array(self.t), np.array(self.u)
        h = np.diff(t)
        interpolant = Interpolants(t, u, self.pieces)
        points = (t, u)
        if t_eval is not None:
            t0, t1 = self.problem.t_span
            reached = t_eval[(t_eval - t[-1]) * np.sign(t1 - t0) <= 0]
            points = (reached, interpolant(reached))
        return Trajectory(
            *points,
            h=h,
            step_t=t,
            step_u=u,
            evaluations=self.slope.calls + (0 if self.matrix is None else self.matrix.linear.evaluations),
            jacobians=0 if self.matrix is None else self.matrix.linear.jacobians,
            derivatives="" if self.matrix is None else self.matrix.linear.how,
            status=self.status,
            error=np.full(len(h), np.nan),
            problem=self.problem,
            method=self.method,
            controller=self.controller,
            engine="scipy",
            events=self.watch.records() if self.watch is not None else (),
            interpolant=interpolant,
            known={
                "slope": np.diff(u, axis=0) / h[:, None],
                "ending" if self.status == "event" else "message": self.message,
            },
        )


def made_solver(problem, method, controller, slope, matrix):
    from scipy import integrate

    t0, t1 = problem.t_span
    options = {"rtol": controller.rtol, "atol": controller.atol}
    if controller.first_step is not None:
        options["first_step"] = controller.first_step
    if np.isfinite(controller.max_step):
        options["max_step"] = controller.max_step
    if matrix is not None:
        options["jac"] = matrix.as_array if method.name == "LSODA" else matrix
    return getattr(integrate, SOLVERS[method.name])(slope, t0, np.array(problem.u0), t1, **options)


def as_array(matrix) -> np.ndarray:
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
