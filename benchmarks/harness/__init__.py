"""How anything is timed: clocks, contestants in turns, rows of a table, what the machine is.

What is timed is in `benchmarks.ode` and `benchmarks.net`."""
