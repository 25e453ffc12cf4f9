"""What is stiffness? Every index against what explicit and implicit methods cost at equal error (about 2 min).

Claims examined: SAI tells where a problem is stiff and stands for SI (Huang, Liang et al., Understanding
Self-attention Mechanism via Dynamical System Perspective, 2023); and claims that follow from theory. Stiffness is
defined here as the cost of an explicit method over that of an implicit one at equal error, on windows of solutions;
`design.py` has the definition and the rules of the verdicts. Last full run (58 problems, 828
windows, 2026-11-19, in shipped/): SAI contradicted, it points the other way; chi = h_acc/h_stab supported.
"""

import dataclasses
import json
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Literal

from netbridge.files import replacing
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.page import Page
from studies.switching import analysis, figures, findings
from studies.switching.design import EPS, PRESETS, Preset, Subject, subjects
from studies.switching.measures import measure

STUDY = "switching"
SHARP = "RODAS5P"  # the method of the exact states


@dataclasses.dataclass
class Arguments:
    """Judge every index of stiffness by what explicit and implicit methods cost."""

    preset: Literal["quick", "full"] = "quick"
    """quick: 37 problems, up to 10 windows each; full: 58 problems, up to 24 windows each, and 2,000 resamples."""
    explicit: str = "DOPRI5"
    """The explicit method, DOPRI5 or RKF45: six evaluations an attempt, order 5."""
    implicit: str = "RODAS4"
    """The L-stable method."""
    problems: tuple[str, ...] = ()
    """Only problems whose names begin so; all by default."""
    workers: int = 1
    """Processes that measure."""
    executor: str | None = None
    """The address of a Dask scheduler whose workers measure, such as tcp://host:8786."""
    fresh: bool = False
    """Measure anew what is there from an earlier run with the same options."""
    out: Path = Path("results/switching")
    """Where measurements (in windows/), figures, tables, report.html and record.json go."""
    smoke: bool = False
    """A run of seconds that only shows that everything works."""


def main(arguments: Arguments):
    began = time.perf_counter()
    require_at_least(1, arguments, "workers")
    preset = PRESETS["smoke" if arguments.smoke else arguments.preset]
    wanted = [one for one in subjects() if one.knob <= preset.knob]
    if arguments.problems:
        wanted = [one for one in wanted if one.name.startswith(arguments.problems)]
    if not wanted:
        raise SystemExit(f"studies.{STUDY}: `--problems` names none of {[one.name for one in subjects()]}.")
    with plain_errors(STUDY):
        lab = analysis.Lab(measured(wanted, preset, arguments))

    page = Page(
        STUDY,
        arguments,
        "What is stiffness?",
        f"{len(lab.windows)} windows of {len(lab.problems)} problems in {len(set(lab.family))} families; "
        f"{arguments.explicit} against {arguments.implicit}.",
    )
    page.began = began  # the time it tells includes the measurements
    rankings = {eps: analysis.rankings(lab, eps, preset.resamples) for eps in preset.eps}
    sheared = lab.column("non_normal")
    on_sheared = {eps: analysis.rankings(lab, eps, preset.resamples, sheared) for eps in preset.eps}
    policies = {eps: analysis.switching(lab, eps) for eps in preset.eps}
    powers = analysis.exponents(lab, preset.eps, preset.resamples)
    loose, sharp = (EPS[0], EPS[-1]) if len(preset.eps) > 1 else (preset.eps[0],) * 2
    change = analysis.changing(lab, loose, sharp) if loose != sharp else float("nan")
    middle = 1e-4

    page.heading("What these data say")
    page.words(
        "A window of a solution is stiff at an error where the explicit method needs more than the L-stable one to end "
        "it with that error. An index is judged by its area under the curve: the chance that it is larger on a stiff "
        "window than on another. Intervals, 95 %, come from resampling families of problems."
    )
    first = findings.sai_tells(rankings)
    found = [
        first,
        findings.simplified_suffices(rankings, first),
        findings.stands_for_si(powers),
        findings.of_the_problem(change, len(lab.windows)),
        findings.theory_tells(rankings),
        findings.ratio_tells(rankings),
        findings.damping_alone({eps: analysis.bound_without_damping(lab, eps) for eps in preset.eps}),
        *findings.guarded([findings.powers_tell(on_sheared)], len(set(lab.family[sheared]))),
        findings.switches(policies),
    ]
    page.findings(findings.guarded(found, len(set(lab.family))))
    tell(page, lab, preset, rankings, policies, middle, (loose, sharp))
    page.close()


