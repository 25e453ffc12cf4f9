"""What several tests of studies need."""

import pytest
import torch

import netbridge as nb
from netbridge import data as datasets


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
            about = {"seed": seed, "test_accuracy": 0.9 + 0.01 * place + 0.002 * seed}
            nb.save(net, folder / f"{place}-{seed}.safetensors", about)
    return folder
