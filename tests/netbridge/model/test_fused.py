"""Sums formed by the last convolution: the same numbers, and only where nobody can tell."""

import pytest
import torch

import netbridge as nb
from netbridge.model import fused
from odelab import core
from tests.netbridge import networks

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")


@pytest.fixture
def sums(monkeypatch):
    """Counts the sums that convolutions have formed."""
    count, genuine = [], fused.Pending.added_to
    monkeypatch.setattr(fused.Pending, "added_to", lambda self, u: (count.append(u), genuine(self, u))[1])
    return count


def folded(**arguments):
    return nb.fold(networks.lively(nb.resnet(**{"depth": 20, "widths": (8, 16, 16), **arguments})))


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(
    "arguments",
    [{}, {"shortcut": "B"}, {"bottleneck": True}, {"post_activation": False}, {"depth": 18, "widths": (8, 8, 8, 8)}],
    ids=str,
)
def test_the_same_numbers(arguments, layout, sums):
    net = folded(**arguments).to(memory_format=layout)
    images = torch.randn(3, 3, 33, 33).to(memory_format=layout)
    kept = images.clone()
    wanted = net(images).detach()
    assert sums == []
    with torch.inference_mode():
        got = net(images)
    not_its_own = 0 if net.blocks[0].opens else 1  # the stem's result may have been kept by somebody
    assert len(sums) == len(net.blocks) - not_its_own
    assert networks.relative_error(got, wanted) < 1e-6
    assert torch.equal(images, kept)


def test_states_of_others_are_left_alone(sums):
    net = folded()
    for part, channels in ((net.stages[0], 8), (net.blocks[1], 8), (net.stages[1], 8), (net.blocks[3], 8)):
        x = torch.rand(2, channels, 8, 8)
        kept = x.clone()
        with torch.no_grad():
            assert torch.equal(part(x), part(x))
        assert torch.equal(x, kept)
    assert sums


def watched(net, images):
    with net.observed(lambda carry, *step: None):
        net(images)


def hooked(net, images):
    for layer in (net.blocks[1].branch.conv2, net.blocks[2].branch, net.blocks[4].branch.conv1):
        layer.register_forward_hook(lambda *seen: None)
    net(images)


def transformed(net, images):
    torch.func.vmap(lambda image: net(image[None]))(images)


def dual(net, images):
    _, tangent = torch.func.jvp(net, (images,), (torch.ones_like(images),))
    assert tangent.abs().sum() > 0


def half(net, images):
    with torch.autocast("cpu", torch.bfloat16):
        net(images)


ELSEWHERE = {
    "observed": (watched, {}, 0),
    "hooks": (hooked, {}, 5),
    "vmap": (transformed, {}, 0),
    "forward mode": (dual, {}, 0),
    "autocast": (half, {}, 0),
    "double": (lambda net, images: net.double()(images.double()), {}, 0),
    "RK4": (lambda net, images: net(images), {"method": "RK4"}, 2),  # the blocks that open a stage
    "a refined grid": (lambda net, images: net(images), {"depth_factor": 2}, 2),
    "live gates": (lambda net, images: net(images), {"controller": "se"}, 0),
    "gates on some blocks": (lambda net, images: net(images), {"controller": "se", "on": [1, 5]}, 6),
}


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # torch.func itself
@pytest.mark.parametrize("case", ELSEWHERE)
def test_elsewhere_sums_are_formed_as_usual(case, sums, images):
    act, arguments, expected = ELSEWHERE[case]
    net = folded(**arguments)
    with torch.no_grad():
        act(net, images)
    assert len(sums) == expected


class Doubled(torch.nn.Conv2d):
    def forward(self, x):
        return 2.0 * super().forward(x)


UNUSUAL = {
    "circular": lambda conv: setattr(conv, "padding_mode", "circular"),
    "same": lambda conv: setattr(conv, "padding", "same"),
    "a class of its own": lambda conv: setattr(conv, "__class__", Doubled),
}


@pytest.mark.parametrize("place", ["conv1", "conv2"])
@pytest.mark.parametrize("kind", UNUSUAL)
def test_a_branch_with_an_unusual_convolution_is_called(kind, place, sums, images):
    net = folded()
    with torch.no_grad():
        usual = net(images)
        sums.clear()
        UNUSUAL[kind](getattr(net.blocks[4].branch, place))
        got = net(images)
    wanted = net(images).detach()
    assert kind == "same" or networks.relative_error(usual, wanted) > 1e-3
    assert networks.relative_error(got, wanted) < 1e-6
    assert len(sums) == len(net.blocks) - 2  # the first block's state is not the run's own


@pytest.mark.parametrize("place", ["conv1", "conv2"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_mixed_precisions_are_refused_in_torchs_words(dtype, place, images):
    net = folded()
    getattr(net.blocks[4].branch, place).to(dtype)
    with pytest.raises(RuntimeError, match="should be the same") as wanted:
        net(images)
    with torch.no_grad(), pytest.raises(RuntimeError) as refused:
        net(images)
    assert str(refused.value) == str(wanted.value)


def test_another_integrate_sees_plain_tensors(sums, images, monkeypatch):
    net, kinds = folded(), set()
    genuine = core.integrate

    def curious(step, *rest):
        def watching(combine, rhs, params, t, u, slope, dt, h, tableau):
            kinds.update((type(u), type(slope), type(h)))
            return step(combine, rhs, params, t, u, slope, dt, h, tableau)

        return genuine(watching, *rest)

    with torch.no_grad():
        wanted = net(images)
        counted = len(sums)
        monkeypatch.setattr(core, "integrate", curious)
        assert networks.relative_error(net(images), wanted) < 1e-6
    assert kinds == {torch.Tensor, float}
    assert len(sums) == counted


def test_a_pending_slope_is_a_tensor_to_everything_else():
    conv = torch.nn.Conv2d(2, 2, 1)
    x = torch.randn(1, 2, 3, 3)
    pending = fused.Pending(conv, x, rectify=True)
    with torch.no_grad():
        assert torch.equal(torch.mul(pending, 2.0), 2.0 * conv(x))
        assert torch.equal(torch.add(torch.ones(1), pending), 1.0 + conv(x))


def test_a_sum_is_rectified_where_that_comes_next():
    conv = torch.nn.Conv2d(2, 2, 1)
    x, u = torch.randn(2, 1, 2, 5, 5)
    with torch.inference_mode():
        wanted = u + conv(x)
        assert wanted.min() < 0.0 < wanted.max()
        torch.testing.assert_close(u.clone() + fused.Pending(conv, x, rectify=False), wanted)
        found = u.clone() + fused.Pending(conv, x, rectify=True)
        with pytest.raises(TypeError, match="can only be projected, not given to add"):
            torch.add(found, 1.0)
        torch.testing.assert_close(torch.relu_(found), torch.relu(wanted))
        torch.testing.assert_close(fused.rectified(conv, x), torch.relu(conv(x)))
