"""Figures fit for a paper. matplotlib is imported inside each, so that `import odelab` does without it."""

from odelab.plot.along_a_run import indicators as indicators
from odelab.plot.convergence import orders as orders
from odelab.plot.cost import work_precision as work_precision
from odelab.plot.region import pseudospectrum as pseudospectrum
from odelab.plot.region import stability_region as stability_region
from odelab.plot.solution import trajectory as trajectory
