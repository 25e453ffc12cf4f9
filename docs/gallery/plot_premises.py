"""
The premises of Theorem 2
=========================

Each hypothesis of the theorem, measured at one state of a matrix that is not normal.
"""

import odelab as ol

figure = ol.theorem2([[-1.0, 1000.0], [0.0, -2.0]], [0.0, 1.0], [1000.0, -2.0]).plot()
