"""Kernels of linearly implicit methods: exact Jacobians by dual numbers, a static sparse elimination, and the text of
one attempt.

The loops round an attempt are those of `odelab.engines.numba.single` and `odelab.engines.lanes.text`."""
