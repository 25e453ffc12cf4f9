"""Somebody else's networks: a pass is watched and written down, and the residual steps are found among its operations.

Nothing here changes a network. The indices themselves are formed in `netbridge.tracing`."""
