"""`python -m netbridge`: the doctor of networks from a shell, for a file of the user's, pictures, and our names."""

import subprocess
import sys

import pytest
import torch
from PIL import Image

import netbridge as nb
from netbridge.__main__ import main
from tests.clock import HANGS

MINE = """
from torch import nn

class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.branch = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        return x + self.branch(x).relu()

def network():
    return nn.Sequential(nn.Conv2d(CHANNELS, 4, 3, padding=1), Step(), Step(), Step())

made = network()
number = 3
"""


@pytest.fixture
def mine(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(MINE.replace("CHANNELS", "3"))
    return file


@pytest.fixture
def pictures(tmp_path):
    folder = tmp_path / "pictures" / "cats"
    folder.mkdir(parents=True)
    for number in range(5):
        Image.new("RGB", (20, 24), (50 * number, 100, 200)).save(folder / f"{number}.png")
    return folder.parent


@pytest.mark.slow
def test_a_shell_is_answered(mine, tmp_path):
    """In a process of its own, with a page."""
    asked = [sys.executable, "-m", "netbridge", f"{mine}:network", "--size", "8", "--report", str(tmp_path / "out")]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    assert "blocks of network" in done.stdout or "block of network" in done.stdout
    assert "random numbers" in done.stdout
    page = tmp_path / "out" / "diagnosis.html"
    assert page.as_uri() in done.stdout
    assert "random numbers" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "channels"), [("network", "3"), ("made", "1")])
def test_it_is_shown_the_pictures_of_a_folder(name, channels, mine, pictures, capsys):
    mine.write_text(MINE.replace("CHANNELS", channels))
    assert main([f"{mine}:{name}", "--images", str(pictures), "--size", "8", "--count", "4"]) == 0
    printed = capsys.readouterr().out
    assert "over 4 images" in printed
    assert f"Images: 4 of {pictures}, 8 x 8, normalised by" in printed


def test_files_of_weights_are_shown_pictures_as_they_were_trained(tmp_path, pictures, capsys):
    net = nb.resnet(14, widths=(4, 4, 4))
    net.normalisation = {"mean": [0.4, 0.4, 0.4], "std": [0.2, 0.2, 0.2]}
    path = nb.save(net, tmp_path / "net.safetensors")
    assert main([str(path), "--images", str(pictures), "--size", "8"]) == 0
    assert "normalised as those that the network was trained on" in capsys.readouterr().out


def test_vectors_are_as_long_as_the_first_layer_wants(tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(MINE.replace("nn.Conv2d(CHANNELS, 4, 3, padding=1)", "nn.Linear(7, 4)").replace(
        "nn.Conv2d(4, 4, 3, padding=1)", "nn.Linear(4, 4)"))  # fmt: skip
    assert main([f"{file}:network"]) == 0
    assert "Images: 16 of 7, random numbers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cifar10/resnet20-se-sed0", "did you mean"),
        ("{}:nothing", "its networks are: made"),
        ("{}:number", "but int"),
        ("no.py:x", "there is no file"),
        ("no.safetensors", "is not a file"),
    ],
)
def test_a_name_that_leads_nowhere_is_an_error_that_helps(name, words, mine, capsys):
    with pytest.raises(SystemExit):
        main([name.format(mine)])
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(("folder", "words"), [("nowhere", "is not a folder"), ("", "holds no pictures")])
def test_a_folder_without_pictures_is_an_error_that_helps(folder, words, mine, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([f"{mine}:made", "--images", str(tmp_path / folder)])
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "words"),
    [(["--size", "-3"], "at least 1"), (["--count", "-1"], "at least 1"), (["--states", "0"], "`states`")],
)
def test_numbers_that_cannot_be_are_errors_that_help(asked, words, mine, capsys):
    with pytest.raises(SystemExit):
        main([f"{mine}:made", *asked])
    assert words in capsys.readouterr().err


def test_a_network_without_steps_is_an_error_that_helps(tmp_path, capsys):
    file = tmp_path / "plain.py"
    file.write_text("from torch import nn\nplain = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())")
    with pytest.raises(SystemExit):
        main([f"{file}:plain"])
    assert "has no residual blocks" in capsys.readouterr().err


def test_the_same_random_numbers_every_time():
    from netbridge.__main__ import shown

    net = nb.resnet(8)
    assert torch.equal(shown(net, None, 8, 2)[0], shown(net, None, 8, 2)[0])
