"""What a user's file defines takes part in studies, under the file's digest, and moves no verdict of theirs."""

import concurrent.futures
import dataclasses
import importlib
import json

import numpy as np
import pytest

from netbridge import data as datasets
from netbridge.train import recipe
from studies import population, tns_at_work, tricks
from studies.lab import definitions, jobs, measurements

HOW = recipe("digits", epochs=1, batch=64, evaluate_every=100)


def job_of(**changes):
    return dataclasses.replace(jobs.Job("noise", "constant", 0, HOW, 14, 4, size=8), **changes)


def test_a_networks_name_knows_the_file_that_defines_it(own):
    job, inside, other = (job_of(controller=name) for name in ("halved", "asr(halved)", "unhalved"))
    before = [one.specification for one in (job, inside, other)]
    definitions.run_file(own)
    first = [one.specification.get("defined") for one in (job, inside, other)]
    assert "defined" not in before[0]
    assert first[0] == first[1] == first[2] is not None  # the data set is the file's, too
    assert "defined" not in job_of(controller="unhalved", dataset="digits").specification
    assert "defined" in job_of(dataset="digits", network="same").specification
    own.write_text(own.read_text() + "\n# changed\n")
    stem = job.stem
    definitions.run_file(own)
    assert job.specification["defined"] != first[0]
    assert job.stem != stem


def test_everything_of_the_files_takes_the_place_of_constant_step_sizes(own):
    definitions.run_file(own)
    like = [job_of(seed=seed, depth=depth) for seed in (0, 1) for depth in (14, 20)]
    found = jobs.of_ones_own(like, (own,))
    assert [(one.controller, one.network, one.depth, one.seed) for one in found] == [
        ("halved", "resnet", 14, 0),
        ("constant", "same", 20, 0),  # once: it has no depth that a study could choose
        ("halved", "resnet", 20, 0),
        ("halved", "resnet", 14, 1),
        ("constant", "same", 20, 1),
        ("halved", "resnet", 20, 1),
    ]
    assert len({one.stem for one in found}) == len(found)
    assert {one.network for one in jobs.of_ones_own(like, (own,), networks=False)} == {"resnet"}
    assert jobs.of_ones_own(like, ()) == []


def test_the_plans_of_the_studies_stay_as_they_are(own):
    def plans():
        work = tns_at_work
        return [tricks.queue(), population.queue(), work.weighted_runs("digits"), work.architectures("digits")]

    before = [[one.specification for one in plan] for plan in plans()]
    definitions.run_file(own)
    assert [[one.specification for one in plan] for plan in plans()] == before
    assert len(jobs.of_ones_own(tricks.queue(), (own,))) == 2 * len(tricks.queue())
    assert len(population.of_ones_own((own,))) == 2 * population.ROUNDS
    assert all(population.is_core(one.specification) for one in population.of_ones_own((own,)))
    first, second = tns_at_work.of_ones_own((own,), "digits")
    assert len(first) == len(tns_at_work.WEIGHTS) * tns_at_work.SEEDS
    assert len(second) == len(tns_at_work.DEPTHS) * len(tns_at_work.WIDTHS) + 1


def test_a_network_on_a_data_set_of_ones_own_is_measured_here_and_by_an_executor(own, tmp_path):
    definitions.run_file(own)
    job = job_of(network="same")
    assert measurements.work_off([job], tmp_path / "here", ()) == []
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        measurements.work_off_on(executor, [job], tmp_path / "there", (), say=lambda line: None, files=(own,))
    here, there = (measurements.find(job, (tmp_path / name,)) for name in ("here", "there"))
    assert here.numbers["controller"] == "same"
    assert here.arrays["nsi_slope"].shape == (8, 3)
    assert np.array_equal(here.arrays["nsi_slope"], there.arrays["nsi_slope"])


def test_what_a_study_cannot_take_is_named(own):
    definitions.take_all("tricks", (own,), "noise")
    with pytest.raises(SystemExit, match="`--dataset` knows cifar10, cifar100, stl10, digits, noise, got 'nope'"):
        definitions.take_all("tricks", (own,), "nope")
    definitions.datasets["on the disk"] = lambda root: object()
    with pytest.raises(SystemExit, match="'on the disk' must be in memory"):
        measurements.images_of("on the disk", None, None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tricks", "population", "tns_at_work"])
def test_no_verdict_moves_and_the_report_shows_ones_own(name, own, tmp_path, monkeypatch):
    study = importlib.import_module(f"studies.{name}")
    chosen = {"seeds": 2, "dataset": "noise"}
    if name == "tns_at_work":
        monkeypatch.setattr(study.population, "BRIEF", dataclasses.replace(study.population.BRIEF, epochs=1))
        for constant, few in (("CONTROLLERS", ("constant", "se")), ("DEPTHS", (20,)), ("WIDTHS", (4,))):
            monkeypatch.setattr(study, constant, few)
    else:
        small = [dataclasses.replace(one, dataset="noise") for one in study.smoke()]
        monkeypatch.setattr(study, "queue", lambda *_, **__: small)
    if name == "population":
        chosen["rounds"] = chosen.pop("seeds")
        monkeypatch.setattr(study, "BRIEF", dataclasses.replace(study.BRIEF, epochs=1))
    definitions.run_file(own)
    study.main(study.Arguments(train=True, threads=1, out=tmp_path, **chosen))
    alone = json.loads((tmp_path / "record.json").read_text())["numbers"]
    study.main(study.Arguments(train=True, threads=1, out=tmp_path, define=(own,), **chosen))
    beside = json.loads((tmp_path / "record.json").read_text())["numbers"]
    shown = {key for key in beside if key.startswith("own")}
    assert shown == ({"own_weights", "own_architectures"} if name == "tns_at_work" else {"own"})
    counted = "measured by"  # of all that is shown, one's own as well
    rest = {key: value for key, value in beside.items() if key not in {*shown, counted}}
    assert rest == {key: value for key, value in alone.items() if key != counted}
    assert "halved" in str([beside[key] for key in shown])
    assert "same" in str([beside[key] for key in shown])


def test_the_data_sets_name_is_the_users(own):
    definitions.run_file(own)
    assert isinstance(measurements.images_of("noise", 8, None), datasets.Dataset)
    assert measurements.images_of("noise", 8, None).size == 8
