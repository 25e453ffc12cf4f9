"""Theorem 2: exact where J is symmetric, a limit where its premises hold, and the systems where it breaks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odelab._solve import solve
from odelab.control.controllers import adaptive, fixed
from odelab.engines.implicit import RADAU
from odelab.methods.explicit import EULER
from odelab.problems import linear, prothero_robinson, robertson
from odelab.stiffness.indices import sai, si
from odelab.stiffness.jacobian import jacobian
from odelab.stiffness.theorem2 import theorem2
from tests.clock import cost

torch = pytest.importorskip("torch")

seeds = st.integers(0, 2**32 - 1)
PREMISES = {"symmetric", "normal", "distinct", "decaying", "aligned", "homogeneous", "separated", "offset", "bounded"}


def symmetric_system(seed, n):
    """A random symmetric J over six decades, a state, and a slope that is not J u."""
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.normal(size=(n, n)))[0]
    J = (V * (rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-3, 3, n))) @ V.T
    u = rng.normal(size=n) * 10.0 ** rng.uniform(-3, 3)
    return (J + J.T) / 2, u, J @ u + rng.normal(size=n) * 10.0 ** rng.uniform(-3, 3)


def q_without_c_i(J, u, f):
    """Q with the cross term as Appendix C prints it, 2 a_i lambda_i."""
    values, V = np.linalg.eigh(J)
    c, a = V.T @ u, V.T @ (f - J @ u)
    first = np.argmax(np.abs(values))
    others = np.arange(len(u)) != first
    total = (c**2 * values**2)[others].sum() + (2.0 * a * values + a**2).sum()
    return total / (values[first] ** 2 * (u @ u))


@given(seeds, st.sampled_from([1, 2, 3, 7, 20, 60, 200]))
@settings(deadline=None)
def test_the_identity_holds_to_rounding_for_every_symmetric_system(seed, n):
    J, u, f = symmetric_system(seed, n)
    result = theorem2(J, u, f)
    assert result.residual < 1e-10
    assert result.identity is True
    assert result.si == pytest.approx(si(J), rel=1e-12)
    assert result.sai == pytest.approx(np.linalg.norm(f) / np.linalg.norm(u), rel=1e-14)
    scale = np.abs(result.c) + np.abs(result.q) + (result.sai / result.si) ** 2
    assert (result.sai / result.si) ** 2 == pytest.approx(result.c + result.q, abs=1e-10 * scale)


def test_the_cross_term_needs_its_c_i():
    """The residual of the formula as printed is of order one, not rounding."""
    misses = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(10, 10))
        J, u = A + A.T, rng.normal(size=10)
        f = J @ u + rng.normal(size=10)
        result = theorem2(J, u, f)
        assert abs(result.sai - result.si * np.sqrt(result.c + result.q)) < 1e-10 * result.sai
        square = result.c + q_without_c_i(J, u, f)
        misses.append(abs(result.sai**2 - result.si**2 * square) / result.sai**2)
    assert np.median(misses) > 0.01
    assert min(misses) > 1e-6


def test_the_display_before_equation_31_needs_its_square():
    """For f = J u the paper prints sqrt(sum c_i^2 lambda_i / sum c_i^2): no real number where J decays."""
    rates, c = -np.array([3.0, 4.0]), np.ones(2)
    result = theorem2(np.diag(rates), c, rates * c)
    assert result.sai == pytest.approx(np.sqrt((c**2 * rates**2).sum() / (c**2).sum()), rel=1e-15)
    assert (c**2 * rates).sum() / (c**2).sum() < 0.0


@given(seeds)
@settings(deadline=None)
def test_multiple_dominant_eigenvalues_are_summed(seed):
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    values = np.array([-7.0, -7.0, 7.0, -1.0, 0.5])  # |lambda| = SI three times
    J, u = (V * values) @ V.T, rng.normal(size=5)
    f = J @ u + rng.normal(size=5)
    result = theorem2((J + J.T) / 2, u, f)
    c = V.T @ u
    assert result.c == pytest.approx((c[:3] ** 2).sum() / (u @ u), rel=1e-10)
    assert result.residual < 1e-10
    assert not result.premises["distinct"].holds
    assert not result.premises["distinct"].needed


def test_a_multiple_eigenvalue_does_not_spoil_the_limit():
    result = theorem2(-np.diag([1e4, 1e4, 1.0]), np.ones(3), -np.array([1e4, 1e4, 1.0]))
    assert (result.identity, result.limit, result.holds) == (True, True, True)
    assert result.c == pytest.approx(2 / 3)


@given(seeds, st.integers(2, 12), st.floats(0.05, 0.3))
@settings(deadline=None)
def test_the_limit_bounds_q_where_its_premises_hold(seed, n, small):
    """r^2 + 2 a + a^2 with r <= small and a <= small^2."""
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = -np.concatenate([[1000.0], rng.uniform(1.0, 1500.0 * small, n - 1)])
    J, u = (V * values) @ V.T, V @ (rng.normal(size=n) + np.eye(n)[0] * 2.0)
    f = J @ u + rng.normal(size=n) * rng.uniform(0.0, 15.0 * small)
    result = theorem2((J + J.T) / 2, u, f, small=small)
    assert result.limit == all(premise.holds for premise in result.premises.values() if premise.needed)
    if result.limit:
        assert abs(result.q) <= 3.0 * small**2 + small**4 + 1e-12
        assert result.sai / result.si == pytest.approx(np.sqrt(result.c), abs=np.sqrt(3.01) * small)


def test_q_vanishes_as_the_square_of_si():
    stiffness = 10.0 ** np.arange(1, 8)
    q = np.array([theorem2(-np.diag([s, 1.0]), np.ones(2), -np.array([s, 1.0])).q for s in stiffness])
    rates = np.diff(np.log10(q)) / np.diff(np.log10(stiffness))
    np.testing.assert_allclose(rates, -2.0, atol=1e-6)


def test_a_second_mode_in_proportion_keeps_q():
    """lambda_2 = lambda_1 / 2, c = (1, 1), a = 0: Q = 0.125 at any SI."""
    for stiffness in (1.0, 1e3, 1e6):
        values = -stiffness * np.array([1.0, 0.5])
        result = theorem2(np.diag(values), np.ones(2), values)
        assert result.q == pytest.approx(0.125, rel=1e-14)
        assert (result.identity, result.limit, result.holds) == (True, False, False)
        failing = [premise.name for premise in result.premises.values() if not premise.holds]
        assert failing == ["separated"]


def test_a_non_normal_system_has_sai_far_above_si():
    result = theorem2([[-1.0, 1000.0], [0.0, -2.0]], [0.0, 1.0], [1000.0, -2.0])
    assert result.si == pytest.approx(2.0)
    assert result.sai == pytest.approx(1000.0, rel=1e-5)
    assert result.residual > 0.5
    assert (result.identity, result.limit, result.holds) == (False, False, False)
    assert not result.premises["symmetric"].holds
    assert not result.premises["normal"].holds


def test_a_shifted_origin_hides_stiffness():
    """u' = -1000 (u - c) from u = c + 1: the same motion at every c."""
    indices = [theorem2([[-1000.0]], [c + 1.0], [-1000.0]) for c in (0.0, 10.0, 1000.0)]
    assert [round(result.sai) for result in indices] == [1000, 91, 1]
    assert [result.si for result in indices] == [1000.0] * 3
    assert [result.limit for result in indices] == [True, False, False]
    assert all(result.identity for result in indices)
    assert not indices[1].premises["homogeneous"].holds


