"""`ol.AUTO`: explicit where that is cheap, linearly implicit where the problem is stiff, and it says who took what."""

import pickle

import numpy as np
import pytest

import odelab as ol
from odelab.engines.turns import TurnsEngine
from odelab.methods.switching import SwitchingMethod

RELAXATION = ol.problems.van_der_pol(mu=100.0).replace(t_span=(0.0, 200.0))


def auto(problem, method=ol.AUTO, rtol=1e-5, atol=1e-8, **options):
    return ol.solve(problem, method, ol.adaptive(rtol, atol), engine="python", **options)


def work(sol):
    """Evaluations, a Jacobian counted as one per component."""
    return sol.evaluations + sol.jacobians * sol.problem.size


@pytest.fixture(scope="module")
def relaxed():
    return auto(RELAXATION)


def test_both_methods_take_part_in_turns_and_it_is_said(relaxed):
    assert set(relaxed.took) == {"DOPRI5", "RODAS4"}
    assert len(relaxed.took) == relaxed.steps
    assert np.count_nonzero(relaxed.took[1:] != relaxed.took[:-1]) >= 4  # there and back, in each period
    text = str(relaxed)
    for name in ("DOPRI5", "RODAS4"):
        assert f"{(relaxed.took == name).sum()} by {name}" in text
    assert "changes, beginning with DOPRI5" in text
    assert relaxed.jacobians < relaxed.steps


def test_the_slow_parts_of_a_relaxation_are_implicit_and_the_jumps_explicit(relaxed):
    slow = np.abs(relaxed.slope[:, 0]) < 0.05
    assert relaxed.h[slow & (relaxed.took == "RODAS4")].sum() > 0.95 * relaxed.h[slow].sum()
    fast = np.abs(relaxed.slope[:, 0]) > 10.0
    assert (relaxed.took[fast] == "DOPRI5").mean() > 0.6


def test_the_answer_is_right(relaxed):
    truth = ol.solve(RELAXATION, ol.RODAS5P, ol.adaptive(1e-9, 1e-11), engine="python")
    np.testing.assert_allclose(relaxed.end_u, truth.end_u, rtol=2e-3)
    inside = np.linspace(0.0, 75.0, 200)  # before the first jump
    np.testing.assert_allclose(relaxed(inside)[:, 0], truth(inside)[:, 0], atol=1e-4)


@pytest.mark.parametrize("name", ["lorenz", "arenstorf", "rigid_body"])
def test_where_nothing_is_stiff_it_is_the_explicit_run_to_the_bit(name):
    problem = getattr(ol.problems, name)()
    found, explicit = auto(problem), auto(problem, ol.DOPRI5)
    np.testing.assert_array_equal(found.step_u, explicit.step_u)
    assert set(found.took) == {"DOPRI5"}
    assert work(found) <= 1.05 * work(explicit)


@pytest.mark.parametrize(
    ("name", "atol"), [("robertson", 1e-11), ("oregonator", 1e-8), ("hires", 1e-8), ("stiff_linear", 1e-8)]
)
def test_where_everything_is_stiff_it_costs_no_more_than_the_implicit_run(name, atol):
    problem = getattr(ol.problems, name)()
    found, implicit = auto(problem, atol=atol), auto(problem, ol.RODAS4, atol=atol)
    assert work(found) <= 1.15 * work(implicit)
    np.testing.assert_allclose(found.end_u, implicit.end_u, rtol=1e-3)


def mixed(*blocks):
    """A linear problem of blocks, its components mixed by an orthogonal map; the solution begins along all of them."""
    n = sum(len(block) for block, _ in blocks)
    matrix, start, first = np.zeros((n, n)), np.zeros(n), 0
    for block, begin in blocks:
        inside = slice(first, first + len(block))
        matrix[inside, inside], start[inside] = block, begin
        first += len(block)
    q = np.linalg.qr(np.random.default_rng(1).standard_normal((n, n)))[0]
    return ol.problems.linear(q @ matrix @ q.T, q @ start)


def rotation(rate):
    return [[0.0, rate], [-rate, 0.0]]


SLOW = (rotation(1.0), [1.0, 0.0])
FAST = np.diag([-100.0, -1.0])
STEEP = np.diag([-10.0, -40.0, -160.0]) + 1e4 * np.triu(np.ones((3, 3)), 1)


