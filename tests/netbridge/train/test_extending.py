"""A finished training is trained on when that is asked for: what it becomes, what its files say, what is refused."""

import json

import pytest
import torch

import netbridge as nb
from netbridge import checkpoint
from tests.netbridge.train import runs

MEMORYLESS = {"schedule": "steps", "drops": (3,), "momentum": 0.0, "nesterov": False, "average": False, "small": ()}


def epochs(count, **changes):
    return {"epochs": count, **changes}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "net.safetensors"


def test_without_memory_and_by_steps_it_is_the_training_of_all_epochs_to_the_bit(path):
    """In full precision, since the last epoch of a training is scored so; and wherever it is interrupted."""
    changes = MEMORYLESS | {"bfloat16": False}
    whole = runs.run(changes=epochs(4, **changes))
    runs.run(path, changes=epochs(2, **changes))
    runs.run(path, changes=epochs(4, **changes), extend=True, stop_after=3)
    assert checkpoint.read(path, checkpoint.NETWORK)[0]["about"]["epochs"] == 2  # until the longer one is there
    assert runs.same(runs.run(path, changes=epochs(4, **changes), extend=True), whole)
    assert sorted(file.name for file in path.parent.iterdir()) == ["net.jsonl", "net.safetensors"]


def test_the_averages_begin_with_the_network_that_is_extended(path):
    """At a rate of nothing it stays as it is, whatever network is handed over to receive its weights."""
    still = {"lr": 1e-30, "weight_decay": 0.0}
    kept = runs.run(path, changes=epochs(1, **still))
    other = runs.fresh(seed=5)
    runs.train.train(
        other, runs.few(), runs.recipe(**epochs(2, **still)), path=path, device="cpu", quiet=True, extend=True
    )
    for one, theirs in zip(other.parameters(), kept.parameters(), strict=True):
        torch.testing.assert_close(one, theirs, rtol=0, atol=1e-20)


def test_the_files_say_what_it_was(path):
    first = runs.run(path, changes=epochs(1))
    net = runs.run(path, changes=epochs(2), extend=True)
    net = runs.run(path, changes=epochs(4), extend=True)
    assert (net.about["epochs"], net.about["run"]["extension"]) == (4, [1, 2])
    assert net.about["seconds"] > first.about["seconds"]
    head, *log = map(json.loads, path.with_suffix(".jsonl").read_text().splitlines())
    assert (head["recipe"]["epochs"], [record["epoch"] for record in log]) == (4, [1, 2, 3, 4])
    assert nb.load(path).about["run"] == net.about["run"]
    assert runs.same(runs.run(path, changes=epochs(4), extend=True), net)


def test_the_meaning_of_the_schedule_is_said_in_words(path, capsys):
    runs.run(path, changes=epochs(2))
    runs.run(path, changes=epochs(4), extend=True, quiet=False)
    said = capsys.readouterr().out
    rates = runs.recipe(**epochs(4)).rate(12, 6), runs.recipe(**epochs(2)).rate(11, 6)
    assert f"from {rates[0]:.3g} on, where its last step had {rates[1]:.3g}" in said
    assert "is finished after 2 epochs and is trained on to 4" in said
    assert rates[0] > 2 * rates[1]  # a triangle has fallen, and rises again


def test_what_is_not_asked_for_is_refused_with_the_way_to_ask(path):
    runs.run(path, changes=epochs(1))
    with pytest.raises(ValueError, match=r"another recipe \(epochs 1 there, 2 here\); `extend` .* goes on with it"):
        runs.run(path, changes=epochs(2))
    runs.run(path, changes=epochs(2), extend=True)
    with pytest.raises(ValueError, match=r"another extension \(\[1\] there, \[\] here\); `extend` .* goes on with it"):
        runs.run(path, changes=epochs(2))


@pytest.mark.parametrize("changes", [{"epochs": 1}, {"epochs": 3, "lr": 0.3}])
def test_another_run_and_fewer_epochs_stay_refused(path, changes):
    runs.run(path, changes=epochs(2))
    for extend in (False, True):
        with pytest.raises(ValueError, match=r"belongs to a run with another recipe.*; delete it, or choose"):
            runs.run(path, changes=changes, extend=extend)


def test_a_training_that_is_not_finished_is_not_extended(path):
    runs.run(path, changes=epochs(2), stop_after=1)
    with pytest.raises(
        ValueError, match=r"\.resume belongs to a run with another recipe \(epochs 2 there, 3 here\); delete"
    ):
        runs.run(path, changes=epochs(3), extend=True)
