"""All shipped networks together: what is kept of them is found again, and what the rows say is what was put in."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import netbridge as nb
from netbridge.data import datasets
from studies.block_stiffness import across_networks, every_network, record


def row(network="a", block=1, stage=0, lowest=-1.0, error=0.5, max_re=1.0, **more):
    four = [lowest / 2, lowest / 2, lowest, lowest / 4]
    made = {name: [1.0] * 4 for name in (*every_network.FROZEN, *every_network.ERROR)}
    made |= {"min_re": four, "max_re": [max_re] * 4, "step_error": [error] * 4}
    about = {"network": network, "controller": "constant", "seed": 0, "accuracy": 0.9, "images": 4, "step_size": 1.0}
    return about | {"block": block, "stage": stage} | made | more


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
@settings(deadline=None, max_examples=50)
def test_a_summary_holds_middle_mean_and_ends(values):
    middle, mean, low, high = every_network.summarise(np.array([*values, np.nan]))
    assert (middle, mean) == pytest.approx(
        (np.median(values), np.mean(values)), rel=1e-4, abs=1e-4 * max(map(abs, values))
    )
    assert low <= high
    assert every_network.summarise(np.array([np.nan])) == []


def test_what_is_written_is_read_again_and_other_data_sets_stay(tmp_path):
    path = tmp_path / "kept.jsonl"
    about = {"date": "2026-11-19", "commit": "abc", "images": 4}
    first = every_network.Everything(about | {"dataset": "digits"}, [row(), row(block=2)])
    second = every_network.Everything(about | {"dataset": "cifar10"}, [row("b")])
    for one in (first, second, first):
        every_network.write(one, path)
    assert every_network.shipped_run("digits", path) == first
    assert every_network.shipped_run("cifar10", path) == second
    assert every_network.shipped_run("stl10", path) is None
    assert every_network.shipped_run("digits", tmp_path / "nothing") is None


def test_what_comes_with_the_study_is_small_and_of_shipped_networks():
    assert every_network.SHIPPED.stat().st_size <= 400_000
    names = {one.name for one in nb.pretrained()}
    for found in every_network.read_all():
        assert {"date", "commit", "dataset", "images"} <= set(found.about)
        assert {one["network"] for one in found.rows} <= names
        assert all(across_networks.lowest_real_part(one) <= across_networks.value(one, "min_re") for one in found.rows)
    for line in every_network.SHIPPED.read_text().splitlines():
        assert json.loads(line)


def test_a_run_that_sees_every_label_still_fits(tmp_path):
    """A hundred images hold every label, so that each block gains three lists of ten means."""
    labels = {f"{name}_by_label": [-0.1234] * 10 for name in every_network.BY_LABEL}
    for found in every_network.read_all():
        rows = [one | labels for one in found.rows] if found.about["dataset"] == "cifar10" else found.rows
        every_network.write(found._replace(rows=rows), tmp_path / "kept.jsonl")
    records = record.SHIPPED.glob("full-*.jsonl")
    assert sum(file.stat().st_size for file in [tmp_path / "kept.jsonl", *records]) <= 400_000


def test_changes_along_depth_are_those_that_were_put_in():
    rows = [
        row(name, block, stage, lowest)
        for name in "abc"
        for block, stage, lowest in ((1, 0, -2.0), (2, 0, -1.6), (3, 1, -1.0), (4, 1, -0.6))
    ]
    found = across_networks.changes_with_depth(rows, "min_re")
    assert found["from stage to stage"] == pytest.approx([0.5] * 3)  # medians are half of the lowest
    assert found["within a stage"] == pytest.approx([0.2] * 3)
    assert across_networks.changes_with_depth(rows, "negative")["within a stage"].size == 0
    late = [one | {"negative": 0.1 * one["block"]} if one["stage"] else one for one in rows]
    assert across_networks.changes_with_depth(late, "negative")["from stage to stage"].size == 0
    assert across_networks.changes_with_depth(late, "negative")["within a stage"] == pytest.approx([0.1] * 3)


def test_ends_that_a_full_spectrum_moves_are_told():
    four = np.zeros(2, every_network.ROW)
    four["spectral_radius"], four["max_re"], four["min_re"] = 2.0, 1.0, -2.0
    ends = four.copy()
    assert every_network.error_of_ends(ends, four) == 0.0
    ends["min_re"][1] = -1.8
    assert every_network.error_of_ends(ends, four) == pytest.approx(0.1)


def test_the_measure_that_makes_the_error_is_the_best_predictor():
    random = np.random.default_rng(0)
    rows = []
    for name in "abcd":
        for block in range(1, 8):
            made, other = random.uniform(0.5, 2.0, 2)
            norms = {"nsi": [other] * 4, "negative": float(other)}
            rows.append(row(name, block, 0, error=3.0 * made**2, max_re=made, **norms))
    best, *others = across_networks.predictors(rows)
    assert best["measure"] == "max_re"
    assert best["R2, left-out networks"] == pytest.approx(1.0)
    assert max(one["R2, left-out networks"] for one in others if one["measure"] in ("nsi", "negative")) < 0.5
    assert across_networks.predictors([]) == []


def test_labels_that_all_networks_order_alike_are_found():
    random = np.random.default_rng(0)
    alike = {"max_re_by_label": list(np.arange(10.0)), "min_re_by_label": list(random.standard_normal(10))}
    rows = [row(name, 9, 2, **(alike | {"min_re_by_label": list(random.standard_normal(10))})) for name in "abcdef"]
    found = {one["measure"]: one for one in across_networks.label_orders(rows)}
    assert found["max_re"]["Spearman of two networks, mean"] == pytest.approx(1.0)
    assert found["max_re"]["p, Holm"] < 0.001
    assert found["min_re"]["p, Holm"] > 0.05
    assert "spectral_radius" not in found
    assert across_networks.label_orders([row(), row("b")]) == []


def test_errors_are_ranked_within_a_network():
    """Between networks the errors fall with max Re, within each they rise: no correlation of networks is reported."""
    rows = [
        row(name, block, 0, error=10.0**-place + 0.01 * block, max_re=place + 0.01 * block)
        for place, name in enumerate("abc")
        for block in range(1, 6)
    ]
    assert across_networks.error_relations(rows)["max_re"].value == pytest.approx(1.0)
    assert across_networks.error_relations([]) == {}


def test_what_a_live_gate_adds_is_told_by_controller():
    rows = [
        row(
            block=number,
            controller="se",
            step_size=0.5 * number,
            **{f"{name}_held_and_live": [1.0, 1.5] for name in every_network.LIVE},
        )
        for number in (1, 2)
    ]
    (se,) = across_networks.controller_rows(rows)
    assert se["max Re, live less held"] == se["min Re, largest change"] == 0.5
    assert (se["smallest"], se["largest"], se["networks"]) == (0.5, 1.0, 1)
    constant = across_networks.controller_rows(
        [row(), row(**{f"{name}_held_and_live": [1.0, 1.5] for name in every_network.LIVE}, controller="se")]
    )[0]
    assert np.isnan(constant["max Re, live less held"])
    assert "max Re, live less held" not in across_networks.controller_rows([row()])[0]


@pytest.mark.slow
def test_a_network_is_looked_at(tmp_path):
    data = datasets.load("digits")
    about = next(one for one in every_network.networks_of("digits") if one.controller == "eca")
    rows = every_network.look_at(about, data, 5, {"workers": 1, "cache": tmp_path})
    net = nb.pretrained(about.name)
    assert len(rows) == sum(not block.opens for block in net.blocks)
    for one in rows:
        assert one["images"] == 5
        assert 0 < one["step_size"] < 1
        held, live = one["min_re_held_and_live"]
        assert across_networks.lowest_real_part(one) <= held <= across_networks.value(one, "min_re", "largest")
        assert abs(live - held) < 1.0
    again = every_network.look_at(about, data, 5, {"workers": 1, "cache": tmp_path})
    assert again == rows
