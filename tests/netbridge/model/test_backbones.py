"""Backbones: the papers' sizes, what is a step in them and what is not, and that every tool takes them."""

import copy

import pytest
import torch
from torch import nn

import netbridge as nb
from netbridge import data, train
from tests.netbridge import networks
from tests.netbridge.backbones import BACKBONES, UNFOLDABLE, images

COUNTS = {  # parameters for 1000 classes, as published by the papers, torchvision and timm
    "VGG19": (lambda: nb.vgg(19, 1000, head="paper", normalised=False), 143_667_240),
    "VGG19 with normalisations": (lambda: nb.vgg(19, 1000, head="paper"), 143_678_248 - 5_504),  # without its biases
    "VGG11": (lambda: nb.vgg(11, 1000, head="paper", normalised=False), 132_863_336),
    "MobileNetV1 x1": (lambda: nb.mobilenet(1, 1000), 4_231_976),
    "MobileNetV2 x1": (lambda: nb.mobilenet(2, 1000), 3_504_872),
    "MobileNetV2 x0.5": (lambda: nb.mobilenet(2, 1000, width=0.5), 1_968_680),
    "ShuffleNetV2 x0.5": (lambda: nb.shufflenet(0.5, 1000), 1_366_792),
    "ShuffleNetV2 x1": (lambda: nb.shufflenet(1.0, 1000), 2_278_604),
    "ShuffleNetV2 x1.5": (lambda: nb.shufflenet(1.5, 1000), 3_503_624),
    "ShuffleNetV2 x2": (lambda: nb.shufflenet(2.0, 1000), 7_393_996),
    "RepVGG-A0": (lambda: nb.repvgg("A0", 1000), 9_109_064),
    "RepVGG-B3": (lambda: nb.repvgg("B3", 1000), 123_085_288),
    "ViT-S": (lambda: nb.vit(224, 16, 384, 12, 6, 4.0, 1000), 22_050_664 - 2 * 384),  # no class token, none's position
    "ViT-B": (lambda: nb.vit(224, 16, 768, 12, 12, 4.0, 1000), 86_567_656 - 2 * 768),
    # plain ResNet-20: 267,696 in convolutions, times 15/9; 1,376 in normalisations, times 3; 650 in the head
    "ACNet-20": (lambda: nb.resnet(20, convolution="asymmetric"), 446_160 + 4_128 + 650),
}


@pytest.mark.parametrize("name", COUNTS)
def test_sizes_are_the_papers(name):
    make, count = COUNTS[name]
    with torch.device("meta"):
        net = make()
    assert sum(parameter.numel() for parameter in net.parameters()) == count


def test_a_folded_repvgg_has_the_papers_size():
    """Ding et al., Table 4: A0 has 8.30 M parameters; 8,309,384 of them are in plain convolutions and the head."""
    folded = nb.fold(nb.repvgg("A0", 1000))
    assert sum(parameter.numel() for parameter in folded.parameters()) == 8_309_384


def test_strides_of_the_papers_and_of_small_images():
    small = {"blocks": (1, 1, 1), "widths": (8, 8, 8, 8)}
    plain = {
        "VGG": ({stem: nb.vgg(11, width=4) for stem in ("cifar",)}, {"cifar": 1}),
        "V1": (
            {stem: nb.mobilenet(1, width=0.1, stem=stem) for stem in ("cifar", "imagenet")},
            {"cifar": 2, "imagenet": 1},
        ),
        "shuffle": (
            {stem: nb.shufflenet(stem=stem, **small) for stem in ("cifar", "imagenet")},
            {"cifar": 4, "imagenet": 1},
        ),
        "repvgg": (
            {stem: nb.repvgg(stem=stem, blocks=(1, 1, 1, 1), widths=(8, 8, 8, 8)) for stem in ("cifar", "imagenet")},
            {"cifar": 4, "imagenet": 1},
        ),
    }
    x = torch.rand(2, 3, 32, 32)
    for nets, sizes in plain.values():
        assert {stem: net.body(x).shape[-1] for stem, net in nets.items()} == sizes
    for stem, size in (("cifar", 4), ("imagenet", 1)):
        net = nb.mobilenet(width=0.1, stem=stem).eval()
        assert nb.block_states(net, x)[net.block_names[-1]].shape[-1] == size


