"""Step sizes in other people's networks: one behind every branch, the original as it was, merged again to the bit."""

import copy
import pickle

import numpy as np
import pytest
import torch
from torch import nn

import netbridge as nb
from tests.netbridge import networks
from tests.netbridge.foreign import networks as foreign
from tests.netbridge.surgery.lookalikes import (
    Activated,
    Attention,
    Inverted,
    LayerScale,
    MBConv,
    NormAct,
    OneActivation,
    OwnExcited,
    OwnResidual,
    RepVGG,
    Summed,
    Swin,
    maps,
)

IMAGES, TOKENS = (4, 3, 16, 16), (4, 7, 8)
NETWORKS = {
    "torchvision's": (lambda: foreign.VisionResNet(), IMAGES, "bn2"),
    "bottlenecks": (lambda: foreign.VisionResNet(foreign.VisionBottleneck), IMAGES, "bn3"),
    "timm's": (lambda: foreign.TimmResNet(), IMAGES, "bn2"),
    "timm's with SE": (lambda: foreign.TimmResNet(foreign.TimmSE), IMAGES, "bn2"),
    "LayerScale": (lambda: maps(LayerScale), IMAGES, "narrow"),
    "inverted residuals": (lambda: maps(Inverted), IMAGES, "body.4"),
    "written by hand": (lambda: foreign.HandResNet(), IMAGES, "bn2"),
    "branching in Python": (lambda: foreign.Branching(), IMAGES, "bn2"),  # torch.fx could not read it
    "a ViT": (lambda: foreign.Transformer(), (2, 3, 32, 32), ("attn.proj", "mlp.2")),
    "EfficientNet's": (lambda: maps(MBConv), IMAGES, "project.bn"),
    "MobileNet-V3's": (lambda: maps(lambda c: MBConv(c, nn.Hardswish, nn.Hardsigmoid)), IMAGES, "project.bn"),
    "RepVGG's": (lambda: maps(Summed), IMAGES, "narrow.bn"),
    "a transformer": (lambda: nn.Sequential(Attention(8), Attention(8)), TOKENS, ("out", "mlp.2")),
    "torch's encoder": (lambda: foreign.TorchEncoder(), (4, 7, 12), ("self_attn", "linear2")),
    "Swin": (
        Swin,
        (2, 3, 24, 16),
        ("attn", "mlp.2"),
    ),  # windows of 4 fill maps of 12 x 8, and not those of 10 x 14
    "Swin with a border": (Swin, (2, 3, 20, 28), ("attn", "mlp.2")),
    "RMSNorm last": (lambda: nn.Sequential(*(Sandwich(8) for _ in range(2))), TOKENS, "after"),
}


class Sandwich(nn.Module):
    """A transformer's MLP with a normalisation before and behind it."""

    def __init__(self, features):
        super().__init__()
        self.before, self.after, self.mlp = nn.RMSNorm(features), nn.RMSNorm(features), nn.Linear(features, features)

    def forward(self, x):
        return x + self.after(self.mlp(self.before(x)).tanh())


ACTIVATED = {  # the block, the end of the name of the place, and of the layer that a constant goes into; None: none
    "a ReLU": (lambda c: Activated(c, nn.ReLU()), "act", "norm"),
    "a ReLU in place": (lambda c: Activated(c, nn.ReLU(inplace=True)), "act", "norm"),
    "a LeakyReLU": (lambda c: Activated(c, nn.LeakyReLU(-0.5)), "act", "norm"),
    "a PReLU": (lambda c: Activated(c, nn.PReLU(c)), "act", "norm"),
    "a pool": (lambda c: Activated(c, nn.Sequential(nn.ReLU(), nn.MaxPool2d(3, 1, 1))), "act.1", "norm"),
    "a GELU": (lambda c: Activated(c, nn.GELU()), "act", None),
    "a module that activates": (lambda c: Activated(c, NormAct(c, nn.ReLU)), "act.act", "act"),
    "the method": (OwnResidual, "", "norm"),
    "a function": (lambda c: Activated(c, torch.tanh), "", None),
    "one ReLU for all": (lambda c: OneActivation(c, nn.ReLU(inplace=True)), "", "norm"),
    "a sum": (RepVGG, "", None),
    "a gate computed from the slope": (OwnExcited, "", None),
}


