"""The rehearsal of the papers' scale, part by part: from made-up data to the page, by the commands that users type."""

import pytest

from tests.rehearse import PARTS, main


@pytest.mark.slow
@pytest.mark.rehearsal
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", PARTS)
def test_a_plan_goes_from_data_to_page(name, tmp_path):
    PARTS[name](tmp_path)


def test_a_part_that_is_not_known_is_named(capsys):
    assert main(["asr", "nonsense"]) == 2
    assert "knows asr, table" in capsys.readouterr().out
