"""What several seeds allow one to say about networks trained in different ways. Statistics only."""

import numpy as np
from scipy import stats

from studies.lab.statistics import LEVEL, Estimate


def against(control: str, groups: dict[str, list[float]]) -> dict[str, Estimate]:
    """How far the mean of every other group is above that of `control`, with intervals that hold all together.

    Tukey and Kramer: one spread over seeds, pooled, and all pairs of groups covered at once. A group of one seed has a
    difference and no interval.
    """
    groups = {name: np.asarray(values, dtype=float) for name, values in groups.items() if len(values)}
    if control not in groups:
        return {}
    several = [name for name, values in groups.items() if len(values) > 1]
    intervals = {}
    if control in several and len(several) > 1 and any(np.ptp(groups[name]) > 0 for name in several):
        found = stats.tukey_hsd(*(groups[name] for name in several)).confidence_interval(LEVEL)
        column = several.index(control)
        intervals = {name: (found.low[row, column], found.high[row, column]) for row, name in enumerate(several)}
    return {
        name: Estimate(
            float(values.mean() - groups[control].mean()), *map(float, intervals.get(name, (np.nan, np.nan)))
        )
        for name, values in groups.items()
        if name != control
    }


def spread(values) -> float:
    """The standard deviation over seeds; NaN of a single one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
