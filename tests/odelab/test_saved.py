"""Results in files come back with the same bits, dense output included; no other file is read."""

import numpy as np
import pytest

import odelab as ol
from odelab.engines.lanes.result import Ensemble

RELAXATION = ol.problems.van_der_pol(mu=10.0)


@pytest.mark.parametrize(
    ("method", "controller"),
    [
        (ol.DOPRI5, ol.adaptive(1e-5, 1e-8)),
        (ol.RODAS4, ol.adaptive(1e-5, [1e-8, 1e-7], law="h211b", max_step=2.0)),
        (ol.AUTO, ol.adaptive(1e-5, 1e-8)),
        (ol.RK4, ol.fixed(0.01)),
    ],
    ids=["DOPRI5", "RODAS4", "AUTO", "RK4"],
)
def test_a_run_comes_back_with_its_bits_and_its_dense_output(method, controller, tmp_path):
    event = ol.Event(lambda t, u, params: u[0], name="crossing")
    sol = ol.solve(RELAXATION, method, controller, events=event)
    again = ol.load(ol.save(sol, tmp_path / "run"), RELAXATION)
    for name in ("t", "u", "h", "step_t", "step_u", "end_u"):
        assert getattr(again, name).tobytes() == getattr(sol, name).tobytes()
    times = np.linspace(*RELAXATION.t_span, 7)
    assert (again(times) == sol(times)).all()
    assert (again.message, again.status, again.rejected, str(again.method)) == (
        sol.message, sol.status, sol.rejected, str(sol.method),
    )  # fmt: skip
    assert repr(again.controller) == repr(sol.controller)
    (found,), (kept,) = sol.events, again.events
    assert kept.t.tobytes() == found.t.tobytes()
    assert kept.name == "crossing"
    assert str(again) == str(sol)


def test_without_the_problem_a_run_is_its_numbers(tmp_path):
    sol = ol.solve(RELAXATION)
    again = ol.load(ol.save(sol, tmp_path / "run.npz"))
    assert (again.step_u == sol.step_u).all()
    assert again.interpolant is None


def test_a_run_with_jumps_comes_back_without_states_between_its_steps(tmp_path):
    """They belong to pieces, of which a file keeps the ends alone."""
    sol = ol.solve(RELAXATION, ol.DOPRI5, tstops=[1.0])
    again = ol.load(ol.save(sol, tmp_path / "run"), RELAXATION)
    with pytest.raises(ValueError, match="no dense output"):
        again(0.5)


def test_ensembles_and_spectra_come_back(tmp_path):
    runs = ol.ensemble(RELAXATION, ol.RODAS4, u0=[[2.0, 0.0], [1.0, 0.0]], t_eval=[0.0, 1.0])
    again = ol.load(ol.save(runs, tmp_path / "runs"), RELAXATION)
    assert isinstance(again, Ensemble)
    assert again.u.tobytes() == runs.u.tobytes()
    assert again.end_u.tobytes() == runs.end_u.tobytes()
    assert str(again) == str(runs)
    ends = ol.ensemble(RELAXATION, ol.RODAS4, u0=[[2.0, 0.0], [1.0, 0.0]])
    again = ol.load(ol.save(ends, tmp_path / "ends"), RELAXATION)
    assert again.end_u.tobytes() == again.u.tobytes() == ends.u.tobytes()
    found = ol.spectrum([[-1.0, 2.0], [0.0, -3.0]])
    assert str(ol.load(ol.save(found, tmp_path / "spectrum"))) == str(found)


def test_what_cannot_be_kept_or_read_is_refused_in_words(tmp_path):
    with pytest.raises(TypeError, match="`result` must be one of Trajectory, Ensemble, Spectrum"):
        ol.save(ol.modes(RELAXATION), tmp_path / "modes")
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(ValueError, match="no result of odelab"):
        ol.load(tmp_path / "text.npz")
    with pytest.raises(FileNotFoundError):
        ol.load(tmp_path / "nothing.npz")
    path = ol.save(ol.solve(RELAXATION), tmp_path / "run")
    with pytest.raises(ValueError, match="holds a run of 'van_der_pol'"):
        ol.load(path, ol.problems.lorenz())


