"""Slices alone at many images: kept, found again by the weights, and what they go with is what was put in."""

import dataclasses

import numpy as np
import torch

import netbridge as nb
from netbridge.data import datasets
from studies.block_stiffness import record, slices_alone
from studies.block_stiffness.findings import answers, blocks
from studies.lab.stiffness import prepare
from studies.lab.verdicts import NO_DIFFERENCE, SUPPORTED

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
    return slices_alone.Slices(about, names, np.arange(count), labels, loss, loss < 1.5, *others)


def test_what_is_written_is_found_again_by_network_and_weights(tmp_path):
    few, many = made_up(40), made_up(80)
    for folder, found in (("here", few), ("there", many)):
        (tmp_path / folder).mkdir()
        slices_alone.write(found, slices_alone.path_of(tmp_path / folder, NAME))
    again = slices_alone.find(NAME, "abc", tmp_path / "here", tmp_path / "there", tmp_path / "nowhere")
    for field in dataclasses.fields(many):
        np.testing.assert_array_equal(getattr(again, field.name), getattr(many, field.name))
    assert slices_alone.find(NAME, "other weights", tmp_path / "here") is None
    assert slices_alone.find("another/network", "abc", tmp_path / "here") is None


def test_slices_that_go_with_nothing_differ_by_nothing():
    """Made-up images without a relation: a "no" beyond 0.06, and labels below 5 %, where 100 images leave both open."""
    found = made_up()
    related = [one for one in slices_alone.relations(found) if one.target == "loss"]
    assert answers.RULES["loss"](related, answers.LOSS).verdict == NO_DIFFERENCE
    assert blocks.judge_labels(slices_alone.components(found), ()).verdict == SUPPORTED


def test_slices_that_go_with_the_loss_do_so_and_not_beside_live_outputs_that_say_the_same():
    found = made_up(relation=0.4)
    evidence = slices_alone.evidence_of(found)
    related = [one for one in evidence.relations if one.target == "loss"]
    assert answers.RULES["loss"](related, answers.LOSS).verdict == SUPPORTED
    held = [one for one in slices_alone.relations_held(found) if one.target == f"loss, {slices_alone.HELD}"]
    assert len(held) == len(related) == 4
    assert max(abs(one.r) for one in held) < 0.15 < min(abs(one.r) for one in related)


def test_slices_of_a_network_are_those_of_the_survey_and_a_stopped_run_goes_on(tmp_path, monkeypatch):
    data, net = datasets.load("digits"), nb.pretrained(NAME).eval()
    monkeypatch.setattr(slices_alone, "PORTION", 2)
    work, told = {"workers": 1, "cache": tmp_path}, []
    slices_alone.measure(net, NAME, data, 2, work, rows=5)
    written = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    found = slices_alone.measure(net, NAME, data, 3, work, rows=5, on_progress=lambda *done: told.append(done))
    assert told == [(2, 3), (3, 3)]
    assert set(written) == set(tmp_path.glob("*.npz"))
    assert found.about["digest"] == record.digest_of(net)
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
