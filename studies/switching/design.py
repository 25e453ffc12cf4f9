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
given intervals where they had compared numbers alone, and a coin its own verdict: `findings` says at each rule what
that changed.

The unit of inference is the family: windows of one problem are alike, and problems of one family too. A problem's
windows share a weight of one; intervals come from resampling families, 95 %. In the factorial a family is a cell:
systems that differ in their origin alone. The rules and their texts stand in `findings`, their thresholds below.
"""

import dataclasses

import numpy as np

EPS = (1e-3, 1e-4, 1e-6, 1e-8)
TOLERANCES = tuple(10.0 ** -np.arange(1.0, 10.01, 0.5))
FEWEST_FAMILIES = 10
CHANCE = 0.5  # the area under the curve of a coin
INDEX_TELLS, INDEX_NONE = 0.8, 0.65  # areas above which an index tells, and up to which it is no better than a coin
CHI_TELLS, CHI_NONE = 0.85, 0.75  # the same of chi, of which theory says more
WITHIN = 0.5  # the median rank correlation within problems above which an index tells
SAME_AREA = 0.05  # areas so near to one another are the same
FEW_CHANGE, MANY_CHANGE = 0.05, 0.15  # shares of windows that change class with the error
EXPONENTS = {"rho_ng": 1.0, "SAI": -1.0, "eps": 0.25}  # of R where stability binds, by theory
SWITCH_GOOD, SWITCH_BAD = 1.25, 1.5  # costs over the oracle's up to which switching is good, and from which it is bad
SWITCH_NEAR = 1.05  # over the cost with the best threshold in hindsight
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
    "quick": Preset(1, 10, EPS, TOLERANCES, 1000, auto=True, networks=1),
    "full": Preset(
        2, 40, EPS, TOLERANCES, 2000, others=6, auto=True, timed=True, plane=61, networks=10, images=2, truths=1
    ),
}
