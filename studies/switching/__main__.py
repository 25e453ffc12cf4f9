"""What is stiffness? Every index against what explicit and implicit methods cost at equal error (about 4 min).

Claims examined: SAI tells where a problem is stiff and stands for SI (Huang, Liang et al., Understanding
Self-attention Mechanism via Dynamical System Perspective, 2023); and claims that follow from theory. Stiffness is
defined here as the cost of an explicit method over that of an implicit one at equal error, on windows of solutions;
`runs.py` has the definition, and each rule stands beside its claim. Last full run (1,633 windows of 90 problems and
3,000 forced systems, 2026-11-19, in studies/shipped/switching/): SAI contradicted, it points the other way (area under
the curve 0.29 to 0.34); chi = h_acc/h_stab 0.94 to 0.95, above every index of the problem alone, with exponents that
miss theory's.
"""

import dataclasses
import json
import shlex
import shutil
import time
from pathlib import Path
from typing import Literal

import odelab as ol
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.exhibits import Exhibit, write
from studies.lab.page import Page
from studies.switching import dependence, indices, runs, switches
from studies.switching.evidence import Evidence, Windows, powers, rankings

STUDY = "switching"
SHIPPED = Path(__file__).parents[1] / "shipped" / STUDY
MOST_DERIVATIVES = 5  # that the exact states of a window determine
EXHIBITS = (
    Exhibit("Where stiffness is", indices.show_truth),
    Exhibit("Which index tells", indices.show_indices, indices.judge_indices),
    Exhibit("What the tolerance does", dependence.show_tolerances, dependence.judge_tolerances),
    Exhibit("What R owes to choices", indices.show_choices),
    Exhibit("Jacobian and solution, chosen apart", dependence.show_forced, dependence.judge_forced),
    Exhibit("Indices as switches", switches.show_switches, switches.judge_switches),
    Exhibit("One run told", switches.show_one_run),
    Exhibit("Residual networks by the same ratio", switches.show_networks),
)


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
    """A Python file with problems and indices of your own; `studies.switching.runs.adopt` says how it looks."""
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
    with plain_errors(STUDY):
        evidence = gather(arguments)
    windows, forced = evidence.windows, evidence.systems
    page = Page(
        STUDY,
        arguments,
        "What is stiffness?",
        f"{len(windows.rows)} windows of {len(windows.problems)} problems in {len(set(evidence.families))} families, "
        f"and {len(forced.problems)} forced linear systems; {arguments.explicit} against {arguments.implicit}.",
    )
    page.began = began  # the time it tells includes the measurements
    page.heading("What these data say")
    page.words(
        "A window of a solution is stiff at an error where the explicit method needs more than the L-stable one to end "
        "it with that error: R, the ratio of their costs, is above 1. An index is judged by its area under the curve: "
        "the chance that it is larger on a stiff window than on another. Intervals, 95 %, come from resampling "
        "families of problems. All errors must agree, and windows beyond a factor of two with all windows."
    )
    write(page, EXHIBITS, evidence)
    page.close()
    if arguments.ship:
        ship(arguments.out)


def gather(arguments: Arguments) -> Evidence:
    """Everything that exhibits take, measured here or stored by an earlier run."""
    preset = with_errors(runs.PRESETS["smoke" if arguments.smoke else arguments.preset], arguments.eps)
    pair, folder, fresh = check_pair(arguments), arguments.out / "windows", arguments.fresh
    define = None if arguments.define is None else str(arguments.define)
    every = [subject for subject in runs.subjects(define) if subject.knob <= preset.knob]
    wanted = [subject for subject in every if subject.name.startswith(arguments.problems or "")]
    if not wanted:
        names = [subject.name for subject in runs.subjects(define)]
        raise SystemExit(f"studies.{STUDY}: `--problems` names none of {names}.")
    with runs.executor_of(arguments.workers, arguments.executor) as executor:
        records = runs.measure_all(wanted, preset, pair, folder, define, executor, fresh)
    if preset.timed:
        times = [runs.time_attempts(subject, pair, folder, define, fresh) for subject in wanted]
        records = [record | time for record, time in zip(records, times, strict=True)]
    windows = Windows(records, tuple(runs.adopt(define).indices))
    ladder = preset.tolerances[:4] if arguments.smoke else preset.tolerances
    forced = dependence.recall_or_measure(folder, preset, pair, ladder, fresh)
    everywhere, clear = (
        {eps: rankings(windows, eps, preset.resamples, band=band) for eps in preset.eps} for band in (False, True)
    )
    count = preset.networks if arguments.networks is None else arguments.networks
    blocks, unavailable = switches.measure_networks(preset, folder, count, fresh)
    return Evidence(
        windows,
        forced,
        preset,
        pair,
        everywhere,
        clear,
        powers(windows, preset.eps, preset.resamples),
        {eps: switches.policies(windows, eps) for eps in preset.eps},
        {eps: switches.policies(windows, eps, "seconds") for eps in preset.eps if preset.timed},
        **dependence.measure_planes_and_shear(preset, pair),
        run=switches.measure_one_run(preset, pair),
        blocks=blocks,
        unavailable=unavailable,
    )


def with_errors(preset: runs.Preset, eps: tuple[float, ...]) -> runs.Preset:
    """The preset with the errors that were asked for, the largest first."""
    least, most = 1e-9, 1e-1
    if not all(least <= error <= most for error in eps):
        raise ValueError(f"`--eps` must lie between {least:g} and {most:g}, which the tolerances reach, got {eps}.")
    return dataclasses.replace(preset, eps=tuple(sorted(set(eps), reverse=True)) or preset.eps)


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


def ship(out: Path, shipped: Path = SHIPPED) -> None:
    """Copy record, report and figures beside the study; `out` is a folder of one machine, and is not told."""
    shipped.mkdir(parents=True, exist_ok=True)
    for old in shipped.iterdir():
        old.unlink()
    for path in sorted(out.glob("*.png")):
        shutil.copy(path, shipped / path.name)
    for name in ("record.json", "report.md"):
        text = (out / name).read_text().replace(f" --out {shlex.quote(str(out))}", "")
        (shipped / name).write_text(text.replace(json.dumps(str(out)), json.dumps(str(Arguments.out))))


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
