"""Spectra: what LAPACK and Arnoldi must agree on, what is known beforehand, and what has no eigenvalues."""

import functools
import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, sparse
from scipy.sparse.linalg import aslinearoperator

from odelab.methods.explicit import EULER
from odelab.problems import lorenz, robertson
from odelab.stiffness.arnoldi import measure_edge, ritz_values
from odelab.stiffness.conditioning import IllConditioned, NotConverged
from odelab.stiffness.indices import si
from odelab.stiffness.log_norm import log_norm, soderlind
from odelab.stiffness.operator import JacobianOperator
from odelab.stiffness.spectrum import spectrum
from odelab.stiffness.stable_step import largest_stable_step, nongrowing_radius
from tests.clock import cost

torch = pytest.importorskip("torch")

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 12)


def rotation(rng, n):
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


def laplacian(n):
    """Second differences on (0, 1) with zero at both ends."""
    ones = np.ones(n)
    return sparse.diags_array([ones[1:], -2.0 * ones, ones[1:]], offsets=[-1, 0, 1]).tocsr() * (n + 1.0) ** 2


@given(seeds, sizes, st.floats(-1e3, 1e3).filter(lambda c: abs(c) > 1e-3))
@settings(deadline=None)
def test_a_multiple_multiplies_and_a_rotation_does_nothing(seed, n, c):
    rng = np.random.default_rng(seed)
    J, Q = rng.normal(size=(n, n)), rotation(rng, n)
    plain, scaled, turned = spectrum(J), spectrum(c * J), spectrum(Q @ J @ Q.T)
    assert scaled.si == pytest.approx(abs(c) * plain.si, rel=1e-6)
    assert scaled.spectral_radius == pytest.approx(abs(c) * plain.spectral_radius, rel=1e-6)
    ends = (plain.max_re, plain.min_re)
    assert (scaled.max_re, scaled.min_re) == pytest.approx(sorted((c * ends[0], c * ends[1]))[::-1], rel=1e-6, abs=1e-9)
    assert (turned.max_re, turned.min_re) == pytest.approx(ends, rel=1e-6, abs=1e-9)
    assert (scaled.negative, scaled.positive) == ((plain.negative, plain.positive)[:: 1 if c > 0 else -1])


@given(seeds, sizes)
@settings(deadline=None)
def test_the_fractions_are_all_of_it_and_si_is_the_farther_end(seed, n):
    J = np.random.default_rng(seed).normal(size=(n, n))
    result = spectrum(J)
    assert result.negative + result.zero + result.positive == pytest.approx(1.0, rel=1e-15)
    assert result.si == max(abs(result.max_re), abs(result.min_re)) == pytest.approx(si(J), rel=1e-12)
    assert result.si <= result.spectral_radius
    assert len(result.values) == result.n == n
    assert (np.diff(result.values.real) <= 0).all()
    assert result.residual < 1e-13
    assert result.converged


def test_block_stiffness_index():
    """Eq. 10 of the block-level paper; the usual ratio of a decaying system is its inverse."""
    result = spectrum(-np.diag([1.0, 2.0, 4.0]))
    assert (result.max_re, result.min_re, result.si) == (-1.0, -4.0, 4.0)
    assert (result.negative, result.zero, result.positive) == (1.0, 0.0, 0.0)
    assert result.stiffness_index == 0.25
    assert spectrum(np.diag([3.0, -2.0])).stiffness_index == -1.5
    assert math.isnan(spectrum(np.diag([3.0, 0.0])).stiffness_index)
    assert math.isnan(spectrum(np.zeros((2, 2))).stiffness_index)


def test_the_sign_that_equation_11_counts_is_not_the_one_its_text_names():
    result = spectrum(np.diag([-1.0, 2.0, 3.0, 0.0]))
    assert (result.negative, result.zero, result.positive) == (0.25, 0.25, 0.5)


