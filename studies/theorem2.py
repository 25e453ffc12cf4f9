"""Theorem 2 of the first paper, SAI stands for SI: where it holds and where it breaks (about 20 s).

Claim examined: for explicit Euler SAI = SI sqrt(C + Q) with Q -> 0 as the stiffness grows, so SAI, which needs no
Jacobian, ranks states by their stiffness. Result: the identity holds to rounding for symmetric Jacobians once its cross
term is corrected; the limit holds where one mode dominates both the spectrum and the state; on slow manifolds, for
non-normal Jacobians and under a shift of the origin SAI says something else than SI.
"""

import dataclasses
import textwrap
import time
from pathlib import Path

import numpy as np
from rich.progress import track
from scipy.stats import spearmanr

import odelab as ol
from odelab.plot import style
from studies.lab.command import require_at_least, start
from studies.lab.figures import heat_map
from studies.lab.page import Page
from studies.lab.statistics import interval_text, mean_with_interval, rank_correlation
from studies.lab.verdicts import (
    CONTRADICTED,
    NOT_RUN,
    SUPPORTED,
    UNDECIDED,
    Verdict,
    Worlds,
    corrected,
    enough,
    of_cases,
    of_interval,
    rule,
)

STUDY = "theorem2"
STIFFNESS = np.logspace(1, 7, 13)  # six decades
SMOKE = ("stiff_linear", "linear", "lorenz", "e5")
NON_STIFF = ("brusselator", "lorenz", "rigid_body", "arenstorf", "pleiades", "three_body")
TOO_STIFF = ("prothero_robinson", "oregonator", "e5", "pollu")  # an explicit method would take millions of steps
ATOL = {"e5": 1e-30, "robertson": 1e-14, "pollu": 1e-16}  # below the smallest component that matters
FALLS = -0.5  # the power of SI with which Q falls at least, where it falls
FEWEST_PROBLEMS = 5
PHASES = {"transient": "while steps resolve the fastest mode", "slow": "on slow phases"}
HARDER = {"van_der_pol": lambda: ol.problems.van_der_pol(mu=100.0).replace(t_span=(0.0, 200.0))}


@dataclasses.dataclass
class Arguments:
    """The identity, the limit, the finite-h law, the counterexamples, and a validity map over the catalogue."""

    out: Path = Path("results/theorem2")
    """Where figures, tables and record.json go."""
    systems: int = 2000
    """Random symmetric systems per dimension for the identity."""
    seed: int = 0
    """The random systems are drawn from it."""
    spectra: int = 400
    """Spectra per run of the validity map."""
    smoke: bool = False
    """A run of seconds that only shows that everything works."""
    verbose: bool = False
    """Print the tables and the names of all files as well."""


def main(arguments: Arguments):
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, systems=50, spectra=40)
    require_at_least(1, arguments, "systems", "spectra")
    page = Page(STUDY, arguments, "Theorem 2: where SAI stands for SI")
    rng = np.random.default_rng(arguments.seed)
    parts = {}

    dimensions = (2, 5, 20) if arguments.smoke else (2, 5, 10, 20, 50, 100, 200)
    (limits, families), (steps, curves) = limit(), finite_steps()
    ranks, runs = validity_map(arguments)
    parts = {
        "identity": list(identity(rng, arguments.systems, dimensions)),
        "limit": limits,
        "breaks": list(counterexamples()),
        "map": ranks,
    }
    page.findings([judge_identity(parts["identity"]), judge_limit(limits), judge_ranking(ranks)])
    page.table("a_identity", parts["identity"], "(a) The identity on random symmetric systems")
    page.table("b_limit", limits, "(b) Q over six decades of SI")
    page.figure(limit_figure(families), "b_limit", "Q and SAI/SI along families of systems as SI grows.")
    page.table("c_finite_steps", steps, "(c) SAI over a finite step")
    page.figure(finite_figure(curves), "c_finite_steps", "SAI of finite steps; dashed: the limits of stability.")
    page.table("d_where_it_breaks", parts["breaks"], "(d) Where it breaks")
    page.table("e_validity_map", ranks, "(e) Rank correlation of SAI with SI along real runs")
    page.figure(map_figure(ranks), "e_validity_map", "Rank correlation of SAI with SI along real runs.")
    page.figure(
        cloud_figure(runs),
        "e_sai_against_si",
        "SAI against SI along four runs, from dark (early) to bright (late). The line is SAI = SI.",
    )
    page.conclusions(conclusions(parts))
    page.close()


