"""The catalogue of test problems: every factory, called without arguments, gives a problem ready to solve.

`catalogue()` lists them, and `daes()` those with algebraic equations. A problem's references may lie beyond its time
span; `problem.replace(t_span=(0.0, reference.t))` reaches them. Solvers and measures are elsewhere; here are right-hand
sides and what is known of them.
"""

from collections.abc import Callable

from odelab.problem import Problem
from odelab.problems.algebraic import pendulum_dae as pendulum_dae
from odelab.problems.algebraic import robertson_dae as robertson_dae
from odelab.problems.algebraic import transistor_amplifier as transistor_amplifier
from odelab.problems.bodies.celestial import arenstorf as arenstorf
from odelab.problems.bodies.ellipse import kepler as kepler
from odelab.problems.bodies.gravity import nearest_pair as nearest_pair
from odelab.problems.bodies.mechanics import rigid_body as rigid_body
from odelab.problems.bodies.pendulum import elastic_pendulum as elastic_pendulum
from odelab.problems.bodies.seven_bodies import pleiades as pleiades
from odelab.problems.bodies.three_bodies import three_body as three_body
from odelab.problems.bodies.three_bodies import three_body_starts as three_body_starts
from odelab.problems.chemistry import e5 as e5
from odelab.problems.chemistry import hires as hires
from odelab.problems.chemistry import oregonator as oregonator
from odelab.problems.chemistry import robertson as robertson
from odelab.problems.forced import forced_linear as forced_linear
from odelab.problems.forced import forced_linear_derivative as forced_linear_derivative
from odelab.problems.linear_systems import linear as linear
from odelab.problems.linear_systems import linear_non_normal as linear_non_normal
from odelab.problems.linear_systems import linear_symmetric as linear_symmetric
from odelab.problems.method_of_lines import allen_cahn_1d as allen_cahn_1d
from odelab.problems.method_of_lines import brusselator_1d as brusselator_1d
from odelab.problems.method_of_lines import heat_1d as heat_1d
from odelab.problems.method_of_lines import heat_1d_wave as heat_1d_wave
from odelab.problems.oscillators import brusselator as brusselator
from odelab.problems.oscillators import lorenz as lorenz
from odelab.problems.oscillators import van_der_pol as van_der_pol
from odelab.problems.pollution import pollu as pollu
from odelab.problems.relaxation import davis_skodje as davis_skodje
from odelab.problems.relaxation import fitzhugh_nagumo as fitzhugh_nagumo
from odelab.problems.relaxation import flame as flame
from odelab.problems.scalar import curtiss_hirschfelder as curtiss_hirschfelder
from odelab.problems.scalar import dahlquist as dahlquist
from odelab.problems.scalar import prothero_robinson as prothero_robinson
from odelab.problems.scalar import stiff_linear as stiff_linear
from odelab.problems.transport import advection_1d as advection_1d
from odelab.problems.transport import burgers_1d as burgers_1d


def catalogue() -> dict[str, Callable[..., Problem]]:
    """Every factory of a problem u' = f(t, u) that needs no arguments, by name.

    >>> import odelab as ol
    >>> ol.problems.catalogue()["lorenz"]().name
    'lorenz'
    """
    factories = (
        *(dahlquist, stiff_linear, prothero_robinson, curtiss_hirschfelder, linear, forced_linear),
        *(van_der_pol, robertson, oregonator, hires, e5, pollu, brusselator),
        *(brusselator_1d, heat_1d, heat_1d_wave, allen_cahn_1d, advection_1d, burgers_1d),
        *(davis_skodje, flame, fitzhugh_nagumo, elastic_pendulum, kepler),
        *(lorenz, rigid_body, arenstorf, pleiades, three_body),
    )
    return {factory.__name__: factory for factory in factories}


def daes() -> dict[str, Callable[..., Problem]]:
    """Every factory of a problem with algebraic equations, of index 1, which needs no arguments, by name.

    >>> import odelab as ol
    >>> sorted(ol.problems.daes())
    ['pendulum_dae', 'robertson_dae', 'transistor_amplifier']
    """
    return {factory.__name__: factory for factory in (robertson_dae, transistor_amplifier, pendulum_dae)}