def test_complex_pairs():
    result = spectrum([[-1.0, 100.0], [-100.0, -1.0]])
    assert (result.max_re, result.min_re, result.si) == pytest.approx((-1.0, -1.0, 1.0))
    assert result.spectral_radius == pytest.approx(math.hypot(1.0, 100.0))
    assert result.non_normality == pytest.approx(0.0, abs=1e-7)
    assert spectrum([[0.0, 1.0], [-1.0, 0.0]]).zero == 1.0


def test_non_normality_is_henricis():
    result = spectrum([[-1.0, 1000.0], [0.0, -2.0]])
    assert result.non_normality == pytest.approx(1000.0 / math.sqrt(1000.0**2 + 5.0), rel=1e-12)
    assert spectrum(np.diag([-1.0, -2.0])).non_normality == 0.0


def relu_block(seed, n=60, hidden=80):
    """Weights and masks of a post-activation block D2 (I + W2 D1 W1); DESIGN's reduction to its active units."""
    rng = np.random.default_rng(seed)
    W1, W2 = rng.normal(size=(hidden, n)) / np.sqrt(n), rng.normal(size=(n, hidden)) / np.sqrt(hidden)
    on1, on2 = rng.random(hidden) < 0.3, rng.random(n) < 0.7
    whole = on2[:, None] * (np.eye(n) + (W2 * on1) @ W1)
    reduced = (W1 * on2) @ W2  # W1 D2 W2
    return whole, reduced[np.ix_(on1, on1)], int(on1.sum()), int(on2.sum())


@given(seeds)
@settings(deadline=None, max_examples=20)
def test_known_eigenvalues_and_a_shift_stand_for_the_larger_matrix(seed):
    whole, reduced, a1, a2 = relu_block(seed)
    n = len(whole)
    if a1 > a2:
        return
    direct = spectrum(whole)
    short = spectrum(reduced, shift=1.0, known=((1.0, a2 - a1), (0.0, n - a2)))
    assert short.n == n
    for name in ("max_re", "min_re", "si", "spectral_radius"):
        assert getattr(short, name) == pytest.approx(getattr(direct, name), rel=1e-9, abs=1e-11)
    assert (short.negative, short.zero, short.positive) == (direct.negative, direct.zero, direct.positive)
    assert short.zero >= (n - a2) / n
    ends = spectrum(reduced, part="extremes", k=2, shift=1.0, known=((1.0, a2 - a1), (0.0, n - a2)))
    assert (ends.max_re, ends.min_re) == pytest.approx((direct.max_re, direct.min_re), rel=1e-8, abs=1e-11)


def test_exact_zeros_of_a_masked_matrix_are_not_counted_by_their_rounding():
    """W2 D1 W1 with three quarters of its hidden units off: its zeros come out as 1e-15 of either sign."""
    rng = np.random.default_rng(0)
    W1, W2 = rng.normal(size=(2, 200, 200)) / np.sqrt(200)
    J = W2[:, :50] @ W1[:50]
    result = spectrum(J)
    assert result.zero == 0.75
    assert spectrum(J, zero_tolerance=0.0).zero < 0.1
    assert result.zero_tolerance < 1e-10
    assert spectrum(J, zero_tolerance=1e3).zero == 1.0
    reduced = spectrum(W1[:50] @ W2[:, :50], known=((0.0, 150),))
    assert (reduced.negative, reduced.positive) == (result.negative, result.positive)


def test_nothing_but_known_eigenvalues():
    result = spectrum(np.empty((0, 0)), known=((1.0, 3), (0.0, 1)), shift=1.0)
    assert (result.n, result.zero, result.positive, result.max_re) == (4, 0.25, 0.75, 1.0)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("shift", [-40.0, 0.0, 40.0])  # the end that is smaller in magnitude, and neither of them