@pytest.mark.parametrize(
    ("problem", "most"),
    [
        # A fast oscillation below the tolerance, without damping: an explicit step at the boundary would raise it.
        pytest.param(mixed(SLOW, (rotation(100.0), [1e-6, 0.0])).replace(t_span=(0.0, 3.0)), 1.1, id="quiet"),
        # The fast component has died out when stability begins to limit the steps, and the stages do not see it.
        pytest.param(ol.problems.linear(FAST, [1.0, 1.0]).replace(t_span=(0.0, 10.0)), 1.1, id="died out"),
        # One implicit step promises more than those after it keep.
        pytest.param(ol.problems.forced_linear(matrix=STEEP).replace(t_span=(0.0, 3.0)), 1.1, id="steep"),
        # The implicit method takes a handful of steps in all.
        pytest.param(ol.problems.prothero_robinson(rate=-1e5).replace(t_span=(0.0, 10.0)), 1.2, id="short"),
    ],
)
def test_no_problem_costs_much_more_than_by_the_better_method(problem, most):
    runs = [auto(problem, method, throw=False, max_steps=4000) for method in (ol.DOPRI5, ol.RODAS4)]
    better = min(work(run) for run in runs if run.ok)
    assert work(auto(problem)) <= most * better


def test_trials_refused_in_a_fast_phase_do_not_keep_a_run_from_trying_later():
    """While the oregonator starts, implicit steps are refused again and again; from then on they alone are cheap."""
    problem, sharp = ol.problems.oregonator().replace(t_span=(0.0, 60.0)), ol.adaptive(1e-9, 1e-12)
    found, implicit = (ol.solve(problem, method, sharp, max_steps=20_000) for method in (ol.AUTO, ol.RODAS4))
    assert work(found) < work(implicit)


def test_a_sparse_jacobian_is_known_to_be_cheap():
    problem = ol.problems.heat_1d(100)
    found, implicit = auto(problem), auto(problem, ol.RODAS4)
    assert found.took[-1] == "RODAS4"
    assert found.steps + found.rejected < 2 * (implicit.steps + implicit.rejected)


def test_stiff_components_that_are_too_small_for_the_stages_to_tell_are_seen():
    """The stiff component is 1e-15 of the other one, and the twin stages differ by rounding alone."""

    def tiny(t, u, params):
        x, y = u
        return -0.1 * x, -1e4 * (y - 1e-15 * x)

    found = auto(ol.Problem(tiny, [1.0, 1e-15], (0.0, 10.0)), atol=1e-20)
    assert np.isnan(ol.solve(found.problem.replace(t_span=(0.0, 0.1)), ol.DOPRI5, found.controller).h_rho).all()
    assert found.steps < 300
    assert found.took[-1] == "RODAS4"


def test_dense_output_goes_through_every_change(relaxed):
    np.testing.assert_array_equal(relaxed(relaxed.step_t), relaxed.step_u)
    ends = relaxed.step_t[1:] - 1e-9 * np.diff(relaxed.step_t)
    np.testing.assert_allclose(relaxed(ends), relaxed.step_u[1:], rtol=1e-5, atol=1e-5)
    again = pickle.loads(pickle.dumps(relaxed))
    np.testing.assert_array_equal(again(10.0), relaxed(10.0))
    assert again.method.name == "AUTO(DOPRI5, RODAS4)"


def test_events_points_and_stops_are_as_ever(relaxed):
    crossing = ol.Event(lambda t, u, params: u[0], direction=-1, terminal=True)
    ended = auto(RELAXATION, events=crossing)
    assert ended.status == "event"
    assert abs(ended.end_u[0]) < 1e-6
    times = np.linspace(*RELAXATION.t_span, 51)
    few = auto(RELAXATION, t_eval=times, dense=False)
    assert few.step_u is None
    np.testing.assert_allclose(few.u, relaxed(times), rtol=1e-9, atol=1e-9)
    stopped = auto(RELAXATION, tstops=[50.0, 100.0])
    assert np.isin([50.0, 100.0], stopped.step_t).all()
    assert len(stopped.took) == stopped.steps
    cut = auto(RELAXATION, max_steps=100, throw=False)
    assert (cut.status, cut.steps + cut.rejected) == ("max_steps", 100)


def test_any_number_of_the_users_may_decide():
    asked = []

    def late(problem, t, u, h):
        asked.append((t, h))
        return np.array([2.0]) if 0.5 < t < 1.0 else 0.1

    problem = ol.problems.lorenz().replace(t_span=(0.0, 2.0))
    sol = auto(problem, ol.auto(index=late))
    middle = 0.5 * (sol.step_t[1:] + sol.step_t[:-1])
    assert set(sol.took[(middle > 0.8) & (middle < 1.0)]) == {"RODAS4"}
    assert set(sol.took[middle < 0.5]) == set(sol.took[middle > 1.5]) == {"DOPRI5"}
    assert all(h > 0.0 for _, h in asked)
    bound = auto(
        RELAXATION, ol.auto(ol.RKF45, ol.RODAS5P, index=lambda problem, t, u, h: h * ol.si(ol.jacobian(problem, t, u)))
    )
    assert set(bound.took) == {"RKF45", "RODAS5P"}


