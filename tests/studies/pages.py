"""What every page of a study keeps to, whatever it shows: asked of smoke runs and of pages on made-up numbers."""

import dataclasses
import html
import importlib
import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import markupsafe
import numpy as np
import pytest
import tyro
from matplotlib.image import imread

from studies.__main__ import source_of
from studies.lab.report.terminal import COLUMNS, LINES
from studies.lab.results import as_json
from studies.lab.verdicts import KINDS


@dataclasses.dataclass
class Arguments:
    """The options of a page that a test makes by itself."""

    out: Path
    smoke: bool = False
    verbose: bool = False


class Tags(HTMLParser):
    """The addresses, the tags and the ids of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.addresses: list = []
        self.tags: list = []
        self.ids: list = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.addresses += [value for name, value in attrs if name in ("src", "href", "srcset", "data")]


def module_of(name: str):
    return importlib.import_module(f"studies.{name}" if source_of(name).stem == name else f"studies.{name}.__main__")


def words_of(text: str) -> list[str]:
    return re.sub("<[^>]+>", " ", text).split()


def read_record(out: Path) -> dict:
    (path,) = out.glob("*record.json")  # of a training, with the network's name before it
    return json.loads(path.read_text(), parse_constant=pytest.fail)  # NaN and Infinity are no JSON


def check_record(out: Path) -> dict:
    """A record is complete, and its command repeats the run. Returns the record."""
    record = read_record(out)
    assert record["versions"]["odelab"]
    assert record["numbers"]
    assert record["files"]
    assert all((out / file).stat().st_size > 0 for file in record["files"])
    words = shlex.split(record["command"])
    assert words[:3] == ["python", "-m", f"studies.{record['study']}"]
    again = tyro.cli(module_of(record["study"]).Arguments, args=words[3:])
    for field in dataclasses.fields(again):
        if not again.smoke or field.name in ("smoke", "out"):  # --smoke chooses the others
            assert as_json(getattr(again, field.name)) == record["arguments"][field.name]
    return record


def check(out: Path, said: str = "", before: int = 1500) -> dict:
    """Everything that holds for all pages. Returns the numbers of the record.

    said    what the run printed
    before  how many words may stand before what is drawn first
    """
    record, text, report = check_record(out), (out / "report.html").read_text(), (out / "report.md").read_text()
    check_figures(out, report, 0.0 if record["arguments"]["smoke"] else 0.0003)
    for table in out.glob("*.csv"):
        assert len(table.read_text().splitlines()) > 1
        assert (out / f"{table.stem}.md").read_text().count("|") > 3, table
    page = Tags(text)
    assert not {"link", "iframe", "object"} & set(page.tags)
    assert "url(" not in text
    assert "@import" not in text
    assert "NaN" not in report
    for address in page.addresses:
        if not address.startswith("data:image/png;base64,"):
            assert address[1:] in page.ids or (out / address).is_file(), address
    findings = record["numbers"].get("findings", [])
    assert len({one["claim"] for one in findings}) == len(findings)
    for finding in findings:
        assert finding["verdict"] in {kind.kind for kind in KINDS}
        assert finding["verdict"].capitalize() in text
        assert finding["rule"]["text"][:40] in html.unescape(text)
        assert str(markupsafe.escape(finding["here"])) in text
    for plain in (html.unescape(text), report):
        assert record["command"] in plain
    check_length(text, before)
    if said:
        check_terminal(out, said, text)
    return record["numbers"]


def check_figures(out: Path, report: str, coloured: float) -> None:
    """Every figure is in the report, can be seen, has a share of coloured pixels, and is drawn as SVG as well."""
    for picture in out.glob("*.png"):
        assert f"]({picture.name})" in report
        colours = imread(picture)[..., :3]
        assert (colours < 0.9).any(axis=-1).mean() > 0.005, picture.name
        assert (np.ptp(colours, axis=-1) > 0.15).mean() >= coloured, picture.name  # text, axes and grid are grey
        ElementTree.parse(picture.with_suffix(".svg"))


def check_length(text: str, before: int) -> None:
    """Few words before what is drawn first, 3 MB, and 1,500 words that are not folded away."""
    assert len(text) < 3e6
    visible = re.sub(r"<(style|script).*?</\1>|<div class=.why.*?</details>", "", text, flags=re.DOTALL)
    drawn = re.search("<svg|<img", visible)
    assert drawn is None or len(words_of(visible[: drawn.start()])) < before
    outside = re.sub(r"<svg\b.*?</svg>", " ", visible, flags=re.DOTALL)
    fold = r"<details\b[^>]*>\s*(<summary\b(?:(?!</summary>).)*</summary>)(?:(?!<details\b).)*?</details>"
    while (shorter := re.sub(fold, r"\1", outside, flags=re.DOTALL)) != outside:
        outside = shorter
    assert len(words_of(outside)) <= 1500


def check_terminal(out: Path, said: str, text: str) -> None:
    """What is asked, the strip of claims and where the page is, in a few lines that end where the terminal does."""
    title = html.unescape(text.split("<h1>")[1].split("</h1>")[0])
    lines = said[said.index(title[:60]) :].rstrip().splitlines()  # what trainings say stands before it
    assert lines[-1] == (out / "report.html").as_uri()
    assert len(lines) <= LINES, said
    assert max(map(len, lines[:-1])) <= COLUMNS, said
