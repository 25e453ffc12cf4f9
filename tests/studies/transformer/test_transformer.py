"""The study of transformers: rules about arithmetic, steps within their kind, and one run."""

import dataclasses

import numpy as np
import pytest

import netbridge as nb
from netbridge.tracing.attention import AttentionValues
from studies import transformer as study
from studies.lab.statistics import correlate_rows
from studies.lab.verdicts import CONTRADICTED, SPLIT, SUPPORTED, UNDECIDED
from tests.netbridge.train import runs
from tests.studies import pages

STEP = AttentionValues(
    "a", (1.0, 1.0), np.full(8, 0.1), np.full((2, 4, 4), 0.25), 0.5, np.full(8, 0.3), 900.0, 1e-5, 1e-3, 8, 0.4
)


def altered(**changes):
    return dataclasses.replace(STEP, **changes)


def test_equation_32_is_contradicted_by_rows_that_sum_to_one():
    assert study.judge_average([STEP, STEP]).verdict == CONTRADICTED
    assert study.judge_average([STEP, altered(row_sums=(0.6, 1.0))]).verdict == UNDECIDED


def test_equation_33_by_its_error_and_by_the_rank_of_a_head():
    wrong, full = altered(recovered=0.1), altered(head_rank=16)
    for steps, whole, single in (
        ([STEP, STEP], SUPPORTED, CONTRADICTED),
        ([STEP, dataclasses.replace(wrong, head_rank=16)], SPLIT, SPLIT),
        ([wrong, wrong], CONTRADICTED, CONTRADICTED),
        ([full], SUPPORTED, SUPPORTED),
    ):
        assert study.judge_inverse(steps).verdict == whole
        assert study.judge_heads(steps, 16).verdict == single


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
    found = study.along_steps(record)
    np.testing.assert_allclose(found["attention"], -1)
    np.testing.assert_allclose(found["MLP"], 1)
    assert (np.abs(found["all"]) < 1).all()
    assert study.along_steps(dataclasses.replace(record, step_sizes=np.ones((5, 10)))) == {}


# A run.


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Two trainings of one epoch on a few digits, and the study of what came of them."""
    out = tmp_path_factory.mktemp("transformer")
    given = {"dataset": "digits", "epochs": 1, "seeds": (0, 1), "images": 20, "resamples": 20, "device": "cpu"}
    study.main(study.Arguments(train=True, out=out, **given))
    return out


@pytest.mark.slow
def test_what_was_trained_is_what_is_shown(out):
    record = pages.check(out)
    assert [row["network"] for row in record["table7"]] == ["ViT", "ViT + StepNet"]
    assert [row["networks"] for row in record["table7"]] == [2, 2]
    assert len(list((out / "networks" / "digits").glob("vit4-width32-*.safetensors"))) == 4
    assert len(record["findings"]) == 11
    assert len(record["attention"]) == 4 * 4


def test_full_training_is_of_every_data_set_that_can_be_had(offline, capsys):
    """Table 7: two rows on three data sets, five seeds."""
    given = study.fill_in_preset(study.Arguments(preset="full", train=True, data_root=offline))
    few = dataclasses.replace(runs.few(), name="cifar10")
    planned = {name: (data.name, wanted) for name, data, wanted in study.plan_trainings(given, few)}
    assert list(planned) == ["cifar10"]
    assert "cifar100 cannot be had here" in (said := capsys.readouterr().out)
    assert "stl10 cannot be had here" in said
    for name in study.DATASETS:
        wanted = study.queue(name, given)
        assert (len(wanted), {job.recipe.epochs for job in wanted}) == (10, {40})
