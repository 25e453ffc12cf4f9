"""A page in a browser: it answers to the mouse and to the keyboard, and can be read at any width, in light and dark."""

import itertools

import numpy as np
import pytest

from odelab.plot import style
from studies.lab.page import Page
from studies.lab.report.charts import DepthChart, Line, NetworksChart, Point, SurfaceChart
from studies.lab.statistics import Estimate
from studies.lab.verdicts import Finding, joint, of_each, of_interval
from tests import browser
from tests.studies.pages import Arguments

SWITCH = {
    "NSI of": {"slope": "slope", "increment": "increment"},
    "against the mean of": {"sample": "an image", "dataset": "the data set"},
}
READINGS = tuple(itertools.product(*SWITCH.values()))
GROUPS = {"constant": "#000000", "SE(reduction=4)": "#0072B2", "StepNet": "#D55E00", "ASR(SE)": "#009E73"}
SEEDS, BLOCKS, IMAGES, DEGREES = 6, 54, 5, 21
OVERLAPS = """[...document.querySelectorAll('svg')].flatMap(svg => {
  const boxes = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
  return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([b, q]) =>
    p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 1 && q.top < p.bottom - 1).map(([b]) => [a, b]));
})"""
BEYOND = """[...document.querySelectorAll('body *')].filter(one => !one.closest('.table, pre, #tip')
  && one.getBoundingClientRect().right > innerWidth + 0.5).map(one => one.outerHTML)"""
LETTERS = "h1, p, summary, figcaption, a, th, td, .verdict, .chart text"
CONTRAST = """[...document.querySelectorAll('LETTERS')].map(one => {
  const paint = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const light = colour => {
    paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...paint.getImageData(0, 0, 1, 1).data].map(c => c / 255)
      .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let behind = one;
  while (behind && getComputedStyle(behind).backgroundColor === 'rgba(0, 0, 0, 0)') behind = behind.parentElement;
  const look = getComputedStyle(one);
  const ends = [light(one.namespaceURI.endsWith('svg') ? look.fill : look.color),
                light(behind ? getComputedStyle(behind).backgroundColor : '#fff')].sort((a, b) => a - b);
  return [(ends[1] + 0.05) / (ends[0] + 0.05), one.outerHTML.slice(0, 80)];
}).sort((a, b) => a[0] - b[0])[0]""".replace("LETTERS", LETTERS)


def draw(page: Page, chance: np.random.Generator) -> None:
    """A page as the deepest networks make it: 54 blocks, every kind of part, wide and long tables."""
    wide = {(of,): of_each({name: Estimate(0.5, -1.0, 2.0, n=3) for name in GROUPS}) for of in SWITCH["NSI of"]}
    page.findings(
        [
            Finding("Attention helps.", "Table 1", of_interval(Estimate(1.2, 0.6, 1.9, n=3)), "By `--this` rule."),
            Finding("A claim with as many words as a long claim has, at most.", "Figure 7", joint(wide), "So far."),
            Finding("A claim without numbers.", "Appendix D", of_interval(Estimate(*[np.nan] * 3)), "n = 2: too few."),
        ]
    )
    page.switch(SWITCH)

    def interval():
        value = chance.normal(1.0, 0.2)
        return value, value - 0.05, value + 0.05

    names = [f"{group}, seed {seed}" for group in GROUPS for seed in range(SEEDS)]
    groups = [group for group in GROUPS for _ in range(SEEDS)]
    points = [
        Point(
            group,
            name,
            f"{name}.safetensors",
            interval(),
            {"TNS": {reading: interval() for reading in READINGS}, "nothing": {("slope",): (np.nan,) * 3}},
        )
        for group, name in zip(groups, names, strict=True)
    ]
    notes = {"TNS": {reading: f"The note of {' '.join(reading)}." for reading in READINGS}}
    page.chart(NetworksChart(points, GROUPS, "accuracy, %", "constant", notes), "networks", "Networks.", hero=True)
    grid = np.linspace(0.0, 1.0, DEGREES)
    shares = {
        reading: {group: np.exp(-(1 + k + place) * (grid + grid[:, None])) for k, group in enumerate(GROUPS)}
        for place, reading in enumerate(READINGS)
    }
    degrees = dict.fromkeys(READINGS, grid)
    page.chart(SurfaceChart(degrees, degrees, {"images": shares}, GROUPS), "surface", "A surface.", hero=True)
    page.heading("Stiffness along depth (Figure 7)")
    lines = [
        Line(group, name, {(of,): chance.random((IMAGES + 1, BLOCKS)) for of in SWITCH["NSI of"]})
        for group, name in zip(groups, names, strict=True)
    ]
    first = [block % 18 == 0 for block in range(BLOCKS)]
    page.chart(DepthChart(lines, first, GROUPS, "NSI"), "depth", "Along depth.")
    for reading in READINGS:
        with style.figure() as (drawing, axes):
            axes[0, 0].plot([1, 2, 3], label=" ".join(reading))
        page.figure(drawing, "_".join(reading), f"The figure of {' '.join(reading)}.", reading=reading)
    page.table("wide", [{f"a column of number {k}": "a cell with words" for k in range(12)}], "A wide table")
    page.table("long", [{"row": k} for k in range(21)], "A long table")
    page.words("Some words about " + "a/very/long/path" * 12)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    page = Page("cifar_tns", Arguments(tmp_path_factory.mktemp("out")), "A title", "Of 24 networks.", "A warning.")
    draw(page, np.random.default_rng(0))
    page.close()
    return page.out / "report.html"


