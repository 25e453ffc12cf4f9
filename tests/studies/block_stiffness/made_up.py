"""Made-up rows of networks, components, correlations and fits, as the rules of the block study take them."""

import numpy as np

from studies.block_stiffness.evidence import Component, Fit, Relation
from studies.block_stiffness.networks import ERROR, FROZEN


def row(network="a", block=1, stage=0, lowest=-1.0, error=0.5, max_re=1.0, **more):
    four = [lowest / 2, lowest / 2, lowest, lowest / 4]
    made = {name: [1.0] * 4 for name in (*FROZEN, *ERROR)}
    made |= {"min_re": four, "max_re": [max_re] * 4, "step_error": [error] * 4}
    about = {"network": network, "controller": "constant", "seed": 0, "accuracy": 0.9, "images": 4, "step_size": 1.0}
    return about | {"block": block, "stage": stage} | made | more


def component(f, n=3400, reading="slices", measure="negative", block=1):
    return Component(f"stages.0.blocks.{block}", reading, measure, f, 10, n)


def relation(r, measure="negative", target="loss", n=3400, block="stages.2.blocks.1", reading="slices"):
    return Relation(block, reading, measure, target, r, n)


def fits(lengths, seeds=5):
    factors = np.exp(0.1 * np.random.default_rng(0).standard_normal(seeds))
    scales = ((0.3, 0.01), (3.0, 4.0))
    return [
        Fit(rounds, seed, 0.7, 0.7, apart * float(factors[seed]), 0.0, 0.0, 50, scales)
        for rounds, apart in lengths.items()
        for seed in range(seeds)
    ]  # fmt: skip
