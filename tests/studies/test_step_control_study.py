"""step_control: a result is known by all that determines it, nothing is trained twice, tickets are what they say."""

import dataclasses
import json
import threading
import time

import filelock
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from step_results import made_up, plan_of

from netbridge import data as datasets
from netbridge import train
from netbridge.recipes import Recipe, recipe
from studies import _step_results as results
from studies import _step_runs as runs
from studies import _step_training as training

SCALE = runs.Scale("digits", 14, recipe("digits", epochs=2), 128)


# Tickets.


@settings(deadline=None)
@given(st.data())
def test_the_stiffest_are_no_less_stiff_than_any_other(data):
    nsi = data.draw(st.lists(st.floats(0, 10, allow_nan=False), min_size=2, max_size=20))
    among = data.draw(st.lists(st.sampled_from(range(len(nsi))), min_size=2, unique=True).map(sorted))
    few = data.draw(st.integers(1, len(among) - 1))
    stiffest = runs.ticket(runs.STIFFEST, nsi, among, few, 0)
    least = runs.ticket(runs.LEAST, nsi, among, few, 0)
    for chosen in (stiffest, least):
        assert len(set(chosen)) == few
        assert chosen == sorted(chosen)
        assert set(chosen) <= set(among)
    assert min(nsi[k] for k in stiffest) >= max(nsi[k] for k in among if k not in stiffest)
    assert max(nsi[k] for k in least) <= min(nsi[k] for k in among if k not in least)


@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(1, 6))
def test_random_blocks_are_those_of_the_seed_and_know_no_stiffness(seed, few):
    chosen = runs.ticket(runs.RANDOM, None, list(range(6)), few, seed)
    assert chosen == runs.ticket(runs.RANDOM, [1.0] * 6, list(range(6)), few, seed)
    assert len(set(chosen)) == few
    assert set(chosen) <= set(range(6))


def test_random_blocks_are_spread_evenly():
    counts = np.bincount([k for seed in range(600) for k in runs.ticket(runs.RANDOM, None, range(6), 2, seed)])
    assert stats.chisquare(counts).pvalue > 1e-3
    assert len({tuple(runs.ticket(runs.RANDOM, None, range(6), 2, 0, draw)) for draw in range(20)}) > 3


def test_counted_blocks_leave_out_the_first_of_every_stage():
    assert runs.candidates(SCALE, runs.COUNTED) == [1, 3, 5]
    assert runs.candidates(SCALE, runs.EVERY) == [0, 1, 2, 3, 4, 5]
    deep = runs.Scale("cifar10", 164, recipe("paper"))
    assert len(runs.candidates(deep, runs.EVERY)) == 54
    assert len(runs.candidates(deep, runs.COUNTED)) == 51


def test_placements_wait_for_the_plain_network_and_then_follow_its_stiffness(tmp_path):
    plan = plan_of(tmp_path, seeds=(1,))
    assert plan.ticket(runs.EVERY, runs.STIFFEST, 0) is None
    plain = plan.cell(runs.PLAIN, 0)
    results.write(made_up(plain), plan.own / f"{plain.stem}.json")
    assert plan.ticket(runs.EVERY, runs.STIFFEST, 0).acting == [0, 2]
    assert plan.ticket(runs.EVERY, runs.LEAST, 0).acting == [1, 3]
    assert plan.ticket(runs.COUNTED, runs.STIFFEST, 0).acting == [5]
    assert plan.ticket(runs.COUNTED, runs.LEAST, 0).acting == [1]
    assert plan.ticket(runs.EVERY, runs.ALL, 0).acting == [0, 1, 2, 3, 4, 5]


def test_all_counted_blocks_are_table_4s_stepnet_and_none_is_the_plain_network(tmp_path):
    plan = plan_of(tmp_path)
    assert plan.ticket(runs.COUNTED, runs.ALL, 0).stem == plan.cell(runs.OURS, 0).stem
    assert plan.ticket(runs.EVERY, runs.NONE, 0).stem == plan.cell(runs.PLAIN, 0).stem


# What identifies a result.

