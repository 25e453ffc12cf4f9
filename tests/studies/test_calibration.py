"""Rules of all studies in made-up worlds: each decides about nothing in at most 5 % of them, sees what is there."""

import ast
from pathlib import Path

import pytest
from scipy import stats

import studies
from studies.lab import calibration, verdicts

RULES = calibration.rules()
TRIED = {name: rule for name, rule in RULES.items() if rule.worlds is not None}
SOURCES = [path for path in Path(studies.__file__).parent.rglob("*.py") if path.parent.name not in ("lab", "report")]


def most_alarms(worlds: int) -> float:
    """The share of worlds in which a rule that errs in just 5 % of all worlds claims an effect, but for chance.

    A rule at 5 % exceeds 5 % of 400 worlds every second time; this is exceeded once in a thousand.
    """
    return stats.binom.ppf(0.999, worlds, verdicts.CHANCE) / worlds


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIED)
def test_a_rule_decides_about_nothing_as_rarely_as_it_says(name):
    rule = TRIED[name]
    said = verdicts.calibrate(rule, 0.0)
    assert verdicts.share_claiming(said) <= most_alarms(len(said)), rule.claim


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIED)
def test_a_rule_finds_what_the_paper_says_at_the_size_of_the_design(name):
    rule = TRIED[name]
    said = verdicts.calibrate(rule, 1.0, worlds=100)
    least = stats.binom.ppf(0.001, len(said), 0.8) / len(said)
    assert verdicts.share_supporting(said) >= least, f"{rule.claim} at n = {rule.worlds.n} {rule.worlds.units}"


def test_every_rule_is_in_the_table_and_the_table_is_of_these_rules():
    assert set(calibration.table()) == set(TRIED), "python -m studies.calibration --write makes the table"
    for name, row in calibration.table().items():
        made = TRIED[name].worlds
        assert (row.n, row.units, row.effect, row.now) == (made.n, made.units, made.effect, made.now), name
        assert row.claim == TRIED[name].claim
        assert row.alarms <= most_alarms(row.worlds), name
        assert row.found >= 0.75, name


def test_a_rule_that_several_studies_ask_belongs_to_each_of_them():
    of_cifar_tns = calibration.rules("cifar_tns")
    assert "lab.claims.judge_few_blocks" in of_cifar_tns.keys() & calibration.rules("transformer").keys()
    assert "cifar_tns.judge_accuracy" in of_cifar_tns
    assert of_cifar_tns.items() < RULES.items()
    assert not calibration.rules("miniature")


def test_the_page_shows_the_table():
    assert calibration.PAGE.read_text() == calibration.page()


def test_rules_have_names_of_their_own_and_say_what_they_are():
    for name, rule in RULES.items():
        assert len(rule.text) > 60, f"{name} does not say its rule"
        assert rule.fixed.startswith(("before the data", "after the data")), name


def test_no_study_turns_an_interval_into_a_verdict_by_itself():
    """The comparisons `e.low > 0` and `e.high < 0` stood in thirty places, in eleven dialects that disagreed."""
    offences = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                names = {side.attr for side in sides if isinstance(side, ast.Attribute)}
                if names & {"low", "high"}:
                    offences.append(f"{path}:{node.lineno}")
    assert not offences
