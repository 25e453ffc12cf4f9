"""Measurements of networks that were never trained: the truth about them is planted."""

import numpy as np

from studies import population as study
from studies.lab.measurements import Measurement
from studies.lab.networks import controller_name
from studies.lab.stiffness import KINDS, READINGS

QUEUE = study.queue()
NOISES = ("accuracy", "tns", "train_loss", "logits_norm", "sharpness")


def measurement(job, accuracy, tns, train_loss=1.0, logits_norm=5.0, sharpness=1.0) -> Measurement:
    """Of the network of a job; `tns` is a number for all readings, or one for each."""
    numbers = {
        "controller": "ASR(SE)" if job.controller == "asr(se)" else controller_name(job.controller),
        **{"depth": job.depth, "width": job.width, "seed": job.seed, "test_accuracy": accuracy / 100},
        **{"train_loss": train_loss, "logits_norm": logits_norm, "sharpness": sharpness},
        "tns": [float(x) for x in np.broadcast_to(tns, len(READINGS))],
        **{f"nsi_{of}": {"mean": [0.5, 0.4, 0.6]} for of in KINDS},
        "first": [True, False, False],
        "made": {"seconds": 60.0},
    }
    return Measurement(job.specification, numbers, {})


def population(plant, jobs=QUEUE, seed=0) -> study.Networks:
    """Networks of which `plant(job, noise)` gives the fields of `measurement`; noise has a normal number per name."""
    generator = np.random.default_rng(seed)
    noises = [dict(zip(NOISES, generator.normal(size=len(NOISES)), strict=True)) for _ in jobs]
    return study.Networks.of([measurement(job, **plant(job, noise)) for job, noise in zip(jobs, noises, strict=True)])