@rule(
    "SAI = SI sqrt(C + Q), with the cross term corrected",
    "Theorem 2, Eq. 30",
    exempt="an identity holds to rounding in every system or it does not",
)
def judge_identity(rows) -> tuple[Verdict, str]:
    """Supported where the identity holds to rounding in every random symmetric system, contradicted where it fails in
    one."""
    systems, held = (sum(row[key] for row in rows) for key in ("systems", "identity holds"))
    worst = max(row["largest residual"] for row in rows)
    words = f"It holds for {held} of {systems} random symmetric systems; largest residual {worst:.1e}."
    return (SUPPORTED if held == systems else CONTRADICTED), words


@rule(
    "Q falls to 0 as SI grows",
    "Theorem 2, Eq. 31",
    exempt="families of systems are computed, nothing is drawn",
)
def judge_limit(rows) -> tuple[Verdict, str]:
    """Families of systems whose SI grows over six decades. True of a family where Q falls at least as the root of SI
    does, false where it does not; premises that the proof uses and the theorem does not name tell the two apart."""
    rates = {row["family"]: row["rate: |Q| ~ SI^"] for row in rows}
    verdict = of_cases(SUPPORTED if rate <= FALLS else CONTRADICTED for rate in rates.values())
    met = [row["family"] for row in rows if row["limit, by its premises"]]
    told = "; ".join(f"{family}: Q ~ SI^{rate:.2f}" for family, rate in rates.items())
    return verdict, f"{told}. The premises are met by: {', '.join(met) or 'none'}."


def worlds_of_runs(chance, effect: float, n: int) -> tuple:
    """Two runs of every problem, whose correlations lie anywhere, or about 0.7."""
    rows = []
    for problem in range(n):
        same = chance.uniform(-1.0, 1.0)
        for method in ("DOPRI5", "RADAU"):
            row = {
                phase: float(
                    np.clip(0.7 * effect + (0.3 if effect else 1.0) * same + chance.normal(0.0, 0.1), -1.0, 1.0)
                )
                for phase in PHASES
            }
            rows.append({"problem": str(problem), "method": method} | row)
    return (rows,)


@rule(
    "SAI ranks the states of a run by their stiffness, as SI does",
    "first paper, Section 2.5",
    fixed="after the data: with the correlations of these runs known; before, they were sentences without a rule",
    fewest=FEWEST_PROBLEMS,
    worlds=Worlds(worlds_of_runs, n=12, units="problems", effect="rank correlations of 0.7 in both phases"),
)
def judge_ranking(rows) -> tuple[Verdict, str]:
    """Spearman's correlation of SAI with SI along runs of the problems of the catalogue, the mean over the runs of a
    problem: while steps resolve the fastest mode, and on slow phases. Supported where the mean over problems is
    certainly above 0 in both, contradicted where it is certainly below in both; intervals hold together."""
    by_phase: dict[str, dict[str, list[float]]] = {phase: {} for phase in PHASES}
    for row in rows:
        for phase, problems in by_phase.items():
            if np.isfinite(row[phase]):
                problems.setdefault(row["problem"], []).append(row[phase])
    by_phase = {phase: problems for phase, problems in by_phase.items() if problems}
    if not by_phase:
        return NOT_RUN, "n = 0 problems whose SI changes along a run."
    few = enough({PHASES[phase]: list(problems) for phase, problems in by_phase.items()}, FEWEST_PROBLEMS, "problems")
    level = corrected(len(by_phase))
    found = {
        phase: mean_with_interval([np.mean(values) for values in problems.values()], level)
        for phase, problems in by_phase.items()
    }
    told = "; ".join(f"{PHASES[phase]} {interval_text(e, '+.2f')} (n = {e.n} problems)" for phase, e in found.items())
    verdict = of_cases(of_interval(e) for e in found.values())
    return (UNDECIDED if few else verdict), f"{few}Mean rank correlations: {told}."


