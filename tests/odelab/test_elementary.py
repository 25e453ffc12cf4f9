"""The elementary functions: right to the ulps they promise, and the same bits for floats, arrays and graphs."""

import math
import re
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odelab.elementary import FUNCTIONS, of_arrays, of_floats, quarter_turns
from tests.odelab.elementary_points import Random, points
from tests.odelab.operation_nodes import NODES, USUAL_NODES, evaluate, node, operations
from tests.rounding import EPS

mpmath = pytest.importorskip("mpmath")
exact = mpmath.mp.clone()
exact.prec = 160  # x^y with y log2 x = 1024 keeps 90 bits behind the double's

PROMISED = {
    function.__name__: float(re.search(r"error below (\S+) ulp", function.__doc__).group(1)) for function in FUNCTIONS
}
TWO_ARGUMENTS = ("atan2", "pow", "hypot")
ODD = ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "cbrt")
EVEN = ("cos", "cosh")
NUMPY_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh",
               "acosh": "arccosh", "atanh": "arctanh", "pow": "power"}  # fmt: skip
ALL = [function.__name__ for function in FUNCTIONS]
NOT_NEGATIVE = (
    0.0, 5e-324, 2.0**-1022, 1e-300, 2.0**-60, 0.5, 1.0 - EPS, 1.0, 1.0 + EPS, 1.5, 2.0, 3.0, 22.0, 709.0, 710.0, 711.0,
    746.0, 1024.0, 1075.0, 2.0**30, 2.0**31, 2.0**52 + 1.0, 2.0**53, 1e22, 1e300, 1.7976931348623157e308, math.inf,
)  # fmt: skip
SPECIAL = np.array([*NOT_NEGATIVE, *(-np.array(NOT_NEGATIVE)), math.nan])
any_float = st.floats()
finite = st.floats(allow_nan=False, allow_infinity=False)


