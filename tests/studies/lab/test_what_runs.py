"""The digests of code cover what runs: every file of which a function is called while a network is trained or measured.

Somebody who lets a training or a measurement go through a further file is told by these tests to list it in
`netbridge.code_digests`.
"""

import dataclasses
import sys
from pathlib import Path

import pytest

import netbridge as nb
from netbridge import data as datasets
from netbridge.code_digests import MEASURING, ROOT, TRAINING, files_of
from studies import detect as detection
from studies import tns_at_work
from studies.asr import evidence as asr
from studies.lab import definitions, jobs, measurements
from tests.studies.asr.made_up import plan_of
from tests.studies.tns_at_work.test_tns_at_work import small_run

SILENT = {  # no number goes through them
    ROOT / name
    for name in (
        "odelab/files/atomic.py",
        "netbridge/progress.py",
        "netbridge/allocator.py",
        "netbridge/code_digests.py",
    )
}


def files_run_by(call) -> set[Path]:
    """The files of the packages of which `call` runs a function; it is called twice, so that imports are over."""
    call()
    seen = set()

    def note(frame, event, argument):
        seen.add(frame.f_code.co_filename)  # of a call, as nothing is returned that would be told of lines

    before = sys.gettrace()
    sys.settrace(note)
    try:
        call()
    finally:
        sys.settrace(before)
    packages = [ROOT / "odelab", ROOT / "netbridge"]
    return {path for path in map(Path, seen) if any(package in path.parents for package in packages)} - SILENT


def not_listed(call, listed) -> list[str]:
    ran = files_run_by(call)
    assert len(ran) > 5
    return sorted(str(path.relative_to(ROOT)) for path in ran - set(files_of(listed)))


def job_of(controller="stepnet", network="resnet", **more):
    shape = (14, 4) if network == "resnet" else (2, 32)
    recipe = jobs.recipe_of("short", "digits", network=network, epochs=1)
    return jobs.Job("digits", controller, 0, recipe, *shape, network=network, images=128, **more)


@pytest.fixture(scope="module")
def digits():
    data = datasets.load("digits")
    return dataclasses.replace(data, test_images=data.test_images[:60], test_labels=data.test_labels[:60])


JOBS = {
    "resnet": job_of(),
    "asr, noise, mixtures": dataclasses.replace(
        job_of("asr(se)", noise=(0.8, 0.8, 0.1)),
        recipe=jobs.recipe_of("short", "digits", epochs=1, mixup=0.5, cutout=4, policy="trivial", sam=0.05),
    ),
    "transformer": job_of("se", "vit"),
}


@pytest.mark.parametrize("name", JOBS)
def test_what_trains_is_listed(name, digits, tmp_path):
    job = JOBS[name]
    paths = iter((tmp_path / "one.safetensors", tmp_path / "two.safetensors"))
    data = job.data_of(digits)
    assert not_listed(lambda: jobs.train(job, data, next(paths), "lab", "cpu"), TRAINING) == []


@pytest.mark.parametrize("name", JOBS)
def test_what_measures_is_listed(name, digits):
    job = JOBS[name]
    net = job.untrained_network(10, digits.size).eval()
    net.about = {"test_accuracy": 0.1, "test_errors": 1, "test_loss": 2.0, "seconds": 1.0}
    net.normalisation = digits.normalisation
    assert not_listed(lambda: measurements.measure_network(job, net, digits, "cpu"), MEASURING) == []


def test_what_measures_a_network_of_somebody_elses_is_listed(own, digits):
    definitions.run_file(own)
    net = definitions.networks["same"](10).eval()
    images = digits.normalised(digits.test_images[:8])
    assert not_listed(lambda: nb.trace(net, images).tns(), MEASURING) == []


def test_what_measures_for_asr_is_listed(digits, tmp_path):
    run = plan_of(tmp_path, depth=14).part("controls")[-1]
    net = run.job.untrained_network(10).eval()
    net.about = {"test_errors": 1, "test_loss": 2.0, "seconds": 1.0}
    log = tmp_path / "log.jsonl"
    log.write_text('{"recipe": {}, "device": "cpu", "torch": "2"}\n')
    assert not_listed(lambda: asr.measure(run, net, digits, log), (*MEASURING, *asr.ROOMS)) == []


def test_what_puts_tns_into_a_loss_is_listed(tmp_path):
    both = (*TRAINING, *MEASURING)
    assert not_listed(lambda: tns_at_work.carry_out(small_run(0.01), tmp_path, device="cpu"), both) == []


def test_what_trains_and_measures_detectors_is_listed(tmp_path):
    pytest.importorskip("pycocotools")
    run = detection.smoke()[0]
    data = detection.scenes(run, tmp_path)
    both = (*TRAINING, *MEASURING, *detection.ROOMS)
    machine = detection.Machine("cpu")
    assert not_listed(lambda: detection.carry_out(run, data, tmp_path, machine=machine), both) == []