def test_the_extremes_are_the_ends_of_the_whole(symmetric, shift):
    rng = np.random.default_rng(1)
    J = rng.normal(size=(300, 300)) + shift * np.eye(300)
    J = J + J.T if symmetric else J
    full, ends = spectrum(J), spectrum(J, part="extremes")
    for name in ("max_re", "min_re", "si", "spectral_radius"):
        assert getattr(ends, name) == pytest.approx(getattr(full, name), rel=1e-8)
    assert ends.values is None
    assert ends.how == ("lanczos" if symmetric else "arnoldi")
    assert ends.converged
    assert 0.0 < ends.residual < 1e-8
    assert math.isnan(ends.zero) == (shift == 0.0)
    assert "converged" in str(ends)
    assert str(spectrum(J, part="extremes")) == str(ends)  # the same start, the same answer


def test_an_operator_of_any_size_is_answered_by_its_ends():
    n = 2000
    rates = -np.linspace(1.0, 50.0, n)
    rates[[0, -1]] = -0.1, -80.0
    result = spectrum(JacobianOperator((n, n), lambda v: rates * v))
    assert (result.max_re, result.min_re) == pytest.approx((-0.1, -80.0), rel=1e-9)
    assert result.how == "arnoldi"
    assert (result.negative, result.zero, result.positive) == (1.0, 0.0, 0.0)  # one end speaks for the rest
    small = spectrum(JacobianOperator((50, 50), lambda v: rates[:50] * v))
    assert small.how == "dense symmetric"
    np.testing.assert_allclose(small.values, np.sort(rates[:50])[::-1])


def test_sparse_matrices():
    n = 200
    lowest, highest = (-4.0 * (n + 1) ** 2 * np.sin(k * np.pi / 2 / (n + 1)) ** 2 for k in (n, 1))
    for part in ("auto", "extremes"):
        result = spectrum(laplacian(n), part=part)
        assert (result.max_re, result.min_re) == pytest.approx((highest, lowest), rel=1e-8)
        assert result.negative == 1.0
    assert spectrum(aslinearoperator(laplacian(n))).max_re == pytest.approx(highest, rel=1e-8)


def test_the_jacobian_of_a_problem_as_an_operator():
    for problem in (lorenz(), robertson()):
        result = spectrum(JacobianOperator.at(problem, how="complex"))
        assert result.si == pytest.approx(si(problem.jacobian(0.0, problem.u0, problem.params)), rel=1e-9, abs=1e-12)


def test_the_zero_map():
    result = spectrum(JacobianOperator((3000, 3000), lambda v: 0.0 * v))
    assert (result.si, result.converged) == (0.0, True)


@pytest.mark.parametrize("loose", [1e-12, 0.5])  # the last attempt fails too, or succeeds, which is not convergence
def test_what_did_not_converge_says_so_or_is_done_densely(monkeypatch, loose):
    monkeypatch.setattr(sys.modules["odelab.stiffness.arnoldi"], "RESTARTS", 2)
    monkeypatch.setattr(sys.modules["odelab.stiffness.arnoldi"], "LOOSE", loose)
    J = laplacian(300)
    assert spectrum(J, part="extremes").how == "dense symmetric"
    monkeypatch.setattr(sys.modules["odelab.stiffness.spectrum"], "FALLBACK", 0)
    result = spectrum(J, part="extremes")
    assert (result.how, result.converged) == ("lanczos", False)
    assert "NOT converged" in result.message
    assert math.isnan(result.negative)


def test_a_map_that_is_not_square_is_answered_with_singular_values():
    J = np.random.default_rng(0).normal(size=(40, 60))
    result = spectrum(J)
    np.testing.assert_allclose(result.singular_values, np.linalg.svd(J, compute_uv=False))
    assert result.values is None
    assert "40 x 60 map is not square, without eigenvalues" in result.message
    for name in ("max_re", "min_re", "si", "stiffness_index", "negative", "zero", "positive"):
        assert math.isnan(getattr(result, name))
    operator = JacobianOperator((40, 60), lambda v: J @ v, lambda w: J.T @ w)
    few = spectrum(operator, part="extremes", k=3)
    np.testing.assert_allclose(few.singular_values, result.singular_values[:3], rtol=1e-9)
    np.testing.assert_allclose(spectrum(sparse.csr_array(J)).singular_values, result.singular_values)


