"""What `switching` runs and stores: problems in families, and on windows of their solutions costs, errors and indices.

The truth. R(eps) = C_E(eps) / C_I(eps) on a window of a solution: the least cost at which an explicit method ends the
window with a scaled error of at most eps, over that of an L-stable method. A window is stiff at eps where R > 1,
gravely so where R > 2. Cost counts evaluations, and each Jacobian as as many of them as it has colours; what is known
at a state serves again after a rejection. Runs enter a window warm, on a ladder of 19 tolerances from 1e-1 to 1e-10.
Windows are six steps of the implicit method at 1e-4, so that no index chooses them. A run is given up after 3,000
attempts (the implicit method's after 20,000); its cost is then extended over the window, and its error taken to be a
tenth of its tolerance, as that of runs which stability holds back. A run that fails otherwise, by blowing up for
instance, has no cost. Exact states come from RODAS5P at 1e-11. Where the explicit method gets through a window at
1e-12, the two are compared; R is not known at an error of less than ten times their difference.

What R owes to the way of counting is told beside. Attempts count alike; or seconds do; or Jacobians, factors and
solutions count as the evaluations that take as long. Those four times are measured once for each problem, at its
start, in kernels that repeat the lines of an attempt (`odelab.experiments.timing`).

What was fixed when. Claims and thresholds come from a pilot with other code, whose results were known. They were
written down before this code ran. Younger are: that fewer than ten families decide nothing, added after a smoke run;
what a run costs that is given up, after a first full run, in which 14 of 828 windows had no ratio; that a failed run
has no cost, after a second one; that a rejected attempt pays no Jacobian, which every attempt had paid, and that exact
states are doubted, after a third. Three rules that were written down were left out of the first full runs: the
exponents of chi, the band, and that the claim about pseudospectra is about the forced systems of the factorial and the
one about ratios about SI/SAI. Applied since, they changed two verdicts: chi read "supported" and is undecided, for its
exponents; pseudospectra read "undecided", on three families, and are contradicted. The count of Jacobians changed a
third: switching read "supported", with a threshold of 1 within 4.8 % of the best at an error of 1e-8. The levels of the
factorial were chosen before it ran; its size was written down. Once the rules were tried in made-up worlds, they were
given intervals where they had compared numbers alone, and a coin its own verdict: each rule says what that changed.

The unit of inference is the family: windows of one problem are alike, and problems of one family too. A problem's
windows share a weight of one; intervals come from resampling families, 95 %. In the factorial a family is a cell:
systems that differ in their origin alone.
"""

import contextlib
import dataclasses
import functools
import json
import re
import traceback
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import odelab as ol
from odelab import problems
from odelab.experiments import state_indices, timing, windows
from odelab.experiments.at_a_state import linear_parts
from odelab.experiments.clock import interleave
from odelab.files import replacing
from studies.lab import definitions
from studies.lab.report.terminal import show_progress

EPS = (1e-3, 1e-4, 1e-6, 1e-8)
TOLERANCES = tuple(10.0 ** -np.arange(1.0, 10.01, 0.5))
ROLES = ("explicit", "implicit")
SHARP = "RODAS5P"  # the method of the exact states
MOST_ATTEMPTS = {"explicit": 3000, "implicit": 20_000}  # of a run before it is given up
OTHERS = ("RKF45", "DOP853", "BS32", "RODAS5P", "ROS2")  # methods in place of the pair, to see what R owes to it
OTHER_WINDOWS: dict[str, dict] = {"3 steps": {"steps": 3}, "12 steps": {"steps": 12}, "even in time": {"even": True}}
ONE_SCALE = "the same, all components measured by the largest"  # as with one absolute tolerance for all
DOUBTING = 1e-12  # the relative tolerance of the runs that exact states are compared with
WHOLE = 1e-5  # the relative tolerance of runs over the whole span, by which `ol.AUTO` is judged
LONGEST = 200_000  # attempts of such a run
ORDERS = (3, 4, 5)  # of the derivatives of the solution, beside the error order of the explicit method
SIGNED = ("-min Re", "-s[J]", "mu_1", "mu_2", "mu_inf", "m_2")  # averaged as they are; the rest as logarithms
FORMAT = 3  # of what is stored; another number where it is told in another way
ROUNDS, PATIENCE = 5, 1.0  # of whole runs that are timed, and seconds after which three rounds are enough


