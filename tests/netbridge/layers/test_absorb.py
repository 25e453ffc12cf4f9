"""Which layers take up a constant, and that they then compute the same (the ASR paper, appendix B)."""

import copy
import warnings

import numpy as np
import pytest
import torch
from torch import nn

import netbridge as nb
from netbridge.layers.own import LayerScale
from tests.netbridge import networks
from tests.netbridge.surgery.lookalikes import NormAct

PRECISIONS = (torch.float32, torch.float64)


class Offset(nn.Module):
    """Something with a precision, for layers without tensors of their own."""

    def __init__(self):
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return x + self.offset


FOLLOWED = {
    "BatchNorm2d": (nn.BatchNorm2d(6), 6, (3, 6, 5, 5)),
    "BatchNorm2d without scale": (nn.BatchNorm2d(6, affine=False), 6, (3, 6, 5, 5)),
    "BatchNorm1d": (nn.BatchNorm1d(6), 6, (3, 6)),
    "InstanceNorm2d": (nn.InstanceNorm2d(6, affine=True), 6, (3, 6, 5, 5)),
    "InstanceNorm2d as it comes": (nn.InstanceNorm2d(6), 6, (3, 6, 5, 5)),
    "GroupNorm": (nn.GroupNorm(3, 6), 6, (3, 6, 5, 5)),
    "GroupNorm without scale": (nn.GroupNorm(3, 6, affine=False), 6, (3, 6, 5, 5)),
    "LayerNorm": (nn.LayerNorm(6), 6, (3, 4, 6)),
    "LayerNorm without scale": (nn.LayerNorm(6, elementwise_affine=False), 6, (3, 4, 6)),
    "LayerNorm without shift": (nn.LayerNorm(6, bias=False), 6, (3, 4, 6)),
    "LayerNorm over maps": (nn.LayerNorm((6, 5, 5)), 6, (3, 6, 5, 5)),
    "Conv2d": (nn.Conv2d(4, 6, 3), 6, (3, 4, 5, 5)),
    "Conv2d without bias, grouped": (nn.Conv2d(4, 6, 3, groups=2, bias=False), 6, (3, 4, 5, 5)),
    "Conv1d": (nn.Conv1d(4, 6, 3), 6, (3, 4, 5)),
    "ConvTranspose2d": (nn.ConvTranspose2d(4, 6, 3), 6, (3, 4, 5, 5)),
    "ConvTranspose2d grouped": (nn.ConvTranspose2d(4, 6, 3, groups=2), 6, (3, 4, 5, 5)),
    "Linear": (nn.Linear(4, 6), 6, (3, 4)),
    "Linear, features last": (nn.Linear(4, 6), 6, (3, 6, 5, 4)),
    "Linear over tokens": (nn.Linear(4, 6, bias=False), 6, (3, 7, 4)),
    "SelfAttention": (nb.SelfAttention(6, heads=2), 6, (3, 4, 6)),
    "SelfAttention without bias": (nb.SelfAttention(6, bias=False), 6, (3, 4, 6)),
    "Conv2d, depthwise": (nn.Conv2d(6, 6, 3, groups=6), 6, (3, 6, 5, 5)),
    "LayerScale": (LayerScale(6, 0.7), 6, (3, 4, 6)),
    "Sum": (nb.Sum(nn.Conv2d(4, 6, 3, padding=1), nn.Conv2d(4, 6, 1)), 6, (3, 4, 5, 5)),
    "timm's normalisation without activation": (NormAct(6), 6, (3, 6, 5, 5)),
    "Sequential": (nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 6), nn.Dropout(0.1)), 6, (3, 7, 4)),
}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("followed", FOLLOWED)
@pytest.mark.parametrize("controller", [nb.asr("ie", spread=1.0), nb.controller("constant", value=0.3)], ids=str)
def test_every_predecessor_takes_up_a_constant(followed, controller, precision):
    layer, channels, shape = copy.deepcopy(FOLLOWED[followed])
    net = nn.Sequential(Offset(), nb.Gated(layer, controller, channels))
    net = networks.lively(net).to(precision).eval()
    x = torch.randn(shape, dtype=precision)
    with torch.no_grad():
        merged = nb.merge(net)
        assert type(merged[1]) is type(layer)
        assert networks.relative_error(merged(x), net(x)) < networks.rounding_of(net, x)
        assert not torch.allclose(merged(x), net[1].layer(x))  # there was something to merge


