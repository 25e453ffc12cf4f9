"""Digests of code: they change with what is computed, with nothing else, and cover all that trains and measures."""

import ast
import itertools
import os
import shutil

import pytest

from netbridge import code_digests
from netbridge.code_digests import MEASURING, ROOT, TRAINING, files_of, measured_by, outline, trained_by

BODY = "def f(x, scale=2.0):\n    return [scale * x, x ** 2, not x, -x, 'a', f'{x:>{scale}}', ...]\n"
SAME = {
    "a docstring": BODY.replace(":\n", ':\n    """What it is for."""\n', 1),
    "another docstring of the file": '"""What the file is for."""\n' + BODY,
    "a comment": BODY + "# a comment\n",
    "line breaks and quotes": BODY.replace("x ** 2", '(\n x\n  **2)').replace("'a'", '"a"'),
    "a comma before the bracket": BODY.replace("...]", "...,]"),
    "a string of its own, as fields are explained": BODY.replace("    return", '    """scale"""\n    return'),
    "a number in another spelling": BODY.replace("2.0", "0_2.00"),
    "nothing is done": BODY.replace("    return", "    pass\n    return"),
}  # fmt: skip
DIFFERENT = {
    "an operator": BODY.replace("scale * x", "scale + x"),
    "a number": BODY.replace("x ** 2", "x ** 3"),
    "a whole number in place of a decimal one": BODY.replace("2.0", "2"),
    "a default": BODY.replace("=2.0", ""),
    "a sign": BODY.replace("-x", "+x"),
    "a word in a string": BODY.replace("'a'", "'b'"),
    "an empty string": BODY.replace("'a'", "''"),
    "None": BODY.replace("...", "None"),
    "the order": BODY.replace("scale * x, x ** 2", "x ** 2, scale * x"),
    "a form": BODY.replace(":>", ":<"),
    "a decorator": "@cache\n" + BODY,
    "a name": BODY.replace("def f", "def g"),
    "one statement more": BODY + "f(1)\n",
}  # fmt: skip


def text_of(code: str) -> str:
    return outline(ast.parse(code))


@pytest.mark.parametrize("edit", SAME)
def test_what_cannot_matter_changes_nothing(edit):
    assert text_of(SAME[edit]) == text_of(BODY)


def test_what_is_computed_changes_it():
    texts = [BODY, *DIFFERENT.values()]
    assert len({text_of(code) for code in texts}) == len(set(texts)) == 1 + len(DIFFERENT)


@pytest.mark.parametrize("path", files_of((*TRAINING, *MEASURING)), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_comment_and_no_line_break_of_any_file_counts(path):
    tree = ast.parse(path.read_text())
    assert text_of(ast.unparse(tree)) == outline(tree)


def test_every_path_is_there():
    """Whoever moves a file says here where it is now: a digest would be found without it."""
    for part in {*TRAINING, *MEASURING}:
        assert files_of((part,)), f"{part} is not there"


@pytest.fixture
def edited(tmp_path):
    """A function of a file and an edit of its text; it returns both digests of a tree with that edit.

    The other files of the tree are links, so that they are read once for all tests.
    """
    copies = itertools.count()

    def digests(name, edit):
        root = tmp_path / str(next(copies))
        for package in ("odelab", "netbridge", "studies"):
            leave = shutil.ignore_patterns("zoo", "shipped", "__pycache__")
            shutil.copytree(ROOT / package, root / package, ignore=leave, copy_function=os.symlink)
        path = root / name
        text = path.read_text() if path.exists() else ""
        changed = edit(text)
        assert changed != text
        path.unlink(missing_ok=True)
        path.write_text(changed)
        return trained_by(root=root), measured_by(root=root)

    return digests


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "trains", "measures"),
    [
        ("odelab/stiffness/tns.py", False, True),
        ("odelab/stiffness/indices.py", False, True),
        ("netbridge/recording/recorder.py", False, True),
        ("netbridge/foreign/probes.py", False, True),
        ("netbridge/train/epochs.py", True, False),
        ("netbridge/train/scoring.py", True, True),
        ("netbridge/model/block.py", True, True),
        ("netbridge/model/a_new_file.py", True, True),
        ("netbridge/step_sizes/se.py", True, True),
        ("netbridge/data/datasets.py", True, True),
        ("netbridge/common/devices.py", True, True),
        ("odelab/core.py", True, True),
        ("odelab/methods/explicit.py", True, True),
        ("odelab/control/feedback.py", True, True),
        ("odelab/arrays.py", True, True),
        ("odelab/problems/bodies/pendulum.py", False, False),
        ("odelab/plot/a_new_file.py", False, False),
        ("netbridge/progress.py", False, False),
        ("netbridge/model/notes.txt", False, False),
        ("studies/lab/stiffness.py", False, False),
        ("studies/population.py", False, False),
    ],
)
def test_which_digest_an_edit_changes(edited, name, trains, measures):
    by = edited(name, lambda text: f"{text}\nADDED = 1\n")
    assert (by[0] != trained_by(), by[1] != measured_by()) == (trains, measures)
    if (ROOT / name).exists():
        remarked = edited(name, lambda text: f'{text}\n# A remark.\n"""And another."""\n')
        assert remarked == (trained_by(), measured_by())


def test_a_formula_of_stiffness_measures_and_does_not_train(edited):
    def halve(text):
        assert text.count("peaks >= means * (1.0 + x)") == 1
        return text.replace("peaks >= means * (1.0 + x)", "peaks > means * (1.0 + x)")

    trained, measured = edited("odelab/stiffness/tns.py", halve)
    assert (trained == trained_by(), measured == measured_by()) == (True, False)


def test_rooms_join_what_is_looked_at(edited):
    rooms = ("netbridge/detect",)
    assert len({trained_by(), trained_by(rooms), measured_by(), measured_by(rooms)}) == 4
    assert measured_by(("netbridge/tracing",)) == measured_by()  # it is among them already


def test_a_file_is_read_once(tmp_path):
    """A process goes on with the code it has imported, whatever becomes of the files."""
    path = tmp_path / "odelab" / "core.py"
    path.parent.mkdir()
    path.write_text("a = 1\n")
    before = trained_by(root=tmp_path)
    path.write_text("a = 2\n")
    assert trained_by(root=tmp_path) == before
    code_digests.digest.cache_clear()
    code_digests.digest_of_file.cache_clear()
    assert trained_by(root=tmp_path) != before


def test_a_path_that_is_not_there_stops_nobody(tmp_path):
    assert trained_by(root=tmp_path) == measured_by(root=tmp_path)
