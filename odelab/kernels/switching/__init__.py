"""Kernels of runs by two methods: the attempts of both in one loop or in two pools, with the rule that chooses.

The attempts themselves are those of `odelab.kernels.attempt`; the rule is `odelab.control.turns`."""
