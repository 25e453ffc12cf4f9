"""Claims of the paper and the verdicts of these data; every rule stands here, with when it was fixed.

Seeds and networks are the units, intervals that are judged together hold together, and `studies.lab.verdicts` turns
them into words. A claim that is asked at several scales, under several noises or on several backbones is decided by
those whose arms all have their three seeds; the others are named.
"""

import dataclasses

from studies.asr.findings import accuracy, attention_values, whole_networks
from studies.asr.findings.evidence import Evidence
from studies.lab.verdicts import NOT_RUN, UNDECIDED, Finding, Rule

IN_ORDER: dict[Rule, str] = {  # the rules in the order of the paper's claims, with the options that show more of each
    accuracy.judge_gain: "--train --part controls",
    accuracy.judge_attention: "--train --part controls",
    accuracy.judge_module: "--train --part ablation",
    attention_values.judge_approach: "--part stripes",
    attention_values.judge_stripes: "--part stripes",
    attention_values.judge_memory: "--train --part stripes controls",
    attention_values.judge_priors: "--part stripes",
    attention_values.judge_stand_in: "--part replace",
    attention_values.judge_papers_loss: "--part replace",
    attention_values.judge_rest: "--train --part replace",
    attention_values.judge_first_decay: "--train --part dynamics",
    accuracy.judge_constant_noise: "--train --part noise",
    accuracy.judge_more_than_half: "--train --part noise",
    accuracy.judge_random_noise: "--train --part noise",
    accuracy.judge_steadiness: "--train --part noise",
    accuracy.judge_bound: "--train --part theorem",
    accuracy.judge_several_uses: "--train --part ablation",
    accuracy.judge_learnt_psi: "--train --part ablation",
    accuracy.judge_first_value: "--train --part ablation",
    accuracy.judge_beside: "--train --part beside",
    accuracy.judge_other_methods: "--train --part backbones",
    accuracy.judge_transformers: "--train --part backbones",
    whole_networks.judge_speed: "--part speed",
    whole_networks.judge_paintings: "--train --part style",
    whole_networks.judge_centre: "--part gradcam",
    attention_values.judge_spatial: "--part spatial",
}


def findings(e: Evidence) -> list[Finding]:
    """The verdict on every claim, in the order of the paper; of an open one also the command that finds more."""
    return [with_command(rule(e), options) for rule, options in IN_ORDER.items()]


def with_command(finding: Finding, options: str) -> Finding:
    if finding.verdict not in (UNDECIDED, NOT_RUN):
        return finding
    does = "trains what the plan still lacks" if "--train" in options else "looks"
    words = f"{finding.words} `python -m studies.asr {options}` {does}."
    return dataclasses.replace(finding, words=words)