def test_on_a_slow_manifold_sai_stays_while_si_grows():
    """Prothero-Robinson with u on phi(t) = sin(t + pi/4): f = phi', a of the order of lambda."""
    for rate in (-1e2, -1e4, -1e6):
        problem = prothero_robinson(rate=rate)
        u = problem.exact(0.3, problem.params)
        f = problem.slope(0.3, u)
        result = theorem2(jacobian(problem, 0.3, u), u, f)
        assert result.sai == pytest.approx(1.0 / np.tan(0.3 + np.pi / 4), rel=1e-6)
        assert result.si == pytest.approx(-rate)
        assert result.identity  # the identity survives, its terms cancel
        assert not result.limit
        assert not result.premises["offset"].holds


def test_robertson_leaves_the_theorem_behind():
    problem = robertson()
    start = theorem2(jacobian(problem), problem.u0, problem.slope(0.0, problem.u0))
    assert start.sai / start.si == pytest.approx(np.sqrt(2.0), rel=1e-12)
    ratios = []
    for t1 in (1e-3, 40.0, 1e5):
        u = solve(problem.replace(t_span=(0.0, t1)), RADAU, adaptive(rtol=1e-9, atol=1e-14)).u[-1]
        result = theorem2(jacobian(problem, t1, u), u, problem.slope(t1, u))
        assert not result.holds
        ratios.append(result.sai / result.si)
    np.testing.assert_allclose(ratios, [2.8e-5, 1.4e-6, 2.3e-11], rtol=0.03)


def euler_sai(rates, h, steps):
    """SAI at the end of explicit Euler on u' = diag(rates) u from ones; scaled on the way, which SAI does not see."""
    u = np.ones(len(rates))
    for _ in range(steps):
        u = u + h * np.array(rates) * u
        u /= np.linalg.norm(u)
    return sai(t=[0.0, h], u=np.stack([u, u + h * np.array(rates) * u]))[0]


