"""What a learnt controller is worth: evaluations at equal error, against a law that follows the errors."""

import dataclasses
from collections.abc import Iterable

import numpy as np

import odelab
from netbridge.learned.controller import LearnedController
from odelab.experiments import cost_at_error
from odelab.files.saved import register
from odelab.results import Result

TIMES = 50  # at which the error of a run is measured


@register
@dataclasses.dataclass(frozen=True, eq=False)
class EqualError(Result, kinds={"evaluations": "netbridge.figures:draw_equal_error"}):
    """Evaluations, error and rejections of two controllers at R tolerances, (R, 2): the learnt one first, then the law.

    `ratio` is evaluations of the learnt controller over those of the law at the same error, the geometric mean over the
    errors that both reach; below 1 the learnt one is the cheaper.
    """

    rtol: np.ndarray
    evaluations: np.ndarray
    error: np.ndarray
    rejected: np.ndarray
    names: tuple[str, str]

    @property
    def ratio(self) -> float:
        low, high = self.error.min(0).max(), self.error.max(0).min()
        if not low < high:
            return float("nan")
        grid = np.geomspace(low, high, 20)
        ours, theirs = (cost_at_error(self.error[:, i], self.evaluations[:, i], grid) for i in (0, 1))
        return float(np.exp(np.mean(np.log(ours / theirs))))

    def __str__(self):
        lines = [f"{'rtol':>8} " + " ".join(f"{name + ': evaluations, rejected, error':>44}" for name in self.names)]
        for i, rtol in enumerate(self.rtol):
            parts = [
                f"{self.evaluations[i, j]:26.0f} {self.rejected[i, j]:7.1f} {self.error[i, j]:9.1e}" for j in (0, 1)
            ]
            lines.append(f"{rtol:8.0e} " + " ".join(parts))
        lines.append(f"evaluations at equal error, {self.names[0]} over {self.names[1]}: {self.ratio:.3f}")
        return "\n".join(lines)

    def table(self):
        """A row per tolerance and contestant."""
        names = ("evaluations", "error", "rejected")
        columns = {name: getattr(self, name).ravel() for name in names}
        return {"rtol": np.repeat(self.rtol, 2), "controller": list(self.names) * len(self.rtol), **columns}


def compare_at_equal_error(
    learned: LearnedController,
    problem: odelab.Problem,
    method: odelab.Method = odelab.DOPRI5,
    law: str = "h211b",
    rtol: Iterable[float] = (1e-4, 1e-5, 1e-6, 1e-7),
    starts: int = 8,
    spread: float = 0.1,
    seed: int = 1,
) -> EqualError:
    """Compare a learnt controller with a law of step size: evaluations of the right-hand side at equal error.

    Both run from starts scattered around the problem's own, which the training did not see.

    learned  a LearnedController
    problem  the Problem it was trained for
    method   the Method it was trained with; DOPRI5
    law      the law it is compared with, one of `odelab.LAWS`; "h211b"
    rtol     relative tolerances to run at
    starts   number of initial states; 8
    spread   standard deviation of their relative distance from the problem's own; 0.1
    seed     of these initial states; 1, another than the training's

    Returns an EqualError: per tolerance and contestant `evaluations`, `error` and `rejected`; `ratio` is the learnt
    controller's evaluations over the law's at equal error, `plot()` draws both.

    >>> import netbridge as nb, odelab as ol
    >>> problem = ol.problems.van_der_pol(mu=2.0).replace(t_span=(0.0, 3.0))
    >>> learned = nb.learn_controller(problem, states=100, rounds=20)
    >>> found = nb.compare_at_equal_error(learned, problem, rtol=(1e-4, 1e-5), starts=1)
    >>> found.names, found.evaluations.shape
    (('learned', 'h211b'), (2, 2))
    """
    random = np.random.default_rng(seed)
    problems = [
        problem.replace(u0=problem.u0 * (1.0 + spread * random.standard_normal(problem.size))) for _ in range(starts)
    ]
    times = np.linspace(*problem.t_span, TIMES)
    truths = [odelab.solve(p, odelab.DOP853, odelab.adaptive(1e-12, 1e-15), t_eval=times).u for p in problems]
    tolerances = np.array(sorted(rtol, reverse=True))
    work, error, rejected = (np.empty((len(tolerances), 2)) for _ in range(3))
    for i, tolerance in enumerate(tolerances):
        feedback = odelab.adaptive(tolerance, learned.atol_ratio * tolerance, law=law)
        for j, controller in enumerate((learned.controller(tolerance), feedback)):
            runs = [odelab.solve(p, method, controller, t_eval=times, engine="python") for p in problems]
            work[i, j] = np.mean([run.evaluations for run in runs])
            rejected[i, j] = np.mean([run.rejected for run in runs])
            errors = [np.sqrt(np.mean((run.u - truth) ** 2)) for run, truth in zip(runs, truths, strict=True)]
            error[i, j] = np.exp(np.mean(np.log(errors)))
    return EqualError(tolerances, work, error, rejected, ("learned", law))
