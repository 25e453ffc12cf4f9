"""Residual networks: sizes, a constant step of 1 is the plain ResNet, devices and layouts, wrong arguments."""

import hypothesis
import hypothesis.strategies as some
import pytest
import torch

import netbridge as nb
from studies import table as tables
from tests.netbridge import networks

SMALL = {"depth": 14, "widths": (4, 8, 8)}

EXACT = {"constant": 1_704_154, "sge": 1_711_066, "stepnet": 1_749_850}


def parameters(net):
    return sum(parameter.numel() for parameter in net.parameters())


@pytest.fixture
def on_meta():
    with torch.device("meta"):
        yield


@pytest.mark.parametrize("controller", tables.PARAMETERS)
def test_parameter_counts_are_the_papers(controller, on_meta):
    for classes, millions in zip((10, 100), tables.PARAMETERS[controller], strict=True):
        assert parameters(nb.resnet(164, classes, controller)) / 1e6 == pytest.approx(millions, abs=0.01)


def test_parameter_counts_to_the_last(on_meta):
    assert {name: parameters(nb.resnet(164, controller=name)) for name in EXACT} == EXACT
    assert parameters(nb.resnet(164, 100)) == 1_727_284
    # torchvision's counts for the same ImageNet networks, and the 0.27 M of He et al. for ResNet-20
    torchvision = {18: 11_689_512, 34: 21_797_672, 50: 25_557_032, 101: 44_549_160}
    assert {depth: parameters(nb.resnet(depth, 1000)) for depth in torchvision} == torchvision
    assert parameters(nb.resnet(20)) == 269_722


@pytest.mark.parametrize(
    ("depth", "bottleneck", "blocks"),
    [
        (20, False, 9),
        (32, False, 15),
        (44, False, 21),
        (56, False, 27),
        (110, False, 54),
        (14, False, 6),
        (29, True, 9),
        (83, True, 27),
        (164, True, 54),
    ],
)
def test_depth_decides_the_blocks(depth, bottleneck, blocks, on_meta):
    net = nb.resnet(depth)
    assert net.config["bottleneck"] is bottleneck
    assert len(net.blocks) == blocks == len(net.block_names)
    assert len([m for m in net.modules() if isinstance(m, torch.nn.Conv2d) and m.kernel_size != (1, 1)]) == (
        blocks + 1 if bottleneck else depth - 1
    )
    layers_per_block = 3 if bottleneck else 2
    assert 2 + layers_per_block * len(net.blocks) == depth


@hypothesis.settings(deadline=None, max_examples=15)
@hypothesis.given(
    n=some.integers(1, 2),
    bottleneck=some.booleans(),
    shortcut=some.sampled_from("AB"),
    widths=some.sampled_from([(4, 8, 8), (3, 4, 7)]),
    training=some.booleans(),
    channels_last=some.booleans(),
    gradients=some.booleans(),
)
def test_a_constant_step_of_one_is_the_plain_resnet(
    n, bottleneck, shortcut, widths, training, channels_last, gradients
):
    depth = (9 if bottleneck else 6) * n + 2
    net = nb.resnet(depth, bottleneck=bottleneck, shortcut=shortcut, widths=widths, family="cifar")
    networks.lively(net).train(training)
    plain = networks.plain_twin(net)
    x = torch.randn(2, 3, 16, 16)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    net, plain, x = net.to(memory_format=layout), plain.to(memory_format=layout), x.to(memory_format=layout)
    with torch.set_grad_enabled(gradients):
        ours, theirs = net(x), plain(x)
    assert torch.equal(ours, theirs)
    assert torch.equal(net.stem.bn.running_mean, plain.norm.running_mean)
    if gradients:
        ours.square().sum().backward()
        theirs.square().sum().backward()
        assert torch.equal(net.stem.conv.weight.grad, plain.conv.weight.grad)


@pytest.mark.parametrize("controller", [*nb.controllers(), nb.asr("se"), nb.asr("dia", beside="eca")], ids=str)
def test_meta_and_cpu_agree(controller):
    with torch.device("meta"):
        hollow = nb.resnet(20, controller=controller, widths=(16, 16, 32))
        shape = hollow.eval()(torch.empty(2, 3, 32, 32)).shape
    net = nb.resnet(20, controller=controller, widths=(16, 16, 32))
    described = {name: (tensor.shape, tensor.dtype) for name, tensor in net.state_dict().items()}
    assert described == {name: (tensor.shape, tensor.dtype) for name, tensor in hollow.state_dict().items()}
    assert shape == (2, 10)
    assert all(tensor.is_meta for tensor in hollow.state_dict().values())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_gpu_agrees(images):
    net = networks.lively(nb.resnet(20, controller="se")).eval()
    assert networks.relative_error(net.cuda()(images.cuda()).cpu(), net.cpu()(images)) < 1e-3


