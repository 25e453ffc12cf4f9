"""Problems M u' = f(t, u): M = I is no mass, orders hold with algebraic equations, and what cannot be is refused."""

import numpy as np
import pytest
import scipy.linalg
from scipy.sparse import csc_array, diags_array, eye_array, kron

import odelab as ol
from odelab.engines import traced
from odelab.kernels.implicit import Factors
from odelab.methods import order_conditions
from tests.odelab.solver_cases import NAMED

ENGINES = ("python", "compiled")
TAKING = (ol.RODAS4, ol.RODAS5P)
MIX = np.array([[1.0, 0.2, 0.0], [0.0, 1.0, -0.3], [0.5, 0.0, 1.0]])
TURN = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 0.5], [0.3, 0.0, 1.0]])


def tied(t, u, params):
    """Of index 1 and nonlinear in all: solved by (exp(-t), sin t, 1 + cos t)."""
    y1, y2, z = u
    known = 1.0 + ol.maths.cos(t)
    near, grown = z / known, y1 * ol.maths.exp(t) - 1.0
    return (
        -y1 * near * near,
        ol.maths.cos(t) * near * (1.0 + 0.5 * grown),
        z - known + 0.25 * (z * z - known * known) + (y2 - ol.maths.sin(t)) * z + grown,
    )


def solution(t, params=()):
    return np.stack([np.exp(-t), np.sin(t), 1.0 + np.cos(t)], -1)


def turned(t, u, params):
    return MIX @ np.array(tied(t, TURN @ u, params))


BACK = np.linalg.inv(TURN)
TIED = ol.Problem(tied, [1.0, 0.0, 2.0], (0.0, 1.0), exact=solution, mass=[1.0, 1.0, 0.0])
TURNED = ol.Problem(
    turned,
    BACK @ TIED.u0,
    (0.0, 1.0),
    exact=lambda t, params: solution(t) @ BACK.T,
    mass=MIX @ np.diag([1.0, 1.0, 0.0]) @ TURN,
)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", [ol.ROS2, *TAKING], **NAMED)
@pytest.mark.parametrize("name", ["robertson", "forced_linear", "pollu"])
def test_the_unit_matrix_is_no_mass_to_the_bit(name, method, engine):
    problem, controller = ol.problems.catalogue()[name](), ol.adaptive(1e-5, 1e-9)
    plain = ol.solve(problem, method, controller, engine=engine)
    for unit in (np.ones(problem.size), np.eye(problem.size), csc_array(np.eye(problem.size))):
        sol = ol.solve(problem.replace(mass=unit), method, controller, engine=engine)
        assert sol.step_t.tolist() == plain.step_t.tolist()
        assert sol.u.tolist() == plain.u.tolist()
        assert sol.engine == plain.engine


def test_the_unit_matrix_is_no_mass_of_a_band():
    problem = ol.problems.heat_1d()
    plain = ol.solve(problem, ol.RODAS4, engine="python")
    for unit in (np.ones(problem.size), eye_array(problem.size, format="csc")):
        assert ol.solve(problem.replace(mass=unit), ol.RODAS4).u.tolist() == plain.u.tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_regular_mass_is_divided_by(engine):
    matrix = np.array([[-3.0, 1.0], [0.5, -20.0]])
    weights = np.array([[2.0, 1.0], [-1.0, 3.0]])
    problem = ol.Problem(lambda t, u, params: matrix @ u, [1.0, 2.0], (0.0, 1.0), mass=weights)
    end = scipy.linalg.expm(np.linalg.solve(weights, matrix)) @ problem.u0
    sol = ol.solve(problem, ol.RODAS5P, ol.adaptive(1e-9, 1e-11), engine=engine)
    np.testing.assert_allclose(sol.end_u, end, rtol=1e-8)
    assert "M is regular" in sol.message


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("method", "order", "within"), [(ol.RODAS4, 4.0, 0.15), (ol.RODAS5P, 5.0, 0.2)], **NAMED)
@pytest.mark.parametrize("problem", [TIED, TURNED], **NAMED)
def test_the_order_on_index_one(problem, method, order, within, engine):
    found = ol.observed_order(method, problem, h=[1 / 8, 1 / 16, 1 / 32, 1 / 64], engine=engine)
    assert abs(found.order - order) <= within


