"""
A transistor amplifier
======================

Eight voltages, with a mass matrix that is singular: differential and algebraic equations in one.
"""

import odelab as ol

figure = ol.solve(ol.problems.transistor_amplifier(), ol.RODAS5P).plot("solution")
