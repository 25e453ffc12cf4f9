"""Wrong input is refused at the door: the argument in backticks, the value given, what would do."""

import pickle
import re
import warnings

import numpy as np
import pytest

import odelab as ol
from tests.odelab.solver_cases import CIRCLE
from tests.without import needs_numba


def decay(t, u, params):
    return (-u[0],)


ONE = ol.Problem(decay, [1.0], (0.0, 1.0))


def refused(error, words, call, *arguments, **options):
    with pytest.raises(error) as raised:
        call(*arguments, **options)
    for word in words:
        assert word in str(raised.value)


@pytest.mark.parametrize(
    ("u0", "error", "words"),
    [
        ([1.0, np.nan], ValueError, ["`u0` must be finite", "nan in component 1"]),
        ([np.inf], ValueError, ["`u0` must be finite", "inf in component 0"]),
        ([], ValueError, ["`u0`", "not empty", "shape (0,)"]),
        ([[1.0, 2.0]], ValueError, ["`u0`", "shape (1, 2)", "flatten it", "`odelab.ensemble`"]),
        ([[1.0], [2.0, 3.0]], ValueError, ["`u0`", "differ in length"]),
        ("a", TypeError, ["`u0`", "'a'"]),
        (np.ma.array([1.0, 2.0], mask=[False, True]), TypeError, ["`u0` is a masked array", ".compressed()"]),
        (None, TypeError, ["`u0`", "None"]),
    ],
)
def test_an_initial_state_that_is_none(u0, error, words):
    refused(error, words, ol.Problem, lambda t, u, params: -u, u0, (0.0, 1.0))


@pytest.mark.parametrize(
    ("span", "words"),
    [
        ((1.0, 1.0), ["`t_span` has no length", "(1.0, 1.0)", "two different times"]),
        ((0.0, np.inf), ["`t_span` must be finite", "(0.0, inf)"]),
        ((np.nan, 1.0), ["`t_span` must be finite", "nan"]),
        ((0.0, 1.0, 2.0), ["`t_span` must be two numbers", "(0.0, 1.0, 2.0)"]),
        (("a", 1.0), ["`t_span` must be two numbers", "'a'"]),
        (3.0, ["`t_span` must be two numbers", "3.0"]),
        (None, ["`t_span` must be two numbers", "None"]),
        ("01", ["`t_span` must be two numbers", "'01'"]),
        ({1.0, 0.0}, ["`t_span` must be two numbers"]),
        ((False, True), ["`t_span` must be two numbers"]),
        ((-1e308, 1e308), ["`t_span` is longer than floating-point numbers go"]),
    ],
)
def test_a_span_that_is_none(span, words):
    refused(ValueError, words, ol.Problem, decay, [1.0], span)


@pytest.mark.parametrize(
    ("rhs", "error", "words"),
    [
        (3, TypeError, ["`rhs` must be a function rhs(t, u, params)", "got 3"]),
        (lambda t, u, p: None, TypeError, ["`rhs` returned None", "`return`"]),
        (lambda t, u, p: (1.0,), ValueError, ["`rhs` returned shape (1,)", "state of shape (2,)", "one slope per"]),
        (lambda t, u, p: u[0], ValueError, ["`rhs` returned shape ()", "state of shape (2,)"]),
        (lambda t, u, p: np.ones((2, 1)), ValueError, ["`rhs` returned shape (2, 1)"]),
        (lambda t, u, p: (1.0, (2.0, 3.0)), ValueError, ["`rhs`", "differ in length"]),
        (lambda t, u, p: (1j, 1.0), TypeError, ["`rhs` must return real numbers", "complex128"]),
        (lambda t, u, p: np.array(["a", "b"]), TypeError, ["`rhs` must return real numbers", "<U1"]),
    ],
)
def test_a_right_hand_side_that_is_none(rhs, error, words):
    refused(error, words, ol.Problem, rhs, [1.0, 2.0], (0.0, 1.0))


def test_a_right_hand_side_must_not_write_into_the_state():
    def spoiling(t, u, params):
        u *= -1.0
        return u

    refused(ValueError, ["read-only"], ol.Problem, spoiling, [1.0], (0.0, 1.0))


