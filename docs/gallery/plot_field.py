"""
A field over time
=================

More than eight components are drawn as an image: the Brusselator on a line of 40 points, x below and y above.
"""

import odelab as ol

figure = ol.solve(ol.problems.brusselator_1d(), ol.RODAS4).plot("solution")