@dataclasses.dataclass(frozen=True)
class Preset:
    """How much is measured.

    knob       subjects whose knob is at most this
    windows    at most so many windows a problem
    eps        errors at which costs are compared
    tolerances of the ladder
    resamples  of families
    others     windows a problem on which other methods, cold starts and other windows are tried, of some families
    auto       whether `ol.AUTO` runs over every whole problem
    timed      whether attempts and their parts are timed, for costs in other units; kernels of parts take seconds each
    systems    levels of the factorial: "all", "some" or "few"
    plane      systems along the axis of the planes of forced systems
    engine     of all runs; in plain Python a few short ones are done before a kernel is compiled
    networks   shipped networks whose blocks are looked at, `images` images each, `truths` of them with their true costs
    """

    knob: int
    windows: int
    eps: tuple[float, ...]
    tolerances: tuple[float, ...]
    resamples: int
    others: int = 0
    auto: bool = False
    timed: bool = False
    systems: str = "all"
    plane: int = 40
    engine: str = "auto"
    networks: int = 0
    images: int = 1
    truths: int = 0


PRESETS = {
    "smoke": Preset(0, 2, (1e-4,), TOLERANCES[2:12:2], 20, systems="few", plane=0, engine="python"),
    "quick": Preset(1, 10, EPS, TOLERANCES, 1000, auto=True, networks=1),
    "full": Preset(
        2, 40, EPS, TOLERANCES, 2000, others=6, auto=True, timed=True, plane=61, networks=10, images=2, truths=1
    ),
}


# ---- The problems: catalogue entries with their knobs turned, and others made for this study ----

# Families on which the full preset tries other methods, cold starts and other windows: each method is a kernel to make.
VARIED = {
    *("van_der_pol", "robertson", "hires", "oregonator", "brusselator", "lorenz", "rigid_body", "kepler"),
    *("prothero", "davis_skodje", "forced", "linear"),
}
BY_LINES = {"brusselator_1d", "heat_1d", "allen_cahn_1d", "advection_1d", "burgers_1d"}


@dataclasses.dataclass(frozen=True)
class Subject:
    """A problem of the study.

    name     such as "vdp100"
    family   such as "vdp": the unit of inference
    make     makes the `Problem`
    knob     how far the family's knob is turned: 0 in every preset, 1 from quick on, 2 in the full one
    """

    name: str
    family: str
    make: Callable[[], ol.Problem]
    knob: int = 0


def over(factory: Callable[..., ol.Problem], span: float | None = None, **options) -> Callable[[], ol.Problem]:
    """A function that makes this problem, over another span where one is given."""

    def make():
        problem = factory(**options)
        return problem if span is None else problem.replace(t_span=(problem.t_span[0], span))

    return make


def oscillators(amplitude: float, frequency: float, damping: float = 0.0, span: float = 6.0):
    """A slow rotation beside a fast one of some amplitude, mixed by an orthogonal map: no component is the fast one."""

    def make():
        block = np.zeros((4, 4))
        block[:2, :2] = [[0.0, 1.0], [-1.0, 0.0]]
        block[2:, 2:] = [[-damping, frequency], [-frequency, -damping]]
        q = np.linalg.qr(np.random.default_rng(1).standard_normal(block.shape))[0]
        return problems.linear(q @ block @ q.T, u0=q @ [1.0, 0.0, amplitude, 0.0]).replace(t_span=(0.0, span))

    return make


def linear(matrix, u0, span: float):
    return over(lambda: problems.linear(matrix, u0), span)


def shear(above: float):
    """Twelve components, each driven by the next one."""
    return linear(-np.eye(12) + above * np.eye(12, k=1), np.full(12, 0.5), 30.0)


