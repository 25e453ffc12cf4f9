"""cifar_tns: it measures what netbridge measures, knows what to do without data, and every picture can be seen."""

import contextlib
import dataclasses
import html
import io
import json
import re
import shlex
from html.parser import HTMLParser
from xml.etree import ElementTree

import markupsafe
import numpy as np
import pytest
import tyro
from matplotlib.image import imread

import netbridge as nb
from netbridge import data as datasets
from studies import cifar_tns as study
from studies.lab.networks import explain_absence, images_or_fallback
from studies.lab.page import Page
from studies.lab.report.terminal import COLUMNS, LINES
from studies.lab.results import as_json
from studies.lab.stiffness import KINDS, READINGS
from studies.lab.verdicts import SUPPORTED, Finding
from tests import browser

REAL_LOAD = datasets.load


def offline(name, root=None):
    return REAL_LOAD(name, root, download=False)


@pytest.fixture(scope="module")
def run(networks, tmp_path_factory):
    """One run as `make study` does it where there is no CIFAR; its folder and what it printed."""
    out, empty = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("no-data")
    arguments = study.Arguments(
        fallback="digits", data_root=empty, checkpoint=(networks,), images=40, resamples=20, device="cpu", out=out
    )
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.setattr(datasets, "load", offline)
        study.main(arguments)
    return out, said.getvalue()


# Data, and what to do without.


def test_without_data_the_study_names_three_remedies(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "load", offline)
    with pytest.raises(SystemExit) as stopped:
        study.main(study.Arguments(data_root=tmp_path, out=tmp_path / "out"))
    text = str(stopped.value)
    for remedy in ("1. with a network", "2. put cifar-10", "--data-root", "3. use --dataset digits"):
        assert remedy in text
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_fallback_is_said_first(run):
    out, said = run
    assert said.startswith("NOT cifar10")
    assert "digits" in said.split("\n\n")[0]
    page = (out / "report.html").read_text()
    assert page.index("NOT cifar10") < page.index("<h2>")
    record = json.loads((out / "record.json").read_text())
    assert record["arguments"]["dataset"] == "digits"
    assert record["numbers"]["notice"].startswith("NOT cifar10")


def test_with_data_there_is_no_notice():
    data, notice, arguments = images_or_fallback(
        "cifar_tns", study.Arguments(dataset="digits", fallback="digits"), "shows", explain_absence
    )
    assert data.name == "digits"
    assert notice == ""
    assert arguments.dataset == "digits"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"images": 501}, "between 2 and 500"),
        ({"images": 1}, "`--images`"),
        ({"resamples": 1}, "`--resamples`"),
        ({"controllers": ("dia",)}, "SE (depth 20, seed 0)"),
        ({"checkpoint": ("nowhere.safetensors",)}, "nowhere.safetensors"),
    ],
)
def test_what_cannot_be_done_is_said(networks, tmp_path, change, words):
    given = {"dataset": "digits", "checkpoint": (networks,), "out": tmp_path / "out", **change}
    with pytest.raises(SystemExit) as stopped:
        study.main(study.Arguments(**given))
    assert words in str(stopped.value)


def test_a_network_without_a_counted_block_is_refused(tmp_path):
    path = tmp_path / "resnet8.safetensors"
    nb.save(nb.resnet(8, 10), path)
    with pytest.raises(SystemExit, match="one block in every stage"):
        study.main(study.Arguments(dataset="digits", checkpoint=(path,), out=tmp_path / "out"))


# What it leaves behind.


def test_every_figure_is_there_and_not_blank(run):
    out, _ = run
    pictures = sorted(out.glob("*.png"))
    names = {picture.stem for picture in pictures}
    wanted = {f"{kind}_{of}" for kind in ("nsi_single", "nsi_depth", "gate", "gate_cloud") for of in KINDS}
    wanted |= {f"{kind}_{of}_{mu}" for kind in ("tns_surface", "proportion") for of, mu in READINGS}
    assert names == wanted | {"tns", "accuracy_tns"}
    for picture in pictures:
        colours = imread(picture)[..., :3]
        coloured = np.ptp(colours, axis=-1) > 0.15  # text, axes and grid are grey
        surface = picture.stem.startswith(("tns_surface", "proportion"))
        assert coloured.mean() > (0.3 if surface else 0.002), picture.name
        ElementTree.parse(picture.with_suffix(".svg"))


def test_tables_are_there_as_markdown_and_csv(run):
    out, _ = run
    for name in ("accuracy", "tns", "tns_over_constant", "degrees", "gate_slope", "correlations", "networks"):
        assert (out / f"{name}.md").read_text().count("|") > 10
        assert len((out / f"{name}.csv").read_text().splitlines()) > 1
    rows = json.loads((out / "record.json").read_text())["numbers"]["accuracy"]
    assert [row["controller"] for row in rows] == ["constant", "SE", "StepNet", "ASR(SE)"]
    assert [row["gain"].split(" ")[0] for row in rows] == ["", "+1.00", "+2.00", "+3.00"]
    assert rows[0]["standard deviation"] == "0.14"