CHANGES = {
    "dataset": lambda run: dataclasses.replace(run, scale=dataclasses.replace(run.scale, dataset="cifar10")),
    "images": lambda run: dataclasses.replace(run, scale=dataclasses.replace(run.scale, images=None)),
    "epochs": lambda run: dataclasses.replace(run, scale=dataclasses.replace(run.scale, recipe=recipe("digits"))),
    "rate": lambda run: dataclasses.replace(
        run, scale=dataclasses.replace(run.scale, recipe=recipe("digits", epochs=2, lr=0.3))
    ),
    "depth": lambda run: runs.run(dataclasses.replace(run.scale, depth=20), "stepnet", run.seed),
    "seed": lambda run: dataclasses.replace(run, seed=1),
    "controller": lambda run: runs.run(run.scale, "se", run.seed, on=run.acting),
    "options": lambda run: runs.run(run.scale, {"name": "stepnet", "inputs": "now"}, run.seed),
    "blocks": lambda run: runs.run(run.scale, "stepnet", run.seed, on=[1, 3]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_the_result_changes_its_name(change):
    run = runs.run(SCALE, "stepnet", 0)
    other = CHANGES[change](run)
    assert other.specification != run.specification
    assert other.stem != run.stem


def test_what_changes_no_result_changes_no_name():
    run = runs.run(SCALE, "stepnet", 0)
    looked = dataclasses.replace(SCALE.recipe, evaluate_every=1, architectures="these")
    assert dataclasses.replace(run, scale=dataclasses.replace(SCALE, recipe=looked)).stem == run.stem
    assert runs.run(SCALE, {"name": "stepnet", "inputs": "both"}, 0, on=[1, 3, 5]).stem == run.stem


def test_a_field_that_joins_the_recipes_leaves_old_results_theirs():
    @dataclasses.dataclass(frozen=True)
    class Later(Recipe):
        warmth: float = 0.0

    old = SCALE.recipe
    later = Later(**{field.name: getattr(old, field.name) for field in dataclasses.fields(old)})
    assert results.same_recipe(json.loads(json.dumps(old.as_json())), later)
    assert not results.same_recipe({**old.as_json(), "lr": 9.0}, later)


def test_a_result_under_another_name_is_refused(tmp_path):
    run, other = runs.run(SCALE, "se", 0), runs.run(SCALE, "se", 1)
    results.write(made_up(run), tmp_path / f"{run.stem}.json")
    assert results.find(run, [tmp_path]) == made_up(run)
    assert results.find(other, [tmp_path]) is None
    (tmp_path / f"{run.stem}.json").rename(tmp_path / f"{other.stem}.json")
    with pytest.raises(SystemExit, match="another run"):
        results.find(other, [tmp_path])


@pytest.mark.parametrize("damage", [lambda text: text[:100], lambda text: "[]", lambda text: text.replace("nsi", "n")])
def test_a_damaged_result_is_named(tmp_path, damage):
    run = runs.run(SCALE, "se", 0)
    path = results.write(made_up(run), tmp_path / f"{run.stem}.json")
    path.write_text(damage(path.read_text()))
    with pytest.raises(SystemExit, match=path.name):
        results.find(run, [tmp_path])


def test_shipped_results_bear_the_name_of_what_they_hold():
    paths = sorted(results.SHIPPED.glob("*.json"))
    assert paths
    for path in paths:
        spec = results.read(path).specification
        scale = runs.Scale(spec["dataset"], spec["depth"], Recipe(**spec["recipe"]), spec["images"])
        run = runs.Run(scale, tuple(json.dumps(one, sort_keys=True) for one in spec["controllers"]), spec["seed"])
        assert path.stem == run.stem


def test_the_shipped_digits_are_complete(tmp_path):
    plan = plan_of(tmp_path, own=False, images=None, epochs=None, blocks="both")
    wanted = plan.queue()
    assert len(wanted) > 28
    assert [run.stem for run in wanted if plan.find(run) is None] == []


# Training.


def test_one_seed_comes_after_the_other_the_plain_network_first(tmp_path):
    queue = plan_of(tmp_path, seeds=(3,)).queue()
    assert [run.seed for run in queue] == sorted(run.seed for run in queue)
    assert len({run.stem for run in queue}) == len(queue)
    for seed in range(3):
        assert next(run for run in queue if run.seed == seed).acting == []


@pytest.fixture
def trainings(monkeypatch):
    """Every training that begins or goes on, by the name of its file."""
    seen, real = [], train.train
    monkeypatch.setattr(training, "TRACED", 100)

    def counted(*arguments, **more):
        seen.append(arguments[4].stem)
        return real(*arguments, **more, quiet=True)

    monkeypatch.setattr(train, "train", counted)
    return seen


def small(out, **more):
    """Two networks of a few steps."""
    return plan_of(out, seeds=(1,), only=(runs.PLAIN, runs.STIFFEST), part="ticket", blocks="every", **more)


def work(plan, keep=False):
    data = datasets.load("digits")
    data = dataclasses.replace(data, test_images=data.test_images[:100], test_labels=data.test_labels[:100])
    return training.work_off(plan.queue, plan.find, data, plan.own, plan.own, "cpu", keep, say=lambda line: None)


def comparable(plan):
    """All that is not a matter of the clock."""
    found = {}
    for run in plan.queue():
        result = dataclasses.asdict(plan.find(run))
        for line in result["log"]:
            line.pop("seconds")
        result.pop("made")
        found[run.stem] = result
    return found


def test_a_kill_in_between_changes_nothing_and_no_network_is_trained_twice(tmp_path, trainings, monkeypatch):
    whole, halved = small(tmp_path / "whole"), small(tmp_path / "halved")
    assert work(whole) == []
    assert len(trainings) == 2

    real, epochs = train.Run.note, []

    def killed(self, **numbers):
        real(self, **numbers)
        epochs.append(self.epoch)
        if len(epochs) in (1, 4):  # after the first epoch of one network, after the last of the other
            raise KeyboardInterrupt

    monkeypatch.setattr(train.Run, "note", killed)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            work(halved)
    assert work(halved) == []
    assert epochs == [1, 2, 1, 2]  # no epoch twice
    assert comparable(halved) == comparable(whole)
    stiffest = whole.ticket(runs.EVERY, runs.STIFFEST, 0)
    nsi = np.array(whole.find(whole.cell(runs.PLAIN, 0)).nsi)
    assert sorted(np.argsort(nsi)[-2:].tolist()) == stiffest.acting

    del trainings[:]
    assert work(halved) == []
    assert trainings == []
    assert {path.suffix for path in halved.own.iterdir()} == {".json", ".lock"}  # no weights left


def test_finished_but_not_written_down_is_not_trained_again(tmp_path, trainings, monkeypatch):
    plan = small(tmp_path)
    real = results.write
    monkeypatch.setattr(results, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        work(plan)
    monkeypatch.setattr(results, "write", real)
    assert work(plan, keep=True) == []
    assert len(trainings) == 2
    assert len(list(plan.own.glob("*.safetensors"))) == 2


def test_a_network_somebody_is_at_is_passed_over(tmp_path, trainings):
    plan = small(tmp_path)
    plain = plan.cell(runs.PLAIN, 0)
    plan.own.mkdir(parents=True)
    with filelock.FileLock(plan.own / f"{plain.stem}.lock"):
        assert work(plan) == []
    assert trainings == []  # the other one needs this one's stiffness


def test_two_workers_share_the_queue(tmp_path, monkeypatch):
    plan, done = plan_of(tmp_path, seeds=(2,)), []

    def pretended(run, data, work, destination, device, keep):
        done.append((threading.get_ident(), run.stem))
        time.sleep(0.02)
        result = made_up(run)
        results.write(result, destination / f"{run.stem}.json")
        return result

    monkeypatch.setattr(training, "carry_out", pretended)
    workers = [threading.Thread(target=work, args=(plan,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    stems = [stem for _, stem in done]
    assert sorted(stems) == sorted(run.stem for run in plan.queue())
    assert len({worker for worker, _ in done}) == 2


def test_a_training_that_diverges_does_not_stop_the_others(tmp_path, monkeypatch):
    plan, tried = plan_of(tmp_path, seeds=(1,), part="ablation"), []

    def pretended(run, data, work, destination, device, keep):
        tried.append(run.stem)
        if run.controller == "se":
            raise train.Diverged("the loss is no number any more")
        result = made_up(run)
        results.write(result, destination / f"{run.stem}.json")
        return result

    monkeypatch.setattr(training, "carry_out", pretended)
    assert work(plan) == [plan.cell(runs.SE, 0).stem]
    assert len(tried) == len(set(tried)) == len(runs.CELLS)