def forced_shear(above: float):
    """A non-normal system whose solution is a slow oscillation: its transients are not the solution."""
    matrix = np.diag([-10.0, -40.0, -160.0]) + above * np.triu(np.ones((3, 3)), 1)
    return over(problems.forced_linear, 10.0, matrix=matrix, frequency=1.0)


def subjects(define: str | None = None) -> list[Subject]:
    """Every problem of the study, in order, and behind them those of a user's file, each a family of its own."""
    table: list[Subject] = []

    def add(family, name, make, knob=0):
        table.append(Subject(name, family, make, knob))

    turned = ((1.0, 20.0, 1), (5.0, 30.0, 0), (20.0, 60.0, 2), (50.0, 125.0, 2), (100.0, 250.0, 1))
    for mu, span, knob in (*turned, (300.0, 750.0, 2), (1000.0, 2500.0, 2)):
        add("van_der_pol", f"van_der_pol {mu:g}", over(problems.van_der_pol, span, mu=mu), knob)
    add("robertson", "robertson", over(problems.robertson, 1e8))
    add("hires", "hires", problems.hires, 1)
    add("oregonator", "oregonator", problems.oregonator, 1)
    add("e5", "e5", over(problems.e5, 1e11), 2)
    add("pollu", "pollu", problems.pollu, 2)
    add("brusselator", "brusselator", problems.brusselator, 1)
    add("lorenz", "lorenz", over(problems.lorenz, 10.0), 1)
    add("rigid_body", "rigid_body", problems.rigid_body, 1)
    add("arenstorf", "arenstorf", problems.arenstorf, 2)
    for e, knob in ((0.0, 2), (0.3, 2), (0.6, 1), (0.8, 2), (0.95, 1)):
        add("kepler", f"kepler {e:g}", over(problems.kepler, eccentricity=e), knob)
    for rate, knob in ((-1.0, 2), (-10.0, 2), (-30.0, 1), (-100.0, 2), (-1e3, 1), (-1e5, 2)):
        add("prothero", f"prothero {-rate:g}", over(problems.prothero_robinson, 10.0, rate=rate), knob)
    add("curtiss", "curtiss", over(problems.curtiss_hirschfelder, 10.0), 1)
    for gamma, knob in ((3.0, 2), (10.0, 2), (30.0, 2), (100.0, 1), (1e3, 2), (1e4, 1)):
        add("davis_skodje", f"davis_skodje {gamma:g}", over(problems.davis_skodje, gamma=gamma), knob)
    for radius, knob in ((1e-1, 2), (1e-2, 2), (1e-3, 1), (3e-4, 2), (1e-4, 2)):
        add("flame", f"flame {radius:g}", over(problems.flame, radius=radius), knob)
    for slowness, knob in ((0.3, 2), (0.08, 1), (0.02, 2), (0.005, 2), (0.001, 2)):
        add("fitzhugh", f"fitzhugh {slowness:g}", over(problems.fitzhugh_nagumo, slowness=slowness), knob)
    for stiffness, span, knob in ((1e2, 8.0, 2), (1e3, 8.0, 2), (1e4, 8.0, 1), (1e5, 5.0, 2), (1e6, 3.0, 2)):
        make = over(problems.elastic_pendulum, span, stiffness=stiffness)
        add("elastic_pendulum", f"elastic_pendulum {stiffness:g}", make, knob)
    pairs = ((-1.0, 10.0, 10.0, 2), (-1.0, 100.0, 10.0, 0), (-100.0, 100.0, 10.0, 2), (-0.01, 1000.0, 3.0, 1))
    for real, imaginary, span, knob in (*pairs, (-1000.0, 1000.0, 10.0, 1)):
        matrix = ((real, -imaginary), (imaginary, real))
        add("forced", f"forced {real:g} +- {imaginary:g}i", over(problems.forced_linear, span, matrix=matrix), knob)
    alive = over(problems.forced_linear, 10.0, matrix=((-0.1, -300.0), (300.0, -0.1)), u0=(3.3, 2.7))
    add("forced alive", "forced alive", alive, 1)
    fast = over(problems.forced_linear, 0.3, matrix=((-1000.0, 0.0), (0.0, -1000.0)), frequency=1000.0)
    add("forced fast", "forced fast", fast, 1)
    for amplitude, knob in ((1.0, 1), (1e-2, 2), (1e-3, 2), (1e-4, 2), (1e-5, 1), (1e-6, 2), (1e-7, 2)):
        add("oscillators", f"oscillators {amplitude:g}", oscillators(amplitude, 100.0, span=3.0), knob)
    add("oscillators damped", "oscillators damped", oscillators(1.0, 300.0, 3.0, 10.0), 2)
    add("oscillators gone", "oscillators gone", oscillators(1.0, 300.0, 300.0, 10.0), 1)
    for rate, knob in ((1000.0, 1), (10.0, 2), (100.0, 2), (1e4, 2)):
        add("linear", f"linear -{rate:g} -1", linear(np.diag([-rate, -1.0]), [1.0, 1.0], 10.0), knob)
    add("non_normal 2", "non_normal 1e3", linear(((-1.0, 1e3), (0.0, -2.0)), [0.0, 1.0], 10.0), 1)
    add("non_normal 2", "non_normal 1e5", linear(((-1.0, 1e5), (0.0, -2.0)), [0.0, 1.0], 10.0), 2)
    for above, knob in ((2.0, 1), (8.0, 2)):
        add("non_normal shear", f"shear {above:g}", shear(above), knob)
    for above, knob in ((0.0, 2), (10.0, 2), (100.0, 2), (300.0, 1), (1000.0, 2), (10_000.0, 1)):
        add("non_normal forced", f"forced shear {above:g}", forced_shear(above), knob)
    add("growing", "growing 50", linear([[50.0]], [1e-3], 0.5), 2)
    add("growing mixed", "growing mixed", linear(np.diag([5.0, -2000.0]), [1e-3, 1.0], 3.0), 1)
    for n, knob in ((5, 1), (10, 2), (20, 2)):
        add("brusselator_1d", f"brusselator_1d {n}", over(problems.brusselator_1d, n=n), knob)
    for n, knob in ((8, 2), (16, 1), (32, 2)):
        add("heat_1d", f"heat_1d {n}", over(problems.heat_1d, 0.5, n=n), knob)
    add("allen_cahn_1d", "allen_cahn_1d 20", over(problems.allen_cahn_1d, n=20, diffusivity=0.01), 1)
    add("advection_1d", "advection_1d 30", over(problems.advection_1d, n=30), 1)
    add("burgers_1d", "burgers_1d 24", over(problems.burgers_1d, n=24), 2)
    for name, make in adopt(define).problems.items():
        add(name, name, functools.partial(problem_of, name, make))
    return table


