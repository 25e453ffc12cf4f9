"""Step-size control: controllers, the laws of step size, and the functions that propose and judge a step.

The measures that a step size may depend on are in `odelab.stiffness`; the engines that call propose and judge are in
`odelab.engines`."""
