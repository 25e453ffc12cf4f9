"""TNS at work: what is trained and pruned is what the design says; rivals as good are seen."""

import dataclasses

import numpy as np
import pytest
import torch

import netbridge as nb
from netbridge import data as datasets
from netbridge.train import epochs, loop
from studies import population
from studies import tns_at_work as study
from studies.lab import jobs, measurements, networks
from studies.lab.stiffness import READINGS, SCALE, SHAPE, TNS
from studies.lab.verdicts import (
    BY_READING,
    CONTRADICTED,
    NO_DIFFERENCE,
    UNDECIDED,
)

NOISE = (-0.02, -0.01, 0.0, 0.01, 0.02)


# The design.


def test_every_network_of_the_design_is_there_once():
    first, second = study.weighted_runs("digits"), study.architectures("digits")
    assert len({run.stem for run in (*first, *second)}) == len(first) + len(second) == 50 + 36
    assert [run.weight for run in first[:5]] == list(study.WEIGHTS)
    assert all(run.weight == 0 for run in second)
    assert "tns_weight" not in second[0].specification


def test_on_cifar_the_networks_of_the_population_serve():
    known = {job.stem: job.specification for job in population.queue()}
    shared = [run for run in (*study.weighted_runs("cifar10"), *study.architectures("cifar10")) if run.weight == 0]
    assert all(known[run.stem] == run.specification for run in shared)
    assert len(study.architectures("cifar10")) >= study.FEWEST_ARCHITECTURES


# What is measured.


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits")


def small_run(weight=0.0):
    job = study.weighted_runs("digits")[0].job
    recipe = dataclasses.replace(study.DIGITS, epochs=1)
    return study.Run(dataclasses.replace(job, images=64, recipe=recipe), weight)


def test_a_run_is_made_once_and_found_again(tmp_path):
    run, said = small_run(0.01), []
    jobs.work_off(
        lambda: [run],
        lambda one: measurements.find(one, (tmp_path,)),
        lambda one: study.describe(study.carry_out(one, tmp_path, device="cpu")),
        tmp_path,
        said.append,
    )
    found = measurements.find(run, (tmp_path,))
    assert len(said) == 1
    assert len(found.numbers["tns"]) == len(found.numbers["before"]["tns"]) == len(READINGS)
    assert set(found.numbers["scale"]) == set(found.numbers["before"]["scale"]) == {"slope", "increment"}
    assert 0 <= found.numbers["test_accuracy"] <= 1
    assert measurements.find(small_run(), (tmp_path,)) is None


def test_a_training_whose_tns_is_undefined_counts_as_diverged(tmp_path, monkeypatch):
    def stop(*args, **options):
        raise ValueError("`state` is zero at 2")

    monkeypatch.setattr(loop, "train", stop)
    with pytest.raises(epochs.Diverged, match="TNS is not defined any more: `state` is zero"):
        study.carry_out(small_run(-1.0), tmp_path, device="cpu")


def test_before_training_a_network_is_seen_with_the_normalisation_of_one_batch(digits):
    run = small_run()
    found = study.before_training(run, digits, "cpu")
    net = run.job.untrained_network(10, digits.size)
    assert found["parameters"] == sum(p.numel() for p in net.parameters())
    images = digits.normalised(digits.train_images[: study.SHOWN])
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0
    with torch.no_grad():
        net.train()(images)
    record = nb.trace(net.eval(), digits.normalised(digits.test_images[: study.SHOWN]))
    assert found["tns"][0] == pytest.approx(float(record.tns().mean()), rel=1e-3)
    assert found["scale"]["slope"] == pytest.approx(float(record.counted().nsi.mean()), rel=1e-3)
    assert found["gradient"] > 0
    assert found == study.before_training(run, digits, "cpu")


def test_a_block_without_a_slope_is_pruned_first_and_costs_nothing(digits):
    torch.manual_seed(0)
    net = nb.resnet(20, 10, widths=(4, 8, 16))
    with torch.no_grad():
        net.stages[1].blocks[2].branch.bn2.weight.zero_()
        net.stages[1].blocks[2].branch.bn2.bias.zero_()
    subject = networks.Subject(net, "constant", 0, 20, 0, None, "", "constant")
    found = study.prune(subject, digits, "cpu")
    assert found.name == "constant, seed 0"
    assert set(found.accuracy) == set(study.ORDERS)
    assert all(list(of_k) == list(study.DROPPED) for of_k in found.accuracy.values())
    assert found.accuracy[study.SMALLEST][1] == found.whole
    with torch.no_grad():
        images = net.eval()(digits.normalised(digits.test_images[: study.PRUNED_ON]))
    right = images.argmax(1) == digits.test_labels[: study.PRUNED_ON]
    assert found.whole == pytest.approx(100 * float(right.double().mean()))
    assert net.stages[1].blocks[2].branch._forward_hooks == {}