def test_euler_is_a_power_iteration():
    """SAI finds SI where |1 + h lambda_1| dominates, within the stability limit or beyond it."""
    assert euler_sai([-1000.0, -1.0], 0.0019, 20_000) == pytest.approx(1.0)
    assert euler_sai([-1000.0, -1.0], 0.0021, 20_000) == pytest.approx(1000.0)
    assert euler_sai([-1000.0, -500.0], 0.0015, 200) == pytest.approx(1000.0)  # |1 - 1.5| > |1 - 0.75|, stable
    assert euler_sai([-1000.0, -500.0], 0.0010, 200) == pytest.approx(500.0)


def test_the_identity_is_exact_for_euler_at_every_step_size():
    J = np.diag([-30.0, -2.0])
    for h in (1e-4, 1e-2, 0.06):
        run = solve(linear(J, [1.0, 1.0]).replace(t_span=(0.0, 20 * h)), EULER, fixed(h=h))
        result = theorem2(np.broadcast_to(J, (len(run.h), 2, 2)), run.u[:-1], run.u[:-1] @ J)
        np.testing.assert_allclose(sai(run), result.si * np.sqrt(result.c + result.q), rtol=1e-12)


def test_the_exact_flow_saturates_at_one_over_h():
    """For J symmetric negative definite, approached when all of u has decayed."""
    rates = np.array([-3.0, -1.0])
    for h in (1e-3, 1.0, 30.0):
        index = sai(t=[0.0, h], u=np.stack([np.ones(2), np.exp(rates * h)]))[0]
        assert index <= 1.0 / h
        assert index <= theorem2(np.diag(rates), np.ones(2), rates).sai
    assert index * 30.0 == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("J", "u", "f", "failing"),
    [
        ([[-1000.0, 5.0], [-5.0, -1.0]], [1.0, 1.0], None, {"symmetric", "normal"}),
        ([[-3.0, 1.0], [-1.0, -3.0]], [1.0, 1.0], None, {"symmetric"}),  # normal, and its modes share Re = -3
        ([[-1000.0, 0.0], [0.0, 1.0]], [1.0, 1.0], None, {"decaying"}),
        ([[-1000.0, 0.0], [0.0, 0.0]], [1.0, 1.0], None, {"decaying"}),
        ([[-1000.0, 0.0], [0.0, -1.0]], [0.1, 1.0], None, {"aligned"}),
        ([[-1000.0, 0.0], [0.0, -200.0]], [1.0, 1.0], None, {"separated"}),
        ([[-1000.0, 0.0], [0.0, -1.0]], [1.0, 1.0], [-980.0, -1.0], {"homogeneous", "offset"}),
        ([[-1000.0, 0.0], [0.0, -1.0]], [1e-9, 1e-9], None, {"bounded"}),
    ],
)
def test_every_premise_can_fail_alone_and_takes_the_limit_with_it(J, u, f, failing):
    J, u = np.array(J), np.array(u)
    result = theorem2(J, u, J @ u if f is None else f)
    named = {name for name, premise in result.premises.items() if not premise.holds}
    assert named == failing
    assert not result.limit
    assert not result.holds
    assert result.identity == ("symmetric" not in failing)


def test_no_verdict_without_premises():
    result = theorem2(-np.diag([1000.0, 1.0]), np.ones(2), -np.array([1000.0, 1.0]))
    assert set(result.premises) == PREMISES
    assert (result.identity, result.limit, result.holds) == (True, True, True)
    for name, premise in result.premises.items():
        assert premise.name == name
        assert isinstance(premise.value, float)
        assert isinstance(premise.threshold, float)
        assert premise.holds is True
        assert premise.sentence.startswith(name)
        assert "holds, the value is" in premise.sentence
    first, *others = str(result).splitlines()
    assert first == "SI = 1000, SAI = 707.107, C = 0.5, Q = 5e-07, SI sqrt(C + Q) = 707.107: Theorem 2 holds."
    assert len(others) == len(PREMISES)
    with pytest.raises(TypeError):
        result.premises["symmetric"] = None
    strict = theorem2(-np.diag([1000.0, 1.0]), np.ones(2), -np.array([1000.0, 1.0]), small=1e-4)
    assert not strict.limit
    assert "fails, the value is 0.001: another mode" in strict.premises["separated"].sentence


def test_the_zero_map_and_a_defective_one_get_no_verdict():
    nothing = theorem2(np.zeros((2, 2)), np.ones(2), np.zeros(2))
    assert nothing.si == 0.0
    assert (nothing.identity, nothing.limit) == (False, False)
    jordan = theorem2([[-1.0, 1.0], [0.0, -1.0]], [0.0, 1.0], [1.0, -1.0])
    assert np.abs([jordan.c, jordan.q]).max() < 10.0  # not the 1e30 of a system solved with dependent eigenvectors
    assert jordan.residual > 0.01
    assert (jordan.identity, jordan.limit) == (False, False)