@pytest.fixture(scope="module")
def window():
    if browser.find() is None:
        pytest.skip(f"no browser: none of {', '.join(browser.NAMES)} is installed")
    with browser.tab() as found:
        yield found


@pytest.fixture
def tab(window):
    """A tab in which no script may complain."""
    window.complaints.clear()
    yield window
    assert not window.complaints


def open_all(tab):
    tab.run("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    tab.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")


def shown(tab):
    """The readings of the figures that can be seen."""
    figures = "[...document.querySelectorAll('[data-reading]')].filter(one => one.offsetHeight)"
    return tab.run(f"{figures}.map(one => one.dataset.reading)")


@pytest.mark.parametrize("width", [320, 400, 900, 1280])
def test_nothing_scrolls_sideways_and_no_labels_overlap_at_54_blocks(tab, report, width):
    tab.open(report, width)
    for _ in range(2):
        assert tab.run("document.documentElement.scrollWidth") == width
        assert tab.run(BEYOND) == []
        assert tab.run(OVERLAPS) == []
        open_all(tab)
    assert tab.run("document.querySelectorAll('[data-chart=depth] text.tick').length") > 5


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1280])
def test_letters_stand_out_in_light_and_dark(tab, report, width, dark):
    """WCAG asks for a contrast of 4.5 between small letters and what is behind them."""
    tab.open(report, width, dark)
    open_all(tab)
    contrast, where = tab.run(CONTRAST)
    assert contrast >= 4.5, where
    assert (tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)") != dark


def test_the_switch_shows_one_reading_of_every_figure_and_chart(tab, report):
    tab.open(report)
    open_all(tab)
    note = "document.querySelectorAll('[data-chart=networks] .note')[1].textContent"
    bars = "document.querySelector('[data-chart=surface] .share').textContent"
    lines = "document.querySelector('[data-chart=depth] polyline').getAttribute('points')"
    said = set()
    for of, mu in READINGS:
        for word in (of, mu):
            tab.click(f".switch [value={word}]")
        assert shown(tab) == [f"{of} {mu}"]
        assert tab.run(note) == f"The note of {of} {mu}."
        said.add((tab.run(bars), tab.run(lines)))
    assert len({share for share, _ in said}) == len(READINGS)
    assert len({points for _, points in said}) == len(SWITCH["NSI of"])
    dim = "[...document.querySelectorAll('.strip .dim')].map(one => one.dataset.case.split(',')[0])"
    assert set(tab.run(dim)) == {"slope"}
    tab.press("ArrowLeft")  # on the last choice that was clicked
    assert shown(tab) == ["increment sample"]


