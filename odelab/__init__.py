"""A laboratory for stiffness: solvers, step-size control, and the measures that tell how stiff a problem is.

>>> import odelab as ol
>>> problem = ol.problems.van_der_pol(mu=5.0)
>>> sol = ol.solve(problem, ol.DOPRI5, ol.adaptive(rtol=1e-6, atol=1e-9))
>>> sol.ok, sol(10.0).shape
(True, (2,))

What is here
------------
describe a problem    Problem, Invariant, Reference, maths (functions for right-hand sides), problems (a catalogue);
                      consistent (a start that satisfies the algebraic equations of a problem with a mass matrix)
choose a step         EULER, HEUN, MIDPOINT, RK4, BS32, RKF45, DOPRI5, DOP853, RKC2, ROS2, RODAS4, RODAS5P, ESDIRK43,
                      AUTO, RADAU, BDF, LSODA; auto, rkc2; METHODS (explicit ones by name); Method, RosenbrockMethod
                      and EsdirkMethod for your own
decide its size       adaptive, fixed, Controller; LAWS (laws of step-size control by name), Law for your own
run it                solve for one run, ensemble for many; Event; RunFailed and NotCompilable where it cannot be done
what comes out        Trajectory (one run), Ensemble (many), indicators (stiffness along a run); save, load
differentiate it      wrt (by what; for `sensitivities` of solve and ensemble), SensitiveTrajectory, SensitiveEnsemble,
                      lyapunov, LyapunovExponents
measure stiffness     si, sai, nsi, tns, tns_parts (TnsParts), delta, stiffness_proportion, log_norm, soderlind,
                      spectrum, pseudospectrum, theorem2, jacobian, reduced_jacobian, JacobianOperator; the warnings
                      IllConditioned and NotConverged
who is stiff          modes (the fast components of a problem at a state), participation (those of a matrix); Modes,
                      ModeGroup
what steps cost       chi, accuracy_step, window_derivative, largest_stable_step, amplified, nongrowing,
                      nongrowing_radius, motion_rate, power_bounded_step
how wrong it is       global_error (of a run, at its end; GlobalError), solve_to (the tolerance for an error that is
                      wanted; SolvedTo)
compare               observed_order, work_precision, plot
ask the doctor        diagnose (is it stiff, in what, what does it cost, what to take); Diagnosis
look inside           show_kernel (the compiled source), scipy_method (a method of odelab for SciPy's solve_ivp)

Which method
------------
problem                                                  method     remark
not stiff, rtol 1e-3 to 1e-8                             DOPRI5     the first choice
not stiff, rtol below 1e-8, or a long smooth run         DOP853     order 8
not stiff, rtol above 1e-3, or a rough right-hand side   BS32       order 3
stiff, eigenvalues near the negative real axis           RKC2       diffusion; no Jacobian is needed, also if large
(parabolic problems by the method of lines)
stiff otherwise, rtol above 1e-5                         RODAS4     linearly implicit; Jacobians are derived by itself
stiff otherwise, sharper tolerances                      RODAS5P    the same, of order 5; ROS2 for rough solutions
with algebraic equations (a DAE of index 1)              RODAS5P    `Problem(..., mass=M)`; RODAS4, too
stiff, and a fully implicit method is wanted             RADAU      implicit, by SciPy
stiff, large, moderate accuracy                          BDF        implicit, by SciPy
stiff at times only, or nobody knows                     AUTO       switches by itself: where no method is named
a fixed step, for study                                  EULER, HEUN, MIDPOINT, RK4

Where stability and not accuracy chose the steps of a run, `print(sol)` says so and names what would do better.
"""

import types as _types

