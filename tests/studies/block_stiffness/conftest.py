"""The digits, and a shipped network of them."""

import pytest

import netbridge as nb
from netbridge.data import datasets


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits")


@pytest.fixture(scope="module")
def net():
    return nb.pretrained("digits/resnet32-width4-constant-seed0").eval()