# ---- The indices, by group, each with what figures call it ----

YOURS, REFERENCE = "yours", "reference"
# fmt: off
INDICES = {
    "problem": {
        "SI": "SI", "-min Re": r"$-\min\,\mathrm{Re}\,\lambda$", "rho": r"$\rho$", "rho_ng": r"$\rho_{ng}$",
        "|J|_2": r"$\|J\|_2$", "mu_1": r"$\mu_1$", "mu_2": r"$\mu_2$", "mu_inf": r"$\mu_\infty$", "-m_2": r"$-m_2$",
        "-s[J]": r"$-s[J]$", "-T s[J]": r"$-T\,s[J]$", "SI x span": r"SI $\times$ span",
        "max/min |Re|": r"$\max|\mathrm{Re}|/\min|\mathrm{Re}|$", "Henrici": "Henrici",
    },
    "solution": {"SAI": "SAI", "simplified SAI": "simplified SAI", "weighted SAI": "weighted SAI"},
    "ratio": {
        "SI/SAI": "SI/SAI", "rho_ng/SAI": r"$\rho_{ng}$/SAI", "|J|_2/SAI": r"$\|J\|_2$/SAI",
        "-s[J]/SAI": r"$-s[J]$/SAI", "rho_ng |f|/|f'|": r"$\rho_{ng}\,|f|/|f'|$",
    },
    "with tolerance": {
        "tol^(1/5) rho_ng/SAI": r"$tol^{1/5}\,\rho_{ng}$/SAI", "h_acc rho_ng": r"$h_{acc}\,\rho_{ng}$",
        "h_acc/h_stab": r"$\chi = h_{acc}/h_{stab}$", "h_acc(u3)/h_stab": r"$h_{acc}(u''')/h_{stab}$",
        "h_acc/h_power": r"$h_{acc}/h_{power}$", "h_R rho_ng": r"$h_R\,\rho_{ng}$", "h_R/h_stab": r"$h_R/h_{stab}$",
        "LSODA: h_R/min(h_acc, h_stab)": r"LSODA: $h_R/\min(h_{acc}, h_{stab})$",
    },
    "of the run": {
        "h_E rho_ng": r"$h_E\,\rho_{ng}$", "Hairer-Wanner: h rho > boundary": r"Hairer-Wanner: share $h\rho > 3.3$",
        "Julia: h rho > 0.9 boundary": r"Julia: share $h\rho > 3.0$", "rejections": "rejections",
    },
    REFERENCE: {"trial: h_R/h_E": r"trial step: $h_R/h_E$"},
}
# fmt: on
GROUP_OF = {name: group for group, names in INDICES.items() for name in names}
SYMBOLS = {name: symbol for names in INDICES.values() for name, symbol in names.items()}
RATES = {  # indices whose unit is 1 / time: they change with the unit of time, R does not
    *("SI", "-min Re", "rho", "rho_ng", "|J|_2", "mu_1", "mu_2", "mu_inf", "-m_2", "-s[J]"),
    *("SAI", "simplified SAI", "weighted SAI"),
}
CHOICES = ("always explicit", "always implicit", "best of both")  # of a method, without an index


