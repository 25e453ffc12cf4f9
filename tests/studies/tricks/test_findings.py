"""Verdicts on constructed measurements: intervals rest on seeds or images, and time is no relation."""

import dataclasses

import numpy as np
import pytest

from studies import tricks as study
from studies.lab.exhibits import judge
from studies.lab.measurements import Measurement
from studies.lab.statistics import correlation_of_few
from studies.lab.stiffness import QUANTITIES, READINGS, SCALE, SHAPE, TNS
from studies.lab.verdicts import (
    NO_DIFFERENCE,
    SUPPORTED,
    TRUE_OF_SOME,
    UNDECIDED,
    of_correlation,
)

IMAGES = 50


def made(trick, seed, accuracy, tns, log=()):
    """A measurement with this accuracy (per cent) and TNS; images differ by a ripple that is the same for all."""
    ripple = np.linspace(-0.05, 0.05, IMAGES)
    nsi = 1.0 + np.outer(np.linspace(0, 1, IMAGES), [0.1, 0.2, 0.3, 0.1, 0.2, 0.3])
    numbers = {
        "seed": seed, "test_accuracy": accuracy / 100, "train_loss": 1.0, "logits_norm": 3.0, "tns": [tns] * 4,
        "stages": [0, 0, 0, 1, 1, 1], "first": [True, False, False, True, False, False], "log": list(log),
        "nsi_slope": {"mean": [1.0] * 6}, "nsi_increment": {"mean": [1.0, 1.0, 1.0, None, 1.0, 1.0]},
        "made": {"seconds": 1.0, "commit": "none"},
    }  # fmt: skip
    correct = np.arange(IMAGES) < round(accuracy / 100 * IMAGES)
    arrays = {"tns": np.tile(tns + ripple, (4, 1)), "correct": correct, "nsi_slope": nsi}
    how = {"name": trick, "epochs": 20}
    return Measurement({"dataset": "cifar10", "seed": seed, "recipe": how}, numbers, arrays)


def runs_of(table, seeds=3):
    """{trick: (accuracy, TNS)}, with seeds half a point and 0.001 apart."""
    rows = [
        made(trick, seed, accuracy + 0.5 * seed, tns + 0.001 * seed)
        for trick, (accuracy, tns) in table.items()
        for seed in range(seeds)
    ]
    return study.Runs.of(rows)


def verdicts(table, seeds=3):
    """Of the findings in their order: TNS, scale and shape of what raises the accuracy, then of the relation."""
    return [finding.verdict for finding in findings(runs_of(table, seeds))]


def findings(runs):
    return judge(study.EXHIBITS, study.Evidence(runs))


GOOD, BAD = 60.0, 40.0


def test_a_trick_whose_tns_is_open_leaves_the_rest_undecided():
    accuracy = {"plain": [50.0, 50.5, 51.0], "a": [60.0, 60.5, 61.0], "b": [60.0, 60.5, 61.0]}
    tns = {"plain": [0.2, 0.21, 0.22], "a": [0.5, 0.51, 0.52], "b": [0.23, 0.24, 0.25]}
    assert study.RAISING[TNS](accuracy, dict.fromkeys(READINGS, tns)).verdict == TRUE_OF_SOME


def test_without_a_recipe_that_raises_the_accuracy_nothing_is_decided():
    assert verdicts({"plain": (50.0, 0.2), "c": (40.0, 0.3)})[0] == UNDECIDED


def test_branches_that_are_twice_as_large_have_a_larger_scale_and_the_same_shape():
    """The fault: TNS is proportional to NSI, and a recipe that doubles all of it is no more uneven."""
    runs = runs_of({"plain": (50.0, 0.2), "a": (GOOD, 0.4)})
    for name, factor in (("plain", 1.0), ("a", 2.0)):
        for one in runs.groups[name]:
            factor *= 1.001
            for of in ("slope", "increment"):
                means = one.numbers[f"nsi_{of}"]["mean"]
                one.numbers[f"nsi_{of}"] = {"mean": [x and factor * x for x in means]}
    said = dict(zip(QUANTITIES, findings(runs), strict=False))
    assert (said[TNS].verdict, said[SCALE].verdict) == (SUPPORTED, SUPPORTED)
    assert said[SHAPE].verdict == NO_DIFFERENCE


def test_recipes_are_the_units_of_a_relation():
    """Thirty networks of ten recipes: the rule before counted thirty. Seeds of one recipe say the same thing again."""
    chance = np.random.default_rng(8)
    accuracy, tns = chance.normal(size=(2, 10))
    accuracy = np.argsort(np.argsort(accuracy + 0.9 * tns)) * 1.0
    each = np.repeat(accuracy, 3) + 0.01 * np.tile([0, 1, 2], 10), np.repeat(tns, 3) + 0.01 * np.tile([0, 1, 2], 10)
    assert of_correlation(correlation_of_few(*each)) == SUPPORTED
    groups = [{str(k): [x, x + 0.01, x + 0.02] for k, x in enumerate(values)} for values in (accuracy, tns)]
    assert study.RELATED[TNS](groups[0], dict.fromkeys(READINGS, groups[1])).verdict == UNDECIDED