@given(seeds, sizes)
@settings(deadline=None, max_examples=30)
def test_numpy_and_torch_agree(seed, n):
    J = np.random.default_rng(seed).normal(size=(n, n))
    ours = spectrum(J)
    for tensor in (torch.from_numpy(J), torch.from_numpy(J).to_sparse()):
        theirs = spectrum(tensor)
        np.testing.assert_allclose(theirs.values, ours.values, rtol=1e-12, atol=1e-12)
        assert theirs.message == ours.message
    single = spectrum(torch.from_numpy(J).float())
    assert single.values.dtype in (np.float32, np.complex64)
    assert single.zero_tolerance > 1e6 * ours.zero_tolerance


square = np.eye(3)
REFUSED = [
    (lambda: spectrum(square, part="most"), ValueError, "`part` must be one of .*got 'most'"),
    (lambda: spectrum(square, k=0), ValueError, "`k` must be at least 1, got 0"),
    (lambda: spectrum(square, shift=np.nan), ValueError, "`shift` must be finite, got nan"),
    (lambda: spectrum(square, zero_tolerance=-1.0), ValueError, "`zero_tolerance` must be zero or positive, got -1.0"),
    (lambda: spectrum(square, known=((0.0, -1),)), ValueError, r"`known` must hold pairs .*got \(0.0, -1\)"),
    (lambda: spectrum(square, known=((np.inf, 1),)), ValueError, "`known` must hold pairs"),
    (lambda: spectrum(np.ones((2, 3)), shift=1.0), ValueError, "a 2 x 3 map has none"),
    (lambda: spectrum(square * np.nan), ValueError, "`J` must be finite, got nan"),
    (lambda: spectrum(square[None]), ValueError, r"`J` must be one matrix, \(m, n\), got shape \(1, 3, 3\)"),
    (lambda: spectrum(np.empty((0, 0))), ValueError, "`J` is empty"),
    (lambda: spectrum(JacobianOperator((2, 2), lambda v: v * np.nan)), ValueError, "`J` must be finite, got nan"),
    (
        lambda: spectrum(JacobianOperator((2000, 2000), lambda v: v * np.nan)),
        ValueError,
        "times a vector is not finite",
    ),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_refusals_name_the_argument_and_the_value(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.slow
def test_a_dense_spectrum_costs_what_lapack_costs():
    J = np.random.default_rng(0).normal(size=(1000, 1000))
    for conditions, bound in ((False, 1.05), (True, 1.6)):
        ours = functools.partial(spectrum, J, conditions=conditions)
        assert cost(ours, lambda: np.linalg.eigvals(J), bound) <= bound


def advection_diffusion(n):
    """Strongly non-normal; its eigenvalues are -2 + 2 sqrt(0.19) cos(k pi / (n + 1))."""
    ones = np.ones(n - 1)
    J = sparse.diags_array([1.9 * ones, -2.0 * np.ones(n), 0.1 * ones], offsets=[-1, 0, 1]).tocsr()
    return J, 2.0 + 2.0 * np.sqrt(0.19) * np.cos(np.pi / (n + 1))


@given(seeds, sizes)
@settings(deadline=None, max_examples=30)
def test_condition_numbers_are_those_of_both_eigenvectors(seed, n):
    J = np.random.default_rng(seed).normal(size=(n, n))
    values, left, right = linalg.eig(J, left=True, right=True)
    exact = 1.0 / np.abs((left.conj() * right).sum(axis=0))
    ends = [values.real.argmax(), values.real.argmin(), np.abs(values).argmax()]
    assert spectrum(J).condition == pytest.approx(exact[ends].max(), rel=1e-6)
    assert spectrum(J + J.T).condition == 1.0
    assert spectrum(rotation(np.random.default_rng(seed), n) * 2.0).condition == pytest.approx(1.0, rel=1e-9)
    assert math.isnan(spectrum(J, conditions=False).condition)


@given(seeds, st.integers(2, 30), st.floats(0.0, 6.0))
@settings(deadline=None, max_examples=50)
def test_the_error_bound_holds(seed, n, departure):
    """Triangular matrices, whose eigenvalues are known, hidden by a rotation."""
    rng = np.random.default_rng(seed)
    triangle = np.diag(rng.normal(size=n)) + np.triu(rng.normal(size=(n, n)), 1) * 10.0 ** (departure - 4.0)
    Q = rotation(rng, n)
    found = spectrum(Q @ triangle @ Q.T)
    exact = np.diag(triangle)
    allowed = 30.0 * n * found.error_bound  # LAPACK's backward error is some n eps ||J||, and so is the rotation's
    assert abs(found.max_re - exact.max()) <= allowed
    assert abs(found.min_re - exact.min()) <= allowed


def test_what_rounding_leaves_uncertain_is_said():
    for n, sure in ((10, True), (300, False)):
        J, exact = advection_diffusion(n)
        for matrix in (J, J.toarray()):
            found = spectrum(matrix)
            assert abs(found.si - exact) <= found.error_bound
            assert ("ILL-CONDITIONED" in found.message) != sure
            if sure:
                assert si(matrix) == pytest.approx(exact, rel=1e-6)
            else:
                with pytest.warns(IllConditioned, match=r"`si` = 3.8\d* may be off by \d.*condition number"):
                    assert si(matrix) == pytest.approx(found.si, rel=1e-2)


def test_a_defective_eigenvalue_is_uncertain_by_a_root_of_rounding():
    found = spectrum([[-1.0, 1.0], [0.0, -1.0]])
    assert 1e-9 < found.error_bound < 1e-7
    assert spectrum(np.zeros((3, 3))).error_bound == 0.0


def test_the_worst_of_a_batch_is_said():
    rng = np.random.default_rng(0)
    batch = rng.normal(size=(5, 3, 3))
    si(batch)
    batch[3] = [[-1.0, 1e12, 0.0], [0.0, -1.0, 1e12], [0.0, 0.0, -1.0]]
    with pytest.warns(IllConditioned, match="for 1 of 5 matrices, in the worst case"):
        assert si(batch).shape == (5,)
    with pytest.warns(IllConditioned) as caught:
        si(torch.from_numpy(batch))
    assert caught[0].filename == __file__


@pytest.mark.slow
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_a_large_symmetric_matrix_is_answered_to_the_digits_asked_for(tol):
    n = 100_000
    J = laplacian(n) / (n + 1.0) ** 2
    vector, answers = np.ones(n), []
    products = cost(
        lambda: answers.append(si(J, tol=tol)), lambda: [J @ vector for _ in range(1000)], 40, rounds=(1, 3)
    )
    assert products <= 5
    (found, *_) = answers
    exact = 4.0 * np.cos(np.pi / 2 / (n + 1)) ** 2
    assert exact * (1.0 - tol) <= found <= exact * (1.0 + 1e-12)


def test_a_bracket_is_said_where_lanczos_ends_early(monkeypatch):
    monkeypatch.setattr(sys.modules["odelab.stiffness.arnoldi"], "LANCZOS_PRODUCTS", 30)
    J = laplacian(5000) / 5001.0**2
    with pytest.warns(
        NotConverged, match=r"SI lies between 3\.\d+ \(Lanczos, 30 products\) and 4 \(Gershgorin"
    ) as caught:
        assert 3.8 < si(J, tol=1e-9) < 4.0
    assert caught[0].filename == __file__
    with pytest.warns(NotConverged, match="residual"):
        assert log_norm(J) <= 0.0


def test_si_says_where_arnoldi_did_not_converge(monkeypatch):
    monkeypatch.setattr(sys.modules["odelab.stiffness.arnoldi"], "RESTARTS", 2)
    J, _ = advection_diffusion(1500)
    with pytest.warns(
        NotConverged, match="`si` is known less exactly than tol = 1e-06: .*(NOT converged|none was found)"
    ):
        si(J)


def hidden_end(end, n=1200):
    """Rates in clusters, and one beyond them whose eigenvector is orthogonal to the start of the iteration."""
    start = np.random.default_rng(0).standard_normal(n)
    hidden = np.random.default_rng(5).normal(size=n)
    hidden -= (hidden @ start) / (start @ start) * start
    hidden /= np.linalg.norm(hidden)
    clusters = np.repeat([*np.linspace(1.0, 10.0, 9), *np.linspace(30.0, 50.0, 9)], 60)
    rates = -np.concatenate([clusters, np.full(n - len(clusters), 20.0)])

    def product(v):
        image = rates * (v - hidden * (hidden @ v))
        return image + hidden * (end * (hidden @ v) - hidden @ image)

    return JacobianOperator((n, n), product)


@pytest.mark.parametrize("end", [-0.7, 0.0])
def test_one_eigenvalue_at_each_end_is_the_outermost_one(end):
    """Asked for one alone, ARPACK calls the next one, -1, converged."""
    found = spectrum(hidden_end(end), part="extremes", k=1)
    assert found.converged
    assert found.max_re == pytest.approx(end, abs=1e-9)


def test_an_end_that_another_start_moves_is_not_called_converged(monkeypatch):
    monkeypatch.setattr(sys.modules["odelab.stiffness.arnoldi"], "FEWEST", 1)
    monkeypatch.setattr(sys.modules["odelab.stiffness.spectrum"], "FALLBACK", 0)
    found = spectrum(hidden_end(-0.7), part="extremes", k=1)
    assert not found.converged
    assert "another start found an end further out" in found.message
    assert found.max_re == pytest.approx(-0.7, abs=1e-3)


def test_gradients_are_kept_or_refused():
    J = torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    with pytest.raises(TypeError, match=r"`J` requires gradients.*J.detach\(\)"):
        spectrum(J)
    with torch.no_grad():
        assert spectrum(J).si == pytest.approx(spectrum(J.detach()).si)
    for p in (1, 2, math.inf):
        assert torch.autograd.gradcheck(lambda A, p=p: log_norm(A, p), (J,))
        assert log_norm(J, p).item() == pytest.approx(log_norm(J.detach().numpy(), p))
    assert torch.autograd.gradcheck(soderlind, (J,))
    assert si(J.detach().to_sparse()).item() == pytest.approx(si(J).item())


def test_measures_answer_in_the_library_and_the_shape_of_what_they_are_given():
    J = np.random.default_rng(0).normal(size=(2, 3, 3))
    for measure in (si, soderlind, log_norm, lambda A: log_norm(A, 1)):
        assert isinstance(measure(J[0]), np.float64)
        assert measure(J).shape == (2,)
        assert measure(torch.from_numpy(J)).shape == (2,)
        assert measure(torch.from_numpy(J[0])).shape == ()
        if measure is not si:
            assert isinstance(measure(sparse.csr_array(J[0])), np.float64)


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1.0, 1e200, 1e300])
def test_what_is_said_of_a_spectrum_does_not_depend_on_its_unit(size):
    """Squares of small numbers vanish, and those of large ones are infinite."""
    plain = np.array([[-1.0, 5.0, 0.0], [0.0, -2.0, 3.0], [0.5, 0.0, -4.0]])
    found, expected = spectrum(size * plain), spectrum(plain)
    for name in ("negative", "zero", "positive", "non_normality", "condition"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9), name
    for name in ("si", "zero_tolerance", "error_bound"):
        assert getattr(found, name) == pytest.approx(size * getattr(expected, name), rel=1e-9, abs=0.0), name


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_logarithmic_norms_of_operators_and_sparse_matrices(p):
    J = np.array([[-1.0, 2.0], [0.5, -3.0]])
    operator = JacobianOperator(J.shape, lambda v: J @ v, lambda w: J.T @ w)
    for same in (operator, sparse.csr_array(J), sparse.csr_matrix(J)):
        assert log_norm(same, p) == pytest.approx(log_norm(J, p), rel=1e-14)
    with pytest.raises(ValueError, match="`J` must be finite"):
        log_norm(sparse.csr_array(np.nan * J), p)


