"""The report: what stands between backticks is code, nothing else is markup, and a smoke run says that it is one."""

import dataclasses
from pathlib import Path

import pytest

from studies.lab.page import SMOKE, Page
from studies.lab.verdicts import UNDECIDED, Finding


@dataclasses.dataclass
class Arguments:
    out: Path
    smoke: bool = False


@pytest.mark.parametrize("smoke", [False, True])
def test_code_and_warnings_of_a_report(tmp_path, smoke):
    page = Page("stiff_euler", Arguments(tmp_path, smoke), "A title", "", "First a warning.")
    page.words("Run `make <all>` & look.")
    page.findings([Finding("a claim", "here", UNDECIDED, "`--train` goes on.")])
    page.close()
    text = (tmp_path / "report.html").read_text()
    assert "Run <code>make &lt;all&gt;</code> &amp; look." in text
    assert "<code>--train</code> goes on." in text
    assert f'<p class="notice">First a warning.{" " + SMOKE if smoke else ""}</p>' in text
    assert "Run `make <all>` & look." in (tmp_path / "report.md").read_text()
