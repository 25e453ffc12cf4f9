"""The queue of the population: complete, without a network twice, and balanced wherever it is stopped."""

from collections import Counter
from pathlib import Path

import pytest

from studies import population as study
from studies.lab.networks import CONTROLLERS

QUEUE = study.queue()


def core_of(runs):
    return [job for job in runs if study.is_core(job.specification)]


def test_every_network_is_there_once():
    assert len(QUEUE) == len({job.stem for job in QUEUE}) == 240
    counts = Counter(job.controller for job in core_of(QUEUE))
    assert counts.pop("constant") == 20
    assert counts == dict.fromkeys(CONTROLLERS[1:], 10)
    spread = Counter((job.depth, job.width) for job in QUEUE if not study.is_core(job.specification))
    assert len(spread) == 12
    assert set(spread.values()) == {10}


@pytest.mark.parametrize("stopped", [1, 7, 24, 25, 60, 100, 143, 239])
def test_it_is_balanced_wherever_it_is_stopped(stopped):
    runs = QUEUE[:stopped]
    core = core_of(runs)
    assert abs(2 * len(core) - stopped) <= 1
    counts = Counter(job.controller for job in core)
    others = [counts[name] for name in CONTROLLERS[1:]]
    assert max(others) - min(others) <= 1
    assert stopped < 24 or counts["constant"] >= min(others) + 1


def test_words_are_of_the_networks_that_are_shipped():
    papers = Path(__file__).parents[3] / "docs" / "papers.md"
    assert f"Of 240 small networks {study.NETWORKS_NOW} were measured" in papers.read_text()
    assert f"Last result ({study.NETWORKS_NOW} of 240 networks" in study.__doc__
