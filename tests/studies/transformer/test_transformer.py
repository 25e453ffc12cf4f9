"""The study of transformers: verdicts on constructed cases each way, and one run with everything it leaves behind."""

import dataclasses
import json

import numpy as np
import pytest

import netbridge as nb
from netbridge import data as datasets
from netbridge.tracing.attention import AttentionValues
from studies.lab.comparisons import compare_seeds
from studies.lab.statistics import (
    CONTRADICTED,
    MIXED,
    PARTLY,
    SUPPORTED,
    UNDECIDED,
    choices,
    correlate_rows,
    estimate,
    sign_of,
)
from studies.transformer import __main__ as transformer
from studies.transformer import design, findings
from studies.transformer.measures import along_steps
from tests.netbridge.train import runs

STEP = AttentionValues(
    "a", (1.0, 1.0), np.full(8, 0.1), np.full((2, 4, 4), 0.25), 0.5, np.full(8, 0.3), 900.0, 1e-5, 1e-3, 8, 0.4
)
RESAMPLES = choices(40, 50, seed=0)


def altered(**changes):
    return dataclasses.replace(STEP, **changes)


@pytest.mark.parametrize(
    ("plain", "stepnet", "verdict"),
    [
        ([70.0, 70.2, 70.1], [72.0, 72.1, 72.2], SUPPORTED),
        ([72.0, 72.1, 72.2], [70.0, 70.2, 70.1], CONTRADICTED),
        ([70.0, 72.0, 71.0], [70.5, 72.1, 71.2], UNDECIDED),
        ([70.0], [75.0], UNDECIDED),
    ],
)
def test_a_gain_counts_where_seeds_agree(plain, stepnet, verdict):
    found = findings.gain_finding({"constant": plain, "StepNet": stepnet, "SE": plain}, "cifar10")
    assert found.verdict == verdict
    assert ("One seed" in found.words) == (len(plain) == 1)
    assert findings.gain_finding({"constant": plain, "SE": plain}, "cifar10") is None


def test_equation_32_is_contradicted_by_rows_that_sum_to_one():
    assert findings.average_finding([STEP, STEP]).verdict == CONTRADICTED
    assert findings.average_finding([STEP, altered(row_sums=(0.6, 1.0))]).verdict == UNDECIDED


def test_equation_33_by_its_error_and_by_the_rank_of_a_head():
    wrong, full = altered(recovered=0.1), altered(head_rank=16)
    for steps, whole, single in (
        ([STEP, STEP], SUPPORTED, CONTRADICTED),
        ([STEP, dataclasses.replace(wrong, head_rank=16)], PARTLY, PARTLY),
        ([wrong, wrong], CONTRADICTED, CONTRADICTED),
        ([full], SUPPORTED, SUPPORTED),
    ):
        assert findings.inverse_finding(steps).verdict == whole
        assert findings.head_finding(steps, 16).verdict == single


def test_above_needs_the_interval_and_every_seed():
    def estimates(*values):
        return [estimate(value, value + np.linspace(-0.05, 0.05, 50)) for value in values]

    assert compare_seeds(estimates(1.0, 1.2), estimates(0.5, 0.6)) == 1
    assert compare_seeds(estimates(0.5, 0.6), estimates(1.0, 1.2)) == -1
    assert compare_seeds(estimates(1.0, 0.55), estimates(0.5, 0.6)) == 0  # one seed lies among the plain
    noisy = [estimate(0.7, np.linspace(-1, 2, 50)), estimate(0.8, np.linspace(2, -1, 50) ** 2)]
    assert compare_seeds(noisy, estimates(0.5, 0.6)) == 0
    assert [sign_of(e) for e in estimates(1.0, -1.0, 0.0)] == [1, -1, 0]


class Fake:
    """As much of a studied network as a verdict on TNS looks at."""

    def __init__(self, controller, values):
        self.subject = type("Subject", (), {"controller": controller})
        self.tns = {
            reading: estimate(value, value + np.linspace(-0.05, 0.05, 50))
            for reading, value in zip(design.READINGS, values, strict=True)
        }


def test_a_larger_tns_by_reading():
    plain = [Fake("constant", [1.0 + 0.01 * seed] * 8) for seed in (0, 1)]
    for values, verdict in (([2.0] * 8, SUPPORTED), ([0.5] * 8, CONTRADICTED), ([2.0] * 4 + [0.5] * 4, MIXED)):
        networks = [*plain, Fake("SE", values), Fake("SE", values)]
        assert findings.larger_finding(networks).verdict == verdict
        assert findings.larger_finding(networks[1:]).verdict == UNDECIDED  # a single plain network
    assert findings.larger_finding(plain) is None


@pytest.mark.parametrize(("sign", "verdict"), [(-1, SUPPORTED), (1, CONTRADICTED)])
def test_correlations_at_single_steps(sign, verdict):
    chance = np.random.default_rng(0)
    x = chance.normal(size=(4, 60))
    pairs = [(row, sign * row + 0.3 * chance.normal(size=60)) for row in x]
    assert findings.step_finding("", "", pairs).verdict == verdict
    assert findings.step_finding("", "", [*pairs, (x[0], -sign * x[0])]).verdict == PARTLY
    assert findings.step_finding("", "", [(x[0], x[1]), (x[2], x[3])]).verdict == UNDECIDED
    assert findings.step_finding("", "", [(np.ones(60), x[0])]) is None


