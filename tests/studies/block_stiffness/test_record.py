"""What a large run leaves behind is read again, and stays small."""

import math
from pathlib import Path

from studies.block_stiffness import record
from studies.block_stiffness.__main__ import Arguments, without_places
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
