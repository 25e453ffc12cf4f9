"""Who runs a problem: plain Python, compiled kernels, SciPy's implicit solvers, and the driver that is the same for
all.

Text of kernels is written in `numba/`, ensembles run in `lanes/`; what comes out of a run is in `odelab.runs`."""