@pytest.mark.parametrize(("method", "order"), [(ol.RODAS4, 4.0), (ol.RODAS5P, 5.0)], **NAMED)
def test_the_order_of_the_pendulum_against_a_sharp_run(method, order):
    found = ol.observed_order(method, ol.problems.pendulum_dae(), h=[1 / 8, 1 / 16, 1 / 32, 1 / 64])
    assert abs(found.order - order) <= 0.3


def test_work_and_precision_of_a_dae():
    table = ol.work_precision(ol.problems.pendulum_dae(), [ol.RODAS4, ol.RODAS5P], [1e-4, 1e-6], repeat=0)
    assert table.truth == "RODAS5P at rtol 1e-12"
    assert all(row.error <= 1e-3 for row in table.rows)


@pytest.mark.parametrize(("method", "inside"), [(ol.RODAS4, 2.8), (ol.RODAS5P, 3.8)], **NAMED)
def test_the_order_inside_of_steps(method, inside):
    times = np.linspace(0.0, 1.0, 777)
    errors = [np.abs(ol.solve(TIED, method, ol.fixed(h))(times) - solution(times)).max() for h in (1 / 16, 1 / 64)]
    assert np.log2(errors[0] / errors[1]) / 2.0 >= inside


def test_orders_on_index_one_follow_from_the_coefficients():
    assert [method.dae_order for method in (ol.ROS2, ol.RODAS4, ol.RODAS5P)] == [2, 4, 5]
    assert [method.dae_order for method in (ol.DOPRI5, ol.RKC2, ol.ESDIRK43, ol.BDF)] == [0, 0, 0, 0]
    # of order 2, with R(infinity) = -1: an error in an algebraic component never dies out
    half = ol.RosenbrockMethod("HALF", order=2, gamma=0.5, a=[[]], C=[[]], m=[2.0], l_stable=False)
    assert (half.at_infinity, half.dae_order) == (-1.0, 0)


def test_trees_with_algebraic_parts_are_as_many_as_there_are():
    """Without trees of z, those of y are the rooted trees."""
    mixed = order_conditions.mixed_trees
    assert [len(mixed(nodes, False)) for nodes in (1, 2, 3, 4)] == [1, 1, 3, 9]
    assert [len(mixed(nodes, True)) for nodes in (1, 2, 3)] == [0, 1, 3]

    def is_of_y(tree):
        return not tree.of_z and all(map(is_of_y, tree.branches))

    for nodes in range(1, 6):
        assert sum(map(is_of_y, mixed(nodes, False))) == len(order_conditions.trees(nodes))


@pytest.mark.parametrize(("method", "steps"), [(ol.RODAS4, 6000), (ol.RODAS5P, 3500)], **NAMED)
def test_the_transistor_amplifier(method, steps):
    problem = ol.problems.transistor_amplifier()
    sol = ol.solve(problem, method, ol.adaptive(1e-6, 1e-6))
    assert sol.steps + sol.rejected <= steps
    assert np.abs(sol.end_u - problem.references[0].u).max() <= 1e-6
    assert "3 algebraic equations (index 1, condition" in sol.message


@pytest.mark.parametrize("method", TAKING, **NAMED)
def test_robertson_as_a_dae_is_as_exact_as_the_ode(method):
    errors = []
    for make in (ol.problems.robertson_dae, ol.problems.robertson):
        problem = make().replace(t_span=(0.0, 1e11))
        sol = ol.solve(problem, method, ol.adaptive(1e-6, 1e-12))
        errors.append(np.abs(sol.end_u / problem.references[-1].u - 1.0).max())
    assert errors[0] <= 1.5 * errors[1]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", TAKING, **NAMED)
