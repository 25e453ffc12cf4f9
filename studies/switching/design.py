"""The design of `switching`: problems in families, tolerances, and how claims are judged.

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

What was fixed when. Claims and rules come from a pilot with other code, whose results were known. They were written
down before this code ran. Younger are: that fewer than ten families decide nothing, added after a smoke run; what a run
costs that is given up, after a first full run, in which 14 of 828 windows had no ratio; that a failed run has no cost,
after a second one; that a rejected attempt pays no Jacobian, which every attempt had paid, and that exact states are
doubted, after a third. Three rules that were written down were left out of the first full runs: the exponents of T1,
the band, and that H1 is about the forced systems of the factorial and T2 about SI/SAI. Applied since, they changed two
verdicts: T1 read "supported" and is undecided, for its exponents; H1 read "undecided", on three families, and is
contradicted. The count of Jacobians changed a third: A1 read "supported", with a threshold of 1 within 4.8 % of the
best at an error of 1e-8. The levels of the factorial were chosen before it ran; its size was written down.

The unit of inference is the family: windows of one problem are alike, and problems of one family too. A problem's
windows share a weight of one; intervals come from resampling families, 95 %. In the factorial a family is a cell:
systems that differ in their origin alone.

The rules. All errors must agree, else the verdict says that it depends on the tolerance. Rankings (P1, T1, T2, H1) must
give the same verdict on the windows beyond a factor of two, else it depends on the band. With fewer than ten families
nothing is decided.

P1 *SAI tells where stiffness is.* Supported: the interval of its AUC lies above 0.8 and the median rank correlation
   with R within problems is above 0.5. Contradicted: the interval lies below 0.65. Undecided otherwise.
P2 *Simplified SAI suffices.* Supported: P1 is, and the two AUCs are within 0.05. Contradicted: P1 is. Else undecided.
P3 *SAI stands for SI in cost.* The exponent b of SAI in log R where stability binds: supported where its interval lies
   in [0.5, 1.5], contradicted where it lies below 0, else undecided.
P4 *Stiffness belongs to the problem.* Share of windows that change class between eps = 1e-3 and 1e-8: supported below
   5 %, contradicted above 15 %, undecided between.
T1 *chi = h_acc/h_stab is the index.* Supported: its AUC lies above 0.85 and above every index of the problem alone by a
   paired interval, and the exponents of log R where stability binds, of rho_ng, SAI and eps, hold 1, -1 and 1/4.
   Contradicted: its AUC lies below 0.75, or an exponent has the other sign for certain. Else undecided.
T2 *SI/SAI does what neither does.* Supported: its AUC beats that of SI and that of SAI by paired intervals above 0;
   contradicted: either lies below 0; else undecided. The same with rho_ng in place of SI is told beside.
S1 *Stability binds only where T s[J] is far below -1.* Contradicted: windows of at least one family have R > 10 and
   T s[J] > -1. Supported: no window has R > 2 there. Else undecided.
H1 *Pseudospectra beat eigenvalues.* On the sheared systems of the factorial: AUC of h_acc/h_power minus that of
   h_acc/h_stab; supported where its interval lies above 0, contradicted below 0, else undecided.
A1 *Switching by theory's rule needs no fitted constant.* Geometric mean over problems of cost over the oracle's with
   h_R/h_stab > 1: supported up to 1.25 and within 5 % of the best threshold in hindsight; contradicted above 1.5.
"""

import dataclasses

import numpy as np

EPS = (1e-3, 1e-4, 1e-6, 1e-8)
TOLERANCES = tuple(10.0 ** -np.arange(1.0, 10.01, 0.5))
FEWEST_FAMILIES = 10
RULES = {"ranks": 0.8, "within": 0.5, "fails": 0.65, "same": 0.05, "few": 0.05, "many": 0.15}
THEORY = {"ranks": 0.85, "fails": 0.75}
EXPONENTS = {"rho_ng": 1.0, "SAI": -1.0, "eps": 0.25}  # of R where stability binds, by theory
SWITCH = {"good": 1.25, "near": 1.05, "bad": 1.5}
CAP_EXPLICIT, CAP_IMPLICIT = 3000, 20_000  # attempts of a run before it is given up
OTHERS = ("RKF45", "DOP853", "BS32", "RODAS5P", "ROS2")  # methods in place of the pair, to see what R owes to it
LINES = 5  # evaluations that the Jacobian of a system by lines costs: as many as it has colours


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
    "quick": Preset(1, 10, EPS, TOLERANCES, 300, auto=True, networks=1),
    "full": Preset(
        2, 40, EPS, TOLERANCES, 2000, others=6, auto=True, timed=True, plane=61, networks=10, images=2, truths=1
    ),
}
