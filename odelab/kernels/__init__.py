"""Kernels: solvers written for one right-hand side, method and law, compiled, and kept on disk."""
