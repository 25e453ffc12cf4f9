"""The page over all reports: every claim in one row, the newest report of a study, and what nobody has run."""

import html
import json
import re

import pytest

from studies import _index
from studies.lab.page import Page
from studies.lab.statistics import Estimate
from studies.lab.verdicts import Worlds, of_interval, rule
from tests.studies.pages import Arguments


def judge(estimate):
    """Supported where the whole interval is above zero."""
    return of_interval(estimate), "So far."


def rule_of(claim):
    worlds = Worlds(lambda *_: (), n=5, units="seeds", effect="one")
    judged = rule(claim, "Figure 7", worlds=worlds, variant=claim)(judge)
    return judged


ASKED, UNASKED = (rule_of(claim) for claim in ("Attention <helps>.", "Nobody asked this."))


@pytest.fixture
def name():
    """The study that the rules above count as, by the module of their judge."""
    return ASKED.name.split(".")[0]


def report(folder, study, value, date, smoke=False):
    page = Page(study, Arguments(folder, smoke), "A title")
    page.findings([ASKED(Estimate(value, value - 0.1, value + 0.1, n=5))])
    page.close()
    record = json.loads((folder / "record.json").read_text())
    (folder / "record.json").write_text(json.dumps(record | {"date": date}))


def verdicts(text):
    return re.findall(r'class="verdict [^>]*>([^<]+)<', text)


def test_a_row_for_every_claim_from_the_newest_report_that_is_no_smoke_run(tmp_path, name, capsys):
    report(tmp_path / "old", name, 1.0, "2026-01-01")
    report(tmp_path / "new", name, -1.0, "2026-01-02")
    report(tmp_path / "smoke", name, 1.0, "2026-01-03", smoke=True)
    capsys.readouterr()
    page = _index.write(tmp_path, {"A paper": (name,), "An empty one": ("none",)}, {name: [ASKED, UNASKED]})
    text = page.read_text()
    assert verdicts(text) == ["Contradicted", "Not run"]
    assert "An empty one" not in text
    assert html.escape(ASKED.claim) in text
    link = re.search(r'href="([^"#]+)#([^"]+)"', text)
    assert link[1] == "new/report.html"
    assert f'id="{link[2]}"' in (tmp_path / link[1]).read_text()
    assert f"python -m studies.{name}" in text
    said = capsys.readouterr().out.splitlines()
    assert said == ["1 report. 2 claims: 1 contradicted, 1 not run.", page.resolve().as_uri()]


def test_without_reports_every_claim_is_not_run(tmp_path, name):
    page = _index.write(tmp_path / "nothing", {"A paper": (name,)}, {name: [ASKED, UNASKED]})
    assert verdicts(page.read_text()) == ["Not run", "Not run"]
