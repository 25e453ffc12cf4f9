"""The study of trajectories: verdicts on constructed cases each way, laws, and one run with all it leaves behind."""

import json

import numpy as np
import pytest
import torch

import netbridge as nb
from netbridge import data as datasets
from studies.lab.networks import Deep, read_subject
from studies.lab.statistics import (
    CONTRADICTED,
    MIXED,
    PARTLY,
    SUPPORTED,
    UNDECIDED,
    Finding,
    Signs,
    choices,
    draw_halves,
    estimate,
    mean_over_networks,
    sign_test,
)
from studies.lab.stiffness import READINGS
from studies.trajectory import __main__ as trajectory
from studies.trajectory import findings
from studies.trajectory.design import CKA, DEGREES, MEASURES, NSI
from studies.trajectory.importance import importance
from studies.trajectory.measures import along_of, best, course, dissimilarity, first_ratios, set_distances

RESAMPLES = choices(40, 50, seed=0)


def estimates(*values, width=0.02):
    return [estimate(value, value + np.linspace(-width, width, 50)) for value in values]


def both(groups):
    return dict.fromkeys(MEASURES, groups)


class TestVerdicts:
    @pytest.mark.parametrize(
        ("attention", "verdict"),
        [((0.2, 0.25), SUPPORTED), ((0.8, 0.9), CONTRADICTED), ((0.2, 0.55), UNDECIDED), ((0.49, 0.52), UNDECIDED)],
    )
    def test_nearer_needs_every_seed(self, attention, verdict):
        groups = {"SE": estimates(*attention), "constant": estimates(0.5, 0.51), "StepNet": estimates(0.1)}
        assert findings.nearer_finding(both(groups), "StepNet").verdict == verdict
        without_floor = {name: found for name, found in groups.items() if name != "StepNet"}
        found = findings.nearer_finding(both(without_floor), "StepNet")
        assert (found.verdict, "one seed" in found.words) == (UNDECIDED, True)
        assert findings.nearer_finding(both(groups), "constant").verdict == UNDECIDED  # the proxy is plain itself

    def test_nearer_with_another_proxy(self):
        groups = {"SE": estimates(0.2, 0.25), "constant": estimates(0.5, 0.51), "StepNet": estimates(0.1)}
        for verdict, wanted in ((SUPPORTED, SUPPORTED), (CONTRADICTED, MIXED), (UNDECIDED, MIXED)):
            other = Finding("", "", verdict, "")
            found = findings.nearer_finding(both(groups), "StepNet", (("SE, seed 1", other),))
            assert found.verdict == wanted
            assert f"With SE, seed 1 as proxy: {verdict}" in found.words

    def test_nearer_by_one_measure_only(self):
        rest = {"constant": estimates(0.5, 0.51), "StepNet": estimates(0.1)}
        distances = {NSI: rest | {"SE": estimates(0.2, 0.3)}, CKA: rest | {"SE": estimates(0.8, 0.9)}}
        assert findings.nearer_finding(distances, "StepNet").verdict == MIXED

    @pytest.mark.parametrize(
        ("slope", "networks", "verdict"),
        [(1, 8, SUPPORTED), (-1, 8, CONTRADICTED), (1, 4, UNDECIDED), (0, 8, UNDECIDED)],
    )
    def test_accumulation_is_a_sign_test_over_networks(self, slope, networks, verdict):
        lines = [slope * np.arange(6.0) + number for number in range(networks)]
        assert findings.accumulates_finding(both(lines)).verdict == verdict
        mixed = [*lines[: networks // 2], *(-line for line in lines[networks // 2 :])]
        assert findings.accumulates_finding(both(mixed)).verdict == UNDECIDED

    def test_better_is_a_correlation_over_networks(self):
        near = np.linspace(0, 1, 12)
        assert findings.better_finding(both(list(near)), list(90 - near)).verdict == SUPPORTED
        assert findings.better_finding(both(list(near)), list(90 + near)).verdict == CONTRADICTED
        assert findings.better_finding(both([0.1, 0.2, 0.3]), [92, 91, 90]).verdict == UNDECIDED

    def test_property_1(self):
        def shares(value):
            return dict.fromkeys(READINGS, np.full((3, len(DEGREES)), value))

        assert findings.property_finding(shares(0.9)).verdict == SUPPORTED
        assert findings.property_finding(shares(0.1)).verdict == CONTRADICTED
        one_low = shares(0.9)
        one_low[READINGS[0]] = np.array([[0.9, 0.9, 0.4]] * 3)
        assert findings.property_finding(one_low).verdict == MIXED
        assert findings.property_finding(dict.fromkeys(READINGS, one_low[READINGS[0]])).verdict == PARTLY

    def test_first_blocks(self):
        for ratios, verdict in (((3, 5), SUPPORTED), ((1, 1.5), CONTRADICTED), ((1, 5), PARTLY), ((2, 3), UNDECIDED)):
            found = {"NSI": estimates(*ratios), "norm": estimates(*ratios)}
            assert findings.first_finding(found).verdict == verdict

    def test_importance(self):
        counts = Signs(0, 0, [0.1] * 10)
        assert findings.importance_finding([0.5, 0.6, 0.55], counts).verdict == SUPPORTED
        assert findings.importance_finding([-0.5, -0.6, -0.55], counts).verdict == CONTRADICTED
        assert findings.importance_finding([0.5, -0.6, 0.1], counts).verdict == UNDECIDED
        assert findings.importance_finding([0.9], counts).verdict == UNDECIDED  # one network
        assert "undefined" in findings.importance_finding([], counts).words

    def test_features(self):
        for values, verdict in (
            ((1, 2), SUPPORTED),
            ((-1, -2), CONTRADICTED),
            ((1, -1), PARTLY),
            ((0, 1), UNDECIDED),
        ):
            assert findings.features_finding(estimates(*values), 0, 0, 0).verdict == verdict

    @pytest.mark.parametrize(("mean", "verdict"), [(-0.5, SUPPORTED), (0.5, CONTRADICTED), (0.0, UNDECIDED)])
    def test_along_a_trajectory(self, mean, verdict):
        values = mean + np.linspace(-0.2, 0.2, 40)
        assert findings.along_finding([values, values], 8, RESAMPLES).verdict == verdict
        short = findings.along_finding([values, values], 2, RESAMPLES)
        assert (short.verdict, "pooled" in short.words) == (UNDECIDED, True)
        assert findings.along_finding([], 8, RESAMPLES) is None


class TestStatistics:
    def test_the_sign_test_by_hand(self):
        assert sign_test([1, 2, 3, 4, 5]) == pytest.approx(2 / 32)
        assert sign_test([1, -2, 0, 0]) == 1.0
        assert np.isnan(sign_test([0, 0]))

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
    return [course(read_subject(path), digits, 24, "cpu") for path in paths], digits


class TestMeasures:
    def test_the_proxy_is_the_best_and_its_distance_from_itself_is_zero(self, courses):
        found, _ = courses
        assert best(found, 2) == [found[3], found[2]]  # recorded accuracies rise with the place
        everything = np.arange(24)[None]
        np.testing.assert_allclose(dissimilarity(found[3], found[3], everything), 0, atol=1e-12)

    def test_distances_are_of_every_other_network(self, courses):
        found, _ = courses
        set_distances(found, found[0], choices(24, 20, seed=0))
        set_distances(found, found[3], choices(24, 20, seed=0))
        assert not found[3].distance
        for one in found[:3]:
            for measure in MEASURES:
                assert one.blocks[measure].shape == (9,)
                assert one.distance[measure].value > 0
                assert one.distance[measure].low <= one.distance[measure].value * 1.05
        expected = np.abs(np.log(found[0].found.records["slope"].nsi) - np.log(found[3].found.records["slope"].nsi))
        np.testing.assert_allclose(found[0].blocks[NSI], expected.mean(0))

    def test_first_blocks_over_the_others(self, courses):
        (one, *_), _ = courses
        nsi = one.found.records["slope"].nsi
        ratios = first_ratios(one)
        np.testing.assert_allclose(ratios["NSI"][:, 1], nsi[:, 3] / np.median(nsi[:, 4:6], axis=1))
        np.testing.assert_allclose(ratios["norm"][:, 0], one.norms[:, 0] / np.median(one.norms[:, 1:3], axis=1))

    def test_a_block_without_a_slope_is_not_missed(self, courses):
        (one, *_), digits = courses
        last = one.subject.net.blocks[4].branch.last
        with torch.no_grad():
            kept = last.weight.clone(), last.bias.clone()
            last.weight.zero_()
            last.bias.zero_()
        found = importance(one, digits, 24, "cpu")
        with torch.no_grad():
            last.weight.copy_(kept[0])
            last.bias.copy_(kept[1])
        assert not found.rise[:, 4].any()
        assert found.rise[:, [0, 1, 2, 3, 5, 6, 7, 8]].any(0).all()
        counted = [1, 2, 4, 5, 7, 8]
        for rises in found.features.values():
            assert rises.shape == (24, 6)
            assert not rises[:, counted.index(4)].any()


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
    deep, shallow = (along_of(made(blocks, lambda within, stage: 100 * stage - within)) for blocks in (9, 3))
    np.testing.assert_allclose(deep, -1.0)
    assert (shallow > 0).all()  # pooled
    assert not len(along_of(made(9, lambda within, stage: np.ones_like(within))))


def test_deep_networks_are_judged_where_they_are(networks):
    known = [read_subject(path) for path in sorted(networks.glob("*.safetensors"))]
    deep = Deep([one for one in known if one.controller == "SE"], datasets.load("digits"))
    arguments = trajectory.Arguments(images=16, resamples=20, device="cpu")
    along = trajectory.deep_along(deep, arguments)
    assert [len(one.along) for one in along] == [16] * len(deep.subjects)
    found = trajectory.deep_finding(deep, along, arguments)
    assert found.words.startswith(f"On {len(along)} ResNet-20 of digits. ")
    assert found.verdict == UNDECIDED  # two counted blocks a stage


# A run.


@pytest.fixture(scope="module")
def out(networks, tmp_path_factory):
    out = tmp_path_factory.mktemp("trajectory")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nb, "tune_allocator", lambda: True)
        trajectory.main(
            trajectory.Arguments(
                dataset="digits",
                checkpoint=(networks,),
                controllers=("constant", "se"),
                images=16,
                resamples=20,
                device="cpu",
                out=out,
            )
        )
    return out


def test_every_figure_and_table_is_there(out):
    pictures = {"courses", "distances", "nearness", "importance", "features", "gate_along", "first_blocks"}
    assert {path.stem for path in out.glob("*.png")} == pictures
    tables = {"distances", "importance", "importance_correlations", "features", "property1", "first_blocks", "rules"}
    assert {path.stem for path in out.glob("*.csv")} == tables
    record = json.loads((out / "record.json").read_text())["numbers"]
    assert len(record["findings"]) == 8
    assert record["processor seconds"] > 0
    assert [row["network"] for row in record["distances"]] == [
        "SE, seed 1",
        "SE, seed 0",
        "constant, seed 1",
        "constant, seed 0",
    ]
    assert record["distances"][0]["NSI distance"] == "the proxy"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"controllers": ("dia",)}, "There are: ASR(SE) (depth 20, seed 0)"),
        ({"controllers": ("se",), "seeds": (0,)}, "`--seeds`; the study needs at least 2."),
        ({"images": 7}, "`--images` must be between 8"),
        ({"resamples": 1}, "`--resamples`"),
    ],
)
def test_what_cannot_be_done_is_said(networks, tmp_path, change, words):
    given = {"dataset": "digits", "checkpoint": (networks,), "out": tmp_path, **change}
    with pytest.raises(SystemExit) as stopped:
        trajectory.main(trajectory.Arguments(**given))
    assert words in str(stopped.value)


def test_networks_of_one_depth_only(networks, tmp_path):
    other = nb.save(nb.resnet(14), tmp_path / "resnet14.safetensors", {"seed": 0, "test_accuracy": 0.5})
    with pytest.raises(SystemExit, match="all networks must have one depth"):
        trajectory.main(trajectory.Arguments(dataset="digits", checkpoint=(networks, other), out=tmp_path / "out"))
