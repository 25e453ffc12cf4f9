"""cifar_tns: it measures what netbridge measures, knows what to do without data, and every picture can be seen."""

import contextlib
import io
import json

import pytest

from studies import cifar_tns as study
from studies.lab.page import Page
from studies.lab.stiffness import KINDS, READINGS
from studies.lab.verdicts import SUPPORTED, Finding
from tests.studies import pages


@pytest.fixture(scope="module")
def run(networks, offline, tmp_path_factory):
    """One run as `make study` does it where there is no CIFAR; its folder and what it printed."""
    out = tmp_path_factory.mktemp("out")
    arguments = study.Arguments(
        fallback="digits", data_root=offline, checkpoint=(networks,), images=40, resamples=20, device="cpu", out=out
    )
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        study.main(arguments)
    return out, said.getvalue()


def test_a_page_without_cifar_says_so_first_and_has_everything(run):
    out, said = run
    numbers = pages.check(out, said, before=150)
    names = {f"{kind}_{of}" for kind in ("nsi_single", "nsi_depth", "gate", "gate_cloud") for of in KINDS}
    names |= {f"{kind}_{of}_{mu}" for kind in ("tns_surface", "proportion") for of, mu in READINGS}
    assert {picture.stem for picture in out.glob("*.png")} == names | {"tns", "accuracy_tns"}
    assert said.startswith("NOT cifar10")
    assert "digits" in said.split("\n\n")[0]
    page = (out / "report.html").read_text()
    assert page.index("NOT cifar10") < page.index("<h2>")
    assert page.index('class="claim"') < page.index('class="hero"') < page.index('class="fold"')
    assert pages.read_record(out)["arguments"]["dataset"] == "digits"
    assert numbers["notice"].startswith("NOT cifar10")
    rows = numbers["accuracy"]
    assert [row["controller"] for row in rows] == ["constant", "SE", "StepNet", "ASR(SE)"]
    assert [row["gain"].split(" ")[0] for row in rows] == ["", "+1.00", "+2.00", "+3.00"]
    assert rows[0]["standard deviation"] == "0.14"


# Data, and what to do without.


# What it leaves behind.


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
