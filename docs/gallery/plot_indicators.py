"""
Indices of stiffness along a run
================================

SI and the spectral radius come from the Jacobian, SAI and h rho from the run itself.
"""

import odelab as ol

problem = ol.problems.oregonator()
figure = ol.indicators(problem, ol.solve(problem, ol.RODAS4), every=10).plot()
