"""Indices as switches: what it costs to choose the method of each window by an index, over choosing right.

Behind the claim about the threshold that theory names stand real runs of `ol.AUTO`, one run told, and the blocks of
residual networks by the same ratio, on which no claim rests.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import odelab as ol
from odelab import problems
from odelab.plot import style
from studies.lab.page import Page
from studies.lab.statistics import Estimate, draw_counts, estimate
from studies.lab.verdicts import NOT_RUN, Finding, Verdict, Worlds, agreement, of_interval, of_parts, of_strength, rule
from studies.switching.evidence import (
    ERRORS,
    FEWEST_FAMILIES,
    OPEN,
    Evidence,
    Windows,
    colours_of,
    made_up_families,
    of_families,
    only_support,
    rule_over_families,
    spread,
    together,
    usable,
)
from studies.switching.runs import (
    CHOICES,
    REFERENCE,
    ROLES,
    SYMBOLS,
    WHOLE,
    Preset,
    Subject,
    measure,
    over,
    recall,
    store,
)

GOOD, BAD = 1.25, 1.5  # costs over the oracle's up to which switching is good, and from which it is bad
NEAR = 1.05  # over the cost with the best threshold in hindsight
CAPPED = 100.0  # a loss beyond counts as this in geometric means
THRESHOLDS = 41  # quantiles of an index that are tried
RESAMPLES = 500  # of families, for intervals of mean costs
SPLITS = 60  # of the families into those that a threshold is fitted to and those that it is tried on
FREE = {  # thresholds that theory or other programs name
    "h_R/h_stab": 1.0,
    "h_acc/h_stab": 1.0,
    "h_acc rho_ng": 3.3,
    "rho_ng/SAI": 10.0,
    "h_E rho_ng": 3.0,
    "Hairer-Wanner: h rho > boundary": 0.5,
}


@dataclasses.dataclass(frozen=True, eq=False)
class Policy:
    """What choosing by an index costs.

    threshold   above it the implicit method is taken; NaN where there is none
    cost        over the oracle's, problem by problem
    family      of each problem
    unseen      the mean cost on families that the threshold was not fitted to; NaN where none was fitted
    """

    threshold: float
    cost: np.ndarray
    family: np.ndarray
    unseen: float = float("nan")

    @property
    def mean(self) -> float:
        """The geometric mean of the costs over problems, losses capped."""
        return float(np.exp(self.logs.mean()))

    @property
    def logs(self) -> np.ndarray:
        """The logarithms of the costs, losses capped."""
        return np.log(np.minimum(self.cost, CAPPED))


def estimate_loss(policy: Policy, other: Policy | None = None) -> Estimate:
    """The logarithm of the geometric mean of a policy's costs, with its interval over resamples of families.

    other  a policy whose cost is taken for 1, on the same problems; by default the oracle's
    """
    logs = policy.logs - (0.0 if other is None else other.logs)
    names, group = np.unique(policy.family, return_inverse=True)
    sums, sizes, drawn = np.bincount(group, logs), np.bincount(group), draw_counts(len(names), RESAMPLES)
    return estimate(logs.mean(), (drawn @ sums) / (drawn @ sizes), n=len(names))


class Costs:
    """Costs of both methods on the windows of every problem, and of any choice between them.

    Every change of the method costs one attempt of the new one.
    """

    def __init__(self, windows: Windows, eps: float, unit: str = "evaluations"):
        explicit, implicit = (windows.cost(role, eps, unit) for role in ROLES)
        self.usable = np.flatnonzero(usable(explicit / implicit))
        names = windows.name[self.usable]
        self.first = np.flatnonzero(np.r_[True, names[1:] != names[:-1]]) if len(names) else np.zeros(0, int)
        self.family = windows.family[self.usable][self.first]
        self.explicit, self.implicit = explicit[self.usable], implicit[self.usable]
        self.starting = {role: windows.attempt(role, unit)[self.usable] for role in ROLES}
        self.oracle = self.by_problem(np.minimum(self.explicit, self.implicit))

    def by_problem(self, values) -> np.ndarray:
        return np.add.reduceat(values, self.first)

    def of(self, choice) -> np.ndarray:
        """The cost of choosing the implicit method where `choice` is true, over the oracle's, problem by problem."""
        changes = np.r_[False, choice[1:] != choice[:-1]]
        changes[self.first] = False
        spent = np.where(choice, self.implicit, self.explicit)
        spent = spent + changes * np.where(choice, self.starting["implicit"], self.starting["explicit"])
        return self.by_problem(spent) / self.oracle

    def fit(self, values) -> Policy | None:
        """The best threshold in hindsight, and what thresholds fitted to half of the families do on the others."""
        values = np.where(np.isnan(values), -np.inf, values)[self.usable]
        finite = values[np.isfinite(values)]
        if not len(finite):
            return None
        thresholds = np.r_[-np.inf, np.unique(np.quantile(finite, np.linspace(0.0, 1.0, THRESHOLDS)))]
        table = np.array([self.of(values > x) for x in thresholds])
        logs = np.log(np.minimum(table, CAPPED))
        best = int(logs.mean(axis=1).argmin())
        names, number = np.unique(self.family, return_inverse=True)
        chance, unseen = np.random.default_rng(0), []
        for _ in range(SPLITS if len(names) > 3 else 0):
            seen = np.isin(number, chance.permutation(len(names))[: len(names) // 2])
            unseen.append(logs[logs[:, seen].mean(axis=1).argmin()][~seen].mean())
        elsewhere = float(np.exp(np.mean(unseen))) if unseen else float("nan")
        return Policy(float(thresholds[best]), table[best], self.family, elsewhere)


def policies(windows: Windows, eps: float, unit: str = "evaluations") -> dict[str, Policy]:
    """Every index with its best threshold, thresholds that no data chose, and choices without an index.

    unit  of costs, as `Windows.cost` takes it
    """
    costs, values = Costs(windows, eps, unit), windows.values(eps)
    nothing = np.zeros(len(costs.usable), dtype=bool)
    whole = costs.by_problem(costs.implicit) < costs.by_problem(costs.explicit)
    better = np.repeat(whole, np.diff(np.r_[costs.first, len(costs.usable)]))
    table = {
        name: Policy(float("nan"), costs.of(choice), costs.family)
        for name, choice in zip(CHOICES, (nothing, ~nothing, better), strict=True)
    }
    fitted = {name: values[name] for name, group in windows.groups.items() if group != REFERENCE}
    fitted |= {f"{name}, known at the start": column for name, column in windows.early().items()}
    table |= {name: policy for name, column in fitted.items() if (policy := costs.fit(column))}
    for name, threshold in FREE.items():
        cost = costs.of(values[name][costs.usable] > threshold)
        table[f"{name} > {threshold:g}"] = Policy(threshold, cost, costs.family)
    return table


# ---- Switching where h_R/h_stab passes 1 needs no fitted constant ----

MADE_UP_COSTS = (1.37, 1.12, 1.8)  # geometric means over the oracle's, without an effect, with one, its opposite
MORE = 1.02  # over the cost with the best threshold


def costs_of_switching(chance, effect: float, n: int) -> tuple:
    """What a threshold that nothing was fitted to costs over the oracle, and the best one; two problems a family."""
    mean, families = np.log(MADE_UP_COSTS[int(effect)]), made_up_families(n, 2)
    more = chance.exponential(np.log(MORE), len(families))
    sizes = np.repeat(chance.exponential(0.5, n), 2)
    logs = more + sizes * chance.exponential(2.0 * (mean - np.log(MORE)), len(families))
    pairs = (("h_R/h_stab > 1", 1.0, logs), ("h_R/h_stab", 0.5, logs - more))
    return {ERRORS[0]: {name: Policy(x, np.exp(values), families) for name, x, values in pairs}}, families


def of_switch(free: Policy, best: Policy) -> Verdict:
    """Whether a threshold that nothing was fitted to is good, and near the best one, at one error."""
    loss, more = estimate_loss(free), estimate_loss(free, best)
    good = of_strength(loss.less(np.log(BAD)), np.log(BAD / GOOD), sign=-1)
    return of_parts([good, only_support(of_interval(more.less(np.log(NEAR)), sign=-1))])


def judge_switch(tables: Mapping[float, Mapping[str, Policy]], families: Sequence[str]) -> tuple[Verdict, str]:
    """Geometric mean over problems of the cost of switching where h_R/h_stab passes 1, over the oracle's. Supported
    where it is certainly below 1.25 and certainly within 5 % of the best threshold in hindsight; contradicted where it
    is certainly above 1.5. All errors have to agree; intervals are over families."""
    if not tables:
        return NOT_RUN, "n = 0: attempts are timed with `--preset full`."
    verdicts, parts = [], []
    for eps, table in tables.items():
        free, best = table["h_R/h_stab > 1"], table["h_R/h_stab"]
        verdicts.append(of_switch(free, best))
        low, high = np.exp([estimate_loss(free).low, estimate_loss(free).high])
        parts.append(f"{eps:.0e}: {free.mean:.2f} [{low:.2f}, {high:.2f}] ({best.mean:.2f} at {best.threshold:.2g})")
    others = "; ".join(
        f"{name} {np.mean([table[name].mean for table in tables.values()]):.2f}"
        for name in ("best of both", "h_acc/h_stab > 1", "always implicit", "SAI", "SI", "always explicit")
        if all(name in table for table in tables.values())
    )
    words = (
        "Cost over the oracle's, geometric mean over problems, and with the best threshold in hindsight: "
        f"{'; '.join(parts)}. For comparison, mean over errors, with the best threshold where none is named: {others}."
    )
    return of_families(families, agreement(verdicts, "errors"), words)


SWITCH = "switching where h_R/h_stab passes 1 needs no fitted constant"
SWITCHING = (
    "theory; the rule of ol.AUTO in implicit mode",
    costs_of_switching,
    "a cost of 1.12 over the oracle's, 1.10 with the best threshold (without an effect: 1.37, between the thresholds)",
)
IN_EVALUATIONS = rule_over_families(
    SWITCH,
    *SWITCHING,
    f"The means now have intervals over families, which have to lie beyond the thresholds. {OPEN}: the verdict on the "
    "full run was that it depends on the tolerance",
)(judge_switch)
IN_SECONDS = rule_over_families(
    f"{SWITCH}, counted in time",
    *SWITCHING,
    "It is the rule for evaluations, taken to costs in seconds when those in evaluations had been seen",
    variant="in time",
)(judge_switch)


# ---- AUTO costs what the better of its methods does ----

AUTO_GOOD, AUTO_BAD = 1.1, 1.25  # costs over the better method's up to which nothing is lost, and from which much is
AUTO_COSTS = (1.17, 1.0, 1.5)  # geometric means in made-up worlds, without an effect, with one, its opposite
AUTO_SPREAD = (0.1, 0.1)  # deviations of the logarithm between families, and within
LOST = "not there"
OVER = {"evaluations": "AUTO over the better", "time": "in time"}  # columns of the table, by unit


def costs_of_auto(chance, effect: float, n: int) -> tuple:
    """What switching costs over the better method in evaluations and in time; two problems a family."""
    logs = np.log(AUTO_COSTS[int(effect)]) + spread(chance, n, *AUTO_SPREAD, windows=2)
    families, noise = made_up_families(n, 2), chance.normal(0.0, 0.05, logs.shape)
    costs = (np.exp(column).ravel() for column in (logs, logs + noise))
    return {unit: Policy(float("nan"), cost, families) for unit, cost in zip(OVER, costs, strict=True)}, families


@rule(
    "ol.AUTO, which nobody tells whether a problem is stiff, costs what the better of its two methods does",
    "our own, docs/stiff.md",
    fixed="after the data: evaluations had been seen, 0.98 of the better method's, and the times of another program, "
    "`benchmarks.ode --auto`; the times of this study had not",
    fewest=FEWEST_FAMILIES,
    worlds=Worlds(
        costs_of_auto,
        n=34,
        units="families",
        effect="the cost of the better method (without an effect: 1.17 of it, between the thresholds)",
    ),
)
def judge_auto(costs: Mapping[str, Policy], families: Sequence[str]) -> tuple[Verdict, str]:
    """Runs over whole problems at one tolerance, over the better of the two methods, which is known afterwards alone:
    geometric means over problems, in evaluations and in processor time of later calls. Supported where both are
    certainly below 1.1, contradicted where one is certainly above 1.25. Intervals are over families, and hold
    together."""
    if not costs:
        return NOT_RUN, "n = 0: no run over a whole problem was measured; `--preset quick` has them."
    losses = {unit: together(estimate_loss(policy), len(costs)) for unit, policy in costs.items()}
    verdicts = [of_strength(e.less(np.log(AUTO_BAD)), np.log(AUTO_BAD / AUTO_GOOD), sign=-1) for e in losses.values()]
    parts = []
    for unit, e in losses.items():
        mean, low, high = np.exp([e.value, e.low, e.high])
        parts.append(f"in {unit} {mean:.2f} [{low:.2f}, {high:.2f}], at worst {costs[unit].cost.max():.2f}")
    words = f"Cost over the better method's, geometric mean over {len(costs['evaluations'].cost)} problems: "
    return of_families(families, of_parts(verdicts), f"{words}{'; '.join(parts)}.")


def judge_switches(evidence: Evidence) -> list[Finding]:
    return [
        IN_EVALUATIONS(evidence.policies, evidence.families),
        IN_SECONDS(evidence.timed, evidence.families),
        judge_auto(auto_costs(evidence.windows), evidence.families),
    ]


def auto_costs(windows: Windows) -> dict[str, Policy]:
    """What `ol.AUTO` costs over the better of its methods, problem by problem, in both units."""
    rows = auto_rows(windows)
    families = np.array([windows.family_of[row["problem"]] for row in rows])
    return {unit: Policy(float("nan"), np.array([row[OVER[unit]] for row in rows]), families) for unit in OVER if rows}


def show_switches(page: Page, evidence: Evidence):
    page.figure(
        draw_policies(evidence.policies[evidence.middle]),
        "switches",
        f"What it costs to choose the method by an index, over choosing right in every window; error "
        f"{evidence.middle:.0e}. Thresholds are the best in hindsight but for theory's.",
    )
    page.table("switches", policy_rows(evidence.policies), "Switching by an index", printed=False)
    page.table("switches_in_time", policy_rows(evidence.timed), "Switching by an index, in time", printed=False)
    rows = auto_rows(evidence.windows)
    page.words(describe_auto(rows) if rows else "")
    page.table("auto", rows, "Whole runs at equal tolerance, in evaluations and in time", printed=False)


def describe_auto(rows: list[dict]) -> str:
    """What real runs cost in either unit, in sentences."""
    parts = []
    for unit, column in OVER.items():
        over = {row["problem"]: row[column] for row in rows if np.isfinite(row[column])}
        worst, values = max(over, key=over.__getitem__), np.array(list(over.values()))
        parts.append(
            f"in {unit} {np.exp(np.log(values).mean()):.2f} in the geometric mean, {np.median(values):.2f} in the "
            f"median and {over[worst]:.2f} at worst ({worst})"
        )
    lost = [row["problem"] for row in rows if row["AUTO"] == LOST]
    return (
        f"Real runs of ol.AUTO over {len(rows)} whole problems at a relative tolerance of {WHOLE:.0e} cost, over the "
        f"better of its two methods, {'; '.join(parts)}. Time is processor time of later calls, by the engine that "
        "`ol.solve` takes by itself."
        + (f" On {', '.join(lost)} it did not get there, and another method did." if lost else "")
    )


def policy_rows(tables: Mapping[float, Mapping[str, Policy]]) -> Iterator[dict]:
    """By error and policy: costs over the oracle's."""
    for eps, table in tables.items():
        for name, policy in sorted(table.items(), key=lambda pair: pair[1].mean):
            median, tail, worst = np.quantile(policy.cost, (0.5, 0.9, 1.0))
            yield {
                "error": f"{eps:.0e}",
                "policy": name,
                "mean": policy.mean,
                "unseen families": policy.unseen,
                "median": median,
                "90 %": tail,
                "worst": worst,
                "threshold": policy.threshold,
            }


def auto_rows(windows: Windows) -> list[dict]:
    """Real runs of `ol.AUTO` over whole problems at equal tolerance, over the better of its methods in either unit."""
    rows = []
    for problem in windows.problems:
        runs = problem.get("whole", {})
        work = {name: run["evaluations"] + run["jacobians"] * colours_of(problem) for name, run in runs.items()}
        seconds = {name: run["seconds"] for name, run in runs.items()}
        auto, *others = sorted(runs, key=lambda name: not name.startswith("AUTO")) or [""]
        if any(np.isfinite(work[name]) for name in others):
            row = {"problem": problem["name"]}
            for name in (*others, auto):
                row[name.split("(")[0]] = int(work[name]) if np.isfinite(work[name]) else LOST
            for column, costs in zip(OVER.values(), (work, seconds), strict=True):
                row[column] = costs[auto] / min(costs[name] for name in others)
            rows.append(row | {"changes": int(runs[auto]["changes"])})
    return rows


def draw_policies(table: Mapping[str, Policy]):
    """Cost over the oracle's, problem by problem in order, a line per policy."""
    rules = ("h_R/h_stab > 1", "h_acc/h_stab > 1", "rho_ng/SAI", "SAI", "SI")
    drawn = ("best of both", *rules, "always implicit", "always explicit")
    with style.figure(height=3.2) as (drawing, axes):
        plane = axes[0, 0]
        for k, name in enumerate(name for name in drawn if name in table):
            cost, best, index = np.sort(table[name].cost), name == "best of both", name.split(" > ")[0]
            dashes = "--" if name == "SAI" else "-"  # its curve often hides that of one method
            plane.semilogy(
                np.linspace(0.0, 1.0, len(cost)),
                np.minimum(cost, 100.0),
                dashes,
                color=style.GREY if best else style.COLOURS[(k - 1) % len(style.COLOURS)],
                label=f"{SYMBOLS.get(index, index)}{' > 1' if '>' in name else ''}: {table[name].mean:.2f}",
                linewidth=2.4 if best else 1.2,
                zorder=2 if best else 3 + (dashes == "--"),
            )
        plane.set(xlim=(0.0, 1.0), ylim=(0.95, 100.0), xlabel="share of problems", ylabel="cost over the oracle's")
        plane.set_yticks([1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0], ["1", "2", "5", "10", "20", "50", "100"])
        plane.yaxis.minorticks_off()
        plane.legend(title="geometric mean", fontsize=7, title_fontsize=7)
    return drawing


# ---- One run told ----

TOLD = Subject("van_der_pol told", "van_der_pol", over(problems.van_der_pol, 170.0, mu=100.0))
EVERY = 200  # windows: more than there are, so that they lie side by side
AT_ERROR = TOLERANCE = 1e-4  # of the windows and of the runs
COLOURS = {"explicit": style.COLOURS[0], "implicit": style.COLOURS[1]}
MARKS = {"SI": "-", "SAI": "-", "h_acc/h_stab": "-", "h_R/h_stab": "--"}


class OneRun(NamedTuple):
    """What is drawn of one run: starts and ends of the windows, (k, 2), R and indices on each, (k,), trajectories."""

    edges: np.ndarray
    ratio: np.ndarray
    indices: dict[str, np.ndarray]
    runs: dict[str, ol.Trajectory]


def measure_one_run(preset: Preset, pair: tuple[str, str]) -> OneRun | None:
    """Measure windows side by side along the run, and run the two methods and the one that switches."""
    if not preset.auto:
        return None
    few = dataclasses.replace(preset, windows=EVERY, others=0, auto=False)
    windows = Windows([measure(TOLD, few, pair)])
    values = windows.values(AT_ERROR)
    problem, methods = TOLD.make(), [getattr(ol, name) for name in pair]
    controller = ol.adaptive(TOLERANCE, 1e-3 * TOLERANCE)
    runs = {method.name: ol.solve(problem, method, controller) for method in methods}
    runs["AUTO"] = ol.solve(problem, ol.auto(*methods), controller)
    edges = np.array([[row["start"], row["end"]] for row in windows.rows])
    return OneRun(edges, windows.ratio(AT_ERROR), {name: values[name] for name in MARKS}, runs)


def show_one_run(page: Page, evidence: Evidence):
    if evidence.run is not None:
        page.figure(
            draw_one_run(evidence.run, *evidence.pair),
            "one_run",
            "Van der Pol's oscillator at mu = 100. Where R is above 1 (shaded) the solution creeps: SAI is small there "
            "and chi large; in the jumps it is the other way round, and both methods take steps of one size. Where chi "
            "and h_R/h_stab leave the panel every mode grows, and no step is too large to be stable.",
        )


def draw_one_run(shown: OneRun, explicit: str, implicit: str):
    """One run: the solution, the indices, the steps of both methods, and what switching chose."""
    run = shown.runs[implicit]
    number = np.arange(len(run.step_t))

    def stretched(t):
        """A time on an axis on which every step of the implicit method is as wide."""
        return np.interp(t, run.step_t, number)

    with style.figure(4, 1, height=6.0, sharex=True, height_ratios=(1.0, 1.3, 1.3, 0.28)) as (drawing, axes):
        solution, indices, steps, strip = axes[:, 0]
        solution.plot(number, run.step_u[:, 0], color="black", linewidth=1.0)
        solution.set_ylabel("$u_1$")
        for k, (name, line) in enumerate(MARKS.items()):
            look = {"color": style.COLOURS[k], "label": SYMBOLS[name], "linewidth": 1.3}
            indices.semilogy(stretched(shown.edges.mean(axis=1)), shown.indices[name], line, **look)
        indices.axhline(1.0, color="black", linewidth=0.8)
        indices.set_ylabel("index")
        indices.legend(loc="upper right", ncols=4, fontsize=7)
        indices.set_ylim(top=indices.get_ylim()[1] * 30.0)
        for name, colour in zip((explicit, implicit), COLOURS.values(), strict=True):
            of_method = shown.runs[name]
            steps.semilogy(
                stretched(of_method.step_t[:-1]), np.abs(of_method.h), color=colour, linewidth=0.9, label=name
            )
        steps.set_ylabel("step size")
        steps.legend(loc="lower right", ncols=2, fontsize=7)
        for axis in (solution, indices, steps):
            for (start, end), ratio in zip(shown.edges, shown.ratio, strict=True):
                if ratio > 1.0:
                    axis.axvspan(stretched(start), stretched(end), color="#F4D9C6", linewidth=0.0, zorder=0)
        auto = shown.runs["AUTO"]
        for start, end, name in zip(auto.step_t[:-1], auto.step_t[1:], auto.took, strict=True):
            colour = COLOURS["explicit" if name == explicit else "implicit"]
            strip.axvspan(stretched(start), stretched(end), color=colour, linewidth=0.0)
        strip.set_yticks([])
        strip.set_ylabel("AUTO", rotation=0, ha="right", va="center")
        strip.grid(False)
        ticks = np.linspace(stretched(shown.edges[0, 0]), stretched(shown.edges[-1, 1]), 9)
        strip.set_xticks(ticks, [f"{np.interp(x, number, run.step_t):.6g}" for x in ticks])
        strip.set_xlabel(f"t, stretched so that every step of {implicit} is as wide; shaded: R > 1")
        strip.set_xlim(ticks[0], ticks[-1])
    return drawing


# ---- Residual networks by the same ratio: how fast the modes of a block are beside how fast its state moves ----
#
# A block is one Euler step of size 1 on u' = h f(u). `nb.block_time_scales` gives its ratio, and
# `nb.steps_at_equal_error` the operational truth: steps of Euler's method over those of the linearly implicit one at
# equal error, with linear algebra free of charge, so that a block with a ratio of steps below 1 is not stiff whatever
# the solver.

ERROR = 0.1  # of a block's own step, at which the two methods are compared
LADDER = (1, 2, 4, 8, 16, 32, 64)
FIRST_TRUTHS = 1  # images at which the truth is measured, of networks that get one


def measure_networks(preset: Preset, folder: Path, count: int, fresh: bool = False) -> tuple[list[dict], list[str]]:
    """Time scales of every block of `count` shipped networks, one row per block and image, stored network by network.

    Returns the rows, and the data sets that cannot be had; without images of CIFAR-10, networks of the digits are
    taken.
    """
    unavailable: list[str] = []
    if not count:
        return [], unavailable
    from netbridge import data

    for dataset in ("cifar10", "digits"):
        try:
            names = enumerate(shipped_names(dataset)[:count])
            blocks = [blocks_of(name, preset.images, i < preset.truths, folder, fresh) for i, name in names]
            return [row for rows in blocks for row in rows], unavailable
        except data.DataUnavailable:
            unavailable.append(dataset)
    return [], unavailable


def shipped_names(dataset: str) -> list[str]:
    """Shipped residual networks of a data set but for the deep ones; one of each controller first."""
    from studies.lab.networks import shipped_resnets

    about = sorted(shipped_resnets(dataset), key=lambda one: (one.seed, one.controller != "constant", one.name))
    return [one.name for one in about]


def blocks_of(name: str, count: int, truth: bool, folder: Path, fresh: bool = False) -> list[dict]:
    """The rows of one network on `count` test images, with the true costs where `truth` is asked for."""
    path = folder / f"network {name.replace('/', ' ')}.json"
    options = {"images": count, "truth": truth, "error": ERROR, "ladder": LADDER}
    record = recall(path, options, fresh)
    if record is None:
        rows = measure_blocks(name, count, truth)
        record = store(path, {"options": options, "rows": rows}, f"{name}: {len(rows)} rows")
    return record["rows"]


def measure_blocks(name: str, count: int, truth: bool) -> list[dict]:
    import netbridge as nb
    from netbridge import data
    from studies.lab.stiffness import prepare

    about = next(one for one in nb.pretrained() if one.name == name)
    net = nb.pretrained(name).eval()
    images = data.load(about.dataset, None)
    rows = []
    for number, (block, state) in enumerate(
        nb.block_states(net, prepare(net, images, images.test_images[:count])).items()
    ):
        module = net.get_submodule(block)
        try:
            scales = nb.block_time_scales(module, state)
        except ValueError:  # it changes the shape: no eigenvalues, and no step of a differential equation
            continue
        steps = np.full((len(state), 2), np.nan)
        if truth:
            steps[:FIRST_TRUTHS] = nb.steps_at_equal_error(module, state[:FIRST_TRUTHS], ERROR, LADDER)
        for i, row in enumerate(scales):
            rows.append(
                {"network": name, "controller": about.controller, "block": number, "image": i}
                | {key: float(row[key]) for key in scales.dtype.fields or ()}
                | {"explicit steps": float(steps[i, 0]), "implicit steps": float(steps[i, 1])}
            )
    return rows


def show_networks(page: Page, evidence: Evidence):
    for dataset in evidence.unavailable:
        page.warn(f"The images of {dataset} are not here and cannot be had.")
    rows = evidence.blocks
    if not rows:
        return
    ratio, values = evidence.windows.ratio(evidence.middle), evidence.windows.values(evidence.middle)["rho_ng/SAI"]
    near = usable(ratio) & (ratio > 0.5) & (ratio < 2.0) & np.isfinite(values)
    band = tuple(np.quantile(values[near], (0.25, 0.75))) if near.any() else (10.0, 100.0)
    page.figure(
        draw_networks(rows, band),
        "networks",
        "Blocks of trained networks: how fast the modes that do not grow are, against how fast the state moves. "
        "Dotted: lines of one ratio. Band: where windows of differential equations turn stiff (quartiles of "
        f"rho_ng/SAI where R is 1/2 to 2, {band[0]:.0f} to {band[1]:.0f})."
        + (
            " Right: steps of Euler's method over those of the linearly implicit one at an error of "
            f"{ERROR:g} of a block's step, for one image and the blocks on which both reach it in {LADDER[-1]} steps."
            if any(np.isfinite(row["implicit steps"]) for row in rows)
            else ""
        ),
    )
    title = "Time scales of blocks: medians over blocks and images"
    page.table("networks", network_rows(rows), title, printed=False)
    page.numbers["blocks"] = rows


def network_rows(rows: Sequence[dict]) -> Iterator[dict]:
    """By network: medians over blocks and images, and how often a mode passes Euler's limit."""
    for name in dict.fromkeys(row["network"] for row in rows):
        some = [row for row in rows if row["network"] == name]
        columns = {key: np.array([row[key] for row in some]) for key in some[0]}
        steps = columns["explicit steps"] / columns["implicit steps"]
        steps = steps[np.isfinite(steps)]
        limits = columns["stable_step"][~np.isnan(columns["stable_step"])]  # NaN where it is not settled
        images = np.unique(columns["image"])
        by_image = [np.median(columns["ratio"][columns["image"] == i]) for i in images]
        yield {
            "network": name,
            "blocks": len(np.unique(columns["block"])),
            "images": len(images),
            "SAI": float(np.median(columns["sai"])),
            "rho": float(np.median(columns["rho"])),
            "rho_ng": float(np.median(columns["rho_ng"])),
            "largest rho_ng": float(columns["rho_ng"].max()),
            "rho_ng/SAI": float(np.median(columns["ratio"])),
            "over images": f"{min(by_image):.2f} to {max(by_image):.2f}",
            "rho_ng |f|/|f'|": float(np.median(columns["moving_ratio"])),
            "stable step below 1": f"{int((limits < 1.0).sum())} of {len(limits)}",
            "explicit over implicit steps": f"{steps.min():.2f} to {steps.max():.2f}" if len(steps) else "not measured",
        }


def draw_networks(rows: Sequence[dict], band: tuple[float, float]):
    """NSI of blocks against the radius of their modes that do not grow, beside windows of differential equations.

    rows  of `measure_networks`
    band  of rho_ng/SAI, between which windows of differential equations turn from not stiff to stiff
    """
    truth = [row for row in rows if np.isfinite(row["explicit steps"]) and np.isfinite(row["implicit steps"])]
    widths = (1.25, 1.0) if truth else (1.0,)
    names = dict.fromkeys(row["controller"] for row in rows)
    looks = {
        name: {"marker": "os^DvPX<>"[k % 9], "color": style.COLOURS[k % len(style.COLOURS)]}
        for k, name in enumerate(names)
    }
    pace, radius, who = (np.array([row[key] for row in rows]) for key in ("sai", "rho_ng", "controller"))
    with style.figure(1, len(widths), height=3.2, width_ratios=widths) as (drawing, axes):
        plane, *besides = axes[0]
        x = np.array([0.3 * pace.min(), 5.0 * pace.max()])
        plane.fill_between(x, band[0] * x, band[1] * x, color="#F4D9C6", linewidth=0.0, label="R = 1 of ODEs")
        for ratio in (1.0, 10.0, 100.0):
            plane.loglog(x, ratio * x, ":", color=style.GREY, linewidth=0.9)
            end, side = (1.3 * x[0], "left") if ratio == 100.0 else (x[1], "right")  # its other end is above the panel
            plane.annotate(f"{ratio:g}", (end, ratio * end), fontsize=7, color="#444444", ha=side, va="bottom")
        plane.axhline(2.0, color="black", linewidth=0.9)
        plane.annotate("Euler's limit, 2", (x[0] * 1.05, 2.1), fontsize=7, va="bottom")
        dots = {"linestyle": "", "markersize": 3.4, "alpha": 0.75, "markeredgewidth": 0.0}
        for name, look in looks.items():
            plane.loglog(pace[who == name], radius[who == name], label=name, **look, **dots)
        plane.set_xlim(*x)
        plane.xaxis.set_minor_formatter("")
        plane.set_ylim(0.5 * radius.min(), 3.0 * max(band[1] * pace.max(), radius.max()))
        plane.set(xlabel="SAI of the step, |h f| / |x|", ylabel=r"$\rho_{ng}(h J_f)$")
        plane.legend(fontsize=5.5, ncols=2, loc="upper left")
        for beside in besides:  # none where no block was run by both methods
            beside.axhline(1.0, color="black", linewidth=0.8)
            for row in truth:
                over = row["explicit steps"] / row["implicit steps"]
                beside.plot(row["rho_ng"], over, linestyle="", markersize=4, **looks[row["controller"]])
            highest = max(2.0, *(1.1 * row["explicit steps"] / row["implicit steps"] for row in truth))
            beside.set(ylim=(0.0, highest), xlabel=r"$\rho_{ng}(h J_f)$", ylabel="explicit over implicit steps")
    return drawing
