"""A fingerprint covers all that a right-hand side reaches: no kernel answers for values that have changed."""

import contextlib
import ctypes

import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import odelab as ol
from odelab.arrays import row_of_numbers
from odelab.engines.numba.fingerprint import Unseen, fingerprint
from tests.odelab.engines.right_hand_sides import OBJECTS, PARTS, right_hand_sides, slope

QUICK = tuple(part for part in PARTS if "compiled" not in part.name)  # by plain Python alone
relaxed = settings(deadline=None, suppress_health_check=list(HealthCheck))


@relaxed
@given(right_hand_sides(QUICK))
def test_equal_functions_have_equal_fingerprints(case):
    one, other = case.build(), case.build()
    assert fingerprint(one["rhs"]).digest == fingerprint(other["rhs"]).digest


@relaxed
@given(right_hand_sides(QUICK))
def test_whatever_changes_the_slope_changes_the_fingerprint(case):
    names = case.build()
    for change in case.changes:
        taken, before = fingerprint(names["rhs"]), slope(case, names)
        assert taken.watch.is_unchanged()
        assert taken.lasting
        exec(change, names)
        if not np.array_equal(slope(case, names), before):
            assert not taken.watch.is_unchanged()
            assert fingerprint(names["rhs"]).digest != taken.digest


def assert_engines_agree(case, method=ol.RK4, engine="compiled"):
    """Before any change and after each, a kernel and plain Python take the same steps."""
    names = case.build()
    for change in ("", *case.changes):
        exec(change, names)
        problem = case.problem(names)
        compiled, plain = (ol.solve(problem, method, ol.fixed(0.1), engine=e, throw=False) for e in (engine, "python"))
        np.testing.assert_allclose(compiled.step_u, plain.step_u, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
@settings(max_examples=1, deadline=None)
@given(data=st.data())
def test_a_kernel_follows_every_change(part, data):
    assert_engines_agree(data.draw(right_hand_sides((part,))))


@pytest.mark.slow
@settings(relaxed, max_examples=20)
@given(right_hand_sides())
def test_kernels_of_random_right_hand_sides_are_plain_python(case):
    assert_engines_agree(case)


@pytest.mark.parametrize("part", OBJECTS, ids=lambda part: part.name)
@settings(max_examples=1, deadline=None)
@given(data=st.data())
def test_objects_are_followed_or_refused(part, data):
    """A graph follows what can be seen of an object, and its changes."""
    case = data.draw(right_hand_sides((part,)))
    with contextlib.suppress(ol.NotCompilable):
        assert_engines_agree(case)


def test_an_object_that_cannot_be_seen_is_named():
    class Law:
        rate = 1.0

    law = Law()

    def decay(t, u, params):
        return (-law.rate * u[0],)

    with pytest.raises(Unseen, match=r"captured `law`, a Law.*`params`.*test_fingerprint\.py"):
        fingerprint(decay)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.int16])
def test_whole_numbers_that_numba_counts_otherwise_than_numpy_are_refused(dtype):
    """Differences of unsigned numbers wrap around at another place, sums of short ones not at all."""
    levels = (np.array([100, 200], dtype=dtype), 1.0)

    def difference(t, u, params):
        return (-(levels[0][0] - levels[0][1]) * u[0],)

    with pytest.raises(Unseen, match=rf"`levels`, numbers of dtype {np.dtype(dtype)}.*astype"):
        fingerprint(difference)


def test_parameters_that_are_no_floats_reach_every_engine_as_they_are():
    """2**60 + 1 as a float is 2**60, and "1" would be a number."""

    def last_digit(t, u, params):
        return (-(params[0] % 10) * u[0],)

    problem = ol.Problem(last_digit, [1.0], (0.0, 0.1), (2**60 + 1,))
    plain, compiled = (ol.solve(problem, ol.EULER, ol.fixed(0.01), engine=name) for name in ("python", "compiled"))
    assert compiled.end_u == pytest.approx(plain.end_u, rel=1e-12)
    assert row_of_numbers(("1",)) is None


def test_what_has_an_address_is_not_kept_for_other_processes():
    cosine = ctypes.CDLL(None).cos

    def rhs(t, u, params):
        return (cosine(u[0]),)

    assert not fingerprint(rhs).lasting


ITSELF = "def down(x, n):\n    if n == 0:\n        return x\n    return down(0.5 * x, n - 1)\n"
EACH_OTHER = ITSELF.replace("return down(", "return further(") + ITSELF.replace("down(x", "further(x")