@given(seeds, sizes)
@settings(max_examples=20, deadline=None)
def test_the_ritz_values_of_a_whole_space_are_the_eigenvalues(seed, n):
    rng = np.random.default_rng(seed)
    turn = rotation(rng, n)
    J = turn @ np.diag(-np.arange(1.0, n + 1)) @ turn.T
    (values, residuals), *_ = ritz_values(JacobianOperator((n, n), lambda v: J @ v))
    assert np.sort(values.real) == pytest.approx(-np.arange(n, 0.0, -1.0), rel=1e-6)
    assert residuals.max() <= 1e-6 * n


def test_ritz_values_with_a_small_residual_are_eigenvalues_of_a_normal_operator():
    """Of a normal operator some eigenvalue lies within the residual; the ends above and below are found, too."""
    rng = np.random.default_rng(0)
    known = np.concatenate([rng.uniform(-1.0, 0.0, 2000), [-3.0, 0.5]]) + 0j
    known = np.concatenate([known, [-0.1 + 2.0j, -0.1 - 2.0j]])

    def product(v):
        image = known[:-2].real * v[:-2]
        x, y = v[-2:]
        return np.concatenate([image, [-0.1 * x - 2.0 * y, 2.0 * x - 0.1 * y]])

    for values, residuals in ritz_values(JacobianOperator((len(known), len(known)), product)):
        distance = np.abs(values[:, None] - known).min(axis=1)
        assert (distance <= residuals + 1e-12).all()
    for end in (-3.0, 0.5, -0.1 + 2.0j, -0.1 - 2.0j):
        assert np.abs(values - end).min() <= 1e-9


