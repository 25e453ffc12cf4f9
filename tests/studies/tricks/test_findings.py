"""Verdicts on constructed measurements go each way, and intervals rest on seeds or images as they say."""

import dataclasses
import json

import numpy as np
import pytest

from studies.lab.measurements import Measurement
from studies.lab.statistics import CONTRADICTED, PARTLY, SUPPORTED, UNDECIDED, Estimate
from studies.lab.stiffness import READINGS
from studies.tricks import __main__ as study
from studies.tricks import analysis, design
from studies.tricks.findings import below_zero, findings, good_ones, raising

IMAGES = 50


@pytest.fixture(autouse=True)
def fewer_resamples(monkeypatch):
    monkeypatch.setattr(design, "RESAMPLES", 200)
    monkeypatch.setattr(design, "RESAMPLED_RANKS", 40)


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
    return analysis.Runs.of(rows)


def verdicts(table, seeds=3):
    return [finding.verdict for finding in findings(runs_of(table, seeds))]


GOOD, BAD = 60.0, 40.0


@pytest.mark.parametrize(
    ("others", "verdict"),
    [
        ({"a": (GOOD, 0.3), "b": (GOOD, 0.4), "c": (BAD, 0.1)}, SUPPORTED),
        ({"a": (GOOD, 0.1), "c": (BAD, 0.4)}, CONTRADICTED),
        ({"a": (GOOD, 0.2), "c": (BAD, 0.4)}, CONTRADICTED),  # no difference to speak of
        ({"a": (GOOD, 0.3), "b": (GOOD, 0.1)}, PARTLY),
        ({"a": (GOOD, 0.3), "b": (GOOD, 0.2)}, UNDECIDED),
        ({"c": (BAD, 0.3)}, UNDECIDED),  # no good trick
    ],
)
def test_what_raises_accuracy_raises_tns(others, verdict):
    assert verdicts({"plain": (50.0, 0.2)} | others)[0] == verdict


def test_one_seed_decides_nothing_about_recipes():
    assert verdicts({"plain": (50.0, 0.2), "a": (GOOD, 0.3)}, seeds=1)[0] == UNDECIDED
    assert good_ones(runs_of({"plain": (50.0, 0.2), "a": (GOOD, 0.3)}, seeds=1)) == []


def test_better_networks_have_a_larger_tns():
    rising = {f"r{k}": (40.0 + 4 * k, 0.1 + 0.05 * k) for k in range(5)}
    assert verdicts({"plain": (38.0, 0.05)} | rising)[1] == SUPPORTED
    falling = {name: (accuracy, 0.6 - tns) for name, (accuracy, tns) in rising.items()}
    assert verdicts({"plain": (38.0, 0.55)} | falling)[1] == CONTRADICTED


def test_rule_one_where_intervals_are_missing():
    assert raising({}, 0.2) == UNDECIDED
    assert raising({"a": Estimate(0.5, np.nan, np.nan)}, 0.2) == UNDECIDED


class TestHardness:
    @staticmethod
    def log(gains, stiffness, rates):
        losses = 3.0 - np.cumsum([0.0, *gains])
        return [
            {"loss": loss, "rate": rate, "tns": [x, x, x, None], "nsi": {"slope": [1.0]}}
            for loss, rate, x in zip(losses, rates, [*stiffness, 0.5], strict=True)
        ]

    def test_stiff_epochs_that_gain_little(self):
        gains = [0.5, 0.1, 0.4, 0.2, 0.3]
        one = made("plain", 0, 50, 0.2, self.log(gains, [1 - g for g in gains], [0.1] * 6))
        plain, partial = analysis.taus(analysis.course(one), 0)
        assert plain == pytest.approx(-1.0)
        assert partial == pytest.approx(-1.0)
        found = analysis.hardness([one, one], READINGS[0]).mean("partial")
        assert below_zero(found) == SUPPORTED
        assert np.isnan(analysis.taus(analysis.course(one), 3)).all()  # that reading is not defined

    def test_what_both_do_in_time_is_taken_out(self):
        """Gain and TNS fall with the epoch, but for one exchange in each: nothing is left of their relation."""
        gains, stiffness = [0.5, 0.6, 0.3, 0.2, 0.1], [5.0, 4.0, 3.0, 1.0, 2.0]
        one = made("plain", 0, 50, 0.2, self.log(gains, stiffness, [0.1] * 6))
        plain, partial = analysis.taus(analysis.course(one), 0)
        assert plain == pytest.approx(0.6)
        assert partial == pytest.approx((0.6 - 0.64) / (1 - 0.64))

    def test_epochs_of_other_learning_rates_are_not_compared(self):
        """A drop of the rate gains much, and nobody is to blame."""
        gains, rates = [0.1, 0.2, 2.0, 0.01, 0.02], [0.1, 0.1, 0.1, 0.01, 0.01, 0.01]
        one = made("plain", 0, 50, 0.2, self.log(gains, [1.0, 2.0, 9.0, 1.0, 2.0], rates))
        assert analysis.taus(analysis.course(one), 0)[0] == pytest.approx(1.0)

    def test_without_a_course_nothing_is_said(self):
        assert analysis.course(made("plain", 0, 50, 0.2)) is None
        assert len(findings(runs_of({"plain": (50.0, 0.2)}))) == 2


class TestNumbers:
    def test_differences_over_images_are_paired(self):
        runs = runs_of({"plain": (50.0, 0.2), "a": (GOOD, 0.3)})
        e = runs.paired_differences(READINGS[0])["a"]  # every image differs by 0.1, the ripple is common
        assert (e.value, e.low, e.high) == pytest.approx((0.1, 0.1, 0.1))
        assert runs.paired_differences(analysis.ACCURACY)["a"].value == pytest.approx(10.0, abs=2.0)

    def test_stages_alone(self):
        one = made("plain", 0, 50, 0.2)
        largest = 1.0 + 0.3 * np.linspace(0, 1, IMAGES)  # of the two counted blocks; the mean of both is 1.125
        wanted = (np.maximum(largest / 1.125 - 1.0, 0.0) * largest).mean()
        assert analysis.stage_stiffness(one) == pytest.approx([wanted, wanted])
        alone = dataclasses.replace(one, arrays=one.arrays | {"nsi_slope": np.ones((IMAGES, 6))})
        assert analysis.stage_stiffness(alone) == [0.0, 0.0]


def test_the_page_of_a_smoke_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("netbridge.tune_allocator", lambda: True)
    study.main(study.Arguments(smoke=True, out=tmp_path))
    report = (tmp_path / "report.md").read_text()
    assert report.splitlines()[2].startswith("The paper's text names no trick")
    record = json.loads((tmp_path / "record.json").read_text())["numbers"]
    assert [finding["verdict"] for finding in record["findings"]]
    assert len(record["networks"]) == 4
    for name in ("recipes", "accuracy_tns", "nsi_blocks", "training"):
        assert (tmp_path / f"{name}.png").stat().st_size > 5000
    assert design.PLAIN in capsys.readouterr().out


def test_no_measurement_says_how_to_make_them(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "SHIPPED", tmp_path / "none")
    with pytest.raises(SystemExit, match="`--train` makes them"):
        study.main(study.Arguments(out=tmp_path))