@pytest.mark.parametrize("precision", PRECISIONS)
def test_attention_with_an_output_projection(precision):
    gated = nb.Gated(nn.MultiheadAttention(6, 2, batch_first=True), nb.asr("ie", spread=1.0), 6)
    gated = networks.lively(gated).to(precision).eval()
    x = torch.randn(3, 4, 6, dtype=precision)
    with torch.no_grad():
        got, weights = nb.merge(gated)(x, x, x)
        wanted, same = gated(x, x, x)
        assert networks.relative_error(got, wanted) < networks.rounding_of(gated, x, x, x)
        assert torch.equal(weights, same)


def test_the_values_of_attention_carry_the_constant():
    """Appendix B (4): queries and keys are untouched."""
    gated = networks.lively(nb.Gated(nb.SelfAttention(6, heads=2), nb.asr("ie", spread=1.0), 6)).eval()
    h = gated.controller(None, torch.zeros(1, 6, 1, 1))[0, :, 0, 0]
    merged = nb.merge(gated)
    assert torch.equal(merged.query.weight, gated.layer.query.weight)
    assert torch.equal(merged.key.weight, gated.layer.key.weight)
    assert torch.allclose(merged.value.weight, h[:, None] * gated.layer.value.weight)
    assert torch.allclose(merged.value.bias, h * gated.layer.value.bias)


def test_attention_by_hand():
    attention = nb.SelfAttention(4, heads=2).double()
    x = torch.randn(2, 3, 4, dtype=torch.float64)
    q, k, v = (part(x) for part in (attention.query, attention.key, attention.value))
    parts = [
        torch.softmax(q[..., s] @ k[..., s].transpose(1, 2) / 2**0.5, dim=-1) @ v[..., s]
        for s in (slice(0, 2), slice(2, 4))
    ]
    assert torch.allclose(attention(x), torch.cat(parts, dim=-1))


def test_a_transformer_encoder_merges(images):
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            step = nb.asr("se", activation="tanh", init=0.5)
            self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
            self.attention = nb.Gated(nn.Sequential(nb.SelfAttention(16, 4), nn.Linear(16, 16)), step, 16)
            self.mlp = nb.Gated(nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)), step, 16)

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    net = networks.lively(nn.Sequential(Encoder(), Encoder())).double()
    x = torch.randn(2, 5, 16, dtype=torch.float64)
    merged = nb.merge(net)
    assert not any(isinstance(module, nb.Gated) for module in merged.modules())
    assert networks.relative_error(merged(x), net(x)) < 1e-12


def test_a_layer_of_ones_own_can_be_taught():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.Parameter(torch.ones(3))

        def forward(self, x):
            return self.factor * x

    gated = nb.Gated(Scale(), nb.controller("constant", value=0.5), 3)
    with pytest.raises(ValueError, match="Scale: a Scale cannot take up a constant exactly"):
        nb.merge(gated)

    @nb.absorb.register
    def _(layer: Scale, h):
        layer.factor.mul_(h)

    assert torch.equal(nb.merge(gated)(torch.ones(3)), torch.full((3,), 0.5))


class NormAndActivation(nn.BatchNorm2d):
    """As timm's BatchNormAct2d: the activation is inside."""

    def __init__(self, channels, activation):
        super().__init__(channels)
        self.act = activation

    def forward(self, x):
        return self.act(super().forward(x))


class StandardisedConv(nn.Conv2d):
    def forward(self, x):
        mean, std = self.weight.mean((1, 2, 3), keepdim=True), self.weight.std((1, 2, 3), keepdim=True)
        return self._conv_forward(x, (self.weight - mean) / std, self.bias)


class Rectified(nn.Sequential):
    def forward(self, x):
        return torch.relu(super().forward(x))


class Renamed(nn.Conv2d):
    pass


class Doubled(nn.Linear):
    def forward(self, x):
        return 2.0 * super().forward(x)


def patched():
    layer = nn.Linear(4, 4)
    layer.forward = lambda x: torch.relu(nn.functional.linear(x, layer.weight, layer.bias))
    return layer


