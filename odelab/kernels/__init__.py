"""Kernels: attempts as graphs, what solves their linear systems, and the store of what was compiled.

The loops around attempts are in `loops/`, what is asked inside a step in `interior/`, large systems in `large/`.
Nothing here knows how a run is driven; that is the business of `odelab.engines`."""
