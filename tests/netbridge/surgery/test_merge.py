"""Merging and folding: the same function with less in it, or a refusal that names the block."""

import copy
import warnings

import hypothesis
import hypothesis.strategies as some
import pytest
import torch
from torch import nn

import netbridge as nb
from tests.netbridge import networks

PRECISIONS = (torch.float32, torch.float64)
CONSTANTS = [nb.asr("se"), nb.asr("eca", uses=2), nb.asr("srm"), nb.asr("dia"), nb.asr("stepnet"), nb.asr(None)]
CONSTANTS += [nb.asr("ie", learnable=False, spread=0.3), nb.controller("constant", value=-0.3)]


@pytest.mark.slow
@hypothesis.settings(deadline=None, max_examples=20)
@hypothesis.given(
    controller=some.sampled_from(CONSTANTS),
    precision=some.sampled_from(PRECISIONS),
    bottleneck=some.booleans(),
    post_activation=some.booleans(),
    shortcut=some.sampled_from("AB"),
    grid=some.sampled_from([{}, {"method": "RK4"}, {"depth_factor": 2}, {"weights": "interpolated"}]),
    training=some.booleans(),
)
def test_merged_and_folded_are_the_same_function(
    controller, precision, bottleneck, post_activation, shortcut, grid, training
):
    if grid.get("depth_factor") == 2 and "dia" in repr(controller):
        return
    net = nb.resnet(
        11 if bottleneck else 14,
        controller=controller,
        bottleneck=bottleneck,
        post_activation=post_activation,
        shortcut=shortcut,
        widths=(8, 8, 16),
        **grid,
    )
    net = networks.lively(net).to(precision).train(training)
    images = torch.randn(2, 3, 16, 16, dtype=precision)
    with torch.no_grad():
        merged = nb.merge(net)
        assert merged.training is training
        rounding = networks.rounding_of(net, images)
        assert networks.relative_error(merged(images), copy.deepcopy(net)(images)) < rounding
        folded, straight = nb.fold(merged), nb.fold(net)
        rounding = networks.rounding_of(net.eval(), images)
        assert networks.relative_error(folded(images), merged.eval()(images)) < rounding
        assert networks.relative_error(straight(images), net(images)) < rounding


@pytest.mark.slow
@pytest.mark.parametrize("depth", [56, 164])
def test_deep_networks_stay_exact(depth, images):
    for precision in PRECISIONS:
        net = networks.lively(nb.resnet(depth, controller=nb.asr("se"))).to(precision).eval()
        x = images[:2, :, ::2, ::2].to(precision)
        with torch.no_grad():
            wanted, rounding = net(x), networks.rounding_of(net, x)
            assert networks.relative_error(nb.merge(net)(x), wanted) < rounding
            assert networks.relative_error(nb.fold(nb.merge(net))(x), wanted) < rounding


def test_a_merged_network_is_a_plain_one():
    with torch.device("meta"):
        plain = nb.resnet(164)
    net = networks.lively(nb.resnet(164, controller=nb.asr("se")))
    merged = nb.merge(net)
    assert sum(p.numel() for p in net.parameters()) == 1_706_218 + 202_104 + 8_064 - 2_064
    assert sum(p.numel() for p in merged.parameters()) == 1_704_154
    assert list(merged.state_dict()) == list(plain.state_dict())
    assert merged.config == plain.config
    folded = nb.fold(merged)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in folded.modules())
    assert not any(p.requires_grad is False for p in folded.parameters())


def test_a_memory_is_followed_from_block_to_block(images):
    """DIA's head is constant per block, and another constant in the next one."""
    net = networks.lively(nb.resnet(20, controller=nb.asr("dia"))).double().eval()
    merged = nb.merge(net)
    assert list(merged.state_dict()) == list(nb.resnet(20).state_dict())
    with torch.no_grad():
        assert networks.relative_error(merged(images.double()), net(images.double())) < 1e-12


