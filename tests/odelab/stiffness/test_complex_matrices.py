"""Complex matrices: what another basis keeps, what a real matrix of twice the size has, and closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import expm

import odelab as ol

torch = pytest.importorskip("torch")

seeds = st.integers(0, 2**32 - 1)
NORMS = (1, 2, np.inf)


def gaussian(seed, n):
    real, imaginary = np.random.default_rng(seed).normal(size=(2, n, n))
    return real + 1j * imaginary


def unitary(seed, n):
    return np.linalg.qr(gaussian(seed, n))[0]


@given(seeds, st.integers(1, 8))
@settings(deadline=None, max_examples=25)
def test_another_basis_keeps_what_depends_on_angles_and_lengths_alone(seed, n):
    J = np.random.default_rng(seed).normal(size=(n, n))
    U = unitary(seed + 1, n)
    turned = U @ J @ U.conj().T
    for measure in (ol.si, ol.log_norm, ol.soderlind):
        assert measure(turned) == pytest.approx(measure(J), abs=1e-10)
    found, want = ol.spectrum(turned), ol.spectrum(J)
    for name in ("max_re", "min_re", "spectral_radius", "non_normality", "condition"):
        assert getattr(found, name) == pytest.approx(getattr(want, name), rel=1e-5, abs=1e-7), name
    box = (-3.0, 3.0, -2.0, 2.0)
    np.testing.assert_allclose(
        ol.pseudospectrum(turned, 6, box).smallest, ol.pseudospectrum(J, 6, box).smallest, atol=1e-12
    )
    assert ol.pseudospectrum(turned, 2).abscissa(0.1) == pytest.approx(ol.pseudospectrum(J, 2).abscissa(0.1), abs=1e-6)


@given(seeds, st.integers(1, 8))
@settings(deadline=None, max_examples=25)
def test_a_real_matrix_of_twice_the_size_has_the_same_growth_and_rates(seed, n):
    J = gaussian(seed, n)
    doubled = np.block([[J.real, -J.imag], [J.imag, J.real]])
    for measure in (ol.si, ol.log_norm, ol.soderlind):
        assert measure(J) == pytest.approx(measure(doubled), abs=1e-11)


@given(seeds, st.integers(1, 6), st.floats(0.01, 2.0))
@settings(deadline=None, max_examples=25)
def test_logarithmic_norms_bound_growth_and_are_the_limit_that_defines_them(seed, n, t):
    J = gaussian(seed, n)
    for p in NORMS:
        mu = ol.log_norm(J, p)
        assert np.linalg.norm(expm(t * J), p) <= np.exp(mu * t) * (1.0 + 1e-10)
        h = 1e-7
        limit = (np.linalg.norm(np.eye(n) + h * J, p) - 1.0) / h
        assert mu == pytest.approx(limit, abs=2e-6 * (1.0 + np.linalg.norm(J, 2) ** 2))


def test_closed_forms():
    J = np.diag([3j, -2.0 + 5j, -7.0])
    assert ol.si(J) == pytest.approx(7.0, rel=1e-14)
    assert [ol.log_norm(J, p) for p in NORMS] == pytest.approx([0.0] * 3, abs=1e-14)
    assert ol.soderlind(J) == pytest.approx(-3.5, rel=1e-14)
    assert ol.spectrum(J).spectral_radius == pytest.approx(7.0, rel=1e-14)
    a, b = -1.0 + 2.0j, 3.0 - 4.0j
    bow = np.array([[a, b], [0.0, a]])
    assert ol.log_norm(bow) == pytest.approx(-1.0 + 2.5, abs=1e-12)
    assert ol.log_norm(bow, 1) == pytest.approx(-1.0 + 5.0, abs=1e-12)
    assert ol.log_norm(bow, np.inf) == pytest.approx(-1.0 + 5.0, abs=1e-12)
    assert ol.soderlind(bow) == pytest.approx(-1.0, abs=1e-12)


@given(seeds, st.integers(1, 6))
@settings(deadline=None, max_examples=20)
def test_pseudospectra_of_normal_matrices_are_discs_that_need_no_mirror_image(seed, n):
    rng = np.random.default_rng(seed)
    U, rates = unitary(seed, n), rng.normal(size=n) + 1j * rng.normal(size=n)
    found = ol.pseudospectrum(U @ np.diag(rates) @ U.conj().T, points=7)
    z = found.real[None, :] + 1j * found.imaginary[:, None]
    np.testing.assert_allclose(found.smallest, np.abs(z[..., None] - rates).min(axis=-1), atol=1e-12)
    assert found.abscissa(0.5) == pytest.approx(rates.real.max() + 0.5, abs=1e-6)
    for angle in np.linspace(0.0, 2.0 * np.pi, 9):
        reach = (np.exp(-1j * angle) * rates).real.max()
        assert (np.exp(-1j * angle) * found.field_of_values).real.max() == pytest.approx(reach, abs=0.01)


def test_hermitian_matrices_are_seen_as_such():
    H = gaussian(0, 5)
    H = H + H.conj().T
    found = ol.spectrum(H)
    assert found.how == "dense Hermitian"
    assert found.values.dtype == np.float64
    assert ol.spectrum(H.T @ np.diag([1.0, 2.0, 3.0, 4.0, 5.0])).how == "dense"
    assert ol.spectrum(gaussian(0, 5) + gaussian(0, 5).T).how == "dense"  # its own transpose, but not its adjoint


@pytest.mark.parametrize(
    "form",
    [
        sparse.csr_array,
        torch.from_numpy,
        lambda J: ol.JacobianOperator(J.shape, lambda v: J @ v, lambda w: J.conj().T @ w, complex),
        lambda J: J.astype(np.complex64),
    ],
    ids=["sparse", "tensor", "operator", "single"],
)
def test_every_form_of_a_matrix_gives_the_same(form):
    J = gaussian(2, 5)
    for measure in (ol.si, ol.log_norm, ol.soderlind, lambda A: ol.log_norm(A, 1), lambda A: ol.log_norm(A, np.inf)):
        assert float(measure(form(J))) == pytest.approx(float(measure(J)), rel=1e-5)
    assert ol.spectrum(form(J)).max_re == pytest.approx(ol.spectrum(J).max_re, rel=1e-5)
    box = (-2.0, 2.0, -2.0, 2.0)
    np.testing.assert_allclose(
        ol.pseudospectrum(form(J), 4, box).smallest, ol.pseudospectrum(J, 4, box).smallest, atol=1e-5
    )


def test_batches_and_gradients():
    J = torch.from_numpy(np.stack([gaussian(3, 3), gaussian(4, 3)]))
    for measure in (ol.si, ol.log_norm, ol.soderlind, lambda A: ol.log_norm(A, 1)):
        together = measure(J)
        np.testing.assert_allclose(together, [measure(one) for one in J], rtol=1e-12)
        assert torch.autograd.gradcheck(measure, (J[0].clone().requires_grad_(),))


def test_large_sparse_matrices_by_lanczos_and_arnoldi():
    n = 1500
    turning = sparse.diags_array([-1j, 1j], offsets=[-1, 1], shape=(n, n), format="csr")  # Hermitian
    largest = 2.0 * np.cos(np.pi / (n + 1))
    moved = turning + 3.0 * sparse.eye_array(n)
    assert ol.si(moved, tol=1e-3) == pytest.approx(largest + 3.0, rel=1e-3)
    assert ol.log_norm(moved) == pytest.approx(largest + 3.0, rel=1e-4)
    assert ol.soderlind(moved) == pytest.approx(3.0, rel=1e-4)
    ends = 2.0 * np.cos(np.pi * np.array([1, n]) / (n + 1))
    slanted = (-1.0 + 0.5j) * (turning + -20.0 * sparse.eye_array(n))
    want = np.abs(-(ends - 20.0)).max()
    assert ol.si(slanted, tol=1e-4) == pytest.approx(want, rel=1e-3)


def test_modes_of_a_complex_matrix():
    J = gaussian(5, 4)
    V = np.eye(4) + 0.1 * J
    rates = np.array([-1e6j, -1e3, -2.0 + 1j, 1.0])
    fast = ol.participation(V @ np.diag(rates) @ np.linalg.inv(V))[0]
    assert fast.rates == pytest.approx([-1e6j], rel=1e-9)
    np.testing.assert_allclose(fast.participation, (V[:, 0] * np.linalg.inv(V)[0]).real, atol=1e-9)
    assert str(fast).startswith("mode: oscillates at 1e+06, ")


@pytest.mark.parametrize("measure", [lambda J: ol.power_bounded_step(J, ol.DOPRI5), lambda J: ol.motion_rate(J, [1.0])])
def test_measures_of_real_motion_refuse_them(measure):
    with pytest.raises(TypeError, match="`J` must hold real numbers"):
        measure(np.array([[1j]]))
