"""odelab beside compiled C and other libraries, in one run.

`python -m benchmarks.ode` prints the table of the README."""
