"""step_control's training: nothing twice, nothing lost, and what is written down is what the network is and does."""

import dataclasses
import threading
import time

import filelock
import numpy as np
import pytest
import torch

import netbridge as nb
from netbridge import data as datasets
from netbridge.train import loop as train
from netbridge.train.journal import Journal
from studies import step_control as study
from studies.lab import jobs
from studies.lab.stiffness import prepare
from tests.studies.step_control.step_results import made_up, plan_of


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
    monkeypatch.setattr(study, "TRACED", 100)

    def counted(*arguments, **more):
        if not arguments[4].is_file():  # what is finished is only read
            seen.append(arguments[4].stem)
        return real(*arguments, **more, quiet=True)

    monkeypatch.setattr(train, "train", counted)
    return seen


def small(out, **more):
    """Two networks of a few steps."""
    return plan_of(out, seeds=(1,), only=(study.STIFFEST,), part="ticket", blocks="every", **more)


def work(plan, keep=False):
    data = datasets.load("digits")
    data = dataclasses.replace(data, test_images=data.test_images[:100], test_labels=data.test_labels[:100])
    more = (data, plan.own, plan.own, "cpu", keep)
    carry_out = lambda run: study.carry_out(run, *more)  # noqa: E731
    return jobs.work_off(plan.queue, plan.find, carry_out, plan.own, say=lambda line: None)


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

    real, epochs = Journal.add, []

    def killed(self, record):
        real(self, record)
        epochs.append(record["epoch"])
        if len(epochs) in (1, 4):  # after the first epoch of one network, after the last of the other
            raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "add", killed)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            work(halved)
    assert work(halved) == []
    assert epochs == [1, 2, 1, 2]  # no epoch twice
    assert comparable(halved) == comparable(whole)
    stiffest = whole.ticket(study.EVERY, study.STIFFEST, 0)
    nsi = np.array(whole.find(whole.cell(study.PLAIN, 0)).nsi)
    assert sorted(np.argsort(nsi)[-2:].tolist()) == stiffest.acting

    del trainings[:]
    assert work(halved) == []
    assert trainings == []
    assert {path.suffix for path in halved.own.iterdir()} == {".json", ".lock"}  # no weights left


def test_finished_but_not_written_down_is_not_trained_again(tmp_path, trainings, monkeypatch):
    plan = small(tmp_path)
    real = study.Result.write
    monkeypatch.setattr(study.Result, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        work(plan)
    monkeypatch.setattr(study.Result, "write", real)
    assert work(plan, keep=True) == []
    assert len(trainings) == 2
    assert len(list(plan.own.glob("*.safetensors"))) == 2


def test_a_network_somebody_is_at_is_passed_over(tmp_path, trainings):
    plan = small(tmp_path)
    plain = plan.cell(study.PLAIN, 0)
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
        result.write(destination / f"{run.stem}.json")
        return result

    monkeypatch.setattr(study, "carry_out", pretended)
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
        result.write(destination / f"{run.stem}.json")
        return result

    monkeypatch.setattr(study, "carry_out", pretended)
    diverged = plan.cell(study.SE, 0)
    assert work(plan) == [diverged.stem]
    assert len(tried) == len(set(tried)) == len(study.CELLS)
    assert plan.divergence(diverged) == "the loss is no number any more"
    assert work(plan) == [diverged.stem]
    assert len(tried) == len(study.CELLS)  # it would diverge again
    (plan.own / f"{diverged.stem}.diverged.txt").unlink()
    work(plan)
    assert tried.count(diverged.stem) == 2


def test_a_result_that_cannot_be_found_again_ends_the_work(tmp_path, monkeypatch):
    plan = plan_of(tmp_path, seeds=(1,), part="ablation")
    monkeypatch.setattr(study, "carry_out", lambda run, *rest: made_up(run))
    with pytest.raises(RuntimeError, match="not found again"):
        work(plan)


def test_what_another_has_finished_meanwhile_is_not_trained(tmp_path, monkeypatch):
    """Between the look and the lock: the other process's result is there, its lock is gone."""
    plan, looks = plan_of(tmp_path, seeds=(1,), part="ablation", only=(study.SE,)), []
    wanted = {run.stem for run in plan.queue()}

    def find(run):
        looks.append(run.stem)
        return made_up(run) if looks.count(run.stem) > 1 else None

    monkeypatch.setattr(study, "carry_out", lambda run, *rest: pytest.fail(f"{run.stem} is trained again"))
    carry_out = study.carry_out
    assert jobs.work_off(plan.queue, find, carry_out, plan.own, say=lambda line: None) == []
    assert set(looks) == wanted


def test_what_is_written_down_is_what_the_network_is_and_does(tmp_path, trainings, monkeypatch):
    """Seed, blocks and images reach the training; errors, loss and stiffness are the finished network's own."""
    scale = study.Scale("digits", 14, plan_of(tmp_path).scale.recipe, 192)
    run = study.network_of(scale, "se", 1, on=[1, 3])
    data = datasets.load("digits")
    given, real = [], train.train
    monkeypatch.setattr(train, "train", lambda *arguments, **more: given.append(arguments) or real(*arguments, **more))
    result = study.carry_out(run, data, tmp_path, tmp_path, "cpu", keep=True)

    ((fresh, some, recipe, seed, *_),) = given
    assert (recipe, seed) == (scale.recipe, 1)
    torch.testing.assert_close(some.train_images, data.train_images[:192], rtol=0, atol=0)
    torch.testing.assert_close(some.train_labels, data.train_labels[:192], rtol=0, atol=0)
    torch.testing.assert_close(some.test_images, data.test_images, rtol=0, atol=0)
    net = nb.load(tmp_path / f"{run.stem}.safetensors")
    assert [spec["name"] if isinstance(spec, dict) else spec for spec in net.config["controllers"]] == [
        *("constant", "se", "constant", "se", "constant", "constant"),
    ]
    assert [spec["name"] if isinstance(spec, dict) else spec for spec in fresh.config["controllers"]] == [
        *("constant", "se", "constant", "se", "constant", "constant"),
    ]
    assert study.find(run, [tmp_path]) == result

    net.eval()
    with torch.no_grad():
        scores = net(prepare(net, data, data.test_images))
    assert result.test_errors == int((scores.argmax(1) != data.test_labels).sum())
    assert result.test_loss == pytest.approx(
        float(torch.nn.functional.cross_entropy(scores, data.test_labels)), rel=1e-4
    )
    assert result.test_images == len(data.test_labels)
    seen = data.train_images[:100]  # what choices rest on is not the test set
    expected = nb.trace(net, prepare(net, data, seen), of="slope").nsi.mean(0)
    np.testing.assert_allclose(result.nsi, expected, rtol=1e-5)
    assert result.traced == 100


def test_the_seed_decides_the_first_weights(tmp_path, trainings, monkeypatch):
    scale = plan_of(tmp_path).scale
    first = []

    def untrained(net, *rest, **more):
        first.append(next(net.parameters()).detach().clone())
        raise train.Diverged("not to be trained")

    monkeypatch.setattr(train, "train", untrained)
    for seed in (0, 1, 1):
        with pytest.raises(train.Diverged):
            study.carry_out(study.network_of(scale, "se", seed), datasets.load("digits"), tmp_path, tmp_path, "cpu")
    assert torch.equal(first[1], first[2])
    assert not torch.equal(first[0], first[1])
