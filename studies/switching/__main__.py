"""What is stiffness? Every index against what explicit and implicit methods cost at equal error (about 4 min).

Claims examined: SAI tells where a problem is stiff and stands for SI (Huang, Liang et al., Understanding
Self-attention Mechanism via Dynamical System Perspective, 2023); and claims that follow from theory. Stiffness is
defined here as the cost of an explicit method over that of an implicit one at equal error, on windows of solutions;
`design.py` has the definition and the rules of the verdicts. Last full run (1,633 windows of 90 problems and 3,000
forced systems, 2026-11-19, in shipped/): SAI contradicted, it points the other way (area under the curve 0.29 to 0.34);
chi = h_acc/h_stab 0.94 to 0.95, above every index of the problem alone, with exponents that miss theory's.
"""

import dataclasses
import json
import shlex
import shutil
import time
from pathlib import Path
from typing import Literal

import numpy as np

import odelab as ol
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.page import Page
from studies.lab.statistics import Estimate
from studies.switching import (
    analysis,
    batch,
    factorial,
    findings,
    measures,
    policies,
    timings,
    yours,
)
from studies.switching.design import PRESETS, Preset
from studies.switching.observations import Lab
from studies.switching.report import sections

STUDY = "switching"
SHIPPED = Path(__file__).parent / "shipped"
MOST_DERIVATIVES = 5  # that the exact states of a window determine
KEPT = ("record.json", "report.md")  # what `--ship` takes beside the figures


@dataclasses.dataclass
class Arguments:
    """Judge every index of stiffness by what explicit and implicit methods cost."""

    preset: Literal["quick", "full"] = "quick"
    """quick: 37 problems, up to 10 windows each, 400 forced systems, one network; full: 90 problems, up to 40 windows
    each, other methods, windows and units of cost, 3,000 forced systems, ten networks, and 2,000 resamples."""
    eps: tuple[float, ...] = ()
    """Errors at which costs are compared; 1e-3, 1e-4, 1e-6 and 1e-8 by default."""
    explicit: str = "DOPRI5"
    """The explicit method, such as DOPRI5 or RKF45; it needs an error estimate."""
    implicit: str = "RODAS4"
    """The L-stable method: RODAS4, RODAS5P or ROS2."""
    problems: tuple[str, ...] = ()
    """Only problems whose names begin so; all by default."""
    define: Path | None = None
    """A Python file with problems and indices of your own; `studies.switching.yours.adopt` says how it looks."""
    networks: int | None = None
    """How many shipped networks are looked at; 0: none. quick: 1, full: 10. Without the images of CIFAR-10, those of
    the digits' networks."""
    workers: int = 1
    """Processes that measure."""
    executor: str | None = None
    """The address of a Dask scheduler whose workers measure, such as tcp://host:8786."""
    fresh: bool = False
    """Measure anew what is there from an earlier run with the same options; without it, a run goes on."""
    ship: bool = False
    """Write record, report and figures into the study's folder, in place of what came with it."""
    out: Path = Path("results/switching")
    """Where measurements (in windows/), figures, tables, report.html and record.json go."""
    smoke: bool = False
    """A run of seconds that only shows that everything works."""
    verbose: bool = False
    """Print the tables and the names of all files as well."""


def main(arguments: Arguments):
    began = time.perf_counter()
    require_at_least(1, arguments, "workers")
    require_at_least(0, arguments, "networks")
    preset = PRESETS["smoke" if arguments.smoke else arguments.preset]
    with plain_errors(STUDY):
        preset = with_errors(preset, arguments.eps)
        pair = check_pair(arguments)
        define = None if arguments.define is None else str(arguments.define)
        wanted = [one for one in measures.all_subjects(define) if one.knob <= preset.knob]
        if arguments.problems:
            wanted = [one for one in wanted if one.name.startswith(arguments.problems)]
        if not wanted:
            names = [one.name for one in measures.all_subjects(define)]
            raise SystemExit(f"studies.{STUDY}: `--problems` names none of {names}.")
        kept = arguments.out / "windows"
        found = batch.measure_all(
            wanted, preset, pair, kept, define, arguments.workers, arguments.executor, arguments.fresh
        )
        if preset.timed:
            weights = timings.measure_or_read(kept / "timings.json", wanted, pair, define, arguments.fresh)
            found = [one | weights[one["name"]] for one in found]
        lab = Lab(found, tuple(yours.adopt(define).indices))
        ladder = preset.tolerances[:4] if arguments.smoke else preset.tolerances
        path = kept / f"factorial_{preset.systems}.json"
        forced = Lab(factorial.measure_or_read(path, preset.systems, ladder, *pair, preset.engine, arguments.fresh))

    page = Page(
        STUDY,
        arguments,
        "What is stiffness?",
        f"{len(lab.windows)} windows of {len(lab.problems)} problems in {len(set(lab.family))} families, and "
        f"{len(forced.problems)} forced linear systems; {arguments.explicit} against {arguments.implicit}.",
    )
    page.began = began  # the time it tells includes the measurements
    middle = min(preset.eps, key=lambda eps: abs(np.log(eps / 1e-4)))
    everywhere = {eps: analysis.rankings(lab, eps, preset.resamples) for eps in preset.eps}
    beyond = {eps: analysis.rankings(lab, eps, preset.resamples, band=True) for eps in preset.eps}
    tables_of_costs = {eps: policies.policies(lab, eps) for eps in preset.eps}
    fits = fit_powers(lab, forced, preset)
    judge(page, lab, forced, preset, everywhere, beyond, tables_of_costs, fits)
    sections.truth(page, lab, preset, middle, everywhere, beyond)
    sections.forced_systems(page, lab, forced, preset, middle, fits, pair)
    sections.switches(page, lab, middle, tables_of_costs)
    sections.run_section(page, preset, pair)
    sections.of_networks(page, arguments, preset, lab, middle)
    page.close()
    if arguments.ship:
        ship(arguments.out)