def same(x, y):
    """Equal to the bit, where all NaN are one."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    x, y = np.where(np.isnan(x), math.nan, x), np.where(np.isnan(y), math.nan, y)
    return np.array_equal(x.view(np.int64), y.view(np.int64))


def arguments_of(name):
    return 2 if name in TWO_ARGUMENTS else 1


# --- errors against 160 bits ---


@cache
def measured(name):
    """All points of a function as a tuple of arrays."""
    rows = points(name, Random(np.random.default_rng(ALL.index(name))))
    if name in TWO_ARGUMENTS:
        return tuple(np.concatenate(column) for column in zip(*rows, strict=True))
    return (np.concatenate([np.atleast_1d(row) for row in rows]),)


REFERENCES = {
    "exp2": lambda x: exact.mpf(2) ** x,
    "log2": lambda x: exact.log(x) / exact.log(2),
    "log1p": lambda x: exact.log1p(x),
    "pow": lambda x, y: x**y,
}


def reference(name, arguments):
    function = REFERENCES.get(name) or getattr(exact, name)
    return function(*(exact.mpf(float(argument)) for argument in arguments))


def error_in_ulps(value, truth):
    return float(abs(exact.mpf(float(value)) - truth) / math.ulp(float(truth)))


@pytest.mark.parametrize("name", ALL)
def test_the_error_is_what_the_docstring_promises(name):
    columns = measured(name)
    values = of_arrays[name](*columns)
    for value, *arguments in zip(values, *columns, strict=True):
        truth = reference(name, arguments)
        if abs(truth) < exact.mpf(2) ** 1024:
            assert error_in_ulps(value, truth) <= PROMISED[name], arguments


@pytest.mark.parametrize("name", ALL)
def test_at_special_values_the_answer_is_that_of_c(name):
    columns = [column.ravel() for column in np.meshgrid(*[SPECIAL] * arguments_of(name))]
    with np.errstate(all="ignore"):
        expected = getattr(np, NUMPY_NAMES.get(name, name))(*columns)
    values = of_arrays[name](*columns)
    plain = np.isfinite(expected) & (expected != 0.0) & (np.abs(expected) > 2.0**-1022)
    assert same(values[~plain], expected[~plain])
    # NumPy promises 4 ulp of its own
    values, expected = values[plain], expected[plain]
    assert np.all(np.abs(values - expected) <= (PROMISED[name] + 4) * EPS * np.abs(expected))


def test_the_digits_of_two_over_pi_are_those_of_pi():
    _, *parts = quarter_turns.TWO_PER_PI
    digits = sum(part << (32 * (len(parts) - 1 - k)) for k, part in enumerate(parts))
    with exact.workprec(32 * len(parts) + 40):
        assert digits == int(exact.floor(2 / exact.pi * exact.mpf(2) ** (32 * len(parts))))


def test_the_parts_of_a_quarter_turn_are_short_and_add_to_it():
    parts = [getattr(quarter_turns, f"HALF_PI_{k}") for k in range(1, 6)]
    rest = exact.pi / 2
    for k, part in enumerate(parts[:4], 1):
        assert part == exact.floor(rest * exact.mpf(2) ** (23 * k - 1)) / exact.mpf(2) ** (23 * k - 1)
        rest -= part
    assert parts[4] == float(rest)


# --- the same bits for floats, arrays and graphs ---


@pytest.mark.parametrize("name", ALL)
@given(x=any_float, y=any_float)
@example(x=-0.0, y=-0.0)
@example(x=-0.0, y=math.inf)
@example(x=1e300, y=-1e300)
def test_floats_and_arrays_give_the_same_bits(name, x, y):
    arguments = (x, y)[: arguments_of(name)]
    assert same(of_floats[name](*arguments), of_arrays[name](*arguments))


@pytest.mark.parametrize("name", ALL)
def test_floats_arrays_and_graphs_give_the_same_bits_where_errors_are_measured(name):
    columns = measured(name)
    values = of_arrays[name](*columns)
    assert same(
        values[::20], [of_floats[name](*row) for row in zip(*(column[::20] for column in columns), strict=True)]
    )
    with np.errstate(all="ignore"):
        assert same(values, evaluate(graph_of(name, NODES), columns))


@pytest.mark.parametrize("name", ALL)
def test_a_graph_gives_the_same_bits_at_special_values(name):
    columns = [column.ravel() for column in np.meshgrid(*[SPECIAL] * arguments_of(name))]
    with np.errstate(all="ignore"):
        assert same(of_arrays[name](*columns), evaluate(graph_of(name, NODES), columns))


def graph_of(name, machine):
    function = next(function for function in FUNCTIONS if function.__name__ == name)
    return function(machine, *(node("input", k) for k in range(arguments_of(name))))


OPERATIONS = {"exp": 42, "log": 44, "sin": 60, "cos": 59, "pow": 173}


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_operation_is_added_unnoticed(name):
    assert operations(graph_of(name, USUAL_NODES)) <= OPERATIONS[name]


# --- laws ---


@pytest.mark.parametrize("name", ODD)
@given(x=finite)
@example(x=0.0)
def test_odd_functions_are_odd_to_the_bit(name, x):
    assert same(of_floats[name](-x), -of_floats[name](x))


@pytest.mark.parametrize("name", EVEN)
@given(x=finite)
def test_even_functions_are_even_to_the_bit(name, x):
    assert same(of_floats[name](-x), of_floats[name](x))


@given(x=finite)
@example(x=1e22)
@example(x=6381956970095103 * 2.0**797)
def test_sine_and_cosine_square_to_one_for_every_finite_number(x):
    sine, cosine = of_floats["sin"](x), of_floats["cos"](x)
    # an error of e ulp moves the square of a number by 2 e ulp of it; three roundings
    assert abs(sine * sine + cosine * cosine - 1.0) <= (2.0 * PROMISED["sin"] + 1.5) * EPS


@given(x=st.floats(2.0**-1022, 1.7e308))
def test_the_exponential_undoes_the_logarithm(x):
    logarithm = of_floats["log"](x)
    allowed = PROMISED["log"] * math.ulp(logarithm) + PROMISED["exp"] * EPS
    assert abs(of_floats["exp"](logarithm) / x - 1.0) <= allowed + EPS


@given(x=finite)
def test_the_inverse_tangent_has_the_tangent_and_the_angle_of_its_point(x):
    angle = of_floats["atan"](x)
    assert abs(angle) <= 0.5 * math.pi
    assert abs(of_floats["atan2"](x, 1.0) - angle) <= (PROMISED["atan"] + PROMISED["atan2"]) * math.ulp(angle)


@given(k=st.integers(-1074, 1023))
def test_powers_of_two_are_exact(k):
    assert of_floats["exp2"](float(k)) == math.ldexp(1.0, k)
    assert of_floats["log2"](math.ldexp(1.0, k)) == k
    assert of_floats["pow"](2.0, float(k)) == math.ldexp(1.0, k)


@pytest.mark.parametrize("k", range(23))
def test_powers_of_ten_are_exact(k):
    assert of_floats["log10"](10.0**k) == k
    assert of_floats["pow"](10.0, float(k)) == 10.0**k


@given(x=any_float)
def test_the_first_power_is_the_number_and_the_power_zero_is_one(x):
    assert same(of_floats["pow"](x, 1.0), x)
    assert of_floats["pow"](x, 0.0) == 1.0


@given(x=st.floats(-1e150, 1e150))
def test_the_second_power_is_the_square_within_an_ulp(x):
    assert abs(of_floats["pow"](x, 2.0) - x * x) <= math.ulp(x * x)


@given(base=st.integers(-400, 400), power=st.integers(0, 6))
def test_powers_of_whole_numbers_are_exact(base, power):
    assert of_floats["pow"](float(base), float(power)) == base**power


@given(k=st.integers(-200_000, 200_000))
def test_cube_roots_of_cubes_and_hypotenuses_of_whole_triangles_are_exact(k):
    assert of_floats["cbrt"](float(k**3)) == k
    assert of_floats["hypot"](3.0 * k, 4.0 * k) == 5.0 * abs(k)


@given(x=st.floats(-1.0, 1.0))
def test_angles_of_sine_and_cosine_add_to_a_quarter_turn(x):
    total = of_floats["asin"](x) + of_floats["acos"](x)
    # acos and the sum are below 4, asin below 2
    assert abs(total - 0.5 * math.pi) <= (2.0 * PROMISED["acos"] + PROMISED["asin"] + 1.0) * EPS
