"""
What methods cost at one error
==============================

The doctor runs each method at the tolerance with which it makes the error of the plain call.
"""

import odelab as ol

figure = ol.diagnose(ol.problems.hires()).plot("costs")
