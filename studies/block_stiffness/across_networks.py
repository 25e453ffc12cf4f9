"""What all networks together say: ends of spectra along depth, orders of labels, and which measure tells Euler's error.

The rows are those of `every_network`, one per network and block.
"""

import itertools
from collections.abc import Iterable

import numpy as np
from scipy import stats

from studies.block_stiffness.analysis import holm
from studies.block_stiffness.every_network import BY_LABEL, LIVE, STATISTICS
from studies.lab.statistics import interval_text, mean_with_interval

PREDICTORS = (
    "nsi", "alive", "max_re", "min_re", "stiffness_index", "spectral_radius", "stable_step", "log_norm", "soderlind",
    "largest_singular", "negative", "zero", "positive", "non_normality",
)  # fmt: skip
LIMIT = -2.0  # below it a decaying mode grows under Euler's step of size 1


def value(row: dict, measure: str, statistic: str = "median") -> float:
    """A statistic of a measure over images; NaN where the row has none. Of some measures the mean alone is kept."""
    kept = row.get(measure)
    if isinstance(kept, float):
        return kept
    return kept[STATISTICS.index(statistic)] if kept else float("nan")


def by_network(rows: Iterable[dict]) -> dict[str, list[dict]]:
    """The rows of each network in the order of its blocks."""
    found: dict[str, list[dict]] = {}
    for row in rows:
        found.setdefault(row["network"], []).append(row)
    return found


def lowest_real_part(row: dict) -> float:
    """The most negative real part of h lambda at any image, with gates held."""
    return value(row, "min_re", "smallest")


def changes_with_depth(rows: Iterable[dict], measure: str) -> dict[str, np.ndarray]:
    """By network: the mean of a measure in the last stage less that in the first one that has it, and within stages."""
    between, within = [], []
    for blocks in by_network(rows).values():
        by_stage: dict[int, list[float]] = {}
        for row in blocks:
            if np.isfinite(value(row, measure)):
                by_stage.setdefault(row["stage"], []).append(value(row, measure))
        if len(by_stage) > 1:
            between.append(np.mean(by_stage[max(by_stage)]) - np.mean(by_stage[min(by_stage)]))
        several = [values for values in by_stage.values() if len(values) > 1]
        if several:
            within.append(np.mean([values[-1] - values[0] for values in several]))
    return {"from stage to stage": np.array(between), "within a stage": np.array(within)}


def label_orders(rows: list[dict]) -> list[dict]:
    """Do networks order the labels alike? A row per block and measure, with the networks of one shape as units.

    Friedman's test that the labels do not differ, Holm's correction over the rows, and the mean rank correlation of two
    networks' means by label; only networks of which every label is known.
    """
    made = []
    for block in sorted({row["block"] for row in rows}):
        for measure in BY_LABEL:
            column = f"{measure}_by_label"
            values = np.array([row[column] for row in rows if row["block"] == block and column in row])
            if values.ndim != 2 or len(values) < 3:
                continue
            pairs = [stats.spearmanr(one, other).statistic for one, other in itertools.combinations(values, 2)]
            p = float(stats.friedmanchisquare(*values.T).pvalue)
            made.append({"block": block, "measure": measure, "networks": len(values), "p": p, "p, Holm": p})
            made[-1]["Spearman of two networks, mean"] = float(np.mean(pairs))
    for row, p in zip(made, holm([row["p"] for row in made]), strict=True):
        row["p, Holm"] = p
    return made


