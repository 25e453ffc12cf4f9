"""Networks that are made of networks stay where those are: swapped, merged, folded, inserted into, noisy, saved."""

import pytest
import torch
from torch import nn

import netbridge as nb
from tests.netbridge import networks
from tests.netbridge.backbones import BACKBONES, UNFOLDABLE, images
from tests.netbridge.devices.pretend_device import assert_alike_on_both
from tests.netbridge.surgery.test_insert import NETWORKS as FOREIGN

ROUNDING = 1e-10  # in float64: torch may add up in another order for tensors of a class of their own


def passes(net, device, x=None) -> dict:
    """What a network computes in both modes, which must all be on the device, and what it holds."""
    assert {tensor.device for tensor in net.state_dict().values()} == {device}
    x = (images() if x is None else x).to(device)
    return {"outputs": [net.train()(x), net.eval()(x)], "state": dict(net.state_dict())}


def backbone(name, controller, device):
    return networks.lively(BACKBONES[name](controller)).double().to(device)


@pytest.mark.parametrize("name", BACKBONES)
def test_merge_and_fold(name):
    def compute(device):
        merged = nb.merge(backbone(name, nb.asr("se(reduction=2)"), device))
        return [passes(net, device) for net in ([merged] if name in UNFOLDABLE else [merged, nb.fold(merged)])]

    assert_alike_on_both(compute, ROUNDING)


GATES = [nb.asr(None, init=0.7, spread=0.3), nb.asr("dia", beside="eca"), "bias(init=0.3)", "constant(0.5)"]


@pytest.mark.parametrize("gate", GATES, ids=str)
def test_merge_other_step_sizes(gate):
    assert_alike_on_both(lambda device: passes(nb.merge(backbone("ResNet", gate, device)), device), ROUNDING)


@pytest.mark.parametrize("name", ["ResNet", "ViT", "RepVGG"])
def test_swap(name):
    def compute(device):
        net = backbone(name, "se(reduction=2)", device)
        swapped = [nb.swap(net, "eca"), nb.swap(net, nb.asr("ie"), on=[0]), nb.swap(net, "constant", share=True)]
        return [passes(one, device) for one in (*swapped, nb.swap(swapped[0], net))]

    assert_alike_on_both(compute, ROUNDING)


def test_controllers_move_from_one_device_to_another():
    """Those of a network of the processor are put into one of the device, where they then live."""

    def compute(device):
        net, giver = backbone("ResNet", "constant", device), backbone("ResNet", nb.asr("se(reduction=2)"), "cpu")
        return passes(nb.swap(net, giver), device)

    assert_alike_on_both(compute, ROUNDING)


@pytest.mark.parametrize("at_test", [False, True])
def test_noise(at_test):
    def compute(device):
        net = nb.add_noise(backbone("ResNet", "se(reduction=2)", device), 0.8, 0.8, 0.3, at_test)
        return passes(net, device)

    assert_alike_on_both(compute, ROUNDING)


def test_a_step_that_is_altered():
    def compute(device):
        net, x = backbone("ResNet", "constant", device).eval(), images().to(device)
        outputs = []
        for change in (None, nb.surgery.alteration.without_largest, nb.surgery.alteration.without_smallest):
            with nb.altered(net, 1, change):
                outputs.append(net(x))
        return outputs

    assert_alike_on_both(compute, ROUNDING)


ALIKE = ("bottlenecks", "timm's", "EfficientNet's", "MobileNet-V3's", "inverted residuals", "torch's encoder")


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow) if case in ALIKE else case for case in FOREIGN]
)
def test_insert_and_merge(case):
    make, shape, _ = FOREIGN[case]
    is_sum = case == "RepVGG's"  # behind which only a constant can stand

    def compute(device):
        net, x = networks.lively(make()).double().to(device), torch.randn(shape, dtype=torch.float64)
        gated = nb.insert(net, nb.asr("ie", beside=None if is_sum else "se(reduction=2)"), x)
        return [passes(gated, device, x), passes(nb.merge(gated), device, x)]

    assert_alike_on_both(compute, ROUNDING)


