"""cifar_tns: what it says follows from the numbers, and every picture of it can be seen."""

import base64
import contextlib
import dataclasses
import io
import json
import shlex
import shutil
import subprocess
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
import tyro
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.image import imread

import netbridge as nb
import odelab as ol
from netbridge import data as datasets
from studies import _networks, cifar_tns
from studies._cifar_findings import Finding, correlation_finding
from studies._cifar_tables import accuracy_errors
from studies._measure import KINDS, READINGS, measure, total_stiffness
from studies._statistics import (
    CONTRADICTED,
    FEWEST,
    MIXED,
    PARTLY,
    SUPPORTED,
    UNDECIDED,
    choices,
    correlation,
    counted,
    estimate,
    mean_of,
    together,
)

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SWITCHES = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr")
SWITCHES += ("--virtual-time-budget=10000",)
REAL_LOAD = datasets.load


def offline(name, root=None):
    return REAL_LOAD(name, root, download=False)


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    """Untrained networks with recorded accuracies: enough to measure and to draw."""
    folder = tmp_path_factory.mktemp("networks")
    normalisation = REAL_LOAD("digits").normalisation
    for place, controller in enumerate(("constant", "se", "stepnet", nb.asr("se"))):
        for seed in (0, 1):
            torch.manual_seed(10 * place + seed)
            net = nb.resnet(20, 10, controller=controller)
            net.normalisation = normalisation
            about = {"seed": seed, "test_accuracy": 0.9 + 0.01 * place + 0.002 * seed}
            nb.save(net, folder / f"{place}-{seed}.safetensors", about)
    return folder


@pytest.fixture(scope="module")
def run(networks, tmp_path_factory):
    """One run as `make study` does it where there is no CIFAR; its folder and what it printed."""
    out, empty = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("no-data")
    arguments = cifar_tns.Arguments(
        fallback="digits", data_root=empty, checkpoint=(networks,), images=40, resamples=20, device="cpu", out=out
    )
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.setattr(datasets, "load", offline)
        cifar_tns.main(arguments)
    return out, said.getvalue()


# What is said follows from the numbers.


@given(st.permutations(range(8)), st.integers(0, 3))
@settings(deadline=None, max_examples=15)
def test_the_opposite_order_of_accuracies_gives_the_opposite_verdict(order, seed):
    ranks = np.arange(8.0)
    accuracies = 90.0 + np.array(order, dtype=float)
    opposite = {SUPPORTED: CONTRADICTED, CONTRADICTED: SUPPORTED, UNDECIDED: UNDECIDED}
    here, there = correlation(ranks, accuracies, 60, seed), correlation(ranks, -accuracies, 60, seed)
    assert there.verdict == opposite[here.verdict]
    assert there.kendall.value == pytest.approx(-here.kendall.value)
    stretched = correlation(np.exp(ranks), accuracies, 60, seed)
    assert stretched.verdict == here.verdict
    assert stretched.kendall.value == here.kendall.value


@given(st.permutations(range(FEWEST - 1)))
@settings(deadline=None, max_examples=10)
def test_too_few_networks_never_decide(order):
    found = correlation(np.arange(FEWEST - 1.0), np.array(order, dtype=float), 50)
    assert found.verdict == UNDECIDED
    finding = correlation_finding(dict.fromkeys(READINGS, found))
    assert finding.verdict == UNDECIDED
    assert f"n = {FEWEST - 1}" in finding.words
    assert "cannot decide" in finding.words


def synthetic(kind, n=14):
    rng = np.random.default_rng(3)
    accuracies = np.linspace(88.0, 92.0, n)
    tns = {
        "rising": accuracies + 0.1 * rng.normal(size=n),
        "falling": -accuracies,
        "scattered": np.abs(accuracies - accuracies.mean()),  # symmetric: no order to be found
    }[kind]
    return correlation(tns, accuracies, 200)


