"""
Who takes which step
====================

`ol.AUTO` takes implicit steps in the slow phases of a relaxation oscillator and explicit ones in its jumps.
"""

import odelab as ol
from odelab.plot import style

sol = ol.solve(ol.problems.van_der_pol(mu=100.0))
with style.panel() as (figure, axes):
    sol.plot("steps", colour="#CCCCCC", ax=axes)
    for name in ("DOPRI5", "RODAS4"):
        mine = sol.took == name
        axes.plot(sol.step_t[:-1][mine], sol.h[mine], ".", markersize=3, label=name)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, markerscale=3)
