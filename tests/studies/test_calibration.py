"""Rules of all studies in made-up worlds: laws that every rule keeps, and how often each decides about nothing."""

import ast
import dataclasses
import functools
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import studies
from studies.lab import calibration, verdicts
from studies.lab.verdicts import CONTRADICTED, FALSE_OF_SOME, NO_DIFFERENCE, OPEN, SPLIT, SUPPORTED, TRUE_OF_SOME

RULES = calibration.rules()
TRIED = {name: rule for name, rule in RULES.items() if rule.worlds is not None}
SOURCES = [path for path in Path(studies.__file__).parent.rglob("*.py") if path.parent.name not in ("lab", "report")]
FOR, AGAINST = {SUPPORTED, TRUE_OF_SOME}, {CONTRADICTED, FALSE_OF_SOME, SPLIT}
NO_OPPOSITE = {"lab.claims.judge_few_blocks": "numbers of which many blocks are stiff are as stiff when permuted"}
IN_ORDER = {"block_stiffness.networks.judge_depth": "rows of a network stand in the order of its blocks"}
NOT_FEWER = {
    "block_stiffness.blocks.judge_labels": "labels of ten kinds need eleven images",
    "block_stiffness.networks.judge_errors": "n counts the blocks of 23 networks; images are asked as well",
    "block_stiffness.printed.judge_print": "the blocks are the printed ones",
    "population.judge_explanation": "a regression needs as many networks as it has rivals",
}
NEVER_NONE = (  # worlds need one at least
    *("lab.claims.judge_few_blocks", "population.judge_relation", "switching.", "tricks.judge_hardness"),
)
FIXED_PARTS = (  # evidence whose readings, indices or columns are always there
    *("block_stiffness.printed.judge_print", "cifar_tns.judge_correlation", "switching."),
    *("tns_at_work.judge_ranking", "tns_at_work.judge_better"),
)
ONLY_COUNTED = {"groups", "without"}  # parts of which a rule asks how many there are, or whether a kind turns it
ONE_TABLE = ("step_control.", "switching.", "asr.accuracy.judge_module")  # evidence with more than their rules ask


@functools.cache
def evidence_of(name: str, effect: float, world: int, n: int | None = None) -> tuple:
    rule = TRIED[name]
    return rule.worlds.make(np.random.default_rng((world, 7)), effect, rule.worlds.n if n is None else n)


@functools.cache
def finding(name: str, effect: float, world: int, n: int | None = None) -> verdicts.Finding:
    return TRIED[name](*evidence_of(name, effect, world, n))


def in_reverse(evidence):
    """The same evidence, all that is listed or named in the other order."""
    if isinstance(evidence, dict):
        return {key: in_reverse(value) for key, value in reversed(evidence.items())}
    if isinstance(evidence, list):
        return [in_reverse(value) for value in reversed(evidence)]
    if dataclasses.is_dataclass(evidence):
        fields = [field.name for field in dataclasses.fields(evidence) if field.init]
        return dataclasses.replace(evidence, **{field: in_reverse(getattr(evidence, field)) for field in fields})
    return evidence


def mixtures(plus, minus):
    """Copies of `plus` in each of which one named part is that of `minus`, and the name of the part."""
    if isinstance(plus, tuple):
        for place, both in enumerate(zip(plus, minus, strict=True)):
            for name, made in mixtures(*both):
                yield (place, *name), (*plus[:place], made, *plus[place + 1 :])
    elif isinstance(plus, dict) and len(plus) <= 12:  # in a table of many networks a single one may not be seen
        for key in (key for key in plus if key not in ONLY_COUNTED):
            for name, made in mixtures(plus[key], minus[key]):
                yield (key, *name), plus | {key: made}
    elif dataclasses.is_dataclass(plus) and not hasattr(plus, "low"):
        fields = {field.name: getattr(plus, field.name) for field in dataclasses.fields(plus) if field.init}
        for name, made in mixtures(fields, {name: getattr(minus, name) for name in fields}):
            yield name, dataclasses.replace(plus, **made)
    elif repr(plus) != repr(minus):
        yield (), minus