def test_what_an_in_place_right_hand_side_does_not_fill_is_seen():
    def half(t, u, params, out):
        out[0] = -u[0]

    run = ol.solve(ol.Problem(half, [1.0, 1.0], (0.0, 1.0)), ol.RK4, ol.fixed(0.1), throw=False)
    assert run.status == "not_finite"
    assert "left component 1 at nan at t = 0; `out[1]` was never set" in run.message


def test_an_in_place_right_hand_side_that_reads_what_it_should_set_is_told():
    def adding(t, u, params, out):
        out[0] -= u[0]

    run = ol.solve(ol.Problem(adding, [1.0], (0.0, 1.0)), ol.RK4, ol.fixed(0.1), throw=False)
    assert "`out[0]` was read before it was set" in run.message


def test_an_in_place_right_hand_side_that_returns_its_slopes_is_told():
    run = ol.solve(ol.Problem(lambda t, u, p, out: -u, [1.0], (0.0, 1.0)), ol.RK4, ol.fixed(0.1), throw=False)
    assert "`out[0]` was never set: an in-place right-hand side must assign every `out[i]`" in run.message


def test_an_in_place_right_hand_side_cannot_overwrite_its_state():
    def halve(t, u, params, out):
        out[0] = -u[0]
        u[0] = 0.5 * u[0]

    problem = ol.Problem(halve, [1.0], (0.0, 1.0))
    refused(ValueError, ["read-only"], ol.solve, problem, ol.RK4, ol.fixed(0.1), engine="python")


def test_a_right_hand_side_may_do_without_parameters():
    for rhs in (lambda t, u: (-u[0],), lambda t, u: -u):
        problem = ol.Problem(rhs, [1.0], (0.0, 1.0))
        assert ol.solve(problem, ol.DOPRI5).end_u[0] == pytest.approx(np.exp(-1.0), abs=1e-6)
        assert problem.rhs is ol.Problem(rhs, [1.0], (0.0, 2.0)).rhs


def short(t, u):
    return (-u[0],)


def test_a_problem_without_parameters_can_be_pickled():
    again = pickle.loads(pickle.dumps(ol.Problem(short, [1.0], (0.0, 1.0), name="decay")))
    assert (again.name, again.slope(0.0, np.ones(1)).tolist()) == ("decay", [-1.0])


@pytest.mark.parametrize("rhs", [lambda t, u, *, p: -u, lambda t: -t, lambda t, u, p, q, r: -u])
def test_another_signature_is_answered_with_the_right_one(rhs):
    words = ["`rhs` must take (t, u, params), or (t, u, params, out)", "got <lambda>(t"]
    refused(TypeError, words, ol.Problem, rhs, [1.0], (0.0, 1.0))


