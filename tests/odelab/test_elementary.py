"""The elementary functions: right to the ulps they promise, and the same bits for floats, arrays and graphs."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from odelab.elementary import FUNCTIONS, of_arrays, of_floats
from tests.odelab.operation_nodes import NODES, USUAL_NODES, evaluate, node, operations
from tests.rounding import EPS

mpmath = pytest.importorskip("mpmath")
exact = mpmath.mp.clone()
exact.prec = 160  # x^y with y log2 x = 1024 keeps 90 bits behind the double's

# the promise of each docstring, in ulp
PROMISED = {
    "exp": 1.5, "exp2": 1.5, "expm1": 1.5, "sinh": 3, "cosh": 2, "tanh": 3,
    "log": 1, "log1p": 1, "log2": 1, "log10": 1, "asinh": 2, "acosh": 2, "atanh": 2,
    "sin": 1.5, "cos": 1.5, "tan": 3, "asin": 2, "acos": 2, "atan": 2, "atan2": 2,
    "pow": 2, "cbrt": 1, "hypot": 1.5,
}  # fmt: skip
TWO_ARGUMENTS = ("atan2", "pow", "hypot")
ODD = ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "cbrt")
EVEN = ("cos", "cosh")
NUMPY_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh",
               "acosh": "arccosh", "atanh": "arctanh", "pow": "power"}  # fmt: skip
ALL = [function.__name__ for function in FUNCTIONS]
SPECIAL = (
    0.0, 5e-324, 2.0**-1022, 1e-300, 2.0**-60, 0.5, 1.0 - EPS, 1.0, 1.0 + EPS, 1.5, 2.0, 3.0, 22.0, 709.0, 710.0, 711.0,
    746.0, 1024.0, 1075.0, 2.0**30, 2.0**31, 2.0**52 + 1.0, 2.0**53, 1e22, 1e300, 1.7976931348623157e308, math.inf,
)  # fmt: skip
SPECIAL = np.array([*SPECIAL, *(-np.array(SPECIAL)), math.nan])
any_float = st.floats()
finite = st.floats(allow_nan=False, allow_infinity=False)
few = settings(max_examples=30)


def same(x, y):
    """Equal to the bit, where all NaN are one."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    return np.array_equal(np.where(np.isnan(x), math.nan, x).view(np.int64), np.where(np.isnan(y), math.nan, y).view(np.int64))


def arguments_of(name):
    return 2 if name in TWO_ARGUMENTS else 1


def test_every_function_promises_something():
    assert sorted(PROMISED) == sorted(ALL)


# --- errors against 160 bits ---


@dataclass
class Random:
    """Points to measure at, from a generator with a seed."""

    generator: np.random.Generator
    count: int = 400

    def between(self, low, high):
        return self.generator.uniform(low, high, self.count)

    def sizes(self, low, high):
        """2 to powers between low and high."""
        return 2.0 ** self.between(low, high)

    def signed_sizes(self, low, high):
        return self.sizes(low, high) * self.generator.choice([-1.0, 1.0], self.count)


def neighbours(*points):
    return np.concatenate([x + np.spacing(x) * np.arange(-2, 3) for x in np.asarray(points, float)])


def near_quarter_turns(random):
    n = np.concatenate([np.arange(1, 60), np.floor(random.sizes(6, 30))])
    return neighbours(*(n * (0.5 * math.pi)))


def points(name):
    """Arrays of arguments: everywhere, and where the way of computing changes."""
    random = Random(np.random.default_rng(ALL.index(name)))
    between, sizes, signed = random.between, random.sizes, random.signed_sizes
    halves_of_log2 = neighbours(*(0.5 * math.log(2.0) * np.arange(1, 30)))
    exponential = (between(-745.1, 709.7), between(-2, 2), signed(-70, 9), halves_of_log2, -halves_of_log2)
    logarithm = (sizes(-1074, 1024), sizes(-1074, -1020), between(0.5, 2), 1.0 + signed(-52, -5), neighbours(0.5**0.5, 2**0.5))
    turns = (signed(-40, 30), signed(30, 1023.9), between(-9, 9), near_quarter_turns(random), 6381956970095103 * 2.0**797)
    sine = (between(-1, 1), between(-1, 1), signed(-60, 0), 1.0 - sizes(-52, -1), neighbours(0.5))
    return {
        "exp": exponential, "expm1": (*exponential, signed(-1074, -50)),
        "exp2": (between(-1074, 1023.9), between(-1, 1), signed(-70, 9), neighbours(0.5, 1.5, -0.5, -1.5)),
        "sinh": (*exponential, between(709, 710.4)), "cosh": (*exponential, between(709, 710.4)),
        "tanh": (between(-25, 25), between(-1, 1), signed(-1074, 5)),
        "log": logarithm, "log2": logarithm, "log10": logarithm,
        "log1p": (sizes(-60, 1023.9), between(-1, 2), signed(-60, -0.01), sizes(-52, -2) - 1.0),
        "asinh": (signed(-60, 1023.9), between(-3, 3), sizes(58, 62)),
        "acosh": (sizes(0, 1023.9), between(1, 3), 1.0 + sizes(-52, 0), sizes(58, 62)),
        "atanh": (signed(-60, 0), between(-1, 1), 1.0 - sizes(-52, -1)),
        "sin": turns, "cos": turns, "tan": turns, "asin": sine, "acos": sine,
        "atan": (between(-3, 3), signed(-60, 1023), neighbours(math.tan(math.pi / 8), math.tan(3 * math.pi / 8), 1.0)),
        "cbrt": (sizes(-1074, 1024), sizes(-1074, -1022), between(0.3, 9)),
        "atan2": ((between(-2, 2), between(-2, 2)), (signed(-1040, 1023), signed(-1022, 1023)), (sizes(1000, 1024), sizes(990, 1024))),
        "hypot": ((between(-2, 2), between(-2, 2)), (signed(-1074, -490), signed(-1074, -490)), (sizes(490, 1023), sizes(490, 1023))),
        "pow": ((between(0, 3), between(-20, 20)), (sizes(-1074, 1024), between(-0.99, 0.99)),
                (1.0 + signed(-50, -3), signed(2, 11)), (between(0.7, 1.4), between(-2000, 2000))),
    }[name]  # fmt: skip


@cache
def measured(name):
    """All points of a function as a tuple of arrays."""
    rows = points(name)
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