@pytest.mark.parametrize("name", BACKBONES)
def test_a_file_gives_back_what_was_saved(name, tmp_path):
    for controller in ("constant", "asr(se, beside=eca)"):
        net = networks.lively(BACKBONES[name](controller)).eval()
        net.normalisation, net.about = {"mean": [0.5] * 3, "std": [0.2] * 3}, {"seed": 3}
        variants = [net] if name in UNFOLDABLE else [net, nb.fold(net)]
        for one in variants:
            again = nb.load(nb.save(one, tmp_path / "net.safetensors"))
            assert (type(again), again.config) == (type(net), one.config)
            assert (again.about, again.normalisation) == (net.about, net.normalisation)
            assert torch.equal(again(images(torch.float32)), one(images(torch.float32)))


@pytest.mark.parametrize("name", BACKBONES)
def test_controllers_are_swapped_and_put_back(name):
    net = networks.lively(BACKBONES[name]("asr(se)")).eval()
    x, before = images(torch.float32), copy.deepcopy(net.state_dict())
    plain = nb.swap(net, "constant")
    assert set(plain.config["controllers"]) == {"constant"}
    assert list(plain.state_dict()) == list(BACKBONES[name]().state_dict())
    other = nb.swap(plain, "eca", on=[1])
    assert other.config["controllers"][:3] == ["constant", "eca", "constant"][: len(other.config["controllers"])]
    back = nb.swap(plain, net)
    assert torch.equal(back(x), net(x))
    shared = nb.swap(net, back, share=True)
    assert torch.equal(shared(x), net(x))
    assert all(torch.equal(before[key], tensor) for key, tensor in net.state_dict().items())


def test_what_is_no_step_has_no_index_and_says_why():
    x = images(torch.float32)
    words = {"VGG": "nothing is added", "MobileNetV1": "version 2 has steps", "ShuffleNetV2": "changes the other half"}
    for name, why in words.items():
        with pytest.raises(ValueError, match=f"no residual step, so stiffness index and TNS are not defined: .*{why}"):
            nb.trace(BACKBONES[name](), x)
    with pytest.raises(ValueError, match="a gain on the state"):
        nb.trace(BACKBONES["RepVGG"]("asr(se)"), x)
    with pytest.warns(UserWarning, match=r"without sums in \['body.0.layer', 'body.2.layer'\]"):  # no arm is a shortcut
        index = nb.trace(BACKBONES["RepVGG"](), x).nsi
    assert index.shape == (2, 2)  # of three blocks and the first one, two keep their shape


def test_steps_of_a_mobilenet_by_hand():
    net = networks.lively(BACKBONES["MobileNetV2"]("se", 2)).double().eval()
    x, count = images(), 0
    states = nb.block_states(net, x)
    wanted = net.stem(x)
    for stage in net.stages:
        wanted = wanted if stage.entrance is None else stage.entrance(wanted)
        for block in stage.blocks:
            assert networks.relative_error(states[net.block_names[count]], wanted) < 1e-12
            slope = block.branch(wanted)
            wanted = wanted + block.controller(wanted, slope) * slope
            count += 1
    assert networks.relative_error(net(x), net.head(wanted)) < 1e-12
    record = nb.trace(net, x)
    assert record.nsi.shape == (2, count) == (2, 4)
    norms = [
        (net.blocks[i].branch(states[name]).flatten(1).norm(dim=1) / states[name].flatten(1).norm(dim=1))
        for i, name in enumerate(net.block_names)
    ]
    torch.testing.assert_close(torch.tensor(record.nsi), torch.stack(norms, 1), rtol=1e-10, atol=0.0)


