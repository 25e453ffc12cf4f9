"""Class activation maps: Grad-CAM in closed form, and where a map has its mass."""

import pytest
import torch

import netbridge as nb
from netbridge.tracing.activation_maps import central_mass, centre_of_mass, class_maps
from tests.netbridge import networks


@pytest.mark.parametrize("controller", ["constant", "se"])
def test_the_closed_form_is_grad_cam_by_differentiation(controller):
    """Selvaraju et al.: weights are gradients averaged over the map, the map is the ReLU of the weighted sum."""
    torch.manual_seed(0)
    net = networks.lively(nb.resnet(14, widths=(4, 8, 8), controller=controller)).double().eval()
    images, classes = torch.randn(5, 3, 16, 16, dtype=torch.float64), torch.tensor([3, 0, 9, 3, 1])
    seen = []
    handle = net.head.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    logits = net(images)
    handle.remove()
    gradient = torch.autograd.grad(logits[torch.arange(5), classes].sum(), seen[-1])[0]
    wanted = torch.relu((gradient.mean((2, 3), keepdim=True) * seen[-1]).sum(1)).detach()
    assert networks.relative_error(class_maps(net, images, classes, batch=2), wanted) < 1e-12
    answered = class_maps(net, images)
    assert networks.relative_error(answered, class_maps(net, images, logits.argmax(1))) < 1e-12


def test_masses_by_hand():
    corner, middle = torch.zeros(2, 8, 8)
    corner[0, 0] = 2.0
    middle[2:6, 2:6] = 1.0
    maps = torch.stack((corner, middle, corner + torch.ones(8, 8)))
    assert central_mass(maps) == pytest.approx([0.0, 1.0, 16 / 66])
    assert centre_of_mass(maps)[:2].tolist() == [[0.0, 0.0], [3.5, 3.5]]
    assert not central_mass(torch.zeros(1, 8, 8)).isfinite()
    assert centre_of_mass(middle.roll(2, 1)[None]).tolist() == [[3.5, 5.5]]


def test_another_head_is_refused():
    with pytest.raises(ValueError, match="an average over the map and a linear layer"):
        class_maps(nb.resnet(8, post_activation=False), torch.randn(2, 3, 16, 16))
