"""What is measured on the windows of one problem: costs and errors of methods, and every index; one run told."""

import dataclasses
from functools import partial
from typing import Any

import numpy as np

import odelab as ol
from odelab import problems
from odelab.experiments import state_indices, windows
from odelab.experiments.at_a_state import linear_parts
from studies.switching.design import CAP_EXPLICIT, CAP_IMPLICIT, OTHERS, Preset
from studies.switching.observations import Lab, index_of
from studies.switching.subjects import Subject, factory_over, subjects
from studies.switching.yours import adopt, problem_of, value_of

MEASURED = ("attempts", "error", "rejected", "flagged", "near", "censored")
SIGNED = ("-min Re", "-s[J]", "mu_1", "mu_2", "mu_inf", "m_2")  # averaged as they are; the rest as logarithms
ORDERS = (3, 4, 5)  # of the derivatives of the solution, beside the error order of the explicit method
RULES: dict[str, dict] = {
    "3 steps": {"steps": 3},
    "12 steps": {"steps": 12},
    "even in time": {"even": True},
}  # other windows
ONE_SCALE = "the same, all components measured by the largest"  # as with one absolute tolerance for all
DOUBTING = 1e-12  # the relative tolerance of the runs that exact states are compared with
WHOLE = 1e-5  # the relative tolerance of runs over the whole span, by which `ol.AUTO` is judged
LONGEST = 200_000  # attempts of such a run


def all_subjects(define: str | None) -> list[Subject]:
    """The problems of the study, and behind them those of a user's file, each a family of its own."""
    mine = [Subject(name, name, partial(problem_of, name, make)) for name, make in adopt(define).problems.items()]
    return subjects() + mine


def measure(subject: Subject, preset: Preset, explicit: str, implicit: str, sharp: str, define=None) -> dict:
    """Everything that is measured on a problem, in plain numbers."""
    problem = subject.problem()
    pair = {"explicit": getattr(ol, explicit), "implicit": getattr(ol, implicit)}
    cut = partial(windows.cut_into_windows, problem, pair["implicit"], getattr(ol, sharp), engine=preset.engine)
    scale, found = cut(preset.windows)
    mine = adopt(define).indices

    def row_of(window, scale=scale) -> dict:
        row = {"start": window.start, "end": window.end, **ladders(problem, pair, window, preset, scale)}
        row["doubt"] = doubt_of(problem, pair["explicit"], window, scale, preset.engine)
        return row | indices(problem, window, scale, pair["explicit"], preset.eps, mine)

    rows = [row_of(window) for window in found]
    some = preset.others if subject.varied else 0
    chosen = np.unique(np.linspace(0, len(rows) - 1, min(some, len(rows))).astype(int))
    for i in chosen:
        others = {name: getattr(ol, name) for name in OTHERS if name not in (explicit, implicit)}
        rows[i]["others"] = ladders(problem, others, found[i], preset, scale)
        rows[i]["cold"] = ladders(problem, pair, found[i], preset, scale, cold=True)
    told: dict[str, Any] = {
        "name": subject.name,
        "family": subject.family,
        "n": problem.size,
        "span": problem.t_span[1] - problem.t_span[0],
        "by_lines": subject.by_lines,
        "non_normal": subject.non_normal,
        "tolerances": list(preset.tolerances),
        "order": pair["explicit"].error_order,
        "work": {name: windows.evaluations_of(method) for name, method in pair.items()},
        "windows": rows,
    }
    if some:
        told["work"] |= {name: windows.evaluations_of(getattr(ol, name)) for name in OTHERS}
        told["rules"] = {name: [row_of(w) for w in cut(some, **rule)[1]] for name, rule in RULES.items()}
        told["rules"][ONE_SCALE] = [row_of(found[i], np.full_like(scale, scale.max())) for i in chosen]
    if preset.auto:
        told["whole"] = {one.name: whole_run(problem, one, scale) for one in (ol.AUTO, *pair.values())}
    return told


def doubt_of(problem, method, window, scale, engine: str = "auto") -> float:
    """By how much the exact states of a window differ from a run of the other method; NaN where that is too long."""
    run = windows.warm_run(problem, method, window, DOUBTING, scale, most=CAP_EXPLICIT, cold=True, engine=engine)
    return run.error


def is_implicit(method) -> bool:
    return isinstance(method, ol.RosenbrockMethod)