def test_each_method_has_its_own_usual_law(relaxed):
    assert "each method's own law" in str(relaxed)
    named = ol.solve(RELAXATION, ol.AUTO, ol.adaptive(1e-5, 1e-8, law="i"), engine="python")
    assert "law='i'" in str(named)
    assert named.steps != relaxed.steps


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: ol.auto(explicit=ol.RODAS4), TypeError, "`explicit` must be an explicit Method"),
        (lambda: ol.auto(explicit=ol.RK4), TypeError, "`explicit` must be an explicit Method that estimates"),
        (lambda: ol.auto(implicit=ol.RADAU), TypeError, "`implicit` must be a RosenbrockMethod"),
        (lambda: ol.auto(explicit=ol.BS32), ValueError, "`explicit` = BS32 has no two stages that tell h rho"),
        (lambda: ol.auto(index=3.0), TypeError, "`index` must be a function"),
        (lambda: ol.auto(ratio=0.0), ValueError, "`ratio` must be a positive number"),
        (lambda: auto(RELAXATION, ol.auto(index=lambda *_: np.nan)), ValueError, "`index` returned nan at t = "),
        (lambda: auto(RELAXATION, ol.auto(index=lambda *_: "stiff")), ValueError, "`index` returned 'stiff' at t = "),
        (lambda: ol.solve(RELAXATION, ol.AUTO, ol.fixed(0.1)), ValueError, "must be odelab.adaptive for AUTO"),
    ],
)
def test_wrong_input_is_named(build, error, words):
    with pytest.raises(error, match="`") as refusal:
        build()
    assert words in str(refusal.value)


def test_a_jacobian_that_fails_leaves_the_run_to_the_explicit_method():
    problem = RELAXATION.replace(t_span=(0.0, 0.5), jacobian=lambda t, u, params: np.full((2, 2), np.nan))
    sol = auto(problem)
    assert set(sol.took) == {"DOPRI5"}
    assert "tried" in sol.derivatives
    assert "refused" in sol.derivatives


def test_only_odelabs_own_pair_is_of_this_kind():
    assert isinstance(ol.AUTO, SwitchingMethod)
    assert pickle.loads(pickle.dumps(ol.auto(ol.DOP853, ol.RODAS5P))).name == "AUTO(DOP853, RODAS5P)"


CATALOGUE = ol.problems.catalogue()
TINY = {"robertson": 1e-11}
DRIVEN = ol.Problem(lambda t, u, params: (-1e3 * (u[0] - ol.maths.cos(t)) - ol.maths.sin(t),), [0.0], (0.0, 20.0))
CASES = [(name, CATALOGUE[name]()) for name in ("davis_skodje", "hires", "robertson", "van_der_pol", "three_body")]
SLOWER = ("flame", "stiff_linear", "oregonator", "fitzhugh_nagumo", "elastic_pendulum", "pollu", "brusselator")


@pytest.mark.parametrize(
    ("name", "problem"),
    [*CASES, ("driven", DRIVEN), *(pytest.param(name, CATALOGUE[name](), marks=pytest.mark.slow) for name in SLOWER)],
)
def test_kernels_decide_as_plain_python_step_for_step(name, problem):
    plain = auto(problem, atol=TINY.get(name, 1e-8))
    compiled = ol.solve(problem, ol.AUTO, plain.controller.suited_to(ol.AUTO), engine="compiled")
    assert (compiled.engine, plain.engine) == ("compiled", "python")
    np.testing.assert_array_equal(compiled.took, plain.took)
    np.testing.assert_allclose(compiled.h, plain.h, rtol=1e-3)
    for count in ("rejected", "evaluations", "jacobians", "factorisations"):
        assert getattr(compiled, count) == getattr(plain, count), count
    assert compiled.derivatives.split("; ")[1:] == plain.derivatives.split("; ")[1:]
    np.testing.assert_array_equal(np.isnan(compiled.h_rho[compiled.took == "RODAS4"]), True)


@pytest.mark.parametrize(
    ("pair", "options"),
    [
        ((ol.DOP853, ol.RODAS5P), {}),
        ((ol.DOPRI5, ol.ESDIRK43), {"project": lambda u: u}),
        ((ol.DOPRI5, ol.ROS2), {"tstops": [0.1, 10.0]}),
    ],
)
def test_so_do_those_of_other_pairs_and_of_runs_with_more_to_do(pair, options):
    problem, method = RELAXATION.replace(t_span=(0.0, 60.0)), ol.auto(*pair)
    plain = auto(problem, method, **options)
    compiled = ol.solve(problem, method, ol.adaptive(1e-5, 1e-8), engine="compiled", **options)
    np.testing.assert_array_equal(compiled.took, plain.took)
    np.testing.assert_allclose(compiled.end_u, plain.end_u, rtol=1e-6)


