"""
A force that is switched on and off
===================================

The times of the jumps are named, and no step reaches over one.
"""

import odelab as ol


def driven(t, u, params):
    return (-1000.0 * (u[0] - (1.0 if int(t) % 2 else 0.0)),)


problem = ol.Problem(driven, [0.0], (0.0, 6.0), name="switched")
figure = ol.solve(problem, ol.RODAS4, tstops=[1.0, 2.0, 3.0, 4.0, 5.0]).plot()
