"""The study of detectors: what is trained is what the design says, and every verdict follows its rule."""

import dataclasses

import numpy as np
import pytest
import torch

import netbridge as nb
from netbridge import detect
from netbridge.detect.evaluation import NAMES
from studies import miniature
from studies.detect import design, measures
from studies.detect.__main__ import SHIPPED, Arguments, main, plan_runs
from studies.detect.findings import (
    PRINTED,
    best_finding,
    gain_finding,
    relation_finding,
    stiffness_finding,
    table_rows,
)
from studies.lab import measurements
from studies.lab.measurements import Measurement
from studies.lab.statistics import CONTRADICTED, PARTLY, SUPPORTED, UNDECIDED
from studies.lab.stiffness import READINGS

pytest.importorskip("pycocotools")
NOISE = (-0.02, 0.0, 0.02)


def measured(row, seed, ap, tns):
    numbers = dict.fromkeys(NAMES, ap) | {"APL": None, "parameters": 7}
    moment = {"tns": [tns] * len(READINGS), "nsi": [1.0]}
    return Measurement({"controller": row, "seed": seed}, numbers | {"before": moment, "after": moment}, {})


def population(ap, tns=None, noise=NOISE):
    """A detector of every row and seed; `ap` and `tns` say by how much a row lies above 30 and 0.5."""
    tns = tns or {}
    return [
        measured(row, seed, 30 + ap.get(row, 0.0) + shift, 0.5 + tns.get(row, 0.0) + shift)
        for row in design.ROWS
        for seed, shift in enumerate(noise)
    ]


OTHERS = design.ROWS[1:]


def test_every_detector_of_the_design_is_there_once():
    runs = design.made_up()
    assert len({run.stem for run in runs}) == len(runs) == 15
    assert [run.controller for run in runs[:5]] == list(design.ROWS)
    assert dataclasses.replace(runs[0], weights="other").stem != runs[0].stem


def test_backbones_of_the_rows_differ_in_their_controllers_only():
    bodies = {run.controller: run.untrained_detector(("one", "two")).backbone for run in design.made_up(seeds=1)}
    for row, body in bodies.items():
        assert isinstance(body, nb.Network)
        assert torch.equal(body.stem.conv.weight, bodies["constant"].stem.conv.weight), row
    assert bodies["sge"].blocks[1].controller.groups == 8


def test_a_backbone_with_weights_is_frozen_as_the_papers_toolkit_does(monkeypatch):
    run = design.Run("se", 0, "coco", design.schedule("1x"), 50)
    assert run.specification["settings"]["features"] == detect.Settings().features
    monkeypatch.setattr(design.detect, "Detector", lambda *given, **options: options)
    fresh, trained = run.untrained_detector(("one",)), run.untrained_detector(("one",), object())
    assert (fresh["frozen_stages"], fresh["frozen_norms"]) == (0, False)
    assert (trained["frozen_stages"], trained["frozen_norms"]) == (1, True)


def test_the_schedule_grows_with_its_name_and_the_rate_with_the_batch():
    once, twice = design.schedule("1x"), design.schedule("2x", batch=8)
    assert (once.epochs, once.drops, once.batch, once.lr) == (12, (8, 11), 16, 0.02)
    assert (twice.epochs, twice.drops, twice.batch, twice.lr) == (24, (16, 22), 8, 0.01)
    with pytest.raises(ValueError, match="`--schedule` must be 1x, 2x"):
        design.schedule("soon")


def test_what_coco_needs_is_asked_for(tmp_path):
    arguments = Arguments(data_root=tmp_path, seeds=1, weights=tmp_path)
    with pytest.raises(ValueError, match=r"resnet50-constant-seed0\.safetensors is not there"):
        plan_runs(arguments)
    with pytest.raises(ValueError, match="`--depth` must be one of"):
        plan_runs(dataclasses.replace(arguments, depth=20))
    assert {run.recipe.name for run in plan_runs(dataclasses.replace(arguments, weights=None))} == {"coco-1x"}