# ---- A user's own problems and indices ----


def adopt(path: str | None) -> SimpleNamespace:
    """What a file of `--define` holds: `problems` and `indices`, dictionaries that are empty without a file.

    Each is a dictionary of functions by their names:

        PROBLEMS = {"mine": make}        make() returns an `odelab.Problem`; it is a family of its own
        INDICES = {"my index": index}    index(J, f, f_t, u, scale, tol) returns a number, larger where it says stiff

    An index gets the Jacobian (n, n), the slope, its derivative with respect to time, the state and the scale of each
    component, (n,), and the error asked for, and may depend on nothing else. It is judged beside the study's own.
    What the file imports is not watched: measure anew, with `--fresh`, where that has changed.
    """
    if path is None:
        return SimpleNamespace(problems={}, indices={})
    return read_definitions(path, Path(path).read_bytes() if Path(path).is_file() else b"")


@functools.cache
def read_definitions(path: str, content: bytes) -> SimpleNamespace:
    """`adopt`, once for each content of the file: a worker may outlive it."""
    module = definitions.module_of(path)
    own = {name: definitions.named_functions(module, name) for name in ("PROBLEMS", "INDICES")}
    if not any(own.values()):
        raise SystemExit(f"{path} defines neither `PROBLEMS` nor `INDICES`, dictionaries of functions by their names.")
    check_names(path, "PROBLEMS", own["PROBLEMS"], {subject.name for subject in subjects()})
    check_names(path, "INDICES", own["INDICES"], {*GROUP_OF, *CHOICES})
    return SimpleNamespace(**{name.lower(): functions for name, functions in own.items()})


def check_names(path: str, what: str, named: dict, ours: set[str]) -> None:
    """Refuse names that the study has, or that make one file's name of two, for they would take each other's place."""
    taken = {file_of(name) for name in ours}
    for name in named:
        unfit = what == "PROBLEMS" and re.search(r"^(factorial|network)|[/\\\0]", str(name))
        if not isinstance(name, str) or not name.strip() or unfit or file_of(name) in taken:
            raise SystemExit(
                f"{path}: `{what}` has {name!r}, a name that the study has itself or that is no file's; take another."
            )
        taken.add(file_of(name))


def file_of(name: str) -> str:
    """The name of the file in which a problem's measurements are stored, without its ending."""
    return name.replace(" ", "_")


