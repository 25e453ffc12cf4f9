"""
A field over time
=================

More than eight components are drawn as an image: the Brusselator on a line, by the method of lines.
"""

import odelab as ol

figure = ol.solve(ol.problems.brusselator_1d(), ol.RODAS4).plot("solution")