def test_what_cannot_be_computed_again_is_kept(tmp_path):
    """Slopes across a jump, and how often the method changed."""
    kick = ol.Event(lambda t, u, params: u[0], change=lambda t, u, params: [u[0], 1.1 * u[1]])
    sol = ol.solve(RELAXATION, ol.AUTO, events=kick)
    again = ol.load(ol.save(sol, tmp_path / "run"), RELAXATION)
    for name in ("slope", "sai", "h_rho"):
        np.testing.assert_array_equal(getattr(again, name), getattr(sol, name))
    assert again.turns == sol.turns


def test_what_is_said_of_a_run_beside_its_message_is_kept(tmp_path):
    """How often its last step was taken again, and where states at wanted times are doubtful."""
    ended = ol.solve(RELAXATION, ol.RODAS4, events=ol.Event(lambda t, u, params: u[0] - 1.0, terminal=True))
    again = ol.load(ol.save(ended, tmp_path / "ended"), RELAXATION)
    assert again.trials == ended.trials > 0
    doubtful = ol.solve(RELAXATION, ol.RODAS4, t_eval=[1.0, 2.0])
    doubtful.doubt = 2.0
    assert ol.load(ol.save(doubtful, tmp_path / "doubtful"), RELAXATION).doubt == 2.0


def test_a_run_that_comes_back_can_be_repeated(tmp_path):
    """To estimate its error, with its stops; where a function of the user's belongs to it, a file does not hold it."""
    sol = ol.solve(RELAXATION, ol.DOPRI5, ol.adaptive(1e-5, 1e-8), tstops=[1.0, 3.5], exact=True)
    again = ol.load(ol.save(sol, tmp_path / "run"), RELAXATION)
    np.testing.assert_array_equal(ol.global_error(again).error, ol.global_error(sol).error)
    clipped = ol.solve(RELAXATION, ol.DOPRI5, project=lambda u: np.clip(u, -9.0, 9.0))
    with pytest.raises(ValueError, match="`sol`"):
        ol.global_error(ol.load(ol.save(clipped, tmp_path / "clipped"), RELAXATION))


def test_events_of_ensembles_are_kept(tmp_path):
    events = [ol.Event(lambda t, u, params: u[0], name="crossing", terminal=2), ol.Event(lambda t, u, params: u[0] - 5)]
    runs = ol.ensemble(RELAXATION, ol.RODAS4, u0=[[2.0, 0.0], [1.0, 0.0], [np.nan, 0.0]], events=events)
    again = ol.load(ol.save(runs, tmp_path / "runs"), RELAXATION)
    for records, expected in zip(again.events, runs.events, strict=True):
        for record, one in zip(records, expected, strict=True):
            assert (record.name, record.undefined) == (one.name, one.undefined)
            for kept, found in zip(record[:3], one[:3], strict=True):
                np.testing.assert_array_equal(kept, found)
    assert len(runs.events[0][0].t) == 2


@pytest.mark.parametrize("change", [{"params": 20.0}, {"u0": [1.0, 0.0]}, {"t_span": (0.0, 1.0)}])
def test_another_problem_of_the_same_name_is_refused(change, tmp_path):
    path = ol.save(ol.solve(RELAXATION), tmp_path / "run")
    with pytest.raises(ValueError, match=next(iter(change))):
        ol.load(path, RELAXATION.replace(**change))


@pytest.mark.slow
def test_a_run_by_a_method_of_ones_own_is_its_numbers(tmp_path):
    sol = ol.solve(RELAXATION, ol.auto(ol.DOPRI5, ol.RODAS5P))
    again = ol.load(ol.save(sol, tmp_path / "run"), RELAXATION)
    assert again.method is None
    assert again.interpolant is None
    np.testing.assert_allclose(again.slope, sol.slope, atol=1e-9 * np.abs(sol.slope).max())
    assert "switching" not in str(again)
    assert not again.held_back
    other = ol.solve(RELAXATION, ol.rkc2(lambda t, u, params: 1000.0))
    assert ol.load(ol.save(other, tmp_path / "other"), RELAXATION).method is None


def test_a_law_that_only_shares_its_name_comes_back_as_it_was(tmp_path):
    mine = ol.Law("pi42", b=(0.5, -0.1))
    for law in (mine, "pi42"):
        sol = ol.solve(RELAXATION, ol.DOPRI5, ol.adaptive(1e-5, 1e-8, law=law))
        again = ol.load(ol.save(sol, tmp_path / "run"), RELAXATION).controller.law
        assert [*map(float, again.b), *map(float, again.a)] == [
            *map(float, sol.controller.law.b), *map(float, sol.controller.law.a)
        ]  # fmt: skip
