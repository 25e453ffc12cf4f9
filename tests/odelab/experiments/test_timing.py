"""How long attempts and their parts take, as ratios within one run."""

import time

import numpy as np
import pytest

import odelab as ol
from odelab.experiments import timing
from odelab.runs import diagnosis


def test_parts_in_plain_python_grow_with_the_work():
    """Of a full matrix of 300 rows the factors take many times as long as a solution; of two rows they do not."""
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((300, 300)) - 30.0 * np.eye(300)
    parts = timing.seconds_of_parts(ol.problems.linear(matrix, u0=np.ones(300)), engine="python")
    assert parts.engine == "python"
    assert parts.factorisation > 5.0 * parts.solve
    assert parts.solve > 0.0


def test_parts_of_a_kernel_add_up_to_an_attempt():
    """Six evaluations, a Jacobian, factors and six solutions; the rest takes no ten times as long."""
    problem = ol.problems.van_der_pol()
    parts = timing.seconds_of_parts(problem)
    assert parts.engine == "compiled"
    attempt = timing.seconds_per_attempt(problem, ol.RODAS4)
    told = 6.0 * (parts.evaluation + parts.solve) + parts.jacobian + parts.factorisation
    assert 0.1 * attempt < told < 3.0 * attempt


def test_what_cannot_be_compiled_is_timed_in_plain_python_or_refused():
    problem = ol.Problem(lambda t, u, params: (-float(str(u[0])),), [1.0], (0.0, 1.0))
    assert timing.seconds_of_parts(problem, repeats=1).engine == "python"
    with pytest.raises(ol.NotCompilable):
        timing.seconds_of_parts(problem, engine="compiled")
    with pytest.raises(ValueError, match="`engine` must be"):
        timing.seconds_of_parts(problem, engine="fast")


def test_an_attempt_does_not_pay_for_the_diagnosis_of_a_run(monkeypatch):
    """A run that uses up its attempts is looked at for its cause, step by step; that is not what a step takes."""
    problem, seen = ol.problems.van_der_pol(), []

    def slow(trajectory, most):
        seen.append(trajectory.steps)
        time.sleep(2e-3 * trajectory.steps)
        return "spent"

    plain = timing.seconds_per_attempt(problem, ol.BS32, attempts=(5, 45), repeats=3)
    monkeypatch.setattr(diagnosis, "diagnose_budget", slow)
    assert timing.seconds_per_attempt(problem, ol.BS32, attempts=(5, 45), repeats=3) < max(20.0 * plain, 1e-3)
    assert seen  # runs were diagnosed, and not timed