def problem_of(name: str, make) -> ol.Problem:
    """What a function of the user's makes, if it is a problem."""
    problem = ask(f"the problem {name!r}", make)
    if not isinstance(problem, ol.Problem):
        raise TypeError(f"the problem {name!r} of `--define` must return an odelab.Problem, got {problem!r}.")
    return problem


def value_of(name: str, index, J, f, f_t, u, scale, tol) -> float:
    """What a user's index says of a state; it gets copies, so that it cannot change what others see.

    NaN, which ranks lowest, is allowed.
    """
    values = []
    for _ in range(2):
        value = ask(f"the index {name!r}", index, *(np.array(array) for array in (J, f, f_t, u, scale)), tol)
        if np.shape(value) != () or isinstance(value, str | bytes) or not np.isrealobj(value) or value is None:
            raise ValueError(f"the index {name!r} of `--define` must return one real number, got {value!r}.")
        values.append(float(value))
    if values[0] != values[1] and not np.isnan(values).all():
        raise ValueError(
            f"the index {name!r} of `--define` returned {values[0]!r} and then {values[1]!r} for one state; it must "
            "depend on its arguments alone."
        )
    return values[0]


def ask(what: str, function, *arguments):
    """Call a function of the user's; what it raises is told with the line that raised it."""
    try:
        return function(*arguments)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        line = f"line {last.lineno} of {Path(last.filename).name}"
        raise ValueError(f"{what} of `--define` raised {type(error).__name__} in {line}: {error}.") from error


def index_of(name: str, eps: float) -> str:
    """The key of a user's index at an error, in what is measured."""
    return f"{name} at {eps!r}"


# ---- What is measured on the windows of one problem ----


def measure(subject: Subject, preset: Preset, pair: tuple[str, str], define: str | None = None) -> dict:
    """Everything that is measured on a problem, in plain numbers."""
    problem = subject.make()
    methods = {role: getattr(ol, name) for role, name in zip(ROLES, pair, strict=True)}
    sharp = getattr(ol, SHARP)
    cut = functools.partial(windows.cut_into_windows, problem, methods["implicit"], sharp, engine=preset.engine)
    scale, pieces = cut(preset.windows)
    own = adopt(define).indices

    def row_of(window, scale=scale) -> dict:
        row = {"start": window.start, "end": window.end, **climb(problem, methods, window, preset, scale)}
        row["doubt"] = doubt_of(problem, methods["explicit"], window, scale, preset.engine)
        return row | measure_indices(problem, window, scale, methods["explicit"], preset.eps, own)

    rows = [row_of(window) for window in pieces]
    some = preset.others if subject.family in VARIED and subject.knob < 2 else 0
    chosen = np.unique(np.linspace(0, len(rows) - 1, min(some, len(rows))).astype(int))
    for i in chosen:
        others = {name: getattr(ol, name) for name in OTHERS if name not in pair}
        rows[i]["others"] = climb(problem, others, pieces[i], preset, scale)
        rows[i]["cold"] = climb(problem, methods, pieces[i], preset, scale, cold=True)
    record: dict[str, Any] = {
        "name": subject.name,
        "family": subject.family,
        "n": problem.size,
        "span": problem.t_span[1] - problem.t_span[0],
        "by_lines": subject.family in BY_LINES,
        "non_normal": subject.family.startswith("non_normal"),
        "tolerances": list(preset.tolerances),
        "order": methods["explicit"].error_order,
        "work": {role: windows.evaluations_of(method) for role, method in methods.items()},
        "windows": rows,
    }
    if some:
        record["work"] |= {name: windows.evaluations_of(getattr(ol, name)) for name in OTHERS}
        record["rules"] = {name: [row_of(w) for w in cut(some, **rule)[1]] for name, rule in OTHER_WINDOWS.items()}
        record["rules"][ONE_SCALE] = [row_of(pieces[i], np.full_like(scale, scale.max())) for i in chosen]
    if preset.auto:
        record["whole"] = run_whole(problem, [ol.auto(*methods.values()), *methods.values()], scale)
    return record