@pytest.mark.parametrize("training", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", ACTIVATED)
def test_behind_an_activation(case, training):
    """The step size stands behind it, as a trace says, and goes into the layer before it where it is not negative."""
    block, end, into = ACTIVATED[case]
    net = foreign.shaken(networks.lively(maps(block))).double().train(training)
    images, before = torch.randn(IMAGES, dtype=torch.float64), copy.deepcopy(net.state_dict())
    found = nb.places(net, images)
    assert [(place.layer, place.reason) for place in found] == [(f"{k}.{end}".strip("."), "") for k in (1, 2, 3)]
    assert [place.into for place in found] == [(f"{k}.{into}",) if into else () for k in (1, 2, 3)]
    plain = nb.trace(net, images)
    for h, exact in ((0.5, into is not None), (-0.5, False)):
        gated = nb.insert(net, nb.controller("constant", value=h), images)
        assert [gated.training, gated[1].training, gated[1].norm.training if into else training] == [training] * 3
        traced = nb.trace(gated, images)
        np.testing.assert_allclose(traced.step_sizes[:, 0], h * plain.step_sizes[:, 0])
        np.testing.assert_allclose(traced.nsi[:, 0], plain.nsi[:, 0], rtol=1e-12)
        if not exact:
            words = "is negative in places" if into else "no constant can be moved through"
            with pytest.raises(ValueError, match=words):
                nb.merge(gated)
            continue
        merged = nb.merge(gated)
        with torch.no_grad():
            assert networks.relative_error(merged.eval()(images), gated.eval()(images)) < 1e-12
        assert sorted(merged.state_dict()) == sorted(before)
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())


@pytest.mark.parametrize("case", ACTIVATED)
def test_a_controller_behind_an_activation_sees_the_slope(case):
    net, images = networks.lively(maps(ACTIVATED[case][0])).eval(), torch.randn(IMAGES)
    gated = nb.insert(net, "eca", images).eval()
    one = next(module for module in gated.modules() if isinstance(module, nb.Gated))
    networks.lively(one.controller).eval()
    seen = []
    one.controller.register_forward_hook(lambda _, args, h: seen.append((args[1], h)))
    traced = nb.trace(gated, images, keep=True)
    slope, h = seen[-1]
    plain = nb.trace(net, images, keep=True)
    if "gate" not in case:  # of which the mean over the channels is no product of means
        np.testing.assert_allclose(traced.record.step_sizes[:, 0], h.flatten(1).mean(1).detach(), rtol=1e-5)
    np.testing.assert_allclose(slope.detach(), plain[0].slope[0], rtol=1e-5, atol=1e-6)
    gated.train()(images).square().sum().backward()
    assert all(p.grad is not None for name, p in gated.named_parameters() if "controller" in name)
    copied = copy.deepcopy(gated).eval()
    assert torch.equal(copied(images), gated.eval()(images))


def test_a_number_may_stand_in_front_of_an_activated_branch():
    class Numbered(OwnResidual):
        def forward(self, x):
            return 1.5 * x + 0.3 * self.norm(self.conv(x)).relu()

    net, images = networks.lively(maps(Numbered)).eval(), torch.randn(IMAGES)
    halved = nb.trace(nb.insert(net, "constant(0.5)", images), images)
    np.testing.assert_allclose(halved.step_sizes[:, 0], 0.5 * 0.3 / 1.5, rtol=1e-6)


class OtherInTraining(OwnResidual):
    def forward(self, x):
        return x + nn.functional.dropout(self.norm(self.conv(x)).relu(), 0.5, self.training)