def predictors(rows: list[dict], measures=PREDICTORS) -> list[dict]:
    """Which measure of a block tells Euler's error, over the blocks of all networks? The best one first.

    Spearman's correlation over the blocks of a network, averaged over networks with its interval; and how much of the
    variance of log(error) a line through log|measure| explains in networks that were left out of the fit, one network
    at a time (below 0 where the mean would have been the better guess).
    """
    relations = error_relations(rows, measures)
    made = []
    for measure in measures:
        groups = []
        for blocks in by_network(rows).values():
            x, y = ([value(row, name) for row in blocks] for name in (measure, "step_error"))
            with np.errstate(divide="ignore"):
                pairs = np.log(np.abs([x, y]))
            groups.append(pairs[:, np.isfinite(pairs).all(0)])
        if measure in relations and sum(group.shape[1] for group in groups) > 8:
            one = relations[measure]
            made.append(
                {
                    "measure": measure,
                    "networks": len(groups),
                    "Spearman within networks": interval_text(one, "+.2f"),
                    "R2, left-out networks": r2_left_out(groups),
                }
            )
    return sorted(made, key=lambda row: -row["R2, left-out networks"])


def r2_left_out(groups: list[np.ndarray]) -> float:
    """R2 of a line fitted to all groups (2, n) but one, on that one, over all groups together."""
    missed = total = 0.0
    for place, (x, y) in enumerate(groups):
        others = np.concatenate([group for number, group in enumerate(groups) if number != place], axis=1)
        slope, start = np.polyfit(others[0], others[1], 1)
        missed += float(np.square(y - (start + slope * x)).sum())
        total += float(np.square(y - others[1].mean()).sum())
    return 1.0 - missed / total if total > 0.0 else float("nan")


def error_relations(rows: list[dict], measures=("max_re", "min_re", "stiffness_index", "spectral_radius", "nsi")):
    """{measure: Spearman's correlation with Euler's error over the blocks of a network, averaged over networks}."""
    result = {}
    for measure in measures:
        found = []
        for blocks in by_network(rows).values():
            x, y = ([value(row, name) for row in blocks] for name in (measure, "step_error"))
            if len(blocks) > 3 and np.isfinite([*x, *y]).all() and np.ptp(x) > 0.0:
                found.append(stats.spearmanr(x, y).statistic)
        if len(found) > 1:
            result[measure] = mean_with_interval(found)
    return result


def network_rows(rows: list[dict]) -> list[dict]:
    """A row per network: its accuracy, its stiffest block, and the block with the largest error of the step."""
    result = []
    for name, blocks in by_network(rows).items():
        stiffest = min(blocks, key=lowest_real_part)
        worst = max(blocks, key=lambda row: value(row, "step_error"))
        result.append(
            {
                "network": name,
                "accuracy, %": 100 * blocks[0]["accuracy"],
                "images": blocks[0]["images"],
                "min Re h lambda": lowest_real_part(stiffest),
                "in block": stiffest["block"],
                "blocks beyond -2": sum(lowest_real_part(row) < LIMIT for row in blocks),
                "max Re h lambda": max(value(row, "max_re", "largest") for row in blocks),
                "largest error": value(worst, "step_error"),
                "of block": worst["block"],
            }
        )
    return result


def controller_rows(rows: list[dict]) -> list[dict]:
    """A row per controller: its step sizes, and what is added where they are differentiated and not held."""
    result = []
    for controller in dict.fromkeys(row["controller"] for row in rows):
        blocks = [row for row in rows if row["controller"] == controller]
        ends = {}
        for measure, name in zip(LIVE, ("max Re", "min Re"), strict=True):
            if not any(f"{measure}_held_and_live" in row for row in rows):
                continue
            pairs = [row[f"{measure}_held_and_live"] for row in blocks if f"{measure}_held_and_live" in row]
            changes = [live - held for held, live in pairs]
            ends[f"{name}, live less held"] = float(np.mean(changes)) if changes else float("nan")
            ends[f"{name}, largest change"] = float(np.max(np.abs(changes))) if changes else float("nan")
        result.append(
            {
                "controller": controller,
                "networks": len({row["network"] for row in blocks}),
                "step size, mean": float(np.mean([row["step_size"] for row in blocks])),
                "smallest": min(row["step_size"] for row in blocks),
                "largest": max(row["step_size"] for row in blocks),
                "h rho, median": float(np.median([value(row, "spectral_radius") for row in blocks])),
                **ends,
                "error, median": float(np.median([value(row, "step_error") for row in blocks])),
            }
        )
    return result