@pytest.mark.parametrize(
    ("kind", "verdict", "word"),
    [
        ("rising", SUPPORTED, "support the claim under all four"),
        ("falling", CONTRADICTED, "contradict the claim under all four"),
        ("scattered", UNDECIDED, "neither support the claim nor contradict it"),
    ],
)
def test_the_statement_on_synthetic_data(kind, verdict, word):
    finding = correlation_finding(dict.fromkeys(READINGS, synthetic(kind)))
    assert finding.verdict == verdict
    assert word in finding.words
    assert "n = 14" in finding.words


def test_the_statement_names_the_readings_where_they_disagree():
    found = {reading: synthetic("rising" if reading[0] == "slope" else "falling") for reading in READINGS}
    finding = correlation_finding(found)
    assert finding.verdict == MIXED
    assert "supported for slope NSI, sample mean; slope NSI, data-set mean" in finding.words
    assert "contradicted for increment NSI, sample mean; increment NSI, data-set mean" in finding.words


def test_equal_accuracies_cannot_be_ranked():
    found = correlation(np.arange(9.0), np.full(9, 90.0), 50)
    assert found.verdict == UNDECIDED
    assert np.isnan(found.kendall.value)
    assert "undefined" in correlation_finding(dict.fromkeys(READINGS, found)).words


def test_verdicts_are_put_together_and_counted():
    assert together([SUPPORTED] * 4) == SUPPORTED
    assert together([CONTRADICTED] * 4) == CONTRADICTED
    assert together([SUPPORTED, UNDECIDED]) == together([SUPPORTED, CONTRADICTED]) == MIXED
    assert together([CONTRADICTED, UNDECIDED]) == UNDECIDED
    assert together([PARTLY, UNDECIDED]) == PARTLY
    assert [counted(3, 0, 3), counted(0, 3, 3), counted(1, 1, 3), counted(2, 0, 3)] == [
        SUPPORTED,
        CONTRADICTED,
        PARTLY,
        UNDECIDED,
    ]


def test_differences_are_paired():
    draws = np.random.default_rng(0).normal(size=500)
    one, other = estimate(1.0, 1.0 + draws), estimate(3.0, 3.0 + draws)
    difference = other.minus(one)
    assert (difference.value, difference.low, difference.high) == pytest.approx((2.0, 2.0, 2.0))
    assert mean_of([one, other]).value == 2.0


def test_an_interval_of_a_mean_is_the_one_known():
    values = np.random.default_rng(1).normal(size=2000)
    chosen = choices(2000, 500, 0)
    found = estimate(values.mean(), values[chosen].mean(axis=1))
    assert found.high - found.low == pytest.approx(2 * 1.96 * values.std() / 2000**0.5, rel=0.15)


# What is measured is what netbridge and odelab measure.


def test_measured_is_traced(networks):
    data = REAL_LOAD("digits")
    one = _networks.named([_networks.subject(networks / "1-0.safetensors")])[0]
    found = measure(one, data, 150, "cpu")  # more than a batch
    net = nb.load(networks / "1-0.safetensors")
    images = net.normalise(data.test_images[:150].float() / 255)
    for of in ("slope", "increment"):
        record = nb.trace(net, images, of=of)
        np.testing.assert_allclose(found.records[of].nsi, record.nsi, rtol=1e-4)
    with torch.no_grad():
        right = net(images).argmax(1) == data.test_labels[:150]
        first = net.stages[0].blocks[0]
        state = net.stem(images)
        gate = first.controller(state, first.branch(state)).mean((1, 2, 3))
    assert (found.correct == right.numpy()).mean() > 0.99
    np.testing.assert_allclose(found.gates[:, 0], gate, rtol=1e-4)
    total_stiffness(found, choices(150, 10, 0))
    counted_only = found.records["slope"].counted()
    assert found.tns["slope", "dataset"].value == pytest.approx(
        ol.tns(counted_only.nsi, counted_only.stage, "dataset").mean()
    )
    assert found.accuracy == pytest.approx(91.0)


def test_constant_steps_are_one(networks):
    one = _networks.subject(networks / "0-0.safetensors")
    assert (measure(one, REAL_LOAD("digits"), 3, "cpu").gates == 1.0).all()


