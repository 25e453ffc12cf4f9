"""What several seeds allow one to say about networks trained in different ways. Statistics only."""

import warnings

import numpy as np
from scipy import stats

from studies._statistics import LEVEL, Estimate


def against(control, groups: dict[str, list[float]]) -> dict[str, Estimate]:
    """How far the mean of every group is above that of `control`, with intervals that hold all together.

    Dunnett 1955: one spread over seeds, pooled over all groups. Without a second seed anywhere there is no interval.
    """
    groups = {name: np.asarray(values, dtype=float) for name, values in groups.items() if len(values)}
    control = np.asarray(control, dtype=float)
    if not len(control) or not groups:
        return {}
    everything = [control, *groups.values()]
    spread = any(np.ptp(values) > 0 for values in everything)
    low = high = np.full(len(groups), np.nan)
    if spread and sum(map(len, everything)) > len(everything):
        with warnings.catch_warnings():
            # two seeds with the same number of errors are no loss of precision
            warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
            test = stats.dunnett(*groups.values(), control=control, random_state=np.random.default_rng(0))
            found = test.confidence_interval(LEVEL)
        low, high = found.low, found.high
    return {
        name: Estimate(float(values.mean() - control.mean()), float(low[place]), float(high[place]))
        for place, (name, values) in enumerate(groups.items())
    }


def spread(values) -> float:
    """The standard deviation over seeds; NaN of a single one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
