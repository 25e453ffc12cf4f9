"""The tables from what is there: what a file says, what a cell holds, what is missing, and commands that train it."""

import dataclasses
import json
import shlex

import numpy as np
import pytest
import tyro

import netbridge as nb
from netbridge.train import journal as train_journal
from netbridge.train.recipes import RECIPES
from studies import table as study
from studies import train
from studies.lab import jobs
from studies.lab.networks import ZOO, controller_of

SMALL = study.Scale("resnet", 20, 16, RECIPES["short"])
PRINTED = {  # the columns "acc. up" of Table 1
    **{"SE": (0.91, 0.95, 1.30), "CBAM": (0.56, 0.38, 1.45), "ECA": (0.80, 0.11, 1.23), "SEM": (1.17, 2.19, 3.07)},
    **{"SRM": (1.24, 1.19, 2.07), "FCA": (1.31, 2.21, 2.68), "IEBN": (1.35, 2.02, 2.47), "StepNet": (1.79, 2.74, 3.42)},
}


def test_the_printed_accuracies_give_the_printed_gains():
    paper = study.TABLES[1].paper
    for row, gains in PRINTED.items():
        assert [paper[row][k][0] - paper["constant"][k][0] for k in range(3)] == pytest.approx(gains, abs=0.011)


@pytest.mark.parametrize("number", study.TABLES)
def test_every_cell_has_a_number_and_every_controller_exists(number):
    wanted = study.TABLES[number]
    assert set(wanted.paper) == set(wanted.rows)
    assert {len(row) for row in wanted.paper.values()} == {len(wanted.columns)}
    for row, text in wanted.rows.items():
        net = nb.resnet(20, 10, controller=jobs.spec_of_text(text), widths=(64, 64, 64))
        assert controller_of(net.config) == row


def trained(controller="constant", seed=0, accuracy=90.0, dataset="cifar10", scale=SMALL, seconds=3600.0):
    return study.Trained(dataset, controller, seed, scale, accuracy, seconds)


def small_table(found):
    arguments = study.Arguments(depth=20, recipe="short")
    return study.choose_columns(study.TABLES[1], arguments, found)


def test_means_spreads_and_gains_are_those_of_the_seeds():
    found = [trained(seed=0, accuracy=90.0), trained(seed=1, accuracy=91.0)]
    found += [trained("SE", 0, 92.0), trained("SE", 4, 93.0), trained("SE", 0, 10.0, dataset="cifar100")]
    found += [trained("ECA", 0, 99.0, scale=dataclasses.replace(SMALL, depth=32))]  # another scale: no cell of it
    wanted = small_table(found)
    rows = {row["network"]: row for row in study.rows_of_table(wanted, study.cells_of(wanted, found, 5))}
    assert rows["plain"]["CIFAR-10: found"] == "90.50 ± 0.71 (n = 2)"
    assert rows["+SE"]["CIFAR-10: found"] == "92.50 ± 0.71 (n = 2)"
    assert rows["+SE"]["CIFAR-10: gain"] == "+2.00"
    assert rows["+SE"]["CIFAR-100: found"] == "10.00 (n = 1)"
    assert rows["+SE"]["CIFAR-100: gain"] == ""
    assert rows["+ECA"]["CIFAR-10: found"] == "none"
    assert rows["+StepNet"]["CIFAR-10: paper"] == "95.14 ± 0.24"
    elsewhere = list(study.rows_elsewhere([wanted], found))
    assert [(row["networks"], row["controller"], row["gain"]) for row in elsewhere] == [("ResNet-32, short", "ECA", "")]
    elsewhere = list(study.rows_elsewhere([], found))
    assert [row["gain"] for row in elsewhere if row["networks"] == "ResNet-20, short"] == ["", "+2.00", ""]


def test_what_is_missing_is_counted_and_ordered_by_worth():
    found = [trained(seed=0), trained(seed=2), trained("SE", 1)]
    wanted = small_table(found)
    cells = study.cells_of(wanted, found, 3)
    first = study.rows_missing(cells)
    row = next(iter(first))
    assert (row["wanted"], row["found"], row["missing"]) == (27, 3, 24)
    assert row["hours left"] == "24.0"  # each of those that are there took an hour
    assert "SE" not in row["nothing there of"].split(", ")
    order = [(cell.row, seed) for cell, seed in study.in_order(cells) if cell.dataset == "cifar10"]
    assert order[:3] == [("SE", 0), ("StepNet", 0), ("CBAM", 0)]
    assert [seed for _, seed in order] == sorted(seed for _, seed in order)
    assert order.index(("constant", 1)) < order.index(("StepNet", 1)) < order.index(("CBAM", 1))


