"""log2, exp2 and arctan without the library's: against the library's, and against each other."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odelab.control import powers
from tests.without import needs_numba


def allowed(value):
    """2e-9 is said of these functions."""
    return 2e-9 * abs(value)


positive = st.floats(min_value=np.finfo(float).tiny, max_value=np.finfo(float).max)


@given(x=positive)
@example(x=1.0)
@example(x=0.5)
@example(x=math.sqrt(0.5))
@example(x=np.nextafter(math.sqrt(0.5), 0.0))
@example(x=np.nextafter(1.0, 0.0))
@example(x=np.nextafter(1.0, 2.0))
def test_log2_is_the_librarys_to_nine_digits(x):
    assert abs(powers.log2(x) - math.log2(x)) <= allowed(math.log2(x))


@given(x=st.floats(-1000.0, 1000.0))
@example(x=0.0)
@example(x=0.5)
@example(x=-0.5)
def test_exp2_is_the_librarys_to_nine_digits(x):
    assert abs(powers.exp2(x) - math.exp2(x)) <= allowed(math.exp2(x))


@given(whole=st.integers(-1000, 1000))
def test_powers_of_two_are_exact(whole):
    assert powers.exp2(float(whole)) == 2.0**whole
    assert powers.log2(2.0**whole) == whole


@given(x=positive, root=st.sampled_from([2, 3, 5, 8]))
def test_a_root_by_way_of_the_logarithm(x, root):
    assert powers.exp2(powers.log2(x) / root) == pytest.approx(math.pow(x, 1.0 / root), rel=1e-8)


@given(x=st.floats(-1e300, 1e300))
@example(x=math.tan(math.pi / 8))
@example(x=math.tan(3 * math.pi / 8))
@example(x=-1.0)
@example(x=math.inf)
def test_arctan_is_the_librarys_to_nine_digits(x):
    assert abs(powers.arctan(x) - math.atan(x)) <= allowed(math.atan(x))


@needs_numba
def test_compiled_code_gives_the_same_bits():
    from odelab.engines.numba.jit import OPTIONS, jit

    log2, exp2, arctan = (jit(function, options=OPTIONS) for function in (powers.log2, powers.exp2, powers.arctan))
    for x in np.random.default_rng(0).lognormal(0.0, 30.0, 200):
        assert log2(x) == powers.log2(x)
        assert arctan(x) == powers.arctan(x)
        assert exp2(np.log(x)) == powers.exp2(np.log(x))
