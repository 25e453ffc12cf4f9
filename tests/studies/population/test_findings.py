"""Verdicts of the population on planted truths: a whole population, and one that one controller makes."""

import numpy as np

from studies import population as study
from studies.lab import measurements
from studies.lab.exhibits import judge
from studies.lab.statistics import Estimate, kendall_within
from studies.lab.stiffness import READINGS, SCALE, SHAPE, TNS
from studies.lab.verdicts import (
    NO_DIFFERENCE,
    SUPPORTED,
    UNDECIDED,
)
from tests.studies.population import planted


def verdicts_of(networks, resamples=60):
    said = judge(study.EXHIBITS, study.Evidence.of(networks, resamples))
    return {finding.claim: finding for finding in said}


def test_a_relation_that_one_controller_makes_is_none():
    """SEM, undertrained and with the largest TNS, stood behind a contradiction that was 0 without it."""
    networks = planted.population(chance, seed=3)
    for quantity in networks.stiffness[TNS].values():
        quantity[networks.controller == "SEM"] += 50.0
    networks.accuracy[networks.controller == "SEM"] -= 50.0
    together = {reading: study.relate(networks, TNS, study.OVER_ALL, reading, 200) for reading in READINGS}
    for reading, one in together.items():
        values = networks.stiffness[TNS][reading], networks.accuracy, np.zeros(len(networks))
        assert kendall_within(*values, 200).high < 0.0  # with networks as units it would be decided
        assert abs(one.without["SEM"].value) < 0.1
    assert study.RELATED[TNS, study.OVER_ALL](together).verdict == UNDECIDED


ABOVE, BELOW, WITHIN = Estimate(2, 1, 3), Estimate(-2, -3, -1), Estimate(0, -1, 1)


def paper(sign):
    """What the paper says, or its opposite."""

    def plant(job, noise):
        skill = {"constant": 0.0, "stepnet": 8.0}.get(job.controller, 4.0) * sign
        accuracy = 70 + skill + noise["accuracy"]
        near = {name: noise[name] for name in ("train_loss", "logits_norm", "sharpness")}
        return {"accuracy": accuracy, "tns": 1 + 0.1 * sign * accuracy + 0.01 * noise["tns"], **near}

    return plant


def test_a_population_as_the_paper_has_it_supports_every_claim_about_tns():
    said = verdicts_of(planted.population(paper(+1)))
    assert {finding.verdict for claim, finding in said.items() if "scale" not in claim} == {SUPPORTED}
    scale = [finding.verdict for claim, finding in said.items() if "scale" in claim]
    assert set(scale) <= {UNDECIDED, NO_DIFFERENCE}  # all networks have the same there
    assert len(said) == len(study.RELATED) + len(study.COMPARED) + 3


def chance(job, noise):
    return {"accuracy": 70 + noise["accuracy"], **{name: noise[name] for name in noise if name != "accuracy"}}


def test_what_is_cited_are_the_measurements_of_a_folder(tmp_path):
    assert study.shipped_findings(tmp_path) == (0, [])
    networks = planted.QUEUE[:6]
    for job in networks:
        found = planted.measurement(job, **paper(+1)(job, dict.fromkeys(planted.NOISES, 0.0)))
        measurements.write(found, tmp_path / f"{job.stem}.npz")
    n, cited = study.shipped_findings(tmp_path)
    assert n == 6
    assert (
        {SHAPE in finding.claim for finding in cited} == {SCALE in finding.claim for finding in cited} == {True, False}
    )
