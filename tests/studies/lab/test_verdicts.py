"""Verdicts: the laws that hold for every interval, and rules in made-up worlds."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from studies.lab import calibration, verdicts
from studies.lab.statistics import Estimate, mean_over_networks
from studies.lab.verdicts import (
    BY_READING,
    CONTRADICTED,
    FALSE_OF_SOME,
    NO_DIFFERENCE,
    NOT_RUN,
    OPEN,
    SPLIT,
    SUPPORTED,
    TRUE_OF_SOME,
    UNDECIDED,
    Rule,
    Verdict,
    Worlds,
    agreement,
    calibrate,
    enough,
    joint,
    n_needed,
    of_cases,
    of_closeness,
    of_each,
    of_interval,
    of_parts,
    of_strength,
    rule,
    share_claiming,
    share_supporting,
)

RANKS = {CONTRADICTED: -2, FALSE_OF_SOME: -1, SPLIT: 0, NO_DIFFERENCE: 0, UNDECIDED: 0, TRUE_OF_SOME: 1, SUPPORTED: 2}
MIRRORED = {SUPPORTED: CONTRADICTED, CONTRADICTED: SUPPORTED, TRUE_OF_SOME: FALSE_OF_SOME, FALSE_OF_SOME: TRUE_OF_SOME}
numbers = st.integers(-40, 40).map(float)
ends = st.tuples(numbers, numbers).map(sorted)


def interval(pair, n=0):
    low, high = pair
    return Estimate((low + high) / 2, low, high, n=n)


@given(ends, st.integers(0, 30).map(float), st.sampled_from((0.0, 5.0)))
def test_moving_an_interval_up_never_lowers_a_verdict(pair, up, margin):
    before, after = (of_interval(interval((pair[0] + by, pair[1] + by)), negligible=margin) for by in (0.0, up))
    assert RANKS[before] <= RANKS[after]


@given(st.lists(ends, min_size=1, max_size=5), st.data())
def test_moving_one_case_up_never_lowers_the_verdict_on_all(pairs, data):
    which, up = data.draw(st.integers(0, len(pairs) - 1)), data.draw(st.integers(0, 30))
    raised = [(low + up * (place == which), high + up * (place == which)) for place, (low, high) in enumerate(pairs)]
    before, after = (of_each({str(i): interval(pair) for i, pair in enumerate(some)}) for some in (pairs, raised))
    assert RANKS[before] <= RANKS[after]


@given(ends, st.sampled_from((0.0, 5.0)))
def test_mirrored_data_and_a_mirrored_claim_mirror_the_verdict(pair, margin):
    said = of_interval(interval(pair), negligible=margin)
    assert of_interval(interval((-pair[1], -pair[0])), negligible=margin) == MIRRORED.get(said, said)
    assert of_interval(interval(pair), sign=-1, negligible=margin) == MIRRORED.get(said, said)


@given(st.lists(ends, min_size=1, max_size=5))
def test_mirrored_cases_mirror_the_verdict(pairs):
    said, mirrored = (of_each({str(i): interval(p) for i, p in enumerate(pairs)}, sign) for sign in (1, -1))
    assert mirrored == MIRRORED.get(said, said)


@given(ends, st.integers(-8, 8), st.sampled_from((0.0, 5.0)))
def test_other_units_change_nothing(pair, power, margin):
    factor = 2.0**power
    scaled = of_interval(interval((factor * pair[0], factor * pair[1])), negligible=factor * margin)
    assert scaled == of_interval(interval(pair), negligible=margin)


@given(st.lists(st.sampled_from(sorted(RANKS, key=RANKS.__getitem__)), min_size=1, max_size=4))
def test_readings_that_differ_are_never_one_verdict(said):
    whole = joint(said)
    if len(set(said)) == 1:
        assert whole == said[0]
    else:
        assert whole in (BY_READING, UNDECIDED)
    assert whole.claims_effect == any(one.claims_effect for one in said)


@given(ends, st.integers(0, 30).map(float), st.sampled_from((0.0, 5.0)), st.sampled_from((5.0, 12.0)))
def test_a_stronger_number_never_lowers_the_verdict_on_its_strength(pair, up, margin, least):
    before, after = (of_strength(interval((pair[0] + by, pair[1] + by)), least, 1, margin) for by in (0.0, up))
    assert RANKS[before] <= RANKS[after]
    assert of_strength(interval((-pair[1], -pair[0])), least, -1, margin) == before
    if before == SUPPORTED:
        assert pair[0] > least
    assert (before == CONTRADICTED) == (pair[1] < 0.0)


@given(st.lists(st.sampled_from(sorted(RANKS, key=RANKS.__getitem__)), min_size=1, max_size=4))
def test_a_claim_of_several_parts_is_no_better_than_its_worst_part(said):
    whole = of_parts(said)
    assert (whole == SUPPORTED) == all(one == SUPPORTED for one in said)
    if CONTRADICTED in said:
        assert whole == CONTRADICTED
    assert not whole.claims_effect or any(one.claims_effect for one in said)


@given(
    st.lists(st.sampled_from((SUPPORTED, CONTRADICTED, NO_DIFFERENCE, UNDECIDED, BY_READING)), min_size=1, max_size=4)
)
def test_what_has_to_agree_claims_nothing_while_a_place_is_open(said):
    whole = agreement(said)
    if len(set(said)) == 1:
        assert whole == said[0]
    else:
        assert whole in (BY_READING, UNDECIDED)
        assert (whole == BY_READING) == (
            SUPPORTED in said and bool({CONTRADICTED, NO_DIFFERENCE, BY_READING} & set(said))
        )


@pytest.mark.parametrize("without", [Estimate(1.0, math.nan, math.nan), Estimate(math.nan, math.nan, math.nan)])
def test_without_an_interval_nothing_is_decided(without):
    assert (
        of_interval(without, negligible=9.0)
        == of_closeness(without, 1.0, 9.0)
        == of_strength(without, 1.0)
        == UNDECIDED
    )
    assert of_each({"a": without}) in OPEN
    assert of_each({}) == joint([]) == of_parts([]) == agreement([]) == NOT_RUN


@given(st.dictionaries(st.sampled_from("abc"), st.lists(numbers, max_size=4), min_size=1), st.integers(1, 4))
def test_too_few_are_told(groups, fewest):
    assert bool(enough(groups, fewest)) == (min(map(len, groups.values())) < fewest)


@pytest.mark.parametrize(
    ("cases", "verdict"),
    [
        ([SUPPORTED, SUPPORTED], SUPPORTED),
        ([SUPPORTED, UNDECIDED], TRUE_OF_SOME),
        ([SUPPORTED, CONTRADICTED, UNDECIDED], SPLIT),
        ([SUPPORTED, NO_DIFFERENCE], SPLIT),
        ([CONTRADICTED, UNDECIDED], FALSE_OF_SOME),
        ([CONTRADICTED, NO_DIFFERENCE], CONTRADICTED),
        ([NO_DIFFERENCE, NO_DIFFERENCE], NO_DIFFERENCE),
        ([NO_DIFFERENCE, UNDECIDED], UNDECIDED),
        ([UNDECIDED, UNDECIDED], UNDECIDED),
        ([NOT_RUN, NOT_RUN], NOT_RUN),
    ],
)
def test_several_cases(cases, verdict):
    assert of_cases(cases) == of_cases(cases[::-1]) == verdict


def test_open_cases_are_not_counted_as_decided():
    assert str(of_cases([UNDECIDED, UNDECIDED.because("n = 3")])) == "undecided (0 of 2 decided)"


def test_none_above_is_never_true_of_some():
    """The fault that eleven dialects hid: nine open intervals and one below zero are no "true of some"."""
    beyond = {str(i): interval((-1.0, 1.0)) for i in range(9)} | {"SEM": interval((-5.0, -3.0))}
    assert of_each(beyond) == FALSE_OF_SOME
    assert "1 of 10" in str(of_each(beyond))


def test_of_several_open_cases_the_one_is_named_that_is_decided_first():
    """Four times the seeds halve an interval: an estimate of 0.5 needs 12 where one of 0.25 needs 48."""
    cases = {"near": Estimate(0.25, -0.75, 1.25, n=3), "far": Estimate(0.5, -0.5, 1.5, n=3)}
    assert of_each(cases).detail == "in 2 of 2; n = 3, about 12 would decide the first of them if its estimate stayed"
    with_equal = of_each(cases | {"equal": Estimate(0.0, -0.01, 0.01, n=3)}, negligible=0.02)
    assert with_equal == UNDECIDED
    assert "in 2 of 3, no difference in the rest" in with_equal.detail


@given(ends.filter(lambda pair: pair[0] < pair[1]), st.integers(3, 50), st.sampled_from((0.0, 60.0)))
def test_the_number_that_is_needed_decides(pair, n, margin):
    e = interval(pair, n)
    needed = n_needed(e, margin)
    if needed is None:
        assert (e.value, margin) == (0.0, 0.0)
        return
    assert needed > n
    half = (e.high - e.low) / 2 * math.sqrt(n / needed) * (1 - 1e-9)
    assert of_interval(Estimate(e.value, e.value - half, e.value + half), negligible=margin) not in OPEN


def worlds(chance, effect, n):
    return (chance.normal(effect, 1.0, n),)


@rule("The mean is above 0.", "here", worlds=Worlds(worlds, n=20, units="numbers", effect="one deviation", now=3))
def judge_mean(values):
    """Supported where Student's interval lies above 0."""
    return of_interval(mean_over_networks(values)), "The mean."


