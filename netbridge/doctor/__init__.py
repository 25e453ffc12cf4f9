"""The doctor of networks: which blocks are stiff as steps of Euler's method, by which reading, what a swap changes.

Indices are measured in `netbridge.tracing`, whole spectra in `netbridge.spectrum`; what is here finds as much of an
edge of a spectrum as a sentence needs, and says in words and on a page what it means."""
