"""
Which component is stiff
========================

HIRES has eight components; one of them carries the fast mode.
"""

import odelab as ol

problem = ol.problems.hires()
sol = ol.solve(problem)
figure = ol.modes(problem, 100.0, sol(100.0)).plot()
