"""The inside of a step in kernels: the state at any time of it, how far that can be trusted, and where events are zero.

What becomes of a run at an event is decided in `odelab.engines` and `odelab.runs`."""
