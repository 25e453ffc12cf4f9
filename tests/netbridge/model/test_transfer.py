"""Networks that repaint pictures: steps of the solver, and the losses of Johnson et al. by hand."""

import pytest
import torch

import netbridge as nb
from netbridge.model.transfer import content_loss, gradient_energy, gram, maps_of, repainter, style_loss
from tests.netbridge import networks


@pytest.mark.parametrize("norm", ["instance", "batch"])
def test_steps_are_the_solvers_and_nothing_follows_the_addition(norm):
    net = networks.lively(repainter("se(reduction=2)", 4, norm=norm)).double().eval()
    x = torch.randn(3, 3, 16, 16, dtype=torch.float64)
    with torch.no_grad():
        u = net.stem(x)
        for block in net.blocks:
            slope = block.branch(u)
            u = u + block.controller(u, slope) * slope
        assert networks.relative_error(net(x), net.head(u)) < 1e-12
    assert nb.trace(net, x).nsi.shape == (3, 3)


def test_a_constant_step_size_is_merged():
    net = networks.lively(repainter("asr(se(reduction=4))", 4, norm="batch")).double().eval()
    x = torch.randn(2, 3, 16, 16, dtype=torch.float64)
    with torch.no_grad():
        assert networks.relative_error(nb.merge(net)(x), net(x)) < 1e-12
        assert networks.relative_error(nb.swap(net, "constant")(x), net(x)) > 1e-3


def test_batch_normalisation_of_one_picture_is_instance_normalisation():
    torch.manual_seed(0)
    instance, batch = repainter(width=4, norm="instance"), repainter(width=4, norm="batch")
    batch.load_state_dict(instance.state_dict(), strict=False)
    x = torch.randn(2, 3, 16, 16)
    alone = torch.cat([batch.train()(one[None]) for one in x])
    assert torch.allclose(alone, instance.train()(x), atol=1e-5)
    assert not torch.allclose(batch.train()(x), instance.train()(x), atol=1e-2)


def test_maps_of_a_network_are_its_states(images):
    net = nb.resnet(8, widths=(4, 8, 8)).eval()
    with torch.no_grad():
        found = maps_of(net, images[:2])
        assert torch.allclose(net.head(found[-1]), net(images[:2]), atol=1e-6)
    assert len(found) == 4


def test_losses_by_hand():
    """Two channels of two pixels: (1, 2) and (3, 4): products 5, 11, 25 over four numbers."""
    maps = torch.tensor([[[[1.0, 2.0]], [[3.0, 4.0]]]])
    assert torch.equal(gram(maps)[0], torch.tensor([[5.0, 11.0], [11.0, 25.0]]) / 4)
    assert float(style_loss([maps, maps], [gram(maps), 2 * gram(maps)])) == pytest.approx((0 + 0.25) / 2)
    assert float(content_loss([maps, maps + 2, maps], [maps, maps, maps])) == 4.0
    ramp = torch.arange(4.0).view(1, 1, 1, 4).expand(1, 1, 3, 4)
    assert gradient_energy(ramp) == 0.5


def test_wrong_arguments():
    with pytest.raises(ValueError, match="`norm`"):
        repainter(norm="none")
    with pytest.raises(ValueError, match="`blocks`"):
        repainter(blocks=0)
