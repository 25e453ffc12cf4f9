"""What stiffness goes with, image by image: verdicts on made-up correlations, slices alone, and an attack."""

import dataclasses

import numpy as np
import pytest
import torch

import netbridge as nb
from netbridge.data import datasets
from studies.block_stiffness import answers, blocks, measures
from studies.block_stiffness.evidence import digest_of
from studies.lab.stiffness import prepare
from studies.lab.verdicts import NO_DIFFERENCE, NOT_RUN, SPLIT, SUPPORTED
from tests.studies.block_stiffness.made_up import relation


def test_correlations_are_means_over_the_last_stage_in_the_reading_with_the_most_images():
    early = relation(0.9, block="stages.0.blocks.1")
    others = [relation(r, block=f"stages.2.blocks.{k}") for k, r in enumerate((0.3, -0.3))]
    assert answers.RULES["loss"]([early, *others], answers.LOSS).verdict == NO_DIFFERENCE
    branch = [relation(0.5, n=100, reading="residual")]
    assert answers.RULES["loss"]([early, *others, *branch], answers.LOSS).verdict == NO_DIFFERENCE
    few = [dataclasses.replace(one, n=20) for one in others]
    assert answers.RULES["loss"]([*few, *branch], answers.LOSS).verdict == SUPPORTED
    assert answers.RULES["accuracy"]([], answers.CLAIMED).verdict == NOT_RUN


def test_the_papers_own_late_correlations_are_true_of_one_measure_and_false_of_the_other():
    """Table 1, blocks 6 to 8: percentages fall with accuracy as its words say, S does the opposite."""
    own = [
        relation(r, measure, "accuracy", block=f"stages.2.blocks.{k}")
        for k, (s, percent) in enumerate(((-0.09, -0.38), (-0.03, -0.18), (-0.23, -0.36)))
        for measure, r in (("stiffness_index", s), ("negative", percent))
    ]
    assert answers.RULES["accuracy"](own, answers.CLAIMED).verdict == SPLIT


def test_attackers_have_several_targets():
    found = [relation(0.4, target=target, reading="residual", n=400) for target in ("flips at 1/255", "growth")]
    judged = answers.RULES["flips"](found, answers.TURNED)
    assert judged.verdict == SUPPORTED
    assert "the percentage with growth" in judged.words
    assert "say the stiffer, the better" not in judged.words


def test_an_attack_grows_and_flips(net, digits):
    chosen = np.arange(60)
    found = answers.robustness(net, digits, chosen)
    assert set(found) == {"flips at 1/255", "flips at 2/255", "small margin", "growth"}
    assert found["flips at 2/255"].sum() >= found["flips at 1/255"].sum()
    assert (found["growth"] > 0).all()
    assert (found["small margin"] <= 0).all()
    large, _ = measures.move_images(net, prepare(net, digits, digits.test_images[:60]), digits.test_labels[:60], 0.5)
    with torch.inference_mode():
        right = (net(large).argmax(1) == digits.test_labels[:60]).float().mean()
    assert right < 0.7  # of 0.98
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in net.modules())


NAME = "digits/resnet32-width4-constant-seed0"


def made_up(count=3400, relation=0.0, seed=0):
    """Two blocks of the last stage whose measures go with the loss, and with live outputs."""
    random = np.random.default_rng(seed)
    loss = random.standard_normal(count)
    columns = relation * loss[:, None] + random.standard_normal((count, 2))
    labels = np.arange(count) % 10
    about = {"network": NAME, "digest": "abc", "images": count}
    names = ("stages.2.blocks.1", "stages.2.blocks.2")
    others = -columns, columns, 0.2 * random.standard_normal((count, 2)) + columns
    return answers.Slices(about, names, np.arange(count), labels, loss, loss < 1.5, *others)


