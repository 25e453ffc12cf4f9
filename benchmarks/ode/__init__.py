"""odelab beside compiled C and other libraries, in one run.

`python -m benchmarks.ode` prints the tables of docs/speed.md."""

from benchmarks.harness import one_thread as one_thread  # first, before a numerical library is loaded
