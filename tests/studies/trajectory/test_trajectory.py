"""The study of trajectories: proxies, readings and nulls on constructed cases, and what is measured."""

import types

import numpy as np
import pytest
import torch

import netbridge as nb
from netbridge import data as datasets
from studies import trajectory as study
from studies.lab.networks import Deep, name_subjects, read_subject
from studies.lab.statistics import choices, draw_halves, mean_over_networks
from studies.lab.stiffness import READINGS
from studies.lab.verdicts import (
    BY_READING,
    NOT_ASKABLE,
    NOT_RUN,
    SUPPORTED,
    UNDECIDED,
)


def proxy(groups, controller="StepNet", measures=study.LEFT):
    """Distances from one network, the same by every measure."""
    return study.FromProxy(f"{controller}, seed 0", controller, dict.fromkeys(measures, groups))


PLAINS = {"constant": [0.5, 0.51, 0.49], "StepNet": [0.1]}


class TestVerdicts:
    def test_nearer_under_every_proxy_and_measure(self):
        near, far = PLAINS | {"SE": [0.2, 0.21]}, PLAINS | {"SE": [0.8, 0.81]}
        assert study.NEARER([proxy(near), proxy(near)]).verdict == SUPPORTED
        assert study.NEARER([proxy(near), proxy(far)]).verdict == BY_READING
        by_shape_only = study.FromProxy("a", "StepNet", {study.SHAPE: near, study.CKA: far})
        assert study.NEARER([by_shape_only]).verdict == BY_READING
        assert study.NEARER([proxy(near, "constant")]).verdict == NOT_ASKABLE  # it is plain itself
        assert study.NEARER([proxy({"StepNet": [0.1]})]).verdict == NOT_RUN

    def test_more_proxies_widen_the_intervals(self):
        close = PLAINS | {"SE": [0.46, 0.47, 0.48]}
        assert study.NEARER([proxy(close, measures=(study.SHAPE,))]).verdict == SUPPORTED
        assert study.NEARER([proxy(close, measures=(study.SHAPE,))] * 8).verdict == UNDECIDED

    def test_a_line_that_all_networks_share_is_one_observation(self):
        """The null that a sign test over 21 networks took for their word: blocks differ, and not by their depth."""
        common = np.array([1.0, 3.0, 2.0, 5.0, 4.0, 2.5, 6.0])
        lines = {f"c{number}": [common + 0.001 * number] * 2 for number in range(10)}
        assert study.correlation_of_few(np.arange(7), common).kendall.value > 0.0  # 20 of 20, said a sign test
        found = study.judge_accumulation(dict.fromkeys(study.LEFT, lines))
        assert found.verdict == UNDECIDED
        assert "rises in 20 of 20 networks" in found.words

    @staticmethod
    def shares(*values, controllers=6):
        of = {f"c{k}": [np.array(values) + 0.001 * k] for k in range(controllers)}
        return dict.fromkeys(READINGS, of)

    def test_property_1_of_numbers_in_random_order_cannot_be_asked(self):
        """The null of it: NSI without inputs, of which so many are stiff somewhere as well."""
        high = self.shares(0.9, 0.9, 0.9)
        assert study.judge_property(high, high).verdict == NOT_ASKABLE

    @pytest.mark.parametrize("mu", ["sample", "dataset"])
    def test_nsi_that_says_nothing_of_inputs_supports_nothing(self, mu):
        chance = np.random.default_rng(0)
        courses = [independent_course(chance) for _ in range(6)]
        real, shuffled = (
            {("slope", mu): {f"c{k}": [study.shares_of(one, ("slope", mu), order)] for k, one in enumerate(courses)}}
            for order in (None, np.random.default_rng(1))
        )
        assert study.judge_property(real, shuffled).verdict != SUPPORTED
        assert real["slope", mu]["c0"][0][0] > 0.5  # by the rule before this was support

    def test_importance_that_all_networks_share_is_one_observation(self):
        nsi, rise = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), np.array([2.0, 1.0, 3.0, 6.0, 4.0, 5.0])
        profiles = {name: [(nsi, rise + 0.001 * k)] for k, name in enumerate("abcdefgh")}
        assert study.judge_importance(profiles).verdict == UNDECIDED


class TestStatistics:
    def test_the_mean_over_networks_is_students(self):
        from scipy import stats

        values = [0.1, 0.4, -0.2, 0.3]
        found = mean_over_networks(values)
        low, high = stats.ttest_1samp(values, 0).confidence_interval()
        assert (found.value, found.low, found.high) == pytest.approx((0.15, low, high))

    def test_halves_scatter_as_a_bootstrap_does(self):
        """The law that lets them stand for one: the spread of a mean over halves is its standard error."""
        values = np.random.default_rng(0).normal(size=200)
        parts = draw_halves(200, 4000, seed=1)
        assert parts.shape == (4000, 100)
        assert all(len(set(part)) == 100 for part in parts[:20])
        assert values[parts].mean(1).std() == pytest.approx(values.std() / 200**0.5, rel=0.05)


