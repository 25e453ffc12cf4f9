"""The pretend device computes what the processor does, and refuses what a GPU refuses."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.netbridge.devices.pretend_device import DEVICE, assert_alike_on_both, pretend_device


@pytest.fixture
def within():
    """The device can be used within the test."""
    with pretend_device() as device:
        assert device == DEVICE
        yield


def there(*shape):
    return torch.ones(shape, device=DEVICE)


def here(*shape):
    return torch.ones(shape)


MIXTURES = {
    "sum": lambda: there(3) + here(3),
    "sum with a single number of the device": lambda: here(3) + there(),
    "product in place": lambda: there(3).mul_(here(3)),
    "matrix product": lambda: there(3, 3) @ here(3, 3),
    "where": lambda: torch.where(there(3) > 0, here(3), there(3)),
    "masked_fill": lambda: there(3).masked_fill(here(3) > 0, 0.0),
    "join": lambda: torch.cat([there(3), here(3)]),
    "join of single numbers": lambda: torch.stack([there(), here()]),
    "gather": lambda: there(3).gather(0, here(3).long()),
    "index of the device into the processor's": lambda: here(3)[there(1).long()],
    "mask of the device into the processor's": lambda: here(3)[there(3) > 0],
    "values put in": lambda: there(3).index_put_((there(2).long(),), here(2)),
    "convolution": lambda: F.conv2d(there(1, 1, 3, 3), here(1, 1, 3, 3)),
    "layer": lambda: nn.Linear(3, 3)(there(1, 3)),
    "statistics": lambda: F.batch_norm(there(2, 3), here(3), here(3)),
    "loss": lambda: F.cross_entropy(there(2, 3), here(2).long()),
    "list of tensors": lambda: torch._foreach_add_([there(3)], [here(3)]),
    "comparison": lambda: torch.equal(there(3), here(3)),
    "generator": lambda: torch.randn(3, device=DEVICE, generator=torch.Generator()),
}


@pytest.mark.usefixtures("within")
@pytest.mark.parametrize("mixture", MIXTURES)
def test_tensors_of_two_devices_do_not_mix(mixture):
    with pytest.raises(RuntimeError, match=r"mixes tensors of lazy|a generator of the processor"):
        MIXTURES[mixture]()


@pytest.mark.usefixtures("within")
@pytest.mark.parametrize("convert", [lambda x: x.numpy(), np.asarray])
def test_an_array_is_made_of_a_copy_only(convert):
    with pytest.raises(TypeError, match="copy it to the processor first"):
        convert(there(3))
    assert convert(there(3).cpu()).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.usefixtures("within")
def test_what_a_gpu_allows_is_allowed():
    assert (there(3) * torch.tensor(2.0)).tolist() == [2.0, 2.0, 2.0]
    assert there(3)[here(2).long()].tolist() == [1.0, 1.0]
    assert there(3).copy_(here(3)).device == here(3).copy_(there(3)).to(DEVICE).device == DEVICE
    assert here(3).to(there(3)).device == there(3).new_tensor([1.0]).device == DEVICE
    assert torch.as_tensor([1.0], device="lazy").device == torch.tensor(1.0, device=DEVICE).device == DEVICE
    assert float(there(3).sum()) == 3.0
    assert bool((there(3) > 0).all())
    assert torch.zeros_like(there(3)).device == torch.arange(3, device=DEVICE).device == DEVICE
    assert torch.arange(3).device == there(3).cpu().device == torch.device("cpu")


@pytest.mark.usefixtures("within")
def test_a_layer_and_an_optimiser_move_there():
    layer = nn.Linear(3, 2).to(DEVICE)
    twin = copy.deepcopy(layer)
    assert {x.device for x in (*layer.parameters(), *twin.parameters())} == {DEVICE}
    optimiser = torch.optim.AdamW(layer.parameters())
    layer(there(4, 3)).sum().backward()
    optimiser.step()
    assert not torch.equal(layer.weight, twin.weight)
    twin.load_state_dict({name: x.cpu() for name, x in layer.state_dict().items()})
    assert torch.equal(layer.weight, twin.weight)


def test_without_the_context_the_device_is_not_there():
    with pytest.raises(NotImplementedError, match="'Lazy' backend"):
        torch.zeros(3, device=DEVICE)


class TestComparison:
    """In the tests of this room, `assert_alike_on_both` finds what runs on one device only or differs between them."""

    def test_values_and_gradients_are_the_same_bits(self):
        def compute(device):
            x = torch.linspace(-1, 1, 12).view(3, 4).to(device).requires_grad_()
            y = (torch.tanh(x @ x.T)[:, :2].cumsum(0) * torch.arange(2, device=device)).sum()
            y.backward()
            return y, x.grad

        assert_alike_on_both(compute)

    def test_another_value_is_found(self):
        with pytest.raises(AssertionError, match=r"not equal|not close"):
            assert_alike_on_both(lambda device: torch.ones(3) * (1 + 1e-7 * (device.type != "cpu")))
