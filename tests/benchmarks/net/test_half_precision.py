"""The benchmark rounds as files do, and its changes are nothing where nothing is rounded."""

import pytest
import torch

import netbridge as nb
from benchmarks.net import half_precision
from netbridge import data as datasets
from netbridge.pretrained_networks import ZOO


@pytest.fixture(scope="module")
def net():
    return nb.load(ZOO / "digits" / "resnet32-width4-se-seed0.safetensors")


def test_it_rounds_as_files_do(net, tmp_path):
    stored = nb.load(nb.save(net, tmp_path / "half", half=True)).state_dict()
    rounded = half_precision.rounded(net, torch.float16).state_dict()
    assert all(torch.equal(rounded[name], x) for name, x in stored.items())
    assert not all(torch.equal(rounded[name], x) for name, x in net.state_dict().items())


def test_changes_are_those_of_the_rounding(net):
    data = datasets.load("digits")
    whole = half_precision.look(net, data, 20)
    same = half_precision.changes(whole, half_precision.look(net, data, 20))
    assert set(same.values()) == {0.0}
    assert whole["test_errors"] == net.about["test_errors"]
    changed = half_precision.changes(whole, half_precision.look(half_precision.rounded(net, torch.bfloat16), data, 20))
    measured = {name: value for name, value in changed.items() if name != "errors"}
    assert all(0 < value < 0.1 for value in measured.values())
    assert measured["NSI slope, mean of a block"] <= measured["NSI slope, one image"]