def test_a_right_hand_side_may_answer_with_tensors():
    torch = pytest.importorskip("torch")
    problem = ol.Problem(lambda t, u, p: -torch.as_tensor(np.array(u)), [1.0], (0.0, 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ol.solve(problem, ol.DOPRI5).end_u[0] == pytest.approx(np.exp(-1.0), abs=1e-6)
    words = ["`u0` requires gradients", "u0.detach()"]
    refused(TypeError, words, ol.Problem, decay, torch.ones(1, requires_grad=True), (0.0, 1.0))


def test_a_matrix_of_parameters_stays_a_matrix():
    matrix = np.array([[-1.0, 0.0], [1.0, -2.0]])
    problem = ol.Problem(lambda t, u, A: A.T @ u, [1.0, 1.0], (0.0, 1.0), matrix)
    assert problem.params is matrix
    assert ol.Problem(decay, [1.0], (0.0, 1.0), np.float32(2.0)).params == (2.0,)
    assert ol.solve(problem, ol.DOPRI5).ok


def test_replacing_a_field_that_does_not_exist():
    refused(TypeError, ["`replace` got 'tspan'", "t_span"], ONE.replace, tspan=(0.0, 1.0))


@pytest.mark.parametrize("h", [0, 0.0, -1e-3, np.nan, np.inf, "a", None, [0.1], True, np.complex128(0.1)])
def test_a_step_size_that_is_none(h):
    refused(ValueError, ["`h` must be a positive, finite step size", f"got {h!r}", "`t_span`"], ol.fixed, h)


@pytest.mark.parametrize("rtol", [0, 0.0, -1e-3, 1.0, np.nan, np.inf, "a", None])
def test_a_relative_tolerance_that_is_none(rtol):
    refused(ValueError, ["`rtol` must be a number between 0 and 1", f"got {rtol!r}", "try 1e-6"], ol.adaptive, rtol)


def test_a_relative_tolerance_below_rounding():
    refused(ValueError, ["`rtol` = 1e-15", "double precision", "2.3e-14"], ol.adaptive, 1e-15)
    assert ol.adaptive(2.3e-14).rtol == 2.3e-14


@pytest.mark.parametrize("atol", [-1e-9, np.nan, np.inf, [1e-3, -1e-3], None, "1e-9", True, [1, [2]]])
def test_an_absolute_tolerance_that_is_none(atol):
    refused(ValueError, ["`atol` must be"], ol.adaptive, 1e-6, atol)


def test_as_many_absolute_tolerances_as_components():
    refused(ValueError, ["`atol`", "(1, 1)"], ol.adaptive, 1e-6, [[1e-3]])
    words = ["`atol` has 2 entries for a state of 1 components"]
    refused(ValueError, words, ol.solve, ONE, ol.DOPRI5, ol.adaptive(1e-6, [1e-9, 1e-9]))


def test_no_absolute_tolerance_where_a_component_starts_at_zero():
    words = ["`atol` = 0", "component 1", "starts at 0"]
    refused(ValueError, words, ol.solve, CIRCLE, ol.DOPRI5, ol.adaptive(1e-6, 0.0))
    assert ol.solve(ONE, ol.DOPRI5, ol.adaptive(1e-6, 0.0)).ok
    assert ol.solve(CIRCLE, ol.DOPRI5, ol.adaptive(1e-6, [0.0, 1e-9])).ok


@pytest.mark.parametrize("name", ["first_step", "max_step"])
@pytest.mark.parametrize("value", [0, -1.0, np.nan, "a", True])
def test_step_limits_that_are_none(name, value):
    refused(ValueError, [f"`{name}` must be positive", f"got {value!r}"], ol.adaptive, **{name: value})


def test_a_largest_step_of_none_is_refused_in_words():
    refused(ValueError, ["`max_step` must be positive", "got None"], ol.adaptive, max_step=None)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((decay, ol.RK4), TypeError, ["`problem` must be a Problem", "odelab.Problem(rhs, u0, t_span)"]),
        ((ONE, "DOPRI5"), TypeError, ["`method` must be a Method like odelab.DOPRI5", "'DOPRI5'", "odelab.METHODS"]),
        ((ONE, ol.RK4, 0.1), TypeError, ["`controller` must come from odelab.fixed or odelab.adaptive", "0.1"]),
        (
            (ONE, ol.RK4),
            ValueError,
            ["`controller` is adaptive", "RK4 has no embedded method", "odelab.fixed", "DOPRI5"],
        ),
        ((ONE, ol.RADAU, ol.fixed(0.1)), ValueError, ["`controller` must be adaptive for RADAU"]),
    ],
)
def test_what_solve_takes(arguments, error, words):
    refused(error, words, ol.solve, *arguments)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"engine": "gpu"}, ValueError, ["`engine` must be one of ('auto', 'python', 'compiled')", "'gpu'"]),
        ({"max_steps": 0}, ValueError, ["`max_steps` must be a positive whole number", "0"]),
        ({"max_steps": 1e3}, ValueError, ["`max_steps` must be a positive whole number", "1000.0"]),
        ({"max_steps": True}, ValueError, ["`max_steps` must be a positive whole number", "True"]),
        ({"project": 3}, TypeError, ["`project` must be a function u -> u", "3"]),
        ({"project": lambda u: u[:0]}, ValueError, ["`project` returned shape (0,)", "shape (1,)"]),
        ({"t_eval": [0.0, 2.0]}, ValueError, ["`t_eval` = 2.0 lies outside `t_span` = (0.0, 1.0)", "widen the span"]),
        ({"t_eval": [-1e-9]}, ValueError, ["`t_eval` = -1e-09 lies outside"]),
        ({"t_eval": [np.nan]}, ValueError, ["`t_eval` = nan lies outside"]),
        ({"t_eval": [0.5, 0.25]}, ValueError, ["`t_eval` must be sorted in the direction of the run"]),
        ({"t_eval": [0.5, 0.5]}, ValueError, ["`t_eval` must be sorted", "without repetitions"]),
        ({"t_eval": [[0.5]]}, ValueError, ["`t_eval` must be one-dimensional", "(1, 1)"]),
        ({"t_eval": "a"}, ValueError, ["`t_eval` must be a row of times", "'a'"]),
        ({"t_eval": ["0.5"]}, ValueError, ["`t_eval` must be a row of times", "['0.5']"]),
        ({"t_eval": [True]}, ValueError, ["`t_eval` must be a row of times", "[True]"]),
        ({"t_eval": np.ma.array([0.5, 0.7], mask=[False, True])}, ValueError, ["`t_eval` must be a row of times"]),
        ({"project": lambda u: u + 0j}, TypeError, ["`project` must return real numbers", "complex128"]),
    ],
)
def test_the_options_of_solve(options, error, words):
    refused(error, words, ol.solve, ONE, ol.DOPRI5, **options)


