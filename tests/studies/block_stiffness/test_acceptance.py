"""Spectra of the shipped plain ResNet-20 at the first test image of CIFAR-10, where the images are at hand."""

import numpy as np
import pytest

import netbridge as nb
from netbridge.data import datasets
from studies.lab.measure import prepared

BRANCH = {  # block: max Re, min Re, S, nonzero eigenvalues, negative, zero, positive; zeros of the whole block
    "stages.2.blocks.2": (2.5992, -0.3497, -7.434, 1527, 0.1616, 0.6272, 0.2112, 0.6733),
    "stages.2.blocks.1": (1.0048, -0.5993, -1.677, 1221, 0.1411, 0.7019, 0.1570, 0.6135),
    "stages.1.blocks.2": (0.9182, -0.8654, -1.061, 2212, 0.1494, 0.7300, 0.1206, 0.4497),
}


@pytest.fixture(scope="module")
def states():
    if not datasets.available("cifar10"):
        pytest.skip("CIFAR-10 is not in the cache of data sets")
    images = datasets.load("cifar10")
    net = nb.pretrained("cifar10/resnet20-constant-seed0").eval()
    return net, nb.block_states(net, prepared(net, images, images.test_images[:1]))


@pytest.mark.slow
@pytest.mark.parametrize("block", BRANCH)
def test_spectra_of_branch_and_whole_block(states, block):
    net, known = states
    largest, smallest, index, units, negative, zero, positive, dead = BRANCH[block]
    found = nb.block_spectrum(net.get_submodule(block), known[block])
    ends = (found.max_re, found.min_re, found.stiffness_index)
    np.testing.assert_allclose(ends, (largest, smallest, index), rtol=3e-4)
    assert (found.values != 0).sum() == units
    assert (found.negative, found.zero, found.positive) == pytest.approx((negative, zero, positive), abs=6e-5)
    whole = nb.block_spectrum(net.get_submodule(block), known[block], "block")
    assert whole.min_re == 0.0
    assert np.isnan(whole.stiffness_index)
    assert whole.zero == pytest.approx(dead, abs=6e-5)
