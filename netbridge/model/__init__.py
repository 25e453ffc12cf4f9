"""Residual networks of our own: blocks, stages, the network, and the one place where they meet odelab's `integrate`.

Step sizes are in `netbridge.step_sizes`; other people's networks are never built here, see `netbridge.foreign`."""
