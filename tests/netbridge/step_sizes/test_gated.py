"""Step sizes behind single layers, in every layout: what a controller sees is always maps (N, C, height, width)."""

import pytest
import torch
from torch import nn

import netbridge as nb
from tests.netbridge import networks

LIVE = ["se", "cbam", "eca", "srm", "fca", "ie", "sge", "spa", "sem"]
LIVE += [nb.controller("stepnet", inputs="difference"), nb.asr("se", beside="cbam")]
C = 16
LAYOUTS = {  # layer, input, and its output as maps
    "Conv2d": (nn.Conv2d(3, C, 3), (2, 3, 9, 8), lambda f: f),
    "Conv1d": (nn.Conv1d(3, C, 3), (2, 3, 9), lambda f: f[..., None]),
    "Conv3d": (nn.Conv3d(3, C, 3), (2, 3, 5, 6, 7), lambda f: f.flatten(3)),
    "features": (nn.Linear(6, C), (2, 6), lambda f: f[:, :, None, None]),
    "tokens": (nn.Linear(6, C), (2, 7, 6), lambda f: f.transpose(1, 2)[..., None]),
    "features last": (nn.Linear(6, C), (2, 5, 4, 6), lambda f: f.permute(0, 3, 1, 2)),
    "LayerNorm": (nn.LayerNorm(C), (2, 7, C), lambda f: f.transpose(1, 2)[..., None]),
    "BatchNorm1d": (nn.BatchNorm1d(C), (2, C), lambda f: f[:, :, None, None]),
    "SelfAttention": (nb.SelfAttention(C, 2), (2, 7, C), lambda f: f.transpose(1, 2)[..., None]),
}


def back(h, f, maps):
    """A step size for maps in the layer's own layout, by hand."""
    h = h.expand_as(maps)
    if f.ndim == 5:
        return h.reshape(f.shape)
    if f.shape == h.shape[: f.ndim]:
        return h.reshape(f.shape)
    return h.movedim(1, -1).reshape(f.shape)


@pytest.mark.parametrize("controller", [*LIVE, nb.asr("se"), nb.controller("constant", value=0.3)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_controller_in_every_layout(layout, controller):
    layer, shape, as_maps = LAYOUTS[layout]
    gated = networks.lively(nb.Gated(layer, controller)).double().eval()
    x = torch.randn(shape, dtype=torch.float64)
    f = gated.layer(x)
    h = gated.controller.propose(None, None, as_maps(f))[0]
    wanted = f * (h if isinstance(h, float) else back(h, f, as_maps(f)))
    assert torch.allclose(gated(x), wanted, rtol=1e-12, atol=1e-12)
    assert bool(gated(x).isfinite().all())


def test_samples_of_attention_that_has_tokens_first():
    gated = networks.lively(nb.Gated(nn.MultiheadAttention(C, 2), "se")).eval()
    x = torch.randn(7, 3, C)
    got, _ = gated(x, x, x)
    for i in range(3):
        one = x[:, i : i + 1]
        assert torch.allclose(gated(one, one, one)[0], got[:, i : i + 1], atol=1e-5)


def test_a_controller_that_joins_state_and_slope_is_refused_where_they_differ():
    with pytest.raises(ValueError, match="'stepnet' joins state and slope, but this Linear makes 5 channels of 6"):
        nb.Gated(nn.Linear(6, 5), "stepnet")
    nb.Gated(nn.Linear(6, 5), "stepnet(inputs=difference)")(torch.randn(2, 6))
    assert nb.Gated(nn.Linear(6, 6), "stepnet")(torch.randn(2, 3, 6)).shape == (2, 3, 6)
    strided = nb.Gated(nn.Conv2d(4, 4, 3), "stepnet")
    with pytest.raises(ValueError, match=r"whose shapes are \(2, 4, 8, 8\) and \(2, 4, 6, 6\)"):
        strided(torch.randn(2, 4, 8, 8))


def test_channels_are_asked_of_the_layer():
    for layer in (nn.Conv2d(3, 5, 1), nn.Linear(3, 5), nn.LayerNorm(5), nn.Sequential(nn.Linear(2, 5), nn.Dropout())):
        assert len(nb.Gated(layer, "ie").controller.weight) == 5
    with pytest.raises(ValueError, match="`channels` = 3 do not fit the 5 channels of a Linear"):
        nb.Gated(nn.Linear(3, 5), "ie", 3)
    with pytest.raises(ValueError, match="`channels` must be given: how many a GELU returns is not known"):
        nb.Gated(nn.GELU(), "ie")
    with pytest.raises(ValueError, match="'dia' needs the blocks of a stage"):
        nb.Gated(nn.Linear(3, 5), "dia")


def test_activations_leave_the_channels_where_they_are():
    """As many tokens as channels: the wrong axis would fit, too."""
    torch.manual_seed(0)
    linear = nn.Linear(6, 6)
    alone = nb.Gated(linear, "se")
    followed = nb.Gated(nn.Sequential(linear, nn.Sequential(nn.ReLU(), nn.Dropout())), "se", 6).eval()
    followed.controller = alone.controller
    x = torch.rand(2, 6, 6)
    with torch.no_grad():
        linear.bias += 5.0  # so that the ReLU lets everything through
        torch.testing.assert_close(followed(x), alone(x))


def test_channels_that_are_not_where_they_should_be_are_named():
    gated = nb.Gated(nn.GELU(), "se", 6)
    with pytest.raises(ValueError, match=r"`channels` = 6, but a GELU returned shape \(2, 7, 6\), .* to be axis 1"):
        gated(torch.rand(2, 7, 6))


def test_channels_are_where_they_are_said_to_be():
    torch.manual_seed(0)
    linear, tokens = nn.Linear(6, 6), torch.randn(2, 6, 6)
    alone = nb.Gated(linear, "se")
    said = nb.Gated(nn.Sequential(linear, nn.Identity()), "se", 6, axis=-1)
    other = nb.Gated(nn.Sequential(linear, nn.Identity()), "se", 6, axis=1)
    said.controller = other.controller = alone.controller
    with torch.no_grad():
        torch.testing.assert_close(said(tokens), alone(tokens))
        assert not torch.allclose(other(tokens), alone(tokens))
