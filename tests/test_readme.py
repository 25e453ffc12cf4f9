"""The README's uses run as they stand, and the list of studies names all that exist."""

import re
from pathlib import Path

import pytest

from studies.__main__ import names

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.strip().splitlines()[-1][:40])
def test_block_runs(block, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})


def test_there_are_four_uses_and_every_study_is_listed():
    assert len(BLOCKS) >= 4
    for name in names():
        assert f"studies.{name}" in (ROOT / "docs" / "studies.md").read_text(), (
            f"{name} is missing from docs/studies.md"
        )


def test_it_is_read_in_a_few_minutes():
    assert len(README.splitlines()) <= 100
