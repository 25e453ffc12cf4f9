"""The design of `switching`: problems in families, tolerances, and how claims are judged.

The truth. R(eps) = C_E(eps) / C_I(eps) on a window of a solution: the least cost at which an explicit method ends the
window with a scaled error of at most eps, over that of an L-stable method. A window is stiff at eps where R > 1,
gravely so where R > 2. Cost counts evaluations, and each Jacobian as as many of them as it has colours. Runs enter a
window warm, on a ladder of 19 tolerances from 1e-1 to 1e-10. Windows are six steps of the implicit method at 1e-4, so
that no index chooses them. A run is given up after 3,000 attempts (the implicit method's after 20,000); its cost is
then extended over the window, and its error taken to be a tenth of its tolerance, as that of runs which stability
holds back. A run that fails otherwise, by blowing up for instance, has no cost.

What was fixed when. Claims and thresholds come from a pilot with other code, whose results were known. They were
written down before this code ran. Three rules are younger: that fewer than ten families decide nothing was added
after a smoke run; what a run costs that is given up, after a first full run, in which 14 of 828 windows had no ratio;
that a failed run has no cost, and that H1 counts the families of non-normal problems alone, after a second one. The
last of these changed a verdict: H1 read "depends on the tolerance" and is undecided since. The other verdicts were
the same each time.

The unit of inference is the family: windows of one problem are alike, and problems of one family too. A problem's
windows share a weight of one; intervals come from resampling families, 95 %.

The rules. All tolerances of `EPS` must agree, else the verdict says that it depends on the tolerance. With fewer than
ten families nothing is decided.

P1 *SAI tells where stiffness is.* Supported: the interval of its AUC lies above 0.8 and the median rank correlation
   with R within problems is above 0.5. Contradicted: the interval lies below 0.65. Undecided otherwise.
P2 *Simplified SAI suffices.* Supported: P1 is, and the two AUCs are within 0.05. Contradicted: P1 is. Else undecided.
P3 *SAI stands for SI in cost.* The exponent b of SAI in log R where stability binds: supported where its interval lies
   in [0.5, 1.5], contradicted where it lies below 0, else undecided.
P4 *Stiffness belongs to the problem.* Share of windows that change class between eps = 1e-3 and 1e-8: supported below
   5 %, contradicted above 15 %, undecided between.
T1 *chi = h_acc/h_stab is the index.* Supported: its AUC lies above 0.85 and above every index of the problem alone by a
   paired interval. Contradicted: its AUC lies below 0.75. Else undecided.
T2 *rho_ng/SAI does what neither does.* Supported: its AUC beats that of rho_ng and that of SAI by paired intervals
   above 0; contradicted: either lies below 0; else undecided.
S1 *Stability binds only where T s[J] is far below -1.* Contradicted: windows of at least one family have R > 10 and
   T s[J] > -1. Supported: no window has R > 2 there. Else undecided.
H1 *Pseudospectra beat eigenvalues.* On non-normal problems: AUC of h_acc/h_power minus that of h_acc/h_stab; supported
   where its interval lies above 0, contradicted below 0, else undecided.
A1 *Switching by theory's rule needs no fitted constant.* Geometric mean over problems of cost over the oracle's with
   h_R/h_stab > 1: supported up to 1.25 and within 5 % of the best threshold in hindsight; contradicted above 1.5.
"""

import dataclasses

import numpy as np

import odelab as ol
from odelab import problems

EPS = (1e-3, 1e-4, 1e-6, 1e-8)
TOLERANCES = tuple(10.0 ** -np.arange(1.0, 10.01, 0.5))
FEWEST_FAMILIES = 10
RULES = {"ranks": 0.8, "within": 0.5, "fails": 0.65, "same": 0.05, "few": 0.05, "many": 0.15}
THEORY = {"ranks": 0.85, "fails": 0.75}
SWITCH = {"good": 1.25, "near": 1.05, "bad": 1.5}
EXPLICIT_CAP, IMPLICIT_CAP = 3000, 20_000  # attempts of a run before it is given up
LINES = 5  # evaluations that the Jacobian of a system by lines costs: as many as it has colours


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
    make: object
    knob: int = 0

    def problem(self) -> ol.Problem:
        return self.make()

    @property
    def by_lines(self) -> bool:
        return self.family in {"brusselator_1d", "heat_1d", "allen_cahn_1d", "advection_1d", "burgers_1d"}

    @property
    def non_normal(self) -> bool:
        return self.family.startswith("non_normal")


