"""Jacobians of blocks: exact spectra of ReLU blocks, matrix-free extremes, and the bound on perturbations of Theorem
6.1.

Eigenvalues are counted by `odelab.spectrum`; nothing here trains or changes a network."""
