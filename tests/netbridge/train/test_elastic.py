"""torchrun, with every trick on: a killed worker, other processes and a signal end with the undisturbed network."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import netbridge as nb
from netbridge import checkpoint
from netbridge.train import distributed
from tests.clock import HANGS
from tests.netbridge.train import runs
from tests.netbridge.train.test_tricks import ALL

ROOT = Path(__file__).parents[3]
PARTS = 4
WORKER = f"""
import os, pathlib, signal, sys, torch
sys.path.insert(0, {str(ROOT)!r})
torch.set_num_threads(1)
from netbridge import train
from netbridge.train import distributed, pausing
from tests.netbridge.train import runs
from tests.netbridge.train.test_tricks import ALL

pausing.AGREE_EVERY = 2  # an epoch has six steps, the ninth is within the second
path, how, parts = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) or None
marker, steps, plain = path.with_suffix(".marker"), [], torch.optim.SGD.step

def disturbed(*a):
    steps.append(0)
    if len(steps) == 9 and not marker.exists() and distributed.rank() == distributed.world() - 1:
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL if how == "kill" else signal.SIGTERM)
    return plain(*a)

if how in ("kill", "stop"):
    torch.optim.SGD.step = disturbed
with distributed.join():
    try:
        runs.run(path, dtype=torch.float64, parts=parts, checkpoint_minutes=0, changes=ALL,
                 stop_after=1 if how == "first" else None)
    except train.Interrupted as stop:
        raise SystemExit(stop.code)
"""


def torchrun(folder: Path, name: str, processes: int, how: str, parts: int = PARTS) -> Path:
    script, path = folder / "worker.py", folder / f"{name}.safetensors"
    script.write_text(WORKER)
    words = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes), "--max-restarts", "2"]
    words += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--monitor-interval", "0.1"]
    done = subprocess.run(
        [sys.executable, *words, str(script), str(path), how, str(parts)],
        env=os.environ | {distributed.SHARED_STORE: "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=HANGS,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("elastic")


@pytest.fixture(scope="module")
def undisturbed(folder):
    return nb.load(torchrun(folder, "undisturbed", 2, "whole"))


def distance(one, other) -> float:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return max(float((x - y).abs().max() / y.abs().max().clamp(min=1.0)) for x, y in pairs)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_killed_worker_changes_no_bit(folder, undisturbed):
    path = torchrun(folder, "killed", 2, "kill")
    assert path.with_suffix(".marker").exists()
    assert runs.same(nb.load(path), undisturbed)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_signal_to_one_process_stops_all_and_changes_no_bit(folder, undisturbed):
    path = torchrun(folder, "stopped", 2, "stop")
    assert not path.exists()
    record, _ = checkpoint.load_training(path.with_suffix(".resume"))
    assert (record["epoch"], record["within"]["step"]) == (1, 4)
    assert runs.same(nb.load(torchrun(folder, "stopped", 2, "whole")), undisturbed)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_another_number_of_processes_changes_rounding_only(folder, undisturbed):
    """Two processes begin; three, with unequal numbers of parts, go on, and one finishes what they would have."""
    path = torchrun(folder, "changing", 2, "first")
    assert distance(nb.load(torchrun(folder, "changing", 3, "whole", parts=0)), undisturbed) < 1e-10
    assert not path.with_suffix(".resume").exists()
    assert distance(runs.run(dtype=torch.float64, parts=PARTS, changes=ALL), undisturbed) < 1e-10
    assert distance(runs.run(dtype=torch.float64, parts=2, changes=ALL), undisturbed) > 1e-6


class TestOneProcess:
    def test_parts_that_do_not_fit(self, monkeypatch):
        monkeypatch.setattr(distributed, "world", lambda: 3)
        with pytest.raises(ValueError, match="`parts` = 2 leaves some of the 3 processes without work"):
            runs.run(parts=2)

    def test_a_run_keeps_its_parts_where_none_are_asked_for(self, tmp_path):
        path = tmp_path / "net.safetensors"
        runs.run(path, parts=2, stop_after=1)
        assert runs.same(runs.run(path), runs.run(parts=2))
        assert runs.same(runs.run(path), runs.run(parts=2))  # finished, it is read
        with pytest.raises(ValueError, match=r"another parts \(2 there, 4 here\)"):
            runs.run(path, parts=4)

    def test_restarts_without_the_variable_are_warned_of(self, monkeypatch):
        monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "3")
        monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
        with pytest.warns(UserWarning, match=f"--max-restarts 3.*set {distributed.SHARED_STORE}=1"):
            distributed.warn_of_the_shared_store()
        monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "False")
        distributed.warn_of_the_shared_store()
