"""
How far an eigenvalue can be moved
==================================

The Jacobian of an advection problem is far from normal: its eigenvalues say little about its transients.
"""

import odelab as ol

figure = ol.pseudospectrum(ol.jacobian(ol.problems.advection_1d(30))).plot()
