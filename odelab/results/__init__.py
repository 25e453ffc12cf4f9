"""What every result can do: draw itself, show itself in a notebook, become a table, and be kept in a file.

The results themselves are where they are made: runs in `odelab.runs`, ensembles in `odelab.engines.lanes`, measures in
`odelab.stiffness`."""

from odelab.results.shown import Result as Result
from odelab.results.shown import named_components as named_components
