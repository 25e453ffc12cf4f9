"""Killed at any moment and started again, training ends with the same bits."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from netbridge import checkpoint
from tests.clock import HANGS
from tests.netbridge.train import runs

ROOT = Path(__file__).parents[3]

KILLED = {
    # the eighth step is in the middle of the second epoch
    "in an epoch": "steps, step = [], torch.optim.SGD.step\n"
    "def killed(*a):\n    steps.append(0)\n    die() if len(steps) == 8 else None\n    return step(*a)\n"
    "torch.optim.SGD.step = killed\n",
    # half a file of the second epoch's state
    "in a write": "replace, states = os.replace, []\n"
    "def killed(source, target):\n    states.append(0) if target.suffix == '.resume' else None\n"
    "    if len(states) == 2:\n        source.write_bytes(source.read_bytes()[:5000])\n        die()\n"
    "    replace(source, target)\n"
    "os.replace = killed\n",
    # all is trained, the network is not yet in its place
    "at the end": "replace = os.replace\n"
    "def killed(source, target):\n    die() if target.suffix == '.safetensors' else replace(source, target)\n"
    "os.replace = killed\n",
}


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "kept"), [("in an epoch", 1), ("in a write", 1), ("at the end", 3)])
def test_kill_and_resume_give_the_same_bits(tmp_path, moment, kept):
    path = tmp_path / "net.safetensors"
    code = (
        f"import os, signal, sys, pathlib\nsys.path.insert(0, {str(ROOT)!r})\nimport torch\ntorch.set_num_threads(1)\n"
        "from tests.netbridge.train import runs\n"
        "die = lambda: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"{KILLED[moment]}runs.run(pathlib.Path({str(path)!r}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not path.exists()
    assert checkpoint.load_training(path.with_suffix(".resume"))[0]["epoch"] == kept
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert runs.same(runs.run(path), runs.run())
    finally:
        torch.set_num_threads(threads)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["net.jsonl", "net.safetensors"]


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_stop_after_any_epoch_and_go_on(tmp_path, optimizer):
    path, changes = tmp_path / "net.safetensors", {"optimizer": optimizer}
    whole = runs.run(changes=changes)
    runs.run(path, changes=changes, stop_after=1)
    runs.run(path, changes=changes, stop_after=2)
    assert not path.exists()
    assert runs.same(runs.run(path, changes=changes), whole)


def test_layers_that_draw_are_resumed_too(tmp_path):
    def noisy(stop_after=None, path=None):
        net = runs.fresh()
        net.stages[0].register_forward_hook(lambda module, inputs, out: out * (1 + 0.1 * torch.rand(())))
        from netbridge.train import loop as train

        return train.train(
            net, runs.few(), runs.recipe(), path=path, device="cpu", quiet=True, stop_after=stop_after
        ).state_dict()

    path = tmp_path / "net.safetensors"
    whole = noisy()
    torch.manual_seed(99)
    noisy(1, path)
    again = noisy(None, path)
    assert all(torch.equal(whole[name], again[name]) for name in whole)


def test_another_runs_state_is_refused(tmp_path):
    path = tmp_path / "net.safetensors"
    runs.run(path, stop_after=1)
    for change, word in (
        ({"changes": {"lr": 0.3}}, "recipe"),
        ({"controller": "eca"}, "config"),
        ({"seed": 1}, "seed"),
    ):
        with pytest.raises(ValueError, match=f"belongs to a run with another {word}"):
            runs.run(path, **change)


def test_a_damaged_state_is_named(tmp_path):
    path = tmp_path / "net.safetensors"
    runs.run(path, stop_after=1)
    state = path.with_suffix(".resume")
    state.write_bytes(state.read_bytes()[:-50])
    with pytest.raises(ValueError, match=r"net\.resume: damaged"):
        runs.run(path)
