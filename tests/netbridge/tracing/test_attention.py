"""Attention as a step size, Eqs. 32 and 33 of the first paper, on whole networks."""

import numpy as np
import pytest
import torch

import netbridge as nb
from netbridge.model.vit import tokens_of
from tests.netbridge import networks


@pytest.fixture(scope="module", params=[torch.float32, torch.float64], ids=str)
def measured(request):
    torch.manual_seed(0)
    net = networks.lively(nb.vit(16, features=24, depth=2, heads=2)).to(request.param).eval()
    with torch.no_grad():
        for block in net.blocks[::2]:
            block.branch.qkv.weight.mul_(20)  # or the attention would be uniform
    x = torch.randn(6, 3, 16, 16, dtype=request.param)
    return net, x, nb.attention_values(net, x)


def test_rows_diagonal_and_largest_are_those_of_the_softmax(measured):
    net, x, steps = measured
    states = nb.block_states(net, x)
    assert [step.name for step in steps] == net.block_names[::2]
    for step in steps:
        branch = net.get_submodule(step.name).branch
        with torch.no_grad():
            q, k, _ = branch.qkv(branch.norm(tokens_of(states[step.name]))).double().chunk(3, -1)
        heads = [torch.softmax(q[..., s] @ k[..., s].mT / 12**0.5, -1) for s in (slice(0, 12), slice(12, 24))]
        weights = torch.stack(heads, 1).numpy()
        np.testing.assert_allclose(step.diagonal, weights.diagonal(axis1=2, axis2=3).mean((1, 2)), rtol=1e-4)
        np.testing.assert_allclose(step.largest, weights.max(-1).mean((1, 2)), rtol=1e-4)
        assert step.row_sums == pytest.approx((1.0, 1.0), abs=1e-5)
        assert np.ptp(weights) > 0.3
        np.testing.assert_allclose(step.mean, weights.mean(0), rtol=1e-3, atol=1e-6)
        flat = weights.reshape(len(weights), -1)
        between, within = flat.mean(0).var(), flat.var(0).mean()
        assert step.constant == pytest.approx(between / (between + within), rel=1e-3)


def test_attention_is_constant_where_all_images_are_one():
    net = networks.lively(nb.vit(16, features=12, depth=1, heads=2)).eval()
    (step,) = nb.attention_values(net, torch.randn(1, 3, 16, 16).expand(4, -1, -1, -1))
    assert step.constant == pytest.approx(1.0, abs=1e-6)


def test_equation_33_holds_for_all_heads_together_and_for_none_alone(measured):
    net, _, steps = measured
    for step in steps:
        values = net.get_submodule(step.name).branch.qkv.weight.detach().double()[48:]
        assert step.condition == pytest.approx(np.linalg.cond(values.numpy()), rel=1e-3)
        assert 0 < step.recovered < step.rounding
        assert step.rounding == pytest.approx(10 * torch.finfo(net.head.fc.weight.dtype).eps * step.condition)
        assert step.head_rank == 12  # of 24
        assert step.head_loss > 0.1


def test_a_head_that_sees_everything_loses_nothing():
    """One head is all heads together."""
    net = networks.lively(nb.vit(16, features=12, depth=1, heads=1)).double().eval()
    (step,) = nb.attention_values(net, torch.randn(2, 3, 16, 16, dtype=torch.float64))
    assert step.head_rank == 12
    assert step.head_loss < step.rounding


def test_a_network_without_attention_is_refused():
    with pytest.raises(ValueError, match="`net` has no attention step"):
        nb.attention_values(nb.resnet(8), torch.randn(1, 3, 16, 16))
