"""What older code measured of shipped networks is what the code of today measures: stored numbers are measured anew.

Where one of these tests fails after a formula was changed on purpose, stored results of older code do not hold any
more: their digests leave `SAME_NUMBERS`, and `--remeasure` of the studies measures them again.
"""

import itertools
import json
import math
from pathlib import Path

import pytest
import torch

import netbridge as nb
from netbridge.code_digests import ROOT
from netbridge.data import datasets
from netbridge.train import scoring
from studies import detect, population, tns_at_work, tricks
from studies.asr import design, whole_networks
from studies.asr import evidence as asr
from studies.block_stiffness import networks
from studies.lab import measurements
from studies.lab.networks import ZOO, shipped_files
from studies.lab.results import SAME_NUMBERS
from tests.studies.asr.made_up import plan_of
from tests.studies.lab import older_code
from tests.studies.step_control.step_results import plan_of as steps_of

UNIT = 1e-4  # one unit in the last of five digits, the most that rounding to them moves a number


def close(stored, now) -> bool:
    """Are these the same five digits, but for the rounding of the last one? None is not defined."""
    if isinstance(stored, list | tuple):
        return len(stored) == len(now) and all(map(close, stored, now))
    if stored is None or isinstance(stored, str):
        return stored == now
    return math.isclose(stored, now, rel_tol=UNIT)


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits")


@pytest.mark.slow
def test_older_code_gave_the_same_numbers_in_double_precision():
    kept = json.loads(older_code.FILE.read_text())
    assert older_code.differences(older_code.measure(ROOT), kept["numbers"]) == []
    assert {digest for codes in kept["codes"].values() for digest in codes} == SAME_NUMBERS


def test_only_measurements_of_such_code_are_said_to_be_the_same():
    """The record of each shipped result names its code by both digests, or it has none."""
    made = [
        measurements.read(path).made
        for path in sorted(ROOT.glob("studies/shipped/*/*.npz"))
        if not path.name.startswith("slices-")
    ]
    scores = *ROOT.glob("studies/shipped/asr/*.json"), *ROOT.glob("studies/shipped/step_control/*.json")
    made += [json.loads(path.read_text())["made"] for path in sorted(scores)]
    assert len(made) > 400
    for one in made:
        assert ("trained_by" in one) == ("measured_by" in one)
        assert all(len(one[by]) == 12 for by in ("trained_by", "measured_by") if by in one)
    assert {one["measured_by"] for one in made if "measured_by" in one} & SAME_NUMBERS


def plan_of_asr() -> dict:
    """What the default plan finds, and the pictures that were painted."""
    plan = plan_of("nowhere", dataset="cifar10", depth=20, epochs=None, images=None, seeds=(8,))
    found = {run.stem: asr.find(run, [asr.SHIPPED]) for run in plan.queue()}
    pictures = whole_networks.plan_paintings(range(design.FEW))
    return found | {one.stem: whole_networks.find_painted(one, [asr.SHIPPED]) for one in pictures}


def plan_of_steps() -> dict:
    """Every result that the study shows by default is there."""
    plans = [
        steps_of(Path("nowhere"), dataset=name, own=False, images=None, epochs=None) for name in ("cifar10", "digits")
    ]
    found = {run.stem: plan.find(run) for plan in plans for run in plan.queue()}
    assert len(found) > 56
    assert None not in found.values()
    return found


def plan_of_tns() -> dict:
    """So that the default shows what is true of one family and not of the other, prunings of both are there."""
    found = {}
    for family in tns_at_work.FAMILIES:
        prunings = {
            run.stem: run.find((tns_at_work.SHIPPED,)) for run in map(tns_at_work.Pruning, shipped_files(family))
        }
        assert len({one.controller for one in prunings.values()}) >= tns_at_work.FEWEST_PRUNED
        assert all(set(one.accuracy) == set(tns_at_work.ORDERS) for one in prunings.values())
        found |= prunings
    planned = [*tns_at_work.weighted_runs("digits"), *tns_at_work.architectures("digits")]
    return found | found_by(tns_at_work, planned)


def found_by(study, planned) -> dict:
    return {job.stem: measurements.find(job, (study.SHIPPED,)) for job in planned}


PLANS = {
    "asr": plan_of_asr,
    "detect": lambda: found_by(detect, detect.made_up()),
    "population": lambda: found_by(population, population.queue()),
    "step_control": plan_of_steps,
    "tns_at_work": plan_of_tns,
    "tricks": lambda: found_by(tricks, tricks.queue()),
}