def test_t_eval_follows_the_direction_of_the_run():
    back = ONE.replace(t_span=(1.0, 0.0))
    assert ol.solve(back, ol.DOPRI5, t_eval=[1.0, 0.5, 0.0]).t.tolist() == [1.0, 0.5, 0.0]
    refused(ValueError, ["`t_eval` must be sorted"], ol.solve, back, ol.DOPRI5, t_eval=[0.0, 0.5])
    assert ol.solve(ONE, ol.DOPRI5, t_eval=0.5).u.shape == (1, 1)
    assert ol.solve(ONE, ol.DOPRI5, t_eval=[]).u.shape == (0, 1)


def test_a_projection_needs_an_explicit_method():
    words = ["`project` works with odelab's own methods only", "RADAU"]
    refused(ValueError, words, ol.solve, ONE, ol.RADAU, project=abs)


def spelled_out(t, u, params):
    return (-float(str(u[0])),)


def with_a_set(t, u, params):
    return (-float(sorted({f"{u[0]}"})[0]),)


@needs_numba
@pytest.mark.parametrize(
    ("rhs", "params", "words"),
    [
        (spelled_out, (), ["cannot compile spelled_out: ", "engine='python'"]),
        (with_a_set, (), ["cannot compile with_a_set: ", "test_bad_input.py", "engine='python'"]),
    ],
)
def test_what_cannot_be_compiled_says_so(rhs, params, words):
    with pytest.raises(ol.NotCompilable) as raised:
        ol.solve(ol.Problem(rhs, [1.0], (0.0, 1.0), params), ol.RK4, ol.fixed(0.1), engine="compiled")
    for word in ["`engine='compiled'`", *words]:
        assert word in str(raised.value)
    assert len(str(raised.value)) < 1500
    assert not re.search("site-packages", str(raised.value))


@pytest.mark.slow
@needs_numba
def test_the_warning_of_a_run_in_plain_python_speaks_of_no_engine_that_nobody_asked_for():
    problem = ol.Problem(with_a_set, [1.0], (0.0, 1.0))
    with pytest.warns(RuntimeWarning, match="plain Python, as it cannot compile with_a_set: ") as said:
        ol.solve(problem, ol.RK4, ol.fixed(1e-5))
    assert "engine='compiled'" not in str(said[0].message)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rtol", ["`solve` takes no `rtol`", "`odelab.adaptive(rtol=...)`"]),
        ("h", ["`odelab.fixed(h=...)`"]),
        ("args", ["`problem.replace(params=...)`"]),
        ("dense_output", ["`sol(t)`"]),
        ("evnts", ["`solve` takes no `evnts`", "its arguments are problem, method, controller, t_eval, "]),
    ],
)
def test_an_argument_that_solve_does_not_take_is_shown_where_it_belongs(name, words):
    refused(TypeError, words, ol.solve, ONE, ol.DOPRI5, **{name: 1e-8})


