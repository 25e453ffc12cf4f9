"""Step-size controllers that are learned: a small network that proposes the steps of an ODE solver.

Attention modules, which learn the step sizes of a network, are in `netbridge.step_sizes`."""
