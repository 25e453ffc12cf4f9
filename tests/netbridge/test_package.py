"""What `import netbridge` brings, and what it leaves for later."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import netbridge as nb
from tests.clock import HANGS

LATER = ("netbridge.data", "netbridge.train", "rich", "matplotlib", "PIL", "sklearn")


@pytest.mark.slow
def test_data_and_training_come_when_they_are_asked_for():
    code = (
        "import sys, netbridge as nb\n"
        f"assert not [name for name in {LATER} if name in sys.modules]\n"
        "from netbridge import data, recipes, train\n"
        "assert nb.data is data and train.recipe is recipes.recipe and callable(train.train)\n"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_slices_norms_and_bounds_do_without_torchs_compiler():
    """It takes most of a second to load, which `torch.func.vjp` does."""
    code = (
        "import sys, torch, netbridge as nb\n"
        "net = nb.resnet(8, widths=(2, 2, 2), controller='se').eval()\n"
        "x = torch.rand(1, 2, 4, 4)\n"
        "nb.slice_spectrum(net.blocks[0], x)\n"
        "operator = nb.block_operator(net.blocks[0], x)\n"
        "assert operator.rmatvec(operator.matvec(x.numpy().ravel())).shape == (32,)\n"
        "nb.perturbation_bound(net, torch.rand(2, 3, 8, 8), search=1)\n"
        "assert 'torch._dynamo' not in sys.modules\n"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="module 'netbridge' has no attribute 'trainer'"):
        nb.trainer  # noqa: B018


def test_the_tour_names_every_public_name():
    public = {name for name, value in vars(nb).items() if getattr(value, "__module__", "").startswith("netbridge.")}
    assert public - set(re.findall(r"\w+", nb.__doc__)) == set()