def over(factory, span=None, **options):
    """A function that makes this problem, over another span where one is given."""

    def make():
        problem = factory(**options)
        return problem if span is None else problem.replace(t_span=(problem.t_span[0], span))

    return make


def rotated(block, seed: int = 1):
    """A matrix in other coordinates, so that no component is the fast one alone."""
    q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(block), len(block))))[0]
    return q @ block @ q.T, q


def oscillators(amplitude: float, frequency: float, damping: float = 0.0, span: float = 6.0):
    """A slow rotation beside a fast one of some amplitude, mixed by an orthogonal map."""

    def make():
        block = np.zeros((4, 4))
        block[:2, :2] = [[0.0, 1.0], [-1.0, 0.0]]
        block[2:, 2:] = [[-damping, frequency], [-frequency, -damping]]
        matrix, q = rotated(block)
        return problems.linear(matrix, u0=q @ [1.0, 0.0, amplitude, 0.0]).replace(t_span=(0.0, span))

    return make


def linear(matrix, u0, span: float):
    return over(lambda: problems.linear(matrix, u0), span)


def shear(n: int, diagonal: float, above: float):
    return diagonal * np.eye(n) + above * np.eye(n, k=1)


def forced_shear(above: float, frequency: float = 1.0):
    """A non-normal system whose solution is a slow oscillation: its transients are not the solution."""
    matrix = np.diag([-10.0, -40.0, -160.0]) + above * np.triu(np.ones((3, 3)), 1)
    return over(problems.forced_linear, 10.0, matrix=matrix, frequency=frequency)