class Overwriting(OwnResidual):
    """Returns the tensor that it has added to, and not the result of the addition."""

    def forward(self, x):
        f = self.norm(self.conv(x)).relu()
        f.add_(x)
        return f.clone()


class Unnamed(OwnResidual):
    def forward(self, *states):
        return super().forward(*states)


class Hooked(OwnResidual):
    def __init__(self, channels):
        super().__init__(channels)
        self.register_forward_hook(lambda module, args, output: 2.0 * output)


class Deciding(OwnResidual):
    def forward(self, x):
        return x + self.norm(self.conv(x)).relu() if x.sum() > -1e9 else x


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (OtherInTraining, "its forward does something else in training than in evaluation"),
        (Deciding, "torch.fx cannot read its forward"),
        (Overwriting, "what it adds is changed in place and used again"),
        (Unnamed, "its forward names not all of its arguments"),
        (Hooked, "it has hooks, which may change what it returns"),
    ],
)
def test_a_forward_that_cannot_be_rewritten_is_refused_in_words(block, words):
    net, images = maps(block), torch.randn(IMAGES)
    assert all("the branch ends in relu" in place.reason for place in nb.places(net, images))
    with pytest.raises(ValueError, match=words):
        nb.insert(net, "se", images)


def test_what_a_forward_does_not_use_stays_in_the_network():
    class Spare(OwnResidual):
        def __init__(self, channels):
            super().__init__(channels)
            self.spare, self.shift = nn.Linear(2, 2), nn.Parameter(torch.ones(1))
            self.register_buffer("count", torch.zeros(1))
            self.word = "kept"

    net, images = maps(Spare), torch.randn(IMAGES)
    merged = nb.merge(nb.insert(net, "constant(0.5)", images))
    assert sorted(merged.state_dict()) == sorted(net.state_dict())
    assert merged[1].word == "kept"


def test_a_rewritten_network_is_copied_and_pickled_as_it_is():
    net, images = maps(OwnResidual).eval(), torch.randn(IMAGES)
    gated = nb.insert(net, "se", images)
    pickled = pickle.loads(pickle.dumps(gated))
    for one in (copy.deepcopy(gated), pickled):
        assert torch.equal(one(images), gated(images))
        assert list(one.state_dict()) == list(gated.state_dict())
        with torch.no_grad():
            one[1].conv.weight.zero_()
        assert not torch.equal(one(images), gated(images))


@pytest.mark.parametrize("case", NETWORKS)
@pytest.mark.parametrize("training", [pytest.param(False, marks=pytest.mark.slow), True])
def test_insert_then_merge(case, training):
    make, shape, ends = NETWORKS[case]
    net = foreign.shaken(networks.lively(make())).double().train(training)
    images = torch.randn(shape, dtype=torch.float64)
    before, modules = copy.deepcopy(net.state_dict()), [*map(id, net.modules())]
    generator = torch.get_rng_state()
    found = nb.places(net, images)
    assert torch.equal(generator, torch.get_rng_state())
    assert [place.step for place in found] == list(nb.trace(net, images).names)
    assert all(place.reason == "" and place.layer.endswith(ends) for place in found)
    gated = nb.insert(net, nb.asr("ie", spread=1.0), images)
    assert {module.training for module in gated.modules() if not isinstance(module, nn.Identity)} == {training}
    assert [*map(id, net.modules())] == modules
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())
    gates = sum(isinstance(module, nb.Gated) for module in gated.modules())
    assert gates == sum(1 + len(place.also) for place in found)
    gated.eval()
    with torch.no_grad():
        assert networks.relative_error(gated(images), net.eval()(images)) > 1e-3  # something was inserted
        merged = nb.merge(gated)
        assert networks.relative_error(merged(images), gated(images)) < 1e-12
    assert list(merged.state_dict()) == list(net.state_dict())
    assert [type(module) for module in merged.modules()] == [type(module) for module in net.modules()]