def test_an_argument_that_an_ensemble_does_not_take():
    words = ["`ensemble` takes no `dense`; `odelab.solve` does, for one run; its arguments are problem, method, "]
    refused(TypeError, words, ol.ensemble, ONE, ol.DOPRI5, u0=[[1.0]], dense=False)
    refused(TypeError, ["`odelab.adaptive(atol=...)`"], ol.ensemble, ONE, ol.DOPRI5, u0=[[1.0]], atol=1e-9)


@pytest.mark.parametrize(
    "rhs",
    [lambda u, t: (-u[0],), lambda y, t, params: -y, lambda x, time, params, out: None],
)
def test_the_order_of_odeint_is_named(rhs):
    refused(
        TypeError, ["in the order (t, u, params)", "scipy.integrate.odeint", "exchange"], ol.Problem, rhs, [1.0], (0, 1)
    )
    words = ["`jacobian` must take its arguments in the order (t, u, params)"]
    refused(TypeError, words, ol.Problem, decay, [1.0], (0, 1), jacobian=lambda y, t: [[-1.0]])


def test_parameters_that_require_gradients():
    torch = pytest.importorskip("torch")
    rate = torch.tensor([1.0], requires_grad=True)
    for params in (rate, (1.0, rate), [rate[0]], {"rate": rate}):
        refused(TypeError, ["`params` requires gradients", "params.detach()"], ol.Problem, decay, [1.0], (0, 1), params)
    words = ["requires gradients", "`odelab.ensemble` does not", "take netbridge.ensemble_with_gradients"]
    growth = ol.problems.dahlquist()
    refused(TypeError, ["`params`", *words], ol.ensemble, growth, params=torch.ones(3, 1, requires_grad=True))
    refused(TypeError, ["`u0`", *words], ol.ensemble, growth, u0=torch.ones(3, 1, requires_grad=True))


def test_slopes_whose_gradients_are_dropped_are_named():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Linear(2, 2).double()

    def learned(t, u, params):
        return net(torch.as_tensor(u))

    def without(t, u, params):
        with torch.no_grad():
            return net(torch.as_tensor(u))

    with pytest.warns(RuntimeWarning, match=r"`rhs` learned returns a tensor that carries gradients") as said:
        problem = ol.Problem(learned, [1.0, 2.0], (0.0, 1.0))
    assert len(said) == 1  # and none of torch's, of arrays that cannot be written to
    assert said[0].filename == __file__
    silent = ol.Problem(without, [1.0, 2.0], (0.0, 1.0))
    ends = [ol.solve(one, method).end_u for one in (problem, silent) for method in (ol.DOPRI5, ol.RODAS4)]
    np.testing.assert_allclose(ends, np.tile(ends[0], (4, 1)), rtol=1e-5)


@pytest.mark.parametrize("h", [0.1, 0.3, 1.0 / 3.0, 1e-3])
def test_fixed_steps_that_are_known_to_be_too_many_are_refused_before_the_run(h):
    steps = ol.solve(ONE, ol.RK4, ol.fixed(h)).steps
    assert ol.solve(ONE, ol.RK4, ol.fixed(h), max_steps=steps).ok
    words = [f"takes {steps:,} steps over `t_span`", f"give max_steps={steps}, larger steps, or throw=False"]
    refused(ValueError, words, ol.solve, ONE, ol.RK4, ol.fixed(h), max_steps=steps - 1)
    assert ol.solve(ONE, ol.RK4, ol.fixed(h), max_steps=steps - 1, throw=False).steps == steps - 1
    halfway = ol.Event(lambda t, u, params: t - 0.5, terminal=True)
    assert ol.solve(ONE, ol.RK4, ol.fixed(h), max_steps=steps - 1, events=halfway).status == "event"
