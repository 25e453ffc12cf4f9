"""The study of transformers: verdicts on constructed cases each way, and one run with everything it leaves behind."""

import dataclasses
import json

import numpy as np
import pytest

import netbridge as nb
from netbridge import data as datasets
from netbridge.tracing.attention import AttentionValues
from studies import transformer as study
from studies.lab.claims import Gates
from studies.lab.statistics import correlate_rows, estimate
from studies.lab.stiffness import QUANTITIES, SHAPE, TNS
from studies.lab.verdicts import BY_READING, CONTRADICTED, NOT_ASKABLE, NOT_RUN, SPLIT, SUPPORTED, UNDECIDED
from tests.netbridge.train import runs

STEP = AttentionValues(
    "a", (1.0, 1.0), np.full(8, 0.1), np.full((2, 4, 4), 0.25), 0.5, np.full(8, 0.3), 900.0, 1e-5, 1e-3, 8, 0.4
)


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
    finding = study.judge_gain({"constant": plain, "StepNet": stepnet, "SE": plain})
    assert finding.verdict == verdict
    assert ("n = 1 seeds of each" in finding.words) == (len(plain) == 1)
    assert study.judge_gain({"constant": plain, "SE": plain}).verdict == NOT_RUN


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


class Fake:
    """As much of a studied network as a verdict on stiffness looks at."""

    def __init__(self, controller, values, seed):
        noise = 0.01 * seed
        self.subject = type("Subject", (), {"controller": controller, "depth": 6, "name": controller, "seed": seed})
        self.tns = {r: estimate(v + noise, []) for r, v in zip(study.READINGS, values, strict=True)}
        parts = {what: {r: estimate(1.0 + noise, []) for r in readings} for what, readings in QUANTITIES.items()}
        self.measured = type("Measured", (), {"stiffness": parts, "subject": self.subject})


def judge_larger(networks, what=TNS):
    return study.COMPARED[what](study.compare_stiffness(networks, what))


def test_a_larger_tns_by_reading_and_seed():
    plain = [Fake("constant", [1.0] * 8, seed) for seed in range(3)]
    for values, verdict in (([2.0] * 8, SUPPORTED), ([0.5] * 8, CONTRADICTED), ([2.0] * 4 + [0.5] * 4, BY_READING)):
        networks = [*plain, *(Fake("SE", values, seed) for seed in range(3))]
        assert judge_larger(networks).verdict == verdict
        assert judge_larger(networks[1:]).verdict == UNDECIDED  # two plain networks
        assert judge_larger(networks, SHAPE).verdict == UNDECIDED
    assert judge_larger(plain).verdict == NOT_RUN


@pytest.mark.parametrize(("mean", "verdict"), [(-0.5, SUPPORTED), (0.5, CONTRADICTED), (0.0, UNDECIDED)])
@pytest.mark.parametrize("judged", [study.GATES, study.ALONG, study.DIAGONALS])
def test_correlations_are_judged_over_networks(judged, mean, verdict):
    near = [mean - 0.02, mean, mean + 0.02]
    groups = {"all steps": {"SE": near}, "MLPs": {"SE": near}}
    assert judged(Gates(groups, 0, 0)).verdict == verdict
    if mean:
        against = {"all steps": {"SE": near}, "MLPs": {"SE": [-value for value in near]}}
        assert judged(Gates(against, 0, 0)).verdict == BY_READING
    assert judged(Gates({"all steps": {"SE": near[:2]}}, 0, 0)).verdict == UNDECIDED
    assert judged(Gates({}, 0, 0)).verdict == NOT_ASKABLE


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
    few = runs.few()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nb, "tune_allocator", lambda: True)
        patch.setattr("netbridge.data.load", lambda name, root=None: few)
        study.main(
            study.Arguments(
                dataset="digits", train=True, epochs=1, seeds=(0, 1), images=20, resamples=20, device="cpu", out=out
            )
        )
    return out


@pytest.mark.slow
def test_every_figure_and_table_is_there(out):
    pictures = {"attention", "nsi_depth_increment", "nsi_depth_slope", "step_sizes", "tns"}
    assert {path.stem for path in out.glob("*.png")} == pictures  # after an epoch no step size moves with the image
    tables = {path.stem for path in out.glob("*.csv")}
    assert tables == {"table7", "networks", "tns", "steps", "attention"}
    assert "NaN" not in (out / "report.md").read_text()


@pytest.mark.slow
def test_what_was_trained_is_what_is_shown(out):
    record = json.loads((out / "record.json").read_text())["numbers"]
    assert [row["network"] for row in record["table7"]] == ["ViT", "ViT + StepNet"]
    assert [row["networks"] for row in record["table7"]] == [2, 2]
    assert len(list((out / "networks" / "digits").glob("vit4-width32-*.safetensors"))) == 4
    assert len(record["findings"]) == 11
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
        study.main(study.Arguments(**given))
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
    monkeypatch.setattr(study.jobs, "train_all", train_all)
    given = study.Arguments(preset="full", train=True, out=tmp_path)
    folder = study.train_networks(study.fill_in_preset(given), load("cifar10"))
    assert folder == tmp_path / "networks" / "cifar10"
    assert done == [("cifar10", "cifar10", 10, {40}), ("cifar100", "cifar100", 10, {40})]
    assert "stl10 cannot be had here" in capsys.readouterr().out


def test_other_networks_are_refused(tmp_path):
    for net, words in ((nb.resnet(14), "is no transformer"), (nb.vit(16, num_classes=3), "number of classes")):
        path = nb.save(net, tmp_path / "net.safetensors")
        with pytest.raises(SystemExit, match=words):
            study.main(study.Arguments(dataset="digits", checkpoint=(path,), out=tmp_path / "out"))