def test_merging_leaves_the_original_alone(images):
    net = networks.lively(nb.resnet(14, controller=nb.asr("se")))
    before = copy.deepcopy(net.state_dict())
    nb.fold(nb.merge(net))
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())
    assert net.training


def test_a_live_module_beside_the_constant_stays(images):
    for beside in ("se", "dia"):
        net = networks.lively(nb.resnet(14, controller=nb.asr("se", beside=beside))).double().eval()
        merged = nb.merge(net)
        assert merged.config["controllers"] == [beside] * 6
        assert list(merged.state_dict()) == list(nb.resnet(14, controller=beside).state_dict())
        with torch.no_grad():
            assert networks.relative_error(merged(images.double()), net(images.double())) < 1e-12


def test_preactivation_keeps_the_normalisations_after_additions(images):
    folded = nb.fold(networks.lively(nb.resnet(29, post_activation=False)))
    kept = {name for name, module in folded.named_modules() if isinstance(module, nn.BatchNorm2d)}
    assert kept == {f"{block}.branch.bn1" for block in folded.block_names} | {"head.bn"}


@pytest.mark.parametrize("controller", ["se", "stepnet", "iebn", "sge", "cbam", "dia"])
def test_live_controllers_are_refused_by_block(controller):
    first = 1 if controller == "stepnet" else 0
    with pytest.raises(ValueError, match=f"stages.0.blocks.{first}: controller {controller} depends on its input"):
        nb.merge(nb.resnet(14, controller=controller))


def test_keep_live_merges_the_rest(images):
    net = nb.swap(nb.resnet(14, controller=nb.asr("se")), "se", on=[2])
    networks.lively(net).eval()
    merged = nb.merge(net, keep_live=True)
    assert merged.config["controllers"] == ["constant"] * 2 + ["se"] + ["constant"] * 3
    with torch.no_grad():
        assert networks.relative_error(merged(images), net(images)) < networks.rounding_of(net, images)
    gated = nn.Sequential(
        nb.Gated(nn.Conv2d(3, 3, 1), "se", 3), nb.Gated(nn.Conv2d(3, 3, 1), nb.asr("se", beside="se"), 3)
    )
    with pytest.raises(ValueError, match="0: controller se depends on its input"):
        nb.merge(gated)
    kept = nb.merge(gated, keep_live=True)
    assert isinstance(kept[0], nb.Gated)
    assert networks.relative_error(kept(images), gated(images)) < networks.rounding_of(gated, images)


def tied():
    layer = nn.Linear(4, 4)
    return nn.Sequential(nb.Gated(layer, nb.asr("ie"), 4), layer)


def twice():
    gated = nb.Gated(nn.Linear(4, 4), nb.asr("ie"), 4)
    return nn.Sequential(gated, gated)