def test_the_pendulum_keeps_its_length(method, engine):
    problem = ol.problems.pendulum_dae()
    sol = ol.solve(problem, method, ol.adaptive(1e-6, 1e-9), engine=engine)
    assert abs(sol.end_u[0] ** 2 + sol.end_u[1] ** 2 - 1.0) <= 1e-5
    swing = ol.Problem(lambda t, u, params: (u[1], -9.81 * ol.maths.sin(u[0])), [1.2, 0.0], problem.t_span)
    angle, rate = ol.solve(swing, ol.DOP853, ol.adaptive(1e-12, 1e-12)).end_u
    sine, cosine = np.sin(angle), np.cos(angle)
    expected = [sine, -cosine, rate * cosine, rate * sine, rate * rate + 9.81 * cosine]
    np.testing.assert_allclose(sol.end_u, expected, atol=1e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_equations_in_another_order(engine):
    """Rows of M and J then have zeros on their diagonals, which elimination without exchanges cannot divide by."""

    def shuffled(t, u, params):
        y, z1, z2 = u
        return (z1 - 2.0 * y, z2 - y, -z2)

    problem = ol.Problem(
        shuffled, [1.0, 0.0, 0.0], (0.0, 1.0), mass=[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    )
    sol = ol.solve(problem, ol.RODAS4, ol.adaptive(1e-8, 1e-10), engine=engine)
    np.testing.assert_allclose(sol.end_u, np.exp(-1.0) * np.array([1.0, 2.0, 1.0]), rtol=1e-8)
    assert sol.engine == engine


def test_straight_elimination_exchanges_equations_without_a_diagonal():
    """The fall-back to pivoting would hide it in a run, at many times its cost."""
    M = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 2.0, 0.0]])
    J = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, 0.5, 0.0]])
    rows, mass = ([{j: x for j, x in enumerate(row) if x} for row in matrix.tolist()] for matrix in (J, M))
    factors, right = Factors(rows, 0.1, mass), [1.0, 2.0, 3.0]
    np.testing.assert_allclose(list(factors.solve(right)), np.linalg.solve(M - 0.1 * J, right), rtol=1e-13)
    assert factors.sound


@pytest.mark.parametrize("problem", [*ol.problems.daes().values()], **NAMED)
def test_a_kernel_finds_the_start_of_plain_python(problem, monkeypatch):
    """By the same passes, without asking it; the first step from there is the same, too."""
    problem = problem()
    problem = problem.replace(u0=problem.u0 + 0.01 * np.abs(problem.u0).max())
    plain = ol.solve(problem, ol.RODAS4, engine="python", max_steps=1, throw=False)
    monkeypatch.setattr(traced, "begin", None)
    sol = ol.solve(problem, ol.RODAS4, engine="compiled", max_steps=1, throw=False)
    np.testing.assert_allclose(sol.u[0], ol.consistent(problem).u, rtol=1e-14, atol=1e-17)
    np.testing.assert_allclose(sol.h, plain.h, rtol=1e-10)
    assert sol.message == plain.message