def test_a_rule_that_is_right_passes_its_calibration():
    null, planted = calibrate(judge_mean, 0.0), calibrate(judge_mean, 1.0)
    assert share_claiming(null) <= bound_of_alarms(len(null))
    assert share_supporting(planted) > 0.95
    row = calibration.measure(judge_mean, worlds=100)
    assert row.found > row.found_now
    assert "one deviation" in str(row)


def test_a_rule_that_noise_passes_is_seen():
    lax = dataclasses.replace(judge_mean, judge=lambda values: (SUPPORTED if values.mean() > 0 else UNDECIDED, ""))
    assert share_claiming(calibrate(lax, 0.0)) > bound_of_alarms(verdicts.WORLDS)


def bound_of_alarms(count: int) -> float:
    """What a rule that errs in just 5 % of all worlds stays below, but for one seed in a thousand."""
    return stats.binom.ppf(0.999, count, verdicts.CHANCE) / count


def test_a_rule_tells_where_it_is_from():
    finding = judge_mean(np.array([1.0, 1.1, 0.9]))
    assert isinstance(finding.rule, Rule)
    assert finding.rule.text == "Supported where Student's interval lies above 0."
    assert finding.verdict == SUPPORTED
    with pytest.raises(ValueError, match="needs `worlds`, or `exempt`"):
        rule("A claim.", "here")(lambda: (SUPPORTED, ""))


def test_details_do_not_tell_verdicts_apart():
    assert Verdict("undecided", "n = 3") == UNDECIDED
    assert str(UNDECIDED.because("n = 3")) == "undecided (n = 3)"
