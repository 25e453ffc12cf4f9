"""Ensembles: kernels that keep 16 or 32 runs in flight, the threads and executors that feed them, and their results.

A single run never comes here; the door is `odelab.ensemble`."""
