"""
How far an eigenvalue can be moved
==================================

Advection by upwind differences is far from normal: every eigenvalue is -30, and tiny changes move them over a disc.
"""

import numpy as np

import odelab as ol

upwind = 30.0 * (np.eye(30, k=-1) - np.eye(30))
figure = ol.pseudospectrum(upwind).plot()