def tell(page: Page, lab, preset: Preset, rankings, policies, middle: float, ends):
    """Figures and tables."""
    page.heading("Where stiffness is")
    page.figure(
        figures.truth_map(lab, middle, *ends),
        "truth",
        "What the explicit method costs over the implicit one, by window. Red: stiff. A dot: the class changes "
        f"between errors of {ends[0]:.0e} and {ends[1]:.0e}.",
    )
    page.table("truth", truth_rows(lab, preset.eps), "Share of stiff windows, and median of log10 R", printed=False)
    page.heading("Which index tells")
    page.figure(
        figures.ratio_against_indices(lab, middle, rankings[middle]),
        "indices",
        f"R against six indices at an error of {middle:.0e}; a point is a window, a colour a family. Dashed: theory. "
        f"What is below {figures.LEAST:g} is drawn there.",
    )
    page.figure(figures.forest(rankings), "forest", "How well each index ranks windows, with intervals over families.")
    page.table("rankings", ranking_rows(rankings), "Area under the curve, and median rank correlation within problems")
    page.figure(
        figures.arrows(analysis.per_problem(lab, "SAI", middle), analysis.per_problem(lab, "rho_ng/SAI", middle)),
        "within",
        "Within one problem: how SAI and the ratio rank its windows. A dot is a problem.",
    )
    if len(preset.eps) > 1:
        page.heading("What the tolerance does")
        page.figure(
            figures.tolerances(lab, preset.eps),
            "tolerances",
            "R of single windows against the error. Dashed: the slopes of theory, 1/4 where stability binds, 1/4 - 1/5 "
            "where accuracy does.",
        )
    page.heading("Indices as switches")
    page.figure(
        figures.policies(policies[middle]),
        "switches",
        f"What it costs to choose the method by an index, over choosing right in every window; error {middle:.0e}. "
        "Thresholds are the best in hindsight but for theory's.",
    )
    page.table("switches", switch_rows(policies), "Switching by an index", printed=False)
    page.table("graves", grave_rows(lab, preset.eps), "Grave mistakes, by problem", printed=False)


def measured(wanted: list[Subject], preset: Preset, arguments: Arguments) -> list[dict]:
    """The measurements of all problems, from an earlier run with the same options as far as they are there."""
    folder = arguments.out / "windows"
    folder.mkdir(parents=True, exist_ok=True)
    options = {"preset": dataclasses.asdict(preset), "explicit": arguments.explicit, "implicit": arguments.implicit}
    options = json.loads(json.dumps(options))
    told, missing = {}, []
    for one in wanted:
        path = folder / f"{one.name.replace(' ', '_')}.json"
        kept = json.loads(path.read_text()) if path.is_file() and not arguments.fresh else {}
        if kept.get("options") == options:
            told[one.name] = kept
        else:
            missing.append((one, path))

    def keep(one, path, found):
        with replacing(path) as unfinished:
            unfinished.write_text(json.dumps(found | {"options": options}))
        told[one.name] = found
        print(f"{one.name}: {len(found['windows'])} windows", flush=True)

    pair = (arguments.explicit, arguments.implicit, SHARP)
    if arguments.executor:
        from distributed import Client

        with Client(arguments.executor) as client:
            shared(client.get_executor(), missing, preset, pair, keep)
    elif arguments.workers > 1:
        with ProcessPoolExecutor(arguments.workers) as pool:
            shared(pool, missing, preset, pair, keep)
    else:
        for one, path in missing:
            keep(one, path, measure(one, preset, *pair))
    return [told[one.name] for one in wanted]


def measure_by_name(name: str, preset: Preset, pair) -> dict:
    """`measure` of the problem of this name: what an executor is sent is small and can be pickled."""
    (one,) = (one for one in subjects() if one.name == name)
    return measure(one, preset, *pair)


def shared(executor, missing, preset: Preset, pair, keep) -> None:
    """Measure on an executor; what is done is kept at once."""
    futures = [(one, path, executor.submit(measure_by_name, one.name, preset, pair)) for one, path in missing]
    for one, path, future in futures:
        keep(one, path, future.result())


def truth_rows(lab, eps_values):
    import numpy as np

    for problem in lab.problems:
        mask = lab.name == problem["name"]
        row = {"problem": problem["name"], "family": problem["family"], "windows": int(mask.sum())}
        for eps in eps_values:
            ratio = lab.truth(eps)[mask]
            known = ratio[np.isfinite(ratio)]
            row[f"stiff at {eps:.0e}"] = float(np.mean(known > 1.0)) if len(known) else "unknown"
            row[f"log10 R at {eps:.0e}"] = float(np.median(np.log10(known))) if len(known) else "unknown"
        yield row


def ranking_rows(rankings):
    for name, group in analysis.INDICES.items():
        row = {"index": name, "of": group}
        for eps, table in rankings.items():
            e = table[name].auc
            row[f"AUC at {eps:.0e}"] = f"{e.value:.2f} [{e.low:.2f}, {e.high:.2f}]"
            row[f"within at {eps:.0e}"] = f"{table[name].within:+.2f} ({table[name].counted})"
        yield row


def switch_rows(policies):
    for eps, table in policies.items():
        for name, one in sorted(table.items(), key=lambda pair: pair[1]["mean"]):
            numbers = {key: one[key] for key in ("mean", "median", "90 %", "threshold")}
            yield {"error": f"{eps:.0e}", "policy": name} | numbers


def grave_rows(lab, eps_values):
    for eps in eps_values:
        for name, threshold in (("h_acc/h_stab", 1.0), ("h_R/h_stab", 1.0), ("rho_ng/SAI", 26.0)):
            called, missed = analysis.graves(lab, eps, name, threshold)
            yield {
                "error": f"{eps:.0e}",
                "index": f"{name} > {threshold:g}",
                "called stiff, R < 1/2": ", ".join(called) or "none",
                "missed, R > 2": ", ".join(missed) or "none",
            }


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
