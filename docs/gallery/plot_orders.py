"""
Orders in practice
==================

Error against step size; the slope is the order.
"""

import odelab as ol

problem = ol.problems.rigid_body().replace(t_span=(0.0, 4.0))
figure = ol.plot.orders({method.name: ol.observed_order(method, problem) for method in (ol.HEUN, ol.RK4, ol.RODAS4)})
