"""Laws of sensitivities: linear problems, frozen steps, steps in two parts, engines and lanes that agree."""

import pickle
from typing import NamedTuple

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

import odelab as ol
from odelab.graph.derivatives import derivatives
from odelab.graph.nodes import Graph
from odelab.kernels import store
from odelab.kernels.implicit import Factors
from odelab.sensitivities.system import System
from tests.odelab.solver_cases import replayed

METHODS = [ol.DOPRI5, ol.BS32, ol.DOP853, ol.ROS2, ol.RODAS4, ol.RODAS5P]
NAMES = [method.name for method in METHODS]


def predators(t, u, params):
    hares, lynxes = u
    births, meals, deaths, gains = params
    return births * hares - meals * hares * lynxes, gains * hares * lynxes - deaths * lynxes


LOTKA = ol.Problem(predators, [10.0, 5.0], (0.0, 10.0), (1.5, 1.0, 3.0, 1.0))


@st.composite
def matrices(draw):
    n = draw(st.integers(1, 4))
    return np.random.default_rng(draw(st.integers(0, 10**6))).standard_normal((n, n))


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS5P], ids=["DOPRI5", "RODAS5P"])
@given(matrix=matrices())
def test_a_linear_problem_has_its_exponential(method, matrix):
    """u' = A u gives du/du0 = exp(A t), to what the tolerance allows."""
    problem = ol.Problem(lambda t, u, params: matrix @ u, np.ones(len(matrix)), (0.0, 1.0))
    sol = ol.solve(problem, method, ol.adaptive(1e-8, 1e-10), sensitivities=ol.wrt(u0=True), engine="python")
    exponential = scipy.linalg.expm(matrix)
    assert np.abs(sol.end_sensitivities - exponential).max() <= 50 * 1e-8 * np.linalg.norm(exponential)


@pytest.mark.parametrize("method", METHODS, ids=NAMES)
@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_they_are_the_derivative_of_the_steps(method, engine):
    """Central differences of the same steps agree as far as differences can: to 1e-7 of the column."""
    controller, h = ol.fixed(0.02), 1e-5
    problem = LOTKA.replace(t_span=(0.0, 2.0))
    sol = ol.solve(problem, method, controller, sensitivities=ol.wrt(params=True), engine=engine)
    for j, value in enumerate(problem.params):
        ends = [
            ol.solve(problem.replace(params=with_entry(problem.params, j, value + d)), method, controller).end_u
            for d in (-h, h)
        ]
        difference = (ends[1] - ends[0]) / (2 * h)
        assert np.abs(sol.end_sensitivities[:, j] - difference).max() <= 1e-7 * np.abs(difference).max()


def with_entry(params, j, value):
    return (*params[:j], value, *params[j + 1 :])


@pytest.mark.parametrize("method", [ol.RODAS4, ol.RODAS5P], ids=["RODAS4", "RODAS5P"])
def test_frozen_steps_of_a_stiff_run(method):
    """The steps of an adaptive run taken again for rates that are a millionth larger and smaller."""
    problem = ol.problems.robertson().replace(t_span=(0.0, 40.0))
    sol = ol.solve(problem, method, ol.adaptive(1e-6, 1e-10), sensitivities=ol.wrt(params=[0, 2]))
    for column, j in enumerate((0, 2)):
        h = 1e-6 * problem.params[j]
        ends = [
            ol.solve(
                problem.replace(params=with_entry(problem.params, j, problem.params[j] + d)),
                method,
                replayed(sol.h),
                max_steps=sol.steps,
                throw=False,
            ).end_u
            for d in (-h, h)
        ]
        difference = (ends[1] - ends[0]) / (2 * h)
        assert np.abs(sol.end_sensitivities[:, column] - difference).max() <= 1e-7 * np.abs(difference).max()


class Constants(NamedTuple):
    rate: float
    inside: dict


XS, YS = np.linspace(0.0, 1.0, 11), np.sin(np.linspace(0.0, 1.0, 11))


