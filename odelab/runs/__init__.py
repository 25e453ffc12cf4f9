"""What comes out of a run: the trajectory, its dense output, its events, and the words on how it ended.

Runs are made in `odelab.engines`; measures of stiffness along them are in `odelab.stiffness`."""
