"""The problems, the user's own, forced systems, and what is stored: what they promise."""

import dataclasses
import json

import numpy as np
import pytest

import odelab as ol
from odelab import _choice as choice
from studies.switching import __main__ as study
from studies.switching import dependence, runs, switches
from studies.switching.dependence import System, measure_systems
from studies.switching.evidence import Windows

PAIR = ("DOPRI5", "RODAS4")
SMOKE = dataclasses.replace(runs.PRESETS["smoke"], tolerances=(1e-2, 1e-4, 1e-6))
STATE = (np.diag([-2.0, -1.0]), np.ones(2), np.zeros(2), np.ones(2), np.full(2, 1e-3), 1e-4)


def written(folder, text: str) -> str:
    path = folder / "mine.py"
    path.write_text(text)
    return str(path)


def test_the_design_has_what_it_promises():
    subjects = runs.subjects()
    assert len({subject.family for subject in subjects}) >= 28
    assert len({subject.name for subject in subjects}) == len(subjects)
    for preset in runs.PRESETS.values():
        assert sum(subject.knob <= preset.knob for subject in subjects) >= 3
    for subject in subjects:
        assert subject.make().size <= 60


def test_the_factorial_has_three_thousand_systems_and_factors_that_are_not_correlated():
    systems = dependence.systems(dependence.LEVELS["all"])
    assert len(set(systems)) == 3000
    kinds = [dependence.KINDS.index(system.kind) for system in systems]
    table = np.array([[system.radius, system.pace, system.origin, system.amplitude] for system in systems])
    np.testing.assert_allclose(np.corrcoef(np.column_stack((kinds, table)).T), np.eye(5), atol=1e-12)


@pytest.mark.parametrize("kind", dependence.KINDS)
def test_systems_of_the_factorial_have_the_spectrum_and_the_solution_they_are_said_to_have(kind):
    problem = System(kind, 20.0, 2.0, 5.0, 1e-2, seed=3).problem()
    values = np.linalg.eigvals(problem.jacobian(0.0, problem.u0, problem.params))
    assert ol.nongrowing_radius(values) == pytest.approx(20.0, rel=1e-6)
    assert (values.real > 0.1).any() == (kind == "growing")
    t = np.linspace(0.0, problem.t_span[1], 5)
    run = ol.solve(problem, ol.DOP853, ol.adaptive(1e-12, 1e-12), t_eval=t, engine="python")
    # Rounding of g, times the norm of A, grows by powers of a hundred before it decays where A is sheared so far.
    np.testing.assert_allclose(run.u, problem.exact(t, problem.params), rtol=0, atol=1e-4 if "100" in kind else 1e-9)


def test_the_origin_changes_sai_and_not_the_ratio_of_costs():
    some = [System("normal", 300.0, 1.0, origin, 0.0, seed=5) for origin in (0.0, 100.0)]
    windows = Windows(measure_systems(some, (1e-2, 1e-3, 1e-4, 1e-5), PAIR, engine="python"))
    (near, far), sai, rate = windows.ratio(1e-4), windows.index("SAI"), windows.index("rate")
    assert far == pytest.approx(near, rel=1e-3)
    assert sai[1] < 0.05 * sai[0]
    assert rate[1] == pytest.approx(rate[0])
    near, far = windows.values(1e-4)["h_acc/h_stab"]
    assert far == pytest.approx(near, rel=1e-6)


@pytest.mark.slow
def test_derivatives_are_those_of_the_methods_that_are_asked_for():
    """BS32 and ROS2 follow derivatives 3 and 2: theory is told by these, and chi by the former."""
    pair, tolerances = ("BS32", "ROS2"), (1e-2, 1e-3, 1e-4, 1e-5)
    plane = dependence.measure_plane("normal", [10.0, 1000.0], [1e-3], tolerances, pair, engine="python")
    assert plane.theory[0, 1] > 10.0 * plane.theory[0, 0] > 0.0
    some = [System("normal", 300.0, 1.0, 0.0, 0.0, seed=5)]
    values = Windows(measure_systems(some, tolerances, pair, engine="python")).values(1e-4)
    np.testing.assert_array_equal(values["h_acc/h_stab"], values["h_acc(u3)/h_stab"])
    with pytest.raises(ValueError, match="its steps follow derivative 8"):
        study.check_pair(study.Arguments(explicit="DOP853"))


