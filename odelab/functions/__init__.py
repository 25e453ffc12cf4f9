"""Users' functions, followed on the nodes of a graph: what they may use, what they have captured, what comes of it.

The graph itself is in `odelab.graph`; what is made of it, in `odelab.kernels`."""
