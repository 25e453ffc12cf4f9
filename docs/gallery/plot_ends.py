"""
Where a cloud of starts goes
============================

Two thousand starts close together, after thirty units of time on Lorenz's attractor.
"""

import numpy as np

import odelab as ol

starts = np.random.default_rng(0).normal([1.0, 1.0, 1.0], 1e-3, (2000, 3))
problem = ol.problems.lorenz().replace(t_span=(0.0, 30.0))
figure = ol.ensemble(problem, ol.DOPRI5, u0=starts).plot("ends", components=(0, 2))
