"""Results and evidence for the tests of asr, with numbers of one's own."""

import json

import numpy as np

from studies.asr import __main__ as asr
from studies.asr import attention_values, whole_networks
from studies.asr.design import Plan
from studies.asr.evidence import Evidence, Result
from studies.lab.statistics import Estimate


def plan_of(out, **given):
    """The plan of a run on digits, of few images and epochs."""
    defaults = {"dataset": "digits", "epochs": 2, "depth": 8, "images": 128, "own": True, "out": out, "seeds": (3,)}
    return Plan(asr.fill_in_options(asr.Arguments(**{**defaults, **given})))


def block(**given):
    usual = {
        "mean": [0.5, 0.6], "std": [0.1, 0.1], "share": [0.9, 0.8], "alive": [1, 2], "hidden": 4, "origin": 0.7,
        "psi": None, "scale": [1.0, 0.1],
    }  # fmt: skip
    return usual | given


def result(run=None, accuracy=90.0, seed=0, **given):
    """A result as training leaves it."""
    specification = {"seed": seed} if run is None else run.job.specification
    usual = {
        "specification": specification,
        "recipe": {} if run is None else json.loads(json.dumps(run.job.recipe.as_json())),
        "test_errors": round(100 * (100 - accuracy)),
        "test_images": 10_000,
        "test_loss": 0.5,
        "parameters": 1000,
        "blocks": [block()],
        "log": [],
        "made": {"seconds": 1.0},
    }
    return Result(**usual | given)


def seeds_of(mean, count=3, spread=0.1, **given):
    """As many results as seeds, around a mean."""
    offsets = np.linspace(-spread, spread, count) if count > 1 else np.zeros(1)
    return [result(accuracy=mean + offset, seed=seed, **given) for seed, offset in enumerate(offsets)]


def evidence(part="controls", column="", **means):
    """Evidence with arms of three seeds around these means; a mean of None is an arm that was not trained."""
    arms = {name: [] if mean is None else seeds_of(mean) for name, mean in means.items()}
    return Evidence(rows={(part, column): arms})


def shares(name="SE", seed=0, share=0.95, untrained=0.9, origin=0.8, channels=16):
    """One network of three blocks; shares differ by 0.001 from seed to seed."""
    generator = np.random.default_rng(seed)
    start = [generator.uniform(0.3, 0.7, channels) for _ in range(3)]
    value = share + 0.001 * seed
    values = {what: generator.random((20, channels)) for what in ("input, trained", "gate, trained")}
    values["gate, untrained"] = np.full((1, channels), 0.5)
    return attention_values.Shares(
        name,
        seed,
        share=[Estimate(value, value - 0.01, value + 0.01)] * 3,
        untrained=[untrained] * 3,
        pooled=[0.4] * 3,
        classes=[0.2] * 3,
        origin=[origin + 0.001 * seed] * 3,
        start=start,
        end=[x + 0.1 for x in start],
        alive=[2] * 3,
        hidden=[4] * 3,
        stripes=[
            attention_values.Stripes(which, block, value, values) for block, which in ((2, "median"), (1, "least"))
        ],
    )


def replaced(name="SE", seed=0, change=-1.0, width=0.5, share=0.9):
    interval = Estimate(change, change - width, change + width)
    return attention_values.Replaced(name, seed, 90.0, interval, interval, interval, share)


def bounds(name, seed, log):
    line = np.linspace(1.0, log, 3)
    return {
        "name": name, "seed": seed, "bound": line, "alpha": np.ones(3), "norm": np.ones(3) * 9, "growth": 4 * line
    }  # fmt: skip


def maps(name, seed, mass):
    """Class maps of one network; the mass differs by 0.001 from seed to seed."""
    picture = np.full((8, 8), 1 / 64)
    value = mass + 0.001 * seed
    return {
        "name": name, "seed": seed, "mass": Estimate(value, value - 0.01, value + 0.01),
        "shift": 0.5, "padded": 0.4, "cells": 1.5, "straight": picture, "rolled": picture,
    }  # fmt: skip


def painted(arm, loss, seeds=3):
    pictures = np.zeros((2, 3, 8, 8), np.uint8)
    scored = [(loss + 0.001 * seed,) * 3 for seed in range(seeds)]
    return [
        whole_networks.Painted(whole_networks.Painting(arm, "glass", seed), one, one, pictures, {"seconds": 1.0})
        for seed, one in enumerate(scored)
    ]
