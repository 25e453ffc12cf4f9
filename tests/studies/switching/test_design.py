"""The problems, the user's own, and the factorial: what they promise."""

import dataclasses
import json

import numpy as np
import pytest

import odelab as ol
from odelab import _choice as choice
from studies.switching import __main__, batch, factorial, measures, networks, timings, yours
from studies.switching.design import PRESETS
from studies.switching.observations import Lab
from studies.switching.subjects import subjects

SMOKE = dataclasses.replace(PRESETS["smoke"], windows=2, tolerances=(1e-2, 1e-4, 1e-6))


def test_the_design_has_what_it_promises():
    found = subjects()
    assert len({one.family for one in found}) >= 28
    assert len({one.name for one in found}) == len(found)
    for preset in PRESETS.values():
        assert sum(one.knob <= preset.knob for one in found) >= 3
    for one in found:
        assert one.problem().size <= 60


def test_the_factorial_has_three_thousand_systems_and_factors_that_are_not_correlated():
    found = factorial.systems(factorial.LEVELS["all"])
    assert len(found) == 3000 == len(factorial.LEVELS["all"])
    kinds = [factorial.KINDS.index(one.kind) for one in found]
    table = np.array([[one.radius, one.pace, one.origin, one.amplitude] for one in found])
    np.testing.assert_allclose(np.corrcoef(np.column_stack((kinds, table)).T), np.eye(5), atol=1e-12)


@pytest.mark.parametrize("kind", factorial.KINDS)
def test_systems_of_the_factorial_have_the_spectrum_and_the_solution_they_are_said_to_have(kind):
    one = factorial.System(kind, 20.0, 2.0, 5.0, 1e-2, seed=3)
    problem = one.problem()
    values = np.linalg.eigvals(problem.jacobian(0.0, problem.u0, problem.params))
    assert ol.nongrowing_radius(values) == pytest.approx(20.0, rel=1e-6)
    assert (values.real > 0.1).any() == (kind == "growing")
    t = np.linspace(0.0, problem.t_span[1], 5)
    run = ol.solve(problem, ol.DOP853, ol.adaptive(1e-12, 1e-12), t_eval=t, engine="python")
    # Rounding of g, times the norm of A, grows by powers of a hundred before it decays where A is sheared so far.
    np.testing.assert_allclose(run.u, problem.exact(t, problem.params), rtol=0, atol=1e-4 if "100" in kind else 1e-9)


def test_the_origin_changes_sai_and_not_the_ratio_of_costs():
    some = [factorial.System("normal", 300.0, 1.0, origin, 0.0, seed=5) for origin in (0.0, 100.0)]
    found = Lab(factorial.measure_systems(some, (1e-2, 1e-3, 1e-4, 1e-5), "DOPRI5", "RODAS4", engine="python"))
    ratio = found.truth(1e-4)
    assert ratio[1] == pytest.approx(ratio[0], rel=1e-3)
    assert found.index("SAI")[1] < 0.05 * found.index("SAI")[0]
    assert found.index("rate")[1] == pytest.approx(found.index("rate")[0])
    assert found.values(1e-4)["h_acc/h_stab"][1] == pytest.approx(found.values(1e-4)["h_acc/h_stab"][0], rel=1e-6)


def test_derivatives_are_those_of_the_methods_that_are_asked_for():
    """BS32 and ROS2 follow derivatives 3 and 2: theory is told by these, and chi by the former."""
    pair, tolerances = ("BS32", "ROS2"), (1e-2, 1e-3, 1e-4, 1e-5)
    found = factorial.plane("normal", [10.0, 1000.0], [1e-3], tolerances, *pair, engine="python")
    assert found.theory[0, 1] > 10.0 * found.theory[0, 0] > 0.0
    some = [factorial.System("normal", 300.0, 1.0, 0.0, 0.0, seed=5)]
    lab = Lab(factorial.measure_systems(some, tolerances, *pair, engine="python"))
    values = lab.values(1e-4)
    np.testing.assert_array_equal(values["h_acc/h_stab"], values["h_acc(u3)/h_stab"])
    with pytest.raises(ValueError, match="its steps follow derivative 8"):
        __main__.check_pair(__main__.Arguments(explicit="DOP853"))


def test_a_smoke_run_compiles_nothing(monkeypatch):
    def compiled(*_):
        raise AssertionError("a kernel was asked for")

    monkeypatch.setattr(choice, "by_numba", compiled)
    some = next(one for one in subjects() if one.knob == 0)
    assert measures.measure(some, SMOKE, "DOPRI5", "RODAS4", batch.SHARP)["windows"]


