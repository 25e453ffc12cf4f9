"""The zoo: its list says what the files' headers say, and a name loads the network of that file."""

import dataclasses

import pytest
import torch

import netbridge as nb
from netbridge import pretrained_networks
from netbridge.pretrained_networks import ZOO


def test_the_list_is_what_the_headers_say():
    every = nb.pretrained()
    assert len(every) == len(list(ZOO.rglob("*.safetensors")))
    for one in every[:: len(every) // 5]:
        net = nb.load(ZOO / f"{one.name}.safetensors")
        known = dataclasses.asdict(one)
        assert {key: net.about[key] for key in known if key in net.about}.items() <= known.items()
        assert one.width == net.config["widths"][0]
        assert one.depth == 2 + 2 * len(net.blocks)


def test_a_name_loads_its_network():
    net = nb.pretrained("digits/resnet32-width4-constant-seed0")
    again = nb.load(ZOO / "digits" / "resnet32-width4-constant-seed0.safetensors")
    assert not net.training
    assert all(torch.equal(x, y) for x, y in zip(net.parameters(), again.parameters(), strict=True))


def test_it_prints_as_a_table():
    head, *rows = repr(nb.pretrained()).splitlines()
    assert head.split() == ["name", "dataset", "controller", "depth", "width", "seed", "recipe", "epochs", "accuracy"]
    assert len(rows) == len(nb.pretrained())
    assert any("92.21 %" in row for row in rows)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cifar10/resnet20-se-sed0", "did you mean 'cifar10/resnet20-se-seed0'"),
        ("resnet20-se-seed0", "did you mean 'cifar10/resnet20-se-seed0'"),
        ("", r"`nb.pretrained\(\)` lists all names"),
        ("../zoo/cifar10/resnet20-se-seed0", "is no shipped network"),
    ],
)
def test_another_name_is_answered_with_similar_ones(name, words):
    with pytest.raises(ValueError, match=words):
        nb.pretrained(name)


@pytest.mark.parametrize("name", [None, "cifar10/resnet20-se-seed0"])
def test_a_package_without_its_networks_says_so(name, tmp_path, monkeypatch):
    monkeypatch.setattr(pretrained_networks, "ZOO", tmp_path)
    with pytest.raises(FileNotFoundError, match="no network has come with this package"):
        nb.pretrained(name)