@pytest.mark.parametrize("controller", ["se", "cbam", nb.controller("stepnet", inputs="difference")], ids=str)
@pytest.mark.parametrize("case", ["torchvision's", "LayerScale", "a transformer"])
def test_live_step_sizes_train(case, controller):
    make, shape, _ = NETWORKS[case]
    net = nb.insert(make(), controller, torch.randn(shape)).train()
    net(torch.randn(shape)).square().sum().backward()
    assert all(p.grad is not None for name, p in net.named_parameters() if "controller" in name)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")  # the original's own
@pytest.mark.parametrize("on", [["self_attn"], ["linear2"]])
def test_torchs_fused_encoder_does_not_pass_a_step_size_by(on):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    net = nn.TransformerEncoder(layer, 2).eval()
    tokens, mask = torch.randn(4, 7, 8), torch.arange(7) >= torch.tensor([[7], [5], [6], [4]])

    def call(net, tokens):
        return net(tokens, src_key_padding_mask=mask[: len(tokens)])

    places = [k for k, place in enumerate(nb.places(net, tokens)) if place.layer.endswith(tuple(on))]
    gated = nb.insert(net, "constant(0.5)", tokens, on=places)
    merged = nb.merge(gated)
    with torch.no_grad():
        for run in (call, nn.Module.__call__):
            wanted = run(gated.train(False), tokens.requires_grad_())
            torch.testing.assert_close(run(gated, tokens), wanted)
            assert (run(net, tokens) - wanted)[~mask].abs().max() > 0.1
            torch.testing.assert_close(run(merged, tokens)[~mask], wanted[~mask])
    with torch.enable_grad():
        torch.testing.assert_close(gated(tokens), merged(tokens))


def test_a_constant_is_a_step_size_and_becomes_part_of_the_slope_when_merged():
    net, images = networks.lively(maps(Inverted)).eval(), torch.randn(IMAGES)
    half = nb.insert(net, "constant(0.5)", images, on=[0])
    plain, gated, merged = (nb.trace(one, images) for one in (net, half, nb.merge(half)))
    np.testing.assert_allclose(gated.nsi[:, 0], plain.nsi[:, 0], rtol=1e-6)
    np.testing.assert_allclose(gated.step_sizes[:, 0], 0.5, rtol=1e-6)
    np.testing.assert_allclose(merged.nsi[:, 0], 0.5 * plain.nsi[:, 0], rtol=1e-5)


def test_all_summands_of_a_branch_have_one_step_size():
    """Each would see another slope: what depends on the input is refused; a constant is learnt once and told once."""
    net, images = maps(Summed), torch.randn(IMAGES)
    assert [(place.layer, place.also) for place in nb.places(net, images)] == [
        (f"{k}.narrow.bn", (f"{k}.wide.bn",)) for k in (1, 2, 3)
    ]
    gated = nb.insert(net, nb.asr(None, init=0.3), images)
    assert gated[1].narrow.bn.controller is gated[1].wide.bn.controller
    assert gated[1].narrow.bn.controller is not gated[2].narrow.bn.controller
    assert sum(p.numel() for p in gated.parameters()) == sum(p.numel() for p in net.parameters()) + 3 * 8
    for live in ("se", nb.asr("se", beside="eca")):
        with pytest.raises(
            ValueError, match=r"1: the branch ends in a sum of 1\.narrow\.bn, 1\.wide\.bn, behind which"
        ):
            nb.insert(net, live, images)


def test_behind_windows_a_step_size_is_one_of_images():
    """The layers of Swin's attention see windows: the step size stands where their map is whole again."""
    net, images = Swin().double().eval(), torch.randn(3, 3, 24, 16, dtype=torch.float64)
    assert [place.into for place in nb.places(net, images)] == [
        ("blocks.0.attn.proj",),
        None,
        ("blocks.1.attn.proj",),
        None,
    ]
    gated = nb.insert(net, "eca", images).eval()
    for one, (name, module) in zip(nb.gates(gated, images)[::2], list(gated.blocks.named_children()), strict=True):
        assert one.h.shape == one.pooled.shape == (3, 8)
        assert one.name.startswith(f"blocks.{name}")
        assert len(torch.unique(one.h, dim=0)) == 3
        assert isinstance(module.attn, nb.Gated)
    below = nb.insert(net, "constant(-0.5)", images).eval()  # no activation lies between
    np.testing.assert_allclose(nb.trace(below, images).step_sizes, -0.5)
    with torch.no_grad():
        assert networks.relative_error(nb.merge(below)(images), below(images)) < 1e-12


