"""Derivatives of right-hand sides, and solvers of linear systems, for linearly implicit steps.

The step itself is `odelab.core.rosenbrock_step_of`; measures made of Jacobians are in `odelab.stiffness`."""
