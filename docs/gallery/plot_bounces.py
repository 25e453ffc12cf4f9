"""
A ball that bounces
===================

An event changes the state at every impact; the run goes on behind it.
"""

import odelab as ol


def flight(t, u, params):
    return u[1], -9.81


impact = ol.Event(lambda t, u, params: u[0], direction=-1, change=lambda t, u, params: [0.0, -0.8 * u[1]])
problem = ol.Problem(flight, [10.0, 0.0], (0.0, 8.0), name="ball")
figure = ol.solve(problem, ol.DOPRI5, events=impact).plot("solution", components=[0])