class Loop(nn.Module):
    """The network's own forward adds, in a loop, in other spellings and behind factors."""

    def __init__(self):
        super().__init__()
        self.convs, self.scale = (
            nn.ModuleList(nn.Conv2d(3, 3, 3, padding=1) for _ in range(8)),
            nn.Parameter(torch.ones(3, 1, 1)),
        )

    def forward(self, x):
        slopes = iter(self.convs)
        x = x + next(slopes)(x).relu()
        x = x - next(slopes)(x).relu()
        x = torch.add(input=x, other=next(slopes)(x).relu_(), alpha=0.5)
        x = torch.stack([x, next(slopes)(x).relu()]).sum(0)
        x = sum([x, next(slopes)(x).relu()])
        x = x + self.scale * next(slopes)(x).relu() / 2.0
        x = torch.addcmul(x, next(slopes)(x).relu(), self.scale)
        x = x.clone()
        x += next(slopes)(x).relu().permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
        return x


def test_sums_of_one_forward_in_every_spelling():
    torch.manual_seed(0)
    net, images = Loop().double().eval(), torch.randn(IMAGES, dtype=torch.float64)
    places = nb.places(net, images)
    assert [place.into for place in places] == [(f"convs.{k}",) for k in range(8)]
    gated = nb.insert(net, "constant(0.25)", images)
    plain, traced = nb.trace(net, images), nb.trace(gated, images)
    np.testing.assert_allclose(traced.step_sizes, 0.25 * plain.step_sizes, rtol=1e-12)
    with torch.no_grad():
        assert networks.relative_error(nb.merge(gated)(images), gated(images)) < 1e-12
    some = nb.insert(net, "constant(0.25)", images, on=[1, 6])
    np.testing.assert_allclose(
        (nb.trace(some, images).step_sizes / plain.step_sizes)[0], [1, 0.25, 1, 1, 1, 1, 0.25, 1]
    )


