"""
Lyapunov exponents
==================

One neighbour in three leaves Lorenz's solution, one keeps its distance, one comes to it.
"""

import odelab as ol

figure = ol.lyapunov(ol.problems.lorenz(), ol.DOPRI5, t=200.0).plot()