def unpleasant(t, u, params):
    """Parameters inside of others, a table, a branch, a root, a power, and time."""
    driven = params.inside["matrix"] @ u
    force = np.interp(t, XS, YS)
    late = u[1] ** 2.5 if u[1] > 0.2 else 0.1 * u[1]
    return np.array([driven[0] + params.rate * force * u[1], driven[1] - np.sqrt(abs(u[0])) + late * np.exp(-t)])


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4], ids=["DOPRI5", "RODAS4"])
@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_parameters_inside_of_others(method, engine):
    def params(rate=0.7, corner=0.2):
        return Constants(rate, {"matrix": np.array([[-1.0, corner], [0.3, -0.5]]), "unused": "text"})

    problem = ol.Problem(unpleasant, [1.0, 0.5], (0.0, 1.0), params())
    chosen = ol.wrt(params=["rate", ("inside", "matrix", 0, 1)])
    sol = ol.solve(problem, method, ol.fixed(0.05), sensitivities=chosen, engine=engine)
    assert sol.columns == ("params.rate", "params.inside['matrix'][0, 1]")
    h = 1e-5
    for j, name in enumerate(("rate", "corner")):
        here = {"rate": 0.7, "corner": 0.2}[name]
        ends = [
            ol.solve(problem.replace(params=params(**{name: here + d})), method, ol.fixed(0.05)).end_u for d in (-h, h)
        ]
        difference = (ends[1] - ends[0]) / (2 * h)
        assert np.abs(sol.end_sensitivities[:, j] - difference).max() <= 1e-7 * np.abs(difference).max()


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4, ol.AUTO], ids=["DOPRI5", "RODAS4", "AUTO"])
def test_two_parts_are_one(method):
    """du(2)/du(0) = du(2)/du(1) du(1)/du(0)."""
    controller, chosen = ol.adaptive(1e-9, 1e-11), ol.wrt(u0=True)
    whole = ol.solve(LOTKA.replace(t_span=(0.0, 2.0)), method, controller, sensitivities=chosen)
    first = ol.solve(LOTKA.replace(t_span=(0.0, 1.0)), method, controller, sensitivities=chosen)
    second = ol.solve(LOTKA.replace(t_span=(1.0, 2.0), u0=first.end_u), method, controller, sensitivities=chosen)
    product = second.end_sensitivities @ first.end_sensitivities
    assert np.abs(whole.end_sensitivities - product).max() <= 50 * 1e-9 * np.linalg.norm(product)


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4], ids=["DOPRI5", "RODAS4"])
def test_without_their_errors_steps_are_those_of_the_state(method):
    plain = ol.solve(LOTKA, method)
    sol = ol.solve(LOTKA, method, sensitivities=ol.wrt(params=True, u0=True), sensitivity_errors=False)
    assert (sol.steps, sol.rejected) == (plain.steps, plain.rejected)
    np.testing.assert_allclose(sol.step_t, plain.step_t, rtol=1e-9)
    np.testing.assert_allclose(sol.step_u, plain.step_u, rtol=1e-9)


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4], ids=["DOPRI5", "RODAS4"])
def test_steps_do_not_depend_on_the_units_of_a_parameter(method):
    unit = 2.0**40  # a power of two, so that nothing is rounded
    controller, chosen = ol.adaptive(1e-6, 1e-2), ol.wrt(params=[0])
    one = ol.solve(LOTKA, method, controller, sensitivities=chosen, engine="python")

    def in_units(t, u, params):
        return predators(t, u, (params[0] * unit, *params[1:]))

    other = LOTKA.replace(rhs=in_units, params=(LOTKA.params[0] / unit, *LOTKA.params[1:]))
    two = ol.solve(other, method, controller, sensitivities=chosen, engine="python")
    np.testing.assert_allclose(two.step_t, one.step_t, rtol=1e-10)
    expected = one.sensitivities * unit
    np.testing.assert_allclose(two.sensitivities, expected, rtol=0.0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["robertson", "hires", "oregonator"])
def test_one_factorisation_serves_every_column(name):
    """The pivots of the whole system are as many different operations as those of u alone."""
    problem = getattr(ol.problems, name)()
    whole = System(problem, ol.wrt(u0=[0, 1, 2]), True).whole
    graph = Graph()
    states = graph.inputs("u", whole.size)
    slopes = store.slopes_in(graph, store.slopes_of(whole))(graph.input("t"), states)
    factors = Factors(derivatives(graph, list(slopes), list(states)), graph.input("hg"))
    assert len({pivot.i for pivot in factors.P.values()}) == problem.size


