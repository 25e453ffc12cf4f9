"""The study of detectors: what is trained is what the design says, and what rules count as units."""

import numpy as np
import pytest
import torch

import netbridge as nb
from netbridge import detect
from netbridge.detect.evaluation import NAMES
from studies import detect as study
from studies import miniature
from studies.lab import measurements
from studies.lab.exhibits import judge
from studies.lab.measurements import Measurement
from studies.lab.stiffness import KINDS, QUANTITIES, READINGS, SCALE, SHAPE, TNS
from studies.lab.verdicts import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
)

pytest.importorskip("pycocotools")
NOISE = (-0.02, 0.0, 0.02)


def measured(row, seed, precision, tns, scale=0.5):
    numbers = dict.fromkeys(NAMES, precision) | {"APL": None, "parameters": 7, "first": [True, False]}
    moment = {"tns": [tns] * len(READINGS), "nsi": [9.0, scale], "scale": dict.fromkeys(KINDS, scale)}
    return Measurement({"controller": row, "seed": seed}, numbers | {"before": moment, "after": moment}, {})


def detectors(gains, tns=None, noise=NOISE, rows=study.ROWS):
    """A detector of every row and seed; `gains` and `tns` say by how much a row lies above 30 and 0.5."""
    tns = tns or {}
    return [
        measured(row, seed, 30 + gains.get(row, 0.0) + shift, 0.5 + tns.get(row, 0.0) + shift)
        for row in rows
        for seed, shift in enumerate(noise)
    ]


def verdicts(found):
    """In the order of the findings: gains, the best, stiffness and relation, each of TNS, scale and shape."""
    return [finding.verdict for finding in judge(study.EXHIBITS, study.Evidence(found))]


OTHERS = study.ROWS[1:]


def test_backbones_of_the_rows_differ_in_their_controllers_only():
    bodies = {run.controller: run.untrained_detector(("one", "two")).backbone for run in study.made_up(seeds=1)}
    for row, body in bodies.items():
        assert isinstance(body, nb.Network)
        assert torch.equal(body.stem.conv.weight, bodies["constant"].stem.conv.weight), row
    assert bodies["sge"].blocks[1].controller.groups == 8


def test_a_backbone_with_weights_is_frozen_as_the_papers_toolkit_does():
    run = study.Run("se", 0, "coco", study.schedule("1x"), 50)
    assert run.specification["settings"]["features"] == detect.Settings().features
    with torch.device("meta"):
        fresh = run.untrained_detector(("one",))
        trained = run.untrained_detector(("one",), run.untrained_detector(("one",)).backbone)
    assert (fresh.frozen_stages, fresh.frozen_norms) == (0, False)
    assert (trained.frozen_stages, trained.frozen_norms) == (1, True)


def test_the_schedule_grows_with_its_name_and_the_rate_with_the_batch():
    once, twice = study.schedule("1x"), study.schedule("2x", batch=8)
    assert (once.epochs, once.drops, once.batch, once.lr) == (12, (8, 11), 16, 0.02)
    assert (twice.epochs, twice.drops, twice.batch, twice.lr) == (24, (16, 22), 8, 0.01)
    with pytest.raises(ValueError, match="`--schedule` must be 1x, 2x"):
        study.schedule("soon")


def test_a_run_is_made_once_and_found_again(tmp_path):
    run = study.smoke()[0]
    data = study.scenes(run, tmp_path)
    assert study.scenes(run, tmp_path).digest() == data.digest()
    made = study.carry_out(run, data, tmp_path, machine=study.Machine("cpu"))
    found = measurements.find(run, (tmp_path,))
    assert found.numbers["AP"] == made.numbers["AP"]
    assert not list(tmp_path.glob("*.safetensors"))
    nsi = found.arrays["nsi_after"]
    assert nsi.shape == (run.pictures[1], 9)
    np.testing.assert_allclose(nsi.mean(0), found.numbers["after"]["nsi"], rtol=1e-5)
    assert len(found.numbers["before"]["tns"]) == len(READINGS)
    counted = [k for k, opens in enumerate(found.numbers["first"]) if not opens]
    assert found.numbers["after"]["scale"]["slope"] == pytest.approx(nsi[:, counted].mean(), rel=1e-5)
    assert measurements.find(study.smoke()[1], (tmp_path,)) is None