from odelab import maths as maths
from odelab import plot as plot
from odelab import problems as problems
from odelab._ensemble import ensemble as ensemble
from odelab._show import show_kernel as show_kernel
from odelab._solve import RunFailed as RunFailed
from odelab._solve import solve as solve
from odelab.control.controllers import Controller as Controller
from odelab.control.controllers import adaptive as adaptive
from odelab.control.controllers import fixed as fixed
from odelab.control.laws import LAWS as LAWS
from odelab.control.laws import Law as Law
from odelab.doctor.examination import Diagnosis as Diagnosis
from odelab.doctor.examination import diagnose as diagnose
from odelab.engines.implicit import BDF as BDF
from odelab.engines.implicit import LSODA as LSODA
from odelab.engines.implicit import RADAU as RADAU
from odelab.engines.lanes.result import Ensemble as Ensemble
from odelab.engines.not_compilable import NotCompilable as NotCompilable
from odelab.engines.scipy import scipy_method as scipy_method
from odelab.experiments.along_a_run import indicators as indicators
from odelab.experiments.global_error import GlobalError as GlobalError
from odelab.experiments.global_error import SolvedTo as SolvedTo
from odelab.experiments.global_error import global_error as global_error
from odelab.experiments.global_error import solve_to as solve_to
from odelab.experiments.observed_order import observed_order as observed_order
from odelab.experiments.work_precision import work_precision as work_precision
from odelab.files.saved import load as load
from odelab.files.saved import save as save
from odelab.linear.algebraic import consistent as consistent
from odelab.methods.esdirk import EsdirkMethod as EsdirkMethod
from odelab.methods.explicit import BS32 as BS32
from odelab.methods.explicit import DOP853 as DOP853
from odelab.methods.explicit import DOPRI5 as DOPRI5
from odelab.methods.explicit import EULER as EULER
from odelab.methods.explicit import HEUN as HEUN
from odelab.methods.explicit import METHODS as METHODS
from odelab.methods.explicit import MIDPOINT as MIDPOINT
from odelab.methods.explicit import RK4 as RK4
from odelab.methods.explicit import RKF45 as RKF45
from odelab.methods.implicit import ESDIRK43 as ESDIRK43
from odelab.methods.implicit import RODAS4 as RODAS4
from odelab.methods.implicit import RODAS5P as RODAS5P
from odelab.methods.implicit import ROS2 as ROS2
from odelab.methods.rosenbrock import RosenbrockMethod as RosenbrockMethod
from odelab.methods.stabilised import RKC2 as RKC2
from odelab.methods.stabilised import rkc2 as rkc2
from odelab.methods.switching import AUTO as AUTO
from odelab.methods.switching import auto as auto
from odelab.methods.tableau import Method as Method
from odelab.problem import Invariant as Invariant
from odelab.problem import Problem as Problem
from odelab.problem import Reference as Reference
from odelab.runs.events import Event as Event
from odelab.runs.trajectory import Trajectory as Trajectory
from odelab.sensitivities.lyapunov import LyapunovExponents as LyapunovExponents
from odelab.sensitivities.lyapunov import lyapunov as lyapunov
from odelab.sensitivities.result import SensitiveEnsemble as SensitiveEnsemble
from odelab.sensitivities.result import SensitiveTrajectory as SensitiveTrajectory
from odelab.sensitivities.selection import wrt as wrt
from odelab.stiffness.conditioning import IllConditioned as IllConditioned
from odelab.stiffness.conditioning import NotConverged as NotConverged
from odelab.stiffness.indices import nsi as nsi
from odelab.stiffness.indices import sai as sai
from odelab.stiffness.indices import si as si
from odelab.stiffness.jacobian import jacobian as jacobian
from odelab.stiffness.jacobian import reduced_jacobian as reduced_jacobian
from odelab.stiffness.log_norm import log_norm as log_norm
from odelab.stiffness.log_norm import soderlind as soderlind
from odelab.stiffness.modes.at_a_state import Modes as Modes
from odelab.stiffness.modes.at_a_state import modes as modes
from odelab.stiffness.modes.participation import ModeGroup as ModeGroup
from odelab.stiffness.modes.participation import participation as participation
from odelab.stiffness.operator import JacobianOperator as JacobianOperator
from odelab.stiffness.pseudospectrum import pseudospectrum as pseudospectrum
from odelab.stiffness.scales import accuracy_step as accuracy_step
from odelab.stiffness.scales import chi as chi
from odelab.stiffness.scales import motion_rate as motion_rate
from odelab.stiffness.scales import power_bounded_step as power_bounded_step
from odelab.stiffness.scales import window_derivative as window_derivative
from odelab.stiffness.spectrum import spectrum as spectrum
from odelab.stiffness.stable_step import amplified as amplified
from odelab.stiffness.stable_step import largest_stable_step as largest_stable_step
from odelab.stiffness.stable_step import nongrowing as nongrowing
from odelab.stiffness.stable_step import nongrowing_radius as nongrowing_radius
from odelab.stiffness.theorem2 import theorem2 as theorem2
from odelab.stiffness.tns import TnsParts as TnsParts
from odelab.stiffness.tns import delta as delta
from odelab.stiffness.tns import stiffness_proportion as stiffness_proportion
from odelab.stiffness.tns import tns as tns
from odelab.stiffness.tns import tns_parts as tns_parts

__version__ = "0.2.0"
_ROOMS = {"maths", "plot", "problems"}  # modules that belong to the public names; the others are for looking inside
__all__ = [
    name
    for name, value in list(globals().items())
    if name in _ROOMS or not (name.startswith("_") or isinstance(value, _types.ModuleType))
]
