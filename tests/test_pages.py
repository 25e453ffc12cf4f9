"""README, CONTRIBUTING and the pages of docs/: links lead somewhere, code is code, pages about equations run."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from docs.site.__main__ import pages
from netbridge import data

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages()]
LINK = re.compile(r"\]\(([^)#]*)#?([^)]*)\)")
CONTENTS = {"index.md", "lookup.md"}  # of the site that `make docs` builds


def name_of(page):
    return str(page.relative_to(ROOT)).removesuffix(".md")


def blocks(page, without="no section"):
    text = re.sub(rf"^## {without}\n.*?(?=^## |\Z)", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_and_headings(page):
    for target, heading in LINK.findall(re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)):
        if "://" in target:
            continue
        file = page.parent / target if target else page
        assert file.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.*)$", file.read_text(), flags=re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}, heading


def test_every_page_is_reached_from_the_readme():
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        targets = {
            (page.parent / target).resolve() for target, _ in LINK.findall(page.read_text()) if "://" not in target
        }
        waiting += [target for target in targets - reached if target in PAGES]
    assert {page for page in PAGES if page not in reached} <= {ROOT / "docs" / name for name in CONTENTS}


def test_every_page_is_in_one_table_of_contents():
    listed = []
    for page in PAGES:
        for contents in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), flags=re.DOTALL):
            names = [line.rsplit("<", 1)[-1].strip(" >") for line in contents.splitlines() if not line.startswith(":")]
            listed += [(page.parent / f"{name}.md").resolve() for name in names if name]
    assert len(listed) == len(set(listed))
    elsewhere = {ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "index.md"}
    assert set(PAGES) - elsewhere <= set(listed)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_is_code(page):
    for block in blocks(page):
        compile(block, page.name, "exec")


def test_the_recipe_of_rates_finds_them():
    """Within four standard deviations of the rates that made the data; and the deviations are a few per cent."""
    section = (ROOT / "docs" / "odes.md").read_text().split("## From data to rates")[1].split("\n## ")[0]
    *code, _ = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    names: dict = {"__name__": "page"}
    exec(compile("\n".join(code), "rates", "exec"), names)
    rates, truth, deviations = (names[name] for name in ("rates", "truth", "deviations"))
    assert (np.abs(rates - truth) <= 4.0 * deviations).all()
    assert (deviations <= 0.05 * truth).all()
    assert names["fit"].success


@pytest.mark.slow
@pytest.mark.parametrize("name", ["odes", "stiff"])
def test_a_page_about_equations_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile("\n".join(blocks(ROOT / "docs" / f"{name}.md")), name, "exec"), {"__name__": "page"})


@pytest.mark.slow
def test_the_page_about_training_runs_up_to_detectors(tmp_path, monkeypatch):
    """On 256 images of noise in the place of CIFAR-10; the last block trains a detector for minutes."""
    draw, labels = np.random.default_rng(0), np.arange(256) % 10
    images = draw.integers(0, 256, (256, 3, 32, 32), dtype=np.uint8)
    noise = {"train_images": images, "train_labels": labels, "test_images": images, "test_labels": labels}
    monkeypatch.setattr(data, "load", lambda name, root=None: data.dataset(name, noise))
    monkeypatch.chdir(tmp_path)
    for name in ("cat", "dog"):
        folder = tmp_path / "pictures" / "pets" / name
        folder.mkdir(parents=True)
        for number in range(5):
            Image.fromarray(images[number].transpose(1, 2, 0)).save(folder / f"{number}.jpg")
    # the adapters for other libraries' training loops are run by tests/netbridge/test_monitor.py
    *code, detector = blocks(ROOT / "docs" / "training.md", without="In a training loop of your own")
    assert "detect.train" in detector
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile("\n".join(code), "training", "exec"), {"__name__": "page"})
    assert {"eca.safetensors", "own.safetensors"} <= {path.name for path in tmp_path.iterdir()}
