"""
Where a run's steps lean on the boundary of stability
=====================================================

Every dot is h times an eigenvalue of the Jacobian along the run: stability, not accuracy, chooses the steps.
"""

import odelab as ol

problem = ol.problems.van_der_pol(mu=50.0).replace(t_span=(0.0, 120.0))
figure = ol.solve(problem, ol.DOPRI5).plot("region", samples=400)
