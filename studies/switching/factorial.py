"""The forced linear factorial: 3,000 systems u' = A (u - g(t)) + g'(t) whose Jacobian and solution are chosen apart.

g = c + cos(w t) is the solution, whatever A is. So what A does (its kind, its spectral radius rho) and what the
solution does (its pace w, its origin c, the amplitude b of fast modes that are alive at the start) do not go together
as they do in problems from practice, and each can be asked alone. Solutions are exact, and all systems of one pace are
one ensemble.
"""

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

import odelab as ol
from netbridge.files import replacing
from odelab.experiments import state_indices
from odelab.experiments.windows import effective_derivative, evaluations_of, predicted_ratio
from studies.lab.report.terminal import show_progress
from studies.switching.design import CAP_EXPLICIT, CAP_IMPLICIT
from studies.switching.observations import Lab

SIZE = 4  # components
RATES = (1.0, 0.6, 0.3, 0.1)  # the eigenvalues of a system that decays, over -rho
KINDS = ("normal", "sheared 3", "sheared 100", "oscillating", "growing")  # departures from normality over rho: 3, 100
GROWTH = 0.3  # the rate of the growing mode, times w
FORMAT = 2  # of what is kept; another number where it is told in another way
PERIODS = 1.0  # of g, which a run covers
POINTS = 16  # times at which indices and derivatives are taken
ORDERS = (3, 4, 5)  # of the derivatives of the solution, beside the error orders of both methods


@dataclasses.dataclass(frozen=True)
class Levels:
    """The levels of the factors; every combination is a system.

    radii       spectral radius rho of A
    paces       w of the solution
    origins     c, which moves SAI and nothing else
    amplitudes  b of the modes of A that are alive at the start
    """

    radii: tuple[float, ...] = (1.0, 10.0, 100.0, 1e3, 1e4)
    paces: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0)
    origins: tuple[float, ...] = (0.0, 1.0, 10.0, 100.0, 1000.0)
    amplitudes: tuple[float, ...] = (0.0, 1e-8, 1e-6, 1e-4, 1e-2, 1.0)

    def __len__(self) -> int:
        return len(KINDS) * len(self.radii) * len(self.paces) * len(self.origins) * len(self.amplitudes)


LEVELS = {
    "few": Levels((30.0,), (1.0,), (0.0,), (0.0,)),
    "some": Levels(paces=(0.1, 10.0), origins=(0.0, 100.0), amplitudes=(0.0, 1e-6, 1e-3, 1.0)),
    "all": Levels(),
}


@dataclasses.dataclass(frozen=True)
class System:
    """One system: the levels of its factors, and the seed of its random vectors."""

    kind: str
    radius: float
    pace: float
    origin: float
    amplitude: float
    seed: int

    @property
    def cell(self) -> str:
        """What it shares with the systems that differ in their origin alone, which cost the same."""
        return f"{self.kind}, rho {self.radius:g}, w {self.pace:g}, b {self.amplitude:g}"

    def problem(self) -> ol.Problem:
        matrix = matrix_of(self.kind, self.radius, self.pace, self.seed)
        start = self.origin + 1.0 + self.amplitude * direction_of(self.seed)
        made = ol.problems.forced_linear(matrix, self.origin, 1.0, self.pace, start)
        return made.replace(t_span=(0.0, 2.0 * np.pi * PERIODS / self.pace))


def matrix_of(kind: str, radius: float, pace: float, seed: int) -> np.ndarray:
    """A: its eigenvalues by the kind, its eigenvectors by the seed."""
    departure = float(kind.split()[1]) * radius if kind.startswith("sheared") else 0.0
    values: np.ndarray = -radius * np.array(RATES)
    if kind == "oscillating":
        values = 1j * radius * np.array([1.0, -1.0, 0.5, -0.5])
    elif kind == "growing":
        values[-1] = GROWTH * pace
    return shear_matrix(values, departure, seed)


def shear_matrix(values, departure: float, seed: int) -> np.ndarray:
    """A matrix with these eigenvalues and this departure from normality."""
    return ol.jacobian(ol.problems.linear_non_normal(values, departure, seed))


def exact_state(problem, t):
    """The solution of a system, at one time or at several."""
    return problem.exact(t, problem.params)


def direction_of(seed: int) -> np.ndarray:
    """The direction of the modes that are alive, of size 1 in the root mean square."""
    vector = np.random.default_rng([seed, 1]).standard_normal(SIZE)
    return vector * np.sqrt(SIZE) / np.linalg.norm(vector)