def test_blocks_that_hurt_are_dropped_by_loss(digits):
    """One block throws the state far away: without it the loss is smallest, and its NSI is the largest."""
    net = networks.read_subject(networks.ZOO / "digits" / "resnet32-width4-constant-seed0.safetensors").net
    with torch.no_grad():
        net.stages[2].blocks[3].branch.bn2.weight *= 50
    subject = networks.Subject(net, "constant", 0, 32, 0, None, "", "constant")
    found = study.prune(subject, digits, "cpu")
    assert found.accuracy[study.BY_LOSS][1] == found.accuracy[study.LARGEST][1] > found.whole
    assert found.accuracy[study.BY_LOSS][1] > found.accuracy[study.SMALLEST][1]


def test_a_pruning_is_found_again_and_only_of_the_same_network(digits, tmp_path):
    path = networks.ZOO / "digits" / "resnet32-width4-constant-seed0.safetensors"
    run = study.Pruning(path)
    assert run.find((tmp_path,)) is None
    made = run.carry_out(digits, tmp_path, "cpu")
    assert run.find((tmp_path,)) == made
    assert (made.controller, made.seed, run.family) == ("constant", 0, "digits")
    other = study.Pruning(networks.ZOO / "digits" / "resnet32-width4-se-seed0.safetensors")
    (tmp_path / f"{run.stem}.npz").rename(tmp_path / f"{other.stem}.npz")
    with pytest.raises(SystemExit, match="another network"):
        other.find((tmp_path,))


def test_the_advantage_is_the_mean_over_what_is_dropped():
    one = study.Pruned("a", 0, 90.0, {study.SMALLEST: {1: 80.0, 2: 70.0}, study.RANDOM: {1: 70.0, 2: 40.0}})
    assert one.advantage(study.SMALLEST, study.RANDOM) == 20.0


# The verdicts.


def architectures(n=36, seed=0, like=None, controllers=6):
    """What was known before training, and accuracies; `like` says what follows these, all else is noise."""
    generator = np.random.default_rng(seed)
    accuracy = generator.normal(size=n)
    before = {key: generator.normal(size=n) for key in (*study.KEYS, "parameters", "gradient")}
    for key, weight in (like or {}).items():
        before[key] = accuracy * weight + 0.2 * generator.normal(size=n)
    kinds = np.arange(n) % controllers, np.arange(n) // controllers
    return study.Architectures(before, accuracy, *(one.astype(str) for one in kinds))


def test_readings_that_disagree_and_a_rival_that_is_as_good():
    searched = architectures(like={(TNS, READINGS[0]): 1.0, "parameters": 1.0})
    assert study.RANKING[TNS](searched, TNS, 300).verdict == BY_READING
    searched = architectures(like=dict.fromkeys((*study.KEYS, "parameters"), 1.0))
    assert study.BETTER[SHAPE](searched, SHAPE, 300).verdict == UNDECIDED
    searched = architectures(like={"parameters": 1.0})
    assert study.BETTER[SCALE](searched, SCALE, 300).verdict == CONTRADICTED


def test_no_relation_to_speak_of_is_no_difference():
    searched = architectures(n=40 * 40, controllers=40)
    assert study.RANKING[SCALE](searched, SCALE, 100).verdict == NO_DIFFERENCE


def prunings(above_random, above_loss, n=6, family="digits"):
    spread = np.linspace(-0.2, 0.2, n)
    orders = [
        {study.SMALLEST: {1: 50 + x}, study.RANDOM: {1: 50 - above_random}, study.BY_LOSS: {1: 50 - above_loss}}
        for x in spread
    ]
    return {family: [study.Pruned(f"c{k}", seed, 90.0, of) for k, of in enumerate(orders) for seed in (0, 1)]}


def test_seeds_of_one_controller_are_one_unit():
    points = study.advantages(prunings(5.0, 0.0, n=3), study.RANDOM)
    np.testing.assert_allclose(points["digits"], [4.8, 5.0, 5.2])