def test_a_run_is_made_once_and_found_again(tmp_path):
    run = design.smoke()[0]
    data = measures.scenes(run, tmp_path)
    assert measures.scenes(run, tmp_path).digest() == data.digest()
    made = measures.carry_out(run, data, tmp_path, machine=measures.Machine("cpu"))
    found = measurements.find(run, (tmp_path,))
    assert found.numbers["AP"] == made.numbers["AP"]
    assert not list(tmp_path.glob("*.safetensors"))
    nsi = found.arrays["nsi_after"]
    assert nsi.shape == (run.pictures[1], 9)
    np.testing.assert_allclose(nsi.mean(0), found.numbers["after"]["nsi"], rtol=1e-5)
    assert len(found.numbers["before"]["tns"]) == len(READINGS)
    assert measurements.find(design.smoke()[1], (tmp_path,)) is None


def test_calibration_leaves_the_detector_as_it_is(tmp_path):
    run = design.smoke()[0]
    data = measures.scenes(run, tmp_path)
    net = run.untrained_detector(data.names)
    before = {name: x.clone() for name, x in net.state_dict().items()}
    other = measures.calibrate(net, data)
    assert all(torch.equal(x, before[name]) for name, x in net.state_dict().items())
    assert float(other.backbone.stem.bn.running_var.max()) != 1.0


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [
        (dict.fromkeys(OTHERS, 1.0), SUPPORTED),
        (dict.fromkeys(OTHERS, -1.0), CONTRADICTED),
        ({"se": 1.0, "eca": -1.0}, PARTLY),
        ({"se": 1.0}, UNDECIDED),
        ({}, UNDECIDED),
    ],
)
def test_gains_are_judged_by_the_rule(gains, verdict):
    assert gain_finding(population(gains)).verdict == verdict
    assert stiffness_finding(population({}, gains)).verdict == verdict


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [({"stepnet": 1.0}, SUPPORTED), ({"se": 1.0}, CONTRADICTED), ({"stepnet": 1.0, "se": 1.0}, UNDECIDED)],
)
def test_the_best_row_is_judged_by_the_rule(gains, verdict):
    assert best_finding(population(gains)).verdict == verdict


def test_the_relation_is_judged_by_the_rule():
    rising = {row: 0.5 * place for place, row in enumerate(design.ROWS)}
    assert relation_finding(population(rising, rising)).verdict == SUPPORTED
    falling = {row: -value for row, value in rising.items()}
    wide = (-0.2, 0.0, 0.2)
    assert relation_finding(population(rising, falling, (0.0, 0.001, 0.002))).verdict == CONTRADICTED
    assert relation_finding(population(rising, rising, wide)[:11]).verdict == UNDECIDED


def test_nothing_is_judged_without_detectors_or_seeds():
    gains = dict.fromkeys(OTHERS, 1.0)
    for found in ([], population(gains, gains, NOISE[:2])):
        for finding in (gain_finding, best_finding, stiffness_finding, relation_finding):
            assert finding(found).verdict == UNDECIDED


def test_the_table_has_a_row_for_each_backbone_and_says_where_no_object_is_of_a_size():
    rows = table_rows(population({"se": 1.0}))
    assert [row["backbone"] for row in rows] == list(design.ROWS)
    assert rows[1]["AP"].startswith("31.0 [")
    assert rows[1]["APL"] == "none"


def test_the_printed_gains_are_those_the_text_names():
    gains = [round(rows["stepnet"][0] - rows["constant"][0], 1) for rows in PRINTED.values()]
    assert gains == [2.9, 3.0]


def test_shipped_measurements_are_of_the_design():
    known = {f"{run.stem}.npz": run for run in design.made_up()}
    for path in SHIPPED.glob("*.npz"):
        found = measurements.read(path)
        assert found.specification == known[path.name].specification
        assert found.numbers["made"]["seconds"] > 0


def test_the_page_is_whole_without_any_detector(tmp_path, capsys):
    main(Arguments(seeds=1, controllers=("cbam",), out=tmp_path))
    assert (tmp_path / "report.html").is_file()
    assert "NOT COCO" in (tmp_path / "report.md").read_text()


def test_made_up_scenes_can_be_written_by_their_own_study(tmp_path, capsys):
    miniature.main(miniature.Arguments(name="coco", out=tmp_path, classes=2, each=2, height=40))
    data = detect.load(tmp_path / "coco", short=40)
    assert (data.train_count, len(data.test), data.name) == (4, 2, design.MADE_UP)
    assert "instances_train2017.json" in capsys.readouterr().out
