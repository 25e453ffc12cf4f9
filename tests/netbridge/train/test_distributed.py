"""Two processes are one process that normalises its batch in the same two halves."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch

import netbridge as nb
from netbridge import train
from tests.clock import HANGS
from tests.netbridge.train import runs

WORKER = """
import sys, pathlib, torch
sys.path.insert(0, sys.argv[2])
torch.set_num_threads(1)
from netbridge.train import distributed
from tests.netbridge.train import runs, test_distributed
path = pathlib.Path(sys.argv[1])
with distributed.join():
    assert distributed.world() == 2
    runs.run(path, dtype=torch.float64)
    test_distributed.partly(path.with_name("partly.safetensors"))
"""


class Partly(torch.nn.Module):
    """Somebody else's network: some parameters have no part in it, two are one, and a pass replaces a buffer."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 8, 3, 2), torch.nn.BatchNorm2d(8)
        self.head, self.again = torch.nn.Linear(8, 10), torch.nn.Linear(8, 10, bias=False)
        self.again.weight = self.head.weight
        self.unused = torch.nn.Linear(4, 4)
        self.fixed = torch.nn.Parameter(torch.ones(8), requires_grad=False)
        self.register_buffer("centre", torch.zeros(8, dtype=torch.float64))

    def forward(self, x):
        features = self.norm(self.conv(x).relu()).mean((2, 3)) * self.fixed
        if self.training:
            self.centre = 0.9 * self.centre + 0.1 * features.detach().mean(0)
        return self.head(features - self.centre) + self.again(features)


def partly(path=None):
    torch.manual_seed(0)
    return train.train(
        Partly(), runs.few(), runs.recipe(epochs=2), 0, path, device="cpu", quiet=True, dtype=torch.float64, parts=4
    )


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
    theirs, alone = safetensors.torch.load_file(path.with_name("partly.safetensors")), partly().state_dict()
    assert max(distance(alone[name], theirs[name]) for name in alone) < 1e-10


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
