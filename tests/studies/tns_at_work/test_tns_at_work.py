"""TNS at work: what is trained and pruned is what the design says, and every verdict follows its rule."""

import dataclasses

import numpy as np
import pytest
import torch

import netbridge as nb
from netbridge import data as datasets
from netbridge.train import epochs, loop
from studies.lab import jobs, measurements, networks
from studies.lab.comparisons import dunnett
from studies.lab.statistics import CONTRADICTED, MIXED, PARTLY, SUPPORTED, UNDECIDED
from studies.lab.stiffness import READINGS
from studies.population import design as population
from studies.tns_at_work import design, measures
from studies.tns_at_work.__main__ import describe
from studies.tns_at_work.findings import (
    better_finding,
    moves_finding,
    pruning_findings,
    reward_finding,
    search_finding,
)
from studies.tns_at_work.measures import BY_LOSS, LARGEST, ORDERS, RANDOM, SMALLEST, Pruned

NOISE = (-0.02, -0.01, 0.0, 0.01, 0.02)


# The design.


def test_every_network_of_the_design_is_there_once():
    first, second = design.weighted_runs("digits"), design.architectures("digits")
    assert len({run.stem for run in (*first, *second)}) == len(first) + len(second) == 50 + 36
    assert [run.weight for run in first[:5]] == list(design.WEIGHTS)
    assert all(run.weight == 0 for run in second)
    assert "tns_weight" not in second[0].specification


def test_on_cifar_the_networks_of_the_population_serve():
    known = {job.stem: job.specification for job in population.queue()}
    shared = [run for run in (*design.weighted_runs("cifar10"), *design.architectures("cifar10")) if run.weight == 0]
    assert all(known[run.stem] == run.specification for run in shared)
    assert len(design.architectures("cifar10")) >= design.FEWEST_ARCHITECTURES


# What is measured.


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits")


def small_run(weight=0.0):
    job = design.weighted_runs("digits")[0].job
    recipe = dataclasses.replace(design.DIGITS, epochs=1)
    return design.Run(dataclasses.replace(job, images=64, recipe=recipe), weight)


def test_a_run_is_made_once_and_found_again(tmp_path):
    run, said = small_run(0.01), []
    jobs.work_off(
        lambda: [run],
        lambda one: measurements.find(one, (tmp_path,)),
        lambda one: describe(measures.carry_out(one, tmp_path, device="cpu")),
        tmp_path,
        said.append,
    )
    found = measurements.find(run, (tmp_path,))
    assert len(said) == 1
    assert len(found.numbers["tns"]) == len(found.numbers["before"]["tns"]) == len(READINGS)
    assert 0 <= found.numbers["test_accuracy"] <= 1
    assert measurements.find(small_run(), (tmp_path,)) is None


def test_a_training_whose_tns_is_undefined_counts_as_diverged(tmp_path, monkeypatch):
    def stop(*args, **options):
        raise ValueError("`state` is zero at 2")

    monkeypatch.setattr(loop, "train", stop)
    with pytest.raises(epochs.Diverged, match="TNS is not defined any more: `state` is zero"):
        measures.carry_out(small_run(-1.0), tmp_path, device="cpu")


def test_before_training_a_network_is_seen_with_the_normalisation_of_one_batch(digits):
    run = small_run()
    found = measures.before_training(run, digits, "cpu")
    net = run.job.untrained_network(10, digits.size)
    assert found["parameters"] == sum(p.numel() for p in net.parameters())
    images = digits.normalised(digits.train_images[: design.SHOWN])
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0
    with torch.no_grad():
        net.train()(images)
    record = nb.trace(net.eval(), digits.normalised(digits.test_images[: design.SHOWN]))
    assert found["tns"][0] == pytest.approx(float(record.tns().mean()), rel=1e-3)
    assert found["gradient"] > 0
    assert found == measures.before_training(run, digits, "cpu")


def test_a_block_without_a_slope_is_pruned_first_and_costs_nothing(digits):
    torch.manual_seed(0)
    net = nb.resnet(20, 10, widths=(4, 8, 16))
    with torch.no_grad():
        net.stages[1].blocks[2].branch.bn2.weight.zero_()
        net.stages[1].blocks[2].branch.bn2.bias.zero_()
    subject = networks.Subject(net, "constant", 0, 20, 0, None, "", "constant")
    found = measures.prune(subject, digits, "cpu")
    assert found.name == "constant, seed 0"
    assert set(found.accuracy) == set(ORDERS)
    assert all(list(of_k) == list(design.DROPPED) for of_k in found.accuracy.values())
    assert found.accuracy[SMALLEST][1] == found.whole
    with torch.no_grad():
        images = net.eval()(digits.normalised(digits.test_images[: design.PRUNED_ON]))
    right = images.argmax(1) == digits.test_labels[: design.PRUNED_ON]
    assert found.whole == pytest.approx(100 * float(right.double().mean()))
    assert net.stages[1].blocks[2].branch._forward_hooks == {}


def test_blocks_that_hurt_are_dropped_by_loss(digits):
    """One block throws the state far away: without it the loss is smallest, and its NSI is the largest."""
    net = networks.read_subject(networks.ZOO / "digits" / "resnet32-width4-constant-seed0.safetensors").net
    with torch.no_grad():
        net.stages[2].blocks[3].branch.bn2.weight *= 50
    subject = networks.Subject(net, "constant", 0, 32, 0, None, "", "constant")
    found = measures.prune(subject, digits, "cpu")
    assert found.accuracy[BY_LOSS][1] == found.accuracy[LARGEST][1] > found.whole
    assert found.accuracy[BY_LOSS][1] > found.accuracy[SMALLEST][1]


