"""
Work against precision
======================

Four methods on Robertson's kinetics, whose explicit steps cost the same at every tolerance.
"""

import odelab as ol

methods = [ol.DOPRI5, ol.RODAS4, ol.RODAS5P, ol.AUTO]
figure = ol.work_precision(ol.problems.robertson(), methods).plot("cost")