@pytest.mark.parametrize("study", PLANS)
def test_what_is_shipped_bears_the_name_of_what_it_holds_and_the_plan_finds_it(study):
    folder = ROOT / "studies" / "shipped" / study
    found = {stem: result for stem, result in PLANS[study]().items() if result is not None}
    assert found.keys() == {path.stem for path in folder.iterdir() if path.suffix in (".json", ".npz")}
    assert sum(path.stat().st_size for path in folder.glob("*")) < 2e6


QUEUES = {  # networks of each study, in the order in which they are trained
    "asr": lambda: plan_of("nowhere", dataset="cifar10").queue(),
    "detect": lambda: detect.made_up(),
    "population": lambda: population.queue(),
    "step_control": lambda: steps_of(Path("nowhere"), seeds=(3,)).queue(),
    "tricks": lambda: tricks.queue(),
    "tricks, full": lambda: tricks.queue(full=True),
    "tns_at_work": lambda: [*tns_at_work.weighted_runs("digits"), *tns_at_work.architectures("digits")],
}
LENGTHS = {"detect": 15, "population": 240, "tricks": 30, "tricks, full": 50, "tns_at_work": 86}


@pytest.mark.parametrize("study", QUEUES)
def test_every_network_of_a_design_is_planned_once_and_one_seed_comes_after_the_other(study):
    queue = QUEUES[study]()
    assert len({job.stem for job in queue}) == len(queue) == LENGTHS.get(study, len(queue)) > 10
    if study == "asr":  # of one arm
        arms = itertools.groupby(sorted(queue, key=arm_of), arm_of)
    else:  # of all, where seeds are the outer loop of the whole queue
        arms = [("all", queue)] if study in ("step_control", "detect", "tricks", "tricks, full") else []
    for name, runs in arms:
        seeds = [run.seed for run in runs]
        assert seeds == sorted(seeds), name


def arm_of(run) -> tuple:
    return run.part, run.column, run.arm


@pytest.mark.slow
@pytest.mark.parametrize("name", ["constant", "se"])
def test_stored_stiffness_of_blocks_is_measured_again(name, digits):
    """NSI, errors and norms of every block: shipped rows of a shipped network, of a commit that no history has."""
    run = networks.shipped_run("digits")
    wanted = f"digits/resnet32-width4-{name}-seed0"
    (about,) = (one for one in networks.networks_of("digits") if one.name == wanted)
    work = {"workers": 1, "executor": None, "cache": None}
    again = networks.look_at(about, digits, run.about["images"], work)
    stored = [row for row in run.rows if row["network"] == wanted]
    assert len(stored) == len(again) > 10
    for old, new in zip(stored, again, strict=True):
        for measure in ("nsi", "step_error", "alive", "step_size", "log_norm", "largest_singular"):
            assert close(old[measure], new[measure]), (old["block"], measure, old[measure], new[measure])


@pytest.mark.parametrize("path", sorted((ZOO / "digits").glob("*seed0.safetensors")), ids=lambda path: path.stem)
def test_stored_numbers_of_errors_are_counted_again(path, digits):
    """An image may be classified otherwise only where its two largest logits are as close as rounding is large."""
    net = nb.load(path)
    with torch.no_grad():
        first, second = net(digits.normalised(digits.test_images)).topk(2, dim=1).values.T
    close_calls = int((first - second < 1e-4 * first.abs()).sum())
    assert abs(scoring.evaluate(net, digits)["test_errors"] - net.about["test_errors"]) <= close_calls


@pytest.fixture(scope="module")
def cifar():
    if not datasets.available("cifar10"):
        pytest.skip("CIFAR-10 is not in the cache of this machine.")
    return datasets.load("cifar10")


@pytest.mark.slow
@pytest.mark.parametrize(("part", "arm"), [("controls", "plain"), ("origin", "SE")])
def test_stored_gates_and_bounds_are_measured_again(part, arm, cifar):
    """asr's results of shipped networks of CIFAR-10: gates before and after training, Theorem 6.1's bound."""
    plan = plan_of("nowhere", dataset="cifar10", depth=20, epochs=None, images=None, seeds=(8,))
    run = next(one for one in plan.part(part) if one.arm == arm)
    net, log = asr.find_shipped(run)
    stored = asr.find(run, [asr.SHIPPED])
    again = asr.measure(run, net, cifar, log)
    assert stored.made["measured_by"] in SAME_NUMBERS
    assert close(stored.bound, again.bound)
    assert (stored.test_errors, stored.parameters) == (again.test_errors, again.parameters)
    for old, new in zip(stored.blocks, again.blocks, strict=True):
        for measure in ("mean", "std", "share", "alive", "hidden", "psi", "scale"):
            assert close(old[measure], new[measure]), (measure, old[measure], new[measure])
