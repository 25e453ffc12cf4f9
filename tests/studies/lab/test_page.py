"""The report: what stands between backticks is code, nothing else is markup, and a smoke run says that it is one."""

import re

import pytest

from odelab.plot import style
from studies.lab.page import LONG, SMOKE, Page, exhibits_of
from studies.lab.report.terminal import COLUMNS, LINES
from studies.lab.verdicts import UNDECIDED, Finding
from tests.studies.pages import Arguments


@pytest.mark.parametrize("smoke", [False, True])
def test_code_and_warnings_of_a_report(tmp_path, smoke):
    page = Page("stiff_euler", Arguments(tmp_path, smoke), "A title", "", "First a warning.")
    page.lead("The best `news`.")
    page.words("Run `make <all>` & look.")
    page.findings([Finding("a claim", "here", UNDECIDED, "`--train` goes on.")])
    page.close()
    text = (tmp_path / "report.html").read_text()
    assert "Run <code>make &lt;all&gt;</code> &amp; look." in text
    assert "<code>--train</code> goes on." in text
    assert text.index('<p class="lead">The best <code>news</code>.</p>') < text.index(
        'aria-label="Claims and verdicts"'
    )
    assert f'<p class="notice">First a warning.{" " + SMOKE if smoke else ""}</p>' in text
    assert "Run `make <all>` & look." in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize("verbose", [False, True])
def test_tables_are_printed_on_request_and_long_ones_are_a_link(tmp_path, capsys, verbose):
    page = Page("stiff_euler", Arguments(tmp_path, verbose=verbose), "A title", "Of two networks.")
    page.table("short", [{"a column": k} for k in range(LONG)], "A short table")
    page.table("long", [{"another column": k} for k in range(LONG + 1)], "A long table")
    page.close()
    said, text = capsys.readouterr().out, (tmp_path / "report.html").read_text()
    assert said.startswith("A title\nOf two networks.\n")
    assert ("a column" in said) == ("long.csv" in said) == verbose
    assert "<th>a column</th>" in text
    assert "<th>another column</th>" not in text
    assert '<a href="long.csv">A long table</a> (21 rows, CSV)' in text
    assert len((tmp_path / "long.csv").read_text().splitlines()) == LONG + 2


def test_the_parts_of_a_page_have_their_places(tmp_path):
    """Warnings, claims, the hero and conclusions; then a fold for every heading that has something left."""
    page = Page("stiff_euler", Arguments(tmp_path), "A title")
    page.heading("What these data say")
    page.findings([Finding("a claim", "Figures 2 and 6, Section 3.1", UNDECIDED, "Words.")])
    for name, hero in (("first", False), ("second", True)):
        page.heading(f"The {name} part (Figure {6 if hero else 1})")
        page.words(f"Words of the {name}.")
        with style.figure() as (drawing, _):
            page.figure(drawing, name, f"Caption of the {name}. More.", hero=hero)
    page.warn("A warning.")
    page.conclusions(["A conclusion."])
    page.close()
    text = (tmp_path / "report.html").read_text()
    parts = ("A warning.", "A claim", "Caption of the second", "A conclusion", "The first part", "Caption of the first")
    places = [text.index(part) for part in (*parts, "The second part", "Words of the second")]
    assert places == sorted(places)
    assert "What these data say" not in text  # nothing but the claim stood there
    assert '<a href="#evidence-2">' in text
    code = re.findall(r"<code>(tests/[^<]*)</code>", text)
    assert {line.split(":")[0] for line in code} == {"tests/studies/lab/test_page.py"}
    assert (tmp_path / "data" / "second.csv").is_file()


@pytest.mark.parametrize("claims", [0, 1, 10, 40])
def test_a_run_prints_at_most_25_lines_however_much_there_is_to_say(tmp_path, capsys, claims):
    page = Page("stiff_euler", Arguments(tmp_path), "A title " * 30, "Many words. " * 60)
    page.warn("A warning. " * 60)
    page.findings([Finding(f"claim {k}", "here", UNDECIDED, "Words. " * 30) for k in range(claims)])
    page.conclusions(["A conclusion. " * 20] * claims)
    page.close()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= LINES
    assert all(len(line) <= COLUMNS for line in lines[:-1])
    assert lines[-1] == (tmp_path / "report.html").as_uri()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("Stiffness along depth (Figures 1, 3 and 10)", {"Figure 1", "Figure 3", "Figure 10"}),
        ("Figure 7, Section 3.1", {"Figure 7", "Section 3.1"}),
        ("Speed and merging (Table 1, Figure 3)", {"Table 1", "Figure 3"}),
        ("Figures 2c, 11 to 13", {"Figure 2c", "Figure 11", "Figure 12", "Figure 13"}),
        ("Table 4, Figures 1-2", {"Table 4", "Figure 1", "Figure 2"}),
        ("Appendix D", {"Appendix D"}),
        ("Conclusions", set()),
    ],
)
def test_which_figures_and_tables_a_heading_names(words, named):
    assert exhibits_of(words) == named
