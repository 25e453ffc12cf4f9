"""The claims of the block-level paper and the rules that judge them, a module for each group of claims.

Each judge takes numbers and returns a verdict with its words, so that made-up numbers can reach every verdict in a
test; `evidence` says where the numbers are from. Which rules changed after first numbers had been seen stands at each
of them. Nothing is measured here.
"""

import dataclasses
import re
from collections.abc import Sequence

from studies.block_stiffness.findings import answers, blocks, equivalence, printed
from studies.block_stiffness.findings.evidence import Evidence
from studies.block_stiffness.report.figures import LABELS
from studies.lab.verdicts import Finding

ALSO_PROSE = ("negative", "zero", "positive", "amplified", "stiff")  # names of measures that sentences use as well
IN_WORDS = {name: words for name, words in LABELS.items() if name not in ALSO_PROSE} | {"residual": "branch"}


def judge_all(found: Evidence, names: Sequence[str] = ()) -> list[Finding]:
    """Every claim in the order of the paper.

    found  the evidence
    names  of the blocks, which sentences call by their number
    """
    findings = [] if found.printed is None else [printed.judge_print(found.printed)]
    findings += [
        blocks.judge_depth(found.networks, found.slices),
        blocks.judge_labels(found.components, found.label_orders),
        answers.RULES["accuracy"]([one for one in found.relations if one.target == "accuracy"], answers.CLAIMED),
        answers.RULES["loss"]([one for one in found.relations if one.target == "loss"], answers.LOSS),
        blocks.judge_stiff(found.networks),
        equivalence.judge_fits(found.fits, found.solved),
        blocks.judge_inputs(found.orders),
        answers.judge_errors(found.networks, found.errors),
        answers.RULES["flips"](found.turned, answers.TURNED),
    ]
    return [in_words(one, names) for one in findings]


def in_words(finding: Finding, blocks: Sequence[str] = ()) -> Finding:
    """The finding with measures and readings called as in the figures, and the named blocks by their number."""
    words = IN_WORDS | {name: f"block {number}" for number, name in enumerate(blocks, 1)}
    names = "|".join(map(re.escape, words))
    return dataclasses.replace(finding, words=re.sub(rf"\b({names})\b", lambda name: words[name[1]], finding.words))