def test_a_column_does_not_depend_on_the_others():
    controller = ol.fixed(0.01)
    every = ol.solve(LOTKA, ol.DOPRI5, controller, sensitivities=ol.wrt(params=True, u0=True))
    some = ol.solve(LOTKA, ol.DOPRI5, controller, sensitivities=ol.wrt(params=[2], u0=[1]))
    assert some.columns == ("params[2]", "u0[1]")
    np.testing.assert_allclose(some.end_sensitivities, every.end_sensitivities[:, [2, 5]], rtol=1e-12)


def variational(t, y):
    """Predators and prey with the derivatives by two parameters, written by hand."""
    (x, v), s, r = y[:2], y[2:4], y[4:]
    jacobian = np.array([[1.5 - v, -x], [v, x - 3.0]])
    return np.concatenate([[1.5 * x - x * v, x * v - 3.0 * v], jacobian @ s + [x, 0.0], jacobian @ r + [0.0, -v]])


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4, ol.RODAS5P], ids=["DOPRI5", "RODAS4", "RODAS5P"])
def test_they_are_as_exact_as_the_tolerance_asks(method, rtol):
    """At the end and, by dense output, in between; the reference is the variational equation written by hand."""
    times = np.array([3.3, 6.6, 10.0])
    start = np.array([10.0, 5.0, 0.0, 0.0, 0.0, 0.0])
    reference = scipy.integrate.solve_ivp(variational, (0.0, 10.0), start, "DOP853", times, rtol=1e-12, atol=1e-13).y
    sol = ol.solve(LOTKA, method, ol.adaptive(rtol, 1e-4 * rtol), t_eval=times, sensitivities=ol.wrt(params=[0, 2]))
    expected = np.moveaxis(reference[2:].reshape(2, 2, 3), -1, 0).swapaxes(1, 2)
    size = np.abs(expected).max(axis=(0, 1))
    assert (np.abs(sol.sensitivities - expected) <= 50 * rtol * size).all()


def test_robertson_as_in_the_page():
    sol = ol.solve(
        ol.problems.robertson().replace(t_span=(0.0, 40.0)),
        ol.RODAS5P,
        ol.adaptive(1e-8, 1e-12),
        sensitivities=ol.wrt(params=True),
    )
    np.testing.assert_allclose(sol.end_sensitivities[:, 0], [-4.247559, 4.591196e-05, 4.247513], rtol=1e-6)
    assert "du/d params[0] at t = 40: [-4.2475" in str(sol)
    assert "step sizes from u and 3 columns" in str(sol)


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4, ol.ESDIRK43], ids=["DOPRI5", "RODAS4", "ESDIRK43"])
def test_engines_agree(method):
    chosen = ol.wrt(params=True, u0=True)
    one, other = (
        ol.solve(LOTKA, method, ol.fixed(0.02), sensitivities=chosen, engine=engine)
        for engine in ("python", "compiled")
    )
    assert (one.engine, other.engine) == ("python", "compiled")
    np.testing.assert_allclose(one.sensitivities, other.sensitivities, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4], ids=["DOPRI5", "RODAS4"])
def test_runs_in_lanes_are_single_runs(method):
    rates = np.array(LOTKA.params) * np.linspace(0.9, 1.1, 40)[:, None]
    times, chosen = np.array([1.0, 2.5]), ol.wrt(params=True, u0=[1])
    runs = ol.ensemble(LOTKA, method, ol.fixed(0.02), params=rates, t_eval=times, sensitivities=chosen)
    assert runs.engine == "compiled"
    assert runs.sensitivities.shape == (40, 2, 2, 5)
    for k in (0, 17, 39):
        one = LOTKA.replace(params=tuple(rates[k]))
        sol = ol.solve(one, method, ol.fixed(0.02), t_eval=times, sensitivities=chosen)
        np.testing.assert_allclose(runs.u[k], sol.u, rtol=1e-9)
        np.testing.assert_allclose(runs.sensitivities[k], sol.sensitivities, rtol=1e-8, atol=1e-10)