NORMS = {
    "batch": lambda: nn.BatchNorm2d(4, affine=False, track_running_stats=False),
    "group": lambda: nn.GroupNorm(2, 4, affine=False),
    "instance": lambda: nn.InstanceNorm2d(4),
    "layer": lambda: nn.LayerNorm((4, 5, 5), elementwise_affine=False),
}


class Normalised(nn.Module):
    """A residual step whose branch ends in a normalisation."""

    def __init__(self, norm):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 4, 3, padding=1), norm

    def forward(self, x):
        return x + self.norm(self.conv(x))


@pytest.mark.parametrize("controller", ["constant(0.5)", nb.asr("ie")], ids=str)
@pytest.mark.parametrize("norm", NORMS)
def test_a_normalisation_without_tensors_gets_its_scale_where_the_network_is(norm, controller):
    def compute(device):
        net, x = nn.Sequential(Normalised(NORMS[norm]())).double().to(device), torch.rand(3, 4, 5, 5).double()
        return passes(nb.merge(nb.insert(net, controller, x)), device, x)

    assert_alike_on_both(compute, ROUNDING)


@pytest.mark.parametrize("case", ["torchvision's", "timm's with SE", "written by hand"])
def test_fold(case):
    """Without images: those on which the network is watched are made up, on its device."""
    make, shape, _ = FOREIGN[case]

    def compute(device):
        net, x = networks.lively(make()).double().to(device), torch.randn(shape, dtype=torch.float64)
        return [passes(folded, device, x) for folded in (nb.fold(net), nb.fold(net, x))]

    assert_alike_on_both(compute, ROUNDING)


LAYERS = {
    "BatchNorm": (lambda: nn.BatchNorm2d(4), (2, 4, 3, 3)),
    "BatchNorm without scale": (lambda: nn.BatchNorm2d(4, affine=False), (2, 4, 3, 3)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3, 3)),
    "LayerNorm": (lambda: nn.LayerNorm(4), (2, 3, 4)),
    "convolution": (lambda: nn.Conv2d(3, 4, 3), (2, 3, 5, 5)),
    "transposed convolution": (lambda: nn.ConvTranspose2d(2, 4, 3, groups=2), (2, 2, 5, 5)),
    "linear": (lambda: nn.Linear(3, 4), (2, 3)),
    "attention": (lambda: nb.SelfAttention(4, heads=2), (2, 3, 4)),
    "sequence": (lambda: nn.Sequential(nn.Linear(3, 4), nn.Dropout()), (2, 3)),
    "sum": (lambda: nb.Sum(nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, 1)), (2, 3, 5, 5)),
}
SIZES = {
    "a number": lambda device: 0.5,
    "of the device": lambda device: torch.linspace(0.5, 2, 4, device=device),
    "of the processor": lambda device: torch.linspace(0.5, 2, 4),
}


class TestAbsorb:
    """A step size may be a number or a tensor of either device; the layer stays where it is."""

    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.parametrize("layer", LAYERS)
    def test_a_layer(self, layer, size):
        make, shape = LAYERS[layer]

        def compute(device):
            changed = make().to(device).eval()
            nb.absorb(changed, SIZES[size](device))
            return changed(torch.randn(shape).to(device)), dict(changed.state_dict())

        assert_alike_on_both(compute, rtol=1e-6)

    def test_a_class_of_ones_own_is_tried_on_the_processor(self):
        class Twice(nn.Linear):
            def forward(self, x):
                return 2 * super().forward(x)

        def compute(device):
            layer = Twice(3, 4).to(device)
            nb.absorb(layer, torch.linspace(0.5, 2, 4, device=device))
            return layer(torch.ones(1, 3, device=device))

        assert_alike_on_both(compute, rtol=1e-6)


def test_a_network_is_saved_and_loaded(tmp_path):
    def compute(device):
        net = backbone("ResNet", "se(reduction=2)", device)
        path = nb.save(net, tmp_path / f"{device.type}.safetensors")
        return passes(nb.load(path).to(device), device)

    assert_alike_on_both(compute, ROUNDING)