def test_the_advantage_is_the_mean_over_what_is_dropped():
    one = Pruned("a", 90.0, {SMALLEST: {1: 80.0, 2: 70.0}, RANDOM: {1: 70.0, 2: 40.0}})
    assert one.advantage(SMALLEST, RANDOM) == 20.0


# The verdicts.


def by_weight(*means, seeds=NOISE):
    """Values around these means at the weights -0.1, -0.01, 0, 0.01, 0.1."""
    return {weight: [mean + x for x in seeds] for weight, mean in zip(sorted(design.WEIGHTS), means, strict=True)}


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        ((5, 4, 3, 2, 1), SUPPORTED),
        ((1, 2, 3, 4, 5), CONTRADICTED),
        ((5, 4, 3, 2, 4), CONTRADICTED),  # punished, and larger for it
        ((5, 3, 3, 3, 1), UNDECIDED),  # the small weights do nothing that can be told
    ],
)
def test_does_the_term_move_tns(means, verdict):
    assert moves_finding(by_weight(*means)).verdict == verdict


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        ((5, 3, 3, 3, 3), SUPPORTED),
        ((1, 3, 3, 3, 3), CONTRADICTED),
        ((1, 5, 3, 3, 3), PARTLY),
        ((3, 3, 3, 5, 5), UNDECIDED),  # only the punishments change something
    ],
)
def test_does_rewarding_help(means, verdict):
    assert reward_finding(by_weight(*means)).verdict == verdict
    few = by_weight(*means, seeds=NOISE[:2])
    assert reward_finding(few).verdict == moves_finding(few).verdict == UNDECIDED
    assert reward_finding(few).words.startswith("n = 2 seeds of some weight")


def test_one_weight_whose_seeds_lie_far_apart_is_not_taken_for_a_loss():
    """By one deviation for all weights the interval leaves out 0, by its own it does not."""
    groups = {weight: list(np.linspace(89.0, 91.0, 10)) for weight in design.WEIGHTS}
    groups[-0.1] = [10.0, 40.0, 81.0, 90.0, 90.0, 91.0]
    found = reward_finding(groups)
    assert dunnett("0", {f"{weight:g}": values for weight, values in groups.items()})["-0.1"].high < 0
    assert found.verdict == UNDECIDED
    assert "Welch" in found.words


def ranks(n=40, seed=0, like=None):
    """What was known before training, and accuracies; `like` says what follows these, all else is noise."""
    generator = np.random.default_rng(seed)
    accuracy = generator.normal(size=n)
    before = {key: generator.normal(size=n) for key in (*READINGS, "parameters", "gradient")}
    for key, weight in (like or {}).items():
        before[key] = accuracy * weight + 0.3 * generator.normal(size=n)
    return before, accuracy


@pytest.mark.parametrize(
    ("weight", "ranking", "better"), [(1.0, SUPPORTED, SUPPORTED), (-1.0, CONTRADICTED, CONTRADICTED)]
)
def test_does_tns_before_training_rank(weight, ranking, better):
    before, accuracy = ranks(like=dict.fromkeys(READINGS, weight))
    assert search_finding(before, accuracy).verdict == ranking
    assert better_finding(before, accuracy).verdict == better
    before, accuracy = ranks(n=20, like=dict.fromkeys(READINGS, weight))
    for finding in (search_finding(before, accuracy), better_finding(before, accuracy)):
        assert finding.verdict == UNDECIDED
        assert finding.words.startswith("n = 20 networks, and the design judges from 24 on.")


def test_readings_that_disagree_and_a_rival_that_is_as_good():
    before, accuracy = ranks(like={READINGS[0]: 1.0, "parameters": 1.0})
    assert search_finding(before, accuracy).verdict == MIXED
    before, accuracy = ranks(like=dict.fromkeys((*READINGS, "parameters"), 1.0))
    assert better_finding(before, accuracy).verdict == UNDECIDED
    before, accuracy = ranks(like={"parameters": 1.0})
    assert better_finding(before, accuracy).verdict == CONTRADICTED


def prunings(above_random, above_loss, n=6):
    spread = np.linspace(-0.2, 0.2, n)
    return [
        Pruned("a", 90.0, {SMALLEST: {1: 50 + x}, RANDOM: {1: 50 - above_random}, BY_LOSS: {1: 50 - above_loss}})
        for x in spread
    ]


@pytest.mark.parametrize(
    ("above_random", "above_loss", "verdicts"),
    [
        (5.0, 0.0, (SUPPORTED, SUPPORTED)),
        (-5.0, -5.0, (CONTRADICTED, CONTRADICTED)),
        (0.0, -1.0, (UNDECIDED, UNDECIDED)),
        (5.0, -0.5, (SUPPORTED, SUPPORTED)),  # less than a point worse is as good
    ],
)
def test_is_pruning_by_nsi_worth_it(above_random, above_loss, verdicts):
    assert tuple(one.verdict for one in pruning_findings(prunings(above_random, above_loss))) == verdicts
    assert pruning_findings([]) == []
    few = pruning_findings(prunings(above_random, above_loss, n=4))
    assert {one.verdict for one in few} == {UNDECIDED}
    assert all(one.words.startswith("n = 4 networks") for one in few)
