"""odelab beside compiled C and other libraries, in one run.

`python -m benchmarks.ode` measures what docs/speed.md shows of equations."""

from benchmarks.harness import one_thread as one_thread  # first, before a numerical library is loaded