def test_other_methods_take_them_too():
    """A method that knows nothing of sensitivities solves the whole system as it solves any other."""
    problem, chosen = ol.problems.robertson().replace(t_span=(0.0, 0.4)), ol.wrt(params=[0])
    ends = [
        ol.solve(problem, method, ol.adaptive(1e-7, 1e-11), sensitivities=chosen).end_sensitivities[:, 0]
        for method in (ol.RODAS4, ol.ESDIRK43, ol.AUTO, ol.RKC2, ol.RADAU)
    ]
    for end in ends[1:]:
        np.testing.assert_allclose(end, ends[0], rtol=1e-5)


def test_without_states_they_are_kept_at_the_times_asked_for():
    times, chosen = [2.0, 7.0], ol.wrt(params=[0])
    whole = ol.solve(LOTKA, ol.DOPRI5, t_eval=times, sensitivities=chosen)
    short = ol.solve(LOTKA, ol.DOPRI5, t_eval=times, sensitivities=chosen, dense=False)
    np.testing.assert_allclose(short.sensitivities, whole.sensitivities, rtol=1e-12)
    np.testing.assert_allclose(whole.sensitivities_at(times), whole.sensitivities, rtol=1e-12)
    assert short.step_sensitivities is None
    with pytest.raises(ValueError, match="dense=False"):
        short.sensitivities_at(2.0)


def test_a_run_can_be_pickled():
    sol = ol.solve(LOTKA, ol.RODAS4, sensitivities=ol.wrt(params=[0]))
    again = pickle.loads(pickle.dumps(sol))
    np.testing.assert_array_equal(again.sensitivities_at(3.3), sol.sensitivities_at(3.3))


def explosion(t, u, params):
    return (params[0] * u[0] * u[0],)


def test_failures_name_the_column():
    problem = ol.Problem(explosion, [1.0], (0.0, 2.0), params=1.0)
    with pytest.raises(ol.RunFailed, match=r"component 0 of du/d u0\[0\] has reached") as failure:
        ol.solve(problem, ol.DOPRI5, sensitivities=ol.wrt(u0=True))
    assert failure.value.trajectory.columns == ("u0[0]",)


def texts(t, u, params):
    return (float(str(float(u[0]))) * params[0],)


def counted(t, u, params):
    return (sum(params[1] * u[0] for _ in range(params[0])),)


def test_refusals():
    problem = ol.Problem(texts, [1.0], (0.0, 1.0), params=1.0)
    with pytest.raises(ol.NotCompilable, match="`sensitivities` needs functions whose operations can be followed"):
        ol.solve(problem, ol.DOPRI5, sensitivities=ol.wrt(params=True))
    with pytest.raises(
        ValueError, match=r"`params` of odelab.wrt has 7, where no number stands; there are params\[0\]"
    ):
        ol.solve(LOTKA, ol.DOPRI5, sensitivities=ol.wrt(params=[7]))
    with pytest.raises(ValueError, match="names no number"):
        ol.solve(LOTKA, ol.DOPRI5, sensitivities=ol.wrt())
    with pytest.raises(TypeError, match=r"`sensitivities` must come from odelab\.wrt"):
        ol.solve(LOTKA, ol.DOPRI5, sensitivities="params")
    with pytest.raises(ValueError, match="`project`"):
        ol.solve(LOTKA, ol.DOPRI5, project=abs, sensitivities=ol.wrt(u0=True))
    with pytest.raises(ValueError, match="`maxima`"):
        ol.ensemble(LOTKA, ol.DOPRI5, u0=[[1.0, 1.0]], maxima=True, sensitivities=ol.wrt(u0=True))


def test_whole_numbers_that_count_are_no_columns():
    problem = ol.Problem(counted, [1.0], (0.0, 1.0), params=(3, -0.5))
    sol = ol.solve(problem, ol.DOPRI5, sensitivities=ol.wrt(params=True))
    assert sol.columns == ("params[1]",)
    np.testing.assert_allclose(sol.end_sensitivities, [[3.0 * np.exp(-1.5)]], rtol=1e-5)
