"""What decides a step: controllers, the laws of step size and the closed functions that propose and judge a step.

The measures that a step size may react to are in `odelab.stiffness`; who calls propose and judge is in
`odelab.engines`."""
