"""Graphs of operations: nodes, arrays of them, branches, derivatives, values, and their print as arithmetic or as IR.

How a user's function becomes a graph is in `odelab.functions`; kernels are made in `odelab.kernels`."""
