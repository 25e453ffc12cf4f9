"""Shipped networks and trained ones: rows are found again and say what was put in."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import netbridge as nb
from netbridge.data import datasets
from studies.block_stiffness import measures, networks, trained
from studies.block_stiffness.evidence import ENDS, Everything, Relation
from studies.lab.stiffness import prepare
from studies.lab.verdicts import NOT_RUN, SPLIT, SUPPORTED, TRUE_OF_SOME
from tests.studies.block_stiffness.made_up import fits, relation, row


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
@settings(deadline=None, max_examples=50)
def test_a_summary_holds_middle_mean_and_ends(values):
    middle, mean, low, high = networks.summarise(np.array([*values, np.nan]))
    assert (middle, mean) == pytest.approx(
        (np.median(values), np.mean(values)), rel=1e-4, abs=1e-4 * max(map(abs, values))
    )
    assert low <= high
    assert networks.summarise(np.array([np.nan])) == []


def test_what_is_written_is_read_again_and_other_data_sets_stay(tmp_path):
    path = tmp_path / "kept.jsonl"
    about = {"date": "2026-11-19", "commit": "abc", "images": 4}
    first = Everything(about | {"dataset": "digits"}, [row(), row(block=2)])
    second = Everything(about | {"dataset": "cifar10"}, [row("b")])
    for one in (first, second, first):
        networks.write_all(one, path)
    assert networks.shipped_run("digits", path) == first
    assert networks.shipped_run("cifar10", path) == second
    assert networks.shipped_run("stl10", path) == Everything({}, [])
    assert networks.shipped_run("digits", tmp_path / "nothing") == Everything({}, [])


def test_what_comes_with_the_study_is_small_and_of_shipped_networks():
    assert networks.FILE.stat().st_size <= 400_000
    names = {one.name for one in nb.pretrained()}
    for found in networks.read_all():
        assert {"date", "commit", "dataset", "images"} <= set(found.about)
        assert {one["network"] for one in found.rows} <= names
        assert all(networks.lowest_real_part(one) <= networks.value(one, "min_re") for one in found.rows)
    for line in networks.FILE.read_text().splitlines():
        assert json.loads(line)


def test_ends_that_a_full_spectrum_moves_are_told():
    four = np.zeros(2, networks.ROW)
    four["spectral_radius"], four["max_re"], four["min_re"] = 2.0, 1.0, -2.0
    ends = four.copy()
    assert networks.error_of_ends(ends, four) == 0.0
    ends["min_re"][1] = -1.8
    assert networks.error_of_ends(ends, four) == pytest.approx(0.1)


@pytest.mark.slow
def test_a_network_is_looked_at(tmp_path):
    data = datasets.load("digits")
    about = next(one for one in networks.networks_of("digits") if one.controller == "eca")
    rows = networks.look_at(about, data, 5, {"workers": 1, "cache": tmp_path})
    net = nb.pretrained(about.name)
    assert len(rows) == sum(not block.opens for block in net.blocks)
    for one in rows:
        assert one["images"] == 5
        assert 0 < one["step_size"] < 1
        held, live = one["min_re_held_and_live"]
        assert networks.lowest_real_part(one) <= held <= networks.value(one, "min_re", "largest")
        assert abs(live - held) < 1.0
    again = networks.look_at(about, data, 5, {"workers": 1, "cache": tmp_path})
    assert again == rows


def test_what_a_live_gate_adds_is_told_by_controller():
    rows = [
        row(
            block=number,
            controller="se",
            step_size=0.5 * number,
            **{f"{name}_held_and_live": [1.0, 1.5] for name in networks.LIVE},
        )
        for number in (1, 2)
    ]
    (se,) = networks.controller_rows(rows)
    assert se["max Re, live less held"] == se["min Re, largest change"] == 0.5
    assert (se["smallest"], se["largest"], se["networks"]) == (0.5, 1.0, 1)
    constant = networks.controller_rows(
        [row(), row(**{f"{name}_held_and_live": [1.0, 1.5] for name in networks.LIVE}, controller="se")]
    )[0]
    assert np.isnan(constant["max Re, live less held"])
    assert "max Re, live less held" not in networks.controller_rows([row()])[0]


def test_changes_along_depth_are_those_that_were_put_in():
    rows = [
        row(name, block, stage, lowest)
        for name in "abc"
        for block, stage, lowest in ((1, 0, -2.0), (2, 0, -1.6), (3, 1, -1.0), (4, 1, -0.6))
    ]
    found = networks.changes_with_depth(rows, "min_re")
    assert found["from stage to stage"] == pytest.approx([0.5] * 3)  # medians are half of the lowest
    assert found["within a stage"] == pytest.approx([0.2] * 3)
    assert networks.changes_with_depth(rows, "negative")["within a stage"].size == 0
    late = [one | {"negative": 0.1 * one["block"]} if one["stage"] else one for one in rows]
    assert networks.changes_with_depth(late, "negative")["from stage to stage"].size == 0
    assert networks.changes_with_depth(late, "negative")["within a stage"] == pytest.approx([0.1] * 3)


def test_the_measure_that_makes_the_error_is_the_best_predictor():
    random = np.random.default_rng(0)
    rows = []
    for name in "abcd":
        for block in range(1, 8):
            made, other = random.uniform(0.5, 2.0, 2)
            norms = {"nsi": [other] * 4, "negative": float(other)}
            rows.append(row(name, block, 0, error=3.0 * made**2, max_re=made, **norms))
    best, *others = networks.predictors(rows)
    assert best["measure"] == "max_re"
    assert best["R2, left-out networks"] == pytest.approx(1.0)
    assert max(one["R2, left-out networks"] for one in others if one["measure"] in ("nsi", "negative")) < 0.5
    assert networks.predictors([]) == []


def test_errors_are_ranked_within_a_network():
    """Between networks the errors fall with max Re, within each they rise: no correlation of networks is reported."""
    rows = [
        row(name, block, 0, error=10.0**-place + 0.01 * block, max_re=place + 0.01 * block)
        for place, name in enumerate("abc")
        for block in range(1, 6)
    ]
    assert networks.correlate_errors(rows, ("max_re",))["max_re"].value == pytest.approx(1.0)
    assert networks.correlate_errors([], ("max_re",)) == {}


def shape(s, error):
    """Networks of seven blocks with these profiles."""
    return networks.made_up_networks({"stiffness_index": np.asarray(s), "step_error": np.asarray(error)})


def test_the_news_says_how_well_s_orders_blocks_and_whether_another_measure_does_better():
    """S that orders the blocks of every network but for one pair, and a radius that does so without exception."""
    s, error = np.tile([-1.0, -3.0, -2.0, -4.0, -5.0], (3, 1)), np.tile(np.arange(5.0), (3, 1))
    columns = {"stiffness_index": s, "step_error": error}
    assert networks.say_best(networks.made_up_networks(columns, range(5))).endswith(
        "-0.90 [-0.90, -0.90], the mean over 3 networks, the largest of 1 measures."
    )
    better = networks.say_best(networks.made_up_networks(columns | {"spectral_radius": error}, range(5)))
    assert better.endswith("the mean over 3 networks, one of 2 measures.")
    assert networks.say_best([]) == ""


def test_errors_between_blocks_networks_and_images():
    random = np.random.default_rng(0)
    profile, own = np.arange(7.0), random.standard_normal((23, 7))
    alike = shape(-profile - 0.1 * own, profile + 0.1 * own)
    images = [
        Relation(f"stages.2.blocks.{k}", "residual", "stiffness_index", "step_error", -0.4, 400) for k in range(3)
    ]
    assert networks.judge_errors(alike, images).verdict == SUPPORTED
    assert networks.judge_errors(alike, [dataclasses.replace(one, r=0.4) for one in images]).verdict == SPLIT
    only_shape = shape(-profile + 0.1 * own, profile + 0.1 * random.standard_normal((23, 7)))
    assert networks.judge_errors(only_shape, ()).verdict == TRUE_OF_SOME
    assert networks.judge_errors(alike, ()).verdict == TRUE_OF_SOME  # nobody has asked between images
    assert networks.judge_errors((), ()).verdict == NOT_RUN
    reverse = [relation(0.5, "max_re", "step_error", reading="residual")]
    assert networks.judge_errors((), reverse).verdict == NOT_RUN


def test_a_constant_in_the_place_of_a_gate_scales_the_branch(digits):
    """The eigenvalues of h f' are h times those of f' at the same state, as that of the first block is."""
    net = nb.pretrained("digits/resnet32-width4-se-seed0").eval()
    seen = prepare(net, digits, digits.test_images[:2])
    other, means = networks.with_mean_gates(net, seen)
    name = net.block_names[0]
    assert {block.controller.name for block in other.blocks} == {"constant"}
    branch, step = (
        nb.block_survey(one, seen, kind, [name], "full", "frozen", dtype=torch.float64)
        for one, kind in ((net, "residual"), (other, "increment"))
    )
    for end in ENDS:
        np.testing.assert_allclose(step[end], float(means[name]) * branch[end], rtol=1e-9)


def test_merged_constants_of_asr_have_the_spectrum_of_the_step(digits):
    """What `nb.merge` moves into the branch is the step size: f' of the merged block is h f' of the other one."""
    net = nb.pretrained("digits/resnet32-width4-asr-se-seed0").eval()
    seen = prepare(net, digits, digits.test_images[:1])
    name = measures.inner_blocks(net, 2)[0]
    step = nb.block_survey(net, seen, "increment", [name], "full", "frozen", dtype=torch.float64)
    merged = nb.block_survey(nb.merge(net), seen, "residual", [name], "full", dtype=torch.float64)
    for end in (*ENDS, "negative"):
        np.testing.assert_allclose(merged[end], step[end], rtol=1e-6)


@pytest.mark.slow
def test_the_papers_geometry_is_looked_at_and_a_stopped_training_keeps_its_looks(digits, tmp_path):
    rows = trained.train_papers_geometry(digits, 0, 1, tmp_path, "cpu", epochs=1, width=2)
    assert [row["epoch"] for row in rows] == [0] * 8 + [1] * 8
    assert np.isfinite([row["%, slices"] for row in rows]).all()
    opening = [row["block"] for row in rows[:8] if not np.isfinite(row["max_re"])]
    assert opening == [3, 5, 7]
    again = trained.train_papers_geometry(digits, 0, 1, tmp_path, "cpu", epochs=1, width=2)
    np.testing.assert_equal(again, rows)
    table = trained.geometry_rows(rows)
    assert len(table) == 8
    assert {"%, slices, epoch 0", "%, slices, epoch 1"} <= set(table[0])


@pytest.mark.slow
def test_a_tolerance_costs_evaluations_and_hardly_accuracy():
    rows = trained.tolerance_rows(0, 1, 60)
    assert len(rows) == 2 * (1 + len(trained.TOLERANCES))
    for scheme in ("Euler", "dopri5"):
        euler, *solved = [row for row in rows if row["trained by"] == scheme]
        assert euler["evaluations a block"] == 1.0
        calls = [row["evaluations a block"] for row in solved]
        assert calls == sorted(calls)
        assert calls[-1] > 2 * calls[0] > 6


@pytest.mark.slow
def test_a_deeper_network_has_more_blocks():
    one, two = (trained.row_of_depth(depth, 1, 2, 0) for depth in (14, 20))
    assert (one["blocks"], two["blocks"]) == (4, 7)
    assert one["sigma, largest"] >= one["rho, median"] > 0
    rows = [{"blocks": n, "x": 3.0 / n} for n in (4, 7, 13)]
    assert trained.exponent(rows, "x") == pytest.approx(-1.0)


@pytest.mark.slow
def test_training_is_looked_at_from_before_it_begins():
    rows = trained.rows_through_training(1, 1)
    assert [row["epoch"] for row in rows] == [0] * 4 + [1] * 4
    assert all(np.isfinite(row["max_re"]) and row["step_error"] > 0 for row in rows)
    assert rows[0]["max_re"] != rows[4]["max_re"]


def test_figure_2_draws_both_predictions_along_a_line():
    """A field of zeros leaves every point where it is, under both schemes."""
    field = trained.Field()
    for parameter in field.parameters():
        torch.nn.init.zeros_(parameter)
    curves = trained.predict_along_line(field, field)
    x, *outputs = np.transpose(curves)
    assert np.allclose(outputs, [x, 0 * x, x, 0 * x])
    assert (x[0], x[-1], len(x)) == (-2.5, 2.5, 41)
    (fit,) = fits({5: 0.1}, 1)
    lines = trained.draw_predictions([dataclasses.replace(fit, curves=curves)]).axes[0].lines
    assert [line.get_label() for line in lines][::2] == ["ResNet, output 1", "ODE-net, output 1"]
    assert np.array_equal([line.get_ydata() for line in lines], outputs)