def test_a_smoke_run_compiles_nothing(monkeypatch):
    def compiled(*_):
        raise AssertionError("a kernel was asked for")

    monkeypatch.setattr(choice, "by_numba", compiled)
    some = next(subject for subject in runs.subjects() if subject.knob == 0)
    assert runs.measure(some, SMOKE, PAIR)["windows"]


def test_a_users_problem_and_index_are_measured_beside_the_others(tmp_path):
    mine = written(
        tmp_path,
        "import odelab as ol\n"
        "def slow():\n"
        "    return ol.problems.forced_linear(((-30.0, 0.0), (0.0, -40.0))).replace(t_span=(0.0, 3.0))\n"
        "PROBLEMS = {'slow': slow}\n"
        "INDICES = {'trace': lambda J, f, f_t, u, scale, tol: -J.trace() * tol}\n",
    )
    slow = runs.subjects(mine)[-1]
    assert slow.name == slow.family == "slow"
    stored = tmp_path / "windows"
    windows = Windows(runs.measure_all([slow], SMOKE, PAIR, stored, mine), tuple(runs.adopt(mine).indices))
    np.testing.assert_allclose(windows.values(1e-4)["trace"], 70.0 * 1e-4)
    assert windows.groups["trace"] == "yours"
    before = (stored / "slow.json").stat().st_mtime_ns
    again = Windows(runs.measure_all([slow], SMOKE, PAIR, stored, mine))
    assert (stored / "slow.json").stat().st_mtime_ns == before
    np.testing.assert_array_equal(again.ratio(1e-4), windows.ratio(1e-4))


def test_whole_runs_are_counted_and_timed_and_those_that_fail_cost_more_than_any():
    """u' = u^2 from 1 blows up at t = 1; sin takes both methods to the end."""
    fine = ol.Problem(lambda t, u, p: [np.cos(t)], [0.0], (0.0, 3.0))
    for method, run in runs.run_whole(fine, [ol.DOPRI5, ol.auto(), ol.RODAS4], np.ones(1)).items():
        assert 0.0 < run["seconds"] < np.inf, method
        assert 0.0 < run["evaluations"] < np.inf
    (lost,) = runs.run_whole(
        ol.Problem(lambda t, u, p: [u[0] ** 2], [1.0], (0.0, 2.0)), [ol.DOPRI5], np.ones(1)
    ).values()
    assert lost["seconds"] == lost["evaluations"] == np.inf


@pytest.mark.slow
def test_the_same_is_measured_in_plain_python_by_kernels_and_by_two_processes(tmp_path):
    """Attempts and errors; those of runs at loose tolerances, whose rounding errors grow, to some digits."""
    some = [subject for subject in runs.subjects() if subject.knob == 0][:2]
    alone = runs.measure_all(some, SMOKE, PAIR, tmp_path / "alone")
    with runs.executor_of(2, None) as executor:
        together = runs.measure_all(some, SMOKE, PAIR, tmp_path / "together", executor=executor)
    compiled = dataclasses.replace(SMOKE, engine="compiled")
    by_kernels = Windows(runs.measure_all(some, compiled, PAIR, tmp_path / "kernels"))
    assert json.dumps([record["windows"] for record in together]) == json.dumps([record["windows"] for record in alone])
    np.testing.assert_allclose(by_kernels.ratio(1e-4), Windows(alone).ratio(1e-4), rtol=1e-3)


def test_what_is_stored_is_recalled_with_the_same_options_and_no_others(tmp_path):
    path, options = tmp_path / "new" / "a.json", {"pair": PAIR, "tolerances": SMOKE.tolerances}
    assert runs.recall(path, options) is None
    record = runs.store(path, {"options": options, "rows": [1.5]}, "a: stored")
    assert runs.recall(path, options) == json.loads(json.dumps(record))
    assert runs.recall(path, options, fresh=True) is None
    assert runs.recall(path, options | {"pair": ("DOPRI5", "ROS2")}) is None


def test_times_of_an_earlier_run_with_the_same_methods_are_taken(tmp_path):
    subject, times = runs.subjects()[0], {"seconds": {"explicit": 1.0}, "parts": {"evaluation": 2.0}}
    path = tmp_path / f"timing {runs.file_of(subject.name)}.json"
    runs.store(path, {"options": {"pair": PAIR, "file": None}} | times, "timed")
    assert runs.time_attempts(subject, PAIR, tmp_path) == times


