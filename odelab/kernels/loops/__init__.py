"""The loops around attempts, as IR: of one run and of an ensemble in lanes, each by one method or by two.

The attempts themselves are those of `odelab.kernels.attempt`, the rule of two methods is `odelab.control.turns`."""
