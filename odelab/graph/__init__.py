"""The expression graph: what a user's function computes, as a list of operations on numbers.

`tracing` runs a function on nodes instead of numbers and so builds its graph; the other modules compute, compare and
differentiate a graph. What prints a graph as machine code is not here.
"""
