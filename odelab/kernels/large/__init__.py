"""Kernels of large systems: states are arrays, an attempt is a few loops, and one kernel serves every size.

Which rows are alike, `odelab.graph.classes` finds; nothing here is made for a number of components."""