class Nested(nn.Module):
    """x + (f(g(x)) + g(x)): what the sum adds second goes into its first summand as well."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        slope = self.inner(x)
        return x + (self.outer(slope) + slope)


def test_a_sum_of_which_one_summand_feeds_another_is_multiplied_as_a_whole():
    """A constant behind both layers would act twice in f(g(x)), and no longer multiply the slope."""
    net, images = nn.Sequential(nn.Conv2d(3, 8, 1), Nested()), torch.randn(IMAGES)
    (place,) = nb.places(net, images)
    assert (place.layer, place.into) == ("1", ())
    gated = nb.insert(net, "constant(0.5)", images)
    x = net[0](images)
    torch.testing.assert_close(gated(images), x + 0.5 * (net[1](x) - x))
    with pytest.raises(ValueError, match="no constant can be moved through"):
        nb.merge(gated)


def test_a_layer_that_acts_twice_has_a_step_size_at_each_sum():
    net, tokens = Twice().eval(), torch.randn(TOKENS)
    assert [place.into for place in nb.places(net, tokens)] == [(), ()]
    gated = nb.insert(net, nb.asr(None, init=0.3), tokens).eval()
    np.testing.assert_allclose(nb.trace(gated, tokens).step_sizes, 0.3, rtol=1e-6)
    assert [name for name, module in gated.named_modules() if isinstance(module, nb.Gated)] == [
        "step_size_1",
        "step_size_2",
    ]


@pytest.mark.parametrize("images", [torch.rand(*IMAGES), torch.rand(*IMAGES).double(), np.zeros(IMAGES, np.float32)])
def test_images_of_another_precision_are_cast(images):
    net = maps(Inverted).half()
    assert len(nb.places(net, images)) == 3
    assert nb.insert(net, "se", images)[1].body[4].controller.excite[0].weight.dtype == torch.float16


def test_some_places_only():
    net, images = maps(Inverted), torch.randn(IMAGES)
    for on in ([1], [-2], "2", "2.body.4", ["2", 1]):
        gated = nb.insert(net, "se", images, on=on)
        assert [name for name, module in gated.named_modules() if isinstance(module, nb.Gated)] == ["2.body.4"]
    with pytest.raises(ValueError, match=r"`on` names 3; the places are 0 to 2: \['1', '2', '3'\]"):
        nb.insert(net, "se", images, on=[3])


def test_other_places():
    vgg = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4))
    images = torch.randn(IMAGES)
    assert [place.layer for place in nb.places(vgg, images, at="norms")] == ["1"]
    assert isinstance(nb.insert(vgg, "se", at="norms")[1], nb.Gated)
    named = nb.insert(vgg, nb.asr("se"), at=["3"])
    assert [isinstance(layer, nb.Gated) for layer in named] == [False, False, False, True, False]
    classes = nb.insert(vgg, nb.asr("se"), at=nn.BatchNorm2d)
    assert [isinstance(layer, nb.Gated) for layer in classes] == [False, True, False, False, True]
    with pytest.raises(ValueError, match="`at` names 'conv9'"):
        nb.insert(vgg, "se", at=["conv9"])


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        x = x + self.layer(x)
        return x + self.layer(x)


REFUSED = {
    "one block twice": (lambda: nn.Sequential(*[OwnResidual(3)] * 2), IMAGES, "relu, .* and in 0, it acts 2 times"),
    "no step": (lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU()), TOKENS, "has no place for a step size. Looked for"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_place_is_told(case):
    make, shape, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        nb.insert(make(), "se", torch.randn(shape))


def test_what_cannot_be_inserted_is_told():
    net, images = maps(Inverted), torch.randn(IMAGES)
    with pytest.raises(TypeError, match=r"use nb\.swap"):
        nb.insert(nb.resnet(14), "se")
    with pytest.raises(ValueError, match="'dia' needs the blocks of a stage"):
        nb.insert(net, "dia", images)
    with pytest.raises(ValueError, match="`images` must be given"):
        nb.insert(nn.Sequential(Attention(8)), "se")
    assert len(nb.places(net)) == 3


class Remembering(nn.Module):
    """Computes a factor once and keeps it, with its history of gradients, also in a list and a dictionary."""

    def __init__(self):
        super().__init__()
        self.seq = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4))
        self.raw, self.kept = nn.Parameter(torch.rand(4, 1, 1)), {}

    def forward(self, x):
        if "factor" not in self.kept:
            self.kept["factor"] = [self.raw.exp()]
        return torch.relu(x + self.kept["factor"][0] * self.seq(x))


@pytest.mark.parametrize(
    "change",
    [
        lambda net, x: nb.insert(net, "constant(1.0)", x),
        lambda net, x: nb.merge(nb.insert(net, "constant(1.0)", x)),
        nb.fold,
    ],
)
def test_a_network_that_keeps_what_it_computed_can_be_copied(change):
    """torch refuses to copy a tensor that has a history of gradients."""
    torch.manual_seed(0)
    net, x = nn.Sequential(Remembering(), Remembering()).eval(), torch.rand(2, 4, 6, 6)
    wanted = net(x)  # with gradients
    kept = net[0].kept["factor"][0]
    assert kept.grad_fn is not None
    assert torch.allclose(change(net, x)(x), wanted, atol=1e-6)
    assert nb.block_spectrum(net[0], x[:1], "block").max_re > 0
    assert net[0].kept["factor"][0] is kept
