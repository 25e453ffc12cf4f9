"""Areas under the curve: how well an index tells windows of one kind from those of the other."""

import numpy as np


def area_under_curve(values, positive, weights=None) -> float:
    """The chance that a positive case has a larger value than a negative one, ties counting half.

    values     a number per case
    positive   a truth per case
    weights    how much each case counts; all alike by default

    Returns a number from 0 to 1; NaN where all cases are of one kind.
    """
    values, positive = np.asarray(values, dtype=float), np.asarray(positive, dtype=bool)
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=float)
    if positive.all() or not positive.any():
        return float("nan")
    order = np.argsort(values[~positive], kind="stable")
    others = values[~positive][order]
    below = np.concatenate(([0.0], np.cumsum(weights[~positive][order])))
    lower, upper = (below[np.searchsorted(others, values[positive], side)] for side in ("left", "right"))
    total = weights[positive].sum() * below[-1]
    return float(0.5 * (lower + upper) @ weights[positive] / total)


def areas_of_resampled_groups(values, positive, weights, group, counts) -> np.ndarray:
    """`area_under_curve` for every resample of whole groups, as fast as if there were one.

    The chance of a pair is added up once for every pair of groups; a resample weighs those sums.

    values, positive, weights   as `area_under_curve` takes them
    group                       the number of each case's group, from 0 on
    counts                      how often each group was drawn, (resamples, groups)

    Returns the areas, (resamples,); NaN where all cases drawn are of one kind.
    """
    values, positive = np.asarray(values, dtype=float), np.asarray(positive, dtype=bool)
    weights, group, counts = np.asarray(weights, dtype=float), np.asarray(group), np.asarray(counts, dtype=float)
    groups = counts.shape[1]
    order = np.argsort(values[~positive], kind="stable")
    others, of = values[~positive][order], group[~positive][order]
    below = np.zeros((len(others) + 1, groups))  # the weight of each group's negative cases among the first so many
    below[np.arange(1, len(others) + 1), of] = weights[~positive][order]
    below = np.cumsum(below, axis=0)
    lower, upper = (below[np.searchsorted(others, values[positive], side)] for side in ("left", "right"))
    pairs, kinds = np.zeros((groups, groups)), np.zeros((2, groups))
    np.add.at(pairs, group[positive], 0.5 * (lower + upper) * weights[positive][:, None])
    np.add.at(kinds[0], group[positive], weights[positive])
    np.add.at(kinds[1], group[~positive], weights[~positive])
    with np.errstate(divide="ignore", invalid="ignore"):
        return ((counts @ pairs) * counts).sum(axis=1) / ((counts @ kinds[0]) * (counts @ kinds[1]))
