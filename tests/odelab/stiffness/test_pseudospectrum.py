"""Pseudospectra: discs for normal matrices, known shapes for Jordan blocks and Toeplitz ones, bounds on growth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import expm

import odelab as ol

torch = pytest.importorskip("torch")

seeds = st.integers(0, 2**32 - 1)


def toeplitz(n, below=1.9, above=0.1):
    return np.diag(np.full(n, -2.0)) + np.diag(np.full(n - 1, below), -1) + np.diag(np.full(n - 1, above), 1)


def smallest(J, z):
    return np.linalg.svd(z * np.eye(len(J)) - J, compute_uv=False)[-1]


@given(seeds, st.integers(1, 8), st.floats(-4.0, 1.0))
@settings(deadline=None, max_examples=20)
def test_of_a_normal_matrix_it_is_discs_round_the_eigenvalues(seed, n, exponent):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    rates, epsilon = rng.normal(size=n), 10.0**exponent
    found = ol.pseudospectrum(Q @ np.diag(rates) @ Q.T, points=7)
    z = found.real[None, :] + 1j * found.imaginary[:, None]
    distance = np.abs(z[..., None] - rates).min(axis=-1)
    np.testing.assert_allclose(found.smallest, distance, atol=1e-12)
    assert found.abscissa(epsilon) == pytest.approx(rates.max() + epsilon, rel=1e-6, abs=1e-9)
    assert found.field_of_values.real.max() == pytest.approx(rates.max(), abs=1e-12)
    assert np.abs(found.field_of_values.imag).max() < 1e-12


@given(seeds, st.integers(2, 10), st.floats(-3.0, 0.5))
@settings(deadline=None, max_examples=30)
def test_the_abscissa_is_on_the_boundary_and_nothing_lies_beyond(seed, n, exponent):
    J, epsilon = np.random.default_rng(seed).normal(size=(n, n)), 10.0**exponent
    found = ol.pseudospectrum(J, points=15)
    right = found.abscissa(epsilon)
    z = found.real[None, :] + 1j * found.imaginary[:, None]
    assert found.abscissa(2.0 * epsilon) > right > ol.spectrum(J).max_re
    assert right <= ol.log_norm(J) + epsilon + 1e-9  # the field of values and epsilon more
    assert (found.smallest[z.real > right + 1e-6 * (1.0 + abs(right))] > epsilon * (1.0 - 1e-6)).all()
    heights = np.linspace(-6.0, 6.0, 2001)
    assert min(smallest(J, right + 1j * y) for y in heights[::20]) > 0.99 * epsilon


@given(seeds, st.integers(2, 12))
@settings(deadline=None, max_examples=20)
def test_changes_of_a_matrix_stay_within_it(seed, n):
    rng = np.random.default_rng(seed)
    J, change = rng.normal(size=(2, n, n))
    change /= np.linalg.norm(change, 2)
    found = ol.pseudospectrum(J, points=2)
    for epsilon in (1e-3, 0.3):
        assert np.linalg.eigvals(J + epsilon * change).real.max() <= found.abscissa(epsilon) + 1e-8


@pytest.mark.parametrize("n", [2, 5, 20])
def test_a_jordan_block_spreads_like_a_root(n):
    """sigma_min(zI - J) <= |z|^n, so that a change of r^n reaches at least as far as r."""
    found = ol.pseudospectrum(np.eye(n, k=1), points=9, box=(-0.9, 0.9, -0.9, 0.9))
    distance = np.abs(found.real[None, :] + 1j * found.imaginary[:, None])
    assert (found.smallest <= distance**n + 1e-15).all()
    assert found.abscissa(0.5**n) >= 0.5
    assert np.abs(found.field_of_values).max() == pytest.approx(np.cos(np.pi / (n + 1)), rel=1e-3)


def test_a_toeplitz_matrix_resembles_its_symbol_and_not_its_eigenvalues():
    """Inside the ellipse -2 + 1.9 / z + 0.1 z the resolvent grows exponentially with n (Reichel and Trefethen 1992)."""
    rightmost = -2.0 + 1.9 + 0.1  # of the symbol
    exact = -2.0 + 2.0 * np.sqrt(0.19)  # of the eigenvalues, for large n
    for n in (60, 100):  # beyond those whose singular values come from LAPACK
        found = ol.pseudospectrum(toeplitz(n), points=6)
        assert found.abscissa(1e-4) > 0.5 * (rightmost + exact)
        assert ol.spectrum(toeplitz(n)).max_re < found.abscissa(1e-10) < rightmost
        told = found.smallest > 1e-10
        z = found.real[None, :] + 1j * found.imaginary[:, None]
        exactly = np.array([[smallest(toeplitz(n), point) for point in row] for row in z])
        np.testing.assert_allclose(found.smallest[told], exactly[told], rtol=2e-3)


@pytest.mark.parametrize("J", [toeplitz(8), [[-1.0, 30.0], [0.0, -2.0]], np.eye(4, k=1) - 0.5 * np.eye(4)])
def test_kreiss_bounds_transient_growth(J):
    J = np.asarray(J)
    found = ol.pseudospectrum(J, points=2)
    growth = max(np.linalg.norm(expm(t * J), 2) for t in np.geomspace(1e-3, 50.0, 300))
    bound = found.kreiss()
    assert bound <= growth * (1.0 + 1e-6)
    assert growth <= np.e * len(J) * found.kreiss(np.geomspace(1e-8, 1e3, 60))


def test_the_field_of_values_reaches_the_logarithmic_norm():
    J = np.random.default_rng(3).normal(size=(12, 12))
    found = ol.pseudospectrum(J, points=2)
    assert found.field_of_values.real.max() == pytest.approx(ol.log_norm(J), rel=1e-12)
    assert found.field_of_values.real.min() == pytest.approx(-ol.log_norm(-J), rel=1e-12)
    assert found.field_of_values[0] == found.field_of_values[-1]


def test_every_kind_of_matrix_gives_the_same():
    J = toeplitz(6)
    wanted = ol.pseudospectrum(J, points=4).smallest
    for form in (J.tolist(), torch.from_numpy(J), sparse.csr_array(J), ol.JacobianOperator((6, 6), lambda v: J @ v)):
        np.testing.assert_allclose(ol.pseudospectrum(form, points=4).smallest, wanted, rtol=1e-9)
    assert (ol.pseudospectrum(J, points=4).resolvent_norm == 1.0 / wanted).all()
    apart = ol.pseudospectrum(J, points=3, box=(-1.0, 0.0, 0.5, 2.0))
    assert apart.smallest[0, 0] == pytest.approx(smallest(J, -1.0 + 0.5j), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ol.pseudospectrum(np.ones((2, 3))), ValueError, r"`J` must be square, got shape \(2, 3\)"),
        (lambda: ol.pseudospectrum(np.eye(2), points=1), ValueError, "`points` must be at least 2, got 1"),
        (
            lambda: ol.pseudospectrum(np.eye(2), box=(1, 0, 0, 1)),
            ValueError,
            "`box` must be .left, right, bottom, top.",
        ),
        (lambda: ol.pseudospectrum(sparse.eye_array(4000)), ValueError, "at most 3000"),
        (lambda: ol.pseudospectrum(np.eye(2)).abscissa(0.0), ValueError, "`epsilon` must be positive"),
        (lambda: ol.pseudospectrum(torch.eye(2).requires_grad_()), TypeError, "`J` requires gradients"),
    ],
)
def test_wrong_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