def hooked():
    layer = nn.Linear(4, 4)
    layer.register_forward_hook(lambda module, inputs, output: output.relu())
    return layer


def hooked_dropout():
    layer = nn.Sequential(nn.Linear(4, 4), nn.Dropout())
    layer[1].register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1.0,))
    return layer


def twice():
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, layer)


def softened():
    return nn.utils.parametrize.register_parametrization(nn.Linear(4, 4), "bias", nn.Softplus())


UNPROVED = {
    "an activation inside": (lambda: NormAndActivation(4, nn.SiLU()), "a NormAndActivation is a BatchNorm2d"),
    "a limit far away": (lambda: NormAndActivation(4, nn.Hardtanh(-50.0, 50.0)), "a NormAndActivation is a"),
    "standardised weights": (lambda: StandardisedConv(4, 4, 3, bias=False), "a StandardisedConv is a Conv2d"),
    "ReLU behind": (lambda: Rectified(nn.Conv2d(4, 4, 1)), "a Rectified is a Sequential"),
    "inside a sequence": (lambda: nn.Sequential(nn.Linear(4, 4), NormAndActivation(4, nn.ReLU())), "not be proved"),
    "another forward": (patched, "with a forward of its own"),
    "a hook": (hooked, "has hooks"),
    "a hook behind it": (hooked_dropout, "this Sequential has hooks"),
    "a layer that acts twice": (twice, "acts more than once|shares parameters"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNPROVED)
def test_what_a_class_of_ones_own_computes_is_tried_before_it_is_believed(case):
    make, words = UNPROVED[case]
    layer = make()
    before = copy.deepcopy(layer.state_dict())
    with pytest.raises(ValueError, match=words):
        nb.absorb(layer, -0.5)
    with pytest.raises(ValueError, match=words):
        nb.merge(nn.Sequential(nb.Gated(layer, nb.controller("constant", value=-0.5), 4)))
    assert all(torch.equal(before[name], tensor) for name, tensor in layer.state_dict().items())


def test_a_computed_weight_is_left_alone_where_a_layer_is_changed_in_place():
    with pytest.raises(ValueError, match="the bias of this ParametrizedLinear comes from a parametrisation"):
        nb.absorb(softened(), 0.5)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (NormAndActivation(4, nn.Identity()), (2, 4, 5, 5)),
        (Renamed(4, 6, 3, dilation=2), (2, 4, 9, 9)),
        (Doubled(4, 6), (2, 4)),
        (Doubled(4, 6), (2, 3, 4)),
        (Rectified(nn.Conv2d(4, 6, 1)), (2, 4, 5, 5)),  # for step sizes that are nowhere negative
        (NormAndActivation(4, nn.ReLU()), (2, 4, 5, 5)),
    ],
)
def test_classes_of_ones_own_that_fold_do(layer, shape):
    state = torch.get_rng_state()
    layer = networks.lively(copy.deepcopy(layer)).double().eval()
    x = torch.randn(shape, dtype=torch.float64)
    gated = networks.lively(nb.Gated(layer, nb.asr("ie", spread=1.0))).double().eval()
    torch.set_rng_state(state)
    with torch.no_grad():
        assert networks.relative_error(nb.merge(gated)(x), gated(x)) < 1e-12


def test_a_single_number_folds():
    layer = nn.Conv2d(3, 4, 3)
    x = torch.randn(1, 3, 5, 5)
    wanted = 0.5 * layer(x)
    nb.absorb(layer, 0.5)
    assert torch.allclose(layer(x), wanted)


@pytest.mark.parametrize(
    "h", [2, [2, 2, 2, 2], np.full(4, 2.0), torch.full((4,), 2)], ids=["int", "list", "array", "ints"]
)
@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(4, 4, 1),
        nn.GroupNorm(2, 4, affine=False),
        nn.BatchNorm2d(4, affine=False),
        nn.BatchNorm2d(4, affine=False, track_running_stats=False),
        nn.InstanceNorm2d(4),
        nn.LayerNorm((4, 5, 5), elementwise_affine=False),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_numbers_of_any_kind_fold(layer, h):
    layer, x = copy.deepcopy(layer).eval(), torch.randn(2, 4, 5, 5)
    wanted = 2 * layer(x)
    nb.absorb(layer, h)
    torch.testing.assert_close(layer(x), wanted)