def quietly(wrap, layer):
    """The older functions of torch warn that they are deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return wrap(layer)


def behind(wrap, *rest):
    return lambda: nb.Gated(nn.Sequential(nn.Linear(4, 4), quietly(wrap, nn.Linear(4, 4)), *rest), nb.asr("ie"), 4)


MERGED = {
    "tied weights": tied,
    "one module twice": twice,
    "weight_norm": behind(nn.utils.parametrizations.weight_norm),
    "spectral_norm": behind(nn.utils.parametrizations.spectral_norm),
    "the older weight_norm": behind(nn.utils.weight_norm),
    "the older spectral_norm": behind(nn.utils.spectral_norm),
    "a bias that is computed": behind(
        lambda x: nn.utils.parametrize.register_parametrization(x, "bias", nn.Softplus())
    ),
    "behind a ReLU": behind(lambda one: one, nn.ReLU(), nn.Dropout()),
    "behind others": behind(lambda one: one, nn.LeakyReLU(0.2), nn.PReLU()),
    "RMSNorm": lambda: nb.Gated(nn.RMSNorm(4), nb.asr("ie")),
    "RMSNorm without weights": lambda: nb.Gated(nn.RMSNorm(4, elementwise_affine=False), nb.asr("ie")),
}


@pytest.mark.parametrize("case", MERGED)
def test_what_is_exact_is_merged(case):
    """Also where the layer's weights are another's, or are computed; the original stays as it was."""
    torch.manual_seed(0)
    gated, x = networks.lively(MERGED[case]()).double().eval(), torch.randn(5, 4, dtype=torch.float64)
    before = {name: tensor.clone() for name, tensor in gated.state_dict().items()}
    wanted = gated(x).detach()
    merged = nb.merge(gated)
    assert not any(isinstance(module, nb.Gated) for module in merged.modules())
    assert networks.relative_error(merged(x).detach(), wanted) < 1e-12
    assert torch.equal(gated(x), wanted)
    assert all(torch.equal(tensor, before[name]) for name, tensor in gated.state_dict().items())


def test_weights_that_run_from_block_to_block_are_merged_where_all_have_one_step_size(images):
    torch.manual_seed(0)
    net = nb.resnet(20, controller="constant(0.5)", method="RK4", weights="interpolated", widths=(4, 4, 8))
    net = networks.lively(net).double().eval()
    merged = nb.merge(net)
    assert set(merged.config["controllers"]) == {"constant"}
    with torch.no_grad():
        assert networks.relative_error(merged(images.double()), net(images.double())) < 1e-12


REFUSED = {
    "slopes between blocks": (
        lambda: nb.resnet(14, controller=nb.asr("se"), method="RK4", weights="interpolated"),
        r"stages.0.blocks.0: .*weights=\"interpolated\"",
    ),
    "a memory on a refined grid": (
        lambda: nb.resnet(14, controller=nb.asr("dia"), depth_factor=2),
        "stages.0.blocks.0: .*refined grid",
    ),
    "an unknown layer": (
        lambda: nb.Gated(nn.GELU(), nb.asr("ie"), 4),
        "GELU: a GELU cannot take up a constant exactly",
    ),
    "a negative one behind a ReLU": (
        lambda: nb.Gated(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nb.controller("constant", value=-0.5), 4),
        "this Sequential|a ReLU cannot take up a constant",
    ),
    "other channels": (
        lambda: nb.Gated(nn.Linear(4, 4), nb.asr("ie"), 3),
        "`channels` = 3 do not fit the 4 channels of a Linear",
    ),
    "an empty sequence": (lambda: nb.Gated(nn.Sequential(nn.Identity()), nb.asr("ie"), 3), "holds no layer"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_exact_is_refused(case):
    make, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        nb.merge(make())


@pytest.mark.parametrize(
    "inner",
    [
        lambda: nb.resnet(8, widths=(4, 4, 4), controller=nb.asr("se")),
        lambda: nb.vgg(controller=nb.asr("se"), width=4, blocks=(1, 2)),
    ],
)
def test_a_network_of_ours_within_another_is_merged_and_folded(inner, caplog):
    class Around(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.stem, self.head = inner(), nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)), nn.ReLU()

        def forward(self, x):
            return self.head(self.inner(self.stem(x)))

    net, x = networks.lively(Around()).double().eval(), torch.rand(2, 3, 8, 8, dtype=torch.float64)
    merged = nb.merge(net)
    folded = nb.fold(merged, x)
    assert not caplog.records
    assert not any("asr" in str(part).lower() for part in (merged, merged.inner.config))
    assert not any(isinstance(module, nn.BatchNorm2d) for module in folded.modules())
    assert folded.inner.config["folded"]
    for other in (merged, folded):
        assert networks.relative_error(other(x), net(x)) < 1e-12
    with pytest.raises(ValueError, match=r"^inner.*depends on its input"):
        nb.merge(nn.ModuleDict({"inner": nb.resnet(8, widths=(4, 4, 4), controller="se")}))


def test_fold_refuses():
    with pytest.raises(ValueError, match=r"stages.0.blocks.0.branch.bn1: iebn's normalisation scales by its input"):
        nb.fold(nb.resnet(14, controller="iebn"))
    with pytest.raises(ValueError, match=r"stages.0.blocks.0: its weights are mixed"):
        nb.fold(nb.resnet(14, method="RK4", weights="interpolated"))
    net = nb.resnet(14)
    net.blocks[3].branch.bn2 = nn.BatchNorm2d(32, track_running_stats=False)
    with pytest.raises(ValueError, match=r"stages.1.blocks.1.branch.bn2: .* without running statistics"):
        nb.fold(net)
    with pytest.raises(ValueError, match="no batch normalisation right behind"):
        nb.fold(nn.Linear(2, 2))
    for reparametrise in (nb.merge, nb.fold):
        with pytest.raises(TypeError, match="`net` must be a network, got int"):
            reparametrise(3)
    for owner in (nb.controller("dia"), "iebn"):
        with pytest.raises(ValueError, match="needs the blocks of a stage"):
            nb.Gated(nn.Linear(2, 2), owner, 2)


def test_folding_sequences_of_other_modules(images):
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Sequential(nn.Conv2d(4, 5, 3), nn.BatchNorm2d(5)),
    )
    networks.lively(net).double().eval()
    folded = nb.fold(net)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in folded.modules())
    assert networks.relative_error(folded(images.double()), net(images.double())) < 1e-12
    shared = nn.Conv2d(3, 3, 1)
    with pytest.raises(ValueError, match="0: it shares parameters"):
        nb.fold(nn.Sequential(shared, nn.BatchNorm2d(3), shared))


class Conditional(nn.Sequential):
    """A sequence with a forward of its own, in which something comes between."""

    def forward(self, x):
        return self[1](self[0](x).abs())


class Backwards(nn.Sequential):
    def forward(self, x):
        return self[0](self[1](x))


def taken_apart(sequence, x):
    y = sequence[0](x)
    return sequence[1](y) + 0.1 * y


def in_a_loop(sequence, x):
    for layer in sequence:
        x = layer(x).abs()
    return x


class Caller(nn.Module):
    def __init__(self, sequence, how):
        super().__init__()
        self.sequence, self.how = sequence, how

    def forward(self, x):
        return self.how(self.sequence, x)


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        (Conditional, lambda sequence, x: sequence(x)),
        (Backwards, lambda sequence, x: sequence(x)),
        (nn.Sequential, taken_apart),
        (nn.Sequential, in_a_loop),
    ],
)
def test_a_sequence_whose_layers_do_not_act_in_turns_is_not_folded(kind, how, images):
    """Conv and norm stand side by side, but something else comes between when they are called."""
    net = networks.lively(nn.Sequential(Caller(kind(nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)), how)))
    for given in (None, images):
        with pytest.raises(ValueError, match=r"^0.sequence.1: something comes between it and 0.sequence.0"):
            nb.fold(net, given)


def test_layers_called_one_by_one_in_turns_are_folded(images):
    def in_turns(sequence, x):
        return sequence[2](sequence[1](sequence[0](x)))

    parts = nn.Conv2d(3, 3, 3, padding=1, padding_mode="reflect"), nn.BatchNorm2d(3), nn.ReLU()
    net = networks.lively(Caller(nn.Sequential(*parts), in_turns)).double().eval()
    folded = nb.fold(net, images.double())
    assert isinstance(folded.sequence[1], nn.Identity)
    assert networks.relative_error(folded(images.double()), net(images.double())) < 1e-12


class Usual(nn.Module):
    """A residual block as most people write it: layers as attributes, called one by one."""

    def __init__(self, norm=nn.BatchNorm2d, forks=False, repeats=1):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(4, 4, 3, padding=1, bias=False), norm(4)
        self.conv2, self.bn2 = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.forks, self.repeats = forks, repeats

    def forward(self, x):
        first = y = self.conv1(x)
        y = self.bn1(y).relu()
        for _ in range(self.repeats):
            y = self.bn2(self.conv2(y))
        return torch.relu(x + y + (first if self.forks else 0.0))


class Own(nn.BatchNorm2d):
    def forward(self, x):
        return super().forward(x).tanh()


@pytest.mark.parametrize(
    ("options", "left"),
    [({}, []), ({"forks": True}, ["1.bn1"]), ({"repeats": 2}, ["1.bn2"]), ({"norm": Own}, ["1.bn1"])],
    ids=["usual", "convolution taken twice", "layers called twice", "layer of one's own"],
)
def test_layers_that_are_attributes_fold_where_a_pass_shows_that_they_may(options, left, images):
    """Only layers in a nn.Sequential were folded, which in most people's networks is the stem and the shortcuts."""
    net = networks.lively(nn.Sequential(nn.Conv2d(3, 4, 1), Usual(**options))).double().eval()
    folded = nb.fold(net, images.double())
    kept = [name for name, module in folded.named_modules() if isinstance(module, nn.BatchNorm2d)]
    assert kept == left
    assert networks.relative_error(folded(images.double()), net(images.double())) < 1e-12