def ladders(problem, methods, window, preset: Preset, scale, cold: bool = False) -> dict:
    """Of each method {measure: one number per tolerance}, every run started with the step of the one before."""
    told = {}
    for role, method in methods.items():
        most = CAP_IMPLICIT if is_implicit(method) else CAP_EXPLICIT
        runs, first = [], None
        for rtol in preset.tolerances:
            run = windows.warm_run(problem, method, window, rtol, scale, first, most, cold, preset.engine)
            runs.append(run)
            first = run.first_step
        told[role] = {name: [float(getattr(run, name)) for run in runs] for name in MEASURED}
    return told


def whole_run(problem, method, scale) -> dict[str, float]:
    """Evaluations and Jacobians of one run over the whole span; infinite where it did not get there."""
    run = ol.solve(problem, method, ol.adaptive(WHOLE, WHOLE * scale), max_steps=LONGEST, throw=False)
    if not run.ok:
        return {"evaluations": float("inf"), "jacobians": 0.0, "changes": 0.0}
    took = getattr(run, "took", None)
    changes = float(np.count_nonzero(took[1:] != took[:-1])) if took is not None and len(took) else 0.0
    return {"evaluations": float(run.evaluations), "jacobians": float(run.jacobians), "changes": changes}


def indices(problem, window, scale, method, eps_values, mine) -> dict[str, dict[str, float]]:
    """Every index that needs no run: "indices", the mean over both ends of the window, and "early", at its start.

    The former hold derivatives of the solution over the window, too.
    """
    ends = ((window.start, window.at_start), (window.end, window.at_end))
    found = []
    for t, u in ends:
        one = state_indices(problem, t, u, method, scale + np.abs(u))
        if mine:
            J, f, f_t = linear_parts(problem, t, u)
            for name, index in mine.items():
                for eps in eps_values:
                    one[index_of(name, eps)] = value_of(name, index, J, f, f_t, u, scale + np.abs(u), eps)
        found.append(one)
    means = {name: mean_of(name, [one[name] for one in found]) for name in found[0]}
    scale = scale + np.abs(window.states).mean(axis=0)
    orders = {*ORDERS, method.error_order}
    means |= {f"u{k}": ol.window_derivative(window.times, window.states, k, scale) for k in orders}
    return {"indices": means, "early": found[0]}


def mean_of(name, values) -> float:
    if name in SIGNED or min(values) <= 0.0 or not np.isfinite(values).all():
        return float(np.mean(values))
    return float(np.exp(np.mean(np.log(values))))


TOLD = Subject("van_der_pol told", "van_der_pol", factory_over(problems.van_der_pol, 170.0, mu=100.0))
EVERY = 200  # windows: more than there are, so that they lie side by side
AT_ERROR = TOLERANCE = 1e-4  # of the windows and of the runs


@dataclasses.dataclass(frozen=True, eq=False)
class Told:
    """What is drawn of one run.

    start, end  of the windows, (k,)
    ratio       R on each, (k,)
    indices     of each window, {name: (k,)}
    runs        trajectories, {name of the method: Trajectory}
    """

    start: np.ndarray
    end: np.ndarray
    ratio: np.ndarray
    indices: dict[str, np.ndarray]
    runs: dict[str, ol.Trajectory]


def measure_one_run(preset: Preset, explicit: str, implicit: str, sharp: str) -> Told:
    """Measure windows side by side along the run, and run the two methods and the one that switches."""
    few = dataclasses.replace(preset, windows=EVERY, others=0, auto=False)
    lab = Lab([measure(TOLD, few, explicit, implicit, sharp)])
    values = lab.values(AT_ERROR)
    problem, pair = TOLD.problem(), (getattr(ol, explicit), getattr(ol, implicit))
    controller = ol.adaptive(TOLERANCE, 1e-3 * TOLERANCE)
    runs = {one.name: ol.solve(problem, one, controller) for one in pair}
    runs["AUTO"] = ol.solve(problem, ol.auto(*pair), controller)
    edges = {key: np.array([w[key] for w in lab.windows]) for key in ("start", "end")}
    names = ("SI", "SAI", "h_acc/h_stab", "h_R/h_stab")
    return Told(**edges, ratio=lab.truth(AT_ERROR), indices={name: values[name] for name in names}, runs=runs)
