"""Digests of the code that trains networks and of the code that measures them, by which a result says what made it.

A number that is kept on disk outlives the code that computed it. Beside each such number two digests are kept: one of
all code that decides what a training becomes, one of all code that decides what a measurement gives. Where a digest
differs from that of the code of today, the number is older than the code.

A digest is of syntax trees without docstrings: what is said in comments, docstrings and line breaks changes no number,
and no digest. It knows nothing of numerical libraries or processors, whose versions are recorded beside it.
"""

import ast
import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]  # the folder that holds the packages
# Every path is a file, or a folder with all files in it, seen from there.
COMPUTING = (  # a forward pass: what a step is, what decides its size, on which images and in which layout
    "odelab/arrays.py", "odelab/core.py", "odelab/methods", "odelab/control", "netbridge/checkpoint.py",
    "netbridge/common", "netbridge/data", "netbridge/layers", "netbridge/model", "netbridge/step_sizes",
    "netbridge/surgery",
)  # fmt: skip
TRAINING = (*COMPUTING, "netbridge/train")
MEASURING = (
    *COMPUTING, "odelab/stiffness", "netbridge/foreign", "netbridge/recording", "netbridge/tracing",
    "netbridge/train/distributed.py", "netbridge/train/loading.py", "netbridge/train/scoring.py",
)  # fmt: skip


def trained_by(rooms: tuple[str, ...] = (), root: Path = ROOT) -> str:
    """A digest of the code that decides what a training becomes: TRAINING, and what `rooms` add.

    rooms  further files and folders that the training goes through, such as "netbridge/detect"; a tuple
    root   the folder that holds the packages `odelab` and `netbridge`; by default those that are imported

    Returns twelve hexadecimal digits, the same in every version of Python.

    >>> from netbridge.code_digests import trained_by
    >>> len(trained_by()), trained_by() == trained_by(("netbridge/detect",))
    (12, False)
    """
    return digest((*TRAINING, *rooms), root)


def measured_by(rooms: tuple[str, ...] = (), root: Path = ROOT) -> str:
    """A digest of the code that decides what NSI, TNS, gates and scores of a network are: MEASURING, and `rooms`.

    rooms  further files and folders that the measurement goes through, such as "netbridge/spectrum"; a tuple
    root   the folder that holds the packages `odelab` and `netbridge`; by default those that are imported

    Returns twelve hexadecimal digits, the same in every version of Python.

    >>> from netbridge.code_digests import measured_by, trained_by
    >>> len(measured_by()), measured_by() == trained_by()
    (12, False)
    """
    return digest((*MEASURING, *rooms), root)


@functools.cache
def digest(parts: tuple[str, ...], root: Path) -> str:
    """A digest of the files of `parts` that exist under `root`: of their paths and of what they compute.

    A path that is not there adds nothing, because a training of hours must not end with an error about it; a test looks
    for such paths.
    """
    whole = hashlib.sha256()
    for path in files_of(parts, root):
        whole.update(f"{path.relative_to(root).as_posix()}\0{digest_of_file(path.resolve())}\0".encode())
    return whole.hexdigest()[:12]


@functools.cache
def digest_of_file(path: Path) -> str:
    """A digest of what a file computes. It is read once in a process, which goes on with the code it has imported."""
    return hashlib.sha256(outline(ast.parse(path.read_bytes())).encode()).hexdigest()


def files_of(parts: tuple[str, ...], root: Path = ROOT) -> list[Path]:
    """The Python files of these files and folders, each once and in the order of their paths."""
    found: set[Path] = set()
    for part in parts:
        path = root / part
        found.update(path.rglob("*.py") if path.is_dir() else [path] if path.is_file() else [])
    return sorted(found)


def outline(node) -> str:
    """A syntax tree as text, in which two pieces of code are equal where they differ in nothing that is executed.

    Strings that are statements of their own, docstrings among them, and `pass` are left out, and so is every field
    that is empty: versions of Python differ in which empty fields a node has. (`ast.dump` would show them.)
    """
    if isinstance(node, ast.AST):
        fields = ",".join(f"{name}={outline(value)}" for name, value in fields_of(node))
        return f"{type(node).__name__}({fields})"
    if isinstance(node, list):
        return f"[{','.join(outline(one) for one in node if not says_nothing(one))}]"
    return repr(node)


def fields_of(node: ast.AST) -> Iterator[tuple[str, object]]:
    """The fields of a node that hold something; how a string was spelt (`kind`) and remarks on types are left out."""
    for name, value in ast.iter_fields(node):
        if isinstance(node, ast.JoinedStr):  # Python 3.12 ends some of them with an empty string
            value = [one for one in value if not (isinstance(one, ast.Constant) and one.value == "")]
        if name not in ("kind", "type_comment", "type_ignores") and value is not None and value != []:
            yield name, value


def says_nothing(statement) -> bool:
    """Is this a statement that only speaks to the reader: a string of its own, or `pass`?"""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return isinstance(statement.value.value, str)
    return isinstance(statement, ast.Pass)