@pytest.mark.parametrize("h", [float("nan"), [1.0, float("inf"), 1.0], None, "half"], ids=str)
def test_what_is_no_number_does_not_fold(h):
    with pytest.raises(ValueError, match="`h` must be a finite number, or one for every channel, got"):
        nb.absorb(nn.Linear(2, 3), h)


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
def test_layers_without_a_shape_are_told_so():
    with pytest.raises(ValueError, match="this LazyConv2d has no shape yet"):
        nb.absorb(nn.LazyConv2d(4, 3), 0.5)
    net = nn.Sequential(nn.LazyConv2d(4, 3), nn.BatchNorm2d(4))
    for change in (nb.fold, nb.merge):
        with pytest.raises(ValueError, match="`net` has lazy layers, which have no shape yet"):
            change(net)


def test_folding_pairs_of_ones_own():
    with pytest.raises(ValueError, match=r"0\.1: a NormAndActivation behind a Conv2d has a forward of its own"):
        nb.fold(nn.Sequential(nn.Sequential(nn.Conv2d(3, 4, 3), NormAndActivation(4, nn.SiLU()))))
    net = networks.lively(nn.Sequential(nn.Conv2d(3, 4, 3), NormAndActivation(4, nn.Identity()))).double().eval()
    x = torch.randn(2, 3, 5, 5, dtype=torch.float64)
    assert networks.relative_error(nb.fold(net)(x), net(x)) < 1e-12


def test_hooks_on_layers_before_the_last_one_do_not_matter():
    layer, x = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).double(), torch.randn(2, 4, dtype=torch.float64)
    layer[0].register_forward_hook(lambda module, inputs, output: output.relu())
    before = layer(x)
    nb.absorb(layer, -0.5)
    assert torch.allclose(layer(x), -0.5 * before, rtol=1e-14)


COMPUTED = {
    "spectral norm": nn.utils.parametrizations.spectral_norm,
    "the older spectral norm": nn.utils.spectral_norm,
    "weight norm": nn.utils.parametrizations.weight_norm,
    "the older weight norm": nn.utils.weight_norm,
}


def added_to(layer: nn.Module, what: str) -> nn.Module:
    if what == "a hook before it":
        layer.register_forward_pre_hook(lambda module, inputs: (2.0 * inputs[0],))
    elif what in COMPUTED:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # the older ones are deprecated
            COMPUTED[what](layer)
    elif what == "a computed bias":
        nn.utils.parametrize.register_parametrization(layer, "bias", nn.Softplus())
    return layer


def sequence_with(on: int, what: str) -> nn.Sequential:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).double().eval()
    net[1].running_mean.add_(0.3)
    net[on] = added_to(net[on], what)
    return net


def test_what_was_added_to_a_layer_is_not_folded_away():
    with pytest.raises(ValueError, match="could not be proved to fold"):
        nb.fold(sequence_with(1, "a hook before it"))


ADDED = ["spectral norm", "the older spectral norm", "weight norm", "the older weight norm", "a computed bias"]


@pytest.mark.parametrize(
    ("on", "what"), [(0, "a hook before it"), (1, "a computed bias"), *((0, one) for one in ADDED)]
)
def test_what_was_added_to_a_layer_and_folds_is_folded(on, what):
    net, x = sequence_with(on, what), torch.randn(2, 3, 6, 6, dtype=torch.float64)
    folded = nb.fold(net)
    assert torch.allclose(folded(x), net(x), rtol=1e-12)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in folded.modules())


class Normed(nn.Module):
    """A residual block whose convolutions have weight_norm, and normalisations behind them."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = (nn.utils.parametrizations.weight_norm(nn.Conv2d(4, 4, 3, padding=1)) for _ in "ab")
        self.bn1, self.bn2 = nn.BatchNorm2d(4), nn.BatchNorm2d(4)

    def forward(self, x):
        return x + self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))


def test_normalisations_behind_weight_norm_are_folded():
    net, x = networks.lively(Normed()).double().eval(), torch.randn(2, 4, 6, 6, dtype=torch.float64)
    folded = nb.fold(net, x)
    assert torch.allclose(folded(x), net(x), rtol=1e-12)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in folded.modules())
