"""
Arenstorf's orbit
=================

A satellite around earth and moon comes back to where it began.
"""

import odelab as ol

problem = ol.problems.arenstorf()
figure = ol.solve(problem, ol.DOP853, ol.adaptive(1e-10, 1e-12)).plot("phase")