@pytest.mark.parametrize(("controller", "left"), [("se", 1), ("asr(se)", 0)])
def test_a_live_step_size_keeps_the_layer_whose_input_it_sees(controller, left, images):
    net = networks.lively(nb.insert(nn.Sequential(nn.Conv2d(3, 4, 1), Usual()), controller, images)).double().eval()
    folded = nb.fold(net if left else nb.merge(net), images.double())
    assert sum(isinstance(module, nn.BatchNorm2d) for module in folded.modules()) == left
    assert networks.relative_error(folded(images.double()), net(images.double())) < 1e-12


def test_a_network_that_takes_no_images_has_to_be_shown_some():
    net = networks.lively(Caller(nn.Sequential(nn.Conv1d(3, 3, 3), nn.BatchNorm1d(3)), lambda part, x: part(x))).eval()
    with pytest.raises(ValueError, match="`images` must be given"):
        nb.fold(net)
    x = torch.rand(2, 3, 7)
    assert networks.relative_error(nb.fold(net, x)(x), net(x)) < 1e-5
    assert networks.relative_error(nb.fold(net.sequence)(x), net(x)) < 1e-5


def test_a_sum_with_a_hook_is_not_folded():
    both = nb.Sum(nn.Conv2d(2, 2, 3, padding=1), nn.Conv2d(2, 2, 1))
    both.register_forward_hook(lambda layer, inputs, output: output.abs())
    with pytest.raises(ValueError, match=r"^0: this sum has hooks"):
        nb.fold(nn.Sequential(both))


