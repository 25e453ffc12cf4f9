"""What is measured on the windows of one problem: costs and errors of both methods, and every index."""

import numpy as np

import odelab as ol
from odelab.experiments import state_indices, windows
from studies.switching.design import EXPLICIT_CAP, IMPLICIT_CAP, Preset, Subject

MEASURED = ("attempts", "error", "rejected", "flagged", "censored")
SIGNED = ("-s[J]", "mu_2")  # averaged as they are; the rest are positive, and averaged as logarithms
ORDERS = (4, 5)  # of the derivatives of the solution: the error orders of RODAS4 and DOPRI5


def measure(subject: Subject, preset: Preset, explicit: str, implicit: str, sharp: str) -> dict:
    """Everything that is measured on a problem, in plain numbers."""
    problem = subject.problem()
    pair = {"explicit": getattr(ol, explicit), "implicit": getattr(ol, implicit)}
    scale, found = windows.cut_into_windows(problem, pair["implicit"], getattr(ol, sharp), preset.windows)
    rows = []
    for window in found:
        row = {"start": window.start, "end": window.end, **ladders(problem, pair, window, preset, scale)}
        row["indices"] = indices(problem, window, scale, pair["explicit"])
        rows.append(row)
    return {
        "name": subject.name,
        "family": subject.family,
        "n": problem.size,
        "span": problem.t_span[1] - problem.t_span[0],
        "by_lines": subject.by_lines,
        "non_normal": subject.non_normal,
        "tolerances": list(preset.tolerances),
        "windows": rows,
    }


def ladders(problem, pair, window, preset: Preset, scale) -> dict:
    """Of each method {measure: one number per tolerance}, every run started with the step of the one before."""
    told = {}
    for role, method in pair.items():
        most = EXPLICIT_CAP if role == "explicit" else IMPLICIT_CAP
        runs, first = [], None
        for rtol in preset.tolerances:
            run = windows.warm_run(problem, method, window, rtol, scale, first, most)
            runs.append(run)
            first = run.first_step
        told[role] = {name: [float(getattr(run, name)) for run in runs] for name in MEASURED}
    return told


def indices(problem, window, scale, method) -> dict[str, float]:
    """Every index that needs no run, as the mean over both ends of the window, and derivatives of the solution."""
    ends = ((window.start, window.at_start), (window.end, window.at_end))
    found = [state_indices(problem, t, u, method, scale + np.abs(u)) for t, u in ends]
    means = {name: mean_of(name, [one[name] for one in found]) for name in found[0]}
    scale = scale + np.abs(window.states).mean(axis=0)
    return means | {f"u{k}": ol.window_derivative(window.times, window.states, k, scale) for k in ORDERS}


def mean_of(name, values) -> float:
    if name in SIGNED or min(values) <= 0.0 or not np.isfinite(values).all():
        return float(np.mean(values))
    return float(np.exp(np.mean(np.log(values))))
