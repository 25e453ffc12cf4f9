"""What R depends on: the error asked for, and what Jacobian and solution do, which forced systems choose apart.

Claims: stiffness is a property of the problem and not of the tolerance; SAI stands for SI; pseudospectra tell better
than eigenvalues on non-normal systems.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import odelab as ol
from odelab.experiments import state_indices
from odelab.experiments.windows import effective_derivative, evaluations_of, predicted_ratio
from odelab.plot import style
from studies.lab.page import Page
from studies.lab.statistics import Estimate, draw_counts, estimate, interval_text
from studies.lab.verdicts import CONTRADICTED, NOT_RUN, Finding, Verdict, agreement, of_interval, of_strength
from studies.switching.evidence import (
    BANDS,
    ERRORS,
    OPEN,
    RESAMPLES,
    WINDOWS,
    Evidence,
    MadeUp,
    Powers,
    Rankings,
    Windows,
    area_under_curve,
    areas,
    at_each,
    made_up_families,
    made_up_powers,
    nan_lowest,
    of_exponent,
    of_families,
    power_of_ten,
    powers,
    rankings,
    rule_over_families,
    spread,
    usable,
)
from studies.switching.runs import MOST_ATTEMPTS, ORDERS, RATES, ROLES, Preset, recall, store

FEW_CHANGE, MANY_CHANGE = 0.05, 0.15  # shares of windows that change class with the error


# ---- Stiffness is a property of the problem, not of the tolerance ----

CHANGING = (0.10, 0.01, 0.4)  # the share of windows, without an effect, with one and with its opposite


def share_of_changes(chance, effect: float, n: int) -> tuple:
    """The share of windows that change class, which differs from family to family."""
    share = CHANGING[int(effect)]
    changing = chance.random((n, WINDOWS)) < chance.beta(0.5, 0.5 / share - 0.5, (n, 1))
    loose = chance.random((n, WINDOWS)) < 0.4
    ratios = {ERRORS[0]: np.where(loose, 3.0, 0.3).ravel(), ERRORS[1]: np.where(loose ^ changing, 3.0, 0.3).ravel()}
    windows = MadeUp(ratios, {}, made_up_families(n))
    return share_that_changes(windows, *ERRORS, RESAMPLES), windows.family


def share_that_changes(windows: Windows, loose: float, sharp: float, count: int) -> Estimate:
    """The share of windows that are stiff at one error and not at the other, problems counting alike.

    The interval is over `count` resamples of the families. One error alone says nothing.
    """
    a, b = windows.ratio(loose), windows.ratio(sharp)
    finite = np.isfinite(a) & np.isfinite(b)
    if loose == sharp or not finite.any():
        return estimate(float("nan"), [])
    names, group = np.unique(windows.family[finite], return_inverse=True)
    weight = windows.weight[finite]
    changed = np.bincount(group, weight * ((a > 1.0) != (b > 1.0))[finite])
    whole, drawn = np.bincount(group, weight), draw_counts(len(names), count)
    return estimate(changed.sum() / whole.sum(), (drawn @ changed) / (drawn @ whole), n=len(names))


@rule_over_families(
    "stiffness is a property of the problem, not of the tolerance",
    "first paper, Section 2.1.2",
    share_of_changes,
    "no window changing at all (without an effect: 10 %, between the thresholds)",
    "The share of windows now has an interval over families, which has to lie beyond the threshold with both its ends",
)
def judge_tolerance(change: Estimate, families: Sequence[str]) -> tuple[Verdict, str]:
    """The share of windows, problems counting alike, that are stiff at one of the smallest and the largest error and
    not at the other. Supported where it is certainly below 5 %, contradicted where it is certainly above 15 %."""
    if not math.isfinite(change.value):
        return NOT_RUN, "Only one error was asked for; `--eps 1e-3 1e-8` asks for two."
    verdict = of_strength(change.less(MANY_CHANGE), MANY_CHANGE - FEW_CHANGE, sign=-1)
    words = (
        f"{interval_text(change, '.1%')} of the windows, problems counting alike, are stiff at one of the smallest and "
        "the largest error and not at the other."
    )
    return of_families(families, verdict, words)


def judge_tolerances(evidence: Evidence) -> list[Finding]:
    preset = evidence.preset
    change = share_that_changes(evidence.windows, preset.eps[0], preset.eps[-1], preset.resamples)
    return [judge_tolerance(change, evidence.families)]


def slopes(windows: Windows, loose: float, sharp: float) -> Iterator[dict]:
    """d log R / d log eps between two errors, R in attempts: the median where stability binds, and where it does not.

    Theory has 1/4 for RODAS4 where stability binds, and 1/4 - 1/5 where accuracy limits both methods.
    """
    change = np.log10(windows.ratio(loose, "attempts") / windows.ratio(sharp, "attempts")) / np.log10(loose / sharp)
    bound = windows.values(sharp)["h_R/h_stab"] > 2.0
    free = windows.values(loose)["h_R/h_stab"] < 0.3
    for where, mask, theory in (("stability binds", bound, 0.25), ("accuracy limits", free, 0.05)):
        some = change[mask & np.isfinite(change)]
        middle = float(np.median(some)) if len(some) else float("nan")
        yield {"where": where, "median slope": middle, "theory": theory, "windows": len(some)}


def show_tolerances(page: Page, evidence: Evidence):
    loose, sharp = evidence.preset.eps[0], evidence.preset.eps[-1]
    if loose == sharp:
        return
    page.figure(
        draw_tolerances(evidence.windows, evidence.preset.eps),
        "tolerances",
        "R of single windows against the error. Dashed: slopes of theory. Right: a slow rotation beside a fast "
        "one, of one Jacobian and one SAI; only the amplitude of the fast one differs.",
    )
    page.table("slopes", slopes(evidence.windows, loose, sharp), "Slope of log R over log error", printed=False)


def draw_tolerances(windows: Windows, eps_values, count: int = 12):
    """R against the error, on windows spread over the range of R; beside it one Jacobian under several amplitudes."""
    table = np.array([windows.ratio(eps, "attempts") for eps in eps_values])
    finite = np.flatnonzero(np.isfinite(table).all(axis=0))
    logs = np.log(table[len(eps_values) // 2][finite])
    chosen = np.unique([finite[np.argmin(np.abs(logs - x))] for x in np.log(np.geomspace(0.1, 1e3, count))])
    bound = windows.values(eps_values[-1])["h_R/h_stab"] > 2.0
    with style.figure(1, 2, height=3.0, width_ratios=(1.35, 1.0)) as (drawing, axes):
        plane, beside = axes[0]
        for i in chosen:
            colour = style.COLOURS[1] if bound[i] else style.COLOURS[0]
            plane.loglog(eps_values, table[:, i], "o-", color=colour, markersize=3, linewidth=0.9)
        x = np.array([min(eps_values), max(eps_values)])
        for power, height, words in ((0.25, 1e4, "slope 1/4"), (0.05, 0.05, "slope 1/4 - 1/5")):
            plane.loglog(x, height * (x / x[1]) ** power, "--", color="black", linewidth=1.0)
            plane.annotate(words, (x[1], 1.25 * height), fontsize=7, va="bottom")
        plane.plot([], [], "o-", color=style.COLOURS[1], markersize=3, label="stability binds at the smallest error")
        plane.plot([], [], "o-", color=style.COLOURS[0], markersize=3, label="it does not")
        plane.legend(loc="upper right", fontsize=6.5)
        plane.axhline(1.0, color=style.GREY, linewidth=0.8)
        plane.set(ylim=(0.02, 1e6), xlabel="error asked for", ylabel="R, in attempts")
        plane.invert_xaxis()
        names = [name for name, of in windows.family_of.items() if of == "oscillators" and name[-1].isdigit()]
        shares = np.full((len(names), len(eps_values)), np.nan)
        for i, name in enumerate(names):
            for k, eps in enumerate(eps_values):
                ratio = windows.ratio(eps)[windows.name == name]
                ratio = ratio[np.isfinite(ratio)]
                shares[i, k] = np.mean(ratio > 1.0) if len(ratio) else np.nan
        if names:
            beside.imshow(shares, cmap="Oranges", vmin=0.0, vmax=1.0, aspect="auto")
            for (i, k), share in np.ndenumerate(shares):
                word, colour = "?" if np.isnan(share) else f"{100 * share:.0f} %", "white" if share > 0.65 else "black"
                beside.text(k, i, word, ha="center", va="center", fontsize=7, color=colour)
            beside.set_yticks(range(len(names)), [name.split()[-1] for name in names], fontsize=7)
            beside.set_xticks(range(len(eps_values)), [power_of_ten(eps) for eps in eps_values], fontsize=7)
            beside.set(xlabel="error asked for", ylabel="amplitude of the fast oscillation")
            beside.set_title("one Jacobian: share of stiff windows", fontsize=8)
        beside.grid(False)
        beside.spines[:].set_visible(False)
        beside.tick_params(length=0)
    return drawing


# ---- Forced systems: 3,000 systems u' = A (u - g(t)) + g'(t) whose Jacobian and solution are chosen apart ----
#
# g = c + cos(w t) is the solution, whatever A is. So what A does (its kind, its spectral radius rho) and what the
# solution does (its pace w, its origin c, the amplitude b of fast modes that are alive at the start) do not go together
# as they do in problems from practice, and each can be asked alone. Solutions are exact, and all systems of one pace
# are one ensemble.

SIZE = 4  # components
DECAYS = (1.0, 0.6, 0.3, 0.1)  # the eigenvalues of a system that decays, over -rho
KINDS = ("normal", "sheared 3", "sheared 100", "oscillating", "growing")  # departures from normality over rho: 3, 100
GROWTH = 0.3  # the rate of the growing mode, times w
PERIODS = 1.0  # of g, which a run covers
FORMAT = 2  # of what is stored; another number where it is told in another way
POINTS = 16  # times at which indices and derivatives are taken
LEVELS: dict[str, dict[str, tuple[float, ...]]] = {  # of the factors; every combination is a system of each kind
    "few": {"radii": (30.0,), "paces": (1.0,), "origins": (0.0,), "amplitudes": (0.0,)},
    "all": {
        "radii": (1.0, 10.0, 100.0, 1e3, 1e4),
        "paces": (0.1, 1.0, 10.0, 100.0),
        "origins": (0.0, 1.0, 10.0, 100.0, 1000.0),  # c, which moves SAI and nothing else
        "amplitudes": (0.0, 1e-8, 1e-6, 1e-4, 1e-2, 1.0),
    },
}
LEVELS["some"] = LEVELS["all"] | {"paces": (0.1, 10.0), "origins": (0.0, 100.0), "amplitudes": (0.0, 1e-6, 1e-3, 1.0)}


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
        """The problem, over a period; the modes that are alive have size 1 in the root mean square, times b."""
        vector = np.random.default_rng([self.seed, 1]).standard_normal(SIZE)
        start = self.origin + 1.0 + self.amplitude * (vector * np.sqrt(SIZE) / np.linalg.norm(vector))
        made = ol.problems.forced_linear(self.matrix(), self.origin, 1.0, self.pace, start)
        return made.replace(t_span=(0.0, 2.0 * np.pi * PERIODS / self.pace))

    def matrix(self) -> np.ndarray:
        """A: its eigenvalues by the kind, its eigenvectors by the seed."""
        departure = float(self.kind.split()[1]) * self.radius if self.kind.startswith("sheared") else 0.0
        values: np.ndarray = -self.radius * np.array(DECAYS)
        if self.kind == "oscillating":
            values = 1j * self.radius * np.array([1.0, -1.0, 0.5, -0.5])
        elif self.kind == "growing":
            values[-1] = GROWTH * self.pace
        return ol.jacobian(ol.problems.linear_non_normal(values, departure, self.seed))


def systems(levels: Mapping[str, tuple[float, ...]]) -> list[System]:
    """Every combination of the levels; those that differ in their origin alone share their random vectors."""
    cells = itertools.product(KINDS, levels["radii"], levels["paces"], levels["amplitudes"])
    return [
        System(kind, radius, pace, origin, amplitude, seed)
        for seed, (kind, radius, pace, amplitude) in enumerate(cells)
        for origin in levels["origins"]
    ]


def measure_systems(wanted: list[System], tolerances, pair: tuple[str, str], engine: str = "auto") -> list[dict]:
    """Costs, errors and indices of every system, as `Windows` takes problems: one window each."""
    records: dict[System, dict] = {}
    of_matrices: dict[tuple, dict] = {}
    methods = {role: getattr(ol, name) for role, name in zip(ROLES, pair, strict=True)}
    orders = {*ORDERS, *(method.error_order for method in methods.values())}
    for pace in dict.fromkeys(system.pace for system in wanted):
        of_pace = [system for system in wanted if system.pace == pace]
        made = [system.problem() for system in of_pace]
        runs = {
            role: climb_together(made, method, MOST_ATTEMPTS[role], tolerances, engine)
            for role, method in methods.items()
        }
        for k, (system, problem) in enumerate(zip(of_pace, made, strict=True)):
            window: dict[str, Any] = {
                role: {key: table[k].tolist() for key, table in ladder.items()} for role, ladder in runs.items()
            }
            window |= {"start": problem.t_span[0], "end": problem.t_span[1]}
            matrix = (system.kind, system.radius, pace, system.seed)
            if matrix not in of_matrices:
                of_matrices[matrix] = state_indices(problem, 0.0, problem.u0, methods["explicit"])
            records[system] = {
                "name": f"{system.cell}, c {system.origin:g}",
                "family": system.cell,
                "n": SIZE,
                "span": problem.t_span[1],
                "by_lines": False,
                "non_normal": system.kind.startswith("sheared"),
                "tolerances": list(tolerances),
                "order": methods["explicit"].error_order,
                "windows": [window | {"indices": measure_indices(problem, of_matrices[matrix], orders)}],
                "work": {role: evaluations_of(method) for role, method in methods.items()},
                "levels": dataclasses.asdict(system),
            }
    return [records[system] for system in wanted]


def recall_or_measure(folder: Path, preset: Preset, pair: tuple[str, str], tolerances, fresh: bool = False) -> Windows:
    """The systems of the preset, from an earlier run with the same options where there is one."""
    levels, path = LEVELS[preset.systems], folder / f"factorial_{preset.systems}.json"
    options = {"levels": levels, "tolerances": tolerances, "pair": pair, "format": FORMAT}
    record = recall(path, options, fresh)
    if record is None:
        measured = measure_systems(systems(levels), tolerances, pair, preset.engine)
        record = store(path, {"options": options, "systems": measured}, f"factorial: {len(measured)} systems")
    return Windows(record["systems"])


def exact_state(problem, t):
    """The solution of a system, at one time or at several."""
    return problem.exact(t, problem.params)


def climb_together(some: list[ol.Problem], method, most: int, tolerances, engine: str) -> dict[str, np.ndarray]:
    """Attempts, errors and rejections of every system at every tolerance, {measure: (systems, tolerances)}."""
    end = some[0].t_span[1]
    starts, sets = np.array([problem.u0 for problem in some]), np.array([problem.params for problem in some])
    exact = np.array([exact_state(problem, end) for problem in some])
    columns: dict[str, list] = {"attempts": [], "error": [], "rejected": [], "censored": []}
    for tolerance in tolerances:
        # The size of the motion is 1 whatever its origin: an absolute tolerance, and the least relative one there is.
        controller = ol.adaptive(2.3e-14, tolerance)
        runs = ol.ensemble(
            some[0],
            method,
            controller,
            u0=starts,
            params=sets,
            threads=1,
            engine=engine,
            progress=False,
            max_steps=most,
        )
        attempts, spent = runs.steps + runs.rejected, runs.status == "max_steps"
        failed = (runs.status != "ok") & ~spent | (attempts == 0)
        with np.errstate(all="ignore"):
            cost = np.where(spent, attempts * end / np.maximum(runs.t, 1e-300), attempts).astype(float)
            error = np.sqrt(np.mean((runs.u - exact) ** 2, axis=1))
            columns["rejected"].append(runs.rejected / attempts)
        columns["attempts"].append(np.where(failed, np.inf, cost))
        columns["error"].append(np.where(failed | spent, np.nan, error))
        columns["censored"].append(spent)
    flags = dict.fromkeys(("flagged", "near"), np.full((len(some), len(tolerances)), np.nan))
    return {key: np.array(rows).T for key, rows in columns.items()} | flags


def measure_indices(problem: ol.Problem, of_the_matrix: dict[str, float], orders) -> dict[str, float]:
    """Every index of a system along its solution; those of its matrix are given, derivatives are exact."""
    times = problem.t_span[1] * (np.arange(POINTS) + 0.5) / POINTS

    def derivative(k) -> np.ndarray:
        return ol.problems.forced_linear_derivative(problem, times, k)

    speed, size = (np.linalg.norm(vectors, axis=1) for vectors in (derivative(1), exact_state(problem, times)))
    with np.errstate(divide="ignore", invalid="ignore"):
        along = {
            "SAI": float(np.median(speed / size)),
            "rate": float(np.median(np.linalg.norm(derivative(2), axis=1) / speed)),
            "simplified SAI": float(np.median(speed)),
            "weighted SAI": float(np.median(speed)) / np.sqrt(SIZE),
        }
    sizes = {k: np.sqrt(np.mean(derivative(k) ** 2, axis=1)) for k in orders}
    return of_the_matrix | along | {f"u{k}": effective_derivative(sizes[k], k) for k in orders}


# ---- SAI stands for SI: the power by which it enters the cost ----


def powers_of_sai(chance, effect: float, n: int) -> tuple:
    """Powers of R, that of SAI being +1, and the families."""
    return made_up_powers(chance, effect, n, 1.0)


@rule_over_families(
    "SAI stands for SI: it enters the cost as SI does",
    "first paper, Theorem 2",
    powers_of_sai,
    "an exponent of +1",
    "The intervals of the three exponents now hold together, and an exponent that is certainly within 0.5 of 0 shows "
    "no difference. The verdict on the full run is the one it was, contradicted",
    negligible=0.5,
)
def judge_power_of_sai(powers: Powers | None, families: Sequence[str]) -> tuple[Verdict, str]:
    """Where stability binds, log R is a sum of logarithms of the spectral radius, SAI and the error, each with its
    exponent. Supported where the exponent of SAI certainly lies between 0.5 and 1.5, as that of SI does; contradicted
    where it is certainly below 0; no difference where it is certainly within 0.5 of 0."""
    if powers is None:
        return NOT_RUN, "n = 0: too few families have windows that stability binds; `--preset full` has more."
    verdict = of_exponent(powers.pace, 1.0)
    divides = "SAI is the reciprocal of the solution's time scale; stiffness is rho times that scale, so SAI divides."
    words = (
        f"Where stability binds, the ratio of costs goes with powers: {powers} (R2 "
        f"{powers.explained:.2f}); theory has rho_ng +1, SAI -1, eps +1/4. {divides if verdict == CONTRADICTED else ''}"
    )
    return of_families(families, verdict, words.rstrip())


def exponent_rows(evidence: Evidence) -> Iterator[dict]:
    """The powers of R where stability binds, over the windows and over the forced systems: a row per fit."""
    windows, forced, preset = evidence.windows, evidence.systems, evidence.preset
    kinds, origin = (np.array([problem["levels"][key] for problem in forced.problems]) for key in ("kind", "origin"))
    few = min(preset.resamples, 300)
    fits = {
        "windows, pace SAI": evidence.powers,
        "windows, pace |f'|/|f|": powers(windows, preset.eps, preset.resamples, "rate"),
        "factorial, pace SAI": powers(forced, preset.eps, few),
        "factorial, pace SAI, origin 0": powers(forced, preset.eps, few, only=origin == 0.0),
        "factorial, pace |f'|/|f|": powers(forced, preset.eps, few, "rate"),
    }
    for kind in KINDS:
        fits[f"factorial, pace |f'|/|f|, {kind}"] = powers(forced, preset.eps, few, "rate", kinds == kind)
    for name, fit in fits.items():
        if fit is not None:
            yield {
                "fit": name,
                "rho_ng (theory +1)": interval_text(fit.rho_ng, "+.2f"),
                "pace (theory -1)": interval_text(fit.pace, "+.2f"),
                "error (theory +0.25)": "one error" if fit.eps is None else interval_text(fit.eps, "+.2f"),
                "R2": fit.explained,
                "windows": fit.counted,
            }


# ---- What does not change R: the unit of time, and the origin of the state ----

UNIT_DECADES = 9.0  # of units of time on either side of one
DRAWS = 100  # of random units


def in_random_units(windows: Windows, eps: float) -> dict[str, Estimate]:
    """AUC of every index when each problem's time is measured in a unit of its own, and its spread over draws.

    R has no unit. An index that is a rate then ranks problems by their units.
    """
    ratio = windows.ratio(eps)
    reached, stiff = usable(ratio), (ratio > 1.0)[usable(ratio)]
    names, number = np.unique(windows.name, return_inverse=True)
    units = 10.0 ** np.random.default_rng(0).uniform(-UNIT_DECADES, UNIT_DECADES, (DRAWS, len(names)))
    estimates = {}
    for name, values in windows.values(eps).items():
        some = [values * unit[number] for unit in units] if name in RATES else [values]
        draws = [area_under_curve(nan_lowest(column)[reached], stiff, windows.weight[reached]) for column in some]
        estimates[name] = estimate(np.mean(draws), draws)
    return estimates


def invariance_rows(windows: Windows, forced: Windows, eps: float) -> Iterator[dict]:
    """What indices do under changes that leave R as it is: the unit of time, and the origin of the state."""
    ratio, values, units = windows.ratio(eps), windows.values(eps), in_random_units(windows, eps)
    reached, weight = usable(ratio), windows.weight
    origin = np.array([problem["levels"]["origin"] for problem in forced.problems])
    of_forced, moved = forced.ratio(eps), forced.values(eps)
    masks = {"origin 0": usable(of_forced) & (origin == 0.0), "all origins": usable(of_forced)}
    for name in windows.groups:
        row = {
            "index": name,
            "unit": "1 / time" if name in RATES else "none",
            "AUC": area_under_curve(nan_lowest(values[name])[reached], ratio[reached] > 1.0, weight[reached]),
            "in random units of time": interval_text(units[name], ".2f") if name in RATES else "the same",
        }
        for words, mask in masks.items() if name in moved else ():
            areas_there = area_under_curve(nan_lowest(moved[name])[mask], of_forced[mask] > 1.0)
            row[f"factorial, {words}"] = areas_there
        yield row


# ---- Powers of a step (pseudospectra) tell better than eigenvalues ----

DEPARTURES = 10.0 ** np.arange(-1.0, 3.01, 0.25)  # Henrici's, over rho
SEEDS = 8  # of the random vectors at each departure
SHEARED, ERROR = 100.0, 1e-4  # the spectral radius of these systems, and the error asked for


def rankings_of_pseudospectra(chance, effect: float, n: int) -> tuple:
    """Cells of one window each: both indices equally good, that of powers better, or that of eigenvalues."""
    logs = spread(chance, n, windows=1)
    noise = {"h_acc/h_stab": 0.5 if effect < 0 else 1.3, "h_acc/h_power": 0.5 if effect > 0 else 1.3}
    columns = {name: logs + chance.normal(0.0, size, logs.shape) for name, size in noise.items()}
    return MadeUp.of(chance, logs, 1.0, columns).ranked()


def of_pseudospectra(by_error: Rankings) -> dict[float, Estimate]:
    """By how much the area of h_acc/h_power is above that of h_acc/h_stab."""
    return {eps: table["h_acc/h_power"].auc.minus(table["h_acc/h_stab"].auc) for eps, table in by_error.items()}


@rule_over_families(
    "on forced non-normal systems powers of a step (pseudospectra) tell better than eigenvalues",
    "Higham and Trefethen 1993",
    rankings_of_pseudospectra,
    "areas of 0.96 and 0.83 (without an effect: 0.83 both)",
    f"{OPEN}. The verdict on the full run is the one it was, contradicted",
    n=120,
    units="cells",
)
def judge_pseudospectra(everywhere: Rankings, far: Rankings, families: Sequence[str]) -> tuple[Verdict, str]:
    """On the sheared systems of the factorial: supported where the area under the curve of h_acc/h_power is certainly
    above that of h_acc/h_stab, contradicted where it is certainly below it. All errors have to agree, and the windows
    beyond a factor of two. A family is a cell here: systems that differ in their origin alone."""
    apart = of_pseudospectra(everywhere)
    if not any(math.isfinite(gap.low) for gap in apart.values()):
        return NOT_RUN, "n = 0: there are too few forced non-normal systems here to resample; `--preset full` has them."
    both = (*apart.values(), *of_pseudospectra(far).values())
    verdict = agreement([of_interval(gap) for gap in both if math.isfinite(gap.low)], BANDS)
    words = (
        f"Area under the curve of h_acc/h_power minus that of h_acc/h_stab: {at_each(apart, '+.2f')}; of h_acc/h_stab "
        f"itself: {at_each(areas(everywhere, 'h_acc/h_stab'))}."
    )
    return of_families(families, verdict, words)


def judge_forced(evidence: Evidence) -> list[Finding]:
    """The claims about the powers of R, and about sheared systems."""
    forced, preset = evidence.systems, evidence.preset
    sheared, few, names = forced.column("non_normal"), min(preset.resamples, 500), ("h_acc/h_stab", "h_acc/h_power")
    ranked = [{eps: rankings(forced, eps, few, sheared, band, names) for eps in preset.eps} for band in (False, True)]
    return [
        judge_power_of_sai(evidence.powers, evidence.families),
        judge_pseudospectra(*ranked, forced.family[sheared].tolist()),
    ]


class Plane(NamedTuple):
    """R over the plane of rho / w, `ratio` (k,), and the error, `eps` (m,).

    It is measured, NaN where a method did not reach the error, and what theory says from h_acc, h_stab and the error
    orders alone, (m, k).
    """

    kind: str
    ratio: np.ndarray
    eps: np.ndarray
    measured: np.ndarray
    theory: np.ndarray


def measure_plane(kind: str, ratios, eps_values, tolerances, pair: tuple[str, str], engine: str = "auto") -> Plane:
    """Measure R of systems of one kind whose fast modes are not alive, and predict it."""
    wanted = [System(kind, float(ratio), 1.0, 0.0, 0.0, seed) for seed, ratio in enumerate(ratios)]
    windows = Windows(measure_systems(wanted, tolerances, pair, engine))
    explicit, implicit = (getattr(ol, name) for name in pair)

    def predict(indices: dict, eps: float) -> float:
        first, second = (indices[f"u{method.error_order}"] for method in (explicit, implicit))
        return predicted_ratio(indices["h_stab"], first, second, eps, explicit, implicit, SIZE)

    theory = [[predict(row["indices"], eps) for row in windows.rows] for eps in eps_values]
    measured = np.array([windows.ratio(eps) for eps in eps_values])
    return Plane(kind, np.asarray(ratios), np.asarray(eps_values), measured, np.array(theory))


def measure_shear(tolerances, pair: tuple[str, str]) -> dict[str, np.ndarray]:
    """R in attempts of systems of one spectrum along the departure from normality, and two predictions of it.

    Each is (departures, random vectors).
    """
    wanted = [
        System(f"sheared {departure:.6g}", SHEARED, 1.0, 0.0, 0.0, seed)
        for departure in DEPARTURES
        for seed in range(SEEDS)
    ]
    windows = Windows(measure_systems(wanted, tolerances, pair))
    h_r = windows.length / windows.cost("implicit", ERROR, "attempts")
    curves = {
        "measured": windows.ratio(ERROR, "attempts"),
        r"$h_R/h_{stab}$, by eigenvalues": h_r / windows.index("h_stab"),
        r"$h_R/h_{power}$, by powers": h_r / windows.index("h_power"),
    }
    return {name: curve.reshape(len(DEPARTURES), SEEDS) for name, curve in curves.items()}


def measure_planes_and_shear(preset: Preset, pair: tuple[str, str]) -> dict[str, Any]:
    """The `planes` and the `shear` of `Evidence`."""
    if not preset.plane:
        return {}
    ratios, eps = np.geomspace(1.0, 1e5, preset.plane), 10.0 ** np.linspace(-2.0, -8.0, 25)
    planes = [measure_plane(kind, ratios, eps, preset.tolerances, pair) for kind in ("normal", "oscillating")]
    return {"planes": planes, "shear": measure_shear(preset.tolerances, pair)}


def show_forced(page: Page, evidence: Evidence):
    page.words(
        "The forced linear systems u' = A (u - g(t)) + g'(t) follow g = c + cos(w t) whatever A is. Kind and radius of "
        "A, the pace w, the origin c and the amplitude of fast modes that are alive at the start are the factors; no "
        "two of them are correlated. The origin changes SAI and nothing in R."
    )
    page.table("exponents", exponent_rows(evidence), "Powers of R where stability binds, R in attempts")
    rows, title = (
        invariance_rows(evidence.windows, evidence.systems, evidence.middle),
        f"Areas under changes that leave R as it is, error {evidence.middle:.0e}",
    )
    page.table("invariances", rows, title, printed=False)
    if not evidence.planes:
        return
    page.figure(
        draw_planes(evidence.planes),
        "plane",
        "R of forced systems over the rate rho of the modes, in units of the solution's pace w, and the error. Solid: "
        "R = 1, measured. Dashed: R = 1 of theory, (c_E/c_I) h_I / min(h_E, h_stab), without constants. Small errors "
        "at the end of a run depend on the phase in which it ends, hence the teeth.",
    )
    page.figure(
        draw_shear(evidence.shear),
        "non_normal",
        "One spectrum, further and further from normal: R in attempts, and what eigenvalues and powers of a step "
        "predict. Lines are medians over random vectors, bands their quartiles.",
    )


def draw_planes(planes: Sequence[Plane]):
    """R over rho / w and the error, measured; the line R = 1 of theory."""
    titles, colours = {"normal": "decaying modes", "oscillating": "oscillating modes"}, {"vmin": -3.5, "vmax": 3.5}
    with style.figure(1, len(planes), height=3.2, sharey=True) as (drawing, axes):
        for axis, plane in zip(axes[0], planes, strict=True):
            over, shown = (plane.ratio, plane.eps), np.ma.masked_invalid(np.log10(plane.measured))
            image = axis.contourf(
                *over, shown, levels=np.arange(-1.5, 3.51, 0.5), cmap="RdBu_r", extend="both", **colours
            )
            axis.contour(*over, shown, levels=[0.0], colors="black", linewidths=1.4)
            theory = np.log10(plane.theory)
            axis.contour(*over, theory, levels=[0.0], colors="black", linestyles="--", linewidths=1.2)
            axis.set(xscale="log", yscale="log", xlabel=r"$\rho / w$")
            axis.invert_yaxis()
            axis.set_title(titles[plane.kind], fontsize=9)
            axis.grid(False)
        axes[0, 0].set_ylabel("error asked for")
        axes[0, 0].plot([], [], color="black", linewidth=1.4, label="R = 1, measured")
        axes[0, 0].plot([], [], "--", color="black", linewidth=1.2, label="R = 1, theory")
        drawing.legend(loc="outside lower center", ncols=2, fontsize=7)
        drawing.colorbar(image, ax=axes[0].tolist(), label=r"$\log_{10} R$", aspect=25)
    return drawing


def draw_shear(curves: dict[str, np.ndarray]):
    """R against the departure from normality at one spectrum, with what eigenvalues and powers predict."""
    looks = (("black", "o-"), (style.COLOURS[0], "-"), (style.COLOURS[1], "--"))
    with style.figure(height=3.1, width=4.6) as (drawing, axes):
        plane = axes[0, 0]
        for (name, values), (colour, line) in zip(curves.items(), looks, strict=True):
            low, middle, high = np.nanquantile(values, (0.25, 0.5, 0.75), axis=1)
            plane.loglog(DEPARTURES, middle, line, color=colour, markersize=3, label=name)
            plane.fill_between(DEPARTURES, low, high, color=colour, alpha=0.15, linewidth=0.0)
        plane.axhline(1.0, color=style.GREY, linewidth=0.8)
        plane.set(xlabel=r"Henrici's departure from normality over $\rho$", ylabel="R, in attempts")
        plane.legend(fontsize=7)
    return drawing