@pytest.mark.parametrize("engine", ENGINES)
def test_a_pivot_that_is_zero_at_the_start(engine):
    def crossing(t, u, params):
        y, z1, z2 = u
        return (1.0, y * z1 + z2 - 1.0, z1 - y * z2 - 2.0)

    problem = ol.Problem(crossing, [0.0, 0.0, 0.0], (0.0, 1.0), mass=[1.0, 0.0, 0.0])
    sol = ol.solve(problem, ol.RODAS4, engine=engine)
    np.testing.assert_allclose(sol.end_u, [1.0, 1.5, -0.5], rtol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_trials_that_overflow_are_rejected(engine):
    problem = ol.problems.transistor_amplifier()
    sol = ol.solve(problem, ol.RODAS4, ol.adaptive(1e-4, 1e-4, first_step=0.05), engine=engine)
    assert sol.rejected > 0
    assert np.abs(sol.end_u - problem.references[0].u).max() <= 1e-3


def test_a_sparse_system_with_algebraic_rows():
    """Heat on a square whose boundary warms up as algebraic equations say; all of it is heated as fast."""
    k = 40
    x = np.linspace(0.0, 1.0, k)
    inner = np.kron((x > 0.0) & (x < 1.0), (x > 0.0) & (x < 1.0)).astype(float)
    line = diags_array([np.ones(k - 1), np.full(k, -2.0), np.ones(k - 1)], offsets=[-1, 0, 1]) * (k - 1) ** 2
    laplacian = kron(line, eye_array(k)) + kron(eye_array(k), line)
    matrix = (diags_array(inner) @ laplacian - diags_array(1.0 - inner)).tocsr()
    wave = np.kron(np.sin(np.pi * x), np.sin(np.pi * x))
    rate = 4.0 * (1.0 - np.cos(np.pi / (k - 1))) * (k - 1) ** 2

    def rhs(t, u, params):
        return matrix @ u + inner + (1.0 - inner) * t

    for mass in (inner, diags_array(inner)):
        problem = ol.Problem(rhs, wave + (1.0 - inner), (0.0, 0.05), mass=mass)
        sol = ol.solve(problem, ol.RODAS4, ol.adaptive(1e-6, 1e-8))
        np.testing.assert_allclose(sol.end_u, np.exp(-0.05 * rate) * wave + 0.05, atol=1e-6)
        assert f"{4 * k - 4} algebraic equations" in sol.message
        assert "sparse" in sol.derivatives


def test_a_band_with_a_mass_and_thousands_of_algebraic_unknowns():
    n = 2000

    def pairs(t, u, params):
        y, z = u[:n], u[n:]
        return np.concatenate([-z, z - y + 0.1 * z])

    mass = np.concatenate([np.ones(n), np.zeros(n)])
    sol = ol.solve(ol.Problem(pairs, np.ones(2 * n), (0.0, 1.0), mass=mass), ol.RODAS4, ol.adaptive(1e-8, 1e-10))
    np.testing.assert_allclose(sol.end_u[:n], np.exp(-1.0 / 1.1), rtol=1e-7)
    assert "banded" in sol.derivatives


def test_finite_elements_have_a_regular_sparse_mass():
    n = 400
    h = 1.0 / (n + 1)

    def band(beside, main):
        return diags_array([np.full(n - 1, beside), np.full(n, main), np.full(n - 1, beside)], offsets=[-1, 0, 1])

    stiffness, wave = band(-1.0 / h, 2.0 / h).tocsr(), np.sin(np.pi * h * np.arange(1, n + 1))
    rate = 6.0 / h**2 * (1.0 - np.cos(np.pi * h)) / (2.0 + np.cos(np.pi * h))
    problem = ol.Problem(lambda t, u, params: -(stiffness @ u), wave, (0.0, 0.1), mass=band(h / 6.0, 4.0 * h / 6.0))
    sol = ol.solve(problem, ol.RODAS4, ol.adaptive(1e-8, 1e-10))
    np.testing.assert_allclose(sol.end_u, np.exp(-0.1 * rate) * wave, rtol=1e-7)


@pytest.mark.parametrize("engine", ENGINES)
def test_runs_backwards_and_in_pieces(engine):
    back = TIED.replace(t_span=(1.0, 0.0), u0=solution(1.0))
    sol = ol.solve(back, ol.RODAS4, ol.adaptive(1e-8, 1e-8), engine=engine)
    np.testing.assert_allclose(sol.end_u, TIED.u0, atol=1e-7)
    # What an event changes, and what jumps at a stop, is made consistent: the pull follows the new velocity.
    pendulum = ol.problems.pendulum_dae()
    brake = ol.Event(lambda t, u, params: u[0], change=lambda t, u, params: [*u[:2], 0.5 * u[2], 0.5 * u[3], 0.0])
    sol = ol.solve(pendulum, ol.RODAS5P, ol.adaptive(1e-8, 1e-8), events=brake, engine=engine)
    at = int(np.flatnonzero(np.isin(sol.t, sol.events[0].t))[0])
    x, y, p, q, pull = sol.u[at]
    assert pull == pytest.approx((p * p + q * q - 9.81 * y) / (x * x + y * y), rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_first_step_takes_the_slope_of_the_state_and_not_the_right_hand_side(engine):
    """In other units the same run: f of this problem is 1e9 times its slope."""
    matrix = np.array([[-1.0, 1.0], [1.0, 2.0]])
    sizes = []
    for unit in (1.0, 1e9):
        problem = ol.Problem(
            lambda t, u, params, unit=unit: unit * (matrix @ u), [1.0, -0.5], (0.0, 1.0), mass=[unit, 0.0]
        )
        sizes.append(ol.solve(problem, ol.RODAS4, engine=engine).h[0])
    assert sizes[1] == pytest.approx(sizes[0], rel=1e-6)


def test_states_between_which_nothing_is_kept():
    problem = ol.problems.robertson_dae().replace(u0=[1.0, 0.0, 0.1])
    kept, ends = (ol.solve(problem, ol.RODAS4, dense=dense) for dense in (True, False))
    assert ends.u[-1].tolist() == kept.end_u.tolist()
    assert ends.u[0].tolist() == kept.u[0].tolist()
    assert kept.message == ends.message


def test_messages_of_all_ends_tell_of_the_algebraic_equations():
    pendulum = ol.problems.pendulum_dae()
    told = "1 algebraic equation (index 1, condition 1)"
    ended = ol.solve(pendulum, ol.RODAS4, events=ol.Event(lambda t, u, params: u[0], terminal=1))
    assert ended.status == "event"
    spent = ol.solve(pendulum, ol.RODAS4, max_steps=5, throw=False)
    assert spent.status == "max_steps"
    for sol in (ended, spent, ol.solve(pendulum, ol.RODAS4)):
        assert sol.message.endswith(told)
        assert sol.message.count(told) == 1


def test_a_method_that_switches_takes_its_implicit_member():
    sol = ol.solve(ol.problems.pendulum_dae(), ol.AUTO)
    assert sol.method is ol.RODAS4
    assert "takes RODAS4 alone, as there is a mass matrix" in sol.message


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RKC2, ol.ESDIRK43, ol.auto(implicit=ol.ESDIRK43), ol.BDF], **NAMED)
def test_other_methods_refuse_in_a_sentence(method):
    for problem in (ol.problems.pendulum_dae(), ol.problems.robertson().replace(mass=[1.0, 2.0, 1.0])):
        with pytest.raises(ValueError, match=r"takes no mass matrix; linearly implicit methods do, odelab\.RODAS4"):
            ol.solve(problem, method)
    with pytest.raises(ValueError, match="takes no mass matrix"):
        ol.ensemble(problem, method, u0=[[1.0, 0.0, 0.0]])


