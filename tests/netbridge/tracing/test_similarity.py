"""How alike two trajectories are: laws of linear CKA, and the Gram matrices it is taken from."""

import hypothesis
import hypothesis.strategies as some
import numpy as np
import pytest
import torch

import netbridge as nb
from netbridge.tracing.similarity import profile_distance
from tests.netbridge import networks

SEEDS = some.integers(0, 2**32 - 1)


def drawn(seed, images=12, features=5):
    return np.random.default_rng(seed).normal(size=(images, features))


class TestCKA:
    @hypothesis.given(seed=SEEDS, scale=some.floats(0.01, 100), features=some.integers(1, 30))
    def test_rotation_scale_and_shift_change_nothing(self, seed, scale, features):
        x = drawn(seed, features=features)
        rotation = np.linalg.qr(drawn(seed + 1, features, features)).Q
        shift = drawn(seed + 2, 1, features)
        y = drawn(seed + 3)
        assert nb.cka(x, scale * x @ rotation + shift) == pytest.approx(1.0, abs=1e-9)
        assert nb.cka(scale * x @ rotation + shift, y) == pytest.approx(nb.cka(x, y), abs=1e-9)

    @hypothesis.given(seed=SEEDS)
    def test_it_is_symmetric_and_at_most_one(self, seed):
        x, y = drawn(seed), drawn(seed + 1, features=9)
        assert nb.cka(x, y) == pytest.approx(nb.cka(y, x), abs=1e-12)
        assert nb.cka(x, y) <= 1.0 + 1e-12
        order = np.random.default_rng(seed).permutation(12)
        assert nb.cka(x[order], y[order]) == pytest.approx(nb.cka(x, y), abs=1e-9)

    def test_hsic_is_the_mean_over_quadruples_of_different_images(self):
        """The U-statistic that defines the unbiased estimate, term by term."""
        import itertools

        k, l_ = (x @ x.T for x in (drawn(0, 6), drawn(1, 6)))

        def hsic(a, b):
            fours = itertools.permutations(range(6), 4)
            return np.mean([a[i, j] * (b[i, j] + b[p, q] - 2 * b[i, p]) for i, j, p, q in fours])

        wanted = hsic(k, l_) / np.sqrt(hsic(k, k) * hsic(l_, l_))
        assert nb.cka(k, l_, grams=True) == pytest.approx(wanted, rel=1e-10)

    def test_unrelated_representations_have_none_on_average(self):
        """More features than images: the usual, biased estimate is 0.9 here."""
        found = [nb.cka(drawn(2 * seed, 20, 200), drawn(2 * seed + 1, 20, 200)) for seed in range(60)]
        assert abs(np.mean(found)) < 3 * np.std(found) / len(found) ** 0.5 + 1e-3
        assert max(found) < 0.3

    def test_what_cannot_be_compared(self):
        assert np.isnan(nb.cka(np.ones((5, 2)), drawn(0, 5)))
        with pytest.raises(ValueError, match="`y` must be of the same images as `x`, 12 of them, got 11"):
            nb.cka(drawn(0), drawn(0)[:11])
        with pytest.raises(ValueError, match="`x` must be an array"):
            nb.cka(drawn(0)[:3], drawn(0)[:3])
        with pytest.raises(ValueError, match="`x` must be a square Gram matrix"):
            nb.cka(drawn(0), drawn(0), grams=True)


class TestProfiles:
    def test_the_distance_is_symmetric_zero_at_home_and_blind_to_scale_of_features(self):
        net, x = networks.lively(nb.resnet(14)).eval(), torch.randn(3, 3, 16, 16)
        one, other = nb.trace(net, x), nb.trace(networks.lively(nb.resnet(14), seed=2).eval(), x)
        assert not profile_distance(one, one).any()
        np.testing.assert_allclose(profile_distance(one, other), profile_distance(other, one))
        twice = nb.Record(2 * one.nsi, one.stage, one.first, one.names, one.of)
        np.testing.assert_allclose(profile_distance(one, twice), np.log(2))
        apart = profile_distance(one, other, scaled=True)
        np.testing.assert_array_equal(profile_distance(twice, other, scaled=True), apart)
        assert not np.allclose(apart, profile_distance(one, other))
        with pytest.raises(ValueError, match="`other` must be of the same images, blocks and kind"):
            profile_distance(one, nb.trace(net, x[:2]))
        with pytest.raises(ValueError, match="`other` must be of the same images, blocks and kind"):
            profile_distance(one, nb.trace(net, x, of="increment"))


class TestStateGrams:
    @pytest.mark.parametrize("make", [lambda: nb.resnet(14, controller="se"), lambda: nb.vit(16, features=24, heads=2)])
    def test_they_are_the_inner_products_of_the_states(self, make):
        net, x = networks.lively(make()).double().eval(), torch.randn(5, 3, 16, 16, dtype=torch.float64)
        runs = nb.trace(net, x, keep=True)
        grams = nb.state_grams(net, x)
        assert list(grams) == net.block_names
        states = [u.reshape(5, -1) for run in runs for u in run.u[1:]]
        for gram, state in zip(grams.values(), states, strict=True):
            np.testing.assert_allclose(gram, state @ state.T, rtol=1e-10)

    def test_a_strangers_network_has_them_too(self):
        net = nb.resnet(14)
        twin, x = networks.plain_twin(net).eval(), torch.randn(5, 3, 16, 16)
        ours, theirs = nb.state_grams(net.eval(), x), nb.state_grams(twin, x)
        for here, there in zip(ours.values(), theirs.values(), strict=True):
            np.testing.assert_allclose(here, there, rtol=1e-4)

    def test_a_network_may_overwrite_its_images(self):
        class Centred(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nb.resnet(8)

            def forward(self, x):
                return self.net(x.sub_(0.5))

        x = torch.randn(4, 3, 16, 16)
        before = x.clone()
        nb.state_grams(Centred(), x)
        assert torch.equal(x, before)

    def test_the_network_is_left_as_it_was(self):
        net, x = nb.resnet(8).train(), torch.randn(4, 3, 16, 16)
        before = {name: value.clone() for name, value in net.state_dict().items()}
        nb.state_grams(net, x)
        assert net.training
        assert not any(module._forward_hooks for module in net.modules())
        assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
