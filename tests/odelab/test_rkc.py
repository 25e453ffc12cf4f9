"""RKC2: its stability polynomial, its times, its stage number, its calibration, and what it says beside its strip."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from solver_cases import CIRCLE, PENDULUM, Recorder

import odelab as ol
from odelab import chebyshev, core, radius, stabilised

METHOD = ol.RKC2
CHEBYSHEV = np.polynomial.chebyshev.Chebyshev
stages = st.integers(2, 60)


def rkc_step(rhs, t, u, h, s, params=()):
    return METHOD.step(core.combine, rhs, params, t, u, rhs(t, u, params), h, (h, s), METHOD.floats)


def polynomial(s):
    """R_s from NumPy's Chebyshev series: a_s + b_s T_s(w0 + w1 z)."""
    t = CHEBYSHEV.basis(s)
    w0 = 1.0 + 2.0 / 13.0 / s**2
    first, second = t.deriv(1)(w0), t.deriv(2)(w0)
    b = second / first**2
    return lambda z: 1.0 - b * t(w0) + b * t(w0 + first / second * z)


def spiral(decay, frequency):
    """Towards the unit circle, with eigenvalues -decay +- i frequency: smooth, whatever they are."""

    def rhs(t, u, params):
        x, y = u
        decay, frequency = params
        cosine, sine = ol.maths.cos(t), ol.maths.sin(t)
        x, y = x - cosine, y - sine
        return (-decay * x - frequency * y - sine, frequency * x - decay * y + cosine)

    return ol.Problem(rhs, [1.0, 0.0], (0.0, 1.0), (decay, frequency))


# the formula


