"""Stopped by a signal or killed within an epoch, a training goes on from there and ends with the same bits."""

import json
import signal
import threading

import pytest
import torch

from netbridge import checkpoint, train
from netbridge.train import pausing
from tests.netbridge.train import runs

STEPS = 6  # of an epoch


class Dropping(torch.nn.Module):
    """A network with a layer that draws; something happens at the start of step `when`, counted over all epochs."""

    def __init__(self, when=None, happens=lambda: None):
        super().__init__()
        torch.manual_seed(0)
        self.net, self.drop = runs.fresh(), torch.nn.Dropout(0.2)
        self.when, self.happens, self.steps = when, happens, 0

    def forward(self, x):
        if self.training:
            self.steps += 1
            if self.steps == self.when:
                self.happens()
        return self.drop(self.net(x))

    def extra_repr(self):
        return ""


def run(path=None, when=None, happens=lambda: None, **options):
    net = Dropping(when, happens)
    how = runs.recipe(average=False, ema=0.9, mixup=1.0)
    return train.train(net, runs.few(), how, 0, path, device="cpu", quiet=True, **options)


def step_kept(path) -> tuple[int, int]:
    record, _ = checkpoint.load_training(path.with_suffix(".resume"))
    return record["epoch"], record.get("within", {}).get("step", 0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "net.safetensors"
    return run(path), losses(path)


def losses(path):
    return [json.loads(text)["loss"] for text in path.with_suffix(".jsonl").read_text().splitlines()[1:]]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1"])
def test_a_signal_ends_the_session_after_the_step(whole, name, tmp_path):
    path = tmp_path / "net.safetensors"
    before = signal.getsignal(getattr(signal, name))
    with pytest.raises(train.Interrupted, match=r"epoch 2 of 3\. Everything up to step 2 of 6 .* goes on") as end:
        run(path, 8, lambda: signal.raise_signal(getattr(signal, name)))
    assert end.value.code == 0
    assert signal.getsignal(getattr(signal, name)) == before
    assert step_kept(path) == (1, 2)
    torch.manual_seed(99)
    assert runs.same(run(path), whole[0])
    assert losses(path) == whole[1]


def test_a_signal_after_the_last_step_of_an_epoch(whole, tmp_path):
    path = tmp_path / "net.safetensors"
    with pytest.raises(train.Interrupted):
        run(path, STEPS, lambda: signal.raise_signal(signal.SIGTERM))
    assert step_kept(path) == (0, STEPS)
    assert runs.same(run(path), whole[0])


def test_a_signal_between_epochs(whole, tmp_path):
    path = tmp_path / "net.safetensors"
    with pytest.raises(train.Interrupted, match="end of epoch 1"):
        run(path, on_epoch=lambda net, record: signal.raise_signal(signal.SIGTERM))
    assert step_kept(path) == (1, 0)
    assert runs.same(run(path), whole[0])


def test_states_within_an_epoch_outlive_a_crash(whole, tmp_path):
    def crash():
        raise MemoryError

    path = tmp_path / "net.safetensors"
    for when, kept in ((4, (0, 3)), (7, (1, 3))):
        with pytest.raises(MemoryError):
            run(path, when, crash, checkpoint_minutes=0)
        assert step_kept(path) == kept
    assert runs.same(run(path, checkpoint_minutes=1e6), whole[0])


def test_without_a_path_nothing_is_kept():
    with pytest.raises(train.Interrupted, match="Nothing is kept") as end:
        run(None, 2, lambda: signal.raise_signal(signal.SIGTERM))
    assert end.value.code == 130


def test_only_the_main_thread_listens(whole):
    found = []
    thread = threading.Thread(target=lambda: found.append(run()))
    thread.start()
    thread.join()
    assert runs.same(found[0], whole[0])


def test_minutes_that_make_no_sense():
    with pytest.raises(ValueError, match="`checkpoint_minutes` must be a number from 0 on or None, got -1"):
        pausing.Pauses(-1)


def test_a_sign_of_life_comes_within_an_epoch(capsys):
    runs.run(quiet=False, changes={"epochs": 1, "evaluate_every": 9}, heartbeat=0.0)
    said = capsys.readouterr().out.splitlines()
    assert [line.split(", loss")[0] for line in said[:2]] == [
        "se 0: epoch 1 of 1, step 1 of 6",
        "se 0: epoch 1 of 1, step 2 of 6",
    ]
    runs.run(quiet=False, changes={"epochs": 1, "evaluate_every": 9}, heartbeat=1e6)
    assert len(capsys.readouterr().out.splitlines()) == 1  # the epoch's own line
    with pytest.raises(ValueError, match="`heartbeat` must be a number of seconds"):
        runs.run(heartbeat=-1.0)