class TestHardness:
    RATE = np.repeat((0.1, 0.01), (10, 6))

    def made(self, tns, gain):
        """The two taus of networks with this stiffness and gain after every epoch, (n, T)."""
        loss = 9.0 - np.cumsum(np.column_stack([np.zeros(len(gain)), gain[:, :-1]]), axis=1)
        return study.relate_gains(loss, tns, self.RATE)

    def test_what_both_do_in_time_is_no_relation(self):
        """The null: stiffness and gain follow the epoch with noise. The partial tau of before was then about 0.17."""
        chance, time = np.random.default_rng(0), np.exp(-np.arange(16) / 8)
        tns, gain = time + 0.1 * chance.normal(size=(2, 3000, 16))
        plain, changes = self.made(tns, gain)
        assert plain.mean() > 0.3
        error = changes.std() / np.sqrt(len(changes))
        assert abs(changes.mean()) < 4 * error

    def test_what_all_networks_do_at_an_epoch_is_no_relation_of_theirs(self):
        chance = np.random.default_rng(0)
        common = chance.normal(size=16)
        tns, gain = common + 0.5 * chance.normal(size=(2, 3000, 16))
        plain, changes = self.made(tns, gain)
        assert plain.mean() > 0.3
        assert abs(changes.mean()) < 4 * changes.std() / np.sqrt(len(changes))

    def test_stiff_epochs_that_gain_little(self):
        chance = np.random.default_rng(0)
        gain = chance.normal(size=(20, 16))
        tns = -gain + 5.0 * np.arange(20)[:, None]
        plain, changes = self.made(tns, gain)
        np.testing.assert_allclose(plain, -1.0)
        np.testing.assert_allclose(changes, -1.0)

    def test_epochs_of_other_learning_rates_are_not_compared(self):
        """A drop of the rate gains much, and nobody is to blame."""
        chance = np.random.default_rng(0)
        gain = chance.normal(size=(20, 16))
        tns = -gain
        tns[:, 9] += 100.0  # the epoch before the drop
        gain[:, 9] += 100.0
        np.testing.assert_allclose(self.made(tns, gain)[0], -1.0)

    @staticmethod
    def log(losses, tns):
        nsi = {"slope": [9.0, 1.0, 2.0, 9.0, 3.0, 6.0], "increment": [None, 1.0, 1.0, None, 1.0, 1.0]}
        return [
            {"loss": loss, "rate": 0.1, "tns": [x, x, x, None], "nsi": nsi} for loss, x in zip(losses, tns, strict=True)
        ]

    def test_a_course_knows_its_scale_and_shape(self):
        one = made("plain", 0, 50, 0.2, self.log([3.0, 2.0, 1.5], [0.5, 0.6, 0.9]))
        way = study.course(one)
        np.testing.assert_allclose(way.stiffness(SCALE, ("slope",)), 3.0)  # of the counted blocks
        np.testing.assert_allclose(way.stiffness(SHAPE, READINGS[0]), [0.5 / 3, 0.2, 0.3])
        assert np.isnan(way.stiffness(TNS, READINGS[3])).all()

    def test_readings_that_are_not_defined_are_left_out(self):
        chance = np.random.default_rng(0)
        table = [made("plain", k, 50, 0.2, self.log(*chance.normal(size=(2, 9)))) for k in range(3)]
        runs = study.Runs.of(table)
        assert len(study.hardness(runs, TNS, READINGS[0])["plain"]) == 3
        assert study.hardness(runs, TNS, READINGS[3])["plain"] == []

    def test_without_a_course_nothing_is_said(self):
        assert study.course(made("plain", 0, 50, 0.2)) is None
        assert len(findings(runs_of({"plain": (50.0, 0.2)}))) == 6


class TestNumbers:
    def test_differences_over_images_are_paired(self):
        runs = runs_of({"plain": (50.0, 0.2), "a": (GOOD, 0.3)})
        e = runs.paired_differences((TNS, READINGS[0]))["a"]  # every image differs by 0.1, the ripple is common
        assert (e.value, e.low, e.high) == pytest.approx((0.1, 0.1, 0.1))
        assert runs.paired_differences(study.ACCURACY)["a"].value == pytest.approx(10.0, abs=2.0)

    def test_stages_alone(self):
        one = made("plain", 0, 50, 0.2)
        largest = 1.0 + 0.3 * np.linspace(0, 1, IMAGES)  # of the two counted blocks; the mean of both is 1.125
        wanted = (np.maximum(largest / 1.125 - 1.0, 0.0) * largest).mean()
        assert study.stage_stiffness(one) == pytest.approx([wanted, wanted])
        alone = dataclasses.replace(one, arrays=one.arrays | {"nsi_slope": np.ones((IMAGES, 6))})
        assert study.stage_stiffness(alone) == [0.0, 0.0]
