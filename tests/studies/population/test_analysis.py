"""The numbers of the population: laws of tau within groups and of shares, and what a planted truth must give."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from studies import population as study
from studies.lab.statistics import draw_counts, kendall_within
from studies.lab.stiffness import READINGS, SCALE, TNS
from tests.studies.population import planted

small = st.integers(0, 4)  # few values: many ties
pairs = st.lists(st.tuples(small, small), min_size=2, max_size=12)


@given(pairs)
@settings(deadline=None, max_examples=60)
def test_of_one_group_it_is_scipys_tau_b(rows):
    x, y = np.array(rows, dtype=float).T
    ours = kendall_within(x, y, np.zeros(len(x)), 1).value
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert np.isnan(ours)
    else:
        assert ours == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)


@given(pairs, st.lists(st.integers(0, 2), min_size=12, max_size=12))
@settings(deadline=None, max_examples=60)
def test_within_groups_it_counts_their_pairs_alone(rows, numbers):
    x, y = np.array(rows, dtype=float).T
    groups = np.array(numbers[: len(x)])
    agree = untied_x = untied_y = 0
    for i, j in itertools.combinations(range(len(x)), 2):
        if groups[i] == groups[j]:
            agree += np.sign(x[i] - x[j]) * np.sign(y[i] - y[j])
            untied_x += x[i] != x[j]
            untied_y += y[i] != y[j]
    ours = kendall_within(x, y, groups, 1).value
    if untied_x * untied_y == 0:
        assert np.isnan(ours)
    else:
        assert ours == pytest.approx(agree / np.sqrt(untied_x * untied_y), abs=1e-12)


def test_a_resample_is_tau_of_the_networks_drawn():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 15))
    found = kendall_within(x, y, np.zeros(15), 20)
    for times, draw in zip(draw_counts(15, 20), found.draws, strict=True):
        rows = np.repeat(np.arange(15), times.astype(int))
        assert len(rows) == 15
        assert draw == pytest.approx(stats.kendalltau(x[rows], y[rows]).statistic)


def test_four_networks_have_no_interval():
    ranks = np.arange(4.0)
    found = kendall_within(ranks, ranks, np.zeros(4), 50)
    assert found.value == 1.0
    assert np.isnan(found.low)
    networks = planted.population(plain, planted.QUEUE[:4])
    assert np.isnan(study.explain_accuracy(networks, READINGS[1], 50).coefficient.value)


def test_neighbours_are_twelve_in_order():
    values = np.random.default_rng(0).permutation(30).astype(float)
    groups = study.neighbours(values)
    assert np.bincount(groups).tolist() == [12, 12, 6]
    assert values[groups == 0].max() < values[groups == 1].min() < values[groups == 2].min()


def plain(job, noise):
    return {"accuracy": 70 + noise["accuracy"], "tns": noise["tns"], "train_loss": noise["train_loss"]}


def test_groups_are_those_of_the_design():
    networks = planted.population(plain)
    everyone = np.ones(len(networks), dtype=bool)
    assert len(set(study.groups_of(networks, study.OVER_ALL, everyone))) == 1
    for way, names in ((study.BY_DEPTH, networks.depth), (study.BY_CONTROLLER, networks.controller)):
        groups = study.groups_of(networks, way, everyone)
        for i, j in itertools.combinations(range(40), 2):
            assert (groups[i] == groups[j]) == (names[i] == names[j])
    assert np.bincount(study.groups_of(networks, study.BY_LOSS, everyone)).tolist() == [study.NEIGHBOURS] * 20


def test_networks_without_a_tns_are_left_out_of_that_reading_only():
    def plant(job, noise):
        missing = np.nan if job.depth == 14 else noise["tns"]
        return {"accuracy": 70 + noise["accuracy"], "tns": [missing, noise["tns"], missing, noise["tns"]]}

    networks = planted.population(plant)
    found = study.relations(networks, 20)
    for (what, _, reading), relation in found.items():
        assert relation.n == (240 if what == SCALE or reading[1] == "dataset" else 210)
        assert np.isfinite(relation.tau.value) == (what != SCALE)  # all of these networks have one scale
    assert [study.explain_accuracy(networks, reading, 20).n for reading in READINGS] == [210, 240, 210, 240]


def test_a_shift_between_depths_is_seen_over_all_and_not_within():
    """Deeper networks are better and stiffer, and within a depth the better ones are less stiff."""

    def plant(job, noise):
        return {"accuracy": 50 + job.depth + noise["accuracy"], "tns": job.depth - 0.1 * noise["accuracy"]}

    found = study.relations(planted.population(plant), 200)
    assert found[TNS, study.OVER_ALL, READINGS[0]].tau.value > found[TNS, study.BY_DEPTH, READINGS[0]].tau.high
    assert found[TNS, study.BY_DEPTH, READINGS[0]].tau.value == -1.0


def test_the_pull_of_training_loss_is_gone_among_neighbours():
    def plant(job, noise):
        loss = noise["train_loss"]
        return {"accuracy": 70 - loss + 0.05 * noise["accuracy"], "tns": 0.05 * noise["tns"] - loss, "train_loss": loss}

    found = study.relations(planted.population(plant), 200)
    assert found[TNS, study.OVER_ALL, READINGS[0]].tau.value > 0.9
    assert found[TNS, study.BY_LOSS, READINGS[0]].tau.value < 0.4


def test_comparisons_are_of_the_core_over_its_seeds():
    def plant(job, noise):
        stepnet = job.controller == "stepnet"
        far = 0 if study.is_core(job.specification) else 50  # of the spread, which must not enter
        return {"accuracy": 70 + 3 * stepnet + far + 0.5 * noise["accuracy"], "tns": 1 + stepnet + far}

    networks = planted.population(plant)
    found = study.comparisons(networks)
    beyond = found[study.ACCURACY, (), study.CONSTANT].beyond
    assert len(found[study.ACCURACY, (), study.CONSTANT].groups[study.CONSTANT]) == 20
    assert {
        len(values)
        for name, values in found[study.ACCURACY, (), study.CONSTANT].groups.items()
        if name != study.CONSTANT
    } == {10}
    assert 2 < beyond[study.STEPNET].low < beyond[study.STEPNET].value < beyond[study.STEPNET].high < 4
    assert beyond["SE"].low < 0 < beyond["SE"].high
    assert found[study.ACCURACY, (), study.STEPNET].beyond["SE"].high < -2
    assert found[TNS, READINGS[0], study.CONSTANT].beyond[study.STEPNET].value == pytest.approx(1.0)


def related(seed, quantities=5, networks=40):
    generator = np.random.default_rng(seed)
    mixed = generator.normal(size=(quantities, quantities)) @ generator.normal(size=(quantities, networks))
    return study.rank_correlations(mixed)


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=15)
def test_shares_are_averages_over_all_orders_and_sum_to_the_whole(seed):
    table = related(seed)
    orders = list(itertools.permutations(range(1, 5)))
    byhand = np.zeros(4)
    for order in orders:
        for place, one in enumerate(order):
            with_it, without = sorted(order[: place + 1]), sorted(order[:place])
            byhand[one - 1] += study.explained_variance(table, tuple(with_it)) - study.explained_variance(
                table, tuple(without)
            )
    assert study.shares(table) == pytest.approx(byhand / len(orders))
    assert study.shares(table).sum() == pytest.approx(study.explained_variance(table, (1, 2, 3, 4)))


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=15)
def test_the_regression_is_least_squares(seed):
    values = stats.rankdata(np.random.default_rng(seed).normal(size=(4, 30)), axis=1)
    values = stats.zscore(values, axis=1)
    found, residual, *_ = np.linalg.lstsq(values[1:].T, values[0], rcond=None)
    table = study.rank_correlations(values)
    assert study.coefficients(table, (1, 2, 3)) == pytest.approx(found)
    assert study.explained_variance(table, (1, 2, 3)) == pytest.approx(1 - residual[0] / 30)


def test_a_rival_that_does_not_vary_explains_nothing():
    values = np.random.default_rng(0).normal(size=(4, 30))
    values[3] = 16.0
    table = study.rank_correlations(values)
    assert study.shares(table)[2] == pytest.approx(0.0, abs=1e-12)
    assert study.coefficients(table, (1, 2, 3))[:2] == pytest.approx(study.coefficients(table, (1, 2)))
    values[0] = 70.0  # and nothing explains what does not vary
    assert np.isnan(study.coefficients(study.rank_correlations(values), (1, 2, 3))).all()


def test_what_a_rival_says_already_is_not_tns_coefficient():
    """Accuracy follows the training loss, and so does TNS; beside the loss TNS has nothing to add."""

    def plant(job, noise):
        loss = noise["train_loss"]
        return {
            **{"accuracy": 70 - loss + 0.3 * noise["accuracy"], "tns": 0.5 * noise["tns"] - loss, "train_loss": loss},
            **{"logits_norm": noise["logits_norm"], "sharpness": noise["sharpness"]},
        }

    networks = planted.population(plant)
    found = study.explain_accuracy(networks, READINGS[0], 200)
    assert study.relations(networks, 50)[TNS, study.OVER_ALL, READINGS[0]].tau.low > 0.3
    assert abs(found.coefficient.value) < study.NEGLIGIBLE
    assert found.shares["training loss"].value > 2 * found.shares["sharpness"].value
    whole = sum(share.value for share in found.shares.values())
    assert 0.7 < whole < 1.0