def test_an_embedded_method_that_amplifies_residuals_is_refused():
    """By its own number: of two methods that differ in `e` alone, the one with |R(infinity)| = 2.4 chooses no steps."""
    problem, step = ol.problems.pendulum_dae(), (2, ol.ROS2.gamma, ol.ROS2.a, ol.ROS2.C, ol.ROS2.m)
    for method in (ol.ROS2, ol.RosenbrockMethod("OTHER", *step, ol.ROS2.e, 1)):
        assert method.embedded_at_infinity == pytest.approx(-1.0 - np.sqrt(2.0))
        with pytest.raises(ValueError, match=r"residual by \|R\(infinity\)\| = 2\.41 at every step size"):
            ol.solve(problem, method)
    calm = ol.RosenbrockMethod("CALM", *step, [0.3 * weight for weight in ol.ROS2.e], 1)
    assert abs(calm.embedded_at_infinity) < 1.0
    assert ol.solve(problem, calm, ol.adaptive(1e-4, 1e-4)).ok
    # with steps of one size nothing is estimated, and with a regular matrix there is no residual
    errors = [np.abs(ol.solve(TIED, ol.ROS2, ol.fixed(h)).end_u - solution(1.0)).max() for h in (1 / 50, 1 / 100)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.15)
    assert ol.solve(ol.problems.robertson().replace(mass=[1.0, 2.0, 1.0]), ol.ROS2).ok


def test_steps_that_keep_residuals_are_refused():
    half = ol.RosenbrockMethod("HALF", order=2, gamma=0.5, a=[[]], C=[[]], m=[2.0], l_stable=False)
    with pytest.raises(ValueError, match=r"does not solve algebraic equations.*= 1, where less than 1"):
        ol.solve(ol.problems.pendulum_dae(), half, ol.fixed(0.01))


def test_what_there_is_no_kernel_for_says_so():
    with pytest.raises(ol.NotCompilable, match="mass matrix"):
        ol.solve(ol.problems.pendulum_dae(), ol.RODAS4, exact=True)
    heat = ol.problems.heat_1d().replace(mass=np.full(ol.problems.heat_1d().size, 2.0))
    with pytest.raises(ol.NotCompilable, match="mass matrix, for which large systems have no kernel"):
        ol.solve(heat, ol.RODAS4, engine="compiled")
    assert ol.solve(heat, ol.RODAS4).engine == "python"