def identity(rng, systems, dimensions):
    for n in dimensions:
        count = max(10, systems if n <= 50 else systems // 10)
        matrices = rng.normal(size=(count, n, n))
        J = 0.5 * (matrices + matrices.swapaxes(1, 2))
        u, a = rng.normal(size=(count, n)), rng.normal(size=(count, n))
        f = (J @ u[..., None])[..., 0] + a
        start = time.perf_counter()
        result = ol.theorem2(J, u, f)
        yield {
            "n": n,
            "systems": count,
            "largest residual": float(np.max(result.residual)),
            "identity holds": int(np.sum(result.identity)),
            "seconds": time.perf_counter() - start,
        }


def limit():
    """Q along families of ever stiffer systems; the theorem claims that Q falls, a slope below zero."""
    ones = np.ones(3)
    families = {
        "one stiff mode, f = Ju": lambda s: (-np.diag([s, 2.0, 1.0]), ones, np.zeros(3)),
        "one stiff mode, fixed offset": lambda s: (-np.diag([s, 2.0, 1.0]), ones, ones),
        "next eigenvalue half of SI": lambda s: (-np.diag([s, 0.5 * s, 1.0]), ones, np.zeros(3)),
        "offset growing with SI": lambda s: (-np.diag([s, 2.0, 1.0]), ones, np.array([0.3 * s, 0.0, 0.0])),
        "little of the stiff mode in u": lambda s: (
            -np.diag([s, 2.0, 1.0]),
            np.array([1.0 / s, 1.0, 1.0]),
            np.zeros(3),
        ),
    }
    rows, curves = [], {}
    for name, member in families.items():
        results = [ol.theorem2(J, u, J @ u + a) for J, u, a in map(member, STIFFNESS)]
        q = np.array([abs(result.q) for result in results])
        curves[name] = q, np.array([result.sai / result.si for result in results])
        rows.append(
            {
                "family": name,
                "|Q| at SI = 10": q[0],
                "|Q| at SI = 1e7": q[-1],
                "rate: |Q| ~ SI^": float(np.polyfit(np.log(STIFFNESS[4:]), np.log(q[4:]), 1)[0]),
                "SAI/SI at 1e7": results[-1].sai / results[-1].si,
                "limit, by its premises": bool(results[-1].limit),
            }
        )
    return rows, curves


def finite_steps():
    """SAI of steps of size h for u' = Ju with eigenvalues -1000 and -1: of the first step, and after 300 of them."""
    problem = ol.problems.linear_symmetric([-1000.0, -1.0])
    sizes = np.logspace(-5, 0, 61)
    first = {"exact flow": np.array([observed_sai(problem, h) for h in sizes])}
    settled = {}
    for method in (ol.EULER, ol.RK4, ol.RKF45):
        runs = [ol.solve(problem.replace(t_span=(0.0, 300 * h)), method, ol.fixed(h), throw=False) for h in sizes]
        first[method.name] = np.array([ol.sai(run)[0] for run in runs])
        settled[method.name] = np.array([ol.sai(run)[-1] for run in runs])
    rows = []
    for name, values in first.items():
        row: dict[str, object] = {"SAI of": name}
        for h in (1e-5, 1e-3, 1e-2, 1.0):
            row[f"first step, h = {h:g}"] = at_size(sizes, values, h)
            row[f"after 300, h = {h:g}"] = at_size(sizes, settled[name], h) if name in settled else "-"
        rows.append(row)
    return rows, (sizes, first, settled, problem)


def at_size(sizes, values, h):
    return float(values[np.argmin(np.abs(np.log(sizes / h)))])


def observed_sai(problem, h):
    """SAI of the exact flow over a step, from observations at its two ends."""
    t = np.array([0.0, h])
    return float(ol.sai(t=t, u=exact_state(problem, t))[0])


def exact_state(problem, t):
    return problem.exact(t, problem.params)


def counterexamples():
    """States at which SAI differs from SI, one row each, with the reason."""

    def row(what, si, sai, word):
        return {"case": what, "SI": float(si), "SAI": float(sai), "SAI/SI": float(sai / si), "why": word}

    for rate in (-1e2, -1e4, -1e6):
        problem = ol.problems.prothero_robinson(rate=rate)
        si, sai = at_state(problem, 0.5, exact_state(problem, 0.5))
        yield row(f"Prothero-Robinson on its solution, rate {rate:g}", si, sai, "slow manifold")
    robertson = ol.problems.robertson().replace(t_span=(0.0, 1e5))
    times = (0.0, 1e-3, 40.0, 1e5)
    states = ol.solve(robertson, ol.RADAU, ol.adaptive(1e-10, 1e-16), t_eval=times[1:]).u
    for t, u in zip(times, [robertson.u0, *states], strict=True):
        si, sai = at_state(robertson, t, u)
        yield row(f"Robertson at t = {t:g}", si, sai, "slow manifold" if t else "not normal")
    oscillator = ol.problems.van_der_pol(mu=1000.0).replace(t_span=(0.0, 2000.0))
    run = ol.solve(oscillator, ol.RADAU, ol.adaptive(1e-8, 1e-10))
    ind = ol.indicators(oscillator, run, every=1)
    for word, i in (("slow phase", np.nanargmin(ind.ratio)), ("jump", np.nanargmax(ind.ratio))):
        yield row(f"van der Pol 1000, {word}, t = {ind.t[i]:.5g}", ind.si[i], ind.sai[i], word)
    bent = np.array([[-1.0, 1000.0], [0.0, -2.0]])
    result = ol.theorem2(bent, np.array([0.0, 1.0]), bent @ np.array([0.0, 1.0]))
    yield row("[[-1, 1000], [0, -2]] at (0, 1)", result.si, result.sai, "not normal")
    for origin in (0.0, 10.0, 1000.0):
        result = ol.theorem2(np.array([[-1000.0]]), np.array([origin + 1.0]), np.array([-1000.0]))
        yield row(f"u' = -1000(u - {origin:g}) at u = {origin + 1:g}", result.si, result.sai, "shifted origin")


def at_state(problem, t, u):
    """SI and SAI of a problem at one state."""
    u = np.asarray(u, dtype=float)
    f = problem.slope(t, u)
    result = ol.theorem2(np.asarray(ol.jacobian(problem, t, u)), u, f)
    return result.si, result.sai


def validity_map(arguments):
    rows, runs = [], {}
    for name, make in track(ol.problems.catalogue().items(), description="validity map", transient=True):
        if arguments.smoke and name not in SMOKE:
            continue
        problem = HARDER.get(name, make)()
        methods: list = [ol.DOPRI5] if name in NON_STIFF else [ol.RADAU] if name in TOO_STIFF else [ol.DOPRI5, ol.RADAU]
        for method in methods:
            run = ol.solve(problem, method, ol.adaptive(1e-6, ATOL.get(name, 1e-10)), max_steps=400_000, throw=False)
            ind = ol.indicators(problem, run, every=max(1, run.steps // arguments.spectra))
            rows.append(map_row(name, method, run, ind))
            runs[name, method.name] = ind
    return rows, runs


def map_row(name, method, run, ind):
    at = ind.sampled[(ind.sai[ind.sampled] > 0) & (ind.si[ind.sampled] > 0)]
    resolved = ind.h_rho[at] < 1.0  # the step resolves the fastest mode: the transient of a stiff problem
    bound = ind.limited_by[at] == "stability"
    return {
        "problem": name,
        "method": method.name,
        "steps": run.steps,
        "status": run.status,
        "all": rank(ind, at),
        "transient": rank(ind, at[resolved]),
        "slow": rank(ind, at[~resolved]),
        "limited by accuracy": rank(ind, at[~bound]),
        "limited by stability": rank(ind, at[bound]),
        "share transient": float(resolved.mean()) if len(at) else float("nan"),
        "SI constant": bool(len(at) and np.ptp(ind.si[at]) <= 1e-9 * ind.si[at].max()),
        "median SAI/SI": float(np.median(ind.ratio[at])) if len(at) else float("nan"),
    }


def rank(ind, at):
    """Spearman's correlation of SAI with SI; NaN where SI does not change or there is too little to rank."""
    if len(at) < 8 or np.ptp(ind.si[at]) <= 1e-9 * ind.si[at].max():
        return float("nan")
    return rank_correlation(ind.sai[at], ind.si[at], spearmanr)[0]


def limit_figure(families):
    with style.figure(1, 2, height=3.4) as (drawing, axes):
        for name, (q, ratio) in families.items():
            axes[0, 0].loglog(STIFFNESS, q, "o-", markersize=3, label=name)
            axes[0, 1].loglog(STIFFNESS, ratio, "o-", markersize=3)
        axes[0, 0].set(xlabel="SI", ylabel="|Q|")
        axes[0, 1].set(xlabel="SI", ylabel="SAI / SI")
        drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return drawing


def finite_figure(data):
    sizes, first, settled, problem = data
    si = float(ol.si(ol.jacobian(problem)))
    colours = dict(zip(first, style.COLOURS, strict=False))
    with style.figure(1, 2, height=3.4, sharey=True) as (drawing, axes):
        for plane, curves, title in zip(axes[0], (first, settled), ("first step", "after 300 steps"), strict=True):
            for name, values in curves.items():
                plane.loglog(sizes * si, values / si, color=colours[name], label=name)
            for method in (ol.EULER, ol.RK4, ol.RKF45):
                plane.axvline(method.real_boundary, color=colours[method.name], linewidth=0.7, linestyle="--")
            plane.set(xlabel="h SI", title=title, ylim=(1e-4, 1e3))
        axes[0, 0].loglog(sizes * si, 1.0 / (sizes * si), ":", color=style.GREY, label="1/h")
        axes[0, 0].set_ylabel("SAI / SI")
        drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return drawing


def map_figure(rows):
    columns = ("transient", "slow", "limited by accuracy", "limited by stability", "all")
    constant = sorted({row["problem"] for row in rows if not np.isfinite(row["all"])})
    rows = [row for row in rows if np.isfinite(row["all"])]
    table = np.array([[row[column] for column in columns] for row in rows])
    return heat_map(
        table,
        [f"{row['problem']}, {row['method']}" for row in rows],
        [column.replace(" by ", "\nby ") for column in columns],
        "rank correlation of SAI with SI",
        "SI is constant, nothing to rank: " + "\n".join(textwrap.wrap(", ".join(constant), 48)),
    )


def cloud_figure(runs):
    """SAI against SI along four runs, from dark (early) to bright (late); the line is SAI = SI."""
    wanted = [("robertson", "RADAU"), ("van_der_pol", "DOPRI5"), ("hires", "RADAU"), ("pleiades", "DOPRI5")]
    chosen = ([key for key in wanted if key in runs] or list(runs))[:4]
    with style.figure(2, 2, height=5.2) as (drawing, axes):
        for axis, key in zip(axes.flat, chosen, strict=False):
            ind = runs[key]
            at = ind.sampled
            axis.scatter(ind.si[at], ind.sai[at], c=np.arange(len(at)), s=6, cmap="viridis", linewidths=0)
            low, high = np.nanmin(ind.si[at]), np.nanmax(ind.si[at])
            axis.plot([low, high], [low, high], color=style.GREY, linewidth=0.8)
            axis.set(xscale="log", yscale="log", xlabel="SI", ylabel="SAI", title=f"{key[0]}, {key[1]}")
            axis.minorticks_off()
    return drawing


def conclusions(parts):
    lost = [row for row in parts["limit"] if not row["limit, by its premises"]]
    ratios = [row["SAI/SI"] for row in parts["breaks"]]
    ranked = [row for row in parts["map"] if np.isfinite(row["all"])]
    good = [row for row in ranked if row["all"] > 0.8]
    inverse = [row for row in ranked if row["all"] < -0.2]

    def listing(rows):
        return ", ".join(f"{row['problem']} ({row['method']}, {row['all']:+.2f})" for row in rows) or "none"

    return [
        "Where a premise fails, SAI is another number than SI: "
        + "; ".join(f"{row['family']}: SAI/SI = {row['SAI/SI at 1e7']:.2g} at SI = 1e7" for row in lost)
        + ".",
        f"SAI/SI over the counterexamples spans {min(ratios):.1e} to {max(ratios):.1e}: as a number SAI is not SI.",
        f"SAI ranks like SI (above 0.8) on {len(good)} of {len(ranked)} runs: {listing(good)}.",
        f"It ranks the other way round (below -0.2) on {len(inverse)}: {listing(inverse)}.",
        "A run whose SI is constant leaves nothing to rank: "
        + (", ".join(sorted({row["problem"] for row in parts["map"] if row["SI constant"]})) or "none")
        + ".",
    ]


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
