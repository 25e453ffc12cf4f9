"""Kernels: attempts as graphs, the loops around them as IR, and the store of what was compiled.

Nothing here knows how a run is driven; that is the business of `odelab.engines`."""
