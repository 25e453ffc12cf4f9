"""Mass matrices: what of them is singular, and starts that satisfy the algebraic equations."""

import numpy as np
import pytest
from scipy.sparse import csc_array, diags_array

import odelab as ol
from odelab.engines import traced
from odelab.linear.algebraic import Pencil, equations_in_words
from odelab.mass import SINGULAR, Inverse, MassMatrix

FORMS = {
    "diagonal": np.array([2.0, 0.0, 1e-9, 0.0]),
    "dense": np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 3.0]]) * 1e-6,
    "sparse": csc_array(np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 0.0], [0.0, 2.0, 4.0]])),
    "units": np.diag([1e12, 1.0, 1e-12]) @ np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 1.0]]),
    "regular": np.array([[2.0, 1.0], [1.0, 2.0]]),
}


@pytest.mark.parametrize("form", FORMS)
def test_null_vectors_and_solutions(form):
    mass = MassMatrix(FORMS[form])
    M, (left, right, solve) = mass.dense, mass.parts
    rank = np.linalg.matrix_rank(M / np.abs(M).max(axis=1, keepdims=True, where=M != 0.0, initial=1e-300))
    assert left.shape == right.shape == (len(M), len(M) - rank)
    for rows in (left.T @ M, (M @ right).T):
        assert np.abs(rows).max(initial=0.0) <= 1e-14 * np.abs(M).max()
    f = M @ np.linspace(1.0, 2.0, len(M))
    np.testing.assert_allclose(M @ solve(f), f, rtol=1e-12, atol=1e-14 * np.abs(f).min())
    x = np.linspace(-1.0, 2.0, len(M))
    np.testing.assert_allclose(mass.times(x), M @ x, rtol=1e-15)
    np.testing.assert_array_equal(mass.sparse.toarray(), M)
    assert {(i, j): m for i, j, m in mass.entries} == {(i, j): M[i, j] for i, j in zip(*M.nonzero(), strict=True)}