@pytest.mark.parametrize(("mean", "verdict"), [(-0.5, SUPPORTED), (0.5, CONTRADICTED), (0.0, UNDECIDED)])
def test_correlations_along_trajectories(mean, verdict):
    values = mean + np.linspace(-0.2, 0.2, 40)
    one = {"all": values, "attention": values, "MLP": values}
    assert findings.along_finding([one, one], RESAMPLES).verdict == verdict
    assert findings.along_finding([], RESAMPLES) is None
    if mean:
        assert findings.along_finding([one, {"all": -values}], RESAMPLES).verdict in (MIXED, PARTLY, UNDECIDED)


def test_along_rows_is_spearmans_within_each_row():
    from scipy import stats

    x, y = np.random.default_rng(1).integers(0, 5, (2, 30, 7))
    wanted = [stats.spearmanr(a, b).statistic if np.ptp(a) * np.ptp(b) else np.nan for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(correlate_rows(x, y), wanted, atol=1e-12)
    assert np.isnan(correlate_rows(np.ones((1, 7)), y[:1])).all()


def test_steps_are_counted_within_their_kind():
    """Attentions whose step size falls with NSI, MLPs whose step size rises with it."""
    sizes = np.random.default_rng(0).uniform(0.1, 0.9, (5, 10))
    nsi = np.where(np.arange(10) % 2 == 0, 1 - sizes, 2 + sizes)
    record = nb.Record(nsi, [0] * 10, [True] + [False] * 9, tuple("abcdefghij"), "slope", sizes)
    found = along_steps(record)
    np.testing.assert_allclose(found["attention"], -1)
    np.testing.assert_allclose(found["MLP"], 1)
    assert (np.abs(found["all"]) < 1).all()
    assert along_steps(dataclasses.replace(record, step_sizes=np.ones((5, 10)))) == {}


# A run.


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Two trainings of one epoch on a few digits, and the study of what came of them."""
    out = tmp_path_factory.mktemp("transformer")
    few = runs.few()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nb, "tune_allocator", lambda: True)
        patch.setattr("netbridge.data.load", lambda name, root=None: few)
        transformer.main(
            transformer.Arguments(
                dataset="digits", train=True, epochs=1, seeds=(0, 1), images=20, resamples=20, device="cpu", out=out
            )
        )
    return out


def test_every_figure_and_table_is_there(out):
    pictures = {"attention", "gate_along", "gate_cloud", "nsi_depth_increment", "nsi_depth_slope"}
    assert {path.stem for path in out.glob("*.png")} == pictures | {"step_sizes", "tns"}
    tables = {path.stem for path in out.glob("*.csv")}
    assert tables == {"table7", "networks", "tns", "steps", "gate", "attention", "rules"}
    assert "NaN" not in (out / "report.md").read_text()


def test_what_was_trained_is_what_is_shown(out):
    record = json.loads((out / "record.json").read_text())["numbers"]
    assert [row["network"] for row in record["table7"]] == ["ViT", "ViT + StepNet"]
    assert [row["networks"] for row in record["table7"]] == [2, 2]
    assert len(list((out / "networks" / "digits").glob("vit4-width32-*.safetensors"))) == 4
    assert len(record["findings"]) == 9
    assert len(record["attention"]) == 4 * 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"controllers": ("dia",)}, "There are: StepNet (depth 18, seed 0), StepNet (depth 18, seed 1), constant"),
        ({"images": 3}, "`--images` must be between 4"),
        ({"resamples": 1}, "`--resamples`"),
    ],
)
def test_what_cannot_be_done_is_said(out, tmp_path, change, words):
    given = {"dataset": "digits", "checkpoint": (out / "networks" / "digits",), "out": tmp_path, **change}
    with pytest.raises(SystemExit) as stopped:
        transformer.main(transformer.Arguments(**given))
    assert words in str(stopped.value)


def test_full_training_is_of_every_data_set_that_can_be_had(tmp_path, monkeypatch, capsys):
    """Table 7: two rows on three data sets, five seeds."""
    few, done = runs.few(), []

    def load(name, root=None):
        if name == "stl10":
            raise datasets.DataUnavailable("no network")
        return dataclasses.replace(few, name=name)

    def train_all(wanted, data, folder, study, device):
        done.append((data.name, folder.name, len(wanted), {job.recipe.epochs for job in wanted}))

    monkeypatch.setattr(nb, "tune_allocator", lambda: True)
    monkeypatch.setattr(datasets, "load", load)
    monkeypatch.setattr(transformer.jobs, "train_all", train_all)
    given = transformer.Arguments(preset="full", train=True, out=tmp_path)
    folder = transformer.train_networks(transformer.fill_in_preset(given, 32), load("cifar10"))
    assert folder == tmp_path / "networks" / "cifar10"
    assert done == [("cifar10", "cifar10", 10, {40}), ("cifar100", "cifar100", 10, {40})]
    assert "stl10 cannot be had here" in capsys.readouterr().out


def test_other_networks_are_refused(tmp_path):
    for net, words in ((nb.resnet(14), "is no transformer"), (nb.vit(16, num_classes=3), "number of classes")):
        path = nb.save(net, tmp_path / "net.safetensors")
        with pytest.raises(SystemExit, match=words):
            transformer.main(transformer.Arguments(dataset="digits", checkpoint=(path,), out=tmp_path / "out"))
