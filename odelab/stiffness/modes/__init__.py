"""Which components make a problem stiff: the groups of its modes, and how much of each component takes part in them.

A mode is an eigenvector of the Jacobian; its rate is the eigenvalue."""
