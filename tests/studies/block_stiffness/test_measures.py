"""What is measured, on the digits: accuracies with flows in place of steps, other inputs, readings, epochs, stems."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

import netbridge as nb
from netbridge.data import datasets
from studies.block_stiffness import adversarial, constant_gates, measures, ode_nets, paper, subjects, trainings
from studies.block_stiffness.__main__ import Arguments
from studies.block_stiffness.report import tables
from studies.lab.stiffness import prepare
from tests.netbridge.test_foreign_weights import foreign_state

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
    found = measures.accuracy_by_flow(net, prepare(net, digits, digits.test_images[:40]), digits.test_labels[:40])
    assert len(found) == 1 + sum(not block.opens for block in net.blocks)
    assert len(set(found.values())) == 1
    assert not any(module._forward_hooks for module in net.modules())


def test_a_flow_in_place_of_a_step_changes_answers(net, digits):
    found = measures.accuracy_by_flow(net, prepare(net, digits, digits.test_images[:60]), digits.test_labels[:60])
    assert found[""] > 0.9
    assert min(found.values()) < found[""]


def test_blocks_keep_their_order_at_the_images_that_they_are_compared_with(net, digits):
    blocks = measures.inner_blocks(net, 2)[:3]
    rows = tables.input_rows(measures.other_inputs(net, digits, blocks, 2, WORK))
    assert [row["input"] for row in rows] == ["test images", "training images", "noise", "FGSM, 8/255"]
    assert all(rows[0][f"order of {measure}"] == pytest.approx(1.0) for measure in tables.ENDS)
    assert len({row["max Re, mean"] for row in rows}) == 4


def test_fewer_images_are_the_first_of_more(digits):
    labels = digits.test_labels.numpy()
    many = measures.nested_images(labels, 7)
    for each in (1, 3, 7):
        few = measures.nested_images(labels, each)
        np.testing.assert_array_equal(few, many[: 10 * each])
        assert (np.bincount(labels[few]) == each).all()


def test_the_plan_of_a_quick_run_fits_into_its_time():
    """170 seconds for each of two processes, by the costs that were measured; the preset for networks of one's own
    and the full one take longer, as they say."""
    assert measures.planned_seconds(measures.SIZES["quick"]) / 2 <= 170
    assert measures.planned_seconds(measures.SIZES["full"]) / 2 <= 4 * 3600
    assert measures.size_of("quick", 4).spectra == (4, 4, 4)
    assert measures.size_of("quick") == measures.SIZES["quick"]


@pytest.mark.parametrize("preset", ["quick", "full", "paper"])
def test_every_stage_of_every_network_is_looked_at(preset):
    """The paper's claim is about the last of its networks' four stages."""
    for depth, count in ((18, 4), (34, 4), (50, 4), (20, 3)):
        with torch.device("meta"):
            found = measures.stages(nb.resnet(depth), measures.SIZES[preset].spectra)
        assert [stage for stage, _ in found] == list(range(count))
        assert min(each for _, each in found) > 0


@pytest.mark.parametrize(("depth", "widths"), [(18, (8, 8, 16, 16)), (50, (2, 2, 4, 4))])
def test_a_network_of_the_papers_geometry_has_rows_for_its_last_block(digits, depth, widths):
    torch.manual_seed(0)
    net = nb.resnet(depth, 10, stem="cifar-pooled", widths=widths, in_channels=digits.test_images.shape[1]).eval()
    found = measures.measure(net, "untrained", digits, measures.SIZES["smoke"], WORK, ("residual", "block"))
    for reading in ("residual", "block"):
        assert len(measures.rows_of(found, found.blocks[-1], reading))


def test_the_papers_columns_are_those_of_the_papers_networks():
    with torch.device("meta"):
        nets = {depth: nb.resnet(depth, 10, stem="cifar-pooled") for depth in (18, 34, 50)}
        other = nb.resnet(50, 10, widths=(32, 64, 128, 256))
    assert {depth: paper.depth_of(net) for depth, net in nets.items()} == {18: 18, 34: 34, 50: 50}
    assert paper.depth_of(other) is None
    assert paper.printed_block(18, 8) == (-12.99, 21.92)
    assert paper.printed_block(34, 16) == (-16.82, 22.34)
    assert [paper.printed_block(50, number) for number in (1, 15, 16)] == [None, None, (-35.32, 31.96)]
    assert paper.printed_block(None, 1) is None


def test_published_weights_are_shown_images_as_they_were_normalised(tmp_path):
    """What a file of weights does not tell is said by options, and half of it is refused."""
    torch.manual_seed(0)
    path = tmp_path / "resnet18.pt"
    torch.save(foreign_state(nb.resnet(18, 10, stem="cifar-pooled")), path)
    usual = {"mean": (0.4914, 0.4822, 0.4465), "std": (0.2471, 0.2435, 0.2616)}
    asked = Arguments(checkpoint=(path,), stem="cifar-pooled", device="cpu", **usual)
    ((net, _),) = subjects.choose_networks(asked, None)
    assert net.normalisation == {name: list(values) for name, values in usual.items()}
    assert paper.depth_of(net) == 18
    with pytest.raises(SystemExit, match="`--mean` must be three numbers"):
        subjects.choose_networks(dataclasses.replace(asked, mean=()), None)
    with pytest.raises(SystemExit, match="`--std` must be three numbers"):
        subjects.choose_networks(dataclasses.replace(asked, std=(25.0, 24.0, 26.0)), None)


def test_an_attack_grows_and_flips(net, digits):
    chosen = np.arange(60)
    found = adversarial.robustness(net, digits, chosen)
    assert set(found) == {"flips at 1/255", "flips at 2/255", "small margin", "growth"}
    assert found["flips at 2/255"].sum() >= found["flips at 1/255"].sum()
    assert (found["growth"] > 0).all()
    assert (found["small margin"] <= 0).all()
    large, _ = adversarial.move_images(net, prepare(net, digits, digits.test_images[:60]), digits.test_labels[:60], 0.5)
    with torch.inference_mode():
        right = (net(large).argmax(1) == digits.test_labels[:60]).float().mean()
    assert right < 0.7  # of 0.98
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in net.modules())


def test_a_constant_in_the_place_of_a_gate_scales_the_branch(digits):
    """The eigenvalues of h f' are h times those of f' at the same state, as that of the first block is."""
    net = nb.pretrained("digits/resnet32-width4-se-seed0").eval()
    seen = prepare(net, digits, digits.test_images[:2])
    other, means = constant_gates.with_mean_gates(net, seen)
    name = net.block_names[0]
    assert {block.controller.name for block in other.blocks} == {"constant"}
    branch, step = (
        nb.block_survey(one, seen, kind, [name], "full", "frozen", dtype=torch.float64)
        for one, kind in ((net, "residual"), (other, "increment"))
    )
    for end in constant_gates.ENDS:
        np.testing.assert_allclose(step[end], float(means[name]) * branch[end], rtol=1e-9)


def test_merged_constants_of_asr_have_the_spectrum_of_the_step(digits):
    """What `nb.merge` moves into the branch is the step size: f' of the merged block is h f' of the other one."""
    net = nb.pretrained("digits/resnet32-width4-asr-se-seed0").eval()
    seen = prepare(net, digits, digits.test_images[:1])
    name = measures.inner_blocks(net, 2)[0]
    step = nb.block_survey(net, seen, "increment", [name], "full", "frozen", dtype=torch.float64)
    merged = nb.block_survey(nb.merge(net), seen, "residual", [name], "full", dtype=torch.float64)
    for end in (*constant_gates.ENDS, "negative"):
        np.testing.assert_allclose(merged[end], step[end], rtol=1e-6)


@pytest.mark.slow
def test_the_papers_geometry_is_looked_at_and_a_stopped_training_keeps_its_looks(digits, tmp_path):
    rows = trainings.train_papers_geometry(digits, 0, 1, tmp_path, "cpu", epochs=1, width=2)
    assert [row["epoch"] for row in rows] == [0] * 8 + [1] * 8
    assert np.isfinite([row["%, slices"] for row in rows]).all()
    opening = [row["block"] for row in rows[:8] if not np.isfinite(row["max_re"])]
    assert opening == [3, 5, 7]
    again = trainings.train_papers_geometry(digits, 0, 1, tmp_path, "cpu", epochs=1, width=2)
    np.testing.assert_equal(again, rows)
    table = tables.geometry_rows(rows)
    assert len(table) == 8
    assert {"%, slices, epoch 0", "%, slices, epoch 1"} <= set(table[0])


@pytest.mark.slow
def test_a_tolerance_costs_evaluations_and_hardly_accuracy():
    rows = ode_nets.tolerance_rows(0, 1, 60)
    assert len(rows) == 2 * (1 + len(ode_nets.TOLERANCES))
    for trained in ("Euler", "dopri5"):
        euler, *solved = [row for row in rows if row["trained by"] == trained]
        assert euler["evaluations a block"] == 1.0
        calls = [row["evaluations a block"] for row in solved]
        assert calls == sorted(calls)
        assert calls[-1] > 2 * calls[0] > 6


@pytest.mark.slow
def test_a_deeper_network_has_more_blocks():
    one, two = (trainings.row_of_depth(depth, 1, 2, 0) for depth in (14, 20))
    assert (one["blocks"], two["blocks"]) == (4, 7)
    assert one["sigma, largest"] >= one["rho, median"] > 0
    rows = [{"blocks": n, "x": 3.0 / n} for n in (4, 7, 13)]
    assert trainings.exponent(rows, "x") == pytest.approx(-1.0)


def test_the_step_map_has_one_more_than_the_branch(net, digits):
    name = measures.inner_blocks(net, 2)[0]
    images = prepare(net, digits, digits.test_images[:3])
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
    rows = trainings.rows_through_training(1, 1)
    assert [row["epoch"] for row in rows] == [0] * 4 + [1] * 4
    assert all(np.isfinite(row["max_re"]) and row["step_error"] > 0 for row in rows)
    assert rows[0]["max_re"] != rows[4]["max_re"]


def test_another_accuracy_than_the_expected_one_ends_the_study(net, digits, capsys):
    options = {"dataset": "digits", "out": Path("nowhere")}
    subjects.check_accuracy(net, "it", digits, Arguments(**options, expect=98.0))
    assert "it: 99.0 %" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"--expect. says 50 %. Try another `--stem`"):
        subjects.check_accuracy(net, "it", digits, Arguments(**options, expect=50.0))
