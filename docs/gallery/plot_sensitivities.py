"""
What depends on which rate
==========================

The derivative of Robertson's third species with respect to each rate, times that rate.
"""

import odelab as ol
from odelab.plot import style

problem = ol.problems.robertson()
sol = ol.solve(problem, ol.RODAS4, sensitivities=ol.wrt(params=True))
with style.panel() as (figure, axes):
    for i, rate in enumerate(problem.params):
        axes.plot(sol.t, sol.sensitivities[:, 2, i] * rate, label=f"rate {i}")
    axes.set(xlabel="t", ylabel="change of $u_2$ per relative change")
    axes.legend()