@pytest.mark.parametrize("controller", ["constant", "se", "stepnet", "cbam"])
def test_channels_last_survives(controller, images):
    net = nb.resnet(20, controller=controller).eval().to(memory_format=torch.channels_last)
    layouts = []
    with torch.no_grad(), net.observed(lambda c, m, t, dt, h, u, s, f, new: layouts.append((f, new))):
        net(images.to(memory_format=torch.channels_last))
    assert all(map_.is_contiguous(memory_format=torch.channels_last) for pair in layouts for map_ in pair)


@pytest.mark.parametrize("controller", ["constant", "se", "stepnet", nb.asr("srm")], ids=str)
def test_autocast(controller, images):
    net = networks.lively(nb.resnet(**{**SMALL, "widths": (16, 16, 16)}, controller=controller)).eval()
    with torch.no_grad():
        wanted = net(images)
        with torch.autocast("cpu", torch.bfloat16):
            low = net(images)
    assert low.dtype == torch.bfloat16
    assert networks.relative_error(low.float(), wanted) < 0.1


@pytest.mark.parametrize("controller", ["constant", "se", "dia"])
def test_compiles_without_a_break(controller, images):
    net = networks.lively(nb.resnet(depth=8, widths=(4, 4, 4), controller=controller)).eval()
    with torch.no_grad():
        assert torch.allclose(torch.compile(net, backend="eager", fullgraph=True)(images), net(images), atol=1e-6)


def test_inputs_are_left_alone(images):
    net = networks.lively(nb.resnet(**SMALL, post_activation=False)).eval()
    kept = images.clone()
    x = torch.randn(2, 4, 8, 8)
    before = x.clone()
    with torch.no_grad():
        net(images)
        net.blocks[0](x)
        net.stages[0](x)
    assert torch.equal(images, kept)
    assert torch.equal(x, before)


def test_imagenet_networks_and_the_cifar_stem():
    net = nb.resnet(18, num_classes=3, widths=(4, 8, 8, 8), stem="cifar").eval()
    assert net(torch.randn(1, 3, 32, 32)).shape == (1, 3)
    assert net.stem(torch.randn(1, 3, 32, 32)).shape == (1, 4, 32, 32)
    net = nb.resnet(50, widths=(4, 4, 4, 4))
    assert net.stem(torch.randn(1, 3, 64, 64)).shape == (1, 4, 16, 16)
    assert len(net.blocks) == 16
    assert len(nb.resnet(50, family="cifar", widths=(4, 4, 4)).blocks) == 24
    assert len(nb.resnet(50, bottleneck=False, widths=(4, 4, 4)).blocks) == 24


def test_normalise(images):
    net, images = nb.resnet(**SMALL), images.sigmoid()
    assert net.normalise(images) is images
    net.normalisation = {"mean": [0.5, 0.0, 0.0], "std": [0.5, 1.0, 2.0]}
    wanted = torch.stack(((images[:, 0] - 0.5) / 0.5, images[:, 1], images[:, 2] / 2.0), dim=1)
    assert torch.allclose(net.normalise(images), wanted)
    assert net.normalise(images[:0]).shape == images[:0].shape


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float32])
def test_bytes_are_not_normalised(dtype, normalised):
    """Of bytes as they are the mean is 0 in whole numbers, and the deviation by which they would be divided, too."""
    net = nb.resnet(8)
    net.normalisation = {"mean": [0.5] * 3, "std": [0.25] * 3} if normalised else None
    with pytest.raises(ValueError, match=r"`images` must be numbers in \[0, 1\], got torch.* up to 255; .*/ 255"):
        net.normalise(torch.full((2, 3, 4, 4), 255).to(dtype))
    if not dtype.is_floating_point:  # of a black image, too
        with pytest.raises(ValueError, match=r"`images` must be numbers in \[0, 1\]"):
            net.normalise(torch.zeros(2, 3, 4, 4, dtype=dtype))


