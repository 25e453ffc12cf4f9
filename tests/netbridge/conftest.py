import os
from pathlib import Path

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture
def images():
    return torch.randn(4, 3, 32, 32)


@pytest.fixture(scope="session")
def public_weights():
    """The directory of published weights, which the machine that has them names."""
    folder = os.environ.get("ODELAB_PUBLIC_WEIGHTS")
    if not folder:
        pytest.skip("ODELAB_PUBLIC_WEIGHTS names no directory with resnet20_cifar10.th")
    path = Path(folder) / "resnet20_cifar10.th"
    if not path.is_file():
        pytest.skip(f"no resnet20_cifar10.th in {folder}")
    return path
