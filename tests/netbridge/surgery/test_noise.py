"""Noise in normalisations: constant noise is another start of the same functions, random noise is drawn as promised."""

import copy

import hypothesis
import hypothesis.strategies as some
import pytest
import torch
from torch import nn

import netbridge as nb
from tests.netbridge import networks

numbers = some.floats(-2.0, 2.0)


def norm_and_input(seed=0):
    torch.manual_seed(seed)
    norm = networks.lively(nn.BatchNorm2d(5), seed).double()
    return norm, torch.randn(6, 5, 4, 4, dtype=torch.float64)


def noisy_of(norm, *noise, **more):
    return nb.add_noise(nn.Sequential(copy.deepcopy(norm)), *noise, **more)[0]


@hypothesis.settings(deadline=None, max_examples=30)
@hypothesis.given(scale=numbers, shift=numbers, training=some.booleans(), seed=some.integers(0, 50))
def test_constant_noise_is_another_scale_and_shift(scale, shift, training, seed):
    """gamma (a x + b) + beta = (gamma a) x + (beta + gamma b), and the gradients by the chain rule."""
    norm, x = norm_and_input(seed)
    noisy, other = noisy_of(norm, scale, shift).train(training), copy.deepcopy(norm).train(training)
    with torch.no_grad():
        other.bias += norm.weight * shift
        other.weight *= scale
    weights = torch.randn_like(x)
    for layer in (noisy, other):
        (layer(x) * weights).sum().backward()
    assert torch.allclose(noisy(x), other(x), rtol=0, atol=1e-12)
    assert torch.allclose(noisy.bias.grad, other.bias.grad, rtol=1e-12, atol=1e-12)
    wanted = scale * other.weight.grad + shift * other.bias.grad
    assert torch.allclose(noisy.weight.grad, wanted, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("training", [True, False])
def test_no_noise_changes_no_bit(training):
    torch.manual_seed(0)
    net = networks.lively(nb.resnet(8, widths=(4, 8, 8))).train(training)
    noisy, x = nb.add_noise(net), torch.randn(4, 3, 16, 16)
    assert torch.equal(noisy(x), net(x))
    assert noisy.training is training
    for name, tensor in net.state_dict().items():  # the statistics of the clean input
        assert torch.equal(noisy.state_dict()[name], tensor), name


def test_statistics_are_those_of_the_clean_input():
    norm, x = norm_and_input()
    noisy = noisy_of(norm, 0.3, 0.7, 0.5).train()
    noisy(x), norm.train()(x)
    assert torch.equal(noisy.running_mean, norm.running_mean)
    assert torch.equal(noisy.running_var, norm.running_var)
    assert noisy.num_batches_tracked == norm.num_batches_tracked


@pytest.mark.parametrize("deviation", [None, "0.1", -0.1, float("nan"), (0.1, 0.2, 0.3), (0.1, -0.2), (0.1, None)])
def test_what_is_no_deviation_is_refused_before_anything_runs(deviation):
    with pytest.raises(ValueError, match="`deviation` must be a number from 0 on, or a pair of them, got"):
        nb.NoisyNorm(4, deviation=deviation)


@pytest.mark.parametrize(
    ("asked", "deviations"), [(0.3, (0.3, 0.3)), ((0.1, 0.2), (0.1, 0.2)), ((0.2, 0.0), (0.2, 0.0))]
)
def test_random_noise_has_the_deviations_that_were_asked_for(asked, deviations):
    """Of the factor and of the summand, each per channel, the same for all images and positions of a batch."""
    torch.manual_seed(0)
    noisy = nb.NoisyNorm(20_000, 1.0, 0.0, asked).double()
    x = torch.tensor([-1.0, 1.0], dtype=torch.float64).view(2, 1, 1, 1).expand(2, 20_000, 1, 1)
    low, high = noisy(x).detach()[:, :, 0, 0] * (1 + 1e-5) ** 0.5
    factor, summand = (high - low) / 2, (high + low) / 2
    for drawn, mean, deviation in ((factor, 1.0, deviations[0]), (summand, 0.0, deviations[1])):
        assert abs(drawn.mean() - mean) < 0.01
        assert abs(drawn.std() - deviation) < 0.005
    assert not all(deviations) or abs(torch.corrcoef(torch.stack((factor, summand)))[0, 1]) < 0.03
    again = noisy(x).detach()
    assert not torch.equal(again[1, :, 0, 0], high)


def test_in_evaluation_it_is_drawn_only_where_it_is_asked_for():
    norm, x = norm_and_input()
    norm.eval()
    quiet, loud = noisy_of(norm, 1.0, 0.0, 0.3), noisy_of(norm, 1.0, 0.0, 0.3, at_test=True)
    assert torch.equal(quiet(x), norm(x))
    assert not torch.allclose(loud(x), norm(x), atol=1e-3)
    assert not torch.equal(loud(x), loud(x))


def test_what_is_frozen_stays_so_and_the_original_is_left_alone():
    net = nb.resnet(8, widths=(4, 8, 8))
    net.stem.bn.weight.requires_grad_(False)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    noisy = nb.add_noise(net, 0.5)
    assert not noisy.stem.bn.weight.requires_grad
    assert noisy.stem.bn.bias.requires_grad
    assert not any(isinstance(module, nb.NoisyNorm) for module in net.modules())
    noisy(torch.randn(4, 3, 16, 16)).sum().backward()
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())
    norms = [module for module in noisy.modules() if isinstance(module, nn.BatchNorm2d)]
    assert len(norms) == 7
    assert all(type(module) is nb.NoisyNorm for module in norms)


class Mine(nn.BatchNorm2d):
    pass


@pytest.mark.parametrize(
    ("net", "words"),
    [
        (nn.Linear(2, 2), "no BatchNorm2d"),
        (nn.Sequential(nn.BatchNorm2d(2, affine=False)), "0 is no usual BatchNorm2d"),
        (nn.Sequential(nn.BatchNorm2d(2, track_running_stats=False)), "0 is no usual BatchNorm2d"),
        (nn.Sequential(nn.BatchNorm2d(2, momentum=None)), "0 is no usual BatchNorm2d"),
        (nn.Sequential(Mine(2)), "0 is no usual BatchNorm2d"),
    ],
)
def test_what_takes_no_noise_is_told(net, words):
    with pytest.raises(ValueError, match=words):
        nb.add_noise(net)


@pytest.mark.parametrize("options", [{"affine": False}, {"track_running_stats": False}, {"momentum": None}])
def test_a_norm_without_scale_or_statistics_is_refused(options):
    with pytest.raises(ValueError, match="`options`"):
        nb.NoisyNorm(4, **options)
