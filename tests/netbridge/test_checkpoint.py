"""Checkpoints: what is saved comes back whole, and what is damaged is named and not half loaded."""

import json
import os
import pickle
import struct

import pytest
import safetensors
import torch
from safetensors.torch import save_file

import netbridge as nb
from netbridge.checkpoint import read_header
from tests.netbridge import networks
from tests.netbridge.train import runs

KINDS = [
    {"controller": "stepnet"},
    {"controller": nb.asr("se", uses=2, beside="dia")},
    {"controller": "iebn", "shortcut": "B"},
    {"controller": nb.asr("ie", learnable=False)},
    {"controller": nb.controller("cbam", reduction=4), "on": [0, 3]},
    {"bottleneck": True, "depth": 11, "post_activation": False, "method": "RK4", "weights": "interpolated"},
    {"depth": 18, "widths": (4, 4, 8, 8), "stem": "cifar", "num_classes": 3, "depth_factor": 2},
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_saved_network_comes_back(kind, tmp_path, images):
    net = networks.lively(nb.resnet(**{"depth": 14, "widths": (16, 16, 16), **kind})).eval()
    net.normalisation = {"mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25]}
    path = nb.save(net, tmp_path / "net.safetensors", about={"accuracy": 0.9, "seed": 3})
    again = nb.load(path)
    assert again.config == net.config
    assert again.normalisation == net.normalisation
    assert again.about == {"accuracy": 0.9, "seed": 3}
    assert not again.training
    state = net.state_dict()
    assert all(torch.equal(state[name], tensor) for name, tensor in again.state_dict().items())
    assert [p.requires_grad for p in again.parameters()] == [True] * len(list(net.parameters()))
    with torch.no_grad():
        assert torch.equal(again(images), net(images))
    again(images).sum().backward()
    assert os.listdir(tmp_path) == ["net.safetensors"]


def test_merged_folded_and_other_precisions_come_back(tmp_path, images):
    net = networks.lively(nb.resnet(14, controller=nb.asr("se"))).double().eval().to(memory_format=torch.channels_last)
    for step in (nb.merge, nb.fold):
        net = step(net)
        again = nb.load(nb.save(net, tmp_path / "net"))
        assert again.config == net.config
        with torch.no_grad():
            assert networks.relative_error(again(images.double()), net(images.double())) < 1e-14
    with torch.device("meta"):
        before = nb.resnet(14)
    assert before.config != again.config
    swapped = nb.swap(again, "se")
    with torch.no_grad():
        assert torch.equal(nb.load(nb.save(swapped, tmp_path / "net"))(images.double()), swapped(images.double()))


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = nb.save(nb.resnet(8, widths=(4, 4, 4)), tmp_path / "net")
    old = path.read_bytes()

    def interrupted(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        nb.save(nb.resnet(14, widths=(4, 4, 4)), path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["net"]


@pytest.fixture
def saved(tmp_path):
    return nb.save(networks.lively(nb.resnet(8, widths=(4, 4, 4), controller="se")), tmp_path / "net")


def rewritten(path, change):
    """The file with its header, and what its tensors are, changed by `change(header, state)`."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(json.loads(file.read(size))["__metadata__"]["netbridge"])
    from safetensors.torch import load_file

    state = load_file(path)
    change(header, state)
    save_file(state, path, metadata={"netbridge": json.dumps(header)})
    return path


def put(name, value):
    def change(header, state):
        state[name] = value(state[name]) if callable(value) else value

    return change


def configured(**more):
    def change(header, state):
        header["config"].update(more)

    return change


WEIGHT = "stages.1.blocks.0.branch.conv1.weight"
DAMAGES = {
    "shape": (put(WEIGHT, torch.zeros(4, 4, 1, 1)), rf"`{WEIGHT}` is \(4, 4, 1, 1\), the network's \(4, 4, 3, 3\)"),
    "NaN": (put(WEIGHT, lambda w: w.fill_(torch.nan)), rf"`{WEIGHT}` holds 144 NaN or infinite values"),
    "infinity": (put("head.fc.bias", lambda b: b / 0), r"`head.fc.bias` holds 10 NaN or infinite"),
    "missing": (lambda header, state: state.pop(WEIGHT), rf"1 missing \['{WEIGHT}'\], 0 too many"),
    "extra": (put("more", torch.zeros(1)), r"0 missing \[\], 1 too many \['more'\]"),
    "another depth": (configured(blocks=[2, 2, 2], controllers=["se"] * 6), r"\d+ missing"),
    "another controller": (configured(controllers=["eca"] * 3), r"missing .* too many"),
    "a stranger's controller": (configured(controllers=["hers"] * 3), "cannot be rebuilt: `controller` must be one of"),
    "too few controllers": (configured(controllers=["se"]), "cannot be rebuilt: 1 controllers for 3 blocks"),
    "an absurd depth": (configured(blocks=[10**9] * 3), "cannot be rebuilt: 3000000000 blocks from"),
    "an absurd width": (configured(widths=[10**30] * 3), "cannot be rebuilt"),
    "no widths": (lambda header, state: header["config"].pop("widths"), "cannot be rebuilt: 'widths'"),
    "another format": (
        lambda header, state: header.update(format=99),
        "format 99, and this version reads format 1 and format 2",
    ),
    "no architecture": (lambda header, state: header.pop("config"), "its record of the architecture is damaged"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named(damage, saved):
    change, words = DAMAGES[damage]
    rewritten(saved, change)
    with pytest.raises(ValueError, match=words):
        nb.load(saved)


def test_an_unchanged_rewrite_loads(saved):
    rewritten(saved, lambda header, state: None)
    assert nb.load(saved).config["blocks"] == [1, 1, 1]


def test_a_length_that_looks_like_a_pickle(tmp_path):
    """The file begins with the length of its header, whose first byte may be that of a pickle."""
    net = nb.resnet(8, widths=(4, 4, 4))
    starts = set()
    for length in range(0, 300, 8):
        path = nb.save(net, tmp_path / "net", about={"note": "x" * length})
        starts.add(path.read_bytes()[:1])
        assert nb.load(path).about["note"] == "x" * length
    assert b"\x80" in starts


@pytest.mark.parametrize("kept", [0, 4, 100, 0.5, -1])
def test_truncated_files(kept, saved):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(kept * len(content)) if isinstance(kept, float) else kept])
    with pytest.raises(ValueError, match="damaged or cut short"):
        nb.load(saved)


class Evil:
    def __reduce__(self):
        return os.mkdir, (os.environ["ODELAB_TEST_EVIL"],)


@pytest.mark.parametrize("load", [nb.load, nb.load_foreign])
@pytest.mark.parametrize("write", ["pickle", "torch", "torch before 1.6"])
def test_pickles_run_nothing(load, write, tmp_path, monkeypatch):
    monkeypatch.setenv("ODELAB_TEST_EVIL", str(tmp_path / "it ran"))
    path = tmp_path / "net.pt"
    if write == "pickle":
        path.write_bytes(pickle.dumps({"conv1.weight": Evil()}))
    else:
        torch.save({"conv1.weight": Evil()}, path, _use_new_zipfile_serialization=write == "torch")
    with pytest.raises(ValueError, match=r"net.pt: (this is a pickle|refused, it asks for more|damaged)"):
        load(path)
    assert not (tmp_path / "it ran").exists()


def test_files_of_others(tmp_path):
    path = tmp_path / "other.safetensors"
    save_file({"weight": torch.ones(1)}, path)
    with pytest.raises(ValueError, match="without netbridge's record of the architecture"):
        nb.load(path)
    save_file({"weight": torch.ones(1)}, path, metadata={"netbridge": "{"})
    with pytest.raises(ValueError, match="its record of the architecture is damaged"):
        nb.load(path)
    path.write_text("no tensors at all")
    with pytest.raises(ValueError, match="damaged or cut short"):
        nb.load(path)
    with pytest.raises(FileNotFoundError, match=r"`path` = '.*nowhere' is not a file"):
        nb.load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="is not a file"):
        nb.load_foreign(tmp_path)


def test_save_refuses(tmp_path):
    with pytest.raises(TypeError, match="`net` must be a network of netbridge, got Linear"):
        nb.save(torch.nn.Linear(1, 1), tmp_path / "net")
    with pytest.raises(TypeError, match="`about` must be plain numbers"):
        nb.save(nb.resnet(8, widths=(4, 4, 4)), tmp_path / "net", about={"loss": torch.ones(1)})
    assert os.listdir(tmp_path) == []


# Half precision on the disk, float32 in memory.


@pytest.fixture
def wide():
    """A network with weights large enough to be halved, and with others."""
    net = networks.lively(nb.resnet(14, widths=(16, 16, 32), controller=nb.controller("se", reduction=4))).eval()
    net.normalisation = {"mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25]}
    net.about = {"seed": 3}
    return net


def header_of(path):
    with safetensors.safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()["netbridge"])


def test_large_weights_lose_what_rounding_takes_and_nothing_else_changes(wide, tmp_path):
    """Float16 has 11 binary digits: half a unit of the last is 2^-11 of a number, 2^-25 of the smallest ones."""
    before = {name: x.clone() for name, x in wide.state_dict().items()}
    whole, path = nb.save(wide, tmp_path / "whole"), nb.save(wide, tmp_path / "half", half=True)
    assert path.stat().st_size < 0.6 * whole.stat().st_size
    again = nb.load(path)
    changed = []
    for name, x in again.state_dict().items():
        assert torch.equal(wide.state_dict()[name], before[name])  # the network in memory stays
        assert x.dtype == before[name].dtype
        if not torch.equal(x, before[name]):
            changed.append(name)
            bound = (before[name].double().abs() * 2.0**-11).clamp(min=2.0**-25)
            assert bool(((x.double() - before[name].double()).abs() <= bound).all())
    assert set(changed) == {name for name, x in wide.named_parameters() if x.dim() > 1 and x.numel() >= 1024}
    assert not any("running" in name or "controller" in name for name in changed)
    assert again.config == wide.config
    assert again.normalisation == wide.normalisation


def test_rounding_twice_is_rounding_once(wide, tmp_path):
    once = nb.load(nb.save(wide, tmp_path / "once", half=True))
    twice = nb.load(nb.save(once, tmp_path / "twice", half=True))
    whole = nb.load(nb.save(once, tmp_path / "whole"))
    for other in (twice, whole):
        assert all(map(torch.equal, once.state_dict().values(), other.state_dict().values()))


def test_the_header_says_that_weights_were_rounded_and_the_record_keeps_it(wide, tmp_path):
    path = nb.save(wide, tmp_path / "half", half=True)
    assert (header_of(path)["format"], header_of(path)["rounded_to"]) == (2, "float16")
    assert read_header(path)["about"] == nb.load(path).about == {"seed": 3, "rounded_to": "float16"}
    whole = nb.save(nb.load(path), tmp_path / "whole")
    assert (header_of(whole)["format"], "rounded_to" in header_of(whole)) == (1, False)
    assert nb.load(whole).about == {"seed": 3, "rounded_to": "float16"}  # it is true of the weights still
    assert "rounded_to" not in nb.load(nb.save(wide, tmp_path / "other")).about


def test_a_network_of_half_precision_itself_comes_back_as_it_is(wide, tmp_path):
    again = nb.load(nb.save(wide.half(), tmp_path / "net"))
    assert {x.dtype for x in again.parameters()} == {torch.float16}


def test_a_training_reads_a_finished_network_in_half_precision(tmp_path):
    path = tmp_path / "net.safetensors"
    trained = runs.run(path)
    nb.save(nb.load(path), path, half=True)
    again = runs.run(path)
    assert again.about == trained.about | {"rounded_to": "float16"}
    assert {x.dtype for x in again.parameters()} == {torch.float32}


def test_half_precision_refuses_what_it_would_spoil(wide, tmp_path):
    for nonsense in ("yes", 1, None, torch.float16):
        with pytest.raises(TypeError, match="`half` must be True or False, got"):
            nb.save(wide, tmp_path / "net", half=nonsense)
    name = "stages.1.blocks.0.branch.conv1.weight"
    weight = wide.get_parameter(name)
    for value, shown in ((1e5, "100000"), (-65520.0, "65520"), (float("nan"), "nan")):
        with torch.no_grad():
            kept = weight[0, 0, 0, 0].clone()
            weight[0, 0, 0, 0] = value
            with pytest.raises(ValueError, match=rf"`half`: `{name}` of `net` holds {shown}, .* Leave `half` out"):
                nb.save(wide, tmp_path / "net", half=True)
            weight[0, 0, 0, 0] = kept
    for kind in (torch.float64, torch.bfloat16):
        words = rf"`half` rounds float32, and `\S+` of `net` is {str(kind)[6:]}\. Save `net.float\(\)`"
        with pytest.raises(ValueError, match=words):
            nb.save(wide.to(kind), tmp_path / "net", half=True)
    assert os.listdir(tmp_path) == []
