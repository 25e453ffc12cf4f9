"""Every study: listed, helpful, quick when asked to be, and its record complete."""

import ast
import dataclasses
import html
import importlib
import inspect
import itertools
import json
import runpy
import shlex
import signal
import subprocess
import sys
import time

import pytest

from studies.__main__ import GROUPS, headline, names, source_of
from studies.lab.command import flag_of, start
from studies.lab.report.terminal import COLUMNS, LINES
from tests.clock import HANGS


def module_of(name):
    return f"studies.{name}" if source_of(name).stem == name else f"studies.{name}.__main__"


def get_field_docstrings(arguments):
    """The text below every option in the source, those of inherited options included: {option: text}."""
    found = {}
    for kind in filter(dataclasses.is_dataclass, reversed(arguments.__mro__)):
        (node,) = ast.parse(inspect.getsource(kind)).body
        found |= {
            field.target.id: text.value.value
            for field, text in itertools.pairwise(node.body)
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
        }
    return found


def run(*arguments):
    return subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=HANGS)


def test_the_list_names_every_study_below_its_paper_with_its_headline():
    done = run("studies")
    assert done.returncode == 0
    assert sorted(name for members in GROUPS.values() for name in members) == names()
    assert [line for line in done.stdout.splitlines() if line in GROUPS] == list(GROUPS)
    for name in names():
        assert f"studies.{name}" in done.stdout
        assert headline(name) in done.stdout
        assert "about" in headline(name), f"{name} does not say how long it takes"


