"""
A phase plane
=============

The Brusselator runs into its limit cycle.
"""

import odelab as ol

figure = ol.solve(ol.problems.brusselator(), ol.DOPRI5).plot("phase")