def test_channels_behind_and_arrays_are_not_normalised():
    net = nb.resnet(8)
    net.normalisation = {"mean": [0.5] * 3, "std": [0.25] * 3}
    with pytest.raises(ValueError, match=r"got shape \(2, 4, 4, 3\). Channels are axis 1"):
        net.normalise(torch.zeros(2, 4, 4, 3))
    with pytest.raises(TypeError, match="`images` must be a tensor, got ndarray"):
        net.normalise(torch.zeros(2, 3, 4, 4).numpy())


def test_a_notebook_shows_one_line_of_a_network_and_print_its_layers():
    class Printer:
        def text(self, words):
            self.words = words

    for net, words in (
        (nb.resnet(8, controller="se"), "Network(resnet of 3 se blocks, "),
        (nb.vgg(), "Plain(vgg of 13 constant blocks, "),
        (nb.pretrained("digits/resnet32-width4-se-seed0"), " parameters, test accuracy 9"),
    ):
        printer = Printer()
        net._repr_pretty_(printer, False)
        assert words in printer.words
        assert printer.words.count("\n") == 0 < str(net).count("\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"depth": 21}, r"`depth` must be 6n\+2 .* got 21"),
        ({"depth": 2}, "`depth`"),
        ({"depth": 20.0}, "`depth` must be a positive integer, got 20.0"),
        ({"depth": 21, "bottleneck": True}, r"9n\+2"),
        ({"depth": 20, "family": "imagenet"}, r"ImageNet's \[18, 34"),
        ({"controller": "sE"}, r"`controller` must be one of \['constant', 'se'.* got 'sE'"),
        ({"controller": 3}, "`controller` must be one of"),
        ({"num_classes": 0}, "`num_classes` must be a positive integer, got 0"),
        ({"method": "RK5"}, "`method` must be one of .*RK4.*got 'RK5'"),
        ({"weights": "mixed"}, "`weights` must be one of"),
        ({"stem": "small"}, "`stem` must be one of"),
        ({"shortcut": "C"}, "`shortcut` must be one of"),
        ({"shortcut": "A", "widths": (8, 4, 4)}, '`shortcut` = "A" cannot go from 8 to 4'),
        ({"widths": (4, 4)}, "`widths` must have one entry per stage, 3"),
        ({"depth_factor": 0}, "`depth_factor`"),
        ({"solver": "dopri6"}, "`solver` must be one of .*dopri5"),
        ({"solver": "dopri5", "method": "RK4"}, "leave `method`"),
        ({"solver": "dopri5", "controller": "dia"}, "remembers from block to block"),
        ({"on": [9], "controller": "se"}, "`on` must name blocks 0 to 8.* got 9"),
        ({"on": ["stages.0.blocks.7"], "controller": "se"}, "`on` must name blocks"),
        ({"post_activation": "yes"}, "`post_activation`"),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        nb.resnet(**{"depth": 20, **arguments})


def test_other_wrong_arguments():
    with pytest.raises(TypeError, match="`method` must be an odelab Method"):
        nb.resnet(method=4)
    with pytest.raises(ValueError, match=r"`x` must be images \(N, 3, height, width\), got shape \(2, 1, 32, 32\)"):
        nb.resnet(20)(torch.randn(2, 1, 32, 32))
    with pytest.raises(ValueError, match=r"got shape \(2, 32, 32, 3\)\. Channels are axis 1: x\.permute\(0, 3, 1, 2\)"):
        nb.resnet(20)(torch.randn(2, 32, 32, 3))


@pytest.mark.filterwarnings("ignore:.*torch.jit.*is deprecated:DeprecationWarning")
@pytest.mark.parametrize("make", [nb.resnet, nb.vgg, lambda: torch.nn.Sequential(nb.resnet(8))])
def test_torchscript_is_refused_in_words(make):
    with pytest.raises(
        TypeError, match=r"takes its steps in Python.*torch\.export\.export, torch\.compile and torch\.jit\."
    ):
        torch.jit.script(make())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit.*is deprecated:DeprecationWarning")
@pytest.mark.parametrize("controller", ["constant", "se", "stepnet", "asr(se)", "eca", "dia"])
def test_torch_makes_programs_of_it(controller):
    """torch.jit.trace runs a network again without gradients, where sums were written in place: it gave up."""
    net, x = nb.resnet(8, controller=controller, widths=(4, 4, 4)).eval(), torch.rand(3, 3, 16, 16)
    for program in (torch.jit.trace(net, x), torch.export.export(net, (x,)).module()):
        torch.testing.assert_close(program(x), net(x))
