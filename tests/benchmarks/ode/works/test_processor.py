"""What the rows on the processor compute, whatever it takes."""

import numpy as np
import pytest

from benchmarks.ode import reference_c
from benchmarks.ode.works import processor

pytestmark = pytest.mark.skipif(reference_c.scalar_compiler() is None, reason="no C compiler (gcc or clang) installed")
VALUES = {
    "multiply_add": lambda a: 0.7 * a + 0.9,
    "divide": lambda a: 1.7 / a,
    "root": lambda a: np.sqrt(a + 1.3),
    "exponential": lambda a: np.exp(-a),
}


@pytest.mark.parametrize("name", processor.OPERATIONS)
def test_one_operation_and_many_at_once_are_the_same_operation(name):
    """They shrink distances or keep them, so that three turns are right to the rounding of each."""
    start = np.linspace(1.0, 2.0, processor.MANY)
    wanted = VALUES[name](VALUES[name](VALUES[name](start)))
    alone, together = start.copy(), start.copy()
    for way, numbers in (("one_after_the_other", alone), ("side_by_side", together)):
        processor.operation(name, way)(3, numbers.ctypes.data)
    np.testing.assert_allclose(together, wanted, rtol=1e-14)
    np.testing.assert_allclose(alone[0], wanted[0], rtol=1e-14)
    np.testing.assert_array_equal(alone[1:], start[1:])