class Tags(HTMLParser):
    """The addresses and tags of a page."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.tags, self.ids = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.ids += [value for name, value in attributes if name == "id"]
        self.addresses += [value for name, value in attributes if name in ("src", "href", "srcset", "data")]


def test_the_report_holds_everything_itself_and_its_links_lead_to_the_files_beside_it(run):
    out, _ = run
    text = (out / "report.html").read_text()
    page = Tags(text)
    assert not {"link", "iframe", "object"} & set(page.tags)
    assert page.tags.count("img") == len(list(out.glob("*.png")))
    for address in page.addresses:
        if not address.startswith("data:image/png;base64,"):
            assert address[1:] in page.ids or (out / address).is_file(), address
    assert "url(" not in text
    assert "@import" not in text
    for finding in json.loads((out / "record.json").read_text())["numbers"]["findings"]:
        assert finding["verdict"].capitalize() in text
        assert finding["rule"]["text"][:40] in html.unescape(text)
        assert str(markupsafe.escape(finding["here"])) in text


def test_the_page_begins_with_the_claims_and_a_picture_and_is_small(run):
    """Under 150 words before the first thing that is drawn, 3 MB, and 1,500 words that are not folded away."""
    out, _ = run
    text = (out / "report.html").read_text()
    assert len(text) < 3e6
    visible = re.sub(r"<(style|script).*?</\1>|<div class=.why.*?</details>", "", text, flags=re.DOTALL)
    assert len(words_of(visible[: re.search("<svg|<img", visible).start()])) < 150
    assert len(words_of(visible[: visible.index("fold")])) < 1500
    assert visible.index('class="claim"') < visible.index('class="hero"') < visible.index('class="fold"')


def words_of(text: str) -> list[str]:
    return re.sub("<[^>]+>", " ", text).split()


def test_a_run_prints_what_was_asked_the_strip_and_where_the_page_is(run):
    out, said = run
    lines = [line for line in said.rstrip().splitlines() if not line.startswith("file://")]
    assert len(lines) <= LINES
    assert all(len(line) <= COLUMNS for line in lines)
    assert "\nStiffness and accuracy" in said
    claims = json.loads((out / "record.json").read_text())["numbers"]["findings"]
    assert sum(any(line.endswith(one["verdict"]) for one in claims) for line in lines) == len(claims)
    assert said.rstrip().splitlines()[-1] == (out / "report.html").as_uri()


def test_the_command_in_the_report_repeats_the_run(run):
    out, _ = run
    record = json.loads((out / "record.json").read_text())
    words = shlex.split(record["command"])
    assert words[:3] == ["python", "-m", "studies.cifar_tns"]
    again = tyro.cli(study.Arguments, args=words[3:])
    for field in dataclasses.fields(again):
        assert as_json(getattr(again, field.name)) == record["arguments"][field.name]
    for report in ("report.html", "report.md"):
        assert record["command"] in html.unescape((out / report).read_text())


def test_words_are_escaped_and_what_is_no_number_is_null(tmp_path):
    page = Page("cifar_tns", study.Arguments(out=tmp_path), "a < b")
    page.findings([Finding("x & y", "<b>", SUPPORTED, "1 < 2")])
    page.table("odd", [{"|Q|": float("nan"), "<i>": float("inf")}], "A table", printed=False)
    page.close()
    text = (tmp_path / "report.html").read_text()
    for words in ("X &amp; y", "&lt;b&gt;", "<h1>a &lt; b</h1>", "<th>&lt;i&gt;</th>"):
        assert words in text
    assert "| \\|Q\\| | <i> |\n|---|---|\n| nan | inf |\n" in (tmp_path / "odd.md").read_text()
    record = json.loads((tmp_path / "record.json").read_text(), parse_constant=pytest.fail)
    assert record["numbers"]["odd"] == [{"|Q|": None, "<i>": None}]


def test_the_report_opens_in_a_browser_and_the_switch_goes_through_its_figures(run):
    if browser.find() is None:
        pytest.skip(f"no browser: none of {', '.join(browser.NAMES)} is installed")
    out, _ = run
    with browser.tab() as tab:
        tab.open(out / "report.html", width=400)
        tab.click("#all")
        assert tab.run("[...document.images].every(one => one.complete && one.naturalWidth > 0)")
        seen = set()
        for of, mu in READINGS:
            tab.click(f".switch [value={of}]")
            tab.click(f".switch [value={mu}]")
            seen |= set(tab.run("[...document.images].filter(one => one.offsetHeight).map(one => one.alt)"))
            assert tab.run("document.documentElement.scrollWidth") == 400
        assert seen == set(tab.run("[...document.images].map(one => one.alt)"))
        assert not tab.complaints
