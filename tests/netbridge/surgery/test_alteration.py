"""A step altered for a while: dropped it is a step of size 0, and what is removed is what was said."""

import hypothesis
import hypothesis.strategies as some
import pytest
import torch

import netbridge as nb
from netbridge.surgery.alteration import without_largest, without_smallest
from tests.netbridge import networks

SLOPES = some.tuples(some.integers(0, 2**31), some.integers(1, 4), some.integers(1, 40))


def slope_of(drawn):
    seed, images, elements = drawn
    return torch.randn(images, elements, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("make", [lambda: nb.resnet(14, controller="se"), lambda: nb.vit(16, features=24, heads=2)])
def test_a_dropped_step_is_one_of_size_zero(make):
    net, x = networks.lively(make()).eval(), torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        whole = net(x)
        for number, name in enumerate(net.block_names):
            u = net.stem(x)
            for other, block in zip(net.block_names, net.blocks, strict=True):
                if other != name:
                    u = block(u)
                elif block.opens:
                    u = block.project(block.shortcut(u))
            with nb.altered(net, number):
                found = net(x)
            torch.testing.assert_close(found, net.head(u), rtol=1e-5, atol=1e-5)
            assert not torch.allclose(found, whole)
            assert torch.equal(net(x), whole)


def test_dropping_a_step_whose_slope_is_zero_changes_nothing():
    net, x = networks.lively(nb.resnet(14)).eval(), torch.randn(2, 3, 16, 16)
    last = net.blocks[1].branch.last
    with torch.no_grad():
        last.weight.zero_()
        last.bias.zero_()
        whole = net(x)
        with nb.altered(net, net.block_names[1]):
            assert torch.equal(net(x), whole)


def test_an_error_within_leaves_the_network_whole():
    net, x = nb.resnet(8).eval(), torch.randn(1, 3, 16, 16)
    with torch.no_grad():
        whole = net(x)
        with (
            pytest.raises(TypeError, match="`net` must be a network of netbridge with steps, got Linear"),
            nb.altered(torch.nn.Linear(2, 2), 0),
        ):
            pass
        with pytest.raises(ValueError, match="`change` must keep the shape"), nb.altered(net, 0, lambda f: f[:, :1]):
            net(x)
        assert torch.equal(net(x), whole)
    for wrong in (3, "stages.9.blocks.0", None):
        with pytest.raises(ValueError, match="`block` must be a number below 3"), nb.altered(net, wrong):
            pass


@hypothesis.given(drawn=SLOPES, share=some.floats(0, 1))
def test_what_is_removed(drawn, share):
    """So many elements, the largest or the smallest; of equal norm never more than the largest hold."""
    slope = slope_of(drawn)
    count = round(share * slope.shape[1])
    for function, sign in ((without_largest, -1), (without_smallest, 1)):
        left = function(slope, share)
        removed = left != slope
        assert (removed.sum(1) == count).all()
        assert (left[removed] == 0).all()
        if 0 < count < slope.shape[1]:
            worst = torch.where(removed, sign * slope.abs(), -torch.inf).amax(1)
            assert (worst <= torch.where(removed, torch.inf, sign * slope.abs()).amin(1)).all()
    equal = slope - without_smallest(slope, share, equal_norm=True)
    large = slope - without_largest(slope, share)
    norms = equal.double().norm(dim=1), large.double().norm(dim=1)
    assert (norms[0] <= norms[1] * (1 + 1e-6)).all()
    # The last of them may be left where its share of the norm is below rounding.
    assert (((equal != 0).sum(1) >= (large != 0).sum(1)) | (norms[0] >= norms[1] * (1 - 1e-6))).all()
