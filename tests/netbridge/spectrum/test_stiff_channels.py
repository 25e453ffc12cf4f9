"""Stiff channels: a channel that is made fast is found, sums over channels keep what participations keep."""

import numpy as np
import pytest
import torch
from torch import nn

import netbridge as nb


class Convolutions(nn.Module):
    """Somebody's residual block of two convolutions."""

    def __init__(self, channels, boosted=None, boost=1.0):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        with torch.no_grad():
            for layer in (self.first, self.second):
                layer.weight.copy_(0.2 * (torch.rand(layer.weight.shape, generator=generator) - 0.5))
                layer.bias.copy_(0.2 * (torch.rand(layer.bias.shape, generator=generator) - 0.5))
            if boosted is not None:
                self.first.weight[:, boosted] *= boost
                self.second.weight[boosted] *= boost

    def forward(self, x):
        return x + self.second(torch.relu(self.first(x)))


def state(channels=8, size=6):
    return torch.rand(channels, size, size, generator=torch.Generator().manual_seed(1), dtype=torch.float64) - 0.5


@pytest.mark.parametrize("channel", [0, 5])
@pytest.mark.parametrize("boost", [5.0, 20.0])
def test_a_boosted_channel_is_found(channel, boost):
    found = nb.stiff_channels(Convolutions(8, channel, boost), state())
    assert found.share[channel] > 0.95
    assert f"% channel {channel}" in str(found)


@pytest.mark.parametrize("part", ["residual", "increment", "block"])
def test_it_is_the_participation_of_all_units_summed_over_places(part):
    block, x = Convolutions(3), state(3, 4)
    found = nb.stiff_channels(block, x, part=part)
    J = nb.block_operator(block, x, part=part).dense()
    Q = found.right @ found.left
    assert np.abs(Q @ J - J @ Q).max() <= 1e-10 * np.abs(J).max()
    np.testing.assert_allclose(found.participation, np.diag(Q).real.reshape(3, 16).sum(1), atol=1e-12)
    assert found.participation.sum() == pytest.approx(len(found.rates), abs=1e-9)
    sizes = np.sort(np.abs(np.linalg.eigvals(J)))[::-1]
    np.testing.assert_allclose(np.abs(found.rates), sizes[: len(found.rates)], rtol=1e-6)


class Tokens(nn.Module):
    """A residual step on tokens, whose last channel is the fastest."""

    def __init__(self):
        super().__init__()
        self.rates = nn.Parameter(torch.tensor([0.1, 0.2, 0.3, 50.0], dtype=torch.float64))

    def forward(self, x):
        return x + torch.tanh(self.rates * x)


def test_channels_of_tokens_are_their_last_axis():
    found = nb.stiff_channels(Tokens(), torch.full((1, 5, 4), 0.01, dtype=torch.float64))
    np.testing.assert_allclose(found.share, [0.0, 0.0, 0.0, 1.0], atol=1e-12)


def test_states_that_are_too_large_are_refused():
    with pytest.raises(ValueError, match="at most 2048"):
        nb.stiff_channels(Convolutions(8), state(8, 32))


def test_channels_that_are_alike_are_not_told_apart():
    block = Tokens()
    with torch.no_grad():
        block.rates.fill_(3.0)
    found = nb.stiff_channels(block, torch.full((1, 5, 4), 0.01, dtype=torch.float64))
    assert len(found.rates) == 20
    np.testing.assert_allclose(found.share, 0.25, atol=1e-12)