def climb(problem, methods: dict, window, preset: Preset, scale, cold: bool = False) -> dict:
    """Of each method {measure: one number per tolerance}, every run started with the step of the one before."""
    ladders = {}
    for role, method in methods.items():
        most = MOST_ATTEMPTS["implicit" if isinstance(method, ol.RosenbrockMethod) else "explicit"]
        runs, first = [], None
        for rtol in preset.tolerances:
            runs.append(windows.warm_run(problem, method, window, rtol, scale, first, most, cold, preset.engine))
            first = runs[-1].first_step
        measures = ("attempts", "error", "rejected", "flagged", "near", "censored")
        ladders[role] = {name: [float(getattr(run, name)) for run in runs] for name in measures}
    return ladders


def doubt_of(problem, method, window, scale, engine: str) -> float:
    """By how much the exact states of a window differ from a run of the other method; NaN where that is too long."""
    most = MOST_ATTEMPTS["explicit"]
    return windows.warm_run(problem, method, window, DOUBTING, scale, most=most, cold=True, engine=engine).error


def run_whole(problem, methods, scale) -> dict[str, dict[str, float]]:
    """Of each method evaluations, Jacobians and seconds of a run over the whole span; infinite where it fails.

    Seconds are processor time, of later calls that take turns: only their ratios within one problem enter.
    """
    controller = ol.adaptive(WHOLE, WHOLE * scale)

    def run(method):
        return ol.solve(problem, method, controller, max_steps=LONGEST, throw=False)

    infinite = float("inf")
    records = {method.name: {"evaluations": infinite, "jacobians": 0.0, "changes": 0.0} for method in methods}
    runs = {method.name: run(method) for method in methods}
    for name, sol in runs.items():
        if sol.ok:
            took = getattr(sol, "took", None)
            changes = np.count_nonzero(took[1:] != took[:-1]) if took is not None and len(took) else 0
            counts = {"evaluations": sol.evaluations, "jacobians": sol.jacobians, "changes": changes}
            records[name] = {key: float(count) for key, count in counts.items()}
    able = [method for method in methods if runs[method.name].ok]
    samples = interleave([functools.partial(run, method) for method in able], ROUNDS, PATIENCE)
    seconds = {method.name: min(sample.processor) for method, sample in zip(able, samples, strict=True)}
    return {name: record | {"seconds": seconds.get(name, infinite)} for name, record in records.items()}


def measure_indices(problem, window, scale, method, eps_values, own) -> dict[str, dict[str, float]]:
    """Every index that needs no run: "indices", the mean over both ends of the window, and "early", at its start.

    The former hold derivatives of the solution over the window, too.
    """
    at_ends = []
    for t, u in ((window.start, window.at_start), (window.end, window.at_end)):
        values = state_indices(problem, t, u, method, scale + np.abs(u))
        if own:
            J, f, f_t = linear_parts(problem, t, u)
            for name, index in own.items():
                for eps in eps_values:
                    values[index_of(name, eps)] = value_of(name, index, J, f, f_t, u, scale + np.abs(u), eps)
        at_ends.append(values)
    means = {name: mean_of(name, [values[name] for values in at_ends]) for name in at_ends[0]}
    scale = scale + np.abs(window.states).mean(axis=0)
    orders = {*ORDERS, method.error_order}
    means |= {f"u{k}": ol.window_derivative(window.times, window.states, k, scale) for k in orders}
    return {"indices": means, "early": at_ends[0]}


def mean_of(name, values) -> float:
    if name in SIGNED or min(values) <= 0.0 or not np.isfinite(values).all():
        return float(np.mean(values))
    return float(np.exp(np.mean(np.log(values))))


# ---- Stored: what is measured lies in a file, and a stopped run goes on ----


def recall(path: Path, options: dict, fresh: bool = False) -> dict | None:
    """What an earlier run stored, where it was measured with these options."""
    record = json.loads(path.read_text()) if path.is_file() and not fresh else {}
    return record if record.get("options") == json.loads(json.dumps(options)) else None