@given(s=stages, share=st.floats(0.0, 1.0), tilt=st.floats(-0.2, 0.2))
def test_a_step_multiplies_by_the_stability_polynomial(s, share, tilt):
    z = -share * 0.66 * s * s * np.exp(1j * tilt)
    new, slope, _, slopes = rkc_step(lambda t, u, params: z * u, 0.0, np.array([1.0 + 0j]), 1.0, s)
    np.testing.assert_allclose(new[0], polynomial(s)(z), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(METHOD.stability(z, s), polynomial(s)(z), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(slope[0], new[0] - 1.0, rtol=1e-12)
    np.testing.assert_allclose(slopes, [[z], [z * new[0]]], rtol=1e-12)


@given(h_rho=st.floats(0.0, 1e4))
@settings(max_examples=60)
def test_the_stage_number_is_enough_and_not_too_much(h_rho):
    s = chebyshev.stage_number(h_rho)
    assert np.abs(METHOD.stability(-np.linspace(0.0, h_rho, 400), s)).max() <= 1.0
    assert s == 1 + int(np.sqrt(1.54 * h_rho + 1.0))
    if s > 2:
        assert METHOD.boundary(s - 1) < 1.02 * h_rho
    assert chebyshev.stage_number(chebyshev.most_stable(s) * (1.0 - 1e-12)) == s


@given(s=st.integers(2, 400))
def test_the_region_reaches_along_the_axis_and_is_damped_inside(s):
    boundary = METHOD.boundary(s)
    assert 0.64 * (s * s - 1) < boundary < 0.67 * (s * s - 1)
    inside = METHOD.stability(-np.linspace(0.05 * boundary, 0.999 * boundary, 500), s)
    assert np.abs(inside).max() < 0.96 if s > 2 else np.abs(inside).max() <= 1.0


@pytest.mark.parametrize("s", [2, 3, 7, 30])
def test_order_two_of_the_polynomial(s):
    z = 1e-3
    error = METHOD.stability(z, s) - np.exp(z)
    assert abs(error) < 0.2 * z**3
    assert abs(error) > 0.01 * z**3


@given(s=stages, h=st.floats(0.01, 0.5), t=st.floats(-2.0, 2.0), u=st.tuples(st.floats(-2, 2), st.floats(-2, 2)))
def test_time_is_one_more_component(s, h, t, u):
    """u' = f(t, u) and (u, time)' = (f(time, u), 1) give the same step: every stage has its right time."""

    def driven(t, u, params):
        return PENDULUM.slope(t, u)

    def autonomous(t, u, params):
        return np.append(PENDULUM.slope(u[2], u[:2]), 1.0)

    alone, _, error, _ = rkc_step(driven, t, np.array(u), h, s)
    together, _, error_too, _ = rkc_step(autonomous, 0.0, np.array([*u, t]), h, s)
    np.testing.assert_allclose(together, [*alone, t + h], rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(error_too[0][:2], error[0], rtol=1e-9, atol=1e-11)


def test_stage_times_rise_from_start_to_end():
    recorder = Recorder(lambda t, u, params: -u)
    rkc_step(recorder, 2.0, np.array([1.0]), 0.5, 12)
    times = np.array(recorder.times)
    assert len(times) == 13
    assert times[0] == 2.0
    assert (np.diff(times) > 0).all()
    assert abs(times[-1] - 2.5) < 1e-14


@pytest.mark.parametrize("s", [200, 1000])
def test_internal_stability(s):
    """Rounding grows no faster than s^2 over the stages: a stiff linear system against its exact polynomial."""
    n = 60
    problem = ol.problems.heat_1d(n)
    h = 0.95 * METHOD.boundary(s) / (4.0 * (n + 1.0) ** 2)
    values, vectors = np.linalg.eigh(problem.jacobian(0.0, problem.u0, problem.params).toarray())
    rough = np.random.default_rng(3).standard_normal(n)
    exact = vectors @ (METHOD.stability(h * values, s) * (vectors.T @ rough))
    new, *_ = rkc_step(lambda t, u, params: problem.slope(t, u), 0.0, rough, h, s)
    assert np.linalg.norm(new - exact) <= 1e-16 * s**2 * np.linalg.norm(rough)


def test_observed_order_two():
    method = ol.rkc2(3.0)
    for problem in (PENDULUM, ol.problems.heat_1d_wave(n=20, diffusivity=0.01)):
        used = method if problem is PENDULUM else ol.RKC2
        assert abs(float(ol.observed_order(used, problem)) - 2.0) < 0.2


@given(u=st.tuples(st.floats(-2, 2), st.floats(-2, 2)))
def test_the_error_estimate_falls_with_the_third_derivative(u):
    """h^3 y''' / 15 along the numerical solution, and 0.8 of the step's own error, as much again: 0.12 h^3 y'''."""
    h = 0.125
    *_, errors, _ = rkc_step(lambda t, u, params: np.array([t, t * t]), 0.3, np.array(u), h, 40)
    np.testing.assert_allclose(errors[0], [0.0, 0.12 * 2.0 * h**3], rtol=1e-2, atol=1e-12)


def test_torch_takes_the_same_step_with_gradients():
    torch = pytest.importorskip("torch")
    start = torch.tensor([1.0, -0.5], dtype=torch.float64, requires_grad=True)
    new = rkc_step(lambda t, u, params: -3.0 * u * u * u + t, 0.1, start, 0.5, 9)[0]
    (gradient,) = torch.autograd.grad(new.sum(), start)
    plain = rkc_step(lambda t, u, params: -3.0 * u * u * u + t, 0.1, np.array([1.0, -0.5]), 0.5, 9)[0]
    np.testing.assert_array_equal(new.detach().numpy(), plain)
    sides = [
        rkc_step(lambda t, u, params: -3.0 * u * u * u + t, 0.1, np.array([1.0 + s, -0.5]), 0.5, 9)[0]
        for s in (1e-6, -1e-6)
    ]
    np.testing.assert_allclose(gradient[0].item(), (sides[0] - sides[1]).sum() / 2e-6, rtol=1e-6)


# the spectral radius


def test_the_power_method_seldom_falls_short_on_symmetric_systems():
    """Random matrices, whose largest eigenvalues lie close together: harder for it than a grid's."""
    enough = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 41))
        matrix = rng.standard_normal((n, n))
        matrix, u = -(10.0 ** rng.uniform(-2, 6)) * (matrix @ matrix.T), rng.standard_normal(n)
        found, direction, count = estimated(matrix, u)
        largest = np.abs(np.linalg.eigvalsh(matrix)).max()
        assert 0.5 * largest <= found <= 1.2001 * largest
        again = estimated(matrix, u, direction, fewest=2)
        assert again[2] <= count
        assert again[0] >= 0.98 * found
        enough.append(found >= largest)
    assert np.mean(enough) >= 0.97


def estimated(matrix, u, direction=None, fewest=8):
    def rhs(t, u, params):
        return matrix @ u

    slope = rhs(0.0, u, ())
    direction = stabilised.first_direction(slope) if direction is None else direction
    return radius.power_method(radius.norm)(rhs, (), 0.0, u, slope, direction, fewest)


@given(decay=st.floats(0.0, 100.0), frequency=st.floats(1.0, 100.0))
def test_the_power_method_finds_the_modulus_of_complex_pairs(decay, frequency):
    matrix = np.array([[-decay, -frequency], [frequency, -decay]])
    found = estimated(matrix, np.array([1.0, 2.0]))[0]
    np.testing.assert_allclose(found, 1.2 * np.hypot(decay, frequency), rtol=1e-4)


def test_a_radius_is_asked_for_anew_after_25_steps_and_after_a_rejection():
    asked, at = [], []
    verdicts = [1] * 30 + [0, 1, 0, 0, 1]  # accepted: 30, then 1, then 1

    def estimate(rhs, params, t, u, slope, direction, fewest):
        asked.append((len(at), fewest))
        return 10.0, direction, 4

    propose, judge = radius.steering(estimate, chebyshev.stage_number, chebyshev.most_stable, radius.LIFE)(
        lambda memory, t, t1, u, slope: (1.0, 1.0, memory),
        lambda memory, dt, errors, u, u_new: (verdicts[len(at)], memory),
        None,
    )
    memory = ("inner", ((), 0.0, None, -1.0, 1e9, 0.0, 0.0))
    for _ in verdicts:
        dt, h, memory = propose(memory, 0.0, 1.0, None, None)
        assert (dt, h) == (1.0, (1.0, chebyshev.stage_number(10.0)))
        _, memory = judge(memory, dt, None, None, None)
        at.append(1)
    assert asked == [(0, 8), (25, 2), (31, 8), (33, 8)]  # the second of two rejections in a row knows the radius here
    assert memory[0] == "inner"
    assert stabilised.unseen(memory) == 4 * len(asked) + (chebyshev.stage_number(10.0) - 1) * len(verdicts)


def test_a_step_of_too_many_stages_is_shortened():
    propose, _ = radius.steering(
        radius.given_radius(lambda t, u, params: 1e6), chebyshev.stage_number, chebyshev.most_stable, 1.0
    )(lambda memory, t, t1, u, slope: (-2.0, -2.0, memory), None, None)
    dt, (h, s), _ = propose(("inner", ((), 0.0, None, -1.0, 30.0, 0.0, 0.0)), 0.0, -9.0, None, None)
    assert s == 30
    assert dt == h < 0
    assert METHOD.boundary(30) >= 1e6 * abs(dt) > 0.98 * METHOD.boundary(30)


def test_a_tolerance_out_of_reach_is_refused_and_the_last_within_it_is_kept():
    problem = ol.problems.heat_1d(n=20).replace(t_span=(0.0, 0.002))
    with pytest.raises(ValueError, match="`rtol` = 1e-10 is out of reach of RKC2"):
        ol.solve(problem, METHOD, ol.adaptive(1e-10, 1e-12))
    run = ol.solve(problem, METHOD, ol.adaptive(1e-9, 1e-12))
    exact = problem.exact(0.002, problem.params)
    assert np.linalg.norm(run.u[-1] - exact) < 1e-8 * np.linalg.norm(exact)


def test_every_evaluation_is_counted():
    for method in (METHOD, ol.rkc2(500.0), ol.rkc2(lambda t, u, params: 450.0 + 10.0 * t)):
        for controller in (ol.adaptive(1e-4, 1e-6), ol.fixed(0.03)):
            recorder = Recorder(lambda t, u, params: ol.problems.allen_cahn_1d().slope(t, u))
            problem = ol.Problem(recorder, ol.problems.allen_cahn_1d().u0, (0.0, 1.0))
            recorder.times.clear()
            run = ol.solve(problem, method, controller, engine="python")
            assert run.ok
            assert run.evaluations == len(recorder.times)


def test_a_given_radius_spares_evaluations_and_changes_little():
    problem = ol.problems.heat_1d(n=60)
    exact = problem.exact(0.1, problem.params)
    found = ol.solve(problem, METHOD, ol.adaptive(1e-4, 1e-7))
    for given_radius in (4.0 * 61.0**2, lambda t, u, params: 4.0 * params[0] * (u.size + 1.0) ** 2):
        run = ol.solve(problem, ol.rkc2(given_radius), ol.adaptive(1e-4, 1e-7))
        assert run.evaluations < found.evaluations
        assert np.linalg.norm(run.u[-1] - exact) < 1e-3 * np.linalg.norm(exact)


@pytest.mark.parametrize("wrong", [-1.0, np.inf, np.nan, "large", [1.0]])
def test_a_wrong_radius_is_refused(wrong):
    with pytest.raises(ValueError, match="`spectral_radius` must be a number from 0 up or a function"):
        ol.rkc2(wrong)


# calibration


PARABOLIC = {
    "heat_1d": ol.problems.heat_1d(),
    "heat_1d_wave": ol.problems.heat_1d_wave(),
    "brusselator_1d": ol.problems.brusselator_1d(),
    "allen_cahn_1d": ol.problems.allen_cahn_1d(n=100),
}


@pytest.fixture(scope="module")
def truths():
    def end(problem):
        if problem.exact is not None:
            return problem.exact(problem.t_span[1], problem.params)
        return ol.solve(problem, ol.BDF, ol.adaptive(1e-9, 1e-11)).u[-1]

    return {name: end(problem) for name, problem in PARABOLIC.items()}


@pytest.mark.parametrize("rtol", [1e-2, 1e-3, 1e-4, 1e-5, 1e-6])
@pytest.mark.parametrize("name", PARABOLIC)
def test_the_error_at_the_end_is_the_tolerance_within_a_factor_of_ten(name, rtol, truths):
    run = ol.solve(PARABOLIC[name], METHOD, ol.adaptive(rtol, 1e-3 * rtol), engine="python")
    error = np.linalg.norm(run.u[-1] - truths[name]) / np.linalg.norm(truths[name])
    assert 0.1 <= error / rtol <= 10.0


def test_prothero_and_robinson_at_a_rate_of_a_million():
    """Wrong stage times cost a thousand attempts here."""
    run = ol.solve(ol.problems.prothero_robinson(), METHOD, ol.adaptive(1e-4, 1e-7))
    assert run.steps + run.rejected <= 40
    assert abs(run.u[-1, 0] - np.sin(1.0 + np.pi / 4.0)) < 1e-3


def test_far_less_work_than_an_explicit_method():
    problem = ol.problems.brusselator_1d(n=100)
    truth = ol.solve(problem, ol.BDF, ol.adaptive(1e-9, 1e-11)).u[-1]
    stable = ol.solve(problem, METHOD, ol.adaptive(3e-5, 3e-7), engine="python")
    assert np.linalg.norm(stable.u[-1] - truth) < 2e-4 * np.linalg.norm(truth)
    least = 6 * 10.0 * 4.0 * 0.02 * 101.0**2 / ol.DOPRI5.real_boundary  # what stability alone costs DOPRI5
    assert stable.evaluations < least / 7


# what a run leaves behind


def test_slopes_steps_and_dense_output():
    problem = ol.problems.heat_1d_wave(n=30)
    run = ol.solve(problem, METHOD, ol.adaptive(1e-6, 1e-9))
    np.testing.assert_allclose(run.slope, np.diff(run.u, axis=0) / run.h[:, None], rtol=1e-9, atol=1e-9)
    assert np.shape(ol.sai(run)) == (run.steps,)
    middle = 0.5 * (run.t[1:] + run.t[:-1])
    np.testing.assert_array_equal(run(run.t), run.u)
    ends = np.abs(run.u - problem.exact(run.t, problem.params)).max()
    inside = np.abs(run(middle) - problem.exact(middle, problem.params)).max()
    assert inside <= 1.5 * ends
    step = 1e-6 * run.h[5]
    rate = (run(run.t[5] + step) - run(run.t[5] - step)) / (2.0 * step)
    np.testing.assert_allclose(rate, problem.slope(run.t[5], run.u[5]), rtol=1e-5, atol=1e-5)


def test_the_cubic_has_order_three_between_exact_ends():
    sizes, errors = np.array([0.4, 0.2, 0.1]), []
    for h in sizes:
        t = np.array([0.3, 0.3 + h])
        states = CIRCLE.exact(t, ())
        between = ol.solve(CIRCLE.replace(t_span=(0.3, 0.3 + h), u0=states[0]), METHOD, ol.fixed(h)).interpolant
        object.__setattr__(between, "u", states)
        errors.append(np.abs(between(0.3 + 0.5 * h) - CIRCLE.exact(0.3 + 0.5 * h, ())).max())
    np.testing.assert_allclose(np.diff(np.log(errors)) / np.diff(np.log(sizes)), 4.0, atol=0.2)


def test_events_end_a_run_and_keep_its_slopes():
    problem = ol.problems.heat_1d(n=20)

    def cooled(t, u, params):
        return u.max() - 0.5

    run = ol.solve(problem, METHOD, ol.adaptive(1e-6, 1e-9), events=ol.Event(cooled, terminal=True))
    assert run.status == "event"
    assert abs(run.u[-1].max() - 0.5) < 1e-9
    np.testing.assert_allclose(run.slope, np.diff(run.u, axis=0) / run.h[:, None], rtol=1e-8, atol=1e-8)
    late = run.t[-1] - 0.3 * run.h[-1]
    np.testing.assert_allclose(run(late), problem.exact(late, problem.params), rtol=1e-4)


def test_backwards_projected_and_at_requested_times():
    growth = ol.problems.heat_1d(n=20, diffusivity=-1.0).replace(t_span=(0.0, -0.05))
    run = ol.solve(growth, METHOD, ol.adaptive(1e-5, 1e-8), t_eval=[0.0, -0.02, -0.05])
    exact = ol.problems.heat_1d(n=20).exact(np.array([0.0, 0.02, 0.05]), (1.0,))
    np.testing.assert_allclose(run.u, exact, rtol=1e-3, atol=1e-5)
    kept = ol.solve(ol.problems.heat_1d(n=20), METHOD, ol.adaptive(1e-4, 1e-7), project=lambda u: np.maximum(u, 0.2))
    assert kept.u[1:].min() == 0.2


@pytest.mark.slow
def test_compiled_code_takes_the_same_steps():
    problem, controller = PARABOLIC["heat_1d_wave"], ol.adaptive(1e-4, 1e-7)
    plain = ol.solve(problem, METHOD, controller, engine="python")
    compiled = ol.solve(problem, METHOD, controller, engine="compiled")
    assert (compiled.steps, compiled.rejected, compiled.evaluations) == (plain.steps, plain.rejected, plain.evaluations)
    np.testing.assert_allclose(compiled.t, plain.t, rtol=1e-6)
    np.testing.assert_allclose(compiled.u[-1], plain.u[-1], rtol=1e-6)


# honesty


@pytest.mark.parametrize(
    ("decay", "frequency", "words"),
    [
        (1e3, 1e3, "use an implicit method"),
        (1e3, 176.0, "use an implicit method"),
        (100.0, 1e3, "use odelab.DOPRI5 or odelab.DOP853"),
    ],
)
def test_beside_the_strip_it_says_so(decay, frequency, words):
    run = ol.solve(spiral(decay, frequency), METHOD, ol.adaptive(1e-3, 1e-6))
    with np.errstate(all="raise", under="ignore"):
        assert "held back by stability" in run.message
    assert "lie beside the narrow strip along the negative real axis where RKC2 is stable" in run.message
    assert words in run.message


def test_on_the_imaginary_axis_the_budget_ends_with_the_remedy():
    run = ol.solve(spiral(0.0, 1e4), METHOD, ol.adaptive(1e-4, 1e-7), max_steps=2000, throw=False)
    assert run.status == "max_steps"
    assert "its leading eigenvalues, " in run.message
    assert "odelab.DOPRI5 or odelab.DOP853" in run.message


@pytest.mark.parametrize(
    "problem", [*PARABOLIC.values(), spiral(1e3, 0.0), spiral(1e3, 50.0), ol.problems.prothero_robinson()]
)
@pytest.mark.parametrize("rtol", [1e-3, 1e-5])
def test_on_the_axis_it_does_not(problem, rtol):
    run = ol.solve(problem, METHOD, ol.adaptive(rtol, 1e-3 * rtol), engine="python")
    assert run.message == f"reached t = {problem.t_span[1]:g} in {run.steps} steps"


def test_a_complex_pair_that_is_damped_holds_nothing_back():
    run = ol.solve(spiral(1e3, 364.0), METHOD, ol.adaptive(1e-6, 1e-9), engine="python")
    assert run.message == f"reached t = 1 in {run.steps} steps"


def test_a_radius_given_too_small_is_named():
    run = ol.solve(ol.problems.heat_1d(), ol.rkc2(1e3), ol.adaptive(1e-3, 1e-6))
    assert "the spectral radius given, 1e+03, is below the one found, 4.0" in run.message
    assert "held back by stability" in run.message


def test_other_methods_recommend_it_where_the_spectrum_is_real_and_only_there():
    controller = ol.adaptive(1e-4, 1e-7)
    real = ol.solve(ol.problems.heat_1d(n=40).replace(t_span=(0.0, 0.02)), ol.DOPRI5, controller).message
    assert "odelab.RKC2" in real
    assert "odelab.RADAU" in real
    turning = ol.solve(spiral(1e3, 1e3), ol.DOPRI5, controller).message
    assert "odelab.RKC2" not in turning
    assert "odelab.RADAU" in turning
    spent = ol.solve(ol.problems.heat_1d(), ol.BS32, controller, max_steps=100, throw=False)
    assert "use odelab.RKC2" in spent.message
    assert spent.message.endswith("or raise max_steps")


def test_failures_have_their_names():
    def undefined(t, u, params):
        return (-u[0] if t < 0.5 else float("nan"),)

    def exploding(t, u, params):
        return (u[0] * u[0],)

    controller = ol.adaptive(1e-4, 1e-7)
    lost = ol.solve(ol.Problem(undefined, [1.0], (0.0, 1.0)), METHOD, controller, throw=False)
    assert lost.status == "not_finite"
    assert "returned nan in component 0 at t = 0.5" in lost.message
    blown = ol.solve(ol.Problem(exploding, [1.0], (0.0, 2.0)), METHOD, controller, throw=False)
    assert blown.status == "blow_up"
