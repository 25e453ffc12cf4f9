"""`ol.diagnose`: its verdict, its advice, its page, and what it says where something cannot be measured."""

import re

import numpy as np
import pytest

import odelab as ol
from odelab.__main__ import main
from odelab.doctor.costs import Exactness, cost, cost_of_error


@pytest.fixture(scope="module")
def stiff():
    return ol.diagnose(ol.problems.van_der_pol(mu=100.0))


def test_it_says_what_is_stiff_and_when_in_five_sentences(stiff):
    assert stiff.stiff
    assert len(stiff.sentences) == 5
    assert "is stiff" in stiff.sentences[0]
    assert "100 % u[1]" in stiff.sentences[1]
    assert stiff.call in stiff.sentences[3]


def test_the_advice_is_the_cheapest_or_as_good_as_it(stiff):
    finished = [one.seconds for one in stiff.costs if one.finished]
    assert stiff.advice.seconds <= 1.05 * min(finished)
    assert not stiff.advice.method.is_explicit
    assert str(stiff.advice) in str(stiff)  # the advised method stands among the costs


def test_the_call_that_is_advised_runs_and_makes_the_error_that_was_told(stiff):
    sol = eval(stiff.call, {"ol": ol, "problem": stiff.problem})
    assert sol.ok
    assert sol.steps == pytest.approx(stiff.advice.steps, rel=0.05)  # tolerances are printed with two digits


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lorenz", "kepler", "brusselator", "rigid_body"])
def test_what_is_not_stiff_is_not(name):
    found = ol.diagnose(getattr(ol.problems, name)())
    assert found.stiff is False
    assert found.advice.method.is_explicit or found.advice.method.switches


def test_the_same_problem_is_stiff_at_a_loose_tolerance_and_not_at_a_sharp_one():
    problem = ol.problems.davis_skodje()
    assert ol.diagnose(problem, 1e-3, 1e-6).stiff
    assert not ol.diagnose(problem, 1e-9, 1e-12).stiff


def test_methods_are_compared_at_one_error():
    problem = ol.problems.brusselator()
    times = np.linspace(0.0, 20.0, 9)[1:]
    exact = ol.solve(problem, ol.DOP853, ol.adaptive(1e-12, 1e-14), t_eval=times, t_eval_by="step").u
    exact = Exactness(times, exact, 1e-6, 1e-9)
    goal = cost(problem, ol.DOPRI5, ol.adaptive(1e-6, 1e-9), exact, 10.0).error
    for method in (ol.BS32, ol.RODAS4, ol.DOP853):
        assert cost_of_error(problem, method, ol.adaptive(1e-6, 1e-9), exact, goal, 10.0).error <= 2.0 * goal


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (ol.problems.robertson_dae(), "mass matrix"),
        (ol.problems.heat_1d(130), "more than 128 components"),
        (ol.Problem(lambda t, u, params: (-u[0],), [1.0], (1.0, 0.0)), "no windows could be cut"),
        (ol.Problem(lambda t, u, params: (-u[0],), [0.0], (0.0, 1.0)), "no windows could be cut"),
        (ol.Problem(lambda t, u, params: (1j * u[0],), [1.0 + 0.0j], (0.0, 1.0)), "complex"),
    ],
    ids=["algebraic", "large", "backwards", "at rest", "complex"],
)
def test_what_could_not_be_measured_is_named_and_the_rest_is_told(problem, words, tmp_path):
    found = ol.diagnose(problem, allowed=2.0)
    assert words in str(found)
    assert found.advice.finished
    assert found.report(tmp_path).stat().st_size < 500_000


@pytest.mark.slow
def test_a_method_that_takes_far_too_long_is_given_up_and_that_is_said():
    found = ol.diagnose(ol.problems.van_der_pol(mu=1e5), 1e-3, 1e-6, allowed=3.0)
    given_up = [one for one in found.costs if not one.finished]
    assert {one.name for one in given_up} >= {"DOPRI5"}
    assert "was given up" in str(found)
    assert found.advice not in given_up


def test_a_problem_that_nobody_gets_through_is_an_error_that_says_why():
    with pytest.raises(ol.RunFailed, match="blows up"):
        ol.diagnose(ol.Problem(lambda t, u, params: (u[0] * u[0],), [1.0], (0.0, 2.0)))


def test_the_page_has_its_pictures_in_it_and_asks_for_nothing(stiff, tmp_path):
    page = stiff.report(tmp_path / "out").read_text(encoding="utf-8")
    assert page.count("<img") == 4
    assert set(re.findall(r'src="(\w+:)', page)) == {"data:"}
    assert "http" not in page
    assert all(sentence.split(":")[0] in page for sentence in stiff.sentences[:1])


MINE = """
import odelab as ol

problem = ol.Problem(lambda t, u, params: (-1000.0 * (u[0] - 1.0),), [0.0], (0.0, 1.0), name="mine")
endless = problem
explosion = ol.Problem(lambda t, u, params: (u[0] * u[0],), [1.0], (0.0, 2.0))
number = 3

def made():
    return problem
"""


@pytest.mark.parametrize("name", ["problem", "made"])
def test_a_shell_takes_a_problem_from_a_file(name, tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    assert main([f"{file}:{name}", *(["--report", str(tmp_path / "out")] if name == "made" else [])]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("mine at rtol = 1e-06 is stiff")
    assert ((tmp_path / "out" / "diagnosis.html").as_uri() in printed) == (name == "made")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("robertsen", "there is no problem"),
        ("{}:nothing", "its problems are: "),
        ("{}:number", "but int"),
        ("no.py:x", "there is no file"),
        ("{}:endless", "seconds are too few: no method got through mine"),
        ("{}:explosion", "blows up"),
    ],
)
def test_a_name_that_leads_nowhere_is_an_error_that_helps(name, words, tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    with pytest.raises(SystemExit):
        main([name.format(file), "--allowed", "1e-9"])
    assert words in capsys.readouterr().err
