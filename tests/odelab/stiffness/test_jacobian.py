"""Four ways to one Jacobian: against each other, against the catalogue, and where each of them ends."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator, eigs

from odelab import maths, problems
from odelab.problem import Problem
from odelab.stiffness.jacobian import jacobian, jvp, vjp
from odelab.stiffness.operator import JacobianOperator, as_operator

torch = pytest.importorskip("torch")

PROBLEMS = {name: factory() for name, factory in problems.catalogue().items()}
GIVEN = [name for name, problem in PROBLEMS.items() if problem.jacobian is not None and problem.size <= 100]
COMPONENT = [name for name in GIVEN if PROBLEMS[name].form == "component"]
seeds = st.integers(0, 2**32 - 1)


def near_the_start(problem, seed):
    return problem.u0 + 0.1 * np.random.default_rng(seed).random(problem.size)


def dense(J):
    return J.toarray() if sparse.issparse(J) else J


def relative(J, reference):
    return np.abs(dense(J) - reference).max() / np.abs(reference).max()


def component(t, u, params):
    a, b, c = u
    return (-a * b + t, maths.exp(-a) * c, 3.0)


def array(t, u, params):
    return component(t, u, params) if not isinstance(u, np.ndarray) else np.array(component(t, u, params))


def in_place(t, u, params, out):
    out[0], out[1], out[2] = component(t, u, params)


EXACT = np.array([[-2.0, -0.5, 0.0], [-np.exp(-0.5) * 3.0, 0.0, np.exp(-0.5)], [0.0, 0.0, 0.0]])
POINT = np.array([0.5, 2.0, 3.0])


@pytest.mark.parametrize("rhs", [component, array, in_place])
@pytest.mark.parametrize(
    ("how", "tolerance"), [("central", 1e-9), ("complex", 1e-15), ("torch", 1e-15), ("auto", 1e-9)]
)
def test_every_form_every_way(rhs, how, tolerance):
    J = jacobian(rhs, 1.0, POINT, how=how)
    assert isinstance(J, np.ndarray)
    np.testing.assert_allclose(J, EXACT, atol=tolerance * 3.0)


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize(("how", "tolerance"), [("central", 5e-9), ("complex", 1e-14)])
def test_differences_agree_with_the_catalogue(name, how, tolerance):
    problem = PROBLEMS[name]
    for u in (problem.u0, near_the_start(problem, 0)):
        given_by_hand = dense(jacobian(problem, u=u, how="analytic"))
        assert relative(jacobian(problem, u=u, how=how), given_by_hand) < tolerance


@pytest.mark.parametrize("name", COMPONENT)
def test_automatic_differentiation_agrees_with_the_catalogue(name):
    problem = PROBLEMS[name]
    u = near_the_start(problem, 1)
    assert relative(jacobian(problem, u=u, how="torch"), dense(jacobian(problem, u=u, how="analytic"))) < 1e-14


@given(seeds, st.sampled_from(COMPONENT), st.sampled_from(["analytic", "central", "complex", "torch"]))
@settings(deadline=None, max_examples=40)
def test_products_agree_with_the_matrix(seed, name, how):
    problem = PROBLEMS[name]
    u = near_the_start(problem, seed)
    J = dense(jacobian(problem, u=u, how="analytic"))
    v = np.random.default_rng(seed).normal(size=problem.size)
    scale = np.abs(J).max() * np.abs(v).max() * problem.size
    tolerance = (1e-7 if how == "central" else 1e-13) * scale
    np.testing.assert_allclose(jvp(problem, u=u, how=how)(v), J @ v, atol=tolerance)
    np.testing.assert_allclose(vjp(problem, u=u, how=how)(v), J.T @ v, atol=tolerance)


@given(seeds, st.floats(-1e3, 1e3))
@settings(deadline=None, max_examples=20)
def test_a_product_is_linear_in_its_vector(seed, c):
    problem = PROBLEMS["lorenz"]
    v, w = np.random.default_rng(seed).normal(size=(2, 3))
    for how in ("complex", "torch"):
        product = jvp(problem, u=problem.u0, how=how)
        np.testing.assert_allclose(product(v + c * w), product(v) + c * product(w), rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(product(np.zeros(3)), np.zeros(3))
    np.testing.assert_array_equal(jvp(problem, how="central")(np.zeros(3)), np.zeros(3))


def test_central_steps_suit_components_of_every_size():
    """sqrt wants a step relative to its own component, 1 - b one relative to the largest."""

    def mixed(t, u, params):
        a, b, c = u
        return (maths.sqrt(b) - a, 1.0 - b + maths.log(c), a * b * c)

    u = np.array([1.0, 1e-10, 1e-5])
    exact = np.array([[-1.0, 0.5e5, 0.0], [0.0, -1.0, 1e5], [1e-15, 1e-5, 1e-10]])
    np.testing.assert_allclose(jacobian(mixed, 0.0, u, how="central"), exact, rtol=1e-5, atol=1e-9)


def test_central_steps_shrink_near_a_singularity():
    problem = PROBLEMS["arenstorf"]  # starts 0.006 from the moon, in units of its distance from the earth
    assert relative(jacobian(problem, how="central"), jacobian(problem, how="complex")) < 1e-7


def test_a_tensor_state_gives_a_tensor():
    u = torch.tensor([0.5, 2.0, 3.0], dtype=torch.float32)
    J = jacobian(component, 1.0, u)
    assert isinstance(J, torch.Tensor)
    assert J.dtype == torch.float32
    np.testing.assert_allclose(J.numpy(), EXACT, rtol=1e-6)
    for v in (torch.ones(3), np.ones(3)):
        assert type(jvp(component, 1.0, u)(v)) is type(v)
        assert type(vjp(component, 1.0, u)(v)) is type(v)


def test_the_problems_own_jacobian_comes_first():
    problem = Problem(component, POINT, (1.0, 2.0), jacobian=lambda t, u, params: sparse.csr_array(EXACT))
    assert sparse.issparse(jacobian(problem))
    np.testing.assert_allclose(jvp(problem)(np.ones(3)), EXACT.sum(1))
    np.testing.assert_allclose(JacobianOperator.at(problem).dense(), EXACT)


def kink(t, u, params):
    a, b = u
    return (maths.abs(a) * b, maths.maximum(a, b))


def test_the_complex_step_refuses_what_is_not_analytic():
    u = np.array([-0.3, 2.0])
    with pytest.raises(ValueError, match=r"disagrees with a real difference in component 0.*how='central'"):
        jacobian(kink, 0.0, u, how="complex")
    for how in ("central", "torch"):
        np.testing.assert_allclose(jacobian(kink, 0.0, u, how=how), [[-2.0, 0.3], [0.0, 1.0]], atol=1e-9)


def root(t, u, params):
    return (maths.sqrt(u[0]),)


def numpy_only(t, u, params):
    return np.sin(np.asarray(u, dtype=float) * np.ones(2))


REFUSED = [
    (lambda: jacobian(component, 0.0, POINT, how="exact"), ValueError, "`how` must be one of .*got 'exact'"),
    (lambda: jacobian(component, 0.0, POINT, how="analytic"), ValueError, "needs the problem's own `jacobian`"),
    (lambda: jacobian(component, 0.0), TypeError, "`u` is missing"),
    (lambda: jacobian("rhs", 0.0, POINT), TypeError, "`problem` must be a Problem or a function"),
    (lambda: jacobian(component, 0.0, POINT * np.nan), ValueError, "`u` must be finite"),
    (lambda: jacobian(component, 0.0, POINT[None]), ValueError, r"`u` must be one state, \(n,\), got shape \(1, 3\)"),
    (lambda: jacobian(component, 0.0, torch.ones(3), how="central"), ValueError, "works on NumPy states"),
    (lambda: jacobian(numpy_only, 0.0, np.ones(2), how="torch"), TypeError, "could not follow the right-hand side"),
    (lambda: jacobian(root, 0.0, np.zeros(1), how="central"), ValueError, "no finite derivative of component 0"),
    (lambda: jacobian(root, 0.0, np.zeros(1), how="torch"), ValueError, "no finite derivative of component 0"),
    (
        lambda: jacobian(Problem(component, POINT, (0.0, 1.0), jacobian=lambda t, u, params: np.eye(2))),
        ValueError,
        r"`jacobian` returned shape \(2, 2\) for 3 components",
    ),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_refusals_name_the_argument_and_the_value(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("how", ["analytic", "central", "complex", "torch"])
def test_an_operator_is_its_matrix(how):
    problem = PROBLEMS["hires"]
    operator = JacobianOperator.at(problem, how=how)
    J = dense(jacobian(problem, how="analytic"))
    assert operator.shape == (8, 8)
    assert operator.dtype == np.float64
    np.testing.assert_allclose(operator.dense(), J, atol=1e-7)
    v = np.arange(8.0)
    np.testing.assert_allclose(operator @ v, J @ v, atol=1e-6)
    np.testing.assert_allclose(operator.rmatvec(v), J.T @ v, atol=1e-6)


def test_scipy_takes_an_operator_as_it_is():
    J = np.random.default_rng(0).normal(size=(30, 30))
    operator = JacobianOperator((30, 30), lambda v: J @ v)
    np.testing.assert_allclose(aslinearoperator(operator).matvec(np.ones(30)), J.sum(1))
    largest = eigs(operator, k=2, which="LM", return_eigenvectors=False)
    assert np.abs(largest).max() == pytest.approx(np.abs(np.linalg.eigvals(J)).max())
    with pytest.raises(TypeError, match="no `rmatvec`"):
        operator.rmatvec(np.ones(30))


def test_an_operator_of_everything_that_is_one():
    J = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]])
    for form in (J, J.tolist(), torch.from_numpy(J), torch.from_numpy(J).to_sparse(), sparse.coo_array(J)):
        operator = as_operator(form)
        np.testing.assert_array_equal(operator.dense(), J)
        np.testing.assert_array_equal(operator.matvec(np.ones(3)), J.sum(1))
        np.testing.assert_array_equal(operator.rmatvec(np.ones(2)), J.sum(0))
    np.testing.assert_array_equal(as_operator(aslinearoperator(J)).dense(), J)
    with pytest.raises(ValueError, match=r"`J` must be one matrix, \(m, n\), got shape \(1, 2, 3\)"):
        as_operator(J[None])
    with pytest.raises(ValueError, match="`J` must be finite, got nan"):
        as_operator(sparse.coo_array(J * np.nan))
    with pytest.raises(ValueError, match="`shape` must be two positive numbers"):
        JacobianOperator((0, 3), lambda v: v)


def test_a_state_in_place_of_the_time_is_told():
    problem = problems.van_der_pol()
    for t in (problem.u0, torch.zeros(2), "0"):
        with pytest.raises(TypeError, match=r"`t` must be one time, got .*; the order is jacobian\(problem, t, u\)"):
            jacobian(problem, t)
    assert jacobian(problem, torch.tensor(0.0)).shape == (2, 2)
