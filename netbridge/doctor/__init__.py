"""The doctor of networks: which blocks are stiff as steps of Euler's method, by which reading, what a swap changes."""
