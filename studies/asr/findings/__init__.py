"""Claims of the paper and the verdicts of these data; every rule stands here.

The rules were written before any number, but for two: findings 1 and 9 are decided by the arm with r = 4 alone where
the literal arm lacks seeds, which was settled when two seeds had been seen; and what happens at the first decay is left
open until a network of each of its modules is there, which was settled when one had been seen. Some claims were given
more cases later, each before any number of those cases was known: a small scale (uses, psi, ASR beside a module),
larger images (speed), and transformers (spatial attention).

A claim over several cases (modules, blocks, noises, arms) is supported where every case's interval lies on its side,
contradicted where every one lies on the other, true of some where both happen, and undecided otherwise. Seeds need to
be at least three in every arm of a comparison for an interval to be believed. Where a claim is asked at several scales,
under several noises or on several backbones, those decide whose arms all have their three seeds; the others are named.
"""

import dataclasses

from studies.asr.findings import accuracy, attention_values, whole_networks
from studies.asr.findings.evidence import Evidence
from studies.lab.statistics import UNDECIDED, Finding

IN_ORDER = {  # the rules, in the order of the paper's claims, with the options that find more of what each looks at
    accuracy.gain: "--train --part controls",
    accuracy.attention: "--train --part controls",
    attention_values.approach: "--part stripes",
    attention_values.stripes: "--part stripes",
    attention_values.embody: "--train --part stripes controls",
    attention_values.stand_in: "--part replace",
    attention_values.papers_loss: "--part replace",
    attention_values.loss_after_finetuning: "--train --part replace",
    attention_values.first_decay: "--train --part dynamics",
    accuracy.constant_noise: "--train --part noise",
    accuracy.random_noise: "--train --part noise",
    accuracy.bound: "--train --part theorem",
    accuracy.several_uses: "--train --part ablation",
    accuracy.learnt_psi: "--train --part ablation",
    accuracy.beside: "--train --part beside",
    accuracy.reparameterised_backbones: "--train --part backbones",
    accuracy.transformers: "--train --part backbones",
    whole_networks.slower: "--part speed",
    whole_networks.paints_alike: "--train --part style",
    whole_networks.centre: "--part gradcam",
    attention_values.spatial: "--part spatial",
}


def findings(e: Evidence) -> list[Finding]:
    """The verdict on every claim, in the order of the paper; of an undecided one also the command that finds more."""
    return [with_command(rule(e), options) for rule, options in IN_ORDER.items()]


def with_command(found: Finding, options: str) -> Finding:
    if found.verdict != UNDECIDED:
        return found
    does = "trains what the plan still lacks" if "--train" in options else "looks"
    words = f"{found.words} `python -m studies.asr {options}` {does}."
    return dataclasses.replace(found, words=words)