def store(path: Path, record: dict, words: str) -> dict:
    """Write a record, and show the words; returns the record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        unfinished.write_text(json.dumps(record))
    show_progress(words)
    return record


@contextlib.contextmanager
def executor_of(workers: int, scheduler: str | None):
    """Processes, or the workers of the Dask scheduler at this address; None where this process does everything."""
    if scheduler is None and workers == 1:
        yield None
        return
    if scheduler is None:
        with ProcessPoolExecutor(workers) as pool:
            yield pool
        return
    try:
        from distributed import Client

        client = Client(scheduler, timeout="10s")
    except ImportError:
        raise ValueError("`--executor` needs the package distributed: pip install distributed.") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"`--executor` = {scheduler!r} is not the address of a Dask scheduler: {error}") from None
    with client:
        yield client.get_executor(pure=False)


def measure_all(
    wanted: list[Subject],
    preset: Preset,
    pair: tuple[str, str],
    folder: Path,
    define: str | None = None,
    executor: Executor | None = None,
    fresh: bool = False,
) -> list[dict]:
    """The measurements of all problems, from an earlier run with the same options as far as they are there.

    pair      names of the explicit and the implicit method
    folder    where measurements are stored, a file per problem
    define    a file with problems and indices of the user's, which every worker must be able to read
    executor  measures in place of this process, see `executor_of`
    fresh     measure anew what is there
    """
    options = {name: getattr(preset, name) for name in ("windows", "tolerances", "others", "auto")}
    options |= {**dict(zip(ROLES, pair, strict=True)), "format": FORMAT}
    text = None if define is None else Path(define).read_text()
    if define is not None:
        options |= {"define": text, "eps": preset.eps}
    paths = {subject.name: folder / f"{file_of(subject.name)}.json" for subject in wanted}
    stored = {name: record for name, path in paths.items() if (record := recall(path, options, fresh))}
    missing = [name for name in paths if name not in stored]

    def keep(name: str, record: dict) -> None:
        words = f"{name}: {len(record['windows'])} windows ({len(stored) + 1} of {len(wanted)} problems)"
        stored[name] = store(paths[name], record | {"options": options}, words)

    if executor is None:
        for name in missing:
            keep(name, measure_by_name(name, preset, pair, define, text))
    else:
        futures = {executor.submit(measure_by_name, name, preset, pair, define, text): name for name in missing}
        for future in as_completed(futures):
            keep(futures[future], future.result())
    return [stored[name] for name in paths]


def measure_by_name(name: str, preset: Preset, pair: tuple[str, str], define: str | None, text: str | None) -> dict:
    """`measure` of the problem of this name: what a worker is sent is small and can be pickled.

    text   what the file `define` holds where the run was started; a worker that reads another one measures nothing
    """
    if define is not None and (not Path(define).is_file() or Path(define).read_text() != text):
        raise ValueError(f"`--define` = {define!r} is not the same file for the worker as where the run was started.")
    (subject,) = (subject for subject in subjects(define) if subject.name == name)
    try:
        return measure(subject, preset, pair, define)
    except ol.RunFailed as failure:
        raise ValueError(f"the problem {name!r} cannot be measured. {failure}") from failure


def time_attempts(
    subject: Subject, pair: tuple[str, str], folder: Path, define: str | None = None, fresh: bool = False
) -> dict[str, dict]:
    """How long attempts take, "seconds" of each method, and "parts", of `odelab.experiments.timing.Parts`.

    They are weights for costs in other units than evaluations. Times are this machine's, and measured here whoever
    measures the windows; only their ratios enter. Options are those of `measure_all`.
    """
    own = define is not None and subject.name in adopt(define).problems
    options = {"pair": list(pair), "file": Path(define).read_text() if define and own else None}
    path = folder / f"timing {file_of(subject.name)}.json"
    record = recall(path, options, fresh)
    if record is None:
        problem = subject.make()
        seconds = {
            role: timing.seconds_per_attempt(problem, getattr(ol, name)) for role, name in zip(ROLES, pair, strict=True)
        }
        record = {"options": options, "seconds": seconds, "parts": timing.seconds_of_parts(problem)._asdict()}
        store(path, record, f"{subject.name}: timed")
    return {key: record[key] for key in ("seconds", "parts")}