def test_names_depth_and_order(networks):
    subjects = _networks.named([_networks.subject(path) for path in sorted(networks.iterdir(), reverse=True)])
    assert [s.name for s in subjects][::2] == ["constant", "SE", "StepNet", "ASR(SE)"]
    assert [s.seed for s in subjects][:2] == [0, 1]
    assert {s.depth for s in subjects} == {20}


def test_accuracy_errors_are_binomial(networks):
    found = measure(_networks.subject(networks / "0-0.safetensors"), REAL_LOAD("digits"), 3, "cpu")
    below, above = accuracy_errors([found], 10_000)[0]  # 90 % of 10,000
    assert below == pytest.approx(100 * 1.96 * (0.9 * 0.1 / 10_000) ** 0.5, rel=0.05)
    assert above == pytest.approx(below, rel=0.1)


# Data, and what to do without.


def test_without_data_the_study_names_three_remedies(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "load", offline)
    with pytest.raises(SystemExit) as stopped:
        cifar_tns.main(cifar_tns.Arguments(data_root=tmp_path, out=tmp_path / "out"))
    text = str(stopped.value)
    for remedy in ("1. with a network", "2. put cifar-10", "--data-root", "3. use --dataset digits"):
        assert remedy in text
    assert not (tmp_path / "out").exists()


def test_the_fallback_is_said_first(run):
    out, said = run
    assert said.startswith("NOT cifar10")
    assert "digits" in said.splitlines()[0]
    page = (out / "report.html").read_text()
    assert page.index("NOT cifar10") < page.index("<h2>")
    record = json.loads((out / "record.json").read_text())
    assert record["arguments"]["dataset"] == "digits"
    assert record["numbers"]["notice"].startswith("NOT cifar10")


def test_with_data_there_is_no_notice():
    data, notice, arguments = cifar_tns.images_of(cifar_tns.Arguments(dataset="digits", fallback="digits"))
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
        cifar_tns.main(cifar_tns.Arguments(**given))
    assert words in str(stopped.value)


# Networks of one's own.


@pytest.fixture
def own_controller(tmp_path):
    from netbridge.controllers.base import REGISTRY

    path = tmp_path / "mine.py"
    path.write_text(
        "import netbridge as nb\n"
        "class Mine(nb.Controller, name='mine'):\n"
        "    def __init__(self, channels):\n"
        "        super().__init__()\n"
        "    def forward(self, state, slope):\n"
        "        return 1 / (1 + slope.pow(2).mean((1, 2, 3), keepdim=True))\n"
    )
    yield path
    REGISTRY.pop("mine", None)


def test_a_controller_of_ones_own_is_trained_and_measured(own_controller, tmp_path, monkeypatch):
    asked = []

    def quickly(arguments):
        asked.append((arguments.controller, arguments.seed))
        net = nb.resnet(arguments.depth, 10, controller=arguments.controller)
        arguments.out.mkdir(parents=True, exist_ok=True)
        nb.save(net, arguments.out / f"{arguments.controller}{arguments.seed}.safetensors", {"seed": arguments.seed})

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cifar_tns.train, "main", quickly)
    arguments = cifar_tns.Arguments(
        dataset="digits", define=(own_controller,), train=True, controllers=("constant", "mine"), seeds=(4, 7), depth=14
    )
    _networks.adopt(own_controller)
    folder = cifar_tns.trained(arguments)
    assert asked == [("constant", 4), ("constant", 7), ("mine", 4), ("mine", 7)]
    subjects = cifar_tns.chosen(dataclasses.replace(arguments, checkpoint=(folder,)), REAL_LOAD("digits"))
    assert [(s.name, s.seed, s.depth) for s in subjects] == [
        ("constant", 4, 14),
        ("constant", 7, 14),
        ("mine", 4, 14),
        ("mine", 7, 14),
    ]
    found = measure(subjects[2], REAL_LOAD("digits"), 5, "cpu")
    assert np.ptp(found.gates[:, 0]) > 0
    assert found.accuracy == found.measured_accuracy