def assert_runs_are_single_ones(problem, starts, method=ol.RODAS4, **options):
    """Each run of an ensemble has the steps, states and events of `ol.solve`, and knows why it failed."""
    runs = ol.ensemble(problem, method, u0=starts, **options)
    assert runs.engine == "compiled"
    for i, start in enumerate(starts):
        one = ol.solve(problem.replace(u0=start), method, throw=False, **options)
        assert (runs.status[i], runs.steps[i], runs.rejected[i]) == (one.status, one.steps, one.rejected)
        np.testing.assert_allclose(runs.u[i], one.u if "t_eval" in options else one.end_u, rtol=1e-9, atol=1e-13)
        for record, events in zip(one.events, runs.events[i] if runs.events else (), strict=True):
            np.testing.assert_allclose(events.t, record.t, rtol=1e-9)


STARTS = np.array([[1.0, 0.0, 0.0], [0.5, 0.0, 0.1], [0.7, 1e-5, 0.3]])


def test_runs_in_lanes_begin_consistently_as_single_ones_do():
    problem = ol.problems.robertson_dae()
    assert_runs_are_single_ones(problem, STARTS, ol.AUTO, t_eval=[0.0, 0.3, 40.0], tstops=[0.1])


def blowing_up(t, u, params):
    return (u[0] * u[1], u[1] - u[0])


def test_lanes_say_why_a_run_with_a_mass_failed():
    problem = ol.Problem(blowing_up, [1.0, 1.0], (0.0, 1.5), mass=[1.0, 0.0])
    assert_runs_are_single_ones(problem, np.array([[0.1, 0.0], [1.0, 1.0]]))


@pytest.mark.slow
@pytest.mark.parametrize("method", TAKING, **NAMED)
@pytest.mark.parametrize("by", ["dense", "step"])
def test_events_and_times_of_runs_with_a_mass_in_lanes(method, by):
    problem = ol.problems.robertson_dae()
    fill = ol.Event(lambda t, u, params: u[0] - 0.4, change=lambda t, u, params: [*u[:2], 0.9])
    for event in (fill, lambda t, u, params: u[2] - 0.6, ol.Event(lambda t, u, params: u[0] - 0.4, terminal=True)):
        assert_runs_are_single_ones(problem, STARTS, method, events=event)
    assert_runs_are_single_ones(problem, STARTS, method, t_eval=np.linspace(0.0, 40.0, 9), t_eval_by=by)