def systems(levels: Levels) -> list[System]:
    """Every combination of the levels; those that differ in their origin alone share their random vectors."""
    found = []
    cells = itertools.product(KINDS, levels.radii, levels.paces, levels.amplitudes)
    for seed, (kind, radius, pace, amplitude) in enumerate(cells):
        found += [System(kind, radius, pace, origin, amplitude, seed) for origin in levels.origins]
    return found


def measure_systems(wanted: list[System], tolerances, explicit: str, implicit: str, engine: str = "auto") -> list[dict]:
    """Costs, errors and indices of every system, as `analysis.Lab` takes problems: one window each."""
    told: dict[int, dict] = {}
    of_matrices: dict[tuple, dict] = {}
    method = getattr(ol, explicit)
    orders = {*ORDERS, method.error_order, getattr(ol, implicit).error_order}
    for pace in dict.fromkeys(one.pace for one in wanted):
        places = [i for i, one in enumerate(wanted) if one.pace == pace]
        some = [wanted[i].problem() for i in places]
        runs = {
            role: ladders(some, getattr(ol, name), cap, tolerances, engine)
            for role, name, cap in (("explicit", explicit, CAP_EXPLICIT), ("implicit", implicit, CAP_IMPLICIT))
        }
        for k, (i, problem) in enumerate(zip(places, some, strict=True)):
            window: dict[str, Any] = {
                role: {key: found[key][k].tolist() for key in found} for role, found in runs.items()
            }
            window |= {"start": problem.t_span[0], "end": problem.t_span[1]}
            matrix = (wanted[i].kind, wanted[i].radius, pace, wanted[i].seed)
            if matrix not in of_matrices:
                of_matrices[matrix] = state_indices(problem, 0.0, problem.u0, method)
            told[i] = {
                "name": f"{wanted[i].cell}, c {wanted[i].origin:g}",
                "family": wanted[i].cell,
                "n": SIZE,
                "span": problem.t_span[1],
                "by_lines": False,
                "non_normal": wanted[i].kind.startswith("sheared"),
                "tolerances": list(tolerances),
                "order": method.error_order,
                "windows": [window | {"indices": indices(problem, of_matrices[matrix], orders)}],
                "work": {
                    "explicit": evaluations_of(method),
                    "implicit": evaluations_of(getattr(ol, implicit)),
                },
                "levels": dataclasses.asdict(wanted[i]),
            }
    return [told[i] for i in range(len(wanted))]


def measure_or_read(
    path: Path, name: str, tolerances, explicit: str, implicit: str, engine: str, fresh: bool = False
) -> list[dict]:
    """`measure_systems` of the levels `name`, from an earlier run with the same options where there is one."""
    levels = LEVELS[name]
    options = {"levels": dataclasses.asdict(levels), "tolerances": tolerances, "pair": (explicit, implicit)}
    options["format"] = FORMAT
    options = json.loads(json.dumps(options))
    known = json.loads(path.read_text()) if path.is_file() and not fresh else {}
    if known.get("options") != options:
        found = measure_systems(systems(levels), tolerances, explicit, implicit, engine)
        known = {"options": options, "systems": found}
        with replacing(path) as unfinished:
            unfinished.write_text(json.dumps(known))
        show_progress(f"factorial: {len(found)} systems")
    return known["systems"]


def ladders(some: list[ol.Problem], method, cap: int, tolerances, engine: str) -> dict[str, np.ndarray]:
    """Attempts, errors and rejections of every system at every tolerance, {measure: (systems, tolerances)}."""
    first, end = some[0], some[0].t_span[1]
    starts, sets = np.array([one.u0 for one in some]), np.array([one.params for one in some])
    exact = np.array([exact_state(one, end) for one in some])
    told: dict[str, list] = {"attempts": [], "error": [], "rejected": [], "censored": []}
    for tolerance in tolerances:
        # The size of the motion is 1 whatever its origin: an absolute tolerance, and the least relative one there is.
        controller = ol.adaptive(2.3e-14, tolerance)
        runs = ol.ensemble(
            first, method, controller, u0=starts, params=sets, threads=1, engine=engine, progress=False, max_steps=cap
        )
        attempts, spent = runs.steps + runs.rejected, runs.status == "max_steps"
        failed = (runs.status != "ok") & ~spent | (attempts == 0)
        with np.errstate(all="ignore"):
            cost = np.where(spent, attempts * end / np.maximum(runs.t, 1e-300), attempts).astype(float)
            error = np.sqrt(np.mean((runs.u - exact) ** 2, axis=1))
            told["rejected"].append(runs.rejected / attempts)
        told["attempts"].append(np.where(failed, np.inf, cost))
        told["error"].append(np.where(failed | spent, np.nan, error))
        told["censored"].append(spent)
    flags = dict.fromkeys(("flagged", "near"), np.full((len(some), len(tolerances)), np.nan))
    return {key: np.array(rows).T for key, rows in told.items()} | flags


