"""Cells of the tables of several studies: intervals, deviations over seeds, p-values; a cell may be empty."""

import numpy as np

from studies.lab.comparisons import seed_deviation
from studies.lab.statistics import Estimate, chance_text, interval_text


def interval_cell(beyond: dict[str, Estimate], name: str, form: str = "+.2f") -> str:
    """The estimate of this name with its interval; empty where there is none."""
    return interval_text(beyond[name], form) if name in beyond else ""


def deviation_cell(values, alone: str = "", form: str = ".2f") -> str:
    """The standard deviation over seeds; of a single value, what `alone` says."""
    return f"{seed_deviation(values):{form}}" if len(values) > 1 else alone


def chance_cell(p: float) -> str:
    """A p-value, "< 0.001" or "0.012"; empty where there is none."""
    return chance_text(p).removeprefix("= ") if np.isfinite(p) else ""


def signed_cell(value: float) -> str:
    """A number with its sign; empty where there is none."""
    return f"{value:+.2f}" if np.isfinite(value) else ""