def test_a_kernel_goes_on_from_what_plain_python_has_come_to():
    """As where its factors fail: some attempts are made with pivots, and then the kernel tries again."""
    problem = RELAXATION.replace(t_span=(0.0, 75.0))
    whole = ol.solve(problem, ol.AUTO, ol.adaptive(1e-5, 1e-8), engine="compiled")
    engine = TurnsEngine(problem, ol.AUTO, ol.adaptive(1e-5, 1e-8))
    state, _ = engine.begin()
    for attempts in (7, 30, 5):
        state = engine.advance(state, attempts).state
        for _ in range(16):
            state = engine.in_plain_python(state, 1, engine.rows.steps, (0, 0, 0, 0)).state
    engine.advance(state, 10_000)
    record = engine.record()
    np.testing.assert_allclose(record.t, whole.step_t, rtol=1e-6)
    np.testing.assert_array_equal(np.array(["DOPRI5", "RODAS4"])[record.took.astype(int)], whole.took)


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_what_the_right_hand_side_raises_is_raised(engine):
    def refusing(t, u, params):
        if t > 3.0:
            raise LookupError("beyond the data")
        return (-1e3 * (u[0] - 1.0),)

    problem = ol.Problem(refusing, [8.0], (0.0, 9.0))
    with pytest.raises(LookupError, match="beyond the data"):
        ol.solve(problem, ol.AUTO, ol.adaptive(1e-5, 1e-8), engine=engine)


def test_a_ratio_of_costs_decides_who_takes_more_steps():
    counts = [
        (ol.solve(RELAXATION, ol.auto(ratio=ratio), ol.adaptive(1e-5, 1e-8)).took == "RODAS4").sum()
        for ratio in (1.0, 100.0)
    ]
    assert counts[0] > counts[1]


def test_h_rho_is_not_told_where_the_stages_of_the_explicit_method_do_not_tell_it():
    method = ol.auto(ol.RKF45, index=lambda problem, t, u, h: 0.0)
    sol = ol.solve(ol.problems.van_der_pol(5.0), method, ol.adaptive(1e-5, 1e-8), engine="compiled")
    assert sol.steps > 100
    assert np.isnan(sol.h_rho).all()


def on_a_grid(end, wave=0.0, points=32):
    """Heat on a square, without loss at its edges, with sources that swing between `wave` and its negative."""

    def heat(t, u, params):
        a = np.pad(u.reshape(points, points), 1, mode="edge")
        flux = a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2] - 4.0 * a[1:-1, 1:-1]
        return flux.ravel() + wave * np.sin(0.25 * t)

    u0 = np.random.default_rng(0).random(points * points)
    return ol.Problem(heat, u0, (0.0, end))


def test_a_grid_stays_explicit_while_its_linear_systems_would_cost_more_than_the_steps_they_save():
    problem = on_a_grid(60.0, wave=1.0)
    found, explicit, implicit = (auto(problem, method, 1e-5, 1e-7) for method in (ol.AUTO, ol.DOPRI5, ol.RODAS4))
    assert set(found.took) == {"DOPRI5"}
    assert implicit.steps < explicit.steps < 4 * implicit.steps
    assert found.evaluations < 1.1 * explicit.evaluations


def test_a_grid_becomes_implicit_where_that_saves_more_than_its_linear_systems_cost():
    problem = on_a_grid(1000.0)
    found, explicit = (auto(problem, method, 1e-3, 1e-5) for method in (ol.AUTO, ol.DOPRI5))
    assert found.took[-1] == "RODAS4"
    assert found.steps < explicit.steps / 20
    np.testing.assert_allclose(found.end_u, problem.u0.mean(), atol=1e-3)


def test_solve_needs_no_method():
    problem = RELAXATION.replace(t_span=(0.0, 60.0))
    found, named = ol.solve(problem), ol.solve(problem, ol.AUTO)
    assert found.method is ol.AUTO
    np.testing.assert_array_equal(found.step_u, named.step_u)
    with pytest.raises(ValueError, match=r"name it, for instance odelab\.DOPRI5"):
        ol.solve(problem, exact=True)


@pytest.mark.parametrize("method", [ol.AUTO, ol.DOPRI5, ol.RODAS4], ids=lambda method: method.name)
def test_a_graph_is_compiled_at_once_however_short_the_run(method):
    def chain(t, u, params):
        return tuple(u[max(i - 1, 0)] - 2.0 * u[i] + u[min(i + 1, 11)] for i in range(12))

    short = ol.Problem(chain, np.linspace(1.0, 2.0, 12), (0.0, 0.1))
    assert ol.solve(short, method).engine == "compiled"