def test_hours_of_the_papers_networks_grow_with_attention_on_imagenet():
    hours = {cell.row: cell.hours for cell in study.cells_of(study.TABLES[2], [], 5) if cell.scale.depth == 50}
    assert hours["SE"] == pytest.approx(1.2 * hours["constant"])


@pytest.mark.parametrize("number", study.TABLES)
def test_the_commands_train_what_is_missing(number):
    for cell, seed in study.in_order(study.cells_of(study.TABLES[number], [], 2)):
        words = shlex.split(study.command(cell, seed))
        assert words[:3] == ["python", "-m", "studies.train"]
        asked = tyro.cli(train.Arguments, args=words[3:])
        assert (asked.dataset, asked.seed, asked.depth) == (cell.dataset, seed, cell.scale.depth)
        assert jobs.recipe_of(asked.recipe, asked.dataset) == cell.scale.recipe
        assert asked.controller == cell.text


def save(folder, name, net=None, **about):
    net = nb.resnet(20, 10, controller="se") if net is None else net
    usual = {"dataset": "cifar10", "seed": 0, "depth": 20, "recipe": "short", "test_accuracy": 0.9, "epochs": 14}
    return nb.save(net, folder / f"{name}.safetensors", {**usual, "seconds": 10.0, **about})


def run(recipe, images=50_000):
    return {"dataset": {"name": "cifar10", "images": images}, "recipe": json.loads(json.dumps(recipe.as_json()))}


def test_a_file_says_which_cell_its_network_is_of(tmp_path):
    one = study.read_network(save(tmp_path, "one"))
    assert (one.dataset, one.controller, one.seed, one.scale, one.accuracy) == ("cifar10", "SE", 0, SMALL, 90.0)
    assert study.read_network(save(tmp_path, "two", run=run(RECIPES["short"]))).scale == SMALL
    shorter = dataclasses.replace(RECIPES["short"], epochs=3)
    assert (
        study.read_network(save(tmp_path, "three", run=run(shorter), epochs=3)).scale.label
        == "ResNet-20, short for 3 epochs"
    )
    faster = dataclasses.replace(RECIPES["short"], lr=0.3)
    assert study.read_network(save(tmp_path, "four", run=run(faster))).scale.label == "ResNet-20, short, changed"
    stepnet = nb.resnet(20, 10, controller="stepnet")  # no step size where a stage opens, by nature
    assert study.read_network(save(tmp_path, "five", stepnet)).controller == "StepNet"


def test_a_transformer_that_was_trained_so_is_of_table_7(tmp_path):
    (_, scale), *_ = study.TABLES[7].columns
    job = jobs.Job("cifar10", "stepnet", 1, scale.recipe, scale.depth, scale.width, network=scale.network)
    net = job.untrained_network(10)
    about = {**train_journal.header_fields(net), "recipe": scale.recipe.name, "epochs": scale.recipe.epochs, "seed": 1}
    one = study.read_network(save(tmp_path, "vit", net, **about))
    (cell,) = (c for c in study.cells_of(study.TABLES[7], [one], 2) if c.row == "StepNet" and c.dataset == "cifar10")
    assert cell.found == [one]
    assert cell.missing == [0]


def test_what_has_no_place_in_a_table_is_named_with_its_reason(tmp_path):
    save(tmp_path, "few", run=run(RECIPES["short"], 2000))
    save(tmp_path, "ticket", nb.resnet(20, 10, controller="se", on=(1,)))
    nb.save(nb.resnet(8, 10), tmp_path / "untrained.safetensors")
    (tmp_path / "again").mkdir()
    save(tmp_path, "whole")
    save(tmp_path / "again", "whole")
    found, left_out = study.read_all((tmp_path,))
    assert len(found) == 1
    reasons = {line.split(".safetensors: ")[0].split("/")[-1]: line.split(": ", 1)[1] for line in left_out}
    assert reasons["few"] == "saw 2,000 of 50,000 images"
    assert reasons["ticket"] == "has a controller on some blocks only"
    assert reasons["untrained"].startswith("says too little")


def test_every_shipped_network_of_our_own_has_a_place():
    found, left_out = study.read_all((ZOO,))
    assert not left_out
    assert len(found) == len(nb.pretrained())
    assert all(np.isfinite(one.accuracy) for one in found)


def test_the_study_leaves_the_commands_and_says_what_is_left(tmp_path, capsys):
    study.main(study.Arguments(out=tmp_path / "out", results=(), table=(1,), datasets=("cifar100",), seeds=2))
    lines = (tmp_path / "out" / "missing_table1.sh").read_text().splitlines()
    assert len(lines) == 18
    assert "cifar100" in lines[0]
    assert "Table 1: 0 of 18 networks are there; about 27 hours are left on an RTX 3080." in capsys.readouterr().out
