"""
What limits each step
=====================

Each dot is a step of DOPRI5 on van der Pol's oscillator. In the slow phases stability holds the steps back.
"""

import odelab as ol

problem = ol.problems.van_der_pol(mu=50.0).replace(t_span=(0.0, 120.0))
figure = ol.solve(problem, ol.DOPRI5).plot("limited_by")