def test_normalisations_by_hand():
    x = torch.randn(3, 12, 5, 5, dtype=torch.float64)
    kinds = {"group": (4, 3), "layer": (1, 12), "instance": (12, 1)}  # 8 and 12 have 4 as their largest common divisor
    for norm, (groups, size) in kinds.items():
        layer = networks.lively(nb.Branch(12, 12, 1, False, True, norm).bn1).double().train()
        parts = x.reshape(3, groups, size, 5, 5)
        mean, variance = parts.mean((2, 3, 4), keepdim=True), parts.var((2, 3, 4), unbiased=False, keepdim=True)
        wanted = ((parts - mean) / (variance + 1e-5).sqrt()).reshape(x.shape)
        wanted = wanted * layer.weight[:, None, None] + layer.bias[:, None, None]
        assert networks.relative_error(layer(x), wanted) < 1e-12


def test_a_uniform_gate_before_a_normalisation_changes_nothing_in_training():
    """On a VGG one number for all channels of all layers is divided out again, but for BN's epsilon."""
    torch.manual_seed(0)
    plain = nb.vgg(width=4, blocks=(1, 2)).double().train()
    half = nb.swap(plain, "constant(0.5)", on=[0, 1])
    for net in (plain, half):
        for layer in net.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.eps = 1e-30
    assert networks.relative_error(half(images()), plain(images())) < 1e-12


@pytest.mark.parametrize("name", ["ACNet", "MobileNetV2", "ShuffleNetV2", "RepVGG"])
def test_backbones_are_trained(name, tmp_path):
    torch.manual_seed(0)
    digits = data.load("digits")
    few = data.dataset(
        "few",
        {
            "train_images": digits.train_images[:64],
            "train_labels": digits.train_labels[:64],
            "test_images": digits.test_images[:32],
            "test_labels": digits.test_labels[:32],
        },
        digits.names,
    )
    recipe = train.recipe("digits", epochs=1, batch=32)
    path = tmp_path / "net.safetensors"
    net = train.train(BACKBONES[name]("asr(se)"), few, recipe, path=path, quiet=True, device="cpu")
    again = nb.load(path)
    assert again.about["controller"] == net.about["controller"] == '{"module": "se", "name": "asr"}'
    assert ("network" in again.about) is (name != "ACNet")
    assert networks.relative_error(again(images(torch.float32)), net(images(torch.float32))) < 1e-5


REFUSED = {
    "`norm` must be one of": lambda: nb.resnet(8, norm="none"),
    "it needs post_activation=True": lambda: nb.resnet(8, convolution="asymmetric", post_activation=False),
    "`convolution` must be one of": lambda: nb.resnet(8, convolution="round"),
    "iebn' gates batch normalisations": lambda: nb.resnet(8, norm="group", controller="iebn"),
    "`blocks` must have one to five stages": lambda: nb.vgg(blocks=(1,) * 6),
    "`depth` must be one of": lambda: nb.vgg(12),
    "`version` must be one of": lambda: nb.mobilenet(3),
    "`blocks` must have 7 numbers": lambda: nb.mobilenet(blocks=(1, 2)),
    "leaves no inverted residual": lambda: nb.mobilenet(blocks=(1,) * 7),
    "version 1 has none": lambda: nb.mobilenet(1, method="RK4"),
    "`width` must be a positive number": lambda: nb.mobilenet(width=0.0),
    "`width` must be one of": lambda: nb.shufflenet(0.7),
    "an even number per stage and one more": lambda: nb.shufflenet(widths=(3, 4, 4, 4)),
    "`variant` must be one of": lambda: nb.repvgg("C1"),
    "`widths` must have one entry per stage": lambda: nb.repvgg(blocks=(1, 1)),
    "`on` must name blocks 0 to 2, or 'body.0.layer'": lambda: nb.vgg(blocks=(1, 2), width=4, on=[3]),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_does_not_fit_is_told(words):
    with pytest.raises(ValueError, match=words):
        REFUSED[words]()