def limits(values):
    """A number for each of the modes that `measure_edge` lets count: all, those that do not grow, those damped."""
    damped = values[np.abs(values.imag) <= -values.real]
    stable = largest_stable_step(values, EULER, "nongrowing", 0.02)
    return np.abs(values).max(initial=0.0), nongrowing_radius(values), stable, largest_stable_step(damped, EULER)


def normal_operator(values):
    """Independent modes: pairs (x, y) turn and decay by Re and Im of each value."""

    def product(v):
        x, y = v.reshape(2, -1)
        return np.concatenate([values.real * x - values.imag * y, values.imag * x + values.real * y])

    return JacobianOperator((2 * len(values), 2 * len(values)), product)


@given(seeds, st.floats(0.1, 5.0), st.floats(0.1, 5.0), st.floats(-1.0, 1.0))
@settings(max_examples=4, deadline=None)
def test_numbers_that_are_settled_are_those_of_all_eigenvalues_to_two_digits(seed, wide, tall, aside):
    rng = np.random.default_rng(seed)
    modes = np.sqrt(rng.random(300)) * np.exp(2j * np.pi * rng.random(300))
    modes = wide * modes.real + aside + 1j * tall * modes.imag
    found = measure_edge(normal_operator(modes), limits)
    exact = np.array(limits(np.concatenate([modes, modes.conj()])))
    assert found.numbers[found.settled] == pytest.approx(exact[found.settled], rel=0.02)


def test_a_spectrum_that_has_no_outer_modes_is_not_called_settled():
    """A shift by one place: 1,500 eigenvalues on a circle, of which 450 products find none."""
    found = measure_edge(JacobianOperator((1500, 1500), lambda v: np.roll(v, 1) - v), limits)
    assert not found.settled.any()