def test_calibration_leaves_the_detector_as_it_is(tmp_path):
    run = study.smoke()[0]
    data = study.scenes(run, tmp_path)
    net = run.untrained_detector(data.names)
    before = {name: x.clone() for name, x in net.state_dict().items()}
    other = study.calibrate(net, data)
    assert all(torch.equal(x, before[name]) for name, x in net.state_dict().items())
    assert float(other.backbone.stem.bn.running_var.max()) != 1.0


def test_branches_that_are_twice_as_large_change_the_scale_and_not_the_shape():
    """The fault of Figure 2: a gate of one half lets a branch grow twofold, and its TNS with it."""
    found = [
        measured(row, seed, 30.0, (1.0 + shift) * (2.0 if row in OTHERS else 1.0), (2.0 if row in OTHERS else 1.0))
        for row in study.ROWS
        for seed, shift in enumerate(NOISE)
    ]
    by_quantity = {what: study.STIFFER[what](study.by_reading(found, what)).verdict for what in QUANTITIES}
    assert by_quantity[TNS] == SUPPORTED
    assert by_quantity[SHAPE] == UNDECIDED
    larger = [study.stiffness(one, SCALE, QUANTITIES[SCALE][0]) for one in found]
    assert set(larger) == {1.0, 2.0}


def test_detectors_of_before_have_the_scale_of_the_slope_alone():
    found = detectors({})
    for one in found:
        del one.numbers["after"]["scale"]
    assert list(study.by_reading(found, SCALE)) == [("slope",)]
    assert list(study.by_reading(found, SHAPE)) == [reading for reading in READINGS if reading[0] == "slope"]
    assert study.stiffness(found[0], SCALE, ("slope",)) == 0.5
    assert np.isnan(study.stiffness(found[0], SHAPE, ("increment", "sample")))


def test_rows_are_the_units_of_a_relation():
    """Five rows decide nothing, however many seeds they have; ten rows in one order do."""
    few = {row: 0.5 * place for place, row in enumerate(study.ROWS)}
    assert verdicts(detectors(few, few, np.linspace(-0.01, 0.01, 20)))[5] == UNDECIDED
    rows = [f"row {place}" for place in range(10)]
    rising = {row: 0.5 * place for place, row in enumerate(rows)}
    falling = {row: -value for row, value in rising.items()}
    for tns, verdict in ((rising, SUPPORTED), (falling, CONTRADICTED)):
        found = detectors(rising, tns, rows=rows)
        assert verdicts(found)[5] == verdict
    assert len(study.by_row(found, study.ap)) == 15  # the design's rows are empty


def test_the_table_has_a_row_for_each_backbone_and_says_where_no_object_is_of_a_size():
    rows = study.rows_of_table_3(detectors({"se": 1.0}))
    assert [row["backbone"] for row in rows] == list(study.ROWS)
    assert rows[1]["AP"].startswith("31.0 [")
    assert rows[1]["APL"] == "none"


def test_the_printed_gains_are_those_the_text_names():
    gains = [round(rows["stepnet"][0] - rows["constant"][0], 1) for rows in study.PRINTED.values()]
    assert gains == [2.9, 3.0]


def test_the_page_is_whole_without_any_detector(tmp_path, capsys):
    study.main(study.Arguments(seeds=1, controllers=("cbam",), out=tmp_path))
    assert (tmp_path / "report.html").is_file()
    assert "NOT COCO" in (tmp_path / "report.md").read_text()


def test_made_up_scenes_can_be_written_by_their_own_study(tmp_path, capsys):
    miniature.main(miniature.Arguments(name="coco", out=tmp_path, classes=2, each=2, height=40))
    data = detect.load(tmp_path / "coco", short=40)
    assert (data.train_count, len(data.test), data.name) == (4, 2, study.MADE_UP)
    assert "instances_train2017.json" in capsys.readouterr().out
