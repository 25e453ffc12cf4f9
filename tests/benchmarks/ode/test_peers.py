"""Every peer solves the named problems through its small interface; one that is not installed is skipped."""

import sys

import numpy as np
import pytest
from scipy.linalg import expm

import odelab as ol
from benchmarks.ode import cases, contestants
from benchmarks.ode.peers import PEERS, peer
from benchmarks.ode.peers.diffsol_peer import Text
from benchmarks.ode.peers.heyoka_peer import batches
from benchmarks.ode.works import sensitivities as works

LIBRARIES = {n: n for n in ("scipy", "torchdiffeq", "diffrax", "torchode", "numbalsoda", "heyoka")}
LIBRARIES |= {"sundae": "sksundae", "diffsol": "pydiffsol", "cyrk": "CyRK", "casadi": "casadi"}
FOREIGN = pytest.mark.filterwarnings("ignore")  # what other libraries warn of is theirs


def offering(kind):
    return [
        pytest.param(name, marks=() if name in ("scipy", "torchdiffeq") else pytest.mark.slow)
        for name in PEERS
        if hasattr(peer(name), kind)
    ]


@FOREIGN
@pytest.mark.parametrize("name", offering("single"))
def test_a_single_run_is_right(name):
    pytest.importorskip(LIBRARIES[name])
    problem = ol.problems.van_der_pol(mu=5.0).replace(t_span=(0.0, 20.0))
    end = peer(name).single(problem, 1e-6, 1e-8)()
    np.testing.assert_allclose(end, problem.references[0].u, rtol=1e-3)
    shorter = peer(name).single(problem.replace(t_span=(0.0, 19.0)), 1e-6, 1e-8)()
    assert abs(shorter - end).max() > 0.1


@FOREIGN
@pytest.mark.parametrize("name", offering("ensemble"))
@pytest.mark.parametrize("place", [0, 2])
def test_an_ensemble_is_right(name, place):
    pytest.importorskip(LIBRARIES[name])
    case = cases.ensembles(6)[place]
    run = peer(name).ensemble(case.problem, case.u0, case.params, case.rtol, case.atol, case.first_step)
    assert case.error(run()) < 1e-3
    assert case.error(run()[::-1]) > 1e-2


DECAY = ol.Problem(lambda t, u, p: (-p[0] * u[0], p[0] * u[0] - p[1] * u[1]), [1.0, 0.5], (0.0, 1.5), (0.7, 0.4))
DECAY = DECAY.replace(jacobian=lambda t, u, p: np.array([[-p[0], 0.0], [p[0], -p[1]]]))


def columns_of_decay():
    """The derivatives of exp(A) u0 by both rates: blocks of the exponential of a larger matrix."""
    (a, b), end, blocks = DECAY.params, DECAY.t_span[1], []
    A = np.array([[-a, 0.0], [a, -b]])
    for dA in (np.array([[-1.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 0.0], [0.0, -1.0]])):
        blocks.append(expm(end * np.block([[A, dA], [np.zeros((2, 2)), A]]))[:2, 2:] @ DECAY.u0)
    return np.stack(blocks, axis=1)


@FOREIGN
@pytest.mark.parametrize("name", offering("sensitivities"))
@pytest.mark.parametrize("stiff", [False, True])
def test_sensitivities_of_a_linear_problem_are_those_of_its_exponential(name, stiff):
    pytest.importorskip(LIBRARIES[name])
    method = {one: methods for one, *methods in works.COMPILED + works.OTHERS}[name][stiff]
    if method:
        found = peer(name).sensitivities(DECAY, 1e-8, 1e-8, method)()
        np.testing.assert_allclose(found, columns_of_decay(), atol=1e-3)


@pytest.mark.parametrize("stiff", [False, True])
def test_the_reference_of_sensitivities_is_right_and_so_are_ours(stiff):
    case = works.Columns("decay", DECAY, 1.0, stiff, works.exactly(DECAY, 1.0, stiff))
    np.testing.assert_allclose(case.reference(), columns_of_decay(), rtol=1e-7)
    assert case.error(works.ours(case, "RODAS5P" if stiff else "DOP853", 1e-8).run()) < 1e-6
    assert case.error(1.01 * columns_of_decay()) == pytest.approx(0.01, rel=1e-3)


@pytest.mark.slow
@FOREIGN
@pytest.mark.parametrize("name", ["sundae", "diffsol"])
def test_algebraic_equations_are_solved_by_those_who_take_them(name):
    pytest.importorskip(LIBRARIES[name])
    problem = ol.problems.robertson_dae()
    known = problem.references[1]
    end = peer(name).single(problem.replace(t_span=(0.0, known.t)), 1e-6, 1e-10)()
    np.testing.assert_allclose(end, known.u, rtol=1e-4)


def test_a_right_hand_side_is_written_down_as_it_is_computed():
    problem = ol.problems.van_der_pol(mu=5.0)
    state, params = (0.3, -1.7), (5.0,)
    written = [str(row) for row in problem.rhs(0.0, (Text("x0"), Text("x1")), (Text("p0"),))]
    names = {"x0": state[0], "x1": state[1], "p0": params[0]}
    assert tuple(eval(row, names) for row in written) == tuple(problem.rhs(0.0, state, params))


def test_batches_hold_every_run_once_and_the_last_again_where_one_is_not_full():
    rows = np.arange(10.0).reshape(5, 2)
    found = batches(rows, 2)
    assert found.shape == (3, 2, 2)
    np.testing.assert_array_equal(found.transpose(0, 2, 1).reshape(-1, 2), np.vstack([rows, rows[-1:]]))


@pytest.mark.parametrize("told", ["jac", "jac_sparsity"])
def test_scipy_s_bdf_uses_what_it_is_told_of_the_jacobian(told):
    case = cases.brusselator(20, end=0.5)
    assert case.error(peer("scipy").sparse_bdf(case.problem, 1e-7, 1e-7, told)()) < 1e-5
    called = []
    counted = case.problem.replace(
        jacobian=lambda *at: called.append(1) or ol.problems.brusselator_1d(20).jacobian(*at)
    )
    run = peer("scipy").sparse_bdf(counted, 1e-4, 1e-4, told)
    assert len(called) == (told == "jac_sparsity")
    run()
    assert len(called) == 1 if told == "jac_sparsity" else called


@pytest.mark.parametrize("name", ["diffrax", "torchode", "numbalsoda", "heyoka", "cyrk"])
def test_an_absent_library_is_reported(monkeypatch, name):
    monkeypatch.setitem(sys.modules, LIBRARIES[name], None)
    case = cases.ensembles(2)[0]
    found = contestants.peer_ensemble(name, case)
    assert (found.run, found.missing) == (None, "not installed")


def test_the_coarsest_tolerance_that_suffices_is_taken():
    case = cases.brusselator(10, end=0.5)
    found = contestants.coarsest(lambda rtol: contestants.scipy_bdf(case, rtol, "jac"), 1e-4)
    assert case.error(found.run()) <= 1e-4
    rtol = float(found.name.rsplit(" ", 1)[1])
    assert case.error(contestants.scipy_bdf(case, 1.8 * rtol, "jac").run()) > 1e-4


def test_a_contestant_that_reaches_the_error_at_no_tolerance_takes_no_part_and_says_so():
    case = cases.brusselator(10, end=0.5)
    found = contestants.coarsest(lambda rtol: contestants.scipy_bdf(case, rtol, "jac"), 1e-30, (1e-3, 1e-4))
    assert found.run is None
    assert "at none of the tolerances" in found.missing
