"""Work and precision as data: errors, work and time of methods and tolerances beside each other."""

import time
from fractions import Fraction

import numpy as np
import pytest

import odelab as ol
from odelab.experiments import work_precision as work_precision_module
from tests.odelab.solver_cases import PENDULUM

RIGID = ol.problems.rigid_body().replace(t_span=(0.0, 5.0))
SHARP = (1e-3, 1e-5, 1e-7)


def measured(problem=RIGID, methods=(ol.DOPRI5,), rtol=SHARP, **options):
    return ol.work_precision(problem, methods, rtol, **{"engine": "python", **options})


def test_a_row_per_method_law_and_tolerance():
    table = measured(methods=[ol.DOPRI5, ol.RKF45, ol.RADAU], laws=["i", "pi"])
    assert table.problem == "rigid_body"
    assert table.truth == "exact solution"
    assert len(table.rows) == 3 * 2 * 3
    assert list(table.curves()) == [(m, law) for m in ("DOPRI5", "RKF45", "RADAU") for law in ("i", "pi")]


def test_rows_are_what_the_runs_were():
    (row,) = measured(rtol=[1e-6], atol_factor=1e-2).rows
    run = ol.solve(RIGID, ol.DOPRI5, ol.adaptive(1e-6, 1e-8), engine="python")
    truth = RIGID.exact(5.0, RIGID.params)
    assert row.error == pytest.approx(np.linalg.norm(run.u[-1] - truth) / np.linalg.norm(truth), rel=1e-12)
    assert (row.evaluations, row.steps, row.rejected) == (run.evaluations, run.steps, run.rejected)
    assert (row.method, row.law, row.tolerance, row.status) == ("DOPRI5", "pi42", 1e-6, "ok")
    assert 0.0 < row.seconds < 10.0


def test_sharper_tolerances_cost_more_and_are_more_exact():
    for curve in measured(methods=[ol.DOPRI5, ol.BS32, ol.DOP853, ol.RADAU]).curves().values():
        assert [row.tolerance for row in curve] == sorted(SHARP, reverse=True)
        assert (np.diff([row.evaluations for row in curve]) > 0).all()
        assert (np.diff([row.error for row in curve]) < 0).all()


def test_methods_without_an_error_estimate_take_fixed_steps():
    curve = measured(methods=[ol.RK4], h=[0.1, 0.05]).curves()["RK4", "fixed"]
    assert [(row.tolerance, row.steps, row.evaluations) for row in curve] == [(0.1, 50, 200), (0.05, 100, 400)]
    assert curve[0].error / curve[1].error == pytest.approx(16.0, rel=0.2)
    assert len(measured(methods=[ol.RK4]).rows) == 5


def test_a_failed_run_is_infinitely_wrong():
    (row,) = measured(ol.problems.van_der_pol(1000.0), rtol=[1e-6], max_steps=50).rows
    assert (row.error, row.status) == (np.inf, "max_steps")


def test_the_truth_is_a_reference_or_a_sharp_implicit_run():
    assert measured(ol.problems.brusselator(), rtol=[1e-3]).truth == "reference value"
    unknown = measured(PENDULUM, rtol=[1e-9])
    assert unknown.truth == "RADAU at rtol 1e-12"
    assert unknown.rows[0].error < 1e-7


def test_one_of_each_and_generators_will_do():
    assert len(measured(methods=ol.DOPRI5, rtol=1e-4, laws="i").rows) == 1
    given = (method for method in (ol.DOPRI5, ol.RKF45))
    assert len(measured(methods=given, rtol=(10.0**-k for k in (3, 4)), laws=iter(["i", "pi"])).rows) == 8


def test_the_best_of_several_runs_is_timed():
    calls = [0]

    def counted(t, u, params):
        calls[0] += 1
        return (-u[0],)

    problem = ol.Problem(counted, [1.0], (0.0, 1.0), exact=lambda t, params: np.exp(-np.asarray(t))[..., None])
    calls[0] = 0
    (row,) = measured(problem, rtol=[1e-4], repeat=3).rows
    assert calls[0] == 4 * row.evaluations  # one more, not counted


def test_without_laws_every_method_has_its_usual_one():
    """RODAS4 ran with the law of explicit methods here, and with its own in `ol.solve`."""
    table = measured(methods=[ol.DOPRI5, ol.RODAS4, ol.RADAU], rtol=[1e-4])
    assert list(table.curves()) == [("DOPRI5", "pi42"), ("RODAS4", "pc11"), ("RADAU", "")]
    run = ol.solve(RIGID, ol.RODAS4, ol.adaptive(1e-4, 1e-7), engine="python")
    assert (table.rows[1].steps, table.rows[1].rejected) == (run.steps, run.rejected)


def test_a_law_of_ones_own_is_one_law():
    half = Fraction(1, 2)
    mine = ol.Law("mine", (half, -half / 2, Fraction(0)), (Fraction(0), Fraction(0)), smooth=False)
    assert list(measured(rtol=[1e-4], laws=mine).curves()) == [("DOPRI5", "mine")]
    assert list(measured(rtol=[1e-4], laws=["i", mine]).curves()) == [("DOPRI5", "i"), ("DOPRI5", "mine")]


def test_a_linearly_implicit_method_without_an_estimate_takes_fixed_steps():
    euler = ol.RosenbrockMethod("EULER1", order=1, gamma=1.0, a=[[]], C=[[]], m=[1.0])
    (row,) = measured(methods=euler, h=[0.1]).rows
    assert (row.law, row.steps) == ("fixed", 50)


def test_it_prints_as_a_table():
    lines = str(measured(rtol=[1e-3, 1e-5])).splitlines()
    assert lines[0] == "rigid_body, errors against the exact solution"
    assert lines[1].split()[:4] == ["method", "law", "tolerance", "error"]
    assert [line.split()[:3] for line in lines[2:]] == [["DOPRI5", "pi42", "0.001"], ["DOPRI5", "pi42", "1e-05"]]


def test_seconds_are_those_of_a_run_and_not_of_compiling(monkeypatch):
    """The first run with a new kernel took seconds, and stood in the figure as the cost of its tolerance."""
    taken = []

    def slow_at_first(*given, **options):
        start = time.perf_counter()
        time.sleep(0.0 if taken else 1.0)
        run = ol.solve(*given, **{**options, "engine": "python"})
        run.engine = "compiled"
        taken.append(time.perf_counter() - start)
        return run

    monkeypatch.setattr(work_precision_module, "solve", slow_at_first)
    (row,) = measured(rtol=[1e-3]).rows
    assert len(taken) == 2
    assert row.seconds < taken[0]


def test_the_longest_run_goes_first_so_that_its_kernel_serves_the_others(monkeypatch):
    """Short runs were timed in plain Python and long ones compiled, in one curve."""
    order = []

    def watched(problem, method, controller, **options):
        order.append(controller.rtol)
        return ol.solve(problem, method, controller, **options)

    monkeypatch.setattr(work_precision_module, "solve", watched)
    table = measured(rtol=[1e-3, 1e-5, 1e-4])
    assert order == [1e-5, 1e-4, 1e-3]
    assert [row.tolerance for row in table.rows] == [1e-3, 1e-5, 1e-4]
