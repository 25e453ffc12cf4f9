"""What is measured of a network is measured where the network is, from images of the processor or of its device.

Measures that need `torch.func` are not here: its forward derivative of a convolution reads the memory of a tensor,
which a tensor of the pretend device does not have. These are the spectra of blocks whose step size follows the state,
implicit steps, and surveys of such blocks.
"""

import dataclasses
import numbers

import numpy as np
import pytest
import torch

import netbridge as nb
import odelab as ol
from netbridge.tracing import activation_maps
from tests.netbridge import networks
from tests.netbridge.devices.pretend_device import assert_alike_on_both
from tests.netbridge.foreign import networks as foreign

ROUNDING = 1e-9  # in float64: off the processor norms are taken by other loops
AMPLIFIED = 1e-6  # rounding, by the condition of eigenvalues and of ratios of small differences
SMALL = {"widths": (4, 4, 8)}


def plain(value):
    """Whatever a function of netbridge returns, as tensors and numbers in lists and dictionaries."""
    if isinstance(value, np.ndarray):
        if value.dtype.names:
            return {name: plain(value[name]) for name in value.dtype.names}
        return torch.from_numpy(value.copy()) if value.dtype.kind in "iufcb" else value.tolist()
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value if isinstance(value, torch.Tensor | numbers.Number) else str(value)


def ours(device, controller="se(reduction=2)", **options):
    return networks.lively(nb.resnet(8, controller=controller, **SMALL | options)).double().eval().to(device)


def pictures(count=4, size=8):
    return torch.randn(count, 3, size, size, dtype=torch.float64)


NETWORKS = {
    "ours": ours,
    "asr": lambda device: ours(device, nb.asr("se(reduction=2)")),
    "pre-activation": lambda device: ours(device, post_activation=False),
    "ViT": lambda device: nb.vit(16, 8, 4, 2, 2, controller="se(reduction=2)").double().eval().to(device),
    "torchvision's": lambda device: foreign.shaken(foreign.VisionResNet()).double().to(device),
    "timm's with SE": lambda device: foreign.shaken(foreign.TimmResNet(foreign.TimmSE)).double().to(device),
}


@pytest.mark.parametrize("images_on", ["processor", "device"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_trace(name, images_on):
    def compute(device):
        net, x = NETWORKS[name](device), pictures(size=16)
        x = x.to(device) if images_on == "device" else x
        both = nb.trace(net, x, of=("slope", "increment"), outputs=True)
        kept = nb.trace(net, x, keep=True, batch_size=2)
        return plain([both[0].nsi, both[1].nsi, both.step_sizes, both.outputs, [[run.t, run.u] for run in kept]])

    assert_alike_on_both(compute, ROUNDING)


def of_a_loss(device):
    """The indices of a pass with gradients, and the gradients of a loss with TNS in it."""
    net = networks.lively(nb.resnet(14, controller="se(reduction=2)", **SMALL)).double().to(device)
    outputs, nsi, stage = nb.nsi_with_gradients(net, pictures().to(device))
    ol.tns(nsi, stage).mean().backward()
    with nb.stiffness_term(net, 0.1):
        net(pictures().to(device)).square().mean().backward()
    return outputs, nsi, stage, [parameter.grad for parameter in net.parameters()]


MEASURES = {
    "states": lambda device: nb.block_states(ours(device), pictures()),
    "gates": lambda device: nb.gates(ours(device), pictures(), batch=2),
    "Gram matrices": lambda device: nb.state_grams(ours(device), pictures()),
    "alikeness": lambda device: nb.cka(pictures().flatten(1).to(device), pictures().flatten(1).to(device)),
    "attention": lambda device: nb.attention_values(NETWORKS["ViT"](device), pictures(size=16)),
    "a loss": of_a_loss,
    "class maps": lambda device: activation_maps.class_maps(ours(device), pictures(), batch=2),
    "maps of given classes": lambda device: activation_maps.class_maps(ours(device), pictures(), torch.arange(4)),
    "centres": lambda device: [
        measure(pictures()[:, 0].abs().to(device))
        for measure in (activation_maps.central_mass, activation_maps.centre_of_mass)
    ],
}


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure(name):
    assert_alike_on_both(lambda device: plain(MEASURES[name](device)), ROUNDING)


def operated(block, x):
    operator = nb.block_operator(block, x)
    vector = np.linspace(-1, 1, operator.shape[1])
    return [operator.matvec(vector), operator.rmatvec(vector)]


SPECTRA = {
    "spectrum": lambda block, x: [nb.block_spectrum(block, x[:1], part=part) for part in ("residual", "block")],
    "operator": lambda block, x: operated(block, x[:1]),
    "slices": lambda block, x: nb.slice_spectrum(block, x[:1]),
    "step error": lambda block, x: nb.step_error(block, x, substeps=4),
    "exact flow": lambda block, x: nb.exact_flow(block, x, substeps=4),
    "time scales": lambda block, x: nb.block_time_scales(block, x, dtype=torch.float64),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_of_a_block(name):
    def compute(device):
        states = torch.rand(3, 4, 6, 6, dtype=torch.float64).to(device)
        return plain(SPECTRA[name](ours(device, "constant").blocks[0], states))

    assert_alike_on_both(compute, AMPLIFIED)


def test_a_bound_on_perturbations():
    def compute(device):
        found = nb.perturbation_bound(ours(device, nb.asr("ie")), pictures(), search=2)
        return plain([found.bound, found.measured])

    assert_alike_on_both(compute, AMPLIFIED)
