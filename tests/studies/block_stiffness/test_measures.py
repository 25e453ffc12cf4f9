"""What is measured, on the digits: accuracies with flows in place of steps, other inputs, readings, epochs, stems."""

from pathlib import Path

import numpy as np
import pytest
import torch

import netbridge as nb
from netbridge.data import datasets
from studies.block_stiffness import __main__ as study
from studies.block_stiffness import epochs, measures, tables
from studies.lab.measure import prepared

WORK = {"workers": 1, "cache": None}


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits")


@pytest.fixture(scope="module")
def net():
    return nb.pretrained("digits/resnet32-width4-constant-seed0").eval()


def test_a_flow_in_place_of_a_step_changes_nothing_where_the_branch_is_zero(digits):
    net = nb.pretrained("digits/resnet32-width4-constant-seed0").eval()
    for block in net.blocks:
        if not block.opens:
            torch.nn.init.zeros_(block.branch.bn2.weight)
            torch.nn.init.zeros_(block.branch.bn2.bias)
    found = measures.accuracy_by_flow(net, digits, 40)
    assert len(found) == 1 + sum(not block.opens for block in net.blocks)
    assert len(set(found.values())) == 1
    assert not any(module._forward_hooks for module in net.modules())


def test_a_flow_in_place_of_a_step_changes_answers(net, digits):
    found = measures.accuracy_by_flow(net, digits, 60)
    assert found[""] > 0.9
    assert min(found.values()) < found[""]


def test_blocks_keep_their_order_at_the_images_that_they_are_compared_with(net, digits):
    blocks = measures.inner_blocks(net, 2)[:3]
    rows = tables.input_rows(measures.other_inputs(net, digits, blocks, 2, WORK))
    assert [row["input"] for row in rows] == ["test images", "training images", "noise", "FGSM, 8/255"]
    assert all(rows[0][f"order of {measure}"] == pytest.approx(1.0) for measure in tables.ENDS)
    assert len({row["max Re, mean"] for row in rows}) == 4


def test_the_step_map_has_one_more_than_the_branch(net, digits):
    name = measures.inner_blocks(net, 2)[0]
    images = prepared(net, digits, digits.test_images[:3])
    table = nb.block_survey(net, images, ("residual", "block"), [name])
    found = measures.Measured("a", (name,), table, np.zeros(3), np.zeros(3), np.zeros(3, bool), np.zeros(1))
    branch, shifted, whole = (
        next(row for row in tables.reading_rows(found) if row["reading"] == one)
        for one in ("residual", "step map", "block")
    )
    assert shifted["min Re, lowest"] == pytest.approx(1 + branch["min Re, lowest"])
    assert shifted["max Re, highest"] == pytest.approx(1 + branch["max Re, highest"])
    assert whole["S defined, % of images"] == 0.0  # dead outputs are exact zeros


@pytest.mark.slow
def test_training_is_looked_at_from_before_it_begins():
    rows = epochs.through_training(1, 1)
    assert [row["epoch"] for row in rows] == [0] * 4 + [1] * 4
    assert all(np.isfinite(row["max_re"]) and row["step_error"] > 0 for row in rows)
    assert rows[0]["max_re"] != rows[4]["max_re"]


def test_another_accuracy_than_the_expected_one_ends_the_study(net, digits, capsys):
    options = {"dataset": "digits", "out": Path("nowhere")}
    study.check_accuracy(net, "it", digits, study.Arguments(**options, expect=98.0))
    assert "it: 99.0 %" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"--expect. says 50 %. Try another `--stem`"):
        study.check_accuracy(net, "it", digits, study.Arguments(**options, expect=50.0))
