"""Figures fit for a paper. matplotlib is imported inside each, so that `import odelab` does without it."""

from odelab.plot.indicators import indicators as indicators
from odelab.plot.stability_region import stability_region as stability_region
from odelab.plot.trajectory import trajectory as trajectory
from odelab.plot.work_precision import work_precision as work_precision