def indices(problem: ol.Problem, of_the_matrix: dict[str, float], orders) -> dict[str, float]:
    """Every index of a system along its solution; those of its matrix are given, derivatives are exact."""
    times = problem.t_span[1] * (np.arange(POINTS) + 0.5) / POINTS
    states = exact_state(problem, times)
    slopes, bends = (ol.problems.forced_linear_derivative(problem, times, k) for k in (1, 2))
    speed = np.linalg.norm(slopes, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        told = of_the_matrix | {
            "SAI": float(np.median(speed / np.linalg.norm(states, axis=1))),
            "rate": float(np.median(np.linalg.norm(bends, axis=1) / speed)),
            "simplified SAI": float(np.median(speed)),
            "weighted SAI": float(np.median(speed)) / np.sqrt(SIZE),
        }
    for k in orders:
        sizes = np.sqrt(np.mean(ol.problems.forced_linear_derivative(problem, times, k) ** 2, axis=1))
        told[f"u{k}"] = effective_derivative(sizes, k)
    return told


@dataclasses.dataclass(frozen=True, eq=False)
class Plane:
    """R over the plane of rho / w and the error.

    kind     of the systems
    ratio    rho / w, (k,)
    eps      errors, (m,)
    measured R, (m, k), NaN where a method did not reach the error
    theory   what theory says, from h_acc, h_stab and the error orders alone, (m, k)
    """

    kind: str
    ratio: np.ndarray
    eps: np.ndarray
    measured: np.ndarray
    theory: np.ndarray


def plane(kind: str, ratios, eps_values, tolerances, explicit: str, implicit: str, engine: str = "auto") -> Plane:
    """Measure R of systems of one kind whose fast modes are not alive, and predict it."""
    wanted = [System(kind, float(ratio), 1.0, 0.0, 0.0, seed) for seed, ratio in enumerate(ratios)]
    lab = Lab(measure_systems(wanted, tolerances, explicit, implicit, engine))
    pair = getattr(ol, explicit), getattr(ol, implicit)
    known = [window["indices"] for window in lab.windows]

    def predict(one: dict, eps: float) -> float:
        first, second = (one[f"u{method.error_order}"] for method in pair)
        return predicted_ratio(one["h_stab"], first, second, eps, *pair, SIZE)

    theory = [[predict(one, eps) for one in known] for eps in eps_values]
    truth = np.array([lab.truth(eps) for eps in eps_values])
    return Plane(kind, np.asarray(ratios), np.asarray(eps_values), truth, np.array(theory))


DEPARTURES = tuple(10.0 ** np.arange(-1.0, 3.01, 0.25))  # Henrici's, over rho
SEEDS = 8  # of the random vectors at each departure
SHEARED, ERROR = 100.0, 1e-4  # the spectral radius of these systems, and the error asked for


@dataclasses.dataclass(frozen=True, eq=False)
class Shear:
    """R in attempts of forced systems of one spectrum, and two predictions, (departures, seeds).

    measured     R in attempts
    by_values    h_R / h_stab
    by_powers    h_R / h_power
    departures   Henrici's departure over rho, (departures,)
    """

    measured: np.ndarray
    by_values: np.ndarray
    by_powers: np.ndarray
    departures: np.ndarray


def along_shear(tolerances, explicit: str, implicit: str) -> Shear:
    """Measure R along the departure from normality."""
    wanted = [
        System(f"sheared {departure:.6g}", SHEARED, 1.0, 0.0, 0.0, seed)
        for departure in DEPARTURES
        for seed in range(SEEDS)
    ]
    lab = Lab(measure_systems(wanted, tolerances, explicit, implicit))
    h_r = lab.length / lab.cost("implicit", ERROR, "attempts")
    shape = (len(DEPARTURES), SEEDS)
    truth = lab.truth(ERROR, "attempts").reshape(shape)
    by_values, by_powers = ((h_r / lab.index(name)).reshape(shape) for name in ("h_stab", "h_power"))
    return Shear(truth, by_values, by_powers, np.array(DEPARTURES))
