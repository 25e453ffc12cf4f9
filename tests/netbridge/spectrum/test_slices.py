"""Slices of an unflattened Jacobian: what torch gives, what the block-level paper counted, and what they are not."""

import numpy as np
import pytest
import torch
from torch import nn

import netbridge as nb
from tests.netbridge.networks import lively


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
