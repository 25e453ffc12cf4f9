"""cifar_tns measures what netbridge and odelab measure, on shipped networks, a stranger's and one's own."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

import netbridge as nb
import odelab as ol
from netbridge.data.datasets import available, load
from studies import cifar_tns as study
from studies.lab import definitions
from studies.lab import networks as networks_
from studies.lab.statistics import choices
from studies.lab.stiffness import measure, set_stiffness


def test_measured_is_traced(networks):
    data = load("digits")
    one = networks_.name_subjects([networks_.read_subject(networks / "1-0.safetensors")])[0]
    found = measure(one, data, 150, "cpu")  # more than a batch
    net = nb.load(networks / "1-0.safetensors")
    images = net.normalise(data.test_images[:150].float() / 255)
    for of in ("slope", "increment"):
        record = nb.trace(net, images, of=of)
        np.testing.assert_allclose(found.records[of].nsi, record.nsi, rtol=1e-4)
    with torch.no_grad():
        right = net(images).argmax(1) == data.test_labels[:150]
        first = net.stages[0].blocks[0]
        state = net.stem(images)
        gate = first.controller(state, first.branch(state)).mean((1, 2, 3))
    assert (found.correct == right.numpy()).mean() > 0.99
    np.testing.assert_allclose(found.gates[:, 0], gate, rtol=1e-4)
    set_stiffness(found, choices(150, 10, 0))
    counted_only = found.records["slope"].counted()
    assert found.tns["slope", "dataset"].value == pytest.approx(
        ol.tns(counted_only.nsi, counted_only.stage, "dataset").mean()
    )
    assert found.accuracy == pytest.approx(91.0)


def test_constant_steps_are_one(networks):
    one = networks_.read_subject(networks / "0-0.safetensors")
    assert (measure(one, load("digits"), 3, "cpu").gates == 1.0).all()


def test_names_depth_and_order(networks):
    subjects = networks_.name_subjects(
        [networks_.read_subject(path) for path in sorted(networks.iterdir(), reverse=True)]
    )
    assert [s.name for s in subjects][::2] == ["constant", "SE", "StepNet", "ASR(SE)"]
    assert [s.seed for s in subjects][:2] == [0, 1]
    assert {s.depth for s in subjects} == {20}


def test_accuracy_errors_are_binomial(networks):
    found = measure(networks_.read_subject(networks / "0-0.safetensors"), load("digits"), 3, "cpu")
    below, above = study.accuracy_errors([found], 10_000)[0]  # 90 % of 10,000
    assert below == pytest.approx(100 * 1.96 * (0.9 * 0.1 / 10_000) ** 0.5, rel=0.05)
    assert above == pytest.approx(below, rel=0.1)


def test_a_controller_of_ones_own_is_planned_and_measured(own, tmp_path):
    definitions.run_file(own)
    chosen = {"dataset": "digits", "controllers": ("constant", "halved"), "seeds": (4, 7), "depth": 14}
    planned = study.plan_trainings(study.Arguments(define=(own,), train=True, **chosen))
    wanted = [("constant", 4), ("constant", 7), ("halved", 4), ("halved", 7)]
    assert [(job.controller, job.seed, job.depth) for job in planned] == [(*pair, 14) for pair in wanted]
    for job in planned:
        about = {"seed": job.seed, "test_accuracy": 0.5}
        nb.save(job.untrained_network(10), tmp_path / f"{job.stem}.safetensors", about)
    subjects = study.choose_networks(networks_.checkpoints([tmp_path]), study.Arguments(**chosen), load("digits"))
    assert [(s.name, s.seed) for s in subjects] == wanted
    found = measure(subjects[2], load("digits"), 5, "cpu")
    assert (found.gates == 0.5).all()
    assert found.accuracy == 50.0


@pytest.mark.slow
def test_a_strangers_network_gives_the_known_numbers():
    """Reference: an independent computation in float64 on the same weights and images."""
    folder = os.environ.get("ODELAB_PUBLIC_WEIGHTS")
    if not folder:
        pytest.skip("ODELAB_PUBLIC_WEIGHTS names no directory with resnet20_cifar10.th")
    if not available("cifar10"):
        pytest.skip("no CIFAR-10 at hand")
    known = json.loads((Path(folder) / "oracle_resnet20.json").read_text())["nsi"]["resnet20"]["eq4_post_relu"]
    found = measure(networks_.read_subject(Path(folder) / "resnet20_cifar10.th"), load("cifar10"), 1000, "cpu")
    set_stiffness(found, choices(1000, 5, 0))
    for mu in ("sample", "dataset"):
        assert found.tns["increment", mu].value == pytest.approx(known[f"mu_{mu}"]["TNS"], rel=1e-5)
    record = found.records["increment"]
    assert float(record.proportion(0.25, 0.25)) == pytest.approx(known["mu_sample"]["phat"]["0.25,0.25"])
    assert float(record.delta(0.5, 0.5)) == pytest.approx(known["mu_sample"]["delta"]["0.5,0.5"])
