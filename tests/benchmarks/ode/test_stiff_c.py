"""C of linearly implicit methods, written down from a right-hand side, gives a kernel's answers in a kernel's steps."""

import numpy as np
import pytest

import odelab as ol
from benchmarks.ode import reference_c, stiff_c, stiff_cases

pytestmark = pytest.mark.skipif(reference_c.scalar_compiler() is None, reason="no C compiler (gcc or clang) installed")

CASES = {case.key: case for case in stiff_cases.singles()}


@pytest.mark.parametrize("method", [ol.RODAS4, ol.RODAS5P], ids=lambda method: method.name)
@pytest.mark.parametrize("key", [*CASES])
def test_its_answers_are_right(key, method):
    case = CASES[key]
    rtol = 1e-7
    run = stiff_c.runs(
        key, case.problem, method, case.problem.u0, case.problem.params, rtol, rtol * case.atol, stiff_cases.FIRST_STEP
    )
    assert case.error(run().u) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("key", [*CASES])
def test_a_kernel_takes_the_same_steps(key):
    case = CASES[key]
    control = ol.adaptive(1e-6, 1e-6 * case.atol, "i", first_step=stiff_cases.FIRST_STEP)
    kernel = ol.solve(case.problem, ol.RODAS4, control, engine="compiled")
    problem = case.problem
    c = stiff_c.runs(key, problem, ol.RODAS4, problem.u0, problem.params, 1e-6, 1e-6 * case.atol, 1e-6)()
    assert abs(kernel.steps - c.accepted[0]) <= 0.01 * kernel.steps
    np.testing.assert_allclose(kernel.end_u, c.u[0], rtol=1e-4)


def test_a_run_that_is_not_finite_gives_up_in_words():
    case = CASES["robertson"]
    start = np.array([np.nan, 0.0, 0.0])
    run = stiff_c.runs("robertson", case.problem, ol.RODAS4, start, case.problem.params, 1e-6, 1e-12, 1e-6)
    with pytest.raises(RuntimeError, match="gave up"):
        run()
