"""Kernels follow whatever changes: nothing that a function has captured is taken for what it was before."""

import dataclasses
import functools
import threading

import numpy as np
import pytest

import odelab as ol

DECAY = ol.DOPRI5


def problem(rhs, **options):
    return ol.Problem(rhs, [1.0], (0.0, 1.0), **options)


def assert_follows(given, change):
    """Compiled and plain Python agree before a change and after it, and the change matters."""
    ends = []
    for _ in range(2):
        compiled, plain = (float(ol.solve(given, DECAY, engine=engine).end_u[0]) for engine in ("auto", "python"))
        assert compiled == pytest.approx(plain, rel=1e-6)
        ends.append(plain)
        change()
    assert abs(ends[0] - ends[1]) > 1e-3


def test_a_class_that_holds_constants():
    class Rates:
        fast = 1.0

    assert_follows(problem(lambda t, u, params: (-Rates.fast * u[0],)), lambda: setattr(Rates, "fast", 2.0))


def test_defaults_that_are_changed_in_place():
    def rhs(t, u, params, table=[1.0, 2.0], row=np.array([1.0])):  # noqa: B006, B008
        return (-table[0] * row[0] * u[0],)

    assert_follows(problem(rhs), lambda: rhs.__defaults__[0].__setitem__(0, 3.0))
    assert_follows(problem(rhs), lambda: rhs.__defaults__[1].__setitem__(0, 3.0))


def test_what_a_partial_was_given():
    rates = np.array([1.0])

    def rhs(rates, t, u, params):
        return (-rates[0] * u[0],)

    assert_follows(problem(functools.partial(rhs, rates)), lambda: rates.__setitem__(0, 3.0))


def test_code_that_is_exchanged():
    def rhs(t, u, params):
        return (-u[0],)

    def other(t, u, params):
        return (-5.0 * u[0],)

    assert_follows(problem(rhs), lambda: setattr(rhs, "__code__", other.__code__))


def test_an_object_whose_class_or_attributes_change():
    class Model:
        rate = 1.0

        def rhs(self, t, u, params):
            return (-self.rate * u[0],)

    model = Model()
    assert_follows(problem(model.rhs), lambda: setattr(Model, "rate", 2.0))
    assert_follows(problem(model.rhs), lambda: setattr(model, "rate", 4.0))


@dataclasses.dataclass(frozen=True)
class Named:
    name: str
    rate: float = dataclasses.field(compare=False)

    def __call__(self, t, u, params):
        return (-self.rate * u[0],)


def test_objects_that_compare_equal_are_not_the_same():
    for model in (Named("decay", 1.0), Named("decay", 2.0)):
        end = ol.solve(problem(model), DECAY).end_u[0]
        assert end == pytest.approx(np.exp(-model.rate), rel=1e-5)


def by_kind(t, u, params):
    return (-params[0] * u[0],) if isinstance(params[0], float) else (-3 * params[0] * u[0],)


@pytest.mark.parametrize("value", [2.0, 2])
def test_a_whole_number_is_not_the_float_of_its_value(value):
    compiled, plain = (
        ol.solve(problem(by_kind, params=(value,)), DECAY, engine=engine).end_u[0] for engine in ("auto", "python")
    )
    assert compiled == pytest.approx(plain, rel=1e-6)


def test_a_piece_of_a_problem_is_another_run():
    falling = ol.Problem(lambda t, u, params: (u[1], -9.81), [1.0, 0.0], (0.0, 2.0))
    ground = ol.Event(lambda t, u, params: u[0], direction=-1, change=lambda t, u, params: [0.0, -0.9 * u[1]])
    ol.solve(falling, DECAY, ol.fixed(0.013))
    compiled, plain = (
        ol.solve(falling, DECAY, ol.fixed(0.013), events=[ground], engine=engine) for engine in ("auto", "python")
    )
    np.testing.assert_allclose(compiled.end_u, plain.end_u, atol=1e-9)
    assert len(compiled.events[0].t) == len(plain.events[0].t) == 3


def center(x):
    return [x, 2.0]


def test_what_a_helper_returns_may_be_written_to():
    def rising(t, u, params):
        row = center(u[0])
        row[0] = 0.0 * row[0] + 5.0
        return center(u[0])[0]

    swing = ol.Problem(lambda t, u, params: (u[1], -u[0]), [1.0, 0.0], (0.0, 10.0))
    for engine in ("compiled", "python"):
        assert len(ol.solve(swing, DECAY, events=rising, engine=engine).events[0].t) == 3


def test_a_controller_with_a_start_of_its_own_is_heard():
    plain = ol.adaptive(1e-4)
    own = dataclasses.replace(plain, start=lambda run: (plain.start(run._replace(first_step=0.5))[0], 0))
    assert ol.solve(problem(lambda t, u, params: (-u[0],)), DECAY, own).h[0] == 0.5


def test_runs_by_methods_in_turns_notice_what_has_changed():
    """A problem remembers the kernels of its last runs, and no kernel outlives the numbers that are in it."""
    rates = np.array([1.0])
    problem = ol.Problem(lambda t, u, params: (-rates[0] * u[0],), [1.0], (0.0, 1.0))
    for rates[0] in (1.0, 2.0):
        for method in (ol.DOPRI5, ol.BS32, ol.DOPRI5, ol.BS32):
            sol = ol.solve(problem, method)
            assert (sol.method, sol.engine) == (method, "compiled")
            assert sol.end_u[0] == pytest.approx(np.exp(-rates[0]), rel=1e-5)


class Busy:
    """Whoever looks into it lets another thread solve the same problem by many methods, before the look is over."""

    rate, ahead = 1.0, None

    @property
    def __dict__(self):
        work, self.__class__.ahead = self.__class__.ahead, None
        if work is not None:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        return {}


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.AUTO], ids=str)
def test_threads_may_solve_one_problem_at_once(method):
    busy = Busy()
    given, controller = problem(lambda t, u, params: (-busy.rate * u[0],)), ol.adaptive()
    others = [ol.adaptive(0.1**k) for k in range(3, 9)]
    first = ol.solve(given, method, controller)
    Busy.ahead = lambda: [ol.solve(given, method, other) for other in others]
    np.testing.assert_array_equal(ol.solve(given, method, controller).step_u, first.step_u)
    assert Busy.ahead is None  # the threads did meet