def test_a_number_that_no_network_has_is_said_to_be_missing(tab, report):
    tab.open(report)
    tab.click("[data-chart=networks] [value=nothing]")
    assert tab.run("document.querySelectorAll('[data-chart=networks] svg').length") == 0
    assert tab.run("document.querySelector('[data-chart=networks] .note').textContent").startswith("No network")
    tab.click("[data-chart=networks] [value=TNS]")
    assert tab.run("document.querySelectorAll('[data-chart=networks] .point').length") == 2 * len(GROUPS) * SEEDS


def test_the_sliders_and_the_surface_choose_a_degree(tab, report):
    tab.open(report)
    slider = "document.querySelectorAll('[data-chart=surface] input[type=range]')"
    read = f"[...{slider}].map(one => +one.value)"
    share = "parseFloat(document.querySelector('[data-chart=surface] .share').textContent)"
    place, before = tab.run(read), tab.run(share)
    tab.run(f"{slider}[0].focus()")
    tab.press("ArrowRight")
    assert tab.run(read) == [place[0] + 1, place[1]]
    assert tab.run(share) < before
    tab.run(f"{slider}[1].focus()")
    tab.press("ArrowLeft")
    assert tab.run(read) == [place[0] + 1, place[1] - 1]
    tab.click("[data-chart=surface] svg g", 0.99, 0.01)
    assert tab.run(read) == [DEGREES - 1, DEGREES - 1]
    assert tab.run("document.querySelectorAll('[data-chart=surface] output')[1].textContent") == "1.00"


def test_the_slider_along_depth_goes_from_the_mean_to_single_images(tab, report):
    tab.open(report)
    open_all(tab)
    said = "document.querySelector('[data-chart=depth] output').textContent"
    lines = "document.querySelector('[data-chart=depth] polyline').getAttribute('points')"
    mean = tab.run(lines)
    assert tab.run(said) == "mean"
    tab.run("document.querySelector('[data-chart=depth] input').focus()")
    tab.press("ArrowRight")
    assert tab.run(said) == "no. 1"
    assert tab.run(lines) != mean


def test_points_say_who_they_are_to_the_mouse_and_to_the_keyboard(tab, report):
    tab.open(report)
    box = "document.getElementById('tip')"
    tip = f"{box}.style.visibility === 'visible' && {box}.textContent"
    assert not tab.run(tip)
    tab.click("[data-chart=networks] .point circle")
    first = tab.run(tip)
    assert first.endswith(".safetensors")
    assert tab.run("document.querySelectorAll('.point.same').length") == 2  # in both panels
    tab.run("document.querySelector('[data-chart=networks] .point[tabindex=\"0\"]').focus()")
    names = [tab.run(tip)]
    for _ in range(3):
        tab.press("ArrowRight")
        names.append(tab.run(tip))
    assert len(set(names)) == 4
    tab.press("Tab")  # leaves the points of this panel
    assert tab.run("document.activeElement.ownerSVGElement !== document.querySelector('[data-chart=networks] svg')")


def test_a_claim_opens_with_the_keyboard_and_leads_to_what_it_rests_on(tab, report):
    tab.open(report)
    tab.run("document.querySelectorAll('.claim summary')[1].focus()")
    tab.press("Enter")
    assert tab.run("[...document.querySelectorAll('.claim')].map(one => one.open)") == [False, True, False]
    tab.click(".claim[open] .why a")
    assert tab.run("document.querySelector('.fold').open")


def test_every_link_leads_somewhere(tab, report):
    tab.open(report)
    links = tab.run("[...document.querySelectorAll('a')].map(one => one.getAttribute('href'))")
    ids = tab.run("[...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(links) > 10
    for link in links:
        assert link[1:] in ids if link.startswith("#") else (report.parent / link).stat().st_size > 0, link


def test_what_is_printed_is_unfolded(tab, report):
    tab.open(report)
    tab.call("Page.printToPDF")
    assert tab.run("[...document.querySelectorAll('.fold, .claim')].every(one => one.open)")
