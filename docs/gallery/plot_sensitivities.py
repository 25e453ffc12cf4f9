"""
What depends on which rate
==========================

The derivative of Robertson's third species with respect to each rate, times that rate.
"""

import odelab as ol

problem = ol.problems.robertson()
sol = ol.solve(problem, ol.RODAS4, sensitivities=ol.wrt(params=True))
figure = sol.plot("steps", colour="white")
axes = figure.axes[0]
axes.clear()
for i, rate in enumerate(problem.params):
    axes.plot(sol.t, sol.sensitivities[:, 2, i] * rate, label=f"rate {i}")
axes.set(xlabel="t", ylabel="change of $u_2$ per relative change")
legend = axes.legend()