@pytest.mark.parametrize("helpers", [ITSELF, f"@numba.njit\n{ITSELF}", EACH_OTHER], ids=["itself", "njit", "other"])
def test_a_function_that_calls_itself_has_a_kernel_that_stays_in_this_process(helpers):
    """Numba keeps such machine code on disk without a word, and crashes where another process reads it."""
    names = {"numba": numba}
    exec(f"{helpers}def rhs(t, u, params):\n    return (-down(u[0], 2),)", names)
    assert not fingerprint(names["rhs"]).lasting
    problem = ol.Problem(names["rhs"], [1.0], (0.0, 1.0))
    compiled, plain = (ol.solve(problem, ol.RK4, ol.fixed(0.1), engine=e).end_u for e in ("compiled", "python"))
    np.testing.assert_allclose(compiled, plain, rtol=1e-12)
    assert not fingerprint(names["rhs"]).lasting


@pytest.mark.slow
def test_a_compiled_helper_keeps_the_values_it_was_compiled_with_in_every_engine():
    rate = [1.0]
    names = {"numba": numba, "RATE": 1.0}
    exec("@numba.njit\ndef helper(x):\n    return -RATE * x\ndef rhs(t, u, params):\n    return (helper(u[0]),)", names)
    problem = ol.Problem(names["rhs"], rate, (0.0, 1.0))
    ends = []
    for value in (1.0, 2.0):
        names["RATE"] = value
        ends += [ol.solve(problem, ol.EULER, ol.fixed(0.125), engine=e).end_u[0] for e in ("compiled", "python")]
    names["helper"].recompile()
    ends += [ol.solve(problem, ol.EULER, ol.fixed(0.125), engine=e).end_u[0] for e in ("compiled", "python")]
    np.testing.assert_allclose(ends, [0.875**8] * 4 + [0.75**8] * 2, rtol=1e-14)


# As a user meets it


def test_an_array_in_a_captured_tuple_is_changed():
    stiffness = (np.array([1.0]), "spring")

    def spring(t, u, params):
        x, v = u
        return v, -stiffness[0][0] * x

    problem, controller = ol.Problem(spring, [1.0, 0.0], (0.0, 100.0)), ol.adaptive(1e-9, 1e-11)
    for k in (1.0, 4.0):
        stiffness[0][0] = k
        exact = pytest.approx(np.cos(k**0.5 * 100.0), abs=1e-5)
        assert ol.solve(problem, ol.DOPRI5, controller).end_u[0] == exact
        assert ol.ensemble(problem, ol.DOPRI5, controller, u0=[[1.0, 0.0]]).u[0, 0] == exact


FORCE = np.sin(np.arange(1000) * 0.1)  # a table for 0 <= t < 100


def driven(t, u, params):
    x, v = u
    return v, FORCE[int(t * 10)] - x - 0.1 * v


def writing(t, u, params, out):
    out[0] = -u[0]
    out[1] = -u[1]
    i = int(t * 3)
    out[i] = out[i] * 1.0


@pytest.mark.parametrize(
    ("rhs", "end", "words"),
    [(driven, 150.0, "index 1000 is out of bounds"), (writing, 30.0, "index 2 is out of bounds")],
)
def test_an_index_that_python_refuses_is_refused_by_every_engine(rhs, end, words):
    problem = ol.Problem(rhs, [0.1, 0.0], (0.0, end))
    for engine in ("python", "compiled", "auto"):
        with pytest.raises(IndexError, match=words):
            ol.solve(problem, ol.DOPRI5, ol.adaptive(1e-6, 1e-9), engine=engine)
    if rhs is driven:
        starts = np.column_stack([np.linspace(0.0, 1.0, 40), np.zeros(40)])
        with pytest.raises(IndexError, match=words):
            ol.ensemble(problem, ol.DOPRI5, ol.adaptive(1e-6, 1e-9), u0=starts)


def halving(t, u, params, out):
    out[0] = -u[0]
    u[0] = 0.5 * u[0]


def test_a_right_hand_side_cannot_write_to_the_state():
    problem = ol.Problem(halving, [1.0], (0.0, 1.0))
    with pytest.raises((ol.NotCompilable, ValueError), match=r"`u` cannot be written to.*copy|read-only"):
        ol.solve(problem, ol.DOPRI5, ol.adaptive(), engine="compiled")
