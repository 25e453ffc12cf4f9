"""Errors against every reference value of the catalogue fall in proportion to the tolerance."""

import numpy as np
import pytest

import odelab as ol
from tests.odelab.solver_cases import NAMED

problems = ol.problems
TOLERANCES = 10.0 ** -np.arange(4, 11)

# What the error at the end may be of the tolerance: how far the problem itself carries errors on.
NON_STIFF = {
    "van_der_pol": (problems.van_der_pol(5.0), 30.0),
    "brusselator": (problems.brusselator(), 10.0),
    "lorenz": (problems.lorenz(), 300.0),
    "rigid_body": (problems.rigid_body(), 100.0),
    "arenstorf": (problems.arenstorf(), 5e4),
    "pleiades": (problems.pleiades(), 600.0),
}
EXPLICIT = [(name, i) for name, (problem, _) in NON_STIFF.items() for i in range(len(problem.references))]


def sweep(problem, reference, method, atol_factor, engine="python", law="pi"):
    """Relative errors at the reference for every tolerance."""
    cut = problem.replace(t_span=(0.0, reference.t))
    errors = []
    for tol in TOLERANCES:
        run = ol.solve(cut, method, ol.adaptive(tol, atol_factor * tol, law), engine=engine)
        errors.append(np.linalg.norm(run.u[-1] - reference.u) / np.linalg.norm(reference.u))
    return np.array(errors)


def assert_proportional(errors, most):
    assert (errors <= most * TOLERANCES).all(), errors / TOLERANCES
    slope = np.polyfit(np.log(TOLERANCES), np.log(errors), 1)[0]
    assert 0.8 <= slope <= 1.3, slope


@pytest.mark.slow
@pytest.mark.parametrize(("method", "law"), [(ol.DOPRI5, "pi"), (ol.RKF45, "pi"), (ol.DOP853, "i")], **NAMED)
@pytest.mark.parametrize(("name", "i"), EXPLICIT)
def test_non_stiff_references(method, law, name, i):
    problem, most = NON_STIFF[name]
    assert_proportional(sweep(problem, problem.references[i], method, 1e-3, law=law), most)


@pytest.mark.parametrize(
    ("problem", "t", "engine"),
    [
        (problems.robertson(), 0.3, "python"),
        (problems.robertson(), 40.0, "compiled"),
        (problems.hires(), 5.0, "python"),
        (problems.stiff_linear(), 0.05, "python"),
        (problems.stiff_linear(), 1.0, "python"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_stiff_references_within_reach_of_explicit_methods(problem, t, engine):
    reference = next(reference for reference in problem.references if reference.t == t)
    errors = sweep(problem, reference, ol.DOPRI5, 1e-6, engine)
    assert_proportional(errors, 3.0)


STIFF = {
    "robertson": problems.robertson(),
    "oregonator": problems.oregonator(),
    "hires": problems.hires(),
    "pollu": problems.pollu(),
    "e5": problems.e5(),
    "van_der_pol 1000": problems.van_der_pol(1000.0),
    "stiff_linear": problems.stiff_linear(),
    "prothero_robinson": problems.prothero_robinson(),
}
TOO_SMALL = 1e-18  # E5's values below it have lost their digits to rounding, when y2 was 1e-10: see its invariant
IMPLICIT = [
    (name, i)
    for name, problem in STIFF.items()
    for i, reference in enumerate(problem.references)
    if name != "e5" or reference.u[1] > TOO_SMALL
]


def component_error(problem, reference, method, tol):
    """The largest relative error of a component that a float64 run can know."""
    measured = np.abs(reference.u) > (TOO_SMALL if problem.name == "e5" else 0.0)
    atol = max(1e-28, 1e-3 * tol * np.abs(reference.u[measured]).min())
    run = ol.solve(problem.replace(t_span=(0.0, reference.t)), method, ol.adaptive(tol, atol))
    assert run.engine == "scipy"
    return np.abs(run.u[-1][measured] / reference.u[measured] - 1.0).max()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "i"), IMPLICIT)
@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8])
def test_stiff_references_through_radau(name, i, tol):
    problem = STIFF[name]
    assert component_error(problem, problem.references[i], ol.RADAU, tol) <= tol


@pytest.mark.parametrize("method", [ol.BDF, ol.LSODA], **NAMED)
@pytest.mark.parametrize(
    ("name", "i"), [("robertson", 3), ("oregonator", 0), ("hires", 2), ("pollu", 1), ("van_der_pol 1000", 1)]
)
def test_stiff_references_through_bdf_and_lsoda(method, name, i):
    problem = STIFF[name]
    for tol in (1e-5, 1e-8):
        assert component_error(problem, problem.references[i], method, tol) <= 60.0 * tol


@pytest.mark.parametrize("method", [ol.RADAU, ol.BDF], **NAMED)
def test_e5_keeps_its_invariant_where_the_published_value_breaks_it(method):
    e5 = problems.e5()
    run = ol.solve(e5, method, ol.adaptive(1e-6, 1e-28), t_eval=10.0 ** np.arange(-3, 14))
    balance = [e5.invariants[0].function(t, u, e5.params) for t, u in zip(run.t, run.u, strict=True)]
    assert np.abs(balance).max() < 1e-24  # y2 was 1.4e-10
    assert run.u[-1, 1] == pytest.approx(0.88612e-22, rel=0.05)


@pytest.mark.parametrize("name", [name for name in problems.catalogue() if name not in ("linear", "three_body")])
def test_radau_exercises_every_jacobian(name):
    """With the analytic Jacobian as with a derived one: the same solution in as many steps."""
    problem = problems.catalogue()[name]()
    # the nerve's first three units of time are one smooth rise, for which hardly a Jacobian is made
    span = min(problem.t_span[1], 10.0 if name == "fitzhugh_nagumo" else 3.0)
    problem = problem.replace(t_span=(0.0, span))
    tolerance = ol.adaptive(1e-6, 1e-26 if name == "e5" else 1e-9)
    given = ol.solve(problem, ol.RADAU, tolerance)
    derived = ol.solve(problem.replace(jacobian=None), ol.RADAU, tolerance)
    assert problem.jacobian is not None
    assert abs(given.steps - derived.steps) <= 2 + 0.1 * derived.steps
    assert (given.derivatives == "the problem's own Jacobian") > derived.derivatives.startswith("the problem's own")
    scale = np.abs(derived.u).max(axis=0) + 1e-12
    np.testing.assert_allclose(given.u[-1] / scale, derived.u[-1] / scale, rtol=0, atol=1e-4)


@pytest.mark.parametrize("method", [ol.RADAU, ol.BDF], ids=lambda one: one.name)
def test_scipys_methods_drop_a_wrong_jacobian(method):
    hires = problems.hires().replace(t_span=(0.0, 1.0))
    wrong = hires.replace(jacobian=lambda t, u, params: hires.jacobian(t, u, params).T)
    tolerance = ol.adaptive(1e-6, 1e-10)
    with pytest.warns(RuntimeWarning, match="is not the derivative of its right-hand side"):
        dropped = ol.solve(wrong, method, tolerance)
    assert dropped.derivatives == "Jacobian by dual numbers"
    assert dropped.evaluations < 2 * ol.solve(hires, method, tolerance).evaluations
