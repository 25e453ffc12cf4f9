"""The verdict on every claim of the block-level paper: the rules of `findings`, with the numbers of this run."""

import numpy as np
from scipy import stats

from studies.block_stiffness import across_networks, analysis, findings, measures
from studies.block_stiffness.gathering import CLAIMED, TURNED
from studies.block_stiffness.report import tables
from studies.lab.statistics import Estimate, Finding, mean_with_interval, rank_correlation


def verdicts(found: measures.Measured, told: dict, inner: list[str]) -> list[Finding]:
    """Every claim in the order of the paper.

    found   the spectra of the network looked at
    told    what `gathering` and the trainings have computed, by its names
    inner   the blocks that keep the shape
    """
    related, everything = told["related"], told["everything"]
    agreeing, total = tables.agreeing_counts()
    ours, printed = ([row[key] for row in told["untrained"]] for key in ("%, untrained slices", "%, paper"))
    pearson, spearman = np.corrcoef(ours, printed)[0, 1], rank_correlation(ours, printed, stats.spearmanr)[0]
    smallest = {block: float(measures.rows_of(found, block, "residual")["min_re"].min()) for block in inner}
    stiff = {block: share_of_stiff(measures.rows_of(found, block, "residual")) for block in inner}
    depth = {name: analysis.depth_relation(found, name) for name in ("residual", "block")}
    loss = {measure: -sign for measure, sign in CLAIMED.items()}
    orders = {
        f"{name} {one}": analysis.correlate_halves(found, name, one)
        for name in ("residual", "block")
        for one in tables.ENDS
    }
    for row in tables.input_rows(told["inputs"])[1:]:
        orders |= {f"{row['input']}, {measure}": row[f"order of {measure}"] for measure in tables.ENDS}
    rows = [] if everything is None else everything.rows
    across = {}
    if rows:
        across = {
            "last stage less first": across_networks.late_minus_early(rows),
            "last block of a stage less its first": across_networks.within_stages(rows),
        }
    return [
        findings.printed_numbers(agreeing, total, pearson, spearman),
        findings.late_blocks(depth, analysis.slice_relation(found), across, len(inner)),
        findings.block_or_label(told["shares"], told["components"], told["label_orders"]),
        findings.correlates("accuracy", "Tables 1, 4, 7", CLAIMED, [r for r in related if r.target == "accuracy"]),
        findings.correlates("loss", "Tables 1, 4, 7", loss, [r for r in related if r.target == "loss"]),
        findings.anything_stiff(smallest, stiff, rows),
        findings.same_as_ode_net(told["fits"], told["tolerances"]),
        findings.generalises(orders, len(inner)),
        findings.predicts_error(told["errors"], told["between"], across_networks.error_relations(rows)),
        findings.correlates("adversarial examples (FGSM)", "Section 1", TURNED, told["turned"]),
    ]


def share_of_stiff(rows) -> Estimate:
    """The mean share of stiff modes over images, with its interval; where only the ends are known, of those found."""
    known = rows["stiff"][np.isfinite(rows["stiff"])]
    return mean_with_interval(known)
