"""
Who takes which step
====================

`ol.AUTO` takes implicit steps in the slow phases of a relaxation oscillator and explicit ones in its jumps.
"""

import odelab as ol

sol = ol.solve(ol.problems.van_der_pol(mu=100.0))
figure = sol.plot("steps", colour="#CCCCCC")
for name in ("DOPRI5", "RODAS4"):
    mine = sol.took == name
    figure.axes[0].plot(sol.step_t[:-1][mine], sol.h[mine], ".", markersize=3, label=name)
legend = figure.axes[0].legend()