def with_errors(preset: Preset, eps: tuple[float, ...]) -> Preset:
    """The preset with the errors that were asked for, the largest first."""
    if not eps:
        return preset
    least, most = 1e-9, 1e-1
    if not all(least <= one <= most for one in eps):
        raise ValueError(f"`--eps` must lie between {least:g} and {most:g}, which the tolerances reach, got {eps}.")
    return dataclasses.replace(preset, eps=tuple(sorted(set(eps), reverse=True)))


def check_pair(arguments: Arguments) -> tuple[str, str]:
    """The names of both methods."""
    for name, kind in (("explicit", ol.Method), ("implicit", ol.RosenbrockMethod)):
        method = getattr(ol, getattr(arguments, name), None)
        if not isinstance(method, kind) or not method.embedded:
            raise ValueError(
                f"`--{name}` must name a {kind.__name__} of odelab with an error estimate, got "
                f"{getattr(arguments, name)!r}."
            )
    order = getattr(ol, arguments.explicit).error_order
    if order > MOST_DERIVATIVES:
        raise ValueError(
            f"`--explicit` = {arguments.explicit!r}: its steps follow derivative {order} of the solution, and windows "
            f"show at most {MOST_DERIVATIVES}; take a method with an error order up to {MOST_DERIVATIVES}."
        )
    return arguments.explicit, arguments.implicit


def fit_powers(lab: Lab, forced: Lab, preset: Preset) -> dict[str, analysis.Powers | None]:
    """The powers of R where stability binds, over the windows and over the factorial."""
    kinds = np.array([problem["levels"]["kind"] for problem in forced.problems])
    origin = np.array([problem["levels"]["origin"] for problem in forced.problems])
    errors, few = preset.eps, min(preset.resamples, 300)
    told = {
        "windows, pace SAI": analysis.powers(lab, errors, preset.resamples),
        "windows, pace |f'|/|f|": analysis.powers(lab, errors, preset.resamples, "rate"),
        "factorial, pace SAI": analysis.powers(forced, errors, few),
        "factorial, pace SAI, origin 0": analysis.powers(forced, errors, few, only=origin == 0.0),
        "factorial, pace |f'|/|f|": analysis.powers(forced, errors, few, "rate"),
    }
    return told | {
        f"factorial, pace |f'|/|f|, {kind}": analysis.powers(forced, errors, few, "rate", kinds == kind)
        for kind in factorial.KINDS
    }


def judge(page: Page, lab: Lab, forced: Lab, preset: Preset, everywhere, beyond, tables_of_costs, fits):
    """Put the nine claims on the page, each with its verdict."""
    sheared = forced.column("non_normal")
    few = min(preset.resamples, 500)
    names = ("h_acc/h_stab", "h_acc/h_power")
    on_sheared = [
        {eps: analysis.rankings(forced, eps, few, sheared, band, names) for eps in preset.eps} for band in (False, True)
    ]
    loose, sharp = preset.eps[0], preset.eps[-1]
    change = Estimate(float("nan"), float("nan"), float("nan"))
    if loose != sharp:
        change = analysis.share_that_changes(lab, loose, sharp, preset.resamples)
    page.heading("What these data say")
    page.words(
        "A window of a solution is stiff at an error where the explicit method needs more than the L-stable one to end "
        "it with that error: R, the ratio of their costs, is above 1. An index is judged by its area under the curve: "
        "the chance that it is larger on a stiff window than on another. Intervals, 95 %, come from resampling "
        "families of problems. All errors must agree, and windows beyond a factor of two with all windows."
    )
    families = lab.family.tolist()
    page.findings(
        [
            findings.judge_sai(everywhere, beyond, families),
            findings.judge_simplified(everywhere, beyond, families),
            findings.judge_power_of_sai(fits["windows, pace SAI"], families),
            findings.judge_tolerance(change, families),
            findings.judge_chi(everywhere, beyond, fits["windows, pace SAI"], families),
            findings.judge_ratio(everywhere, beyond, families),
            findings.judge_damping({eps: analysis.bound_without_damping(lab, eps) for eps in preset.eps}, families),
            findings.judge_pseudospectra(*on_sheared, forced.family[sheared].tolist()),
            findings.judge_switch(tables_of_costs, families),
        ]
    )


def ship(out: Path) -> None:
    """Copy record, report and figures beside the study; `out` is a folder of one machine, and is not told."""
    SHIPPED.mkdir(exist_ok=True)
    for old in SHIPPED.iterdir():
        old.unlink()
    for path in sorted(out.glob("*.png")):
        shutil.copy(path, SHIPPED / path.name)
    for name in KEPT:
        text = (out / name).read_text().replace(f" --out {shlex.quote(str(out))}", "")
        (SHIPPED / name).write_text(text.replace(json.dumps(str(out)), json.dumps(str(Arguments.out))))


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
