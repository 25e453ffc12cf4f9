"""Kernels of runs by two methods: the attempts of both in one loop, with the rule that chooses between them.

The attempts themselves are those of `odelab.kernels.attempt`; the rule is `odelab.control.turns`."""