def test_a_scheduler_that_is_not_there_is_refused_in_words():
    words = r"`--executor` = .* is not the address of a Dask scheduler"
    with pytest.raises(ValueError, match=words), runs.executor_of(1, "nowhere"):
        pass


def test_shipped_networks_are_listed_one_of_each_controller_first():
    names = switches.shipped_names("digits")
    assert len(names) == len(set(names)) > 8
    assert "constant-seed0" in names[0]


def test_what_is_shipped_names_no_folder_of_the_machine(tmp_path):
    out, shipped = tmp_path / "their results", tmp_path / "shipped"
    out.mkdir()
    command = f"python -m studies.switching --preset full --out '{out}'"
    (out / "record.json").write_text(json.dumps({"command": command, "arguments": {"out": str(out)}}))
    (out / "report.md").write_text(f"Run again with\n\n{command}\n")
    (out / "truth.png").write_bytes(b"a figure")
    study.ship(out, shipped)
    assert {path.name for path in shipped.iterdir()} == {"record.json", "report.md", "truth.png"}
    assert all(b"their results" not in path.read_bytes() for path in shipped.iterdir())
    record = json.loads((shipped / "record.json").read_text())
    assert record == {"command": "python -m studies.switching --preset full", "arguments": {"out": "results/switching"}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "neither `PROBLEMS` nor `INDICES`"),
        ("INDICES = [1]\n", "must be a dictionary of functions"),
        ("INDICES = {'SAI': len}\n", "a name that the study has itself"),
        ("INDICES = {'always implicit': len}\n", "a name that the study has itself"),
        ("PROBLEMS = {'hires': len}\n", "a name that the study has itself"),
        ("PROBLEMS = {'a b': len, 'a_b': len}\n", "has 'a_b'"),
        ("PROBLEMS = {'a/b': len}\n", "no file's"),
        ("PROBLEMS = {3: len}\n", "has 3"),
    ],
)
def test_what_a_users_file_must_hold(tmp_path, text, words):
    with pytest.raises(SystemExit, match=words):
        runs.adopt(written(tmp_path, text))


def test_a_file_that_has_changed_is_read_again(tmp_path):
    """A worker of a cluster may have read an earlier one."""
    for value in (1.0, 2.0):
        path = written(tmp_path, f"INDICES = {{'mine': lambda *given: {value}}}\n")
        assert runs.value_of("mine", runs.adopt(path).indices["mine"], *STATE) == value


def test_a_worker_with_another_file_measures_nothing(tmp_path):
    path = written(tmp_path, "INDICES = {'mine': lambda *given: 1.0}\n")
    with pytest.raises(ValueError, match="is not the same file for the worker"):
        runs.measure_by_name("robertson", SMOKE, PAIR, path, "INDICES = {}\n")


@pytest.mark.parametrize("answer", [np.ones(2), None, "3", 1j, (1.0, 2.0)])
def test_an_index_must_return_one_number(answer):
    with pytest.raises(ValueError, match="must return one real number"):
        runs.value_of("mine", lambda *given: answer, *STATE)


@pytest.mark.parametrize("answer", [2, np.float32(2.0), np.array(2.0), True, np.nan, np.inf])
def test_any_kind_of_number_will_do(answer):
    assert runs.value_of("mine", lambda *given: answer, *STATE) == pytest.approx(float(answer), nan_ok=True)


def test_an_index_cannot_change_what_others_see():
    def greedy(J, f, f_t, u, scale, tol):
        for array in (J, f, f_t, u, scale):
            array *= 0.0
        return 1.0

    before = [np.array(one) for one in STATE]
    runs.value_of("mine", greedy, *STATE)
    for one, other in zip(before, STATE, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_index_that_remembers_is_refused():
    seen = []
    with pytest.raises(ValueError, match="must depend on its arguments alone"):
        runs.value_of("mine", lambda *given: seen.append(1) or len(seen), *STATE)


def test_what_a_function_raises_is_told_with_its_line():
    def wrong(*given):
        return 1.0 / 0.0

    with pytest.raises(ValueError, match=r"the index 'mine' of .* raised ZeroDivisionError in line \d+ of test_r"):
        runs.value_of("mine", wrong, *STATE)
    with pytest.raises(ValueError, match="the problem 'mine' of `--define` raised ZeroDivisionError"):
        runs.problem_of("mine", wrong)
    with pytest.raises(TypeError, match=r"must return an odelab\.Problem, got 3"):
        runs.problem_of("mine", lambda: 3)
