"""What several tests of studies need."""

import dataclasses

import pytest
import torch

import netbridge as nb
from netbridge import data as datasets
from netbridge.data import datasets as origins
from netbridge.step_sizes.base import REGISTRY
from odelab.plot import style
from studies.lab import definitions


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    """A folder without any data set, and no way to fetch one."""
    with pytest.MonkeyPatch.context() as patch:
        for name, origin in origins.ORIGINS.items():
            nowhere = dataclasses.replace(origin.archive, url=f"http://127.0.0.1:9/{name}.tar.gz")
            patch.setitem(origins.ORIGINS, name, dataclasses.replace(origin, archive=nowhere, package=None))
        yield tmp_path_factory.mktemp("no-data")


@pytest.fixture(scope="session")
def networks(tmp_path_factory):
    """Untrained networks with recorded accuracies: enough to measure and to draw."""
    folder = tmp_path_factory.mktemp("networks")
    normalisation = datasets.load("digits").normalisation
    for place, controller in enumerate(("constant", "se", "stepnet", nb.asr("se"))):
        for seed in (0, 1):
            torch.manual_seed(10 * place + seed)
            net = nb.resnet(20, 10, controller=controller)
            net.normalisation = normalisation
            for name, weight in net.named_parameters():
                if controller == "se" and name.endswith("controller.excite.2.weight"):
                    weight.data *= 40.0  # so that step sizes move from image to image, as trained ones do
            about = {"seed": seed, "test_accuracy": 0.9 + 0.01 * place + 0.002 * seed}
            nb.save(net, folder / f"{place}-{seed}.safetensors", about)
    return folder


OWN = """
import torch
import netbridge as nb
import netbridge.data as data

class Halved(nb.Controller, name="halved"):
    def __init__(self, channels):
        super().__init__()

    def forward(self, state, slope):
        return 0.5

class Same(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.blocks = torch.nn.ModuleList(torch.nn.Conv2d(3, 3, 3, padding=1) for _ in range(3))
        self.head = torch.nn.Linear(3, classes)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return self.head(x.mean((2, 3)))

def noise(root):
    images, labels = torch.randint(0, 256, (128, 3, 16, 16), dtype=torch.uint8), torch.arange(128) % 2
    parts = {"train_images": images, "train_labels": labels, "test_images": images[:8], "test_labels": labels[:8]}
    return data.dataset("noise", parts, ("no", "yes"))

NETWORKS, DATASETS = {"same": Same}, {"noise": noise}
"""


@pytest.fixture
def own(tmp_path):
    """A file for --define: a controller, a network, and a data set of noise."""
    path = tmp_path / "own.py"
    path.write_text(OWN)
    yield path
    REGISTRY.pop("halved", None)
    for known in (definitions.networks, definitions.datasets, definitions.sources, definitions.in_files):
        known.clear()


@pytest.fixture(autouse=True, scope="session")
def coarse_figures():
    """Figures have as many dots as a test needs: fewer take less time to draw and to write."""
    before = style.SETTINGS["savefig.dpi"]
    style.SETTINGS["savefig.dpi"] = 100
    yield
    style.SETTINGS["savefig.dpi"] = before
