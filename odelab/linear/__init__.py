"""What a linearly implicit step needs beside its tableau: derivatives of right-hand sides, and solvers of its linear
systems.

The step itself is `odelab.core.rosenbrock_step_of`; measures made of Jacobians are in `odelab.stiffness`."""