@pytest.fixture(scope="module")
def courses(networks):
    digits = datasets.load("digits")
    paths = [networks / f"{name}.safetensors" for name in ("0-0", "0-1", "1-0", "1-1")]
    subjects = name_subjects([read_subject(path) for path in paths])
    return [study.measure_course(one, digits, 24, "cpu") for one in subjects], digits


class TestMeasures:
    def test_the_proxy_is_the_best_and_its_distance_from_itself_is_zero(self, courses):
        found, _ = courses
        assert study.best(found, 2) == [found[3], found[2]]  # recorded accuracies rise with the place
        everything = np.arange(24)[None]
        np.testing.assert_allclose(study.dissimilarity(found[3], found[3], everything), 0, atol=1e-12)

    def test_distances_are_of_every_other_network(self, courses):
        found, _ = courses
        study.set_distances(found, found[0], choices(24, 20, seed=0))
        study.set_distances(found, found[3], choices(24, 20, seed=0))
        assert not found[3].distance
        for one in found[:3]:
            for measure in study.MEASURES:
                assert one.blocks[measure].shape == (9,)
                assert one.distance[measure].value > 0
                assert one.distance[measure].low <= one.distance[measure].value * 1.05
        far = study.from_proxy(found, found[3])
        assert {name: len(values) for name, values in far.distances[study.CKA].items()} == {"constant": 2, "SE": 1}
        assert list(far.by((study.NSI,)).distances) == [study.NSI]
        expected = np.abs(
            np.log(found[0].measured.records["slope"].nsi) - np.log(found[3].measured.records["slope"].nsi)
        )
        np.testing.assert_allclose(found[0].blocks[study.NSI], expected.mean(0))

    def test_first_blocks_over_the_others(self, courses):
        (one, *_), _ = courses
        nsi = one.measured.records["slope"].nsi
        ratios = study.first_ratios(one)
        np.testing.assert_allclose(ratios["NSI"][:, 1], nsi[:, 3] / np.median(nsi[:, 4:6], axis=1))
        np.testing.assert_allclose(ratios["norm"][:, 0], one.norms[:, 0] / np.median(one.norms[:, 1:3], axis=1))

    def test_a_block_without_a_slope_is_not_missed(self, courses):
        (one, *_), digits = courses
        last = one.subject.net.blocks[4].branch.last
        with torch.no_grad():
            kept = last.weight.clone(), last.bias.clone()
            last.weight.zero_()
            last.bias.zero_()
        found = study.measure_importance(one, digits, 24, "cpu")
        with torch.no_grad():
            last.weight.copy_(kept[0])
            last.bias.copy_(kept[1])
        assert not found.rise[:, 4].any()
        assert found.rise[:, [0, 1, 2, 3, 5, 6, 7, 8]].any(0).all()
        counted = [1, 2, 4, 5, 7, 8]
        for rises in found.features.values():
            assert rises.shape == (24, 6)
            assert not rises[:, counted.index(4)].any()


def independent_course(chance):
    """A network whose NSI is one number drawn for each image and block, whatever the image."""
    nsi = chance.lognormal(0.0, 0.3, (200, 9))
    first = np.arange(9) % 3 == 0
    record = nb.Record(nsi, np.repeat(range(3), 3), first, [str(k) for k in range(9)], "slope")
    return types.SimpleNamespace(measured=types.SimpleNamespace(records={"slope": record}))


def made(blocks, gates):
    """A record of three stages: NSI rises within every stage, and jumps from stage to stage."""
    within = np.tile(np.arange(1.0, blocks + 1), 3)
    stage = np.repeat(range(3), blocks)
    nsi = np.tile(within + 100 * stage, (4, 1))
    names = [str(k) for k in range(3 * blocks)]
    return nb.Record(
        nsi, stage, np.tile(np.arange(blocks) == 0, 3), names, "slope", np.tile(gates(within, stage), (4, 1))
    )


def test_along_a_trajectory_stages_with_blocks_enough_are_ranked_each_on_its_own():
    """Gates that fall within every stage and rise from stage to stage."""
    deep, shallow = (study.along_of(made(blocks, lambda within, stage: 100 * stage - within)) for blocks in (9, 3))
    np.testing.assert_allclose(deep, -1.0)
    assert (shallow > 0).all()  # pooled
    assert not len(study.along_of(made(9, lambda within, stage: np.ones_like(within))))


def test_deep_networks_are_judged_where_they_are(networks):
    known = [read_subject(path) for path in sorted(networks.glob("*.safetensors"))]
    deep = Deep([one for one in known if one.controller == "SE"], datasets.load("digits"))
    arguments = study.Arguments(images=16, resamples=20, device="cpu")
    along = study.deep_along(deep, arguments)
    assert [len(one.along) for one in along] == [16] * len(deep.subjects)
    found = study.finding_along(along, f"On {deep}. ")
    assert f"On {len(along)} ResNet-20 of digits. " in found.words
    assert found.verdict == NOT_ASKABLE  # two counted blocks a stage