@pytest.mark.parametrize("name", names())
def test_help_explains_every_option(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(str(source_of(name)), run_name="__main__")  # as `python -m` does, without another process
    assert stopped.value.code in (None, 0)
    said = capsys.readouterr().out
    assert "--out" in said
    assert "--smoke" in said
    arguments = importlib.import_module(module_of(name)).Arguments
    explained = get_field_docstrings(arguments)
    for field in dataclasses.fields(arguments):  # a positional one has no flag, only its explanation
        assert flag_of(field) in said
        assert len(explained.get(field.name, "").split()) >= 2, f"--{field.name} of {name} is not explained"


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_smoke_leaves_a_complete_record(name, tmp_path):
    done = run(f"studies.{name}", "--smoke", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*record.json")  # of a training, with the network's name before it
    record = json.loads(path.read_text(), parse_constant=pytest.fail)  # NaN and Infinity are no JSON
    assert record["study"] == name
    words = shlex.split(record["command"])
    assert words == ["python", "-m", f"studies.{name}", "--out", str(tmp_path), "--smoke"]
    assert record["arguments"]["smoke"] is True
    assert record["versions"]["odelab"]
    assert record["numbers"]
    for file in record["files"]:
        assert (tmp_path / file).stat().st_size > 0
    if (tmp_path / "report.html").is_file():
        title = html.unescape((tmp_path / "report.html").read_text().split("<h1>")[1].split("</h1>")[0])
        start_of_page = done.stdout.index(title[:60])  # what trainings say stands before it
        lines = done.stdout[start_of_page:].rstrip().splitlines()
        assert lines[-1] == (tmp_path / "report.html").as_uri()
        assert len(lines) <= LINES, done.stdout
        assert max(map(len, lines[:-1])) <= COLUMNS, done.stdout


SHOWN_AGAIN = {  # what a study may take from others: the population's networks and findings, and jobs to list or train
    "cifar_tns": {"population"},
    "tns_at_work": {"population"},
    "train": {"table"},
    "plan": {"asr", "block_stiffness", "detect", "step_control", "table", "tricks"},
}


def imported_studies(path):
    """The studies that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "studies":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("studies."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("studies."))


@pytest.mark.parametrize("name", names())
def test_studies_share_through_the_lab_alone(name):
    source = source_of(name)
    files = [source] if source.stem == name else source.parent.rglob("*.py")
    others = {found for path in files for found in imported_studies(path)} - {"lab", name}
    assert others <= SHOWN_AGAIN.get(name, set())


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("cifar_tns", "--smoke", "--train", "--controllers", "constant", "mine"), "--controllers, --train"),
        (("three_body", "--smoke", "--runs", "-1"), "--runs"),
        (("three_body", "--runs", "-1"), "`--runs` must be at least 1"),
        (("cifar_tns", "--dataset", "digits", "--controllers", "constant", "foo"), "(foo)"),
        (("cifar_tns", "--dataset", "digits", "--seeds", "0", "77"), "(seed 77)"),
        (("train", "--controller", "foo", "--dataset", "digits"), "'foo'"),
        (("train", "--dataset", "digits", "--recipe", "nope"), "nope"),
        (("train", "--dataset", "nope"), "nope"),
        (("train", "--dataset", "digits", "--depth", "15"), "depth"),
        (("train", "--dataset", "digits", "--precision", "float8"), "--precision"),
        (("train", "--data-root", "/nowhere/at/all"), "`--data-root`"),
        (("step_control", "--train", "--data-root", "/nowhere/at/all"), "`--data-root`"),
        (("train", "--ship"), "`--queue`"),
        (("train", "--dataset", "digits", "--lr", "-1"), "`lr` must be a positive number, got -1"),
        (("train", "--dataset", "digits", "--lr", "nan"), "`--lr` must be a number, got nan"),
        (("train", "--dataset", "digits", "--depth", "0"), "`--depth` must be at least 1, got 0"),
        (("train", "--dataset", "digits", "--seed", "-1"), "`--seed` must be a whole number from 0 on, got -1"),
        (("train", "--dataset", "digits", "--set", "mixup=lots"), "`mixup` must be a number, got 'lots'"),
        (("stiff_euler", "--horizon", "0"), "`--horizon` must be a positive number, got 0"),
        (("stiff_euler", "--tolerances", "1e-3", "-1"), "`rtol` must be a number between 0 and 1, got -1"),
        (("work_precision", "--tolerances", "0"), "`rtol` must be a number between 0 and 1, got 0"),
        (("theorem2", "--seed", "-1"), "`--seed` must be a whole number from 0 on, got -1"),
        (("transformer", "--epochs", "0"), "`--epochs` must be at least 1, got 0"),
        (("cifar_tns", "--depth", "-1"), "`--depth` must be at least 1, got -1"),
        (("train", "--dataset", "digits", "--device", "gpu"), "`device` = 'gpu'"),
        (("block_stiffness", "--dataset", "digits", "--checkpoint", "nowhere.pt"), "nowhere.pt"),
        (("detect", "--data-root", "/nowhere/at/all"), "`--data-root` = '/nowhere/at/all' is not a folder"),
        (("miniature", "nope"), "must be one of imagenet, coco, cifar100, stl10, got 'nope'"),
    ],
)
def test_what_cannot_be_done_ends_in_one_plain_line(arguments, words, tmp_path, monkeypatch):
    name, *given = arguments
    module = importlib.import_module(module_of(name))
    monkeypatch.setattr(sys, "argv", [name, *given, "--out", str(tmp_path / "out")])
    monkeypatch.setattr("netbridge.tune_allocator", lambda: True)
    with pytest.raises(SystemExit) as stopped:
        start(module.main, module.Arguments, name, "")
    assert isinstance(stopped.value.code, str)  # Python prints it to stderr and ends with code 1
    assert words in stopped.value.code
    assert len(stopped.value.code.splitlines()) == 1


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(tmp_path):
    command = [sys.executable, "-m", "studies.train", "--dataset", "digits", "--device", "cpu", "--out", str(tmp_path)]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not any(tmp_path.glob("*.resume")) and child.poll() is None:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=HANGS)
    assert child.returncode == 130
    assert "Traceback" not in said
    assert "end of epoch" in said
    assert f"python -m studies.train --dataset digits --out {tmp_path} --device cpu" in said


def test_waiting_threads_sleep_and_what_the_user_set_is_kept(monkeypatch):
    look = "import os, studies; print(os.environ['OMP_WAIT_POLICY'], os.environ['KMP_BLOCKTIME'])"
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setenv("KMP_BLOCKTIME", "7")
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=HANGS)
    assert done.stdout.split() == ["PASSIVE", "7"]
