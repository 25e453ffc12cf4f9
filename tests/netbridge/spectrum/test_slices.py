"""Slices of an unflattened Jacobian: what torch gives, what the block-level paper counted, and what they are not."""

import numpy as np
import pytest
import torch
from torch import nn

import netbridge as nb
from tests.netbridge.networks import lively
from tests.netbridge.tracing import foreign

# Tables 10 and 11: (elements, "eigenvalues") of every block, with the height of the block's input; the blocks of a row
# are alike. Input maps of 16 x 16 after a pooled stem, widths 64, 128, 256, 512.
PRINTED = {
    "ResNet-18": (801_112_064, 62_914_560, (1, 1, 1, 1)),
    "ResNet-34": (1_275_068_416, 115_343_360, (2, 3, 5, 2)),
}


def geometry(inner):
    """(elements, height of the input) of every block of a ResNet with `inner` blocks a stage that keep their shape."""
    blocks, channels, height = [], 64, 16
    for stage, count in enumerate(inner):
        if stage:
            blocks.append(((2 * channels) * (height // 2) ** 2 * channels * height**2, height))
            channels, height = 2 * channels, height // 2
        else:
            count += 1
        blocks += [((channels * height**2) ** 2, height)] * count
    return blocks


@pytest.mark.parametrize("name", PRINTED)
def test_the_printed_counts_are_those_of_slices(name):
    """Elements divided by the height of the input, in the totals of both tables; the Jacobians have far fewer."""
    elements, eigenvalues, inner = PRINTED[name]
    blocks = geometry(inner)
    assert sum(size for size, _ in blocks) == elements
    assert sum(size // height for size, height in blocks) == eigenvalues


@pytest.mark.parametrize("case", ["same", "down", "pre"])
def test_they_are_what_torch_makes_of_the_unflattened_jacobian(case):
    torch.manual_seed(0)
    net = lively(nb.resnet(depth=14, widths=(2, 3, 3), post_activation=case != "pre")).double().eval()
    block = net.stages[1].blocks[0 if case == "down" else 1]
    x = torch.rand(1, 2 if case == "down" else 3, 4, 4, dtype=torch.float64)
    found = nb.slice_spectrum(block, x)
    J = torch.autograd.functional.jacobian(lambda u: block(u.clone()), x)
    wanted = torch.linalg.eigvals(J.squeeze(4)).numpy().reshape(-1, x.shape[1], 4)
    assert found.count == found.values.size == wanted.size == J.numel() // 4
    np.testing.assert_allclose(np.sort(found.values.real, -1), np.sort(wanted.real, -1), atol=1e-12)


def test_the_number_of_eigenvalues_is_that_of_elements_by_height():
    block = lively(nb.resnet(depth=14, widths=(4, 4, 4))).eval().blocks[1]
    for height in (3, 5, 6):
        found = nb.slice_spectrum(block, torch.rand(4, height, height))
        assert found.count == (4 * height**2) ** 2 // height


def test_an_identity_has_one_positive_slice_in_c_h_squared():
    """E_ij, one 1 among zeros, has the eigenvalue 1 only where i = j."""

    class Identity(nn.Module):
        def forward(self, x):
            return x + 0.0 * x

    found = nb.slice_spectrum(Identity(), torch.rand(1, 4, 5, 5))
    assert found.positive == pytest.approx(1 / (4 * 5**2), rel=1e-12)
    assert found.negative == 0.0


def test_maps_of_one_pixel_give_the_entries():
    block = lively(nb.resnet(depth=14, widths=(3, 3, 3))).double().eval().blocks[1]
    x = torch.rand(1, 3, 1, 1, dtype=torch.float64)
    J = torch.autograd.functional.jacobian(lambda u: block(u.clone()), x).reshape(3, 3).numpy()
    np.testing.assert_allclose(nb.slice_spectrum(block, x).values[:, :, 0], J, atol=1e-14)


def test_all_eigenvalues_sum_up_to_the_traces():
    block = lively(nb.resnet(depth=14, widths=(4, 4, 4))).double().eval().blocks[1]
    x = torch.rand(1, 4, 6, 6, dtype=torch.float64)
    J = torch.autograd.functional.jacobian(lambda u: block(u.clone()), x)
    found = nb.slice_spectrum(block, x)
    assert found.values.sum() == pytest.approx(float(torch.einsum("...ii->", J)), abs=1e-9)


def test_smaller_maps_give_larger_shares_and_dead_outputs_none():
    """What raises the printed percentages: the window of two convolutions fills more of a smaller map."""
    torch.manual_seed(0)
    block = nb.resnet(depth=8, widths=(6, 6, 6)).eval().double().blocks[0]
    shares = []
    for size in (16, 8, 4, 2):
        x = torch.rand(1, 6, size, size, dtype=torch.float64)
        shares.append(nb.slice_spectrum(block, x).negative)
        live = float((block(x) > 0).double().mean())
        rows = min(5, size) / size  # of a slice within the window, at most
        assert shares[-1] <= rows * live
    assert shares == sorted(shares)
    block.branch.bn2.bias.data -= 100.0  # every output is dead
    assert nb.slice_spectrum(block, x).negative == 0.0


def test_a_sample_of_rows_is_a_part_of_the_whole():
    block = lively(nb.resnet(depth=14, widths=(3, 3, 3), controller="se")).eval().blocks[1]
    x = torch.rand(3, 4, 4)
    whole, some = nb.slice_spectrum(block, x), nb.slice_spectrum(block, x, rows=10, seed=1)
    assert len(some.rows) == 10
    np.testing.assert_array_equal(some.values, whole.values[some.rows])
    assert some.count == whole.count


def test_what_has_no_slices_is_refused():
    block = nb.resnet(depth=8, widths=(3, 3, 3)).eval().blocks[0]
    with pytest.raises(ValueError, match=r"`x` must hold square maps"):
        nb.slice_spectrum(block, torch.rand(3, 4, 5))
    with pytest.raises(ValueError, match=r"`rows` must be at least 1, got 0"):
        nb.slice_spectrum(block, torch.rand(3, 4, 4), rows=0)


class Linear(nn.Module):
    """u + rate u, per image."""

    def __init__(self, rate):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(float(rate), dtype=torch.float64))

    def forward(self, u):
        return u + self.scale * u


class TestStepError:
    @pytest.mark.parametrize("rate", [-3.0, -0.5, 0.1, 2.0])
    def test_a_linear_block_has_the_error_of_the_exponential(self, rate):
        errors = nb.step_error(Linear(rate), torch.randn(4, 3, dtype=torch.float64))
        expected = abs(np.exp(rate) - 1 - rate) / abs(rate)
        assert errors.numpy() == pytest.approx([expected] * 4, rel=1e-5)

    @pytest.mark.parametrize("rate", [-3.0, -0.5, 0.1, 2.0])
    def test_the_flow_of_a_linear_block_is_the_exponential(self, rate):
        x = torch.randn(4, 3, dtype=torch.float64)
        assert nb.exact_flow(Linear(rate), x).numpy() == pytest.approx(np.exp(rate) * x.numpy(), rel=1e-5)

    @pytest.mark.parametrize("flow", [nb.exact_flow, nb.step_error])
    def test_a_flow_has_a_step_and_a_gate(self, flow):
        with pytest.raises(ValueError, match="`substeps` must be at least 1, got 0"):
            flow(Linear(1.0), torch.ones(1, 2), substeps=0)
        with pytest.raises(ValueError, match=r"`gate` must be .* got 'open'"):
            flow(Linear(1.0), torch.ones(1, 2), gate="open")

    @pytest.mark.parametrize("rate", [-200.0, -90.0, 50.0])
    def test_a_stiff_or_a_fast_block_takes_as_many_substeps_as_it_needs(self, rate):
        """RK4 with 32 substeps is unstable beyond -89."""
        errors = nb.step_error(Linear(rate), torch.randn(4, 3, dtype=torch.float64))
        expected = abs(np.exp(rate) - 1 - rate) / abs(rate)
        assert errors.numpy() == pytest.approx([expected] * 4, rel=0.02)

    def test_only_the_states_that_need_them_take_more_substeps(self):
        class Own(nn.Module):
            def forward(self, u):
                return u + torch.where(u.abs() > 10.0, -150.0, -1.0) * (u - 20.0 * (u > 10.0))

        x = torch.tensor([[1.0, 2.0], [30.0, 40.0]], dtype=torch.float64)
        alone = torch.cat([nb.exact_flow(Own(), one) for one in x.split(1)])
        assert torch.equal(nb.exact_flow(Own(), x), alone)
        assert nb.exact_flow(Own(), x)[1].numpy() == pytest.approx([20.0, 20.0], rel=1e-3)

    def test_what_does_not_settle_is_not_a_number(self):
        x = torch.ones(1, 2, dtype=torch.float64)
        assert nb.step_error(Linear(-1400.0), x).numpy() == pytest.approx([1399 / 1400], rel=1e-3)
        assert nb.step_error(Linear(-2500.0), x).isnan().all()
        assert nb.exact_flow(Linear(-2500.0), x).isnan().all()

    def test_states_that_are_not_finite_are_refused(self):
        with pytest.raises(ValueError, match="`states` must be finite"):
            nb.step_error(Linear(1.0), torch.full((1, 2), torch.nan))

    def test_a_constant_branch_has_none(self):
        class Constant(nn.Module):
            def forward(self, u):
                return u + torch.ones_like(u)

        assert nb.step_error(Constant(), torch.randn(2, 3, dtype=torch.float64)).max() < 1e-14

    def test_a_flow_that_blows_up_is_infinite(self):
        class Cubic(nn.Module):
            def forward(self, u):
                return u + u**3

        assert nb.step_error(Cubic(), torch.full((1, 2), 50.0)).isinf().all()

    def test_a_block_of_a_network_is_left_as_it_was(self):
        block = lively(nb.resnet(depth=14, widths=(4, 4, 4), controller="eca")).eval().blocks[1]
        before = {name: tensor.clone() for name, tensor in block.state_dict().items()}
        x = torch.rand(3, 4, 6, 6)
        live, frozen = (nb.step_error(block, x, gate=gate) for gate in ("live", "frozen"))
        assert live.shape == frozen.shape == (3,)
        assert not torch.equal(live, frozen)
        assert all(torch.equal(before[name], tensor) for name, tensor in block.state_dict().items())

    def test_a_block_that_changes_the_shape_is_no_step(self):
        block = foreign.shaken(foreign.HandBlock(4, 8, 2))
        with pytest.raises(ValueError, match="a block that changes the shape"):
            nb.step_error(block, torch.rand(1, 4, 4, 4))
