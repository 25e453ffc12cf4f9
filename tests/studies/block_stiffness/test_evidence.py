"""What is measured, and what is kept of it: the plan of a run, correlations, the record, the best evidence, words."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import netbridge as nb
from studies.block_stiffness import answers, evidence, measures
from studies.block_stiffness.__main__ import (
    EXHIBITS,
    Arguments,
    check_accuracy,
    choose_networks,
    findings,
    without_places,
)
from studies.block_stiffness.evidence import SHIPPED, Evidence, Order, digest_of, in_words
from studies.block_stiffness.printed import depth_of
from studies.lab.command import command_line
from studies.lab.exhibits import judge
from studies.lab.page import exhibits_of
from studies.lab.verdicts import NOT_RUN, UNDECIDED, Finding
from tests.netbridge.test_foreign_weights import foreign_state
from tests.studies.block_stiffness.made_up import component, fits, relation


def test_fewer_images_are_the_first_of_more(digits):
    labels = digits.test_labels.numpy()
    many = measures.nested_images(labels, 7)
    for each in (1, 3, 7):
        few = measures.nested_images(labels, each)
        np.testing.assert_array_equal(few, many[: 10 * each])
        assert (np.bincount(labels[few]) == each).all()


@pytest.mark.parametrize("preset", ["quick", "full", "paper"])
def test_every_stage_of_every_network_is_looked_at(preset):
    """The paper's claim is about the last of its networks' four stages."""
    for depth, count in ((18, 4), (34, 4), (50, 4), (20, 3)):
        with torch.device("meta"):
            found = measures.stages(nb.resnet(depth), measures.SIZES[preset].spectra)
        assert [stage for stage, _ in found] == list(range(count))
        assert min(each for _, each in found) > 0
    assert measures.size_of(preset) == measures.SIZES[preset]
    assert measures.size_of(preset, 4).spectra == (4, 4, 4)


@pytest.mark.slow
@pytest.mark.parametrize(("depth", "widths"), [(18, (8, 8, 16, 16)), (50, (2, 2, 4, 4))])
def test_a_network_of_the_papers_geometry_has_rows_for_its_last_block(digits, depth, widths):
    torch.manual_seed(0)
    net = nb.resnet(depth, 10, stem="cifar-pooled", widths=widths, in_channels=digits.test_images.shape[1]).eval()
    found = measures.measure(net, "untrained", digits, measures.SIZES["smoke"], {"workers": 1}, ("residual", "block"))
    for reading in ("residual", "block"):
        assert len(measures.rows_of(found, found.blocks[-1], reading))


def test_published_weights_are_shown_images_as_they_were_normalised(tmp_path):
    """What a file of weights does not tell is said by options, and half of it is refused."""
    torch.manual_seed(0)
    path = tmp_path / "resnet18.pt"
    torch.save(foreign_state(nb.resnet(18, 10, stem="cifar-pooled")), path)
    usual = {"mean": (0.4914, 0.4822, 0.4465), "std": (0.2471, 0.2435, 0.2616)}
    asked = Arguments(checkpoint=(path,), stem="cifar-pooled", device="cpu", **usual)
    ((net, _),) = choose_networks(asked, None)
    assert net.normalisation == {name: list(values) for name, values in usual.items()}
    assert depth_of(net.config) == 18
    with pytest.raises(SystemExit, match="`--mean` must be three numbers"):
        choose_networks(dataclasses.replace(asked, mean=()), None)
    with pytest.raises(SystemExit, match="`--std` must be three numbers"):
        choose_networks(dataclasses.replace(asked, std=(25.0, 24.0, 26.0)), None)


def test_another_accuracy_than_the_expected_one_ends_the_study(net, digits, capsys):
    options = {"dataset": "digits", "out": Path("nowhere")}
    check_accuracy(net, "it", digits, Arguments(**options, expect=98.0))
    assert "it: 99.0 %" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"--expect. says 50 %. Try another `--stem`"):
        check_accuracy(net, "it", digits, Arguments(**options, expect=50.0))


chances = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30)


def test_holm_by_hand():
    assert evidence.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(chances)
@settings(deadline=None)
def test_holm_never_lowers_a_chance_and_keeps_the_order(values):
    corrected = evidence.holm(values)
    assert all(after >= before for before, after in zip(values, corrected, strict=True))
    assert all(after <= 1.0 for after in corrected)
    order = np.argsort(values, kind="stable")
    assert (np.diff(np.array(corrected)[order]) >= 0).all()


def test_a_relation_needs_eight_images_and_something_that_varies():
    x = np.arange(10.0)
    assert evidence.relation("b", "residual", "max_re", "loss", x[:7], x[:7]) is None
    assert evidence.relation("b", "residual", "max_re", "loss", x, np.ones(10)) is None
    found = evidence.relation("b", "residual", "max_re", "loss", x, -x)
    assert found.r == pytest.approx(-1.0)
    assert found.n == 10


@given(st.integers(0, 1000))
@settings(deadline=None, max_examples=30)
def test_what_comes_from_something_held_is_gone(seed):
    """Two measures that only follow a third are related, and not beside the third."""
    random = np.random.default_rng(seed)
    third = random.standard_normal(200)
    x, y = (third + 0.1 * random.standard_normal(200) for _ in range(2))
    held = np.column_stack([np.ones(200), np.argsort(np.argsort(third))])
    plain = evidence.relation("b", "residual", "max_re", "loss", x, y)
    beside = evidence.partial_correlation("b", "residual", "max_re", "loss", x, y, held)
    assert plain.r > 0.9
    assert abs(beside.r) < 0.35
    interval = beside.estimate()
    assert interval.low < interval.value < interval.high


def test_nothing_held_but_the_mean_is_the_plain_correlation():
    random = np.random.default_rng(1)
    x = random.standard_normal(50)
    y = x + random.standard_normal(50)
    plain = evidence.relation("b", "residual", "max_re", "loss", x, y)
    held = evidence.partial_correlation("b", "residual", "max_re", "loss", x, y, np.ones((50, 1)))
    assert (held.r, held.n, held.held) == (pytest.approx(plain.r), plain.n, plain.held)
    assert plain.p == pytest.approx(stats.spearmanr(x, y).pvalue, rel=1e-6)


def test_within_labels_a_difference_of_labels_says_nothing():
    labels = np.repeat(np.arange(4), 10)
    held = (labels[:, None] == np.unique(labels)).astype(float)
    random = np.random.default_rng(0)
    x, y = (10.0 * labels + random.standard_normal(40) for _ in range(2))
    assert evidence.relation("b", "residual", "max_re", "loss", x, y).r > 0.9
    assert abs(evidence.partial_correlation("b", "residual", "max_re", "loss", x, y, held).r) < 0.4
    assert evidence.partial_correlation("b", "residual", "max_re", "loss", x, labels.astype(float), held) is None


@given(st.floats(-0.95, 0.95), st.integers(6, 500), st.integers(1, 5))
@settings(deadline=None, max_examples=40)
def test_the_mean_of_correlations_that_say_the_same_is_as_wide_as_one(r, n, count):
    one, several = (evidence.correlation_interval(some, n) for some in (r, [r] * count))
    assert (one.value, one.low, one.high) == pytest.approx((several.value, several.low, several.high))
    assert one.low < r < one.high
    other = evidence.correlation_interval(-r, n)
    assert (other.low, other.high) == pytest.approx((-one.high, -one.low))
    assert evidence.correlation_interval(r, n, 0.99).high > one.high > evidence.correlation_interval(r, 4 * n).high


def test_intervals_of_rank_correlations_cover_what_was_put_in():
    """Of 1,000 samples of 7 and of 60 pairs without a relation, the 95 % intervals leave out 0 in 5 % or fewer."""
    random = np.random.default_rng(0)
    for n in (7, 60):
        found = [stats.spearmanr(*random.standard_normal((2, n))).statistic for _ in range(1000)]
        missed = [not (e.low <= 0.0 <= e.high) for e in (evidence.correlation_interval(r, n) for r in found)]
        assert sum(missed) <= stats.binom.ppf(0.999, 1000, 0.05)


def test_too_few_units_have_no_interval():
    found = evidence.correlation_interval(0.9, 4)
    assert found.value == pytest.approx(0.9)
    assert np.isnan(found.low)
    assert np.isnan(evidence.correlation_interval([0.5, np.nan], 50).low)


def test_the_best_evidence_is_that_of_the_most_images_reading_by_reading():
    run = Evidence(
        relations=(relation(0.1, n=20), relation(0.2, n=40, reading="residual")), fits=tuple(fits({5: 0.1}, 2))
    )
    kept = Evidence(
        relations=(relation(0.3, n=100), relation(0.4, n=30, reading="residual")), fits=tuple(fits({1500: 0.7}, 2))
    )
    best = evidence.best_of(run, kept)
    assert {(one.reading, one.n) for one in best.relations} == {("slices", 100), ("residual", 40)}
    assert {(fit.rounds, fit.seed) for fit in (*best.fits, *best.earlier)} == {(5, 0), (5, 1), (1500, 0), (1500, 1)}
    assert evidence.best_of(run, Evidence()) == run


def test_each_claim_leads_to_the_exhibit_that_judges_it():
    """A page links a claim with the first heading that names one of its tables, figures or sections."""
    headings = [(exhibit, exhibits_of(exhibit.heading)) for exhibit in EXHIBITS]
    for exhibit in EXHIBITS:
        for finding in judge((exhibit,), Evidence()):
            first = next(other for other, named in headings if named & exhibits_of(finding.where))
            assert first is exhibit, finding.where


def test_without_evidence_nothing_is_claimed():
    assert {finding.verdict for finding in findings(Evidence())} <= {NOT_RUN, UNDECIDED}


def test_measures_are_called_as_in_the_figures():
    found = Finding("a", "b", UNDECIDED, "stiffness_index (residual): nsi in 2, si in 1, alive in 0; negative, stiff")
    assert in_words(found).words == "index S (branch): NSI in 2, SI in 1, live outputs in 0; negative, stiff"
    named = dataclasses.replace(found, words="max_re of stages.0.blocks.1, stages.0.blocks.12, basic sides")
    assert in_words(named).words == "max Re of stages.0.blocks.1, stages.0.blocks.12, basic sides"
    names = [f"stages.0.blocks.{number}" for number in range(13)]
    assert in_words(named, names).words == "max Re of block 2, block 13, basic sides"


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "record.jsonl"
    tables = {"by_block": [{"block": 1, "S": -1.23456789}, {"block": 2, "S": math.nan}], "not shipped": [{"a": 1}]}
    known = Evidence(
        relations=(relation(0.3),), components=(component(2.0),), orders=(Order("noise", "max_re", 0.9, 7),),
        fits=tuple(fits({5: 0.1}, 1)),
    )  # fmt: skip
    evidence.write_record({"network": "it", "digest": "abc"}, tables, known, path)
    record = evidence.read_record(path)
    assert {"date", "commit", "network", "digest"} <= set(record.about)
    assert set(record.tables) == {
        "by_block",
        *(f"evidence: {name}" for name in evidence.RECORDED if getattr(known, name)),
    }
    assert record.tables["by_block"][0] == {"block": 1, "S": -1.2346}
    assert math.isnan(record.tables["by_block"][1]["S"])
    assert (record.relations[0].r, record.orders) == (0.3, known.orders)
    assert record.components[0].f == known.components[0].f
    assert record.fits[0].between_fits == pytest.approx(known.fits[0].between_fits, rel=1e-4)
    assert evidence.read_record(tmp_path / "nothing") is None


def test_verdicts_are_judged_anew_from_the_record():
    """It holds numbers and no words: every rule of today can be asked of them."""
    for path in SHIPPED.glob("full-*.jsonl"):
        record = evidence.read_record(path)
        assert "verdicts" not in record.tables
        assert {row.reading for row in record.relations} == {"slices", "residual", "block"}
        assert {type(number) for row in record.relations for number in (row.r, row.p)} == {float}
        assert {fit.rounds for fit in record.fits} == {1500}
        assert all(case.labels == 10 for case in record.components)


def test_weights_are_named_by_their_digest():
    net = nb.pretrained("digits/resnet32-width4-constant-seed0")
    before = digest_of(net)
    assert before == digest_of(nb.pretrained("digits/resnet32-width4-constant-seed0"))
    with torch.no_grad():
        net.head.fc.bias[0] += 1e-3
    assert digest_of(net) != before


def test_the_command_of_a_shipped_run_names_no_folder_and_no_machine():
    given = Arguments(
        ship=True, out=Path("/home/a/out"), cache=Path("/home/a/cache"), data_root=Path("/home/a/data"), device="cuda",
        scheduler="tcp://10.0.0.1:8786", checkpoint=(Path("/home/a/mine.safetensors"), Path("other.pt")), images=3,
    )  # fmt: skip
    shown = command_line("block_stiffness", without_places(given))
    assert shown == "python -m studies.block_stiffness --checkpoint mine.safetensors other.pt --images 3 --ship"


def test_all_that_comes_with_the_study_is_small():
    files = list(SHIPPED.glob("*.jsonl"))
    assert files
    assert sum(file.stat().st_size for file in files) <= 400_000
    for file in files:
        if file.name.startswith("full-"):
            record = evidence.read_record(file)
            assert {"date", "commit", "dataset", "network", "digest", "command", "images a label"} <= set(record.about)
            assert set(record.tables) <= set(evidence.TABLES)
    for path in SHIPPED.glob("slices-*.npz"):
        alone = answers.read_slices(path)
        assert path.stat().st_size <= 500_000
        assert alone.about["digest"] == digest_of(nb.pretrained(alone.about["network"]))
