"""Every study: listed, helpful, quick when asked to be, and its record complete."""

import ast
import dataclasses
import inspect
import itertools
import shlex
import signal
import subprocess
import sys
import time

import pytest

import netbridge as nb
from studies import stiff_euler
from studies.__main__ import GROUPS, headline, names, source_of
from studies.lab.command import flag_of, read_arguments, start
from tests.clock import HANGS
from tests.studies import pages


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
def test_help_explains_every_option(name, capsys):
    module = pages.module_of(name)
    with pytest.raises(SystemExit) as stopped:
        read_arguments(module.Arguments, name, module.__doc__, ["--help"])
    assert stopped.value.code in (None, 0)
    said = capsys.readouterr().out
    assert "--out" in said
    assert "--smoke" in said
    explained = get_field_docstrings(module.Arguments)
    for field in dataclasses.fields(module.Arguments):  # a positional one has no flag, only its explanation
        assert flag_of(field) in said
        assert len(explained.get(field.name, "").split()) >= 2, f"--{field.name} of {name} is not explained"


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_smoke_leaves_a_complete_record_and_a_page(name, tmp_path):
    done = run(f"studies.{name}", "--smoke", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    record = pages.check_record(tmp_path)
    assert record["study"] == name
    assert shlex.split(record["command"])[3:] == ["--out", str(tmp_path), "--smoke"]
    assert record["arguments"]["smoke"] is True
    if (tmp_path / "report.html").is_file():
        pages.check(tmp_path, done.stdout)


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


def test_stiff_euler_finds_the_limit(tmp_path):
    stiff_euler.main(stiff_euler.Arguments(out=tmp_path, smoke=True))
    rows = pages.check(tmp_path)["fixed_steps"]
    assert len(list(tmp_path.glob("*.png"))) == 3
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
    ("command", "words"),
    [
        ("cifar_tns --smoke --train --controllers constant mine", "--controllers, --train"),
        ("three_body --smoke --runs -1", "--runs"),
        ("three_body --runs -1", "`--runs` must be at least 1"),
        ("cifar_tns --dataset digits --controllers constant foo", "(foo)"),
        ("cifar_tns --dataset digits --seeds 0 77", "(seed 77)"),
        ("train --controller foo --dataset digits", "'foo'"),
        ("train --dataset digits --recipe nope", "nope"),
        ("train --dataset nope", "nope"),
        ("train --dataset digits --depth 15", "depth"),
        ("train --dataset digits --precision float8", "--precision"),
        ("train --data-root /nowhere/at/all", "`--data-root`"),
        ("step_control --train --data-root /nowhere/at/all", "`--data-root`"),
        ("train --ship", "`--queue`"),
        ("train --dataset digits --lr -1", "`lr` must be a positive number, got -1"),
        ("train --dataset digits --lr nan", "`--lr` must be a number, got nan"),
        ("train --dataset digits --depth 0", "`--depth` must be at least 1, got 0"),
        ("train --dataset digits --seed -1", "`--seed` must be a whole number from 0 on, got -1"),
        ("train --dataset digits --set mixup=lots", "`mixup` must be a number, got 'lots'"),
        ("stiff_euler --horizon 0", "`--horizon` must be a positive number, got 0"),
        ("stiff_euler --tolerances 1e-3 -1", "`rtol` must be a number between 0 and 1, got -1"),
        ("work_precision --tolerances 0", "`rtol` must be a number between 0 and 1, got 0"),
        ("theorem2 --seed -1", "`--seed` must be a whole number from 0 on, got -1"),
        ("transformer --epochs 0", "`--epochs` must be at least 1, got 0"),
        ("cifar_tns --depth -1", "`--depth` must be at least 1, got -1"),
        ("train --dataset digits --device gpu", "`device` = 'gpu'"),
        ("block_stiffness --dataset digits --checkpoint nowhere.pt", "nowhere.pt"),
        ("detect --data-root /nowhere/at/all", "`--data-root` = '/nowhere/at/all' is not a folder"),
        ("miniature nope", "must be one of imagenet, coco, cifar100, stl10, got 'nope'"),
        ("step_control --seeds -1 2", "`--seeds`"),
        ("step_control --seeds 0", "`--seeds`"),
        ("step_control --few 0", "`--few`"),
        ("step_control --dataset digits --few 7", "`--few` must be at most 6"),
        ("step_control --draws 0", "`--draws`"),
        ('step_control --only "Adaptor e"', "'Adaptor e'"),
        ("step_control --depth 8 --blocks counted", "`--depth` = 8"),
        ("step_control --dataset digits --images 2000 --train", "`--images` must be at most 1297"),
        ("step_control --draws 16 --blocks every", "15 different tickets of 2 among 6 blocks"),
        ("step_control --part ticket --only SE", "`--only` with `--part ticket` knows stiffest"),
        ("step_control --own --ship", "`--ship`"),
        ("step_control --depth 15", "depth"),
        ("step_control --epochs 0", "`epochs` must be at least 1"),
        ("step_control --recipe nope", "nope"),
        ("step_control --ticket-controller nope", "nope"),
        ("step_control --dataset digits --own", "`--train`"),
        ("asr --seeds -1 2", "`--seeds`"),
        ("asr --seeds 0", "`--seeds`"),
        ("asr --own --ship", "`--ship`"),
        ("cifar_tns --dataset digits --checkpoint {networks} --images 501", "between 2 and 500"),
        ("cifar_tns --dataset digits --images 1", "`--images`"),
        ("cifar_tns --dataset digits --resamples 1", "`--resamples`"),
        ("cifar_tns --dataset digits --checkpoint {networks} --controllers dia", "SE (depth 20, seed 0)"),
        ("cifar_tns --dataset digits --checkpoint nowhere.safetensors", "nowhere.safetensors"),
        ("cifar_tns --dataset digits --checkpoint {networks}/../shallow.safetensors", "one block in every stage"),
        (
            "trajectory --dataset digits --checkpoint {networks} --controllers dia",
            "There are: ASR(SE) (depth 20,",
        ),
        (
            "trajectory --dataset digits --checkpoint {networks} --controllers se --seeds 0",
            "needs at least 2",
        ),
        ("trajectory --dataset digits --images 7", "`--images` must be between 8"),
        ("trajectory --dataset digits --resamples 1", "`--resamples`"),
        (
            "trajectory --dataset digits --checkpoint {networks} {networks}/../shallow.safetensors",
            "must have one depth",
        ),
        ("transformer --dataset digits --controllers dia", "There are: SE (depth 18, seed 0)"),
        ("transformer --dataset digits --images 3", "`--images` must be between 4"),
        ("transformer --dataset digits --resamples 1", "`--resamples`"),
        ("transformer --dataset digits --checkpoint {networks}/../shallow.safetensors", "is no transformer"),
        ("table --table 3", "`--table` knows 1, 2, 7"),
        ("table --datasets digits", "none of the tables has the data sets digits"),
        ("table --depth 20 --recipe nope", "nope"),
        ("table --seeds 0", "`--seeds` must be at least 1"),
        ("plan --table 12", "`--table` knows 1, 2, 3"),
        ("plan --row nonsense", "no row of these tables holds nonsense"),
        ("detect --data-root {networks} --seeds 1 --depth 20", "`--depth` must be one of"),
        (
            "detect --data-root {networks} --seeds 1 --weights {networks}",
            "resnet50-constant-seed0.safetensors is not",
        ),
        ("train --dataset digits --network vgg", "`--network` knows resnet, vit, vit-conv, vit-s, vit-b, got 'vgg'"),
        ("train --queue table1 --ship", "`--ship` needs shipped or deep"),
        ("train --dataset digits --set mixup", "`--set` takes FIELD=VALUE, such as mixup=1.0, got 'mixup'"),
        ("train --dataset digits --set mixups=1", "did you mean `mixup`"),
    ],
)
def test_what_cannot_be_done_ends_in_one_plain_line(command, words, networks, tmp_path):
    name, *given = shlex.split(command.format(networks=networks))
    shallow = networks.parent / "shallow.safetensors"
    if not shallow.is_file():
        nb.save(nb.resnet(8, 10), shallow, {"seed": 0, "test_accuracy": 0.5})
    module = pages.module_of(name)
    with pytest.raises(SystemExit) as stopped:
        start(module.main, module.Arguments, name, "", [*given, "--out", str(tmp_path / "out")])
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