def test_a_users_problem_and_index_are_measured_beside_the_others(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import odelab as ol\n"
        "def slow():\n"
        "    return ol.problems.forced_linear(((-30.0, 0.0), (0.0, -40.0))).replace(t_span=(0.0, 3.0))\n"
        "PROBLEMS = {'slow': slow}\n"
        "INDICES = {'trace': lambda J, f, f_t, u, scale, tol: -J.trace() * tol}\n"
    )
    (one,) = (one for one in measures.all_subjects(str(mine)) if one.name == "slow")
    assert one.family == "slow"
    kept = tmp_path / "windows"
    found = batch.measure_all([one], SMOKE, ("DOPRI5", "RODAS4"), kept, str(mine))
    lab = Lab(found, tuple(yours.adopt(str(mine)).indices))
    np.testing.assert_allclose(lab.values(1e-4)["trace"], 70.0 * 1e-4)
    assert lab.groups["trace"] == "yours"
    before = (kept / "slow.json").stat().st_mtime_ns
    again = batch.measure_all([one], SMOKE, ("DOPRI5", "RODAS4"), kept, str(mine))
    assert (kept / "slow.json").stat().st_mtime_ns == before
    np.testing.assert_array_equal(Lab(again).truth(1e-4), lab.truth(1e-4))


@pytest.mark.slow
def test_the_same_is_measured_in_plain_python_by_kernels_and_by_two_processes(tmp_path):
    """Attempts and errors; those of runs at loose tolerances, whose rounding errors grow, to some digits."""
    some, pair = [one for one in subjects() if one.knob == 0][:2], ("DOPRI5", "RODAS4")
    compiled = dataclasses.replace(SMOKE, engine="compiled")
    alone = batch.measure_all(some, SMOKE, pair, tmp_path / "alone")
    together = batch.measure_all(some, SMOKE, pair, tmp_path / "together", workers=2)
    by_kernels = batch.measure_all(some, compiled, pair, tmp_path / "kernels")
    assert json.dumps([one["windows"] for one in together]) == json.dumps([one["windows"] for one in alone])
    np.testing.assert_allclose(Lab(by_kernels).truth(1e-4), Lab(alone).truth(1e-4), rtol=1e-3)


def test_times_are_kept_problem_by_problem(tmp_path, monkeypatch):
    """With other methods, or asked for anew, they are measured again; those of other problems stay."""
    measured = []

    def measure(problem, pair):
        measured.append(problem.name)
        return {"seconds": {"explicit": 1.0, "implicit": float(len(measured))}, "parts": {"evaluation": 1.0}}

    monkeypatch.setattr(timings, "measure", measure)
    path, pair, some = tmp_path / "timings.json", ("DOPRI5", "RODAS4"), subjects()[:2]
    first = timings.measure_or_read(path, some[:1], pair)
    assert timings.measure_or_read(path, some, pair)[some[0].name] == first[some[0].name]
    assert len(measured) == 2
    timings.measure_or_read(path, some, ("DOPRI5", "ROS2"))
    assert len(measured) == 4
    again = timings.measure_or_read(path, some[:1], ("DOPRI5", "ROS2"), fresh=True)
    assert again[some[0].name]["seconds"]["implicit"] == 5.0


def test_a_scheduler_that_is_not_there_is_refused_in_words(tmp_path):
    with pytest.raises(ValueError, match=r"`--executor` = .* is not the address of a Dask scheduler"):
        batch.measure_all(subjects()[:1], SMOKE, ("DOPRI5", "RODAS4"), tmp_path, scheduler="nowhere")


def test_shipped_networks_are_listed_one_of_each_controller_first():
    names = networks.shipped_names("digits")
    assert len(names) == len(set(names)) > 8
    assert "constant-seed0" in names[0]


def test_what_is_shipped_names_no_folder_of_the_machine(tmp_path, monkeypatch):
    out, shipped = tmp_path / "their results", tmp_path / "shipped"
    out.mkdir()
    command = f"python -m studies.switching --preset full --out '{out}'"
    (out / "record.json").write_text(json.dumps({"command": command, "arguments": {"out": str(out)}}))
    (out / "report.md").write_text(f"Run again with\n\n{command}\n")
    (out / "truth.png").write_bytes(b"a figure")
    monkeypatch.setattr(__main__, "SHIPPED", shipped)
    __main__.ship(out)
    assert {path.name for path in shipped.iterdir()} == {"record.json", "report.md", "truth.png"}
    assert all(b"their results" not in path.read_bytes() for path in shipped.iterdir())
    record = json.loads((shipped / "record.json").read_text())
    assert record == {"command": "python -m studies.switching --preset full", "arguments": {"out": "results/switching"}}
