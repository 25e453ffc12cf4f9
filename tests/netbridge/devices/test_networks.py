"""Networks and controllers compute on one device: forward, backward, in training and in evaluation mode."""

import pytest

import netbridge as nb
from netbridge.model import transfer
from tests.netbridge import networks
from tests.netbridge.backbones import BACKBONES, images
from tests.netbridge.devices.pretend_device import assert_alike_on_both

ROUNDING = 1e-10  # in float64: torch may add up in another order for tensors of a class of their own
SMALL = {"widths": (4, 4, 8)}
OURS = [name for name in nb.controllers() if nb.Spec(name).kind.__module__.startswith("netbridge.")]
CONTROLLERS = [*OURS, nb.asr("se"), nb.asr("dia", beside="eca"), nb.asr("ie", uses=2)]
NETWORKS = BACKBONES | {
    "pre-activation": lambda: nb.resnet(8, post_activation=False, **SMALL),
    "Runge-Kutta": lambda: nb.resnet(8, method="RK4", **SMALL),
    "refined": lambda: nb.resnet(14, depth_factor=2, weights="interpolated", **SMALL),
    "ODE-net": lambda: nb.resnet(8, solver="dopri5", **SMALL),
    "ImageNet's": lambda: nb.resnet(18, stem="imagenet", widths=(4, 4, 8, 8)),
    "style": lambda: transfer.repainter("se", width=4, blocks=1),
}


def passes(net, device) -> dict:
    """Outputs, gradients and statistics of a network's pass in training mode, and its outputs in evaluation mode."""
    net = networks.lively(net).double().to(device).train()
    x = images().to(device).requires_grad_()
    trained = net(x)
    trained.square().sum().backward()
    gradients = {name: parameter.grad for name, parameter in net.named_parameters()}
    assert {gradient.device for gradient in gradients.values() if gradient is not None} == {device}
    tested = net.eval()(x)
    return {"outputs": [trained, tested], "gradients": [x.grad, gradients], "state": dict(net.state_dict())}


@pytest.mark.parametrize("controller", CONTROLLERS, ids=str)
def test_a_controller(controller):
    assert_alike_on_both(
        lambda device: passes(nb.resnet(8, controller=controller, widths=(16, 16, 32)), device), ROUNDING
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network(name):
    assert_alike_on_both(lambda device: passes(NETWORKS[name](), device), ROUNDING)
