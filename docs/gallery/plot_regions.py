"""
Stability regions
=================

Inside each line h lambda is stable for that method: a step multiplies no error by more than 1.
"""

import odelab as ol

figure = ol.plot.stability_region([ol.EULER, ol.HEUN, ol.RK4, ol.DOPRI5])