@pytest.mark.parametrize("size", [3, 1500])
def test_a_condition_does_not_depend_on_units(size):
    units = 2.0 ** (np.arange(size) - size // 2).clip(-200, 200)
    matrix = diags_array([np.ones(size - 1), np.full(size, 4.0), np.ones(size - 1)], offsets=[-1, 0, 1]).tocsc()
    plain, other = Inverse(matrix), Inverse((diags_array(units) @ matrix).tocsc())
    assert plain.condition == other.condition < 10.0
    x = np.linspace(1.0, 2.0, size)
    np.testing.assert_allclose(other.solve(units * (matrix @ x)), x, rtol=1e-13)
    singular = matrix.tolil()
    singular[0] = singular[1]
    assert Inverse(singular.tocsc()).condition > SINGULAR


def test_a_start_is_moved_in_algebraic_directions_alone():
    robertson = ol.problems.robertson_dae().replace(u0=[1.0, 0.0, 0.1])
    u, condition = ol.consistent(robertson)
    assert u[:2].tolist() == [1.0, 0.0]
    assert abs(u.sum() - 1.0) <= 2e-16
    assert condition == 1.0
    assert ol.solve(robertson, ol.RODAS4).message.endswith("u0[2] moved by 0.1 to satisfy the algebraic equations")
    amplifier = ol.problems.transistor_amplifier()
    moved = ol.consistent(amplifier.replace(u0=amplifier.u0 + 0.01))
    np.testing.assert_allclose(amplifier.mass @ moved.u, amplifier.mass @ (amplifier.u0 + 0.01), atol=1e-20)
    said = equations_in_words(amplifier.replace(u0=amplifier.u0 + 0.01), moved)
    assert "u0[0] moved by 0.01, u0[1] moved by 0.01, u0[3] moved by" in said
    assert "3 others by no more" in said


@pytest.mark.parametrize("name", ol.problems.daes())
def test_a_consistent_start_is_kept(name):
    problem = ol.problems.daes()[name]()
    found = ol.consistent(problem)
    assert found.u.tolist() == problem.u0.tolist()
    assert "moved" not in equations_in_words(problem, found)
    assert f"{problem.mass_matrix.equations} algebraic equation" in equations_in_words(problem, found)


def starts_found(problem):
    """The start that plain Python finds, and that of the kernel of a run, which does not ask plain Python."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traced, "begin", None)
        sol = ol.solve(problem, ol.RODAS4, engine="compiled", max_steps=1, throw=False)
    return ol.consistent(problem).u, sol.u[0]


ASKING = (ol.consistent, lambda problem: ol.solve(problem, ol.RODAS4))  # for a consistent start


def test_newton_comes_from_far():
    def far(t, u, params):
        return (u[1], ol.maths.exp(u[1]) - params[0] * u[0])

    problem = ol.Problem(far, [1.0, 30.0], (0.0, 1.0), (1e-3,), mass=[1.0, 0.0])
    for u in starts_found(problem):
        assert u[1] == pytest.approx(np.log(1e-3), rel=1e-12)


def test_newton_takes_shorter_steps_where_full_ones_run_away():
    """On v / sqrt(1 + v^2) its full steps lead from v to -v^3."""

    def flat(t, u, params):
        v = u[1] - 3.0
        return (u[1], v / ol.maths.sqrt(1.0 + v * v))

    problem = ol.Problem(flat, [1.0, 8.0], (0.0, 1.0), mass=[1.0, 0.0])
    for u in starts_found(problem):
        assert u[1] == pytest.approx(3.0, rel=1e-12)


def test_without_a_state_near_it_says_so():
    def impossible(t, u, params):
        return (u[1], u[1] * u[1] + 1.0)

    for ask in ASKING:
        with pytest.raises(ValueError, match=r"no state near `u0`.*give a `u0` nearer to it"):
            ask(ol.Problem(impossible, [1.0, 1.0], (0.0, 1.0), mass=[1.0, 0.0]))

    def undefined(t, u, params):
        return (u[1], ol.maths.sqrt(u[1]))

    for ask in ASKING:
        with pytest.raises(ValueError, match=r"cannot be solved from `u0`.*nan"):
            ask(ol.Problem(undefined, [1.0, -1.0], (0.0, 1.0), mass=[1.0, 0.0]))


def test_a_state_that_satisfies_equations_without_a_derivative_is_not_said_to_be_missing():
    problem = ol.Problem(lambda t, u, params: (-u[1], abs(u[1] - u[0])), [1.0, 2.0], (0.0, 1.0), mass=[1.0, 0.0])
    for ask in ASKING:
        with pytest.raises(ValueError, match=r"singular \(condition inf"):
            ask(problem)


def rooted(t, u, params):
    x, y = u
    return (-y, y * y - (x if t < 0.5 else -x))


@pytest.mark.parametrize("engine", ["auto", "python"])
def test_a_run_of_an_ensemble_without_a_start_disturbs_no_other(engine):
    problem = ol.Problem(rooted, [1.0, 1.0], (0.0, 0.25), mass=[1.0, 0.0])
    starts = np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, 0.0], [2.0, 1.0]])
    runs = ol.ensemble(problem, ol.RODAS4, u0=starts, engine=engine)
    assert runs.status.tolist() == ["ok", "no_consistent_start", "no_consistent_start", "ok"]
    assert runs.t[1:3].tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(runs.u[1:3], starts[1:3])
    others = ol.ensemble(problem, ol.RODAS4, u0=starts[[0, 3]], engine=engine)
    np.testing.assert_array_equal(runs.u[[0, 3]], others.u)
    assert "2 no_consistent_start (the first is run 1, at t = 0)" in runs.message


def test_what_was_computed_is_there_where_no_start_is_found_behind_a_stop():
    problem = ol.Problem(rooted, [1.0, 1.0], (0.0, 1.0), mass=[1.0, 0.0])
    sol = ol.solve(problem, ol.RODAS4, tstops=[0.5], throw=False)
    assert (sol.status, sol.step_t[-1]) == ("no_consistent_start", 0.5)
    assert "at t = 0.5: Newton's method ended" in sol.message
    with pytest.raises(ol.RunFailed, match="no state near"):
        ol.solve(problem, ol.RODAS4, tstops=[0.5])


def position(t, u, params):
    x, y, p, q, pull = u
    return (p, q, -pull * x, -pull * y - 9.81, x * x + y * y - 1.0)


def velocity(t, u, params):
    x, y, p, q, pull = u
    return (p, q, -pull * x, -pull * y - 9.81, x * p + y * q)


def dependent(t, u, params):
    return (u[1], u[1] + u[2] - u[0], 3.0 * (u[1] + u[2]) - u[0], -u[3], u[4])


def in_other_unknowns(problem, seed):
    """The same in unknowns and equations mixed at random: what was zero in it is now rounding."""
    mix, turn = np.random.default_rng(seed).standard_normal((2, problem.size, problem.size))

    def rhs(t, v, params):
        return mix @ np.array(problem.rhs(t, turn @ v, params))

    start, mass = np.linalg.solve(turn, problem.u0), mix @ problem.mass_matrix.dense @ turn
    return ol.Problem(rhs, start, problem.t_span, problem.params, mass=mass)


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("rhs", [position, velocity, dependent])
def test_an_index_above_one_is_refused_with_its_condition(rhs, mixed):
    mass = [1.0, 0.0, 0.0, 1.0, 1.0] if rhs is dependent else [1.0, 1.0, 1.0, 1.0, 0.0]
    problem = ol.Problem(rhs, [1.0, 0.0, 0.0, 0.0, 0.0], (0.0, 1.0), mass=mass)
    problem = in_other_unknowns(problem, 3) if mixed else problem
    with pytest.raises(ValueError, match=r"index above 1.*singular \(condition"):
        ol.consistent(problem)


def test_kernels_do_not_take_rounding_for_a_pivot():
    """All equations hold at the start, and what is left of the second row is 1e-16."""
    problem = ol.Problem(
        lambda t, u, params: (u[1], 0.1 * u[1] + 0.3 * u[2], 0.3 * u[1] + 0.9 * u[2]),
        [1.0, 0.0, 0.0],
        (0.0, 1.0),
        mass=[1.0, 0.0, 0.0],
    )
    for ask in ASKING:
        with pytest.raises(ValueError, match=r"index above 1.*singular \(condition"):
            ask(problem)


@pytest.mark.parametrize("name", ol.problems.daes())
def test_mixed_equations_are_the_same_problem(name):
    problem = ol.problems.daes()[name]()
    mixed = in_other_unknowns(problem, 4)
    assert mixed.mass_matrix.equations == problem.mass_matrix.equations
    plain, other = (np.linalg.eigvals(ol.reduced_jacobian(one)) for one in (problem, mixed))
    for value in plain:
        assert np.abs(other - value).min() <= 1e-6 * np.abs(plain).max()


@pytest.mark.parametrize("name", ol.problems.daes())
def test_slopes_satisfy_all_equations(name):
    """M u' = f, and the algebraic equations stay satisfied: their derivative along u' is zero."""
    problem = ol.problems.daes()[name]()
    sol = ol.solve(problem.replace(t_span=(0.0, 0.01)), ol.RODAS5P, ol.adaptive(1e-10, 1e-12))
    pencil, t, u = Pencil(problem), 0.01, sol.end_u
    slope = pencil.slope(t, u)
    f, J, f_t = pencil.derivatives(t, u)
    left = problem.mass_matrix.parts.left
    tolerance = 1e-9 * np.abs(f).max()  # the state satisfies its equations as nearly as its run
    np.testing.assert_allclose(problem.mass_matrix.times(slope), f, atol=tolerance)
    change = left.T @ (J @ slope + f_t)
    assert (np.abs(change) <= 1e-12 * (np.abs(left.T) @ np.abs(J) @ np.abs(slope))).all()


@pytest.mark.parametrize(
    ("mass", "error", "words"),
    [
        ("unit", TypeError, "constant matrix of numbers"),
        (lambda t: np.eye(2), TypeError, "depends on t or u is not supported"),
        (np.ones(3), ValueError, r"shape \(2, 2\), or \(2,\)"),
        (np.ones((2, 3)), ValueError, r"got shape \(2, 3\)"),
        ([1.0, np.nan], ValueError, "finite"),
        (np.zeros((2, 2)), ValueError, "no derivative is left"),
    ],
)
def test_what_is_no_mass_matrix_is_refused(mass, error, words):
    with pytest.raises(error, match=words):
        ol.Problem(lambda t, u, params: (u[1], u[0]), [1.0, 1.0], (0.0, 1.0), mass=mass)