def test_folding_twice_is_folding_once(images):
    once = nb.fold(networks.lively(nb.resnet(14)))
    assert torch.equal(nb.fold(once)(images), once(images))
    swapped = nb.swap(once, "se")
    assert swapped(images).shape == (4, 10)
    assert swapped.config["folded"] is True


@pytest.mark.parametrize("net", [nn.Sequential(nn.Linear(2, 2)), nb.resnet(14)], ids=["a foreign one", "ours"])
def test_nothing_to_merge_is_said(net, caplog):
    nb.merge(net)
    assert "merge: nothing to merge in this" in caplog.text
    caplog.clear()
    nb.merge(nb.Gated(nn.Linear(2, 2), "constant(0.5)"))
    assert caplog.text == ""


@pytest.mark.parametrize("value", [0.1, 3.0])
def test_merging_moves_the_step_size_into_the_slope(value):
    """What the docstring says: the slope's index is h times what it was, the increment's the same."""
    net = networks.lively(nb.resnet(14, controller=f"constant({value})", widths=(4, 8, 8))).double().eval()
    images = torch.randn(2, 3, 16, 16, dtype=torch.float64)
    merged = nb.merge(net)
    kept = []
    for one in (net, merged):
        steps = []
        with torch.no_grad(), one.observed(lambda c, m, t, dt, h, u, s, f, new, steps=steps: steps.append((u, f, new))):
            one(images)
        kept.append(steps)
    for (u, f, new), (again, slope, after) in zip(*kept, strict=True):
        assert networks.relative_error(slope.norm() / again.norm(), value * f.norm() / u.norm()) < 1e-12
        assert networks.relative_error(after, new) < 1e-12
