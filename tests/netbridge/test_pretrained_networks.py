"""The zoo: its list says what the files' headers say, and a name loads the network of that file."""

import dataclasses
import json
import shutil

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


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """Neither a checkout nor a cache, nor what a user has named."""
    monkeypatch.setattr(pretrained_networks, "ZOO", tmp_path / "beside")
    monkeypatch.setenv("NETBRIDGE_DATA", str(tmp_path / "cache"))
    monkeypatch.delenv("ODELAB_ZOO", raising=False)
    return tmp_path


NAME = "digits/resnet32-width4-se-seed0"


def put(folder):
    (folder / NAME).parent.mkdir(parents=True)
    shutil.copy(ZOO / f"{NAME}.safetensors", folder / f"{NAME}.safetensors")
    return folder


@pytest.mark.parametrize("name", [None, NAME])
def test_without_networks_each_place_is_named(name, nowhere):
    with pytest.raises(FileNotFoundError, match="no network has come with this package") as error:
        nb.pretrained(name)
    for words in ("$ODELAB_ZOO: not there", str(nowhere / "beside"), "odelab-zoo: not there", str(nowhere / "cache")):
        assert words in str(error.value)


@pytest.mark.parametrize("place", ["named", "beside", "package", "cache/zoo"])
def test_networks_are_found_where_they_lie(place, nowhere, monkeypatch):
    put(nowhere / place)
    if place == "named":
        monkeypatch.setenv("ODELAB_ZOO", str(nowhere / place))
    if place == "package":
        (nowhere / place).rename(nowhere / "odelab_zoo")
        monkeypatch.syspath_prepend(nowhere)
    (one,) = nb.pretrained()
    assert one.name == NAME
    assert nb.pretrained(NAME).about["test_errors"] == 4


def test_the_places_come_in_their_order(nowhere, monkeypatch):
    for place in ("named", "beside", "cache/zoo"):
        put(nowhere / place)
    monkeypatch.setenv("ODELAB_ZOO", str(nowhere / "named"))
    assert pretrained_networks.zoo_folder() == nowhere / "named"
    monkeypatch.delenv("ODELAB_ZOO")
    assert pretrained_networks.zoo_folder() == nowhere / "beside"


@pytest.fixture
def known(nowhere, monkeypatch):
    """What an installation knows of the networks of its version, and an address that has one of them."""
    digests = nowhere / "digests.json"
    digests.write_text(json.dumps(pretrained_networks.digests_of(put(nowhere / "host"))))
    monkeypatch.setattr(pretrained_networks, "DIGESTS", digests)
    return (nowhere / "host").as_uri()


def test_what_is_fetched_is_checked_and_found(known, nowhere):
    assert nb.fetch_pretrained(known) == nowhere / "cache" / "zoo"
    assert [one.name for one in nb.pretrained()] == [NAME]
    shutil.rmtree(nowhere / "host")
    nb.fetch_pretrained(known)  # is there already


def test_another_file_than_the_one_that_was_released_is_not_kept(known, nowhere):
    with (nowhere / "host" / f"{NAME}.safetensors").open("ab") as file:
        file.write(b"more")
    with pytest.raises(ValueError, match="that of this version is"):
        nb.fetch_pretrained(known)
    assert not pretrained_networks.holds_networks(nowhere / "cache" / "zoo")


def test_names_and_addresses_that_lead_nowhere_are_named(known, nowhere):
    for names in ("digits/other", ["digits/other"]):
        with pytest.raises(ValueError, match="'digits/other' is none of the 1 networks"):
            nb.fetch_pretrained(known, names)
    with pytest.raises(OSError, match=f"{nowhere.as_uri()}/elsewhere/{NAME}"):
        nb.fetch_pretrained(f"{nowhere.as_uri()}/elsewhere/")
