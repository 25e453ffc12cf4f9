"""
The step that accuracy allows and the one that is stable
========================================================

Where the first lies above the second, an explicit method is held back: that is stiffness at a tolerance.
"""

import odelab as ol

problem = ol.problems.van_der_pol(mu=100.0)
figure = ol.diagnose(problem).plot("steps")