# What it leaves behind.


def test_every_figure_is_there_and_not_blank(run):
    out, _ = run
    pictures = sorted(out.glob("*.png"))
    names = {picture.stem for picture in pictures}
    wanted = {f"{kind}_{of}" for kind in ("nsi_single", "nsi_depth", "gate", "gate_cloud") for of in KINDS}
    wanted |= {f"{kind}_{of}_{mu}" for kind in ("tns_surface", "proportion") for of, mu in READINGS}
    assert names == wanted | {"tns", "accuracy_tns"}
    for picture in pictures:
        inked = (imread(picture)[..., :3] < 0.9).any(axis=-1)
        assert inked.mean() > 0.01, picture.name
        ElementTree.parse(picture.with_suffix(".svg"))


def test_tables_are_there_as_markdown_and_csv(run):
    out, _ = run
    for name in ("accuracy", "tns", "tns_over_constant", "degrees", "gate_slope", "correlations", "networks"):
        assert (out / f"{name}.md").read_text().count("|") > 10
        assert len((out / f"{name}.csv").read_text().splitlines()) > 1
    rows = json.loads((out / "record.json").read_text())["numbers"]["accuracy"]
    assert [row["controller"] for row in rows] == ["constant", "SE", "StepNet", "ASR(SE)"]
    assert [row["gain"] for row in rows] == ["", "+1.00", "+2.00", "+3.00"]
    assert rows[0]["standard deviation"] == "0.14"


class Page(HTMLParser):
    """The addresses and tags of a page."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.tags = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "srcset", "data")]


def test_the_report_holds_everything_itself(run):
    out, _ = run
    text = (out / "report.html").read_text()
    page = Page(text)
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    assert all(address.startswith("data:image/png;base64,") for address in page.addresses)
    assert "url(" not in text
    assert "@import" not in text
    shown = {base64.b64decode(address.split(",", 1)[1]) for address in page.addresses}
    assert shown == {picture.read_bytes() for picture in out.glob("*.png")}
    for finding in json.loads((out / "record.json").read_text())["numbers"]["findings"]:
        assert finding["verdict"].capitalize() in text


def test_the_command_in_the_report_repeats_the_run(run):
    out, _ = run
    record = json.loads((out / "record.json").read_text())
    words = shlex.split(record["numbers"]["command"])
    assert words[:3] == ["python", "-m", "studies.cifar_tns"]
    again = tyro.cli(cifar_tns.Arguments, args=words[3:])
    for field in dataclasses.fields(again):
        if field.name != "out":
            assert cifar_tns.plain(getattr(again, field.name)) == record["arguments"][field.name]
    assert "python -m studies.cifar_tns" in (out / "report.html").read_text()


def test_a_finding_is_escaped():
    from studies._report import Report

    report = Report("a < b", "", "")
    report.finding(Finding("x & y", "<b>", SUPPORTED, "1 < 2"))
    assert "x &amp; y" in report.parts[-1]
    assert "&lt;b&gt;" in report.parts[-1]
    assert "<h1>a &lt; b</h1>" in report.parts[0]


def test_the_report_opens_in_a_browser_and_shows_every_figure(run, tmp_path):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed")
    out, _ = run
    text = (out / "report.html").read_text()
    probe = (
        "<script>addEventListener('load', () => { document.title = JSON.stringify([...document.images].map("
        "i => [i.complete, i.naturalWidth, i.offsetWidth, i.offsetHeight])) })</script></body>"
    )
    page = tmp_path / "report.html"
    page.write_text(text.replace("</body>", probe))
    done = subprocess.run(
        [browser, *SWITCHES, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ":CONSOLE" not in done.stderr
    title = done.stdout.split("<title>")[1].split("</title>")[0]
    images = json.loads(title)
    assert len(images) == len(list(out.glob("*.png")))
    for complete, natural, width, height in images:
        assert complete
        assert natural > 1000
        assert width > 400
        assert height > 100