def test_what_is_written_is_found_again_by_network_and_weights(tmp_path):
    few, many = made_up(40), made_up(80)
    for folder, found in (("here", few), ("there", many)):
        (tmp_path / folder).mkdir()
        answers.write_slices(found, answers.path_of(tmp_path / folder, NAME))
    again = answers.find_slices(NAME, "abc", tmp_path / "here", tmp_path / "there", tmp_path / "nowhere")
    for field in dataclasses.fields(many):
        np.testing.assert_array_equal(getattr(again, field.name), getattr(many, field.name))
    assert answers.find_slices(NAME, "other weights", tmp_path / "here") is None
    assert answers.find_slices("another/network", "abc", tmp_path / "here") is None


def test_slices_that_go_with_nothing_differ_by_nothing():
    """Made-up images without a relation: a "no" beyond 0.06, and labels below 5 %, where 100 images leave both open."""
    found = made_up()
    related = [one for one in found.relations() if one.target == "loss"]
    assert answers.RULES["loss"](related, answers.LOSS).verdict == NO_DIFFERENCE
    assert blocks.judge_labels(found.components(), ()).verdict == SUPPORTED


def test_slices_that_go_with_the_loss_do_so_and_not_beside_live_outputs_that_say_the_same():
    found = made_up(relation=0.4)
    evidence = found.evidence()
    related = [one for one in evidence.relations if one.target == "loss"]
    assert answers.RULES["loss"](related, answers.LOSS).verdict == SUPPORTED
    held = [one for one in found.relations_held() if one.target == f"loss, {answers.BESIDE}"]
    assert len(held) == len(related) == 4
    assert max(abs(one.r) for one in held) < 0.15 < min(abs(one.r) for one in related)


@pytest.mark.slow
def test_slices_of_a_network_are_those_of_the_survey_and_a_stopped_run_goes_on(tmp_path):
    data, net = datasets.load("digits"), nb.pretrained(NAME).eval()
    work = {"workers": 1, "cache": tmp_path}
    answers.measure_slices(net, NAME, data, 2, work, rows=5, portion=2)
    written = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    found = answers.measure_slices(net, NAME, data, 3, work, rows=5, portion=2)
    assert set(written) == set(tmp_path.glob("*.npz"))
    assert found.about["digest"] == digest_of(net)
    assert found.negative.shape == (3, len(net.block_names))
    images = prepare(net, data, data.test_images[found.images])
    table = nb.block_survey(net, images, ("slices", "error"), rows=5, workers=1)
    for number, name in enumerate(net.block_names):
        own = table[table["block"] == name]
        np.testing.assert_allclose(found.negative[:, number], own[own["kind"] == "slices"]["negative"], rtol=1e-6)
        alive = own[own["kind"] == "error"]["alive"]
        if len(alive):  # a block that changes the shape has none there
            np.testing.assert_allclose(found.alive[:, number], alive, atol=1e-6)
    with torch.inference_mode():
        right = (net(images).argmax(1) == data.test_labels[found.images]).numpy()
    np.testing.assert_array_equal(found.right, right)


def test_a_flow_in_place_of_a_step_changes_nothing_where_the_branch_is_zero(digits):
    net = nb.pretrained("digits/resnet32-width4-constant-seed0").eval()
    for block in net.blocks:
        if not block.opens:
            torch.nn.init.zeros_(block.branch.bn2.weight)
            torch.nn.init.zeros_(block.branch.bn2.bias)
    found = answers.accuracy_by_flow(net, prepare(net, digits, digits.test_images[:40]), digits.test_labels[:40])
    assert len(found) == 1 + sum(not block.opens for block in net.blocks)
    assert len(set(found.values())) == 1
    assert not any(module._forward_hooks for module in net.modules())


def test_a_flow_in_place_of_a_step_changes_answers(net, digits):
    found = answers.accuracy_by_flow(net, prepare(net, digits, digits.test_images[:60]), digits.test_labels[:60])
    assert found[""] > 0.9
    assert min(found.values()) < found[""]
