"""Two processes are one process that normalises its batch in the same two halves."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import netbridge as nb
from tests.clock import HANGS
from tests.netbridge.train import runs

WORKER = """
import sys, pathlib, torch
sys.path.insert(0, sys.argv[2])
torch.set_num_threads(1)
from netbridge.train import distributed
from tests.netbridge.train import runs
with distributed.join():
    assert distributed.world() == 2
    runs.run(pathlib.Path(sys.argv[1]), dtype=torch.float64)
"""


@pytest.mark.slow
def test_two_gloo_processes_equal_one_in_two_halves(tmp_path):
    path = tmp_path / "net.safetensors"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    common |= {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path), str(Path(__file__).parents[3])],
            env=common | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    errors = [worker.communicate(timeout=HANGS)[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], "\n".join(errors)
    two = nb.load(path).state_dict()
    one = runs.run(dtype=torch.float64, parts=2).state_dict()
    whole = runs.run(dtype=torch.float64).state_dict()
    assert max(distance(one[name], two[name]) for name in one) < 1e-10
    assert max(distance(one[name], whole[name]) for name in one) > 1e-6  # the halves do matter


def distance(x, y) -> float:
    return float((x - y).abs().max() / y.abs().max().clamp(min=1.0))


def test_parts_leave_the_mean_of_their_statistics():
    """One step from fresh statistics: the running mean is a tenth of the mean of both halves' means."""
    data = runs.few(count=16)
    changes = {"epochs": 1, "average": False, "small": ()}
    nets = [runs.run(dtype=torch.float64, images=data, changes=changes, parts=parts) for parts in (1, 2)]
    means, variances = ([getattr(net.stem.bn, name) for net in nets] for name in ("running_mean", "running_var"))
    torch.testing.assert_close(means[0], means[1], rtol=1e-12, atol=1e-12)
    assert not torch.allclose(variances[0], variances[1], rtol=1e-6, atol=0)