def subjects() -> list[Subject]:
    """Every problem of the study, in order."""
    table: list[Subject] = []

    def add(family, name, make, knob=0):
        table.append(Subject(name, family, make, knob))

    for mu, span, knob in ((1.0, 20.0, 1), (5.0, 30.0, 0), (20.0, 60.0, 2), (100.0, 250.0, 1), (1000.0, 2500.0, 2)):
        add("van_der_pol", f"van_der_pol {mu:g}", over(problems.van_der_pol, span, mu=mu), knob)
    add("robertson", "robertson", over(problems.robertson, 1e8))
    add("hires", "hires", problems.hires, 1)
    add("oregonator", "oregonator", problems.oregonator, 1)
    add("e5", "e5", over(problems.e5, 1e11), 2)
    add("brusselator", "brusselator", problems.brusselator, 1)
    add("lorenz", "lorenz", over(problems.lorenz, 10.0), 1)
    add("rigid_body", "rigid_body", problems.rigid_body, 1)
    add("arenstorf", "arenstorf", problems.arenstorf, 2)
    for e, knob in ((0.0, 2), (0.6, 1), (0.95, 1)):
        add("kepler", f"kepler {e:g}", over(problems.kepler, eccentricity=e), knob)
    for rate, knob in ((-1.0, 2), (-30.0, 1), (-1e3, 1), (-1e5, 2)):
        add("prothero", f"prothero {-rate:g}", over(problems.prothero_robinson, 10.0, rate=rate), knob)
    add("curtiss", "curtiss", over(problems.curtiss_hirschfelder, 10.0), 1)
    for gamma, knob in ((10.0, 2), (100.0, 1), (1e4, 1)):
        add("davis_skodje", f"davis_skodje {gamma:g}", over(problems.davis_skodje, gamma=gamma), knob)
    for radius, knob in ((1e-3, 1), (1e-4, 2)):
        add("flame", f"flame {radius:g}", over(problems.flame, radius=radius), knob)
    for slowness, knob in ((0.08, 1), (0.001, 2)):
        add("fitzhugh", f"fitzhugh {slowness:g}", over(problems.fitzhugh_nagumo, slowness=slowness), knob)
    for stiffness, span, knob in ((1e4, 8.0, 1), (1e6, 3.0, 2)):
        make = over(problems.elastic_pendulum, span, stiffness=stiffness)
        add("elastic_pendulum", f"elastic_pendulum {stiffness:g}", make, knob)
    for real, imaginary, span, knob in ((-1.0, 100.0, 10.0, 0), (-0.01, 1000.0, 3.0, 1), (-1000.0, 1000.0, 10.0, 1)):
        matrix = ((real, -imaginary), (imaginary, real))
        name = f"forced {real:g} +- {imaginary:g}i"
        add("forced", name, over(problems.forced_linear, span, matrix=matrix), knob)
    alive = over(problems.forced_linear, 10.0, matrix=((-0.1, -300.0), (300.0, -0.1)), u0=(3.3, 2.7))
    add("forced alive", "forced alive", alive, 1)
    fast = over(problems.forced_linear, 0.3, matrix=((-1000.0, 0.0), (0.0, -1000.0)), frequency=1000.0)
    add("forced fast", "forced fast", fast, 1)
    for amplitude, knob in ((1.0, 1), (1e-3, 2), (1e-5, 1), (1e-7, 2)):
        add("oscillators", f"oscillators {amplitude:g}", oscillators(amplitude, 100.0, span=3.0), knob)
    add("oscillators damped", "oscillators damped", oscillators(1.0, 300.0, 3.0, 10.0), 2)
    add("oscillators gone", "oscillators gone", oscillators(1.0, 300.0, 300.0, 10.0), 1)
    add("linear", "linear -1000 -1", linear(np.diag([-1000.0, -1.0]), [1.0, 1.0], 10.0), 1)
    add("linear", "linear -10 -1", linear(np.diag([-10.0, -1.0]), [1.0, 1.0], 10.0), 2)
    add("non_normal 2", "non_normal 1e3", linear(((-1.0, 1e3), (0.0, -2.0)), [0.0, 1.0], 10.0), 1)
    add("non_normal 2", "non_normal 1e5", linear(((-1.0, 1e5), (0.0, -2.0)), [0.0, 1.0], 10.0), 2)
    add("non_normal shear", "shear 2", linear(shear(12, -1.0, 2.0), np.full(12, 0.5), 30.0), 1)
    add("non_normal shear", "shear 8", linear(shear(12, -1.0, 8.0), np.full(12, 0.5), 30.0), 2)
    for above, knob in ((10.0, 2), (300.0, 1), (10_000.0, 1)):
        add("non_normal forced", f"forced shear {above:g}", forced_shear(above), knob)
    add("growing", "growing 50", linear([[50.0]], [1e-3], 0.5), 2)
    add("growing mixed", "growing mixed", linear(np.diag([5.0, -2000.0]), [1e-3, 1.0], 3.0), 1)
    for n, knob in ((5, 1), (20, 2)):
        add("brusselator_1d", f"brusselator_1d {n}", over(problems.brusselator_1d, n=n), knob)
    add("heat_1d", "heat_1d 16", over(problems.heat_1d, 0.5, n=16), 1)
    add("allen_cahn_1d", "allen_cahn_1d 20", over(problems.allen_cahn_1d, n=20, diffusivity=0.01), 1)
    add("advection_1d", "advection_1d 30", over(problems.advection_1d, n=30), 1)
    add("burgers_1d", "burgers_1d 24", over(problems.burgers_1d, n=24), 2)
    return table


@dataclasses.dataclass(frozen=True)
class Preset:
    """How much is measured.

    knob       subjects whose knob is at most this
    windows    at most so many windows a problem
    eps        errors at which costs are compared
    tolerances of the ladder
    resamples  of families
    """

    knob: int
    windows: int
    eps: tuple[float, ...]
    tolerances: tuple[float, ...]
    resamples: int


PRESETS = {
    "smoke": Preset(0, 3, (1e-4,), TOLERANCES[2:14:2], 20),
    "quick": Preset(1, 10, EPS, TOLERANCES, 300),
    "full": Preset(2, 24, EPS, TOLERANCES, 2000),
}
