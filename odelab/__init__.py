"""odelab: explicit solvers, step-size control and the measures of stiffness."""

from odelab import maths as maths
from odelab import problems as problems
from odelab.controllers import Controller as Controller
from odelab.controllers import adaptive as adaptive
from odelab.controllers import fixed as fixed
from odelab.events import Event as Event
from odelab.implicit import BDF as BDF
from odelab.implicit import LSODA as LSODA
from odelab.implicit import RADAU as RADAU
from odelab.laws import LAWS as LAWS
from odelab.laws import Law as Law
from odelab.methods import BS32 as BS32
from odelab.methods import DOPRI5 as DOPRI5
from odelab.methods import EULER as EULER
from odelab.methods import HEUN as HEUN
from odelab.methods import METHODS as METHODS
from odelab.methods import MIDPOINT as MIDPOINT
from odelab.methods import RK4 as RK4
from odelab.methods import RKF45 as RKF45
from odelab.problem import Invariant as Invariant
from odelab.problem import Problem as Problem
from odelab.problem import Reference as Reference
from odelab.solve import RunFailed as RunFailed
from odelab.solve import solve as solve
from odelab.tableau import Method as Method
from odelab.trajectory import Trajectory as Trajectory
