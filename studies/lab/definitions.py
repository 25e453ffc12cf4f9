"""Controllers, networks and data sets that a user's own file defines, by their names.

A file given with `--define` may hold classes of controllers and two dictionaries:

    NETWORKS = {"tiny": function}    function(classes) returns an untrained torch module that maps images to logits
    DATASETS = {"pets": function}    function(root) returns a data set; root is `--data-root` or None
"""

import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import netbridge as nb
from netbridge import data

in_files: dict[Path, dict[str, list[str]]] = {}  # the names that a file defines, of "controllers" and of "networks"
sources: dict[str, str] = {}  # by the name of a controller, a network or a data set: a digest of its file
networks: dict[str, Callable[[int], Any]] = {}
datasets: dict[str, Callable[[Any], Any]] = {}


def controllers(files: Iterable[Path]) -> list[str]:
    """The names of the controllers that these files define, in order; the files have been given to `run_file`."""
    return names("controllers", files)


def names(what: str, files: Iterable[Path]) -> list[str]:
    """The names of all "controllers" or "networks" that these files define, in order."""
    return list(dict.fromkeys(name for file in files for name in in_files[Path(file).resolve()][what]))


def origin(*texts: str) -> str:
    """A digest of the files that define what these texts name, such as "asr(mine)"; "" where none of them does.

    It belongs to what determines a network: with another file, under the same names, the network is another one.
    """
    words = " ".join(texts)
    found = {digest for name, digest in sources.items() if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", words)}
    return "".join(sorted(found))


def take_all(study: str, files: Iterable[Path], dataset: str) -> None:
    """Run these files; the study ends with one line where `--dataset` is neither theirs nor one that netbridge has."""
    for file in files:
        run_file(file)
    known = (*data.DATASETS, *datasets)
    if dataset not in known:
        raise SystemExit(f"studies.{study}: `--dataset` knows {', '.join(known)}, got {dataset!r}.")


def module_of(path: Path | str) -> ModuleType:
    """Run a user's Python file and return it as a module.

    It is read each time. An import would take the bytecode of an earlier file, written within the same second, for it.
    """
    path = Path(path)
    if not path.is_file() or path.suffix != ".py":
        raise SystemExit(f"`--define` = {str(path)!r} is not a Python file.")
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    return module


def named_functions(module: ModuleType, name: str) -> dict[str, Callable]:
    """The functions of a module's dictionary of this name; none where it has no such dictionary."""
    found = getattr(module, name, {})
    if not (isinstance(found, dict) and all(callable(one) for one in found.values())):
        raise SystemExit(f"{module.__file__}: `{name}` must be a dictionary of functions by their names.")
    return found


def run_file(path: Path) -> None:
    """Run a user's file and remember what it defines; a name that is there already is replaced."""
    module = module_of(path)
    own = [one for one in vars(module).values() if getattr(one, "__module__", None) == module.__name__]
    kinds = [one.name for one in own if isinstance(one, type) and issubclass(one, nb.Controller) and one.name]
    in_files[Path(path).resolve()] = {"controllers": kinds, "networks": list(named_functions(module, "NETWORKS"))}
    for name, known in (("NETWORKS", networks), ("DATASETS", datasets)):
        known |= named_functions(module, name)
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:8]
    sources.update(
        dict.fromkeys((*kinds, *named_functions(module, "NETWORKS"), *named_functions(module, "DATASETS")), digest)
    )
