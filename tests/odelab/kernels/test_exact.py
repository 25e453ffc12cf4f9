"""exact=True: plain Python, one run and a lane of an ensemble have the same bits, whatever the method and the law."""

import math
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import odelab as ol
from odelab.kernels.machine import processor
from tests.clock import HANGS
from tests.odelab.kernels.kernel_cases import small_systems

SYSTEMS = small_systems()
EXPLICIT = [method for method in ol.METHODS.values() if method.embedded]
OFTEN = [(ol.DOPRI5, "pi42"), (ol.BS32, "h211b")]


def swinging(t, u, params):
    angle, speed = u
    return speed, -params[0] * math.sin(angle) - 0.1 * speed * abs(speed) ** 1.5 + np.exp(-t) * np.cos(3.0 * t)


SWINGING = ol.Problem(swinging, [1.0, 0.0], (0.0, 8.0), (2.0,))


def assert_equal_bits(problem, method, controller, **options):
    one, plain = (
        ol.solve(problem, method, controller, exact=True, engine=engine, **options) for engine in ("compiled", "python")
    )
    assert (one.engine, plain.engine) == ("compiled", "python")
    for name in ("step_t", "step_u", "h", "error"):
        np.testing.assert_array_equal(getattr(one, name), getattr(plain, name), err_msg=name)
    counts = ("steps", "rejected", "evaluations", "jacobians", "factorisations")
    assert [getattr(one, name) for name in counts] == [getattr(plain, name) for name in counts]
    starts = problem.u0 * np.array([[1.0], [0.9], [1.0]])
    lanes = ol.ensemble(problem, method, controller, u0=starts, exact=True)
    np.testing.assert_array_equal(lanes.u[[0, 2]], [one.end_u, one.end_u])


@pytest.mark.parametrize(
    ("method", "law"),
    [
        pytest.param(method, law, marks=() if (method, law) in OFTEN else pytest.mark.slow)
        for method in EXPLICIT
        for law in ("pi42", "h211b", "h321", "i")
    ],
    ids=lambda one: getattr(one, "name", one),
)
def test_explicit_methods(method, law):
    for problem in (SYSTEMS["van_der_pol"], SYSTEMS["hires"], SWINGING):
        assert_equal_bits(problem, method, ol.adaptive(1e-4, 1e-6, law))


@pytest.mark.parametrize(
    "method",
    [ol.RODAS4, ol.ESDIRK43, *(pytest.param(one, marks=pytest.mark.slow) for one in (ol.ROS2, ol.RODAS5P))],
    ids=lambda method: method.name,
)
def test_methods_with_a_jacobian(method):
    for problem in (SYSTEMS["van_der_pol"], SYSTEMS["brusselator backwards"], SWINGING):
        assert_equal_bits(problem, method, ol.adaptive(1e-3, 1e-5))


@pytest.mark.parametrize("method", [ol.RODAS4, ol.ESDIRK43], ids=lambda method: method.name)
def test_a_rejected_attempt_forms_no_second_jacobian(method):
    """Also where plain Python makes one attempt at a time, because an event may end the run."""
    never = ol.Event(lambda t, u, params: u[0] - 1e3, terminal=True)
    run = ol.solve(SYSTEMS["van_der_pol"], method, events=never, exact=True, engine="python")
    assert run.rejected > 0
    assert (run.jacobians, run.factorisations) == (run.steps, run.steps + run.rejected)


@pytest.mark.parametrize(
    "method",
    [ol.RK4, ol.RODAS4, *(pytest.param(one, marks=pytest.mark.slow) for one in (ol.DOPRI5, ol.ESDIRK43))],
    ids=lambda method: method.name,
)
def test_fixed_steps(method):
    assert_equal_bits(SWINGING, method, ol.fixed(0.05))


def test_tolerances_of_components_largest_steps_and_projections():
    controller = ol.adaptive(1e-4, np.array([1e-6, 1e-4]), max_step=0.3)
    assert_equal_bits(SYSTEMS["van_der_pol"], ol.DOPRI5, controller)
    one, plain = (
        ol.solve(SWINGING, ol.DOPRI5, project=lambda u: np.minimum(u, 0.9), exact=True, engine=engine)
        for engine in ("compiled", "python")
    )
    np.testing.assert_array_equal(one.u, plain.u)
    assert one.u[1:].max() == 0.9


@pytest.mark.skipif("+fma" not in processor()[1], reason="no fused operations here")
def test_contraction_is_what_is_given_up():
    loose, exact = (ol.solve(SYSTEMS["van_der_pol"], ol.DOPRI5, exact=flag) for flag in (False, True))
    assert not np.array_equal(loose.end_u, exact.end_u)
    np.testing.assert_allclose(loose.end_u, exact.end_u, rtol=1e-9)


ELSEWHERE = """
import numpy as np
import odelab as ol
from tests.odelab.kernels.test_exact import SWINGING, STARTS
run = ol.solve(SWINGING, METHOD, exact=True)
lanes = ol.ensemble(SWINGING, METHOD, u0=STARTS, exact=True)
print(np.concatenate([run.end_u, lanes.u.ravel()]).tobytes().hex())
"""
STARTS = np.column_stack([np.linspace(0.5, 1.5, 9), np.zeros(9)])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ol.DOPRI5", "ol.RODAS4"])
def test_another_processor_has_the_same_bits(method):
    """Code without wide vectors and without fused operations, which no processor of its family does without."""
    answers = []
    for name in ("", "x86-64" if platform.machine() in ("x86_64", "AMD64") else "generic"):
        names = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "ODELAB_PROCESSOR": name}
        code = ELSEWHERE.replace("METHOD", method)
        done = subprocess.run([sys.executable, "-c", code], env=names, capture_output=True, text=True, timeout=HANGS)
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout)
    assert answers[0] == answers[1]


def test_what_has_no_source_of_its_own_is_refused_in_words():
    problem = ol.Problem(lambda t, u, params: (-math.erf(u[0]),), [1.0], (0.0, 1.0))
    with pytest.raises(ol.NotCompilable, match="calls erf, whose last bits depend on a library"):
        ol.solve(problem, ol.DOPRI5, exact=True)
    with pytest.raises(ol.NotCompilable, match="`exact=True` needs a problem that can be made as a graph"):
        ol.solve(ol.problems.heat_1d(n=200), ol.RKC2, exact=True)
    with pytest.raises(ol.NotCompilable, match="exact=True"):
        ol.ensemble(problem, ol.DOPRI5, u0=[[1.0]], exact=True)
