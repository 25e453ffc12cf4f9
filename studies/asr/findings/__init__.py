"""Claims of the paper and the verdicts of these data; every rule stands here.

The rules were written before any number, but for one: findings 1 and 9 are decided by the arm with r = 4 alone where
the literal arm lacks seeds, which was settled when two seeds had been seen. Some claims were given more cases later,
each before any number of those cases was known: a small scale (uses, psi, ASR beside a module), larger images (speed),
and transformers (spatial attention).

A claim over several cases (modules, blocks, noises, arms) is supported where every case's interval lies on its side,
contradicted where every one lies on the other, true of some where both happen, and undecided otherwise. Seeds need to
be at least three in every arm of a comparison for an interval to be believed. Where a claim is asked at several scales,
under several noises or on several backbones, those decide whose arms all have their three seeds; the others are named.
"""

from studies.asr.findings.accuracy import (
    attention,
    beside,
    bound,
    constant_noise,
    gain,
    learnt_psi,
    random_noise,
    reparameterised,
    several_uses,
    transformers,
)
from studies.asr.findings.attention_values import (
    approach,
    embody,
    finetuned,
    first_decay,
    papers_loss,
    spatial,
    stand_in,
    stripes,
)
from studies.asr.findings.evidence import Evidence
from studies.asr.findings.whole_networks import centre, paints_alike, slower
from studies.lab.statistics import Finding

IN_ORDER = (  # of the paper's claims
    gain,
    attention,
    approach,
    stripes,
    embody,
    stand_in,
    papers_loss,
    finetuned,
    first_decay,
    constant_noise,
    random_noise,
    bound,
    several_uses,
    learnt_psi,
    beside,
    reparameterised,
    transformers,
    slower,
    paints_alike,
    centre,
    spatial,
)


def findings(e: Evidence) -> list[Finding]:
    """The verdict on every claim, in the order of the paper."""
    return [rule(e) for rule in IN_ORDER]