@pytest.mark.parametrize("name", [name for name in TRIED if not name.startswith((*ONE_TABLE, *NO_OPPOSITE))])
def test_nothing_of_the_evidence_is_ignored(name):
    """Whichever arm, reading or column is that of worlds where the claim is false, the words or intervals show it."""
    parts = dict(mixtures(evidence_of(name, 1.0, 0), evidence_of(name, -1.0, 0)))
    some = list(parts)[:: -(-len(parts) // 12)]
    whole = seen(finding(name, 1.0, 0))
    assert some
    assert not [part for part in some if seen(TRIED[name](*parts[part])) == whole]


def seen(said: verdicts.Finding) -> tuple:
    cases = [(case.name, case.estimate.value, case.estimate.low, case.estimate.high) for case in said.verdict.cases]
    return str(said.verdict), said.words, str(cases)


@pytest.mark.parametrize("name", sorted(TRIED.keys() - NO_OPPOSITE.keys()))
def test_a_verdict_turns_with_the_claim(name):
    """Where the claim is true nothing speaks against it, and where its opposite is true nothing speaks for it."""
    worlds = range(1 if name.startswith("population.") else 3)  # whose evidence takes the longest
    true, false = ([finding(name, effect, world).verdict for world in worlds] for effect in (1.0, -1.0))
    assert not AGAINST & {*true}
    assert not FOR & {*false}
    assert AGAINST & {*false}


@pytest.mark.parametrize("name", sorted(TRIED.keys() - IN_ORDER.keys()))
def test_the_order_of_seeds_networks_and_arms_says_nothing(name):
    said = finding(name, 1.0, 0).verdict
    turned = TRIED[name](*(in_reverse(part) for part in evidence_of(name, 1.0, 0))).verdict
    assert turned == said
    values = (sorted(case.estimate.value for case in one.cases) for one in (turned, said))
    np.testing.assert_allclose(*values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", sorted(TRIED.keys() - NOT_FEWER.keys()))
def test_one_unit_or_none_decides_nothing(name):
    assert finding(name, 1.0, 0, n=1).verdict in OPEN
    assert name.startswith(NEVER_NONE) or finding(name, 1.0, 0, n=0).verdict in OPEN


@pytest.mark.parametrize("name", [name for name, rule in TRIED.items() if rule.fewest])
def test_with_fewer_units_than_the_rule_asks_for_nothing_is_decided_and_the_words_say_so(name):
    fewest = TRIED[name].fewest
    few = finding(name, 1.0, 0, n=fewest - 1)
    assert few.verdict in OPEN
    assert f"from {fewest} on" in few.words + str(few.verdict)


def emptied(evidence):
    """The same evidence with nothing in it."""
    if isinstance(evidence, dict | list | tuple):
        return type(evidence)()
    if dataclasses.is_dataclass(evidence):
        fields = [field.name for field in dataclasses.fields(evidence) if field.init]
        return dataclasses.replace(evidence, **{field: emptied(getattr(evidence, field)) for field in fields})
    return evidence


@pytest.mark.parametrize("name", [name for name in TRIED if not name.startswith(FIXED_PARTS)])
def test_of_nothing_nothing_is_said(name):
    assert TRIED[name](*map(emptied, evidence_of(name, 1.0, 0))).verdict in OPEN


@pytest.mark.parametrize("name", TRIED)
def test_words_and_intervals_say_what_the_verdict_says(name):
    for effect in (1.0, -1.0):
        said = finding(name, effect, 0)
        ends = np.array([(case.estimate.low, case.estimate.high) for case in said.verdict.cases]).reshape(-1, 2)
        assert said.claim == TRIED[name].claim
        assert said.words.endswith((".", ". ", ")")), said.words
        if said.verdict in (SUPPORTED, CONTRADICTED, NO_DIFFERENCE):
            assert np.isfinite(ends).any(1).all()


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
    assert calibration.PAGE.read_text() == calibration.page()


def test_a_rule_that_several_studies_ask_belongs_to_each_of_them():
    of_cifar_tns = calibration.rules("cifar_tns")
    assert "lab.claims.judge_few_blocks" in of_cifar_tns.keys() & calibration.rules("transformer").keys()
    assert "cifar_tns.judge_accuracy" in of_cifar_tns
    assert of_cifar_tns.items() < RULES.items()
    assert not calibration.rules("miniature")


def test_rules_have_names_of_their_own_and_say_what_they_are():
    for name, rule in RULES.items():
        assert len(rule.text) > 60, f"{name} does not say its rule"
        assert rule.text.endswith("."), name
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
