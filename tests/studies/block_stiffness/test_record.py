"""What a large run leaves behind is read again, and stays small."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import torch

import netbridge as nb
from netbridge.spectrum.survey import ROW
from studies.block_stiffness import measures, record, slices_alone
from studies.block_stiffness.__main__ import Arguments, without_places
from studies.block_stiffness.findings import evidence
from studies.block_stiffness.report import tables
from studies.lab.command import command_line


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "kept.jsonl"
    tables = {"by_block": [{"block": 1, "S": -1.23456789}, {"block": 2, "S": math.nan}], "not shipped": [{"a": 1}]}
    record.write({"network": "it", "digest": "abc"}, tables, path)
    about, found = record.read(path)
    assert about["network"] == "it"
    assert {"date", "commit"} <= set(about)
    assert list(found) == ["by_block"]
    assert found["by_block"][0] == {"block": 1, "S": -1.2346}
    assert math.isnan(found["by_block"][1]["S"])
    assert record.read(tmp_path / "nothing") is None


def test_verdicts_are_judged_anew_from_what_is_kept():
    """The record holds numbers and no words: every rule of today can be asked of them."""
    for path in record.SHIPPED.glob("full-*.jsonl"):
        about, rows = record.read(path)
        found = evidence.of_record((about, rows))
        assert "verdicts" not in rows
        assert {one.reading for one in found.relations} == {"slices", "residual", "block"}
        assert {type(number) for one in found.relations for number in (one.r, one.p)} == {float}
        assert {fit.rounds for fit in found.fits} == {1500}
        assert all(dataclasses.asdict(one)["labels"] == 10 for one in found.components)


def test_weights_are_named_by_their_digest():
    net = nb.pretrained("digits/resnet32-width4-constant-seed0")
    before = record.digest_of(net)
    assert before == record.digest_of(nb.pretrained("digits/resnet32-width4-constant-seed0"))
    with torch.no_grad():
        net.head.fc.bias[0] += 1e-3
    assert record.digest_of(net) != before


def test_the_command_of_a_shipped_run_names_no_folder_and_no_machine():
    given = Arguments(
        ship=True, out=Path("/home/a/out"), cache=Path("/home/a/cache"), data_root=Path("/home/a/data"), device="cuda",
        scheduler="tcp://10.0.0.1:8786", checkpoint=(Path("/home/a/mine.safetensors"), Path("other.pt")), images=3,
    )  # fmt: skip
    shown = command_line("block_stiffness", without_places(given))
    assert shown == "python -m studies.block_stiffness --checkpoint mine.safetensors other.pt --images 3 --ship"


def test_all_that_comes_with_the_study_is_small():
    files = list(record.SHIPPED.glob("*.jsonl"))
    assert files
    assert sum(file.stat().st_size for file in files) <= 400_000
    for file in files:
        if file.name.startswith("full-"):
            about, found = record.read(file)
            assert {"date", "commit", "dataset", "network", "digest", "command", "images a label"} <= set(about)
            assert set(found) <= set(record.TABLES)
    for path in record.SHIPPED.glob("slices-*.npz"):
        alone = slices_alone.read(path)
        assert path.stat().st_size <= 500_000
        assert alone.about["digest"] == record.digest_of(nb.pretrained(alone.about["network"]))


def test_a_run_reproduces_a_record_within_the_intervals_of_its_images():
    """Twelve images of two blocks: a record of the same means is reproduced, one that is off by a deviation is not."""
    random = np.random.default_rng(0)
    table = np.zeros(24, ROW)
    table["image"], table["kind"] = np.tile(np.arange(12), 2), "residual"
    table["block"] = np.repeat(["stages.0.blocks.0", "stages.2.blocks.1"], 12)
    for name in ("negative", "max_re", "min_re"):
        table[name] = random.standard_normal(24)
    found = measures.Measured("it", ("stages.0.blocks.0", "stages.2.blocks.1"), table, *[np.zeros(12)] * 4)
    kept = [
        {"block": number, "reading": "branch", "negative, %": 100 * own["negative"].mean() + off}
        | {"max Re": own["max_re"].mean() + off, "min Re": math.nan}
        for number, (own, off) in enumerate(((table[:12], 0.0), (table[12:], 200.0)), 1)
    ]
    rows = tables.reproduction_rows(found, kept)
    assert [(row["block"], row["mean of"], row["reproduced"]) for row in rows] == [
        (1, "negative, %", "yes"), (1, "max Re", "yes"), (2, "negative, %", "no"), (2, "max Re", "no"),
    ]  # fmt: skip
    assert tables.reproduction_rows(found, []) == []
