"""Every study: listed, helpful, quick when asked to be, and its record complete."""

import importlib
import json
import subprocess
import sys

import pytest

from studies.__main__ import headline, names


def run(*arguments):
    return subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=120)


def test_the_list_names_every_study_with_its_headline():
    done = run("studies")
    assert done.returncode == 0
    for name in names():
        assert f"studies.{name}" in done.stdout
        assert headline(name) in done.stdout
        assert "about" in headline(name), f"{name} does not say how long it takes"


@pytest.mark.parametrize("name", names())
def test_help_explains_every_option(name):
    done = run(f"studies.{name}", "--help")
    assert done.returncode == 0
    assert "--out" in done.stdout
    assert "--smoke" in done.stdout
    assert len(done.stdout) > 600


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_smoke_leaves_a_complete_record(name, tmp_path):
    done = run(f"studies.{name}", "--smoke", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["study"] == name
    assert record["arguments"]["smoke"] is True
    assert record["versions"]["odelab"]
    assert record["numbers"]
    for file in done.stdout.split("wrote to")[-1].splitlines()[1:]:
        assert (tmp_path / file.strip()).stat().st_size > 0


def test_a_study_run_in_process_draws_figures_that_are_not_blank(tmp_path):
    from matplotlib.image import imread

    module = importlib.import_module("studies.stiff_euler")
    module.main(module.Arguments(out=tmp_path, smoke=True))
    pictures = sorted(tmp_path.glob("*.png"))
    assert len(pictures) == 3
    for picture in pictures:
        assert (imread(picture)[..., :3] < 0.9).any(axis=-1).mean() > 0.005


def test_stiff_euler_finds_the_limit(tmp_path):
    module = importlib.import_module("studies.stiff_euler")
    module.main(module.Arguments(out=tmp_path, smoke=True))
    rows = json.loads((tmp_path / "record.json").read_text())["numbers"]["fixed_steps"]
    euler = {row["h"]: row for row in rows if row["method"] == "EULER"}
    assert euler[0.0015]["verdict"] == "stable"
    assert euler[0.002]["verdict"] == "at the limit"
    assert euler[0.0021]["verdict"] == "unstable"
    assert euler[0.0015]["error at the end"] < 1e-5 < euler[0.0015]["largest error"]
    assert euler[0.0025]["error at the end"] > 1e6


def test_an_argument_the_list_does_not_know_is_named():
    done = run("studies", "--nonsense")
    assert done.returncode == 2
    assert "--nonsense" in done.stdout