@pytest.mark.parametrize("name", ol.problems.daes())
def test_the_reduced_jacobian_has_the_finite_eigenvalues_of_the_pencil(name):
    problem = ol.problems.daes()[name]()
    sol = ol.solve(problem, ol.RODAS4, ol.adaptive(1e-4, 1e-6))
    t, u = sol.t[sol.steps // 2], sol.u[sol.steps // 2]
    found = np.linalg.eigvals(ol.reduced_jacobian(problem, t, u))
    J, M = ol.jacobian(problem, t, u), problem.mass_matrix.dense
    alpha, beta = scipy.linalg.eigvals(J, M, homogeneous_eigvals=True)
    finite = np.abs(beta) > 1e-10 * np.abs(beta).max()
    expected = alpha[finite] / beta[finite]
    assert len(found) == len(expected) == np.linalg.matrix_rank(M)
    scale = np.abs(expected).max()
    for value in expected:
        assert np.abs(found - value).min() <= 1e-7 * scale


def test_robertsons_reduced_spectrum_is_that_of_the_ode_without_its_zero():
    u = [0.9, 2e-5, 0.1 - 2e-5]
    ode = np.linalg.eigvals(ol.jacobian(ol.problems.robertson(), 0.0, u))
    dae = np.linalg.eigvals(ol.reduced_jacobian(ol.problems.robertson_dae(), 0.0, u))
    np.testing.assert_allclose(sorted(dae), sorted(ode[np.abs(ode) > 1e-9 * np.abs(ode).max()]), rtol=1e-9)


def test_indicators_are_those_of_the_pencil():
    problem = ol.problems.robertson_dae()
    sol = ol.solve(problem, ol.RODAS4)
    found = ol.indicators(problem, sol, every=20)
    for i in found.sampled:
        J = ol.reduced_jacobian(problem, sol.step_t[i], sol.step_u[i])
        assert found.si[i] == ol.si(J)
        assert found.log_norm[i, 1] == ol.log_norm(J)
        assert np.isnan(found.log_norm[i, [0, 2]]).all()
    doubled = ol.problems.robertson().replace(mass=[2.0, 2.0, 2.0])
    plain, half = (
        ol.indicators(one, ol.solve(one, ol.RODAS4), every=1000) for one in (ol.problems.robertson(), doubled)
    )
    assert half.si[0] == pytest.approx(0.5 * plain.si[0])
    assert half.log_norm[0] == pytest.approx(0.5 * plain.log_norm[0])


def test_measures_without_a_mass_refuse_one():
    from odelab.experiments import state_indices

    problem = ol.problems.pendulum_dae()
    with pytest.raises(ValueError, match=r"has a mass matrix.*odelab\.reduced_jacobian"):
        state_indices(problem, 0.0, problem.u0, ol.DOPRI5)


def test_changes_of_the_mass_forget_what_they_make_untrue():
    assert TIED.replace(mass=[1.0, 2.0, 0.0]).exact is None
    assert ol.problems.robertson().replace(mass=[1.0, 2.0, 1.0]).references == ()
    assert TIED.replace(t_span=(0.0, 2.0)).mass.tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("name", ol.problems.daes())
def test_jacobians_and_references_of_the_problems(name):
    problem = ol.problems.daes()[name]()
    assert problem.name == name
    J = ol.jacobian(problem, 0.01, problem.u0 + 0.01)
    np.testing.assert_allclose(
        J, ol.jacobian(problem, 0.01, problem.u0 + 0.01, how="complex"), rtol=1e-12, atol=1e-12 * np.abs(J).max()
    )
    assert ol.consistent(problem).u.tolist() == problem.u0.tolist()


def test_the_published_end_of_the_amplifier_is_reached_at_sharp_tolerances():
    problem = ol.problems.transistor_amplifier()
    sol = ol.solve(problem, ol.RODAS5P, ol.adaptive(1e-10, 1e-10))
    reference = problem.references[0]
    np.testing.assert_allclose(sol.end_u, reference.u, rtol=10.0**-reference.digits)


@pytest.mark.parametrize("engine", ["python", "compiled"])
@pytest.mark.parametrize("controller", [ol.fixed(0.1), ol.adaptive(1e-6, 1e-8)], ids=["fixed", "adaptive"])
def test_where_algebraic_equations_jump_at_a_stop_the_steps_behind_it_see_the_new_ones(controller, engine):
    """u' = z - u, 0 = z - g(t), where g jumps at a stop: the state is moved there, and none but the new g is seen."""

    def driven(t, u, params):
        x, z = u
        g = 50.0 if t > 1.0 else 2.0
        return z - x, z - g

    problem = ol.Problem(driven, [1.0, 2.0], (0.0, 2.0), mass=[1.0, 0.0])
    sol = ol.solve(problem, ol.RODAS5P, controller, tstops=[1.0], engine=engine)
    before = 2.0 - np.exp(-1.0)
    np.testing.assert_allclose(sol.end_u, [50.0 + (before - 50.0) * np.exp(-1.0), 50.0], rtol=1e-6)
    assert sol.rejected == 0


@pytest.mark.parametrize("engine", ["python", "compiled"])
@pytest.mark.parametrize("method", [ol.RODAS4, ol.RODAS5P], **NAMED)
def test_an_event_of_an_algebraic_component_is_as_exact_as_the_ends_of_steps(method, engine):
    """0 = z - sin 3 t holds exactly at the ends of steps, and z inside of them to some tolerances only."""
    problem = ol.Problem(
        lambda t, u, params: (u[1] - u[0], u[1] - ol.maths.sin(3.0 * t)), [1.0, 0.0], (0.0, 0.5), mass=[1, 0]
    )
    half = ol.Event(lambda t, u, params: u[1] - 0.5, terminal=True)
    sol = ol.solve(problem, method, ol.adaptive(1e-7, 1e-9), events=half, engine=engine)
    assert sol.step_t[-1] == pytest.approx(np.arcsin(0.5) / 3.0, rel=1e-13)