def random_batch(seed, *shape, n=4):
    """Half of the systems symmetric, half not."""
    rng = np.random.default_rng(seed)
    J = rng.normal(size=(*shape, n, n))
    symmetric = rng.random(shape) < 0.5
    J = np.where(symmetric[..., None, None], J + J.swapaxes(-1, -2), J)
    return J, rng.normal(size=(*shape, n)), rng.normal(size=(*shape, n))


NUMBERS = ("si", "sai", "c", "q", "residual")
VERDICTS = ("identity", "limit", "holds")


@given(seeds)
@settings(deadline=None, max_examples=30)
def test_a_batch_is_its_systems(seed):
    J, u, f = random_batch(seed, 2, 3)
    batch = theorem2(J, u, f)
    assert batch.si.shape == batch.premises["normal"].holds.shape == (2, 3)
    assert "of 6 systems" in batch.premises["normal"].sentence
    for index in np.ndindex(2, 3):
        single = theorem2(J[index], u[index], f[index])
        for name in NUMBERS:
            assert getattr(batch, name)[index] == pytest.approx(getattr(single, name), rel=1e-7, abs=1e-9)
        for name in VERDICTS:
            assert getattr(batch, name)[index] == getattr(single, name)
        for name, premise in single.premises.items():
            assert batch.premises[name].holds[index] == premise.holds
            assert batch.premises[name].value[index] == pytest.approx(premise.value, rel=1e-7, abs=1e-9)


@given(seeds)
@settings(deadline=None, max_examples=30)
def test_numpy_and_torch_agree(seed):
    J, u, f = random_batch(seed, 6)
    J = J + J.swapaxes(1, 2)
    ours, theirs = theorem2(J, u, f), theorem2(*(torch.from_numpy(x) for x in (J, u, f)))
    for name in NUMBERS:
        np.testing.assert_allclose(getattr(theirs, name).numpy(), getattr(ours, name), rtol=1e-12, atol=1e-12)
    for name in VERDICTS:
        np.testing.assert_array_equal(getattr(theirs, name).numpy(), getattr(ours, name))
    mixed, u, f = random_batch(seed, 6)
    ours, theirs = theorem2(mixed, u, f), theorem2(torch.from_numpy(mixed), u, f)
    for name in ("si", "sai"):
        np.testing.assert_allclose(getattr(theirs, name).numpy(), getattr(ours, name), rtol=1e-12)
    single = theorem2(torch.from_numpy(mixed).float(), torch.from_numpy(u).float(), torch.from_numpy(f).float())
    assert single.c.dtype == torch.float32
    assert single.identity.tolist() == ours.identity.tolist()


eye = -np.eye(2)
REFUSED = [
    (lambda: theorem2(np.ones((2, 3)), np.ones(3), np.ones(3)), r"`J` must be square.*\(2, 3\)"),
    (lambda: theorem2(eye * np.nan, np.ones(2), np.ones(2)), "`J` must be finite, got nan"),
    (lambda: theorem2(np.ones((0, 2, 2)), np.ones((0, 2)), np.ones((0, 2))), "`J` is empty"),
    (lambda: theorem2(eye, np.ones(3), np.ones(2)), r"`u` must have shape \(2,\), one vector per `J`, got \(3,\)"),
    (lambda: theorem2(eye, np.ones(2), np.ones((1, 2))), r"`f` must have shape \(2,\)"),
    (lambda: theorem2(eye, np.zeros(2), np.ones(2)), "`u` is zero"),
    (lambda: theorem2(eye[None], np.zeros((1, 2)), np.ones((1, 2))), "`u` is zero at 0"),
    (lambda: theorem2(eye, np.ones(2), [1.0, np.inf]), "`f` must be finite, got inf at 1"),
    (lambda: theorem2(eye, np.ones(2), np.ones(2), small=0.0), "`small` must lie between 0 and 1, got 0.0"),
    (lambda: theorem2(eye, np.ones(2), np.ones(2), floor=-1.0), "`floor` must lie between 0 and 1, got -1.0"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_refusals_name_the_argument_and_the_value(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.slow
def test_ten_thousand_systems_cost_little_more_than_their_eigenvectors():
    rng = np.random.default_rng(0)
    J = rng.normal(size=(10_000, 20, 20))
    J, u, f = J + J.swapaxes(1, 2), rng.normal(size=(10_000, 20)), rng.normal(size=(10_000, 20))
    assert cost(lambda: theorem2(J, u, f), lambda: np.linalg.eigh(J), 3.0) <= 3.0
    result = theorem2(J, u, f)
    assert result.identity.all()
    assert result.residual.max() < 1e-10
